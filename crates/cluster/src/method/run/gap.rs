//! The gap statistic (Tibshirani, Walther & Hastie 2001, J. R. Stat. Soc. B 63): how much tighter the clusters of the rows are than
//! those that the same method finds where there are none.
//!
//! With `W_K` the inertia of K clusters (squared distances to the nearest centre) and `W*_Kb` that of reference b = 1..B,
//!
//! ```text
//! gap(K) = mean_b ln W*_Kb - ln W_K        s(K) = sd_b(ln W*_Kb) sqrt(1 + 1/B)        smallest K: gap(K) >= gap(K+1) - s(K+1)
//! ```
//!
//! The references are rows uniform in the public box, as many as the cohort has (the paper's first variant; its second one turns the
//! box along principal components, which no question asks for). They hold no data: everybody draws the same ones from the plan's
//! seed, and clusters them with the plan's own method, first centres and restarts, so that both sides of the difference stop in
//! equally good optima. Nothing is asked for it beside the inertia.
//!
//! Of more than [`REFERENCE_ROWS`] rows a reference has that many, and its inertia is scaled up. `s` is then that of the smaller
//! sample, which is larger. A wide box around rows that fill a small part of it makes every K look clustered: the gap then grows
//! with K, and the rule may hold for no K of the range.

use rayon::prelude::*;

use super::super::recipe::{REFERENCE_ROWS, REFERENCES};
use super::Run;
use crate::algorithm::GroupThreshold;
use crate::method::{Choice, Clusters, CurvePoint, Method, Pick, Preparation, Recipe, Seeding, Step, Validity};
use crate::random::Stream;
use crate::{Domain, MethodError, OutOfBox, Prepared, Rows, Scaling, Totals, answer};

const LABEL: &[u8; 24] = b"veilsum gap reference v1";

impl Run {
    /// Adds the gap and its `s` to the best restart of every K, where the plan chooses by them.
    pub(super) fn compare_with_references(&mut self) -> Result<(), MethodError> {
        if self.recipe.choice.by != Pick::Gap || self.best.len() < 2 {
            return Ok(());
        }
        let ks = || self.best.iter().map(|at| self.members[*at].k);
        let (Some(min), Some(max)) = (ks().min(), ks().max()) else { return Ok(()) };
        let n = self.best.iter().filter_map(|at| self.members[*at].verdict.as_ref()).map(|verdict| verdict.rows).max();
        let n = n.unwrap_or(0);
        let curves = references(&self.recipe, Clusters { min, max }, &self.domain, n.min(REFERENCE_ROWS))?;
        let up = (n as f64 / n.clamp(1, REFERENCE_ROWS) as f64).ln();
        for at in self.best.clone() {
            let member = &mut self.members[at];
            let inertia = |curve: &Vec<CurvePoint>| curve.iter().find(|point| point.k == member.k)?.indices.inertia;
            let Some(logs) = curves.iter().map(|curve| inertia(curve).map(f64::ln)).collect::<Option<Vec<f64>>>()
            else {
                continue;
            };
            let Some(verdict) = &mut member.verdict else { continue };
            let (mean, s) = mean_and_error(&logs);
            let gap = verdict.indices.inertia.map(|inertia| mean + up - inertia.ln()).filter(|gap| gap.is_finite());
            (verdict.indices.gap, verdict.indices.gap_error) = (gap, gap.map(|_| s));
        }
        Ok(())
    }
}

/// The index curve of this recipe over every reference.
fn references(
    recipe: &Recipe,
    clusters: Clusters,
    domain: &Domain,
    rows: u64,
) -> Result<Vec<Vec<CurvePoint>>, MethodError> {
    let mut recipe = Recipe {
        clusters,
        range: None,
        rule: GroupThreshold::NONE,
        preparation: Preparation::none(),
        validity: Validity { full: true, judge_m: recipe.validity.judge_m, ..Validity::basic() },
        choice: Choice { by: Pick::FuzzyDaviesBouldin, elbow: false },
        min_change: 1,
        ..recipe.clone()
    };
    let seed = match &mut recipe.seeding {
        Seeding::Uniform { seed } => *seed,
        Seeding::Given { .. } => return Err(MethodError::parameter("the gap needs a plan with a seed")),
        Seeding::Tree(tree) => {
            tree.blur = 0.0; // A reference hides nobody.
            tree.seed
        }
    };
    let d = domain.columns();
    let (lower, upper): (Vec<f64>, Vec<f64>) = (0..d).map(|column| domain.working_interval(column)).unzip();
    let wrong = |error: crate::DataError| MethodError::parameter(error.to_string());
    let units = Domain::new(lower.clone(), upper.clone(), Scaling::None).map_err(wrong)?;
    let one = |reference: u64| {
        let mut stream = Stream::new(seed.wrapping_add(reference), LABEL);
        let draw = |at: usize| lower[at % d] + stream.unit() * (upper[at % d] - lower[at % d]);
        let values = (0..rows as usize * d).map(draw).collect();
        let rows = Prepared::new(&Rows::new(values, d).map_err(wrong)?, &units, OutOfBox::Clip).map_err(wrong)?;
        curve_over(&mut recipe.run(&units, 1)?, &rows)
    };
    (0..REFERENCES).into_par_iter().map(one).collect()
}

/// The whole conversation on rows at hand.
fn curve_over(run: &mut Run, rows: &Prepared) -> Result<Vec<CurvePoint>, MethodError> {
    let mut step = run.next(None)?;
    loop {
        let batch = match step {
            Step::Done(outcome) => return Ok(outcome.curve),
            Step::Ask(batch) => batch,
        };
        let values = answer(&batch, rows).map_err(|error| MethodError::implausible(error.to_string()))?.values;
        step = run.next(Some(&Totals { values, rows: Some(rows.len() as u64) }))?;
    }
}

/// The mean, and `sd sqrt(1 + 1/B)` with the deviation of B numbers around it.
fn mean_and_error(logs: &[f64]) -> (f64, f64) {
    let b = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / b;
    let variance = logs.iter().map(|log| (log - mean) * (log - mean)).sum::<f64>() / b;
    (mean, (variance * (1.0 + 1.0 / b)).sqrt())
}
