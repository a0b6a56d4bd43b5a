//! What the numbers of a noisy result may be off, and which of them cannot be told from noise.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, Serialize};
use veilsum_cluster::{
    Centres, Domain, Outcome, Query,
    method::{
        CurvePoint,
        mechanism::{self, Numbers},
    },
    privacy::{self, Levels},
};

use crate::{description::Description, near, plan::PlanSpec};

/// Beyond this part of a number its error leaves nothing of it.
const DROWNED: f64 = 1.0 / 3.0;
/// What is counted or added up is a number from so many errors on; less is said to be below the end of its interval.
const COUNTS: f64 = 2.0;

/// What the errors are of clusters.
const OF_ALL: &str = "a standard error of noise and sampling: two of them to either side hold what the plain method gives over all rows of \
                      which these are a sample, in about 95 of 100 runs. The plan's preparation, first centres, rounds and noise are repeated over \
                      samples of rows made up from this result, so clip and preparation are in it as far as such rows show them; that \
                      another start may lead to other clusters is not";
/// What they are of a description.
const OF_TOTALS: &str = "a standard error of the noise alone, of which two to either side are a 95 % interval, by repeating the plan's noise over totals that are those of this \
                         description; of another sample of rows it says nothing";

/// What the numbers of a result under noise may be off, beside them; `null` where nobody knows.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ResultErrors {
    /// What they are.
    pub meaning: Cow<'static, str>,
    /// Of the clusters.
    #[serde(flatten)]
    pub clusters: OfClusters,
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
    /// The part that is noise: how far off the same rounds without noise are, over the same rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<OfClusters>,
    /// What is counted or added up and lies below two errors, as JSON pointers (RFC 6901), with the upper end of its interval; it stands as
    /// `null` in the result.
    pub below: BTreeMap<String, f64>,
    /// Numbers that are not distinguishable from noise, as JSON pointers; they stand as `null` in the result. They are those of `below`;
    /// indices whose error exceeds a third of them; and coordinates of centres, which have no zero of their own, whose error by noise
    /// exceeds a third of the least distance between two centres.
    pub not_distinguishable_from_noise: Vec<String>,
}

/// What clusters may be off.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct OfClusters {
    /// Of `centres`, K x d, original units.
    #[serde(deserialize_with = "near::rows")]
    pub centres: Vec<Vec<f64>>,
    /// Of `centres_box`, K x d.
    #[serde(deserialize_with = "near::rows")]
    pub centres_box: Vec<Vec<f64>>,
    /// Of `sizes`, of hard methods.
    pub sizes: Vec<Option<f64>>,
    /// Of `mass`, of fuzzy ones.
    pub mass: Vec<Option<f64>>,
}

