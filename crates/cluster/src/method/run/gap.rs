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
//! box along principal components, which no question asks for). A categorical column has one category, each as likely as another.
//! These rows are then standardised as those of the sites are: only so do they look as rows without clusters do. They hold no data: everybody draws the same
//! ones from the plan's seed, and clusters them with the plan's own method, first centres and restarts, so that both sides of the
//! difference stop in equally good optima. Nothing is asked for it beside the inertia.
//!
//! Of more than [`REFERENCE_ROWS`] rows a reference has that many, and its inertia is scaled up. `s` is then that of the smaller
//! sample, which is larger. The size of the box plays no part, because it shifts the gap of every K alike; its shape does. Rows that are
//! flatter than the box (correlated columns, or some that fill less of their range) look clustered beside it: the gap then grows with K, and
//! the rule may hold for no K of the range. Where such columns are standardised the references are the flatter ones, and the gap falls.

use std::sync::Arc;

use rayon::prelude::*;

use super::super::recipe::{REFERENCE_ROWS, REFERENCES};
use super::Run;
use crate::method::{Choice, Clusters, CurvePoint, Method, Pick, Recipe, Scale, Seeding, Step, Validity};
use crate::random::Stream;
use crate::{Domain, Error, OutOfBox, Prepared, Rows, Totals, Transform, answer};

const LABEL: &[u8; 24] = b"veilsum gap reference v1";

impl Run {
    /// Adds the gap and its `s` to the best restart of every K, where the plan chooses by them.
    pub(super) fn compare_with_references(&mut self) -> Result<(), Error> {
        if self.recipe.choice.by != Pick::Gap || self.best.len() < 2 {
            return Ok(());
        }
        let ks = || self.best.iter().map(|at| self.members[*at].k);
        let (Some(min), Some(max)) = (ks().min(), ks().max()) else { return Ok(()) };
        let n = self.best.iter().filter_map(|at| self.members[*at].verdict.as_ref()).map(|verdict| verdict.rows).max();
        let n = n.unwrap_or(0);
        let units = (&self.public, self.transform.as_ref());
        let curves = references(&self.recipe, Clusters { min, max }, units, n.min(REFERENCE_ROWS))?;
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
    (public, transform): (&Domain, Option<&Transform>),
    rows: u64,
) -> Result<Vec<Vec<CurvePoint>>, Error> {
    let recipe = Recipe {
        clusters,
        range: None,
        preparation: Scale::None,
        validity: Validity { full: true, judge_m: recipe.validity.judge_m, ..Validity::basic() },
        choice: Choice { by: Pick::FuzzyDaviesBouldin, elbow: false },
        ..recipe.clone()
    };
    let seed = match &recipe.seeding {
        Seeding::Uniform { seed } => *seed,
        Seeding::Given { .. } => return Err(Error::parameter("the gap needs a plan with a seed")),
        Seeding::Candidates(params) => params.seed,
    };
    let one = |reference: u64| {
        let rows = without_clusters(public, transform, seed.wrapping_add(reference), rows)?;
        curve_over(&mut recipe.run(rows.domain(), 1)?, &rows)
    };
    (0..REFERENCES).into_par_iter().map(one).collect()
}

/// So many rows without clusters, in the units of the questions.
fn without_clusters(
    public: &Domain,
    transform: Option<&Transform>,
    seed: u64,
    rows: u64,
) -> Result<Arc<Prepared>, Error> {
    let wrong = |error: Error| Error::parameter(error.to_string());
    let d = public.columns();
    let mut stream = Stream::new(seed, LABEL);
    let mut values = Vec::with_capacity(rows as usize * d);
    for _ in 0..rows {
        let numbers = public.lower().iter().zip(public.upper()).take(public.numbers());
        values.extend(numbers.map(|(low, high)| low + stream.unit() * (high - low)));
        for count in public.categories() {
            let own = stream.below(*count as u64) as usize;
            values.extend((0..*count).map(|at| if at == own { 1.0 } else { 0.0 }));
        }
    }
    let rows = Prepared::new(&Rows::new(values, d).map_err(wrong)?, public, OutOfBox::Clip).map_err(wrong)?;
    let Some(transform) = transform else { return Ok(Arc::new(rows)) };
    rows.transformed(transform)
}

/// The whole conversation on rows at hand.
fn curve_over(run: &mut Run, rows: &Prepared) -> Result<Vec<CurvePoint>, Error> {
    let mut step = run.next(None)?;
    loop {
        let batch = match step {
            Step::Done(outcome) => return Ok(outcome.curve),
            Step::Ask(batch) => batch,
        };
        let values = answer(&batch, rows).map_err(Error::implausible)?.values;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scaling;

    fn drawn(public: &Domain, transform: Option<&Transform>) -> Rows {
        let drawn = without_clusters(public, transform, 5, 2_000).unwrap();
        assert_eq!(
            (drawn.len(), drawn.domain()),
            (2_000, &transform.map_or_else(|| public.clone(), |of| of.domain(public).unwrap()))
        );
        drawn.packed().to_rows()
    }

    fn mean(rows: &Rows, of: impl Fn(&[f64]) -> f64) -> f64 {
        rows.iter().map(of).sum::<f64>() / rows.len() as f64
    }

    #[test]
    fn references_fill_the_box_of_numbers() {
        let rows = drawn(&Domain::new(vec![-3.0, 10.0], vec![5.0, 30.0], Scaling::Box).unwrap(), None);
        for column in 0..2 {
            assert!((mean(&rows, |row| row[column]) - 0.5).abs() < 0.03);
            assert!((mean(&rows, |row| (row[column] - 0.5).powi(2)) - 1.0 / 12.0).abs() < 0.01);
        }
    }

    #[test]
    fn references_have_one_category_of_each_column() {
        let ones = [vec![0.5; 2], vec![0.5; 4]];
        let public = Domain::mixed(vec![0.0], vec![10.0], Scaling::Box, &ones).unwrap();
        let standardised = Transform { shift: vec![0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], ..Transform::identity(&public) };
        for transform in [None, Some(&standardised)] {
            let rows = drawn(&public, transform);
            assert!(rows.iter().all(|row| (row[1] + row[2], row[3..].iter().sum::<f64>()) == (0.5, 0.5)));
            let often: Vec<f64> = (1..7).map(|at| mean(&rows, |row| row[at] / 0.5)).collect();
            assert!(often[..2].iter().all(|share| (share - 0.5).abs() < 0.05), "{often:?}");
            assert!(often[2..].iter().all(|share| (share - 0.25).abs() < 0.05), "{often:?}");
        }
    }
}
