//! The standard errors of a noisy result, and which of its numbers cannot be told from noise.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use veilsum_cluster::{
    Centres, Domain, Outcome, Query,
    method::{CurvePoint, mechanism},
};

use crate::{description::Description, near, plan::PlanSpec, question::Shared};

/// Beyond this part of a number its standard error leaves nothing of it.
const DROWNED: f64 = 1.0 / 3.0;

/// What the errors are where rows pull as far as they lie.
const OF_NOISE: &str = "standard error of the noise alone, by repeating the plan's noise over made-up rows: the value of the same \
                        rounds without noise lies within two of them in 92 to 98 of 100 runs";
/// What they are of a description.
const OF_TOTALS: &str =
    "standard error of the noise alone, by repeating the plan's noise over totals that are those of this description";
/// What they are where later rounds clip that.
const CLIPPED: &str = "standard error of the noise alone, by repeating the plan's noise over made-up rows: the value of the same \
                       rounds without noise lies within two of them in 92 to 98 of 100 runs. These rounds clip how far a row pulls a \
                       centre, so that value is not that of the plain method: the difference is not in the standard errors. It \
                       shrinks as rows or the budget grow, since a row may then pull farther";

/// Standard errors of a result under noise, beside its numbers; `null` where none could be computed. They are of the noise alone.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ResultErrors {
    /// What they are.
    pub meaning: Cow<'static, str>,
    /// Of `centres`, K x d, original units.
    #[serde(deserialize_with = "near::rows")]
    pub centres: Vec<Vec<f64>>,
    /// Of `centres_box`, K x d.
    #[serde(deserialize_with = "near::rows")]
    pub centres_box: Vec<Vec<f64>>,
    /// Of `mass`.
    pub mass: Vec<Option<f64>>,
    /// Of `n_total`.
    pub n_total: Option<f64>,
    /// Of `objective`.
    pub objective: Option<f64>,
    /// Of `objective_per_row`.
    pub objective_per_row: Option<f64>,
    /// Of the fuzzy Davies-Bouldin index.
    pub fuzzy_davies_bouldin: Option<f64>,
    /// Of the Xie-Beni index.
    pub xie_beni: Option<f64>,
    /// Of every number of `description`, in its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<Description>,
    /// Numbers that are not distinguishable from noise, as JSON pointers (RFC 6901); they stand as `null` in the result. Their
    /// standard error exceeds a third of the number; for a coordinate of a centre, which has no zero of its own, a third of the
    /// least distance between two centres.
    pub not_distinguishable_from_noise: Vec<String>,
}

impl ResultErrors {
    /// Of an outcome over so many sites; `None` where its plan has no noise. `counted`: N is the intermediary's count.
    pub fn of(
        work: &PlanSpec,
        shared: Option<Shared>,
        sites: usize,
        outcome: &Outcome,
        counted: Option<u64>,
    ) -> Option<ResultErrors> {
        let (shared, domain) = (shared?, work.domain().ok()?);
        // Every site adds its share, those included without which the promise would hold as well.
        let excess = (sites as f64 / shared.honest as f64).sqrt();
        if let Some(found) = &outcome.description {
            let repeats = mechanism::descriptions(&work.recipe, &domain, found, excess).ok()?;
            let repeats: Result<Vec<_>, _> = repeats.iter().map(|found| Description::of(work, found)).collect();
            return Self::of_description(&domain, Description::of(work, found).ok()?.errors(&repeats.ok()?));
        }
        let found = mechanism::errors(&work.recipe, &domain, outcome, excess).ok()??;
        let of_rows = if counted.is_some() { shared.levels.of_count().deviation * excess } else { found.rows };
        let d = domain.columns();
        let scaled = |to: &dyn Fn(usize) -> f64| -> Vec<Vec<f64>> {
            let row = |row: &[f64]| row.iter().enumerate().map(|(column, error)| error * to(column)).collect();
            found.centres.chunks_exact(d).map(row).collect()
        };
        let working = |column| {
            let (low, high) = domain.working_interval(column);
            high - low
        };
        // Each with its place and its error; a coordinate counts as large as the least distance between two centres.
        let gap = mechanism::gap(&outcome.centres, &domain);
        let coordinates = found.centres.iter().enumerate().flat_map(|(i, error)| {
            ["centres", "centres_box"].map(|name| (format!("/{name}/{}/{}", i / d, i % d), Some(gap), *error))
        });
        let masses = outcome.clusters.mass.iter().zip(&found.mass).enumerate();
        let masses = masses.map(|(i, (mass, error))| (format!("/mass/{i}"), *mass, *error));
        let (n_total, indices) = (counted.or(outcome.n_total).map(|n| n as f64), &outcome.indices);
        let alone = [
            ("/n_total", n_total, of_rows),
            ("/objective", Some(outcome.objective), found.objective),
            ("/objective_per_row", Some(outcome.objective_per_row), found.objective_per_row),
            ("/indices/fuzzy_davies_bouldin", indices.fuzzy_davies_bouldin, found.fuzzy_davies_bouldin),
            ("/indices/xie_beni", indices.xie_beni, found.xie_beni),
        ];
        let alone = alone.map(|(name, value, error)| (name.to_owned(), value, error));
        // What was not asked for is no number anyway.
        let hidden = coordinates.chain(masses).chain(alone).filter_map(|(name, value, error)| {
            value.filter(|value| value.is_finite() && drowned(*value, error)).map(|_| name)
        });
        // The points of a curve have no standard errors; what the noise of their own totals drowns is no number either.
        let of_objective = |k: u32| {
            let centres = Centres::new(k as usize, d, vec![0.0; k as usize * d]).ok()?;
            let levels = shared.levels.of(&Query::fuzzy_validation(centres, outcome.m), &domain)?;
            levels.last().map(|level| level.deviation * excess)
        };
        let hidden = hidden.chain(drowned_points(&outcome.curve, of_objective)).collect();
        Some(ResultErrors {
            meaning: if work.recipe.clips() { CLIPPED } else { OF_NOISE }.into(),
            centres: scaled(&|column| (domain.upper()[column] - domain.lower()[column]) / working(column)),
            centres_box: scaled(&|column| 1.0 / working(column)),
            mass: found.mass.iter().copied().map(Some).collect(),
            n_total: Some(of_rows),
            objective: Some(found.objective),
            objective_per_row: Some(found.objective_per_row),
            fuzzy_davies_bouldin: Some(found.fuzzy_davies_bouldin),
            xie_beni: Some(found.xie_beni),
            description: None,
            not_distinguishable_from_noise: hidden,
        })
    }

