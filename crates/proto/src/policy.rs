//! A site's own policy: what it demands whatever the coordinator's plan says, and how much it gives away about its rows
//! in all (spec section 11). The module is pure, uses integers only, and fails closed.

mod room;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use room::{Room, milli_bits, room};

use crate::{
    error::Error,
    limits::MIN_SITES,
    plan::{Terms, check_threshold},
    release::{self, Blocks, OwnBlock},
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
    /// Honest sites behind everything that is released of this site's block ([REL-3]), and sites behind every sum of a group
    /// of rows (t of the methods' rule). With 0 or 1 what this site sent can be computed once it has left.
    pub contributors: u32,
}

impl Default for Floor {
    fn default() -> Self {
        Floor { min_cohort: MIN_SITES as u16, colluders: 0, max_rounds: 1_000, contributors: 2 }
    }
}

/// A site's whole policy. The default is strict: a site without a policy file has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Policy {
    /// The floor for the protocol itself.
    pub floor: Floor,
    /// The smallest number of own rows; a site with fewer does not take part.
    pub min_rows: u64,
    /// The largest number of questions answered on one data set, over all plans and runs.
    pub max_rounds_in_all: u64,
    /// The largest number of runs on one data set, over all plans.
    pub max_runs: u64,
    /// The smallest number of rows behind every sum of a group (p).
    pub records: u64,
    /// The smallest number of rows, other than none, that are added or removed at once ([REL-7]), and of rows that
    /// enter or leave a group before its sum is asked again (r); 0 allows any.
    pub change: u64,
    /// Methods that a plan may name; `None` allows any.
    pub methods: Option<Vec<String>>,
    /// Columns that a plan may name; `None` allows any.
    pub columns: Option<Vec<String>>,
    /// Whether the plan must open its totals.
    pub opening: bool,
    /// How far apart centres must lie where totals are not opened, in millionths of the box's half-width.
    pub separation_ppm: u64,
    /// The same where totals are opened. There only a lying site can steer centres together, and honest centres may
    /// meet.
    pub separation_opened_ppm: u64,
    /// What it asks of answers with noise.
    pub noise: Noise,
    /// What it asks of answers without noise.
    pub release: Release,
}

/// What a site asks of noise (differential privacy).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Noise {
    /// Whether every answer needs noise.
    pub required: bool,
    /// Budget of zero-concentrated differential privacy for one data set, in 10^-9 of rho.
    pub nano_rho: u64,
}

/// The release rule ([POL-9]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Release {
    /// What it does.
    pub rule: Enforcement,
    /// Bits that one value of a row is worth.
    pub bits: u32,
    /// Rows that are possible at all, where the columns are discrete.
    pub domain: Option<u64>,
}

/// What happens to an answer that the release rule forbids.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Enforcement {
    /// It is refused.
    Enforce,
    /// The operator is told, and the answer leaves.
    Report,
    /// The rule is off.
    Off,
}

/// rho of epsilon = 1 at delta = 10^-6, in 10^-9, and a hundred-thousandth and 32 more, so that parts of it that were each
/// rounded up still fit: the default budget of a data set.
pub const DEFAULT_NANO_RHO: u64 = 24_356_246;

impl Default for Policy {
    fn default() -> Self {
        Policy {
            floor: Floor::default(),
            min_rows: 10,
            max_rounds_in_all: 10_000,
            max_runs: 100,
            records: 10,
            change: 5,
            methods: None,
            columns: None,
            opening: true,
            separation_ppm: 100_000,
            separation_opened_ppm: 0,
            noise: Noise { required: false, nano_rho: DEFAULT_NANO_RHO },
            release: Release { rule: Enforcement::Enforce, bits: 10, domain: None },
        }
    }
}

