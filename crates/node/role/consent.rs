//! A site's consent to one question: what the answer would give away, what was given away before, and what the policy says to
//! both ([POL-4] to [POL-9], [LED-7]).

use std::sync::{Arc, Mutex, PoisonError};

use veilsum_cluster::{Batch, Domain, Query, Rows, method::Seeding, query::Pull};
use veilsum_proto::{
    Error, ledger,
    ledger::{Answer, Places},
    limits::MIN_SITES,
    plan::Terms,
    policy::{self, Asked, Consent, Cost, Enforcement, PlanFacts, Policy, Request},
    roster::{PartyId, Roster},
    suite::{self, Hash},
};

use super::client::ClientConfig;
use crate::{
    cli::exit::Failure,
    round::{Form, Layout, Question},
    store::{
        Ledger,
        ledger::{Data, Left},
    },
    work::Work,
};

/// The ledger that both conversations of a site share.
#[derive(Clone)]
pub(super) struct Keeper {
    ledger: Arc<Mutex<Ledger>>,
    /// Different rows that are possible, where this site's own suggest few.
    domain: Option<u64>,
}

impl Keeper {
    /// This site's ledger: in its state folder, or as long as the process where it keeps no state.
    pub(super) fn open(config: &ClientConfig) -> Result<Keeper, Failure> {
        let data = Data::of(&config.site.data, &config.identity, &config.rows);
        let identity = config.identity.clone();
        let ledger = match &config.state {
            Some(folder) => Ledger::open(folder, config.head.as_deref(), identity, data, config.terms.hash())?,
            None => Ledger::in_memory(identity, data),
        };
        Ok(Keeper { ledger: Arc::new(Mutex::new(ledger)), domain: possible_rows(&config.rows.packed().to_rows()) })
    }

