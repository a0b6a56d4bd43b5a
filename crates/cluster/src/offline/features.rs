//! Fuzzy feature vectors of one site (FFCF, Urio-Larrea; the micro-clusters of d-FuzzStream, Schick, Lopes & Camargo 2018,
//! without their time stamps).
//!
//! A feature vector sums up rows by their memberships: `LS = sum u x`, `SS = sum u d^2`, `N` the number of rows added and
//! `M = sum u`; its centre is `LS / M`, its radius `sqrt(SS / N)`. One pass over the rows in their order:
//!
//! * as long as there are fewer than `min`, a row opens one of its own;
//! * a row within the radius of some feature vector is added to ALL of them by its memberships in their centres (one of
//!   radius 0 takes the distance to the nearest other centre as its radius);
//! * any other row opens one of its own, and where there are already `max`, the two closest are merged first;
//! * after each row, pairs whose similarity `(r_i + r_j) / ||c_i - c_j||` reaches `tau` are merged, the most similar first.
//!
//! Every merge takes the exact scatter `SS_i + SS_j + M_i M_j / (M_i + M_j) ||c_i - c_j||^2` (as in BIRCH and CluStream), so
//! that no mass is lost and `SS + |LS|^2 / M` simply adds up. The authors' own code deletes the lightest instead of merging,
//! which throws 44 to 66 % of the mass away in their experiment, and adds `SS` alone; [`Rules::Authors`] does as they do.
//!
//! Each row costs about max^2 d operations.

use serde::{Deserialize, Serialize};

use crate::{Rows, distance, refuse};

/// How a site builds its feature vectors.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FeatureParams {
    /// Feature vectors that are opened without a test.
    pub min: u32,
    /// Feature vectors held at most.
    pub max: u32,
    /// Similarity from which two are merged.
    pub tau: f64,
    /// Fuzzifier, m > 1.
    pub m: f64,
}

/// One fuzzy feature vector.
#[derive(Debug, Clone, PartialEq)]
pub struct Feature {
    /// `sum u x`, d.
    pub ls: Vec<f64>,
    /// Scatter.
    pub ss: f64,
    /// Rows that were added, however little each. It tells a large site from a small one and never leaves it.
    pub n: f64,
    /// `sum u`, at least 1.
    pub m: f64,
}

impl Feature {
    fn new(row: &[f64]) -> Self {
        Self { ls: row.to_vec(), ss: 0.0, n: 1.0, m: 1.0 }
    }

    /// `LS / M`, d coordinates.
    pub fn centre(&self) -> Vec<f64> {
        self.ls.iter().map(|sum| sum / self.m).collect()
    }

    /// `SS + |LS|^2 / M`: it adds up under exact merges.
    pub fn square(&self) -> f64 {
        self.ss + self.ls.iter().map(|sum| sum * (sum / self.m)).sum::<f64>()
    }
}

/// Whose rules a site follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    /// Ours: no mass is lost, every merge has the exact scatter.
    Conserving,
    /// The authors' code: the lightest is deleted where room is needed and at the end until there are fewer than `max`;
    /// merges add `SS`. For comparison only.
    Authors,
}

/// What a radius is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Radius {
    /// `sqrt(SS / N)`: a site's own.
    ByRows,
    /// `sqrt(SS / M)`: where N is not known.
    ByMass,
}

impl Radius {
    fn of(self, feature: &Feature) -> f64 {
        let divisor = match self {
            Self::ByRows => feature.n,
            Self::ByMass => feature.m,
        };
        (feature.ss.max(0.0) / divisor).sqrt()
    }
}