impl ResultErrors {
    /// Of an outcome over so many sites; `None` where its plan has no noise. `counted`: N is the intermediary's count.
    pub fn of(
        work: &PlanSpec,
        levels: Option<Levels>,
        sites: usize,
        outcome: &Outcome,
        counted: Option<u64>,
    ) -> Option<ResultErrors> {
        let (levels, domain) = (levels?, work.domain().ok()?);
        let excess = privacy::excess(sites);
        let of_count = counted.map(|_| levels.of_count().deviation * excess);
        if let Some(found) = &outcome.description {
            let repeats = mechanism::descriptions(&work.recipe, &domain, found, excess).ok()?;
            let repeats: Result<Vec<_>, _> = repeats.iter().map(|found| Description::of(work, found)).collect();
            let found = Description::of(work, found).ok()?;
            let mut errors = Self::of_description(&domain, &found, found.errors(&repeats.ok()?))?;
            errors.n_total = of_count.or(errors.n_total);
            return Some(errors);
        }
        let found = mechanism::errors(&work.recipe, &domain, outcome, excess).ok()??;
        let (whole, noise) = (&found.whole, &found.noise);
        let of_rows = of_count.unwrap_or(whole.rows);
        let d = domain.columns();
        let scaled = |centres: &[f64], to: &dyn Fn(usize) -> f64| -> Vec<Vec<f64>> {
            let row = |row: &[f64]| row.iter().enumerate().map(|(column, error)| error * to(column)).collect();
            centres.chunks_exact(d).map(row).collect()
        };
        let units = |column| (domain.upper()[column] - domain.lower()[column]) / domain.side(column);
        let parts = |column| 1.0 / domain.side(column);
        // Each with its place and its error; a coordinate counts as large as the least distance between two centres.
        let gap = veilsum_cluster::metrics::gap(&outcome.centres, &domain);
        let coordinates = noise.centres.iter().enumerate().flat_map(|(i, error)| {
            ["centres", "centres_box"].map(|name| (format!("/{name}/{}/{}", i / d, i % d), Some(gap), *error))
        });
        let (n_total, indices) = (counted.or(outcome.n_total).map(|n| n as f64), &outcome.indices);
        let fuzzy_and_xie_beni = [
            ("/indices/fuzzy_davies_bouldin", indices.fuzzy_davies_bouldin, whole.fuzzy_davies_bouldin),
            ("/indices/xie_beni", indices.xie_beni, whole.xie_beni),
        ];
        let named = |(name, value, error): (&str, Option<f64>, f64)| (name.to_owned(), value, error);
        // What was not asked for is no number anyway.
        let hidden = coordinates.chain(fuzzy_and_xie_beni.map(named)).filter_map(|(name, value, error)| {
            value.filter(|value| value.is_finite() && drowned(*value, error)).map(|_| name)
        });
        let hard = work.recipe.algorithm.traits().fuzzifier.is_none();
        let sizes: Vec<_> = outcome.clusters.sizes.iter().map(|size| size.map(|size| size as f64)).collect();
        let held = if hard { (&sizes, "sizes") } else { (&outcome.clusters.mass, "mass") };
        let each = held.0.iter().zip(&whole.held).enumerate();
        let added_up = each.map(|(i, (value, error))| (format!("/{}/{i}", held.1), *value, *error)).chain(
            [
                ("/n_total", n_total, of_rows),
                ("/objective", Some(outcome.objective), whole.objective),
                ("/objective_per_row", Some(outcome.objective_per_row), whole.objective_per_row),
            ]
            .map(named),
        );
        let few = |(_, value, error): &(String, Option<f64>, f64)| {
            value.is_some_and(|value| value.is_finite() && value < COUNTS * error)
        };
        let below: Vec<(String, Option<f64>, f64)> = added_up.filter(few).collect();
        // The points of a curve have no errors; what the noise of their own totals drowns is no number either.
        let of_objective = |point: &CurvePoint| {
            let k = point.k as usize;
            if hard {
                let radius = (point.objective? / n_total?.max(1.0)).sqrt();
                let clip = levels.pull(u32::MAX, k, Some(radius));
                return Some(levels.of_round(clip)[2].deviation * excess);
            }
            let centres = Centres::new(k, d, vec![0.0; k * d]).ok()?;
            let levels = levels.of(&Query::fuzzy_validation(centres, outcome.m), &domain)?;
            levels.last().map(|level| level.deviation * excess)
        };
        let hidden = hidden.chain(below.iter().map(|(name, ..)| name.clone()));
        let hidden = hidden.chain(drowned_points(&outcome.curve, of_objective)).collect();
        let of_clusters = |errors: &Numbers| {
            let held = |ones: bool| errors.held.iter().map(|error| Some(*error).filter(|_| hard == ones)).collect();
            let [centres, centres_box] = [scaled(&errors.centres, &units), scaled(&errors.centres, &parts)];
            OfClusters { centres, centres_box, sizes: held(true), mass: held(false) }
        };
        let end = |(name, value, error): (String, Option<f64>, f64)| Some((name, value? + COUNTS * error));
        Some(ResultErrors {
            meaning: OF_ALL.into(),
            clusters: of_clusters(whole),
            n_total: Some(of_rows),
            objective: Some(whole.objective),
            objective_per_row: Some(whole.objective_per_row),
            fuzzy_davies_bouldin: Some(whole.fuzzy_davies_bouldin),
            xie_beni: Some(whole.xie_beni),
            description: None,
            noise: Some(of_clusters(noise)),
            below: below.into_iter().filter_map(end).filter(|(_, end)| end.is_finite()).collect(),
            not_distinguishable_from_noise: hidden,
        })
    }

