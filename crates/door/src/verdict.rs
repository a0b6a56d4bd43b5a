//! What a site's door says: to a whole plan, by one function for the answer to a proposal, for the checks that an operator runs, and for the
//! start of a run ([PRO-2], [POL-8] to [POL-10]); and to one question of it. It reads the plan's facts, policy and account, and no row.

use serde::Serialize;
use veilsum_proto::{
    Rule,
    plan::{Sites, check_threshold},
    policy::{Asked, Below},
    suite::{self, Hash},
};

use crate::{
    account::{Account, Kind},
    entry::{Answer, Place, Table, Talk},
    guard::{self, Granted},
    policy::{Ask, Exact, Policy, Unit},
};

/// What the door knows of a plan: numbers and hashes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PlanFacts {
    /// The plan.
    pub plan: Hash,
    /// Its sites, named as a cohort is.
    pub set: Hash,
    /// How many they are.
    pub sites: usize,
    /// The fewest of them that a total covers.
    pub least: usize,
    /// Shares that open a total of all.
    pub threshold: usize,
    /// How many may collude.
    pub colluders: usize,
    /// Which sites a total covers.
    pub totals: Sites,
    /// Questions of a run at most.
    pub questions: u32,
    /// The method, by [`name_of`].
    pub method: Hash,
    /// The columns, by [`name_of`], in the plan's order.
    pub columns: Vec<Hash>,
    /// What its answers give away.
    pub gives: Gives,
}

/// What a plan's answers give away.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Gives {
    /// All of them carry noise.
    Noisy {
        /// The whole price, in 10^-9 of rho.
        nano_rho: u64,
        /// What the noise hides.
        unit: Unit,
        /// Rows of a site for which there is room.
        max_rows: u64,
    },
    /// Exact totals.
    Exact {
        /// The largest number of clusters.
        clusters: u32,
        /// Rows that the totals are sure to cover.
        rows: u64,
        /// The fuzzifier, in thousandths, rounded down.
        fuzzifier: Option<u32>,
        /// Whether the plan names its first centres.
        names_centres: bool,
    },
}

impl Gives {
    pub(crate) fn is_exact(&self) -> bool {
        self.price().is_none()
    }

    fn price(&self) -> Option<u64> {
        match self {
            Gives::Noisy { nano_rho, .. } => Some(*nano_rho),
            Gives::Exact { .. } => None,
        }
    }
}

/// Stands for the name of a method or a column.
pub fn name_of(name: &str) -> Hash {
    suite::hash("name in a plan", &[name.as_bytes()])
}

/// What a site says to a whole plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It answers.
    Yes(Yes),
    /// Policy or account refuse it.
    No(No),
    /// It answers once its operator agrees (`veilsum agree`).
    NeedsAgreement(Vec<Needs>),
}

impl Verdict {
    /// The same where only a yes goes on.
    ///
    /// # Errors
    /// The no, or what the operator has to agree to.
    pub fn yes(self) -> Result<Yes, No> {
        match self {
            Verdict::Yes(yes) => Ok(yes),
            Verdict::No(why) => Err(why),
            Verdict::NeedsAgreement(needs) => Err(No::Unagreed(needs)),
        }
    }
}

/// What an operator has to agree to ([POL-9], [POL-10]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Needs {
    /// Exact totals.
    Exact,
    /// Exact totals after others with noise.
    EndsPromise,
    /// A set of sites that the account does not name.
    Set,
    /// Totals over whichever sites are left, at a site that says `same`.
    AnySites,
    /// The policy asks for every plan.
    Always,
}

/// Why a site does not answer: a code. What it says to people is said elsewhere. Prices are in 10^-9 of rho.
#[allow(missing_docs)]
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum No {
    /// Fewer sites or more questions than its floor allows.
    Below(Below),
    /// The plan's threshold does not withstand so many that collude.
    Threshold { sites: usize, threshold: usize, colluders: usize },
    /// The method is not on the site's list.
    Method,
    /// A column is not, by its number in the plan, from 1.
    Column(usize),
    /// The noise hides persons, and the site knows none.
    NoPersons,
    /// The noise hides another unit than the site's.
    Unit { plan: Unit, own: Unit },
    /// The account is for another unit since its first run.
    OtherUnit { account: Unit, policy: Unit },
    /// The plan has room for fewer rows than the site may hold.
    Room { plan: u64, own: u64 },
    /// More would be spent than is left of the cap.
    Account { left: u64, cap: u64 },
    /// The policy would raise the account's cap.
    AboveCap { policy: u64, cap: u64 },
    /// The plan was run before.
    RunBefore,
    /// An answer left in this round, or a later one.
    Answered,
    /// The answers under the plan would spend more than its price, or its run has not begun.
    Price,
    /// The policy answers no exact plan.
    Exact,
    /// Exact totals over whichever sites are left.
    ExactAny,
    /// Noise after exact totals.
    AfterExact,
    /// More clusters than a twentieth of the rows.
    Clusters,
    /// A fuzzifier below 1.1.
    Fuzzifier,
    /// The plan names its first centres.
    NamesCentres,
    /// The operator has yet to agree.
    Unagreed(Vec<Needs>),
}

