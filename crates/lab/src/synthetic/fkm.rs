//! The synthetic data of federated k-means (Garst & Reinders 2024, ADMA; arXiv 2309.07031): a grid of 16 Gaussians that is
//! spread over five observers.
//!
//! The paper's beta is NOT the parameter of a Dirichlet distribution: an observer at distance d sees a point with
//! probability `1 - exp(-beta / d)`, so a small beta gives every observer a region of its own and a large one nearly
//! shuffles the points.

use veilsum_cluster::random::Stream;
use veilsum_cluster::synthetic::{Draft, Example, Site};
use veilsum_cluster::{Centres, Domain, Rows, Scaling, distance};

/// Positions of the paper's five observers.
pub const OBSERVERS: [[f64; 2]; 5] = [
    [6.996601158324054, 4.124745404114659],
    [-5.271066703849256, 7.157142451709259],
    [6.714794493537756, -9.174802677105856],
    [2.443515920603241, 8.331910708477391],
    [-9.606948592795872, 2.769673398722041],
];

const GRID: [f64; 4] = [-7.5, -2.5, 2.5, 7.5];
const BOX: (f64, f64) = (-25.0, 25.0);

/// The grid: 16 clusters of `per_cluster` rows (the paper has 50, 100 and 200) with standard deviation `noise` (1 to 1.5)
/// in each column, spread over five sites by the paper's beta distribution (beta 0.1, 1 or 10). A site may be left without rows.
pub fn grid(per_cluster: usize, noise: f64, beta: f64, seed: u64) -> Example {
    let mut stream = Stream::new(seed, b"veilsum fkm grid      v1");
    let whole = clusters(&mut stream, per_cluster, noise);
    let positions = Rows::known(OBSERVERS.concat(), 2);
    let mut owners = vec![Vec::new(); OBSERVERS.len()];
    for (i, row) in whole.rows.iter().enumerate() {
        owners[observed(row, &positions, beta, &mut stream)].push(i);
    }
    Example { sites: owners.iter().map(|rows| part(&whole, rows)).collect(), truth: means() }
}

/// The observer that gets a row: each of the n `positions` (n x d, n >= 1) at distance d sees it with probability
/// `1 - exp(-beta / d)`; among several one is drawn, and what nobody sees goes to the nearest.
fn observed(row: &[f64], positions: &Rows, beta: f64, stream: &mut Stream) -> usize {
    let apart: Vec<f64> = positions.iter().map(|position| distance::euclidean(row, position)).collect();
    // At distance 0 the exponent is -inf: seen for certain. 0/0 (beta 0) compares as not seen.
    let hits: Vec<usize> = (0..apart.len()).filter(|i| stream.unit() < 1.0 - (-beta / apart[*i]).exp()).collect();
    match hits.len() {
        0 => (0..apart.len()).min_by(|a, b| apart[*a].total_cmp(&apart[*b])).unwrap_or(0),
        n => hits[stream.below(n as u64) as usize],
    }
}

/// A public box of the grid, original units.
pub fn domain() -> Domain {
    Domain::known(vec![BOX.0; 2], vec![BOX.1; 2], Scaling::None)
}

fn means() -> Centres {
    Centres::known(GRID.iter().flat_map(|x| GRID.iter().map(|y| [*x, *y])).collect())
}

/// All rows, cluster by cluster.
fn clusters(stream: &mut Stream, per_cluster: usize, noise: f64) -> Site {
    let mut draft = Draft::new(&BOX);
    for (label, mean) in means().rows().enumerate() {
        draft.gaussian(stream, label, [mean[0], mean[1]], noise, per_cluster);
    }
    draft.site()
}

fn part(whole: &Site, members: &[usize]) -> Site {
    let values = members.iter().flat_map(|i| whole.rows.row(*i)).copied().collect();
    Site { rows: Rows::known(values, 2), labels: members.iter().map(|i| whole.labels[*i]).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_pinned() {
        assert_ne!(grid(50, 1.0, 1.0, 2), grid(50, 1.0, 1.0, 3));
        let example = grid(50, 1.0, 1.0, 1);
        let site = &example.sites[4].rows;
        let close = site.row(0).iter().zip(PINNED).all(|(found, expected)| (found - expected).abs() < 1e-12);
        assert!(site.len() == 182 && close, "a published seed would change: {} {:?}", site.len(), site.row(0));
    }
    const PINNED: [f64; 2] = [-8.134357180062459, -8.457387681159604];

    /// Small beta: a site owns what is nearest to it. Large beta: everybody has some of every cluster.
    #[test]
    fn beta_decides_how_far_sites_overlap() {
        let positions = Rows::known(OBSERVERS.concat(), 2);
        let share_of_nearest = |beta: f64| {
            let example = grid(100, 1.0, beta, 1);
            let nearest = |row: &[f64]| {
                let mut apart = positions.iter().map(|p| distance::squared(row, p)).enumerate();
                apart.by_ref().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap().0
            };
            let own = |(i, site): (usize, &Site)| site.rows.iter().filter(|row| nearest(row) == i).count();
            example.sites.iter().enumerate().map(own).sum::<usize>() as f64 / 1600.0
        };
        let (apart, some, shuffled) = (share_of_nearest(0.1), share_of_nearest(1.0), share_of_nearest(10.0));
        assert!(apart > 0.9 && some < apart && shuffled < some && shuffled < 0.45, "{apart} {some} {shuffled}");
    }
}
