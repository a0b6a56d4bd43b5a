//! FKM with a server that sees every local mean (Garst & Reinders 2024, Algorithm 1).

use super::points;
use veilsum_cluster::offline::kmeans::{best_of, greedy_plus_plus};
use veilsum_cluster::random::Stream;
use veilsum_cluster::{Centres, Error, Rows, distance};

/// Parameters of [`fkm`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// Global clusters, K.
    pub k: usize,
    /// A site leaves out groups below this (p).
    pub min_rows: u64,
    /// Lloyd steps of a site a round (E).
    pub local_steps: u32,
    /// Rounds after the first (R).
    pub rounds: u32,
    /// k-means++ starts of the server in each round: 1 as published, 10 is better everywhere.
    pub starts: u32,
}

/// The local means of one site and the sizes of the groups that they are means of.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LocalMeans {
    /// One mean each, d coordinates.
    pub means: Vec<Vec<f64>>,
    /// Rows of the group, counted before its mean was taken.
    pub sizes: Vec<f64>,
}

impl LocalMeans {
    /// Groups of at least so many rows.
    fn keep(&mut self, least: f64) {
        let mut sizes = self.sizes.iter();
        self.means.retain(|_| sizes.next().is_some_and(|size| *size >= least));
        self.sizes.retain(|size| *size >= least);
    }
}

/// The global centres after every round, the first (of the sites' own k-means++ seeds) included.
///
/// Each site begins with min(K, n) k-means++ seeds of its own. Where there are fewer distinct local means than K, K is their
/// number.
///
/// # Errors
/// [`Error`] where shapes do not fit or all groups are too small.
pub fn fkm(sites: &[Rows], params: &Params, stream: &mut Stream) -> Result<Vec<Centres>, Error> {
    let mut local = Vec::new();
    for rows in sites.iter().filter(|rows| !rows.is_empty()) {
        let points = points(rows)?;
        let seeds = greedy_plus_plus(&points, &vec![1.0; points.k()], params.k.min(points.k()), stream);
        local.push(client_step(rows, &seeds, params.min_rows, params.local_steps));
    }
    let mut all = vec![server_step(&local, params, stream)?];
    for _ in 0..params.rounds {
        let centres = &all[all.len() - 1];
        let step = |rows: &Rows| client_step(rows, centres, params.min_rows, params.local_steps);
        let local: Vec<LocalMeans> = sites.iter().map(step).collect();
        all.push(server_step(&local, params, stream)?);
    }
    Ok(all)
}

/// One site's round: Lloyd steps from the global centres to which a row is nearest, groups of at least `min_rows`.
pub fn client_step(rows: &Rows, centres: &Centres, min_rows: u64, steps: u32) -> LocalMeans {
    let mut centres: Vec<Vec<f64>> = centres.rows().map(<[f64]>::to_vec).collect();
    let mut found = LocalMeans::default();
    for step in 0..steps.max(1) {
        let mut groups =
            LocalMeans { means: vec![vec![0.0; rows.columns()]; centres.len()], sizes: vec![0.0; centres.len()] };
        for row in rows.iter() {
            let (own, _) = distance::nearest(row, centres.iter().map(Vec::as_slice));
            groups.sizes[own] += 1.0;
            groups.means[own].iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
        }
        for ((mean, size), old) in groups.means.iter_mut().zip(&groups.sizes).zip(&centres) {
            if *size > 0.0 {
                mean.iter_mut().for_each(|sum| *sum /= size);
            } else {
                mean.clone_from(old);
            }
        }
        if step == 0 {
            groups.keep(1.0);
        }
        centres.clone_from(&groups.means);
        found = groups;
    }
    found.keep(min_rows.max(1) as f64);
    found
}

/// Weighted k-means over all local means.
fn server_step(local: &[LocalMeans], params: &Params, stream: &mut Stream) -> Result<Centres, Error> {
    let means: Vec<Vec<f64>> = local.iter().flat_map(|site| site.means.iter().cloned()).collect();
    let sizes: Vec<f64> = local.iter().flat_map(|site| site.sizes.iter().copied()).collect();
    let mut distinct = means.clone();
    distinct.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    distinct.dedup();
    let k = params.k.min(distinct.len());
    Ok(best_of(&Centres::from_rows(&means)?, &sizes, k, params.starts, stream).centres)
}
