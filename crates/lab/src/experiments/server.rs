//! The plain servers that see every site's centres, as the papers run them.

use crate::comparison::{ffcf, ffcm, fkm};
use veilsum_cluster::offline::{features::Rules, wfcm};
use veilsum_cluster::query::{FeatureParams, LocalSteps};
use veilsum_cluster::random::Stream;
use veilsum_cluster::{Centres, Rows};

use super::ExperimentError;

const LABEL: &[u8; 24] = b"veilsum plain server  v1";

/// FFCM with this average and so many rounds at most; avg2: k-means++ with ten starts in round 1, then warm.
pub(super) fn ffcm(
    sites: &[Rows],
    start: &Centres,
    m: f64,
    epsilon: f64,
    local: LocalSteps,
    (average, max_rounds): (ffcm::Average, u32),
    seed: u64,
) -> Result<ffcm::FfcmFit, ExperimentError> {
    let params = ffcm::Params { start: start.clone(), m, local, average, epsilon, max_rounds };
    Ok(ffcm::ffcm(sites, &params, &mut Stream::new(seed, LABEL))?)
}

/// Federated k-means with so many k-means++ starts of the server in every round.
pub(super) fn fkm(sites: &[Rows], k: usize, rounds: u32, starts: u32, seed: u64) -> Result<Centres, ExperimentError> {
    let params = fkm::Params { k, min_rows: 2, local_steps: 1, rounds, starts };
    let mut all = fkm::fkm(sites, &params, &mut Stream::new(seed, LABEL))?;
    all.pop().ok_or_else(|| veilsum_cluster::Error::NoCentres.into())
}

/// FFCF with the authors' feature vectors and their server's one merge pass. Their clustering starts once at random and may
/// end in a bad minimum; here it has ten starts, whose best is where their published runs end.
pub(super) fn ffcf_authors(sites: &[Rows], k: usize) -> Result<Centres, ExperimentError> {
    let params = FeatureParams { min: 5, max: 100, tau: 1.0, m: 2.0 };
    let (points, weights) = ffcf::weighted_points(&ffcf::collected(sites, &params, Rules::Authors))?;
    Ok(wfcm::best_of(&points, &weights, k, params.m, &mut Stream::new(1, LABEL)).centres)
}

/// FFCF with mass-conserving feature vectors, merged at the server until nothing is similar.
pub(super) fn ffcf_conserving(sites: &[Rows], k: usize, params: FeatureParams) -> Result<Centres, ExperimentError> {
    Ok(ffcf::ffcf(sites, k, params.m, &params, &mut Stream::new(1, LABEL))?)
}
