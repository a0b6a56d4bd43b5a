//! A site's consent to one question: what the answer would give away, what was given away before, and what the policy says to
//! both ([POL-4] to [POL-6], [POL-8], [POL-9], [LED-7]).

use std::sync::{Arc, Mutex, PoisonError};

use veilsum_cluster::{Batch, Centres, Prepared, Query};
use veilsum_proto::{
    Error, Rule,
    identity::Identity,
    ledger,
    ledger::{Answer, Frame, Note, Places},
    policy::{self, Asked, Consent, Enforcement, Request},
    release::{OwnBlock, Standing},
    suite::{self, Hash},
};

use super::client::ClientConfig;
use crate::{
    error::{Code, Failure},
    plan::Work,
    question::{Layout, Question},
    release::{check_promise, cohort_digest, cost, facts, possible_rows},
    store::{
        Ledger,
        ledger::{Data, Kept, Known, Left, Origin},
    },
};

/// The ledger that both conversations of a site share.
#[derive(Clone)]
pub(super) struct Keeper {
    ledger: Arc<Mutex<Ledger>>,
    /// Different rows that are possible, where this site's own suggest few.
    domain: Option<u64>,
    shown: Arc<Mutex<Shown>>,
}

/// Rows that the coordinator's opened totals of this run have shown to be in a cohort at least.
#[derive(Clone, Default)]
pub(super) struct Shown {
    /// How many.
    pub(super) rows: u64,
    /// In which cohort.
    pub(super) cohort: Vec<u16>,
}

