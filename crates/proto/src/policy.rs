//! A site's own policy: what it demands whatever the coordinator's plan says, and how much it gives away in all (spec section
//! 11). The module is pure, uses integers only, reads no row, and fails closed.

use serde::{Deserialize, Serialize};

use crate::{
    error::Error,
    limits::MIN_SITES,
    plan::{Sites, Terms, check_threshold},
    rule::Rule,
    suite::Hash,
};

/// A site's own floor for the protocol itself. The stricter of this and the plan holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Floor {
    /// The smallest number of sites that a total may cover.
    pub min_cohort: u16,
    /// Sites that this site supposes may collude with the coordinator; 0 leaves it to the plan.
    pub colluders: u16,
    /// The largest number of different questions of one plan that this site answers.
    pub max_rounds: u32,
}

impl Default for Floor {
    fn default() -> Self {
        Floor { min_cohort: MIN_SITES as u16, colluders: 0, max_rounds: 1_000 }
    }
}

/// A site's whole policy. A site without a policy file has the default.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Policy {
    /// The floor for the protocol itself.
    pub floor: Floor,
    /// Methods that a plan may name; `None` allows any.
    pub methods: Option<Vec<String>>,
    /// Columns that a plan may name; `None` allows any.
    pub columns: Option<Vec<String>>,
    /// The cap of the account: zero-concentrated differential privacy that all answers under this identity spend together by this site's own
    /// noise alone, in 10^-9 of rho ([POL-8]).
    pub nano_rho: u64,
    /// Whether the operator may agree to a plan without noise ([POL-9]).
    pub exact: Exact,
    /// Which plans are answered without a further word, as to the sites of a total ([POL-10]).
    pub sites: Sites,
    /// Which plans the operator agrees to ([POL-10]).
    pub ask: Ask,
    /// Rows that this site holds at most, far above those that it has, and no secret: a plan with noise leaves room for as many
    /// ([POL-4]).
    pub max_rows: u64,
    /// Rows of one person that count at most, if the site takes others away by a column of persons; no secret ([POL-4]).
    pub rows_per_person: Option<u64>,
}

/// What a site makes of plans without noise ([POL-9]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exact {
    /// The operator agrees to each of them by its hash.
    ByAgreement,
    /// None is answered.
    Never,
}

/// Which plans a site's operator agrees to ([POL-10]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ask {
    /// Those that need it.
    WhenNeeded,
    /// All.
    Always,
}

/// Rows that a site holds at most whose policy says nothing: about a million.
pub const DEFAULT_MAX_ROWS: u64 = 1 << 20;

/// Sites that make a plan's noise: if as many keep theirs secret, an answer says so many times less than by one site's noise alone.
pub const HONEST: usize = 2;

/// The cap of an account whose policy names none: [`HONEST`] times rho = 1.
pub const DEFAULT_NANO_RHO: u64 = HONEST as u64 * 1_000_000_000;

impl Default for Policy {
    fn default() -> Self {
        Policy {
            floor: Floor::default(),
            methods: None,
            columns: None,
            nano_rho: DEFAULT_NANO_RHO,
            exact: Exact::ByAgreement,
            sites: Sites::Same,
            ask: Ask::WhenNeeded,
            max_rows: DEFAULT_MAX_ROWS,
            rows_per_person: None,
        }
    }
}

/// What the application says about its answer. A field that it leaves out forbids most.
#[derive(Clone, Debug, Default)]
pub struct Request<'a> {
    /// What the plan says.
    pub plan: PlanFacts<'a>,
    /// Whether the same answer, to the bit, was given to the same sites before, so that it gives nothing more away.
    pub repeated: bool,
    /// What it gives away.
    pub cost: Cost,
    /// Whether the operator agreed to all of this plan that needs it ([POL-9], [POL-10]).
    pub agreed: bool,
    /// Different questions of this plan that this site answered in all runs, this one included.
    pub of_plan: u64,
}

