//! FFCF with a server that sees every feature vector (Urio-Larrea), by the authors' rules or by ours.

use ndarray::Array2;

use veilsum_cluster::algorithm::ffcf::merge_all;
use veilsum_cluster::offline::features::{Feature, Radius, Rules, features, merge_pass};
use veilsum_cluster::offline::wfcm;
use veilsum_cluster::query::FeatureParams;
use veilsum_cluster::random::Stream;
use veilsum_cluster::{Centres, Error, Rows, assign};

/// Steps of the authors' weighted fuzzy c-means at most.
const AUTHORS_MOST: u32 = 300;
/// It stops when its objective changes no more than this.
const AUTHORS_EPSILON: f64 = 1e-3;

/// What came out.
#[derive(Debug, Clone, PartialEq)]
pub struct FfcfFit {
    /// Global centres, K x d.
    pub centres: Centres,
    /// Feature vectors that the server clustered, merged.
    pub features: Vec<Feature>,
    /// How many the sites sent.
    pub sent: usize,
}

/// Feature vectors of every site, concatenated and merged: one pass by the authors' rules; by ours passes until nothing is
/// similar any more, in an order that does not depend on that of the sites, radius `sqrt(SS / M)`. With how many were sent.
pub fn collected(sites: &[Rows], params: &FeatureParams, rules: Rules) -> (Vec<Feature>, usize) {
    let mut all: Vec<Feature> = sites.iter().flat_map(|rows| features(rows, params, rules)).collect();
    let sent = all.len();
    match rules {
        Rules::Authors => {
            merge_pass(&mut all, params.tau, 1, rules, Radius::ByRows);
        }
        Rules::Conserving => merge_all(&mut all, params.tau, 1),
    }
    (all, sent)
}

/// FFCF by our rules: weighted fuzzy c-means with ten weighted k-means++ starts.
///
/// # Errors
/// [`Error::NoCentres`] where there are no rows.
pub fn ffcf(sites: &[Rows], k: usize, m: f64, params: &FeatureParams, stream: &mut Stream) -> Result<FfcfFit, Error> {
    let (features, sent) = collected(sites, params, Rules::Conserving);
    let (points, weights) = weighted_points(&features)?;
    Ok(FfcfFit { centres: wfcm::best_of(&points, &weights, k, m, stream).centres, features, sent })
}

/// FFCF by the authors' rules. `first` gives first memberships (n x K, rows that add up to 1) for n feature vectors.
///
/// # Errors
/// [`Error::NoCentres`] where there are no rows.
pub fn authors(
    sites: &[Rows],
    params: &FeatureParams,
    first: impl FnOnce(usize) -> Array2<f64>,
) -> Result<FfcfFit, Error> {
    let (features, sent) = collected(sites, params, Rules::Authors);
    let (points, weights) = weighted_points(&features)?;
    Ok(FfcfFit { centres: authors_wfcm(&points, &weights, first(points.k()), params.m)?, features, sent })
}

/// The authors' weighted fuzzy c-means: one start from memberships, centres always with `u^2`, an objective without weights
/// whose change is the stop rule.
fn authors_wfcm(points: &Centres, weights: &[f64], mut u: Array2<f64>, m: f64) -> Result<Centres, Error> {
    let d = points.columns();
    let rows = Rows::new(points.as_slice().to_vec(), d)?;
    let mut before = f64::INFINITY;
    let mut step = 0;
    loop {
        let mut values = Vec::with_capacity(u.ncols() * d);
        for own in u.columns() {
            let shares: Vec<f64> = own.iter().zip(weights).map(|(u, weight)| weight * u * u).collect();
            let total = shares.iter().sum::<f64>();
            values.extend((0..d).map(|j| rows.iter().zip(&shares).map(|(x, share)| share * x[j]).sum::<f64>() / total));
        }
        let centres = Centres::new(u.ncols(), d, values)?;
        u = assign::memberships(&rows, &centres, m)?;
        let squares = |row: &[f64]| {
            centres.rows().map(|centre| veilsum_cluster::distance::squared(row, centre)).collect::<Vec<_>>()
        };
        let objective = rows
            .iter()
            .zip(u.outer_iter())
            .map(|(row, u)| squares(row).iter().zip(u).map(|(square, u)| u * u * square).sum::<f64>())
            .sum::<f64>();
        step += 1;
        if (before - objective).abs() <= AUTHORS_EPSILON || step >= AUTHORS_MOST {
            return Ok(centres);
        }
        before = objective;
    }
}

fn weighted_points(features: &[Feature]) -> Result<(Centres, Vec<f64>), Error> {
    let centres: Vec<Vec<f64>> = features.iter().map(Feature::centre).collect();
    Ok((Centres::from_rows(&centres)?, features.iter().map(|feature| feature.m).collect()))
}