impl No {
    /// The rule that refuses.
    pub fn rule(&self) -> Rule {
        match self {
            No::Below(below) => below.rule(),
            No::Threshold { .. } => Rule::Thr2,
            No::Method | No::Column(_) | No::NoPersons | No::Unit { .. } | No::OtherUnit { .. } | No::Room { .. } => {
                Rule::Pol4
            }
            No::Account { .. } | No::AboveCap { .. } | No::RunBefore | No::Price => Rule::Pol8,
            No::Answered => Rule::Jrn2,
            No::Exact | No::ExactAny | No::AfterExact | No::Clusters | No::Fuzzifier | No::NamesCentres => Rule::Pol9,
            No::Unagreed(needs) if needs.contains(&Needs::Exact) => Rule::Pol9,
            No::Unagreed(_) => Rule::Pol10,
        }
    }
}

/// A yes to a whole plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Yes {
    /// What it spends at most, in 10^-9 of rho; `None` without noise.
    pub nano_rho: Option<u64>,
    /// What is left of the account then, in 10^-9 of rho.
    pub left: u64,
    /// How often a plan like it would be answered after it; `None` without noise, which needs an agreement each time.
    pub runs: Option<u32>,
}

/// Whether this site answers the whole plan, or the rest of a run that has begun and not ended. Runs that have begun count at their whole
/// price, so a run that begins with a yes comes to its end ([POL-8]). `now` is the table to answer from, where it is known.
pub fn judge(facts: &PlanFacts, policy: &Policy, account: &Account, now: Option<&Table>) -> Verdict {
    match fits(facts, policy, account) {
        Err(why) => Verdict::No(why),
        Ok(yes) => match needs(facts, policy, account, now) {
            needs if needs.is_empty() => Verdict::Yes(yes),
            needs if needs.contains(&Needs::Exact) => {
                is_sane(facts).map_or_else(Verdict::No, |()| Verdict::NeedsAgreement(needs))
            }
            needs => Verdict::NeedsAgreement(needs),
        },
    }
}

/// What the operator has yet to agree to before this plan is answered, from the table `now` if it is known.
pub fn needs(facts: &PlanFacts, policy: &Policy, account: &Account, now: Option<&Table>) -> Vec<Needs> {
    let agreed = account.has_agreed(&facts.plan, now);
    let all = [
        (Needs::Exact, facts.gives.is_exact() && !agreed),
        (Needs::EndsPromise, facts.gives.is_exact() && account.kind() == Some(Kind::Noisy)),
        (Needs::Set, !account.names(&facts.set)),
        (Needs::AnySites, (facts.totals, policy.sites) == (Sites::Any, Sites::Same) && !agreed),
        (Needs::Always, policy.ask == Ask::Always && !agreed),
    ];
    all.into_iter().filter(|(_, open)| *open).map(|(needs, _)| needs).collect()
}

/// Whether policy and account let the plan be answered, once the operator agrees to it.
pub(crate) fn fits(facts: &PlanFacts, policy: &Policy, account: &Account) -> Result<Yes, No> {
    let before = account.rho_of(&facts.plan);
    is_not_over(facts, account)?;
    let (floor, sites) = (&policy.floor, facts.sites);
    floor.check_size(facts.least, sites).map_err(No::Below)?;
    let (threshold, colluders) = (facts.threshold, facts.colluders.max(floor.colluders.into()));
    check_threshold(sites, threshold, colluders).map_err(|_| No::Threshold { sites, threshold, colluders })?;
    floor.check_questions(facts.questions.into()).map_err(No::Below)?;
    check_plan(facts, policy, account)?;
    let committed = account.committed(Some(&facts.plan));
    let Some(price) = facts.gives.price() else {
        let cap = account.bound().cap();
        let cap = policy.nano_rho.map_or(cap, |lower| lower.min(cap));
        return Ok(Yes { nano_rho: None, left: cap.saturating_sub(committed), runs: None });
    };
    // Nothing more, unless the unit is another from the first run on.
    let more = account.before_of(policy.unit) - account.bound().before;
    let spends = price.saturating_sub(before).saturating_add(more);
    let left = check_account(cap_of(policy, account)?, committed, spends)?;
    Ok(Yes { nano_rho: Some(price), left, runs: Some(u32::try_from(left / price.max(1)).unwrap_or(u32::MAX)) })
}

/// [POL-8]: a plan is run once.
fn is_not_over(facts: &PlanFacts, account: &Account) -> Result<(), No> {
    let over = account.rho_of(&facts.plan) > 0 && !account.has_begun(&facts.plan);
    if over { Err(No::RunBefore) } else { Ok(()) }
}