impl Shown {
    /// Rows of `cohort` at least: whoever left may have taken as many as the plan allows.
    pub(super) fn of(&self, cohort: &[u16], max_rows: u64) -> u64 {
        let gone = self.cohort.iter().filter(|site| !cohort.contains(site)).count() as u64;
        self.rows.saturating_sub(gone.saturating_mul(max_rows))
    }
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
        let ledger = recognised(ledger, &config.origin)?;
        let domain = possible_rows(&config.rows.packed().to_rows());
        Ok(Keeper { ledger: Arc::new(Mutex::new(ledger)), domain, shown: Arc::default() })
    }

    /// What this site states of its data set when it sends keys.
    pub(super) fn standing(&self) -> Standing {
        self.with(|ledger| ledger.standing())
    }

    /// For both conversations: the intermediary opens nothing itself.
    pub(super) fn show(&self, shown: Shown) {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = shown;
    }

    /// As [`Shown::of`].
    pub(super) fn shown(&self, cohort: &[u16], max_rows: u64) -> u64 {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).of(cohort, max_rows)
    }

    /// Does something with the ledger alone.
    pub(super) fn with<T>(&self, what: impl FnOnce(&mut Ledger) -> T) -> T {
        // What a conversation that panicked has written down is on disk like any other entry.
        what(&mut self.ledger.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// [LED-8]: a ledger that knows these rows, or that nothing was answered from. Columns that are new are written down.
fn recognised(mut ledger: Ledger, origin: &Origin) -> Result<Ledger, Failure> {
    let other = |what: String| {
        Err(Failure::new(
            Code::Policy,
            format!("the rows are not those that this site answered from before: {what} [LED-8]"),
            NEXT,
        ))
    };
    match ledger.known(origin) {
        Known::Same(new) if new.is_empty() => {}
        Known::Same(new) => ledger.note(Note::Columns(new), &Left::default(), Hash::default())?,
        Known::Other(columns) => return other(format!("other values in {}", columns.join(", "))),
        Known::OtherRows(rows) => {
            let names = rows.first().map(|rows| rows.columns.iter().chain(&rows.label).cloned().collect::<Vec<_>>());
            let names = names.unwrap_or_default().join(", ");
            return other(format!("the values of {names} are those of before, and stand together in other rows"));
        }
    }
    Ok(ledger)
}

/// What to do where rows are others.
const NEXT: &str = "give the rows as they were; or, where rows were added, removed or corrected, say so with `veilsum ledger changed`, once \
                    every site of the block that changes is ready to";

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
    let (frame, centres) = places(offer, config);
    let drawn = match offer.question {
        Question::Drawn { number, .. } => drawn(config, asked, *number),
        _ => None,
    };
    let answer = Answer {
        kind: offer.question.name().to_owned(),
        question: question_digest(config, offer.question, &asked.query),
        cost: cost(offer.question, offer.layout, &config.terms, &config.site.policy, config.roster.sites.len()),
        drawn: drawn.as_ref().map(|sites| cohort_digest(&config.roster, sites)),
        frame,
        centres,
    };
    let counted = matches!(offer.question, Question::Cluster(_) | Question::Drawn { .. });
    let form = config.form().map_err(|e| Error::Refused { what: e.to_string(), rule: Rule("POL-3") })?;
    keeper.with(|ledger| {
        let repeated = ledger.repeats(left, &answer);
        let enforced = config.site.policy.release.rule != Enforcement::Off && !repeated;
        let record = smooth(offer, left, asked, config).filter(|_| answer.cost.nano_rho.is_none());
        let smooth = if enforced { ledger.measure(record.as_ref(), &answer.cost) } else { None };
        let spent = ledger.spent(left, counted);
        let account = ledger.account();
        let before = account.block().map(|block| OwnBlock { id: block.id, members: block.members.clone() });
        let request = Request {
            sites: config.roster.sites.len(),
            own_rows: config.rows.len() as u64,
            rows_in_all: rows_in_all(config, offer),
            columns: u32::try_from(config.work.columns.len()).unwrap_or(u32::MAX),
            domain: keeper.domain,
            plan: facts(&config.work),
            repeated,
            cost: answer.cost,
            smooth,
            separation_ppm: ledger::separation(&answer.centres),
            before: before.as_ref(),
            drawn: drawn.as_deref(),
            of_plan: account.questions_of(&left.session, &answer.question),
        };
        let policy = &config.site.policy;
        if let (Some(rho), false) = (answer.cost.nano_rho, request.repeated) {
            let plan = (&*config.terms, &form, config.roster.sites.len());
            check_promise(plan, policy, rho, ledger.rho_of_plan(left))?;
        }
        let consent = policy::decide(&config.terms, policy, asked, &request, &spent)?;
        let exact = request.cost.nano_rho.is_none() && !request.repeated;
        if exact
            && policy.release.rule == Enforcement::Report
            && policy::check_release(&config.terms, policy, &request, &spent).is_err()
        {
            tracing::warn!("the release rule would refuse this answer; this site's policy only reports it");
        }
        ledger.promise(left, answer, asked.own.members.clone()).map_err(|broken| Error::Refused {
            what: format!("the aggregator {}", broken.what),
            rule: Rule(broken.rule),
        })?;
        if let Some(record) = record.filter(|_| !repeated) {
            ledger.keep(record);
        }
        Ok(consent)
    })
}

/// [POL-9]: what measuring a smooth question takes; `None` for any other.
fn smooth(offer: &Offer<'_>, left: &Left, asked: &Asked, config: &ClientConfig) -> Option<Kept> {
    let (Question::Cluster(batch) | Question::Drawn { batch, .. }) = offer.question else { return None };
    batch.is_smooth().then(|| Kept {
        plan: left.plan,
        query: asked.query.clone(),
        columns: config.work.columns.iter().map(|column| column.name.clone()).collect(),
        domain: config.rows.domain().clone(),
        fraction_bits: offer.layout.blocks.iter().map(|block| block.scale.fraction_bits).collect(),
        rows: config.terms.max_rows.saturating_mul(config.roster.sites.len() as u64),
    })
}

/// Names what an answer is made of but rows: the question's bytes `query`, and labels where they are counted.
pub(super) fn question_digest(config: &ClientConfig, question: &Question, query: &[u8]) -> Hash {
    suite::hash("question in a ledger", &[query, &labels(question, &config.identity, &config.work, &config.rows)])
}

/// What an answer is made of besides the rows' values, under a key of this site's: nobody can try labels against a ledger.
fn labels(question: &Question, identity: &Identity, work: &Work, rows: &Prepared) -> Vec<u8> {
    let (Question::Cluster(batch) | Question::Drawn { batch, .. }) = question else { return Vec::new() };
    let counts = batch.queries.iter().any(|query| matches!(query, Query::Contingency(_)));
    match (rows.labels(), &work.labels) {
        (Some(labels), Some(of)) if counts => {
            let labels: Vec<u8> = labels.iter().flat_map(|label| label.to_le_bytes()).collect();
            suite::hash("labels in a ledger", &[&*identity.seed(), of.column.as_bytes(), &labels]).0.to_vec()
        }
        _ => Vec::new(),
    }
}

/// Sites of the cohort whose rows drawn question `number` is about, where the plan draws any ([APP-6]): whole blocks.
pub(super) fn drawn(config: &ClientConfig, asked: &Asked, number: u32) -> Option<Vec<u16>> {
    let sampling = config.work.sampling?;
    // Where every site is a block by itself, the draw is among the roster's sites.
    let among: Vec<Vec<u16>> = match config.terms.block_size {
        1 => (0..config.roster.sites.len() as u16).map(|site| vec![site]).collect(),
        _ => asked.blocks.0.iter().map(|block| block.sites.clone()).collect(),
    };
    let chosen = sampling.drawn(number, among.len());
    let chosen = among.into_iter().zip(chosen).filter(|(_, drawn)| *drawn).flat_map(|(sites, _)| sites);
    let mut sites: Vec<u16> = chosen.filter(|site| asked.cohort.binary_search(site).is_ok()).collect();
    sites.sort_unstable();
    Some(sites)
}

/// Rows behind a question at least. Of a sample only this site's own are sure to be there.
fn rows_in_all(config: &ClientConfig, offer: &Offer<'_>) -> u64 {
    let own = config.rows.len() as u64;
    if matches!(offer.question, Question::Drawn { .. }) {
        return own;
    }
    own.max(config.terms.min_total_rows).max(offer.shown)
}

/// The box of a question in the columns' own units, and where its centres lie in it, in millionths of the half-width from the
/// middle.
fn places(offer: &Offer<'_>, config: &ClientConfig) -> (Frame, Vec<Places>) {
    let batch = match (offer.question, offer.judged) {
        (Question::Cluster(batch) | Question::Drawn { batch, .. }, _) | (_, Some(batch)) => batch,
        _ => return Default::default(),
    };
    let domain = config.rows.domain();
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
            let columns = config.work.columns.iter().map(|column| column.name.clone()).collect();
            let mut ends = ends.rows().map(|row| row.iter().map(|end| end.to_bits()).collect());
            let (lower, upper) = (ends.next().unwrap_or_default(), ends.next().unwrap_or_default());
            (Frame { columns, lower, upper }, centres)
        }
        None => Default::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [LED-7]: counts by another label are another answer, though the question has the same bytes.
    #[test]
    fn labels_belong_to_what_is_asked() {
        use veilsum_cluster::{Domain, OutOfBox, Rows, Scaling, query::Contingency};
        let mut work = crate::documents::tests::work(2);
        let domain = Domain::new(vec![0.0; 2], vec![1.0; 2], Scaling::Box).unwrap();
        let rows = |of: [u32; 2]| {
            let rows = Rows::new(vec![0.1, 0.2, 0.7, 0.9], 2).unwrap();
            Prepared::new(&rows, &domain, OutOfBox::Refuse).unwrap().with_labels(of.to_vec()).unwrap()
        };
        let ask = |query| Question::Cluster(Batch { transform: None, queries: vec![query] });
        let centres = Centres::new(2, 2, vec![0.2, 0.2, 0.8, 0.8]).unwrap();
        let counts = ask(Query::Contingency(Contingency { centres: centres.clone(), classes: 2 }));
        let sums = ask(Query::FuzzySums { centres, m: 2.0 });
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
