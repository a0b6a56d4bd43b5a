//! May this answer leave? A site's consent to one question ([POL-4] to [POL-6], [POL-8], [POL-9], [LED-7]).

use veilsum_cluster::{Batch, Centres, Domain, Query};
use veilsum_proto::{
    Error, Rule,
    identity::Identity,
    ledger::{self, Answer, BoundingBox, Places},
    plan::Terms,
    policy::{self, Asked, Consent, Enforcement, Policy, Request},
    release::OwnBlock,
    roster::Roster,
    suite::{self, Hash},
};

use super::{
    book::{Book, Left},
    cost::{check_promise, cohort_digest, cost, facts},
    smooth::Kept,
};
use crate::{
    answerer::Answerer,
    plan::{PlanSpec, PlanSpecError},
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
    /// Different rows that are possible, where this site's own suggest few ([`PossibleRows`](crate::answerer::PossibleRows)).
    pub domain: Option<u64>,
}

impl Answering<'_> {
    /// The plan's form.
    ///
    /// # Errors
    /// [`PlanSpecError`] where the method part cannot be used.
    pub fn form(&self) -> Result<SumBounds, PlanSpecError> {
        SumBounds::of(self.work, self.terms, self.roster.sites.len())
    }
}

/// Rows that the coordinator's opened totals of this run have shown to be in a cohort at least.
#[derive(Clone, Default)]
pub struct Shown {
    /// How many.
    pub rows: u64,
    /// In which cohort.
    pub cohort: Vec<u16>,
}

impl Shown {
    /// The smallest number of rows of `cohort`. Each site that left may have had as many as the plan allows.
    pub fn of(&self, cohort: &[u16], max_rows: u64) -> u64 {
        let gone = self.cohort.iter().filter(|site| !cohort.contains(site)).count() as u64;
        self.rows.saturating_sub(gone.saturating_mul(max_rows))
    }
}

/// The facts of a question.
pub struct Offer<'a> {
    /// The question.
    pub question: &'a Question,
    /// The batch that a judged question is about.
    pub judged: Option<&'a Batch>,
    /// The form of the answer.
    pub layout: &'a Layout,
    /// Rows of the cohort at least, as far as totals have shown.
    pub shown: u64,
}

/// A consent to a question.
pub struct Decision {
    /// The policy's consent, without which nothing is masked.
    pub consent: Consent,
    /// The record from which the question is measured, to be kept beside the ledger ([POL-9]).
    pub record: Option<Kept>,
    /// Whether the release rule would have refused, and the site's policy only reports it.
    pub only_reported: bool,
}

/// Numbers of smooth answers that wait to be measured at most: they take a second or so, for which a round then waits.
const MOST_UNMEASURED: u64 = 2_000;

/// The last check before an answer. It computes what the answer would give away and what was given away before, and
/// asks the policy about both. On consent the answer is promised in the book, and its frame may leave.
///
/// # Errors
/// `Error::Refused`, for the operator.
pub fn decide(
    site: &Answering<'_>,
    book: &mut Book,
    asked: &Asked,
    left: &Left,
    offer: &Offer<'_>,
) -> Result<Decision, Error> {
    let (frame, centres) = places(offer, site);
    let drawn = match offer.question {
        Question::Drawn { number, .. } => drawn(site, asked, *number),
        _ => None,
    };
    let answer = Answer {
        kind: offer.question.name().to_owned(),
        question: question_digest(site, offer.question, &asked.query),
        cost: cost(offer.question, offer.layout, site.terms, site.policy, site.roster.sites.len()),
        drawn: drawn.as_ref().map(|sites| cohort_digest(site.roster, sites)),
        frame,
        centres,
    };
    let counted = matches!(offer.question, Question::Cluster(_) | Question::Drawn { .. });
    let form = site.form().map_err(|e| Error::Refused { what: e.to_string(), rule: Rule("POL-3") })?;
    let repeated = book.repeats(left, &answer);
    let enforced = site.policy.release.rule != Enforcement::Off && !repeated;
    let record = smooth(offer, left, asked, site).filter(|_| answer.cost.nano_rho.is_none());
    let mut spent = book.spent(left, counted);
    let account = book.account();
    let before = account.block().map(|block| OwnBlock { id: block.id, members: block.members.clone() });
    let mut request = Request {
        sites: site.roster.sites.len(),
        own_rows: site.rows.rows(),
        rows_in_all: rows_in_all(site, offer),
        columns: u32::try_from(site.work.headers().count()).unwrap_or(u32::MAX),
        domain: site.domain,
        plan: facts(site.work),
        repeated,
        cost: answer.cost,
        smooth: None,
        separation_ppm: ledger::separation(&answer.centres),
        before: before.as_ref(),
        drawn: drawn.as_deref(),
        of_plan: account.questions_of(&left.session, &answer.question),
    };
    let policy = &site.policy;
    let due = || book.unmeasured() > MOST_UNMEASURED || policy::measuring_decides(site.terms, policy, &request, &spent);
    if enforced && due() {
        request.smooth = book.measure(record.as_ref(), &answer.cost);
        spent = book.spent(left, counted);
    }
    if let (Some(rho), false) = (answer.cost.nano_rho, request.repeated) {
        let plan = (site.terms, &form, site.roster.sites.len());
        check_promise(plan, policy, rho, book.rho_of_plan(left))?;
    }
    let consent = policy::decide(site.terms, policy, asked, &request, &spent)?;
    let exact = request.cost.nano_rho.is_none() && !request.repeated;
    let only_reported = exact
        && policy.release.rule == Enforcement::Report
        && policy::check_release(site.terms, policy, &request, &spent).is_err();
    book.promise(left, answer, asked.own.members.clone()).map_err(|broken| Error::Refused {
        what: format!("the aggregator {}", broken.what),
        rule: Rule(broken.rule),
    })?;
    Ok(Decision { consent, record: record.filter(|_| !repeated), only_reported })
}