/// What a plan says about itself.
#[derive(Clone, Debug, Default)]
pub struct PlanFacts<'a> {
    /// Its method.
    pub method: &'a str,
    /// Its columns.
    pub columns: Vec<&'a str>,
    /// Rows of one person at most, if its noise hides persons.
    pub rows_per_person: Option<u64>,
}

/// What one answer gives away.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Cost {
    /// Numbers.
    pub scalars: u64,
    /// rho in 10^-9, rounded up, of an answer with noise; `None` of one without.
    pub nano_rho: Option<u64>,
}

/// What was given away under one identity before, by all its plans.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Spent {
    /// Different answers.
    pub questions: u64,
    /// Numbers without noise.
    pub scalars: u64,
    /// rho in 10^-9.
    pub nano_rho: u64,
}

impl Spent {
    /// Adds an answer.
    pub fn add(&mut self, cost: &Cost) {
        self.questions = self.questions.saturating_add(1);
        match cost.nano_rho {
            Some(rho) => self.nano_rho = self.nano_rho.saturating_add(rho),
            None => self.scalars = self.scalars.saturating_add(cost.scalars),
        }
    }
}

/// A query that reached this site and passed the protocol's own checks; the site may still refuse it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asked {
    /// The round, and what its masks are bound to.
    pub context: Hash,
    /// The run, by the name that the aggregator gave it.
    pub run: Hash,
    /// Deck and slot.
    pub slot: (u32, u16),
    /// Numbers of the sites whose total this will be.
    pub cohort: Vec<u16>,
    /// Words of the answer.
    pub words: usize,
    /// The application's query.
    pub query: Vec<u8>,
    /// How many queries this site was asked in this run, this one included.
    pub rounds: u32,
    /// Sites of the roster.
    pub sites: usize,
}

/// A site's consent to answer one query in one context. Only [`decide`] makes one.
#[derive(Debug)]
pub struct Consent {
    context: Hash,
}

impl Consent {
    pub(crate) fn context(&self) -> Hash {
        self.context
    }
}

/// Decides whether this site answers `asked`, which the application describes as `request`, after what was `spent` before
/// ([POL-1], [POL-2], [POL-4], [POL-8], [POL-9]). Nothing here depends on a row.
///
/// # Errors
/// `Error::Refused` with the rule and what is missing.
pub fn decide(
    terms: &Terms,
    policy: &Policy,
    asked: &Asked,
    request: &Request<'_>,
    spent: &Spent,
) -> Result<Consent, Error> {
    check_size(terms, &policy.floor, asked.cohort.len(), asked.sites)?;
    // A coordinator that begins a new run does not get a new allowance.
    check_questions(&policy.floor, u64::from(asked.rounds).max(request.of_plan))?;
    check_plan(policy, &request.plan)?;
    if !request.repeated {
        check_account(policy, request.cost.nano_rho, request.agreed, spent)?;
    }
    Ok(Consent { context: asked.context })
}

/// [POL-2]: the number of different questions of one plan.
///
/// # Errors
/// As [`decide`].
pub fn check_questions(floor: &Floor, questions: u64) -> Result<(), Error> {
    if questions > u64::from(floor.max_rounds) {
        return Err(Error::refused(
            format!(
                "question {questions} of one plan, and this site's policy allows {} (max_rounds)",
                floor.max_rounds
            ),
            Rule::Pol2,
        ));
    }
    Ok(())
}

/// [POL-4]: what a plan must be before this site answers any question of it.
///
/// # Errors
/// As [`decide`].
pub fn check_plan(policy: &Policy, plan: &PlanFacts<'_>) -> Result<(), Error> {
    let refused = |why: String| Err(Error::refused(why, Rule::Pol4));
    if policy.methods.as_ref().is_some_and(|list| !list.iter().any(|name| name == plan.method)) {
        return refused(format!("the method {:?} is not on this site's list (methods)", plan.method));
    }
    if let Some(list) = &policy.columns
        && let Some(column) = plan.columns.iter().find(|column| !list.iter().any(|name| name == *column))
    {
        return refused(format!("the column {column:?} is not on this site's list (columns)"));
    }
    match (plan.rows_per_person, policy.rows_per_person) {
        (Some(_), None) => refused(
            "the plan hides persons, and this site does not say which rows are of one person (person under [rows] in site.toml)".into(),
        ),
        (Some(most), Some(own)) if own > most => refused(format!(
            "the plan hides persons of at most {most} rows, and at this site {own} rows of one count (rows_per_person)"
        )),
        _ => Ok(()),
    }
}

