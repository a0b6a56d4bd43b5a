//! FFCF with a server that sees every feature vector (Urio-Larrea), by the authors' rules or by ours.

use veilsum_cluster::algorithm::ffcf::merge_all;
use veilsum_cluster::offline::features::{Feature, Radius, Rules, features, merge_pass};
use veilsum_cluster::query::FeatureParams;
use veilsum_cluster::{Centres, Error, Rows};

/// Feature vectors of every site, concatenated and merged: one pass by the authors' rules; by ours passes until nothing is
/// similar any more, in an order that does not depend on that of the sites, radius `sqrt(SS / M)`.
pub fn collected(sites: &[Rows], params: &FeatureParams, rules: Rules) -> Vec<Feature> {
    let mut all: Vec<Feature> = sites.iter().flat_map(|rows| features(rows, params, rules)).collect();
    match rules {
        Rules::Authors => {
            merge_pass(&mut all, params.tau, 1, rules, Radius::ByRows);
        }
        Rules::Conserving => merge_all(&mut all, params.tau, 1),
    }
    all
}

/// Feature vectors as weighted points.
///
/// # Errors
/// [`Error::NoCentres`] where there are none.
pub fn weighted_points(features: &[Feature]) -> Result<(Centres, Vec<f64>), Error> {
    let centres: Vec<Vec<f64>> = features.iter().map(Feature::centre).collect();
    Ok((Centres::from_rows(&centres)?, features.iter().map(|feature| feature.m).collect()))
}
