//! May this answer leave? A site's consent to one question ([POL-3], [POL-4], [POL-8], [POL-9], [LED-7]). Which question may come its own
//! copy of the method says ([`crate::replay`]).

use veilsum_proto::{
    Error,
    identity::Identity,
    ledger::Answer,
    plan::Terms,
    policy::{self, Asked, Consent, Policy, Request},
    roster::Roster,
    suite::{self, Hash},
};

use super::{
    book::{Book, Left},
    cost::{check_price, cohort_digest, cost, facts},
    judge::{needs, unagreed},
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
        Question::Drawn { number, .. } => drawn(site, *number),
        _ => None,
    };
    let cost = cost(offer.layout);
    let table = book.data().table.filter(|_| cost.nano_rho.is_none());
    let answer = Answer {
        kind: offer.question.name().to_owned(),
        question: question_digest(&asked.query),
        cost,
        drawn: drawn.as_ref().map(|sites| cohort_digest(site.roster, sites)),
        table,
    };
    let repeated = book.repeats(left, &answer);
    let account = book.account();
    let needs = needs((site.roster, site.terms, site.work), site.policy, account, table.as_ref());
    if !needs.is_empty() {
        return Err(unagreed(&needs));
    }
    let request = Request {
        plan: facts(site.work),
        repeated,
        cost: answer.cost,
        agreed: true,
        of_plan: account.questions_of(&left.session, &answer.question),
    };
    if let (Some(rho), false) = (answer.cost.nano_rho, repeated) {
        check_price(site.work, rho, book.rho_of_plan(left))?;
    }
    let consent = policy::decide(site.terms, site.policy, asked, &request, &book.spent(left))?;
    book.promise(left, answer);
    Ok(consent)
}

/// Digest of a question's bytes.
pub fn question_digest(query: &[u8]) -> Hash {
    suite::hash("question in a ledger", &[query])
}

/// [POL-3]: whether this site, number `me`, was drawn for a question, which is number `of_plan` of its plan over all runs.
///
/// # Errors
/// A sentence for the site's operator.
pub fn is_drawn(site: &Answering<'_>, me: u16, question: &Question, of_plan: u64) -> Result<bool, String> {
    let planned = u64::from(site.work.max_questions());
    if of_plan > planned {
        return Err(format!(
            "this would be question {of_plan} under a plan of {planned}, over all its runs: agree on a new plan"
        ));
    }
    let Question::Drawn { number, .. } = question else { return Ok(true) };
    let drawn = drawn(site, *number).unwrap_or_default();
    let supposed = site.terms.colluders_of(site.roster.sites.len()).max(usize::from(site.policy.floor.colluders));
    let (count, needed) = (drawn.len(), agreed::drawn_at_least(supposed));
    if count < needed {
        return Err(format!("{count} sites were drawn, {needed} must be"));
    }
    Ok(drawn.contains(&me))
}

/// Sites whose rows drawn question `number` is about, where the plan draws any ([APP-6]).
fn drawn(site: &Answering<'_>, number: u32) -> Option<Vec<u16>> {
    let chosen = site.work.sampling?.drawn(number, site.roster.sites.len());
    Some((0..).zip(chosen).filter(|(_, drawn)| *drawn).map(|(site, _)| site).collect())
}
