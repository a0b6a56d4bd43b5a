//! Before anything leaves: what a whole plan would give away of these rows at most, and whether a site's policy lets it
//! (spec section 11, [POL-9]).

use veilsum_cluster::{
    Algorithm, Query,
    method::{Seeding, Stage},
};
use veilsum_proto::{
    plan::Terms,
    policy::{self, Cost, Policy, Request, Room, Spent},
};

use crate::{
    cli::exit::Failure,
    documents::questions,
    role::consent,
    round::{Form, Question},
    work::Work,
};

/// What a plan gives away at most.
#[derive(Clone, Debug, Default)]
pub struct Forecast {
    /// Every part of a run: its name, its questions at most, and what they give away together.
    pub parts: Vec<(&'static str, u64, Cost)>,
}

impl Forecast {
    /// From the plan, and the colluders that the policy supposes.
    ///
    /// # Errors
    /// A [`Failure`] where the plan has a question without a safe layout.
    pub fn of(work: &Work, terms: &Terms, policy: &Policy, sites: usize) -> Result<Forecast, Failure> {
        let form = Form::of(work, terms, sites)?;
        let domain = work.domain()?;
        let mut parts = Vec::new();
        let questions = questions(work, form.sites)?;
        for question in &questions {
            let layout = question.layout(&domain, &form)?;
            let one = consent::cost(question, &layout, terms, policy, sites);
            // Rounds of two forms, each for a share of them.
            let forms = questions.iter().filter(|other| other.name() == question.name()).count() as u64;
            let (most, together) = whole_part(work, question, one, forms);
            parts.push((question.name(), most, together));
        }
        if work.recipe.validity.classes > 0 {
            let scalars = u64::from(work.recipe.clusters.max) * u64::from(work.recipe.validity.classes);
            parts.push(("contingency", 1, exact(scalars, scalars * 64_000)));
        }
        Ok(Forecast { parts })
    }

    /// All of it.
    pub fn total(&self) -> Cost {
        let mut all = Spent::default();
        self.parts.iter().for_each(|(_, _, cost)| all.add(cost));
        let noised: Vec<u64> = self.parts.iter().filter_map(|(_, _, cost)| cost.nano_rho).collect();
        let nano_rho = (!noised.is_empty()).then_some(all.nano_rho);
        Cost { scalars: all.scalars, milli_bits: all.milli_bits, nano_rho }
    }

    /// What the policy says to all of it, for a site with so many rows, of so many that are possible, in a cohort with at least
    /// `rows_in_all`.
    pub fn verdict(
        &self,
        (work, terms, sites): (&Work, &Terms, usize),
        policy: &Policy,
        spent: &Spent,
        (own_rows, domain): (u64, Option<u64>),
        rows_in_all: u64,
    ) -> Verdict {
        let plan = consent::facts(work);
        let total = self.total();
        let request = |rows_in_all| Request {
            sites,
            own_rows,
            rows_in_all,
            columns: u32::try_from(work.columns.len()).unwrap_or(u32::MAX),
            domain,
            plan: plan.clone(),
            cost: total,
            ..Request::default()
        };
        if let Err(e) = policy::check_plan(terms, policy, &plan) {
            return Verdict::Refused(e.to_string());
        }
        if own_rows < policy.min_rows {
            return Verdict::Refused("this site has fewer rows than min_rows of its own policy [POL-4]".into());
        }
        let most = u64::from(work.max_questions());
        if most > u64::from(policy.floor.max_rounds) {
            return Verdict::Refused(format!(
                "the plan has up to {most} questions, the policy's max_rounds is lower [POL-2]"
            ));
        }
        if spent.questions + most + 1 > policy.max_rounds_in_all || spent.runs + 1 > policy.max_runs {
            return Verdict::Refused("the policy's max_rounds_in_all or max_runs would be exceeded [POL-5]".into());
        }
        let allows = |rows| policy::check_budgets(terms, policy, &request(rows), spent);
        let room = policy::room_for(terms, policy, &request(rows_in_all));
        match allows(rows_in_all) {
            Ok(()) => Verdict::Answers(room),
            Err(e) if allows(MANY).is_err() => Verdict::Refused(e.to_string()),
            // More rows may turn up in the opened totals.
            Err(e) if terms.opening => {
                let (mut low, mut high) = (rows_in_all, MANY);
                while high - low > 1 {
                    let middle = low.midpoint(high);
                    if allows(middle).is_ok() { high = middle } else { low = middle }
                }
                Verdict::AnswersIf { rows: high, why: e.to_string() }
            }
            Err(e) => Verdict::Refused(e.to_string()),
        }
    }
}

/// More rows than any cohort has.
const MANY: u64 = 1 << 40;

/// Whether a site would answer a whole plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// All of it; what the release rule leaves room for.
    Answers(Room),
    /// All of it, if the opened totals show that there are at least so many rows in all; what is in the way otherwise.
    AnswersIf {
        /// Rows in all.
        rows: u64,
        /// What the policy says with those that are known of now.
        why: String,
    },
    /// Not all of it, and why.
    Refused(String),
}

fn exact(scalars: u64, milli_bits: u64) -> Cost {
    Cost { scalars, milli_bits, nano_rho: None }
}

/// How often a question of this part is asked at most, and what all of them give away.
fn whole_part(work: &Work, question: &Question, one: Cost, forms: u64) -> (u64, Cost) {
    let Question::Cluster(batch) = question else { return (1, one) };
    let recipe = &work.recipe;
    let most = |stage| u64::from(recipe.most_in(stage));
    let times = |numerator: u64, denominator: u64| Cost {
        scalars: (one.scalars * numerator).div_ceil(denominator),
        milli_bits: (one.milli_bits * numerator).div_ceil(denominator),
        nano_rho: one.nano_rho.map(|rho| rho.saturating_mul(numerator).div_ceil(denominator)),
    };
    match batch.queries.first() {
        Some(Query::Moments(_) | Query::Histogram(_)) => (most(Stage::Preparing), times(most(Stage::Preparing), 1)),
        Some(Query::Cells(_)) => {
            // The question grows with the tree; all its cells together are what counts.
            let (d, Seeding::Tree(tree)) = (work.columns.len() as u64, &recipe.seeding) else { return (1, one) };
            let leaves = match recipe.algorithm {
                Algorithm::Ffcf { anchors: 0, .. } => (4 * u64::from(recipe.clusters.max)).max(8),
                Algorithm::Ffcf { anchors, .. } => u64::from(anchors),
                _ => u64::from(recipe.clusters.max) * u64::from(tree.cells_per_cluster),
            };
            let scalars = 1 + 2 * d + 2 * leaves * (2 * d + 3);
            let each = one.milli_bits.div_ceil(one.scalars.max(1));
            (most(Stage::Seeding), exact(scalars, scalars * each))
        }
        Some(
            Query::LocalChoice(_)
            | Query::FuzzyValidation { .. }
            | Query::Sizes(_)
            | Query::Validation(_)
            | Query::Ungrouped(_)
            | Query::Silhouette(_)
            | Query::Contingency(_),
        ) => (1, one),
        // Counts first and sums then are together at most half as much again as both at once.
        _ if recipe.rule.two_steps() && consent::facts(work).groups => {
            (most(Stage::Iterating), times(3 * most(Stage::Iterating), 4))
        }
        _ => (most(Stage::Iterating).div_ceil(forms), times(most(Stage::Iterating), forms)),
    }
}