impl Policy {
    /// Only the protocol's own floor, for callers that know nothing about questions, and for toy data.
    pub fn only(floor: Floor) -> Policy {
        Policy {
            floor,
            min_rows: 0,
            max_rounds_in_all: u64::MAX,
            max_runs: u64::MAX,
            records: 1,
            change: 0,
            methods: None,
            columns: None,
            opening: false,
            separation_ppm: 0,
            separation_opened_ppm: 0,
            noise: Noise { required: false, nano_rho: u64::MAX },
            release: Release { rule: Enforcement::Off, bits: 10, domain: None },
        }
    }
}

/// What the application says about its answer. A number that it does not know is set to the value that forbids most.
#[derive(Clone, Debug, Default)]
pub struct Request<'a> {
    /// Sites of the roster.
    pub sites: usize,
    /// This site's own rows.
    pub own_rows: u64,
    /// Rows of the whole cohort at least, as far as this site knows; its own count among them.
    pub rows_in_all: u64,
    /// Columns of a row.
    pub columns: u32,
    /// Different rows that are possible, as far as this site's own show; the policy's own number goes before it.
    pub domain: Option<u64>,
    /// What the plan says.
    pub plan: PlanFacts<'a>,
    /// Whether the same answer, to the bit, was given to the same sites before, so that it gives nothing more away.
    pub repeated: bool,
    /// What it gives away.
    pub cost: Cost,
    /// What all smooth questions on these rows tell with this one among them; `None` where it is none, or was not measured, and
    /// its numbers count one by one.
    pub smooth: Option<Smooth>,
    /// How far apart the two nearest centres of the question are, in millionths of the box's half-width.
    pub separation_ppm: Option<u64>,
    /// The block that this data set belongs to, with the versions at its last answer ([REL-5], [REL-7]); nothing before its
    /// first masked words have left.
    pub before: Option<&'a OwnBlock>,
    /// The sites whose rows a public draw takes, where there is one.
    pub drawn: Option<&'a [u16]>,
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
    /// Whether it sums rows by group, so that a small group's sum is asked too.
    pub groups: bool,
    /// Whether it counts rows by group and label: whatever it asks first, a count may be of one row.
    pub cells: bool,
    /// The smallest number of sites behind such a sum.
    pub contributors: u32,
    /// The smallest number of rows behind it.
    pub records: u64,
    /// Whether the counts are asked first.
    pub ask_first: bool,
    /// Where sums of single rows are repeated (exact Lloyd), the number of rows that have entered or left a group
    /// before its sum is asked again.
    pub change: Option<u64>,
}

/// What one answer gives away.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Cost {
    /// Numbers.
    pub scalars: u64,
    /// Thousandths of a bit in them all.
    pub milli_bits: u64,
    /// rho in 10^-9, rounded up, where noise is added; such an answer counts here and not by its numbers.
    pub nano_rho: Option<u64>,
}

/// What smooth questions tell together ([POL-9]). Their answers are sums of smooth functions of single rows, and most
/// of them partly repeat what earlier ones said. The application measures it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Smooth {
    /// Their effective rank r, from above.
    pub rank: u64,
    /// Thousandths of a bit in it.
    pub milli_bits: u64,
    /// Their numbers, counted one by one, and the thousandths of a bit in these: what r takes the place of.
    pub instead: (u64, u64),
}

/// What was given away about one data set before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Spent {
    /// Different answers.
    pub questions: u64,
    /// Runs, this one included.
    pub runs: u64,
    /// Numbers without noise.
    pub scalars: u64,
    /// Thousandths of a bit in them.
    pub milli_bits: u64,
    /// rho in 10^-9.
    pub nano_rho: u64,
    /// What the smooth questions among them tell together.
    pub smooth: Smooth,
}