    /// Of a description, whose one centre is the mean of all rows. A deviation or a number of missing values that noise may have made of
    /// none is below the end of its interval.
    fn of_description(domain: &Domain, found: &Description, errors: Description) -> Option<ResultErrors> {
        let rows = |missing: Option<u64>| missing.unwrap_or(0) as f64;
        let numbers = found.numbers.iter().zip(&errors.numbers).enumerate().flat_map(|(i, (found, error))| {
            let place = |name: &str| format!("/description/numbers/{i}/{name}");
            [
                (place("deviation"), found.deviation, error.deviation),
                (place("missing"), rows(found.missing), rows(error.missing)),
            ]
        });
        let categories = found.categories.iter().zip(&errors.categories).enumerate().map(|(i, (found, error))| {
            (format!("/description/categories/{i}/missing"), rows(found.missing), rows(error.missing))
        });
        // Two of them are the number itself where repetitions fall to 0.
        let few = numbers.chain(categories).filter(|(_, found, error)| *found <= COUNTS * error);
        let below: BTreeMap<String, f64> = few.map(|(place, found, error)| (place, found + COUNTS * error)).collect();
        let numbers = errors.numbers.iter().map(|number| number.mean);
        let shares = errors.categories.iter().flat_map(|of| &of.counts).map(|count| count.share);
        let centre: Vec<f64> = numbers.chain(shares).collect();
        let sides = domain.upper().iter().zip(domain.lower()).map(|(upper, lower)| upper - lower);
        let centre_box = centre.iter().zip(sides).map(|(error, side)| error / side).collect();
        Some(ResultErrors {
            meaning: OF_TOTALS.into(),
            clusters: OfClusters { centres: vec![centre], centres_box: vec![centre_box], ..OfClusters::default() },
            n_total: Some(errors.rows as f64),
            description: Some(errors),
            not_distinguishable_from_noise: below.keys().cloned().collect(),
            below,
            ..ResultErrors::default()
        })
    }
}

/// What noise drowns in a curve over K, given the deviation of the objective's noise at each point.
fn drowned_points(curve: &[CurvePoint], of_objective: impl Fn(&CurvePoint) -> Option<f64>) -> Vec<String> {
    let error = |point: &CurvePoint| of_objective(point).unwrap_or(f64::INFINITY);
    let hidden = |point: &CurvePoint| point.objective.is_some_and(|objective| drowned(objective, error(point)));
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
        let found = drowned_points(&curve, |point| Some(24.0 / f64::from(point.k)));
        assert_eq!(found, ["/curve/1/objective", "/curve/1/indices/xie_beni"]);
        assert_eq!(drowned_points(&curve, |_| None).len(), 6, "noise of which nothing is known");
    }

    /// A range far too wide: a variance below 0 counts as 0, and a deviation as large as its noise says nothing.
    #[test]
    fn a_deviation_that_noise_may_have_made_is_below_the_end_of_its_interval() {
        let of = |deviations: [f64; 3], missing: u64| -> Description {
            let number = |x: f64| serde_json::json!({"column": "a", "missing": missing, "mean": 1.0, "deviation": x, "histogram": []});
            let numbers = deviations.map(number);
            let all = serde_json::json!({"rows": 9, "missing": "", "numbers": numbers, "categories": []});
            serde_json::from_value(all).unwrap()
        };
        let domain = Domain::known(vec![0.0; 3], vec![100.0; 3], veilsum_cluster::Scaling::Box);
        let errors = ResultErrors::of_description(&domain, &of([15.0, 0.0, 12.0], 9), of([1.0, 6.0, 6.0], 4)).unwrap();
        let places = [1, 2].map(|i| format!("/description/numbers/{i}/deviation"));
        assert_eq!(errors.not_distinguishable_from_noise, places);
        assert_eq!(places.map(|place| errors.below[&place]), [12.0, 24.0]);
        let few = ResultErrors::of_description(&domain, &of([15.0; 3], 5), of([1.0; 3], 4)).unwrap();
        assert_eq!((few.below.len(), few.below["/description/numbers/0/missing"]), (3, 13.0));
    }

    #[test]
    fn a_third_is_the_border() {
        assert!(!drowned(3.0, 1.0) && drowned(3.0, 1.01) && drowned(-3.0, 1.01) && !drowned(-3.0, 0.9));
        assert!(drowned(0.0, 1e-9) && drowned(1.0, f64::NAN) && drowned(1.0, f64::INFINITY));
    }
}