/// The account: what all answers under this identity spend together ([POL-8]), and that nothing leaves to which the operator has yet
/// to agree ([POL-9], [POL-10]). `nano_rho` is what is about to be spent, `None` without noise.
///
/// # Errors
/// As [`decide`].
pub fn check_account(policy: &Policy, nano_rho: Option<u64>, agreed: bool, spent: &Spent) -> Result<(), Error> {
    match nano_rho {
        Some(rho) if spent.nano_rho.saturating_add(rho) > policy.nano_rho => Err(Error::refused(
            format!(
                "rho {} would be spent in all, and this site's policy allows {} for the life of its account",
                rho_text(spent.nano_rho.saturating_add(rho)),
                rho_text(policy.nano_rho)
            ),
            Rule::Pol8,
        )),
        None if policy.exact == Exact::Never => Err(Error::refused(
            "the plan adds no noise, and this site's policy answers none without (exact)",
            Rule::Pol9,
        )),
        None if !agreed => Err(Error::refused(
            "the plan adds no noise, and this site's operator has not agreed to its exact totals",
            Rule::Pol9,
        )),
        Some(_) if !agreed => {
            Err(Error::refused("this site's operator has not agreed to the plan, which needs it", Rule::Pol10))
        }
        _ => Ok(()),
    }
}

/// rho as a person reads it, from 10^-9 of it: four digits after the point, rounded up.
pub fn rho_text(nano_rho: u64) -> String {
    let parts = nano_rho.div_ceil(100_000);
    let text = format!("{}.{:04}", parts / 10_000, parts % 10_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// What is left of an account, likewise, but rounded down: nobody is told of more than there is.
pub fn left_text(nano_rho: u64) -> String {
    rho_text(nano_rho - nano_rho % 100_000)
}

/// [POL-1]: the smallest number of sites this site lets a total cover, of the `sites` of the roster.
pub(crate) fn least(terms: &Terms, floor: &Floor, sites: usize) -> usize {
    terms.least(sites).max(usize::from(floor.min_cohort))
}

/// [POL-1]: a total over fewer sites than the floor, or than the plan's, is refused.
///
/// # Errors
/// As [`decide`].
pub fn check_size(terms: &Terms, floor: &Floor, n: usize, sites: usize) -> Result<(), Error> {
    let least = least(terms, floor, sites);
    if n < least {
        return Err(Error::refused(format!("a total over {n} sites where the floor is {least}"), Rule::Pol1));
    }
    Ok(())
}

/// Sites that this site supposes to collude: as many as it says, or the plan.
pub(crate) fn colluders(terms: &Terms, floor: &Floor, sites: usize) -> usize {
    terms.colluders_of(sites).max(usize::from(floor.colluders))
}

/// The threshold this site accepts for a deck of `n`: the plan's, if it also withstands this site's own colluders
/// ([THR-2]). `sites` is the size of the roster.
///
/// # Errors
/// `Error::Refused` if it does not withstand them, or is none for so many sites.
pub fn threshold(terms: &Terms, floor: &Floor, n: usize, sites: usize) -> Result<usize, Error> {
    check_size(terms, floor, n, sites)?;
    let t = terms.threshold_of(n, sites)?;
    check_threshold(n, t, colluders(terms, floor, sites)).map_err(|why| Error::refused(why, Rule::Thr2))?;
    Ok(t)
}

#[cfg(test)]
mod tests;
