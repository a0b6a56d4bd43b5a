//! Spreading the rows of one file over sites, for demonstrations and experiments.

use std::collections::BTreeMap;

use veilsum_cluster::random::Stream;

/// Row numbers by site name.
pub type Parts = Vec<(String, Vec<usize>)>;

/// `sites` sites of equal size (give or take one row), rows dealt at random from `seed`.
pub fn iid(rows: usize, sites: usize, seed: u64) -> Parts {
    let mut order: Vec<usize> = (0..rows).collect();
    Stream::new(seed, b"veilsum split of rows v1").shuffle(&mut order);
    let mut parts: Parts = (0..sites).map(|site| (format!("site-{}", site + 1), Vec::new())).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

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
