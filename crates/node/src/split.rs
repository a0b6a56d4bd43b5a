//! Spreading the rows of one file over sites, for demonstrations and experiments.

use std::collections::BTreeMap;

use veilsum_cluster::Rows;
use veilsum_cluster::random::Stream;
use veilsum_cluster::synthetic::fkm::observed;

/// Row numbers by site name.
pub type Parts = Vec<(String, Vec<usize>)>;

/// `sites` sites of equal size (give or take one row), rows dealt at random from `seed`.
pub fn iid(rows: usize, sites: usize, seed: u64) -> Parts {
    let mut order: Vec<usize> = (0..rows).collect();
    Stream::new(seed, b"veilsum split of rows v1").shuffle(&mut order);
    let mut parts = numbered(sites);
    for (i, row) in order.into_iter().enumerate() {
        if let Some((_, members)) = parts.get_mut(i % sites.max(1)) {
            members.push(row);
        }
    }
    parts
}

/// A site for every label, in the labels' order. Names are made fit for a roster.
pub fn by_label(labels: &[String]) -> Parts {
    let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (i, label) in labels.iter().enumerate() {
        groups.entry(label).or_default().push(i);
    }
    let mut parts: Parts = Vec::with_capacity(groups.len());
    for (label, members) in groups {
        let mut name: String = label
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' })
            .take(48)
            .collect();
        if name.is_empty() || parts.iter().any(|(other, _)| *other == name) {
            name = format!("{name}-{}", parts.len() + 1).trim_start_matches('-').to_owned();
        }
        parts.push((name, members));
    }
    parts
}

/// `sites` sites between which each label's rows are shared out in proportions drawn from a symmetric Dirichlet
/// distribution; small `alpha` (0.1) gives nearly every label to few sites, large `alpha` shares evenly. A site may be left
/// without rows. `alpha` is used between 0.001 and 1,000,000.
pub fn dirichlet<L: Ord>(labels: &[L], sites: usize, alpha: f64, seed: u64) -> Parts {
    let mut stream = Stream::new(seed, b"veilsum dirichlet     v1");
    let mut parts = numbered(sites);
    for mut members in groups(labels).into_values() {
        stream.shuffle(&mut members);
        let logs: Vec<f64> = (0..sites).map(|_| log_gamma_draw(&mut stream, alpha)).collect();
        // Small shapes leave the range of numbers, their ratios do not.
        let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = logs.iter().map(|log| (log - largest).exp()).collect();
        let all: f64 = weights.iter().sum();
        let (mut taken, mut reached) = (0, 0.0);
        for ((_, site), weight) in parts.iter_mut().zip(&weights) {
            reached += weight / all;
            let upto = ((reached * members.len() as f64).round() as usize).clamp(taken, members.len());
            site.extend_from_slice(&members[taken..upto]);
            taken = upto;
        }
        if let Some((_, site)) = parts.last_mut() {
            site.extend_from_slice(&members[taken..]);
        }
    }
    parts
}

/// A site for every one of `positions` (n x d): it sees a row at distance d with probability `1 - exp(-beta / d)`, and what
/// nobody sees goes to the nearest (Garst & Reinders 2024; see [`observed`]).
pub fn observers(rows: &Rows, positions: &Rows, beta: f64, seed: u64) -> Parts {
    let mut stream = Stream::new(seed, b"veilsum observers     v1");
    let mut parts = numbered(positions.len());
    if !positions.is_empty() {
        for (i, row) in rows.iter().enumerate() {
            parts[observed(row, positions, beta, &mut stream)].1.push(i);
        }
    }
    parts
}

/// `sites` sites that each see only `seen` of the labels and lack the others: neighbours in the labels' order, starting
/// farther on from site to site. Each label's rows are dealt at random and evenly to the sites that see it. Where `seen` is
/// too small for every label to be seen by somebody, it is raised.
pub fn lacking<L: Ord>(labels: &[L], sites: usize, seen: usize, seed: u64) -> Parts {
    let mut stream = Stream::new(seed, b"veilsum absent split  v1");
    let mut parts = numbered(sites);
    let groups = groups(labels);
    let k = groups.len();
    if sites == 0 {
        return parts;
    }
    let seen = seen.max(k.div_ceil(sites));
    for (label, mut members) in groups.into_values().enumerate() {
        stream.shuffle(&mut members);
        let viewers: Vec<usize> = (0..sites).filter(|site| (label + k - site * k / sites) % k < seen).collect();
        for (turn, row) in members.into_iter().enumerate() {
            parts[viewers[turn % viewers.len()]].1.push(row);
        }
    }
    parts
}

/// Sites without rows.
fn numbered(sites: usize) -> Parts {
    (0..sites).map(|s| (format!("site-{}", s + 1), Vec::new())).collect()
}

/// Row numbers by label.
fn groups<L: Ord>(labels: &[L]) -> BTreeMap<&L, Vec<usize>> {
    let mut groups: BTreeMap<&L, Vec<usize>> = BTreeMap::new();
    for (i, label) in labels.iter().enumerate() {
        groups.entry(label).or_default().push(i);
    }
    groups
}

