//! The plain servers that see every site's centres, as the papers run them.

use crate::comparison::{ffcf, fkm};
use veilsum_cluster::offline::{features::Rules, wfcm};
use veilsum_cluster::query::FeatureParams;
use veilsum_cluster::random::Stream;
use veilsum_cluster::{Centres, Rows};

use super::ExperimentError;

pub(super) const LABEL: &[u8; 24] = b"veilsum plain server  v1";

/// Federated k-means with so many k-means++ starts of the server in every round.
pub(super) fn fkm(sites: &[Rows], k: usize, rounds: u32, starts: u32, seed: u64) -> Result<Centres, ExperimentError> {
    let params = fkm::Params { k, min_rows: 2, local_steps: 1, rounds, starts };
    let mut all = fkm::fkm(sites, &params, &mut Stream::new(seed, LABEL))?;
    all.pop().ok_or_else(|| veilsum_cluster::Error::NoCentres.into())
}

/// FFCF by the authors' rules or by ours. Their clustering starts once at random and may end in a bad minimum; here it has ten
/// starts, whose best is where their published runs end.
pub(super) fn ffcf(sites: &[Rows], k: usize, params: FeatureParams, rules: Rules) -> Result<Centres, ExperimentError> {
    let (points, weights) = ffcf::weighted_points(&ffcf::collected(sites, &params, rules))?;
    Ok(wfcm::best_of(&points, &weights, k, params.m, &mut Stream::new(1, LABEL)).centres)
}