    /// Of a description, whose one centre is the mean of all rows.
    fn of_description(domain: &Domain, errors: Description) -> Option<ResultErrors> {
        let numbers = errors.numbers.iter().map(|number| number.mean);
        let shares = errors.categories.iter().flat_map(|of| &of.counts).map(|count| count.share);
        let centre: Vec<f64> = numbers.chain(shares).collect();
        let sides = domain.upper().iter().zip(domain.lower()).map(|(upper, lower)| upper - lower);
        let centre_box = centre.iter().zip(sides).map(|(error, side)| error / side).collect();
        Some(ResultErrors {
            meaning: OF_TOTALS.into(),
            centres: vec![centre],
            centres_box: vec![centre_box],
            n_total: Some(errors.rows as f64),
            description: Some(errors),
            ..ResultErrors::default()
        })
    }
}

/// What noise drowns in a curve over K, given the deviation of the objective's noise at each K.
fn drowned_points(curve: &[CurvePoint], of_objective: impl Fn(u32) -> Option<f64>) -> Vec<String> {
    let error = |k: u32| of_objective(k).unwrap_or(f64::INFINITY);
    let hidden = |point: &CurvePoint| point.objective.is_some_and(|objective| drowned(objective, error(point.k)));
    let points = curve.iter().enumerate().filter(|(_, point)| hidden(point));
    points.flat_map(|(at, _)| ["objective", "indices/xie_beni"].map(|name| format!("/curve/{at}/{name}"))).collect()
}

/// Whether the error leaves nothing of the number; an error that is none does.
fn drowned(value: f64, error: f64) -> bool {
    error.partial_cmp(&(value.abs() * DROWNED)).is_none_or(std::cmp::Ordering::is_gt)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A negative noisy objective counts as hardly more than 0, and must not stand in the curve as a number.
    #[test]
    fn points_of_a_curve_that_noise_drowns_are_no_numbers() {
        let point = |k, objective| CurvePoint { k, objective: Some(objective), ..CurvePoint::default() };
        let curve = [point(2, 90.0), point(3, f64::MIN_POSITIVE), point(4, 31.0)];
        let found = drowned_points(&curve, |k| Some(24.0 / f64::from(k)));
        assert_eq!(found, ["/curve/1/objective", "/curve/1/indices/xie_beni"]);
        assert_eq!(drowned_points(&curve, |_| None).len(), 6, "noise of which nothing is known");
    }

    #[test]
    fn a_third_is_the_border() {
        assert!(!drowned(3.0, 1.0) && drowned(3.0, 1.01) && drowned(-3.0, 1.01) && !drowned(-3.0, 0.9));
        assert!(drowned(0.0, 1e-9) && drowned(1.0, f64::NAN) && drowned(1.0, f64::INFINITY));
    }
}