impl Spent {
    /// Adds an answer.
    pub fn add(&mut self, cost: &Cost) {
        self.questions = self.questions.saturating_add(1);
        match cost.nano_rho {
            Some(rho) => self.nano_rho = self.nano_rho.saturating_add(rho),
            None => {
                self.scalars = self.scalars.saturating_add(cost.scalars);
                self.milli_bits = self.milli_bits.saturating_add(cost.milli_bits);
            }
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
    /// The blocks of the deck.
    pub blocks: Arc<Blocks>,
    /// This site's own among them.
    pub own: OwnBlock,
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

/// Decides whether this site answers `asked`, which the application describes as `request`, after what was `spent` on the
/// same rows ([POL-1] to [POL-6], [POL-8], [POL-9]), and whether it is asked over whole blocks ([REL-3] to [REL-7]).
///
/// # Errors
/// `Error::Refused` with the rule and what is missing. The text is for this site's operator alone; the aggregator
/// learns only the rule.
pub fn decide(
    terms: &Terms,
    policy: &Policy,
    asked: &Asked,
    request: &Request<'_>,
    spent: &Spent,
) -> Result<Consent, Error> {
    check_size(terms, &policy.floor, asked.cohort.len())?;
    // A coordinator that begins a new run does not get a new allowance.
    let asked_so_far = u64::from(asked.rounds).max(request.of_plan);
    if asked_so_far > u64::from(policy.floor.max_rounds) {
        return Err(Error::refused(
            format!("question {asked_so_far} where this site's policy allows {}", policy.floor.max_rounds),
            "POL-2",
        ));
    }
    let least = least_in_block(terms, &policy.floor, asked.sites);
    release::admit(&asked.own, request.before, &asked.blocks, &asked.cohort, request.drawn, least)
        .map_err(|broken| Error::refused(format!("the aggregator {}", broken.what), broken.rule))?;
    check_plan(terms, policy, &request.plan)?;
    if request.own_rows < policy.min_rows {
        return Err(Error::refused("this site has fewer rows than its own policy asks for (min_rows)", "POL-4"));
    }
    if spent.runs > policy.max_runs {
        return Err(Error::refused(
            format!("run {} on this data set where this site's policy allows {}", spent.runs, policy.max_runs),
            "POL-5",
        ));
    }
    if !request.repeated {
        check_question(terms, policy, request)?;
        check_spent(terms, policy, request, spent)?;
    }
    Ok(Consent { context: asked.context })
}

/// [`decide`] by the protocol's own floor alone, for callers without an application: simulations and tests of the
/// protocol.
///
/// # Errors
/// As [`decide`].
pub fn decide_by_floor(terms: &Terms, floor: &Floor, asked: &Asked) -> Result<Consent, Error> {
    decide(terms, &Policy::only(floor.clone()), asked, &Request::default(), &Spent::default())
}

/// [POL-4]: what a plan must promise before this site answers any question of it.
///
/// # Errors
/// As [`decide`].
pub fn check_plan(terms: &Terms, policy: &Policy, plan: &PlanFacts<'_>) -> Result<(), Error> {
    let refused = |why: String| Err(Error::refused(why, "POL-4"));
    if policy.opening && !terms.opening {
        return refused("the plan does not open its totals, and this site's policy asks for it (opening)".into());
    }
    if policy.methods.as_ref().is_some_and(|list| !list.iter().any(|name| name == plan.method)) {
        return refused(format!("the method {:?} is not on this site's list (methods)", plan.method));
    }
    if let Some(list) = &policy.columns
        && let Some(column) = plan.columns.iter().find(|column| !list.iter().any(|name| name == *column))
    {
        return refused(format!("the column {column:?} is not on this site's list (columns)"));
    }
    let asks = policy.floor.contributors > 1 || policy.records > 1;
    if plan.groups && (plan.contributors < policy.floor.contributors || plan.records < policy.records) {
        return refused(format!(
            "the plan sums groups of {} rows from {} sites, where this site's policy asks for {} rows (records) and {} \
             sites (contributors)",
            plan.records, plan.contributors, policy.records, policy.floor.contributors
        ));
    }
    if plan.groups && asks && !plan.ask_first {
        return refused("the plan asks sums together with the counts that decide whether they may be asked".into());
    }
    if plan.cells && asks {
        return refused(
            "the plan counts rows by cluster and label, down to single rows, which this site's policy does not release"
                .into(),
        );
    }
    if let Some(change) = plan.change.filter(|change| plan.groups && *change < policy.change) {
        return refused(format!(
            "the plan asks the sum of a group again after a change of {change} rows, where this site's policy asks for {} \
             (change): the difference of two sums would be that of a few rows",
            policy.change
        ));
    }
    Ok(())
}

/// [POL-6]: where the question's centres lie.
fn check_question(terms: &Terms, policy: &Policy, request: &Request<'_>) -> Result<(), Error> {
    let least = if terms.opening { policy.separation_opened_ppm } else { policy.separation_ppm };
    if request.separation_ppm.is_some_and(|apart| apart < least) {
        return Err(Error::refused(
            "two centres of the question lie nearer to each other than this site's policy allows (separation)",
            "POL-6",
        ));
    }
    Ok(())
}

/// [POL-5]: how many answers were given on these rows, this one included.
fn check_spent(terms: &Terms, policy: &Policy, request: &Request<'_>, spent: &Spent) -> Result<(), Error> {
    let answers = spent.questions.saturating_add(1);
    if answers > policy.max_rounds_in_all {
        return Err(Error::refused(
            format!(
                "answer {answers} on this data set where this site's policy allows {} in all (max_rounds_in_all)",
                policy.max_rounds_in_all
            ),
            "POL-5",
        ));
    }
    check_budgets(terms, policy, request, spent)
}

/// [POL-8], [POL-9]: what was given away on these rows in all, these numbers included.
///
/// # Errors
/// As [`decide`].
pub fn check_budgets(terms: &Terms, policy: &Policy, request: &Request<'_>, spent: &Spent) -> Result<(), Error> {
    let mut after = *spent;
    after.add(&request.cost);
    match request.cost.nano_rho {
        None if policy.noise.required => {
            Err(Error::refused("the plan adds no noise, and this site's policy asks for it (noise.require)", "POL-8"))
        }
        Some(_) if after.nano_rho > policy.noise.nano_rho => Err(Error::refused(
            format!(
                "the answers on this data set would spend {} of the privacy budget that this site's policy grants \
                 (noise.epsilon)",
                percent(after.nano_rho, policy.noise.nano_rho)
            ),
            "POL-8",
        )),
        None if policy.release.rule == Enforcement::Enforce => check_release(terms, policy, request, spent),
        _ => Ok(()),
    }
}

/// [POL-9]: no more is given away than a part of what the rows hold. Also for those who only report.
///
/// # Errors
/// As [`decide`].
pub fn check_release(terms: &Terms, policy: &Policy, request: &Request<'_>, spent: &Spent) -> Result<(), Error> {
    let room = room_for(terms, policy, request);
    let mut after = *spent;
    after.add(&request.cost);
    after.smooth = request.smooth.unwrap_or(spent.smooth);
    let used = used(&after, policy.release.domain.or(request.domain));
    if used.scalars <= room.scalars && used.milli_bits <= room.milli_bits {
        return Ok(());
    }
    // Of the two measures the one that is further over, so that one number says it.
    let numbers = u128::from(used.scalars) * u128::from(room.milli_bits.max(1));
    let by_bits = u128::from(used.milli_bits) * u128::from(room.scalars.max(1)) > numbers;
    let (what, part, whole) = match by_bits {
        true => ("bits in the numbers", used.milli_bits, room.milli_bits),
        false => ("numbers", used.scalars, room.scalars),
    };
    Err(Error::refused(
        format!(
            "the release rule: with this answer the {what} given away on this data set would be {} of what the rows \
             that are known of allow",
            percent(part, whole)
        ),
        "POL-9",
    ))
}

/// Whether measuring smooth questions together can decide about this answer ([POL-9]). They have at most as many directions as
/// numbers, of which each counts twice, and together at most the bits that they have apart: where that fits, measuring them can
/// wait. Where rows of a domain are counted, nothing is measured together.
pub fn measuring_decides(terms: &Terms, policy: &Policy, request: &Request<'_>, spent: &Spent) -> bool {
    let room = room_for(terms, policy, request);
    let mut after = *spent;
    after.add(&request.cost);
    let fits = after.scalars.saturating_mul(2) <= room.scalars && after.milli_bits <= room.milli_bits;
    policy.release.domain.or(request.domain).is_none() && !fits
}

/// What counts against the [`Room`] of the release rule: numbers and bits one by one, but of smooth questions twice their rank
/// and the bits in it, because r may be half of what other numbers may be. Where `domain` says how many rows are possible,
/// everything counts one by one.
pub fn used(spent: &Spent, domain: Option<u64>) -> Room {
    let Spent { scalars, milli_bits, smooth, .. } = *spent;
    if domain.is_some() {
        return Room { scalars, milli_bits };
    }
    let (numbers, bits) = smooth.instead;
    Room {
        scalars: scalars.saturating_sub(numbers).saturating_add(smooth.rank.saturating_mul(2)),
        milli_bits: milli_bits.saturating_sub(bits).saturating_add(smooth.milli_bits),
    }
}

/// What the release rule allows on this data set in all, as far as the cohort's rows are known.
pub fn room_for(terms: &Terms, policy: &Policy, request: &Request<'_>) -> Room {
    let Release { bits, domain, .. } = policy.release;
    room(honest_rows(terms, policy, request), request.columns, bits, domain.or(request.domain))
}

/// Rows that nobody among the supposed colluders knows: the cohort's less those of as many other sites, and this site's
/// own at least. The number is at most what the plan allows all sites, whatever its source. The own rows enter only as
/// the power of two that is not above them, because a refusal says how many are known of.
fn honest_rows(terms: &Terms, policy: &Policy, request: &Request<'_>) -> u64 {
    let colluders = colluders(terms, &policy.floor, request.sites) as u64;
    let most = terms.max_rows.saturating_mul(request.sites as u64);
    let known = request.rows_in_all.min(most).saturating_sub(colluders.saturating_mul(terms.max_rows));
    known.max(request.own_rows.checked_ilog2().map_or(0, |power| 1 << power))
}

fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "more than all".to_owned();
    }
    format!("{} %", (u128::from(part) * 100).div_ceil(u128::from(whole)))
}

/// The smallest number of sites this site lets a total cover.
pub(crate) fn least(terms: &Terms, floor: &Floor) -> usize {
    usize::from(terms.min_cohort.max(floor.min_cohort)).max(MIN_SITES)
}

/// [POL-1]: a total over fewer sites than the floor is refused.
pub(crate) fn check_size(terms: &Terms, floor: &Floor, n: usize) -> Result<(), Error> {
    let least = least(terms, floor);
    if n < least {
        return Err(Error::refused(format!("a total over {n} sites where the floor is {least}"), "POL-1"));
    }
    Ok(())
}

/// [REL-3]: sites that this site's block has at least. `sites` is the size of the roster.
pub fn least_in_block(terms: &Terms, floor: &Floor, sites: usize) -> usize {
    release::least_sites(floor.contributors, colluders(terms, floor, sites), terms.opening)
}

/// Sites that this site supposes to collude: as many as it says, or the plan.
pub(crate) fn colluders(terms: &Terms, floor: &Floor, sites: usize) -> usize {
    terms.colluders_of(sites).max(usize::from(floor.colluders))
}

/// The threshold this site accepts for a deck of `n`: the plan's, if it also withstands this site's own colluders
/// ([THR-2]). `sites` is the size of the roster.
pub(crate) fn threshold(terms: &Terms, floor: &Floor, n: usize, sites: usize) -> Result<usize, Error> {
    check_size(terms, floor, n)?;
    let t = terms.threshold_of(n, sites)?;
    check_threshold(n, t, colluders(terms, floor, sites)).map_err(|why| Error::refused(why, "THR-2"))?;
    Ok(t)
}

#[cfg(test)]
mod tests;