/// The logarithm of a gamma-distributed number of this shape (Marsaglia & Tsang 2000; below 1 by a power of a uniform
/// number, as they say).
fn log_gamma_draw(stream: &mut Stream, shape: f64) -> f64 {
    let shape = if shape > 1e-3 { shape.min(1e6) } else { 1e-3 };
    if shape < 1.0 {
        let uniform = (1.0 - stream.unit()).ln();
        return log_gamma_draw(stream, shape + 1.0) + uniform / shape;
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let [z, _] = stream.normal_pair();
        let v = (1.0 + c * z).powi(3);
        if v > 0.0 && (1.0 - stream.unit()).ln() < 0.5 * z * z + d - d * v + d * v.ln() {
            return d.ln() + v.ln();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn once(parts: &Parts, rows: usize) {
        let mut all: Vec<usize> = parts.iter().flat_map(|(_, members)| members.clone()).collect();
        all.sort_unstable();
        assert_eq!(all, (0..rows).collect::<Vec<_>>());
    }

    #[test]
    fn alpha_decides_how_evenly_labels_are_shared() {
        let labels: Vec<usize> = (0..4000).map(|i| i % 4).collect();
        // Mean over labels and seeds of the largest share that one of five sites has.
        let largest = |alpha: f64| {
            let mut sum = 0.0;
            for seed in 0..25 {
                let parts = dirichlet(&labels, 5, alpha, seed);
                once(&parts, 4000);
                for label in 0..4 {
                    let count = |(_, m): &(String, Vec<usize>)| m.iter().filter(|row| labels[**row] == label).count();
                    sum += parts.iter().map(count).max().unwrap() as f64 / 1000.0 / 100.0;
                }
            }
            sum
        };
        let (few, some, even) = (largest(0.1), largest(1.0), largest(1000.0));
        // For alpha = 1 it is the longest piece of a stick broken into five: (1 + 1/2 + .. + 1/5) / 5 = .457.
        assert!(few > 0.75 && (some - 0.457).abs() < 0.06 && (0.2..0.23).contains(&even), "{few} {some} {even}");
        for alpha in [f64::NAN, 0.0, -1.0, f64::INFINITY, 1e-3] {
            once(&dirichlet(&labels, 5, alpha, 1), 4000);
        }
        once(&dirichlet(&["a", "b", "a"], 1, 0.5, 0), 3);
        assert!(dirichlet(&labels, 0, 0.5, 0).is_empty());
        assert_eq!(dirichlet(&labels, 5, 0.5, 9), dirichlet(&labels, 5, 0.5, 9));
    }

    #[test]
    fn observers_see_what_is_near() {
        let rows = Rows::new((0..200).flat_map(|i| [f64::from(i % 2) * 10.0, f64::from(i)]).collect(), 2).unwrap();
        let positions = Rows::new(vec![0.0, 100.0, 10.0, 100.0], 2).unwrap();
        let parts = observers(&rows, &positions, 0.0, 1);
        once(&parts, 200);
        assert!(parts.iter().enumerate().all(|(site, (_, members))| members.iter().all(|row| row % 2 == site)));
        once(&observers(&rows, &positions, 10.0, 1), 200);
        assert!(observers(&rows, &Rows::new(vec![], 2).unwrap(), 1.0, 1).is_empty());
    }

    #[test]
    fn sites_lack_clusters() {
        let labels: Vec<usize> = (0..100).map(|i| i % 7).collect();
        for (sites, seen) in [(5, 3), (3, 1), (7, 1), (10, 2), (2, 7)] {
            let parts = lacking(&labels, sites, seen, 4);
            once(&parts, 100);
            let most = seen.max(7usize.div_ceil(sites));
            for (_, members) in &parts {
                let own: std::collections::BTreeSet<usize> = members.iter().map(|row| labels[*row]).collect();
                assert_eq!(own.len(), most.min(7), "{sites} {seen}");
            }
        }
        assert!(lacking(&labels, 0, 3, 1).is_empty());
        assert!(lacking::<usize>(&[], 3, 3, 1).iter().all(|(_, members)| members.is_empty()));
    }

    #[test]
    fn every_row_once() {
        for (rows, sites) in [(10, 3), (3, 3), (2, 5), (1000, 20)] {
            let parts = iid(rows, sites, 7);
            assert_eq!(parts.len(), sites);
            let mut all: Vec<usize> = parts.iter().flat_map(|(_, m)| m.clone()).collect();
            all.sort_unstable();
            assert_eq!(all, (0..rows).collect::<Vec<_>>());
            let sizes: Vec<usize> = parts.iter().map(|(_, m)| m.len()).collect();
            assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
        }
        assert_ne!(iid(100, 4, 1), iid(100, 4, 2));
        assert_eq!(iid(100, 4, 1), iid(100, 4, 1));
    }

    #[test]
    fn labels_become_names() {
        let labels: Vec<String> = ["b", "a b", "b", "", "a-b"].iter().map(|s| (*s).to_owned()).collect();
        let parts = by_label(&labels);
        assert_eq!(parts.iter().map(|(_, m)| m.len()).sum::<usize>(), 5);
        let names: Vec<&str> = parts.iter().map(|(n, _)| n.as_str()).collect();
        for (i, n) in names.iter().enumerate() {
            veilsum_proto::roster::check_name(n).unwrap();
            assert!(!names[..i].contains(n));
        }
    }
}