/// [POL-9]: what measuring a smooth question takes; `None` for any other.
fn smooth(offer: &Offer<'_>, left: &Left, asked: &Asked, site: &Answering<'_>) -> Option<Kept> {
    let (Question::Cluster(batch) | Question::Drawn { batch, .. }) = offer.question else { return None };
    batch.is_smooth().then(|| Kept {
        plan: left.plan,
        query: asked.query.clone(),
        columns: site.work.names(),
        domain: site.rows.domain().clone(),
        fraction_bits: offer.layout.blocks.iter().map(|block| block.scale.fraction_bits).collect(),
        rows: site.terms.max_rows.saturating_mul(site.roster.sites.len() as u64),
    })
}

/// Digest of everything but rows that an answer is made of: the question's bytes `query`, labels where they are counted, and the
/// box where the answer is blurred, because how far a column reaches says how much.
pub fn question_digest(site: &Answering<'_>, question: &Question, query: &[u8]) -> Hash {
    let besides = match question.is_blurred() {
        true => reaches(site.rows.domain()),
        false => labels(question, site.identity, site.work, site.rows),
    };
    suite::hash("question in a ledger", &[query, &besides])
}

/// The interval of every column in working units, as bytes.
fn reaches(domain: &Domain) -> Vec<u8> {
    let ends = (0..domain.columns()).map(|column| domain.working_interval(column));
    ends.flat_map(|(low, high)| [low, high]).flat_map(f64::to_le_bytes).collect()
}

/// Digest of what an answer is made of besides the rows' values, under a key of this site, so that nobody else can test
/// labels against a ledger.
fn labels(question: &Question, identity: &Identity, work: &PlanSpec, rows: &dyn Answerer) -> Vec<u8> {
    let (Question::Cluster(batch) | Question::Drawn { batch, .. }) = question else { return Vec::new() };
    let counts = batch.queries.iter().any(Query::reads_labels);
    match (rows.labels(), &work.labels) {
        (Some(labels), Some(of)) if counts => {
            let labels: Vec<u8> = labels.iter().flat_map(|label| label.to_le_bytes()).collect();
            suite::hash("labels in a ledger", &[&*identity.digest_secret(), of.column.as_bytes(), &labels]).0.to_vec()
        }
        _ => Vec::new(),
    }
}