/// Feature vectors of `rows` (n x d) in their order, at most `params.max`. For parameters that pass [`usable_params`].
pub fn features(rows: &Rows, params: &FeatureParams, rules: Rules) -> Vec<Feature> {
    let (min, max) = (params.min as usize, params.max as usize);
    let mut all: Vec<Feature> = Vec::new();
    let mut u = Vec::new();
    for row in rows.iter() {
        if all.len() < min {
            all.push(Feature::new(row));
            continue;
        }
        let centres: Vec<Vec<f64>> = all.iter().map(Feature::centre).collect();
        let distances: Vec<f64> = centres.iter().map(|centre| distance::euclidean(row, centre)).collect();
        let within = |(at, distance): (usize, &f64)| {
            let radius = Radius::ByRows.of(&all[at]);
            *distance <= if radius > 0.0 { radius } else { to_nearest_other(&centres, at) }
        };
        if distances.iter().enumerate().any(within) {
            u.resize(all.len(), 0.0);
            distance::memberships(row, centres.iter().map(Vec::as_slice), params.m, &mut u);
            for ((feature, u), distance) in all.iter_mut().zip(&u).zip(&distances) {
                feature.ls.iter_mut().zip(row).for_each(|(sum, x)| *sum += u * x);
                feature.ss += u * distance * distance;
                feature.m += u;
                feature.n += 1.0;
            }
        } else {
            if all.len() >= max {
                make_room(&mut all, rules);
            }
            all.push(Feature::new(row));
        }
        merge_pass(&mut all, params.tau, 1, rules, Radius::ByRows);
    }
    let most = match rules {
        Rules::Conserving => max,
        Rules::Authors => max - 1,
    };
    while all.len() > most {
        make_room(&mut all, rules);
    }
    all
}

/// Bounds on what a site is asked to do: 2 <= min <= max <= 1000, tau > 0, m > 1.
pub fn usable_params(params: &FeatureParams) -> Result<(), &'static str> {
    let rises = 2 <= params.min && params.min <= params.max && params.max <= MAX_FEATURES;
    refuse(!rises, || "feature vectors: 2 <= min <= max <= 1000 must hold")?;
    refuse(!(params.tau.is_finite() && params.tau > 0.0), || "feature vectors: tau must be a finite number above 0")?;
    distance::check_fuzzifier(params.m).map_err(|_| "feature vectors: m must be a finite number above 1")
}

/// Feature vectors that a site may be asked to hold; a row costs max^2 d operations.
const MAX_FEATURES: u32 = 1000;

/// Merges disjoint pairs whose similarity reaches `tau`, the most similar first, until `fewest` would be undercut; true if
/// one was merged. Those that stay keep their order, merged ones follow in the order of their similarity.
pub fn merge_pass(all: &mut Vec<Feature>, tau: f64, fewest: usize, rules: Rules, radius: Radius) -> bool {
    let mut merged = Vec::new();
    let mut gone = vec![false; all.len()];
    for (_, i, j) in &similar_pairs(all, tau, radius) {
        if all.len() - merged.len() <= fewest {
            break;
        }
        if !gone[*i] && !gone[*j] {
            (gone[*i], gone[*j]) = (true, true);
            merged.push(merge(&all[*i], &all[*j], rules));
        }
    }
    let mut gone = gone.into_iter();
    all.retain(|_| !gone.next().unwrap_or(false));
    let any = !merged.is_empty();
    all.append(&mut merged);
    any
}

/// Similarity and places of all pairs that reach `tau`, by falling similarity, equals in the order of their places.
fn similar_pairs(all: &[Feature], tau: f64, radius: Radius) -> Vec<(f64, usize, usize)> {
    let radii: Vec<f64> = all.iter().map(|feature| radius.of(feature)).collect();
    let centres: Vec<Vec<f64>> = all.iter().map(Feature::centre).collect();
    let similarity = |(i, j): (usize, usize)| {
        let distance = distance::euclidean(&centres[i], &centres[j]);
        (if distance == 0.0 { f64::INFINITY } else { (radii[i] + radii[j]) / distance }, i, j)
    };
    let mut pairs: Vec<_> = pairs(all.len()).map(similarity).filter(|pair| pair.0 >= tau).collect();
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
    pairs
}

fn merge(a: &Feature, b: &Feature, rules: Rules) -> Feature {
    let between = match rules {
        Rules::Authors => 0.0,
        Rules::Conserving => a.m * b.m / (a.m + b.m) * distance::squared(&a.centre(), &b.centre()),
    };
    let ls = a.ls.iter().zip(&b.ls).map(|(a, b)| a + b).collect();
    Feature { ls, ss: a.ss + b.ss + between, n: a.n + b.n, m: a.m + b.m }
}

