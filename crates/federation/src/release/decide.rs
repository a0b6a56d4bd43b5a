//! May this answer leave? A site's consent to one question ([POL-3], [POL-4], [POL-8], [POL-9], [LED-7]). Which question may come its own
//! copy of the method says ([`crate::replay`]).

use veilsum_proto::{
    Error,
    identity::Identity,
    ledger::Answer,
    plan::Terms,
    policy::{self, Asked, Consent, Policy, Request},
    release::OwnBlock,
    roster::Roster,
    suite::{self, Hash},
};

use super::{
    book::{Book, Left},
    cost::{check_price, cohort_digest, cost, facts},
};
use crate::{
    agreed,
    answerer::Answerer,
    error::Failure,
    plan::PlanSpec,
    question::{Layout, Question, SumBounds},
};

/// What a site answers from, and under what.
#[derive(Clone, Copy)]
pub struct Answering<'a> {
    /// Its identity, whose secret keys the digests of a ledger.
    pub identity: &'a Identity,
    /// The verified roster.
    pub roster: &'a Roster,
    /// The verified plan.
    pub terms: &'a Terms,
    /// The plan's method part.
    pub work: &'a PlanSpec,
    /// The site's own policy.
    pub policy: &'a Policy,
    /// Its rows, in working units.
    pub rows: &'a dyn Answerer,
}

impl Answering<'_> {
    /// The plan's form.
    ///
    /// # Errors
    /// [`Failure`] where the method part cannot be used.
    pub fn form(&self) -> Result<SumBounds, Failure> {
        self.work.form(self.roster.sites.len(), self.terms.max_rows)
    }
}

/// The facts of a question.
pub struct Offer<'a> {
    /// The question.
    pub question: &'a Question,
    /// The form of the answer.
    pub layout: &'a Layout,
}

/// The last check before an answer. It computes what the answer would give away and what was given away before, and
/// asks the policy about both. On consent the answer is promised in the book, and its frame may leave. Everything that it
/// reads is public, or in the ledger: no row.
///
/// # Errors
/// `Error::Refused`.
pub fn decide(
    site: &Answering<'_>,
    book: &mut Book,
    asked: &Asked,
    left: &Left,
    offer: &Offer<'_>,
) -> Result<Consent, Error> {
    let drawn = match offer.question {
        Question::Drawn { number, .. } => drawn(site, asked, *number),
        _ => None,
    };
    let answer = Answer {
        kind: offer.question.name().to_owned(),
        question: question_digest(&asked.query),
        cost: cost(offer.layout),
        drawn: drawn.as_ref().map(|sites| cohort_digest(site.roster, sites)),
    };
    let repeated = book.repeats(left, &answer);
    let account = book.account();
    let before = account.block().map(|block| OwnBlock { id: block.id, members: block.members.clone() });
    let request = Request {
        plan: facts(site.work),
        repeated,
        cost: answer.cost,
        agreed: account.has_agreed(&left.plan),
        before: before.as_ref(),
        drawn: drawn.as_deref(),
        of_plan: account.questions_of(&left.session, &answer.question),
    };
    if let (Some(rho), false) = (answer.cost.nano_rho, repeated) {
        check_price(site.work, rho, book.rho_of_plan(left))?;
    }
    let consent = policy::decide(site.terms, site.policy, asked, &request, &book.spent(left))?;
    book.promise(left, answer, asked.own.members.clone())
        .map_err(|broken| Error::Refused { what: format!("the aggregator {}", broken.what), rule: broken.rule })?;
    Ok(consent)
}

/// Digest of a question's bytes.
pub fn question_digest(query: &[u8]) -> Hash {
    suite::hash("question in a ledger", &[query])
}