/// [POL-4], [POL-9]: what a plan must be before this site answers any question of it.
fn check_plan(facts: &PlanFacts, policy: &Policy, account: &Account) -> Result<(), No> {
    let lists = |list: &Option<Vec<String>>, name: &Hash| {
        list.as_ref().is_none_or(|list| list.iter().any(|own| name_of(own) == *name))
    };
    if !lists(&policy.methods, &facts.method) {
        return Err(No::Method);
    }
    if let Some(at) = facts.columns.iter().position(|column| !lists(&policy.columns, column)) {
        return Err(No::Column(at + 1));
    }
    let (of_account, of_policy) = (account.bound().unit, policy.unit);
    match facts.gives {
        Gives::Noisy { .. } if account.kind() == Some(Kind::Exact) => Err(No::AfterExact),
        Gives::Noisy { .. } if of_account != of_policy && account.is_settled() => {
            Err(No::OtherUnit { account: of_account, policy: of_policy })
        }
        Gives::Noisy { unit: Unit::Person(_), .. } if policy.unit == Unit::Row => Err(No::NoPersons),
        Gives::Noisy { unit, .. } if unit != policy.unit => Err(No::Unit { plan: unit, own: policy.unit }),
        // How many rows there are must not decide, so a plan has room for all that there may be.
        Gives::Noisy { max_rows: plan, .. } if plan < policy.max_rows => Err(No::Room { plan, own: policy.max_rows }),
        Gives::Exact { .. } if policy.exact == Exact::Never => Err(No::Exact),
        Gives::Exact { .. } if facts.totals == Sites::Any => Err(No::ExactAny),
        _ => Ok(()),
    }
}

/// [POL-8]: what the account may spend, by one site's noise alone: the policy lowers it alone.
///
/// # Errors
/// [`No::AboveCap`].
pub fn cap_of(policy: &Policy, account: &Account) -> Result<u64, No> {
    let cap = account.bound().cap();
    match policy.nano_rho {
        Some(policy) if policy > cap => Err(No::AboveCap { policy, cap }),
        lower => Ok(lower.unwrap_or(cap)),
    }
}

/// [POL-8]: what is left of the cap once `nano_rho` is spent beside what is `committed`.
fn check_account(cap: u64, committed: u64, nano_rho: u64) -> Result<u64, No> {
    let left = cap.saturating_sub(committed);
    left.checked_sub(nano_rho).ok_or(No::Account { left, cap })
}

/// Fuzzifiers below this, in thousandths, are nearly hard partitions of few rows.
const LEAST_FUZZIFIER: u32 = 1_100;
/// Rows for each cluster at least.
const ROWS_A_CLUSTER: u64 = 20;

/// [POL-9]: whether an operator may agree to the exact totals of this plan. That a plan is not absurd is hygiene and protects no row.
fn is_sane(facts: &PlanFacts) -> Result<(), No> {
    match facts.gives {
        Gives::Exact { clusters, rows, .. } if u64::from(clusters).saturating_mul(ROWS_A_CLUSTER) > rows => {
            Err(No::Clusters)
        }
        Gives::Exact { fuzzifier: Some(m), .. } if m < LEAST_FUZZIFIER => Err(No::Fuzzifier),
        Gives::Exact { names_centres: true, .. } => Err(No::NamesCentres),
        _ => Ok(()),
    }
}

/// The last check before an answer ([POL-1], [POL-2], [POL-4], [POL-8] to [POL-10], [LED-7]). What comes of it is used once the answer is
/// charged, and no sooner.
pub(crate) fn decide(
    facts: &PlanFacts,
    policy: &Policy,
    account: &Account,
    asked: &Asked,
    (talk, place): (&Talk, &Place),
    answer: &Answer,
) -> Result<Granted, No> {
    if account.has_answered(talk, place) {
        return Err(No::Answered);
    }
    let needs = needs(facts, policy, account, answer.table.as_ref());
    if !needs.is_empty() {
        return Err(No::Unagreed(needs));
    }
    // Nobody agreed to whatever table.
    if facts.gives.is_exact() && answer.table.is_none() {
        return Err(No::Unagreed(vec![Needs::Exact]));
    }
    is_not_over(facts, account)?;
    check_plan(facts, policy, account)?;
    let price = facts.gives.price();
    // What is charged to another plan, or is of the other kind, is not of this one.
    if talk.plan != facts.plan || answer.cost.nano_rho.is_some() != price.is_some() {
        return Err(No::Price);
    }
    if let Some((rho, price)) = answer.cost.nano_rho.zip(price) {
        // The run's first entry has made them one.
        let (of_account, of_policy) = (account.bound().unit, policy.unit);
        if of_account != of_policy {
            return Err(No::OtherUnit { account: of_account, policy: of_policy });
        }
        // Before its run begins, nothing is set aside for it.
        if !account.has_begun(&talk.plan) || account.rho_of(&talk.plan).saturating_add(rho) > price {
            return Err(No::Price);
        }
        check_account(cap_of(policy, account)?, account.spent().nano_rho, rho)?;
    }
    let of_plan = account.questions_of(&talk.session, &answer.question);
    // The noise is that of the charge, whatever whoever asks makes of the question.
    let deviation = answer.cost.nano_rho.map(|rho| guard::deviation_of(rho, policy.unit.rows()));
    let deviation = deviation.transpose().map_err(|_| No::Price)?;
    let consent = asked.consent(&policy.floor, facts.least, of_plan).map_err(No::Below)?;
    Ok(Granted::new(consent, asked.words, deviation))
}

#[cfg(test)]
mod tests;