/// One less: the two closest are merged, or (authors) the lightest is deleted.
fn make_room(all: &mut Vec<Feature>, rules: Rules) {
    match rules {
        Rules::Authors => {
            let lightest = (0..all.len()).min_by(|a, b| all[*a].m.total_cmp(&all[*b].m));
            if let Some(at) = lightest {
                all.remove(at);
            }
        }
        Rules::Conserving => {
            let centres: Vec<Vec<f64>> = all.iter().map(Feature::centre).collect();
            let apart = pairs(all.len()).map(|(i, j)| (distance::squared(&centres[i], &centres[j]), i, j));
            if let Some((_, i, j)) = apart.min_by(|a, b| a.0.total_cmp(&b.0)) {
                // It takes the place of the first.
                let second = all.remove(j);
                all[i] = merge(&all[i], &second, rules);
            }
        }
    }
}

/// Both places of every pair, the first before the second.
fn pairs(n: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n).flat_map(move |i| (i + 1..n).map(move |j| (i, j)))
}

fn to_nearest_other(centres: &[Vec<f64>], at: usize) -> f64 {
    let others = centres.iter().enumerate().filter(|(other, _)| *other != at);
    let nearest = others.map(|(_, other)| distance::euclidean(other, &centres[at])).fold(f64::INFINITY, f64::min);
    // Alone it has no radius at all.
    if nearest.is_finite() { nearest } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn params(min: u32, max: u32) -> FeatureParams {
        FeatureParams { min, max, tau: 1.0, m: 2.0 }
    }

    #[test]
    fn duplicates_are_shared_and_merged() {
        // The authors' code breaks here: a row on the centre of a fresh feature vector.
        let rows = Rows::new(vec![1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], 2).unwrap();
        let all = features(&rows, &params(2, 5), Rules::Conserving);
        assert_eq!(all.iter().map(|f| f.m).sum::<f64>(), 5.0);
        let heavy = all.iter().find(|f| f.centre() == [1.0, 1.0]).unwrap();
        assert_eq!((heavy.m, heavy.ss), (4.0, 0.0));
        let same = Rows::new(vec![3.0; 20], 2).unwrap();
        let all = features(&same, &params(2, 5), Rules::Conserving);
        assert_eq!(all.iter().map(|f| f.m).sum::<f64>(), 10.0);
        assert!(all.iter().all(|f| f.centre() == [3.0, 3.0] && f.ss == 0.0));
    }

    #[test]
    fn odd_parameters_are_refused() {
        assert!(usable_params(&params(5, 100)).is_ok());
        for bad in [params(1, 5), params(6, 5), params(5, 1001), params(0, 0)] {
            assert!(usable_params(&bad).is_err());
        }
        for tau in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(usable_params(&FeatureParams { tau, ..params(5, 10) }).is_err());
        }
        assert!(usable_params(&FeatureParams { m: 1.0, ..params(5, 10) }).is_err());
    }

    proptest! {
        #[test]
        fn mass_and_sums_are_conserved_and_bounded(
            values in prop::collection::vec(prop_oneof![-3.0f64..3.0, Just(1.0), Just(0.0)], 0..120),
            max in 2u32..8,
            m in prop::sample::select(vec![1.1, 2.0, 3.0]),
        ) {
            let n = values.len() / 2;
            let rows = Rows::new(values[..2 * n].to_vec(), 2).unwrap();
            let params = FeatureParams { m, ..params(2, max) };
            let all = features(&rows, &params, Rules::Conserving);
            prop_assert!(all.len() <= max as usize);
            prop_assert!((all.iter().map(|f| f.m).sum::<f64>() - n as f64).abs() <= 1e-9 * n as f64);
            for j in 0..2 {
                let sum = rows.iter().map(|row| row[j]).sum::<f64>();
                prop_assert!((all.iter().map(|f| f.ls[j]).sum::<f64>() - sum).abs() < 1e-9);
            }
            // What the bound of the question says of one row: |x|^2 plus half a squared diameter.
            let square = all.iter().map(Feature::square).sum::<f64>();
            prop_assert!(square <= n as f64 * (18.0 + 36.0) * (1.0 + 1e-12));
            prop_assert!(all.iter().all(|f| f.m >= 1.0 && f.ss >= 0.0));
            let authors = features(&rows, &params, Rules::Authors);
            prop_assert!(authors.len() < max as usize);
        }
    }
}