/// [POL-3]: whether this site, number `me`, was drawn for a question, which is number `of_plan` of its plan over all runs. A question whose
/// slot was burned comes again, and counts once.
///
/// # Errors
/// A sentence for the site's operator.
pub fn is_drawn(
    site: &Answering<'_>,
    me: u16,
    question: &Question,
    asked: &Asked,
    of_plan: u64,
) -> Result<bool, String> {
    let planned = u64::from(site.work.max_questions());
    if of_plan > planned {
        return Err(format!(
            "this would be question {of_plan} under a plan of {planned}, over all its runs: agree on a new plan"
        ));
    }
    let Question::Drawn { number, .. } = question else { return Ok(true) };
    let drawn = drawn(site, asked, *number).unwrap_or_default();
    let sites = site.roster.sites.len();
    let (live, needed) =
        (drawn.len(), agreed::drawn_at_least(site.terms, &site.policy.floor, asked.cohort.len(), sites)?);
    if live < needed {
        return Err(format!("{live} sites that are left were drawn, {needed} must be"));
    }
    Ok(drawn.contains(&me))
}

/// Sites of the cohort whose rows drawn question `number` is about, where the plan draws any ([APP-6]): whole blocks.
fn drawn(site: &Answering<'_>, asked: &Asked, number: u32) -> Option<Vec<u16>> {
    let sampling = site.work.sampling?;
    // Where every site is a block by itself, the draw is among the sites of the roster.
    let mut among: Vec<Vec<u16>> = match site.terms.block_size {
        1 => (0..site.roster.sites.len() as u16).map(|site| vec![site]).collect(),
        _ => asked.blocks.0.iter().map(|block| block.sites.clone()).collect(),
    };
    // The coordinator chooses the order in which a directory lists its blocks, so the draw must not depend on it.
    among.sort_unstable();
    let chosen = sampling.drawn(number, among.len());
    let chosen = among.into_iter().zip(chosen).filter(|(_, drawn)| *drawn).flat_map(|(sites, _)| sites);
    let mut sites: Vec<u16> = chosen.filter(|site| asked.cohort.binary_search(site).is_ok()).collect();
    sites.sort_unstable();
    Some(sites)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [APP-6]: the order in which a directory lists the blocks does not decide who is drawn.
    #[test]
    fn the_order_of_blocks_decides_no_draw() {
        use veilsum_cluster::{Domain, Scaling, sampling::Sampling};
        use veilsum_proto::release::{Block, Blocks};
        let (roster, ids) = crate::tests::kit(9);
        let mut work = crate::tests::work(2);
        work.sampling = Some(Sampling { share: 0.34, seed: 5 });
        let terms = Terms { block_size: 3, ..crate::tests::terms(&roster, &work) };
        let domain = Domain::new(vec![0.0], vec![1.0], Scaling::Box).unwrap();
        let rows = crate::question::tests::site(&[0.5], &domain);
        let policy = Policy::default();
        let (identity, (roster, work, terms)) = (&ids[2], (&roster, &work, &terms));
        let site = Answering { identity, roster, terms, work, policy: &policy, rows: &rows };
        let drawn_of = |order: [u16; 3], number| {
            let block = |first: u16| Block {
                id: Hash([first as u8; 32]),
                sites: (first..first + 3).collect(),
                ids: vec![Hash::default(); 3],
                versions: vec![0; 3],
            };
            let asked = Asked {
                context: Hash::default(),
                run: Hash::default(),
                slot: (0, 0),
                cohort: (0..9).collect(),
                words: 1,
                query: Vec::new(),
                rounds: 1,
                blocks: std::sync::Arc::new(Blocks(order.map(block).to_vec())),
                own: OwnBlock::default(),
                sites: 9,
            };
            drawn(&site, &asked, number).unwrap()
        };
        for number in 1..=20 {
            let honest = drawn_of([0, 3, 6], number);
            assert_eq!(honest.len(), 3, "one block of three");
            for order in [[0, 6, 3], [3, 0, 6], [3, 6, 0], [6, 0, 3], [6, 3, 0]] {
                assert_eq!(drawn_of(order, number), honest, "question {number}, {order:?}");
            }
        }
    }
}