    /// Does something with the ledger alone.
    pub(super) fn with<T>(&self, what: impl FnOnce(&mut Ledger) -> T) -> T {
        // What a conversation that panicked has written down is on disk like any other entry.
        what(&mut self.ledger.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What a question says of itself.
pub(super) struct Offer<'a> {
    /// The question.
    pub(super) question: &'a Question,
    /// The batch that a judged question is about.
    pub(super) judged: Option<&'a Batch>,
    /// The form of the answer.
    pub(super) layout: &'a Layout,
    /// Rows of the cohort at least, as far as totals have shown.
    pub(super) shown: u64,
}

/// Decides on a question and, where the answer is yes, lets its frame leave.
///
/// # Errors
/// `Error::Refused`, for the operator.
pub(super) fn decide(
    config: &ClientConfig,
    keeper: &Keeper,
    asked: &Asked,
    left: &Left,
    offer: &Offer<'_>,
) -> Result<Consent, Error> {
    let centres = places(offer, config.rows.domain());
    let answer = Answer {
        kind: offer.question.name().to_owned(),
        question: suite::hash("question in a ledger", &[&asked.query]),
        cost: cost(offer.question, offer.layout, &config.terms, &config.site.policy, config.roster.sites.len()),
        centres,
    };
    let cohort = left.cohort.unwrap_or_default();
    let counted = !matches!(offer.question, Question::CountRows);
    keeper.with(|ledger| {
        let spent = ledger.spent(&left.session, counted.then_some(asked.run));
        let account = ledger.account();
        let request = Request {
            sites: config.roster.sites.len(),
            own_rows: config.rows.len() as u64,
            rows_in_all: rows_in_all(config, offer),
            columns: u32::try_from(config.work.columns.len()).unwrap_or(u32::MAX),
            domain: keeper.domain,
            plan: facts(&config.work),
            repeated: account.gave(&left.plan, &cohort, &answer),
            cost: answer.cost,
            separation_ppm: ledger::separation(&answer.centres),
            nearness_ppm: account.nearest(&cohort, &answer.kind, &answer.question, &answer.centres),
        };
        let policy = &config.site.policy;
        let consent = policy::decide(&config.terms, policy, asked, &request, &spent)?;
        let exact = request.cost.nano_rho.is_none() && !request.repeated;
        if exact
            && policy.release.rule == Enforcement::Report
            && policy::check_release(&config.terms, policy, &request, &spent).is_err()
        {
            tracing::warn!("the release rule would refuse this answer; this site's policy only reports it");
        }
        ledger.promise(left, answer);
        Ok(consent)
    })
}

/// Rows behind a question at least. Of a sample only this site's own are sure to be there.
fn rows_in_all(config: &ClientConfig, offer: &Offer<'_>) -> u64 {
    let own = config.rows.len() as u64;
    if matches!(offer.question, Question::Drawn { .. }) {
        return own;
    }
    own.max(config.terms.min_total_rows).max(offer.shown)
}

/// Of more different rows no attack is known that counts them from totals: the lattices and least squares that do, at 49 to 73
/// possible rows, grow with their number.
const COUNTABLE: u64 = 1_024;

/// How many different rows the values of these could be combined to, where they are few: then totals of few rounds tell how
/// often each row occurs, however many rows there are. An operator who knows better says so (release.domain).
pub(crate) fn possible_rows(rows: &Rows) -> Option<u64> {
    let mut possible = 1u64;
    for column in 0..rows.columns() {
        let mut values = std::collections::HashSet::new();
        for row in rows.iter() {
            values.insert(row[column].to_bits());
            if possible.saturating_mul(values.len() as u64) > COUNTABLE {
                return None;
            }
        }
        possible *= values.len().max(1) as u64;
    }
    Some(possible)
}

/// What a plan says of itself to a policy.
pub(crate) fn facts(work: &Work) -> PlanFacts<'_> {
    use veilsum_cluster::Algorithm::{Fcm, FfcmAvg1, Fkm, Kmeans};
    let recipe = &work.recipe;
    let sums = !matches!(recipe.algorithm, Fcm { .. } | FfcmAvg1 { .. });
    // Cells of seeding obey the stricter of two numbers.
    let cells = match &recipe.seeding {
        Seeding::Tree(tree) => Some(recipe.rule.min_rows.max(tree.min_rows)),
        _ => None,
    };
    let records = if sums { recipe.rule.min_rows } else { cells.unwrap_or(0) };
    let columns = work.columns.iter().map(|c| c.name.as_str()).chain(work.labels.iter().map(|l| l.column.as_str()));
    PlanFacts {
        method: work.method_name(),
        columns: columns.collect(),
        // Noise hides a row of a small group as well as any.
        groups: (sums || cells.is_some()) && recipe.noise.is_none(),
        contributors: recipe.rule.min_sites,
        records,
        ask_first: recipe.rule.ask_first,
        change: matches!(recipe.algorithm, Kmeans { .. } | Fkm { finish: 1.., .. }).then_some(recipe.min_change),
    }
}

/// What the total of an answer says at most.
pub(crate) fn cost(question: &Question, layout: &Layout, terms: &Terms, policy: &Policy, sites: usize) -> Cost {
    let (scalars, mut milli_bits) = layout.nominal();
    if matches!(question, Question::CountRows) {
        // A whole number of rows, however fine the words are.
        let most = terms.max_rows.saturating_mul(sites as u64).saturating_add(1);
        milli_bits = milli_bits.min(policy::milli_bits(most));
    }
    // The noise of those who may collude protects nobody; this site may suppose more of them than the plan does.
    let covers = usize::from(terms.min_cohort.max(policy.floor.min_cohort)).max(MIN_SITES);
    let colluders = terms.colluders_of(sites).max(usize::from(policy.floor.colluders));
    let rho = layout.rho(covers.saturating_sub(colluders));
    // Saturates where nobody's noise is left.
    Cost { scalars, milli_bits, nano_rho: rho.map(|rho| (rho * 1e9).ceil() as u64) }
}

/// Digest of the keys of these sites, which are the same in every roster.
pub(super) fn cohort_digest(roster: &Roster, cohort: &[u16]) -> Hash {
    let mut keys: Vec<[u8; 32]> =
        cohort.iter().filter_map(|site| roster.member(PartyId::Site(*site))).map(|member| member.key.0).collect();
    keys.sort_unstable();
    suite::hash("cohort in a ledger", &[&keys.concat()])
}

/// Where the centres of a question lie, in millionths of the box's half-width from its middle.
fn places(offer: &Offer<'_>, domain: &Domain) -> Vec<Places> {
    let batch = match (offer.question, offer.judged) {
        (Question::Cluster(batch) | Question::Drawn { batch, .. }, _) | (_, Some(batch)) => batch,
        _ => return Vec::new(),
    };
    // A question without a box was refused before.
    let Ok(inner) = batch.domain(domain) else { return Vec::new() };
    let part = |column: usize, x: f64| {
        let (low, high) = inner.working_interval(column);
        // Saturates, and centres lie in the box anyway.
        ((x - f64::midpoint(low, high)) / ((high - low) / 2.0) * 1e6).round() as i32
    };
    let of = |points: &veilsum_cluster::Centres| Places {
        columns: u32::try_from(points.columns()).unwrap_or(u32::MAX),
        at: points
            .rows()
            .flat_map(|row| row.iter().enumerate().map(|(c, x)| part(c, *x)).collect::<Vec<_>>())
            .collect(),
    };
    batch.queries.iter().flat_map(Query::points).map(of).collect()
}

/// Rows that a total shows to be there at least: what one row adds to these sums is 1 at most.
pub(super) fn rows_shown(question: &Question, layout: &Layout, values: &[u64], sites: usize, form: &Form) -> u64 {
    let (Question::Cluster(batch), Ok(totals)) = (question, layout.decode(values, sites, None)) else { return 0 };
    if form.noise.is_some() {
        return 0;
    }
    let (mut most, mut at) = (0.0f64, 0);
    let mut blocks = layout.blocks.iter();
    for query in &batch.queries {
        let (names, count): (&[&str], usize) = match query {
            Query::FuzzySums { .. } => (&["weights"], 2),
            Query::FuzzyValidation { .. } => (&["memberships"], 3),
            Query::LocalFuzzy(q) if q.pull != Pull::Nearest => (&["weights"], 0),
            Query::LocalMeans(_) => (&["rows"], 0),
            // Others have blocks of which one row may add more.
            _ => return whole(most),
        };
        // A batch has questions of one kind; only those of a fixed number of blocks can stand in a row.
        if count == 0 && batch.queries.len() > 1 {
            return whole(most);
        }
        let (mut sum, mut slack) = (0.0, 0.0);
        for b in blocks.by_ref().take(if count == 0 { usize::MAX } else { count }) {
            let next = at + b.block.len;
            if names.contains(&b.block.name) {
                sum += totals.values[at..next].iter().sum::<f64>();
                slack += b.block.len as f64 * form.sites as f64 * 0.5f64.powi(b.scale.fraction_bits);
            }
            at = next;
        }
        most = most.max(sum - slack);
    }
    whole(most)
}

fn whole(rows: f64) -> u64 {
    // A sum of ones may be a hair below the whole number that it is.
    (rows + 1e-6).floor().max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn possible_rows_are_those_that_the_values_can_be_combined_to() {
        let rows = |values: Vec<f64>, columns| Rows::new(values, columns).unwrap();
        let scale = rows((0..200).flat_map(|i| [f64::from(i % 7), f64::from(i / 7 % 7)]).collect(), 2);
        assert_eq!(possible_rows(&scale), Some(49));
        assert_eq!(possible_rows(&rows(vec![1.0; 3], 1)), Some(1));
        assert_eq!(possible_rows(&rows((0..1_024).map(f64::from).collect(), 1)), Some(1_024));
        assert_eq!(possible_rows(&rows((0..1_025).map(f64::from).collect(), 1)), None);
        assert_eq!(possible_rows(&rows((0..200).map(|i| f64::from(i) / 3.0).collect(), 2)), None);
    }
}