/// Sites of the cohort whose rows drawn question `number` is about, where the plan draws any ([APP-6]): whole blocks.
pub fn drawn(site: &Answering<'_>, asked: &Asked, number: u32) -> Option<Vec<u16>> {
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

/// The smallest number of rows behind a question. In a sampled round only this site's rows are guaranteed.
fn rows_in_all(site: &Answering<'_>, offer: &Offer<'_>) -> u64 {
    let own = site.rows.rows();
    if matches!(offer.question, Question::Drawn { .. }) {
        return own;
    }
    own.max(site.terms.min_total_rows).max(offer.shown)
}

/// The box of a question in the columns' own units, and where its centres lie in it, in millionths of the half-width from the
/// middle.
fn places(offer: &Offer<'_>, site: &Answering<'_>) -> (BoundingBox, Vec<Places>) {
    let batch = match (offer.question, offer.judged) {
        (Question::Cluster(batch) | Question::Drawn { batch, .. }, _) | (_, Some(batch)) => batch,
        _ => return Default::default(),
    };
    let domain = site.rows.domain();
    // A question without a box was refused before.
    let Ok(inner) = batch.domain(domain) else { return Default::default() };
    let part = |column: usize, x: f64| {
        let (low, high) = inner.working_interval(column);
        // Saturates, and centres lie in the box anyway.
        ((x - f64::midpoint(low, high)) / ((high - low) / 2.0) * 1e6).round() as i32
    };
    let of = |points: &Centres| Places {
        columns: u32::try_from(points.columns()).unwrap_or(u32::MAX),
        at: points
            .rows()
            .flat_map(|row| row.iter().enumerate().map(|(c, x)| part(c, *x)).collect::<Vec<_>>())
            .collect(),
    };
    let centres: Vec<Places> = batch.queries.iter().flat_map(Query::points).map(of).collect();
    let ends = || -> Option<Centres> {
        let (low, high): (Vec<f64>, Vec<f64>) = (0..inner.columns()).map(|c| inner.working_interval(c)).unzip();
        let ends = Centres::new(2, inner.columns(), [low, high].concat()).ok()?;
        let ends = batch.transform.as_ref().map_or(Some(ends.clone()), |transform| transform.back(&ends).ok())?;
        domain.centres_to_original(&ends).ok()
    };
    match ends().filter(|_| !centres.is_empty()) {
        Some(ends) => {
            let columns = site.work.names();
            let mut ends = ends.rows().map(|row| row.iter().map(|end| end.to_bits()).collect());
            let (lower, upper) = (ends.next().unwrap_or_default(), ends.next().unwrap_or_default());
            (BoundingBox { columns, lower, upper }, centres)
        }
        None => Default::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [APP-6]: the order in which a directory lists the blocks does not decide who is drawn.
    #[test]
    fn the_order_of_blocks_decides_no_draw() {
        use veilsum_cluster::{OutOfBox, Prepared, Rows, Scaling, sampling::Sampling};
        use veilsum_proto::release::{Block, Blocks};
        let (roster, ids) = crate::testing::kit(9);
        let mut work = crate::testing::work(2);
        work.sampling = Some(Sampling { share: 0.34, seed: 5 });
        let terms = Terms { block_size: 3, ..crate::testing::terms(&roster, &work) };
        let domain = Domain::new(vec![0.0], vec![1.0], Scaling::Box).unwrap();
        let rows = Prepared::new(&Rows::new(vec![0.5], 1).unwrap(), &domain, OutOfBox::Refuse).unwrap();
        let policy = Policy::only(policy::Floor::default());
        let (identity, (roster, work, terms)) = (&ids[2], (&roster, &work, &terms));
        let site = Answering { identity, roster, terms, work, policy: &policy, rows: &rows, domain: None };
        let drawn_of = |order: [u16; 3], number| {
            let block = |first: u16| Block {
                id: Hash([first as u8; 32]),
                sites: (first..first + 3).collect(),
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

    /// [LED-7]: counts by another label are another answer, though the question has the same bytes.
    #[test]
    fn labels_belong_to_what_is_asked() {
        use veilsum_cluster::{OutOfBox, Prepared, Rows, Scaling, query::Contingency};
        let mut work = crate::testing::work(2);
        let domain = Domain::new(vec![0.0; 2], vec![1.0; 2], Scaling::Box).unwrap();
        let rows = |of: [u32; 2]| {
            let rows = Rows::new(vec![0.1, 0.2, 0.7, 0.9], 2).unwrap();
            Prepared::new(&rows, &domain, OutOfBox::Refuse).unwrap().with_labels(of.to_vec()).unwrap()
        };
        let ask = |query| Question::Cluster(Batch { transform: None, queries: vec![query] });
        let centres = Centres::new(2, 2, vec![0.2, 0.2, 0.8, 0.8]).unwrap();
        let counts = ask(Query::Contingency(Contingency { centres: centres.clone(), classes: 2 }));
        let sums = ask(Query::fuzzy_sums(centres, 2.0));
        let mut seen = std::collections::BTreeSet::new();
        for column in ["sex", "diagnosis"] {
            work.labels = Some(crate::plan::Labels { column: column.into(), classes: vec!["a".into(), "b".into()] });
            for (seed, of) in [(1, [0, 1]), (1, [1, 0]), (2, [0, 1])] {
                let identity = Identity::from_seed(&[seed; 32]);
                assert!(seen.insert(labels(&counts, &identity, &work, &rows(of))), "{column}, {of:?}");
                assert!(labels(&sums, &identity, &work, &rows(of)).is_empty());
            }
        }
    }
}
