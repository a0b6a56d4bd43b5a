//! k-FED (Dennis, Li & Smith 2021): one shot, local centres in the clear.
//!
//! Its local clustering looks for seeds in the projection of the rows on their K leading singular vectors. For rows of at most K columns,
//! as all are that it is compared on, that is a rotation, which no distance sees; so it is left out.

use super::{joined, points};
use veilsum_cluster::offline::kmeans::{greedy_plus_plus, weighted_lloyd};
use veilsum_cluster::random::Stream;
use veilsum_cluster::{Centres, Error, Rows, distance};

/// Lloyd steps at most.
const MOST: u32 = 300;

/// The global centres, K x d, of sites that look for `local_k` clusters each (at most their number of rows): fewer than K where
/// the sites send fewer centres in all.
///
/// # Errors
/// [`Error`] where shapes do not fit or there are no rows.
pub fn kfed(sites: &[Rows], k: usize, local_k: &[usize], stream: &mut Stream) -> Result<Centres, Error> {
    let mut local = Vec::new();
    for (rows, local_k) in sites.iter().zip(local_k).filter(|(rows, _)| !rows.is_empty()) {
        local.push(site(rows, *local_k, stream)?);
    }
    let all = joined(&local)?;
    let d = all.columns();
    // The server: first the centres of one device, then always the one farthest from those chosen.
    let first = local[0].k().min(k);
    let mut chosen = all.as_slice()[..first * d].to_vec();
    while chosen.len() / d < k.min(all.k()) {
        let gap = |point: &[f64]| distance::nearest(point, chosen.chunks_exact(d)).1;
        let far = |best: usize, at: usize| if gap(all.row(at)) > gap(all.row(best)) { at } else { best };
        let next = (0..all.k()).fold(0, far);
        chosen.extend_from_slice(all.row(next));
    }
    let start = Centres::new(chosen.len() / d, d, chosen)?;
    Ok(weighted_lloyd(&all, &vec![1.0; all.k()], &start, MOST).centres)
}

/// Local clustering after Awasthi & Sheffet: seeds, cores of the seeds, Lloyd.
fn site(rows: &Rows, k: usize, stream: &mut Stream) -> Result<Centres, Error> {
    let points = points(rows)?;
    let (n, d) = (points.k(), points.columns());
    let k = k.clamp(1, n);
    let ones = vec![1.0; n];
    let seeds = greedy_plus_plus(&points, &ones, k, stream);
    let mut values = Vec::with_capacity(k * d);
    for (r, seed) in seeds.rows().enumerate() {
        // A third of the distance, a ninth of its square.
        let core = |point: &[f64]| {
            let own = distance::squared(point, seed);
            seeds.rows().enumerate().all(|(s, other)| s == r || 9.0 * own <= distance::squared(point, other))
        };
        let members: Vec<usize> = (0..n).filter(|at| core(points.row(*at))).collect();
        if members.is_empty() {
            let (nearest, _) = distance::nearest(seed, points.rows());
            values.extend_from_slice(points.row(nearest));
        } else {
            values.extend(
                (0..d).map(|j| members.iter().map(|at| points.row(*at)[j]).sum::<f64>() / members.len() as f64),
            );
        }
    }
    let start = Centres::new(k, d, values)?;
    Ok(weighted_lloyd(&points, &ones, &start, MOST).centres)
}
