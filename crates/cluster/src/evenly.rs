//! A yardstick for indices whose scale misleads: what they are of rows that are spread evenly over a box, in which there are no groups.
//!
//! Every method divides such rows, too, and the more clusters and the fewer columns, the nearer rows lie to their centres. So 0.6 may be
//! a poor value of an index for one column, and a very good one for thirty.

use crate::method::{Candidates, Clusters, Seeding, Validity};
use crate::random::Stream;
use crate::{Algorithm, Domain, Indices, OutOfBox, Prepared, Recipe, Rows, Scaling, pooled};

/// More clusters or columns would keep a reader waiting.
const MOST: usize = 64;
const SEED: u64 = 1;

/// The indices of K clusters of rows that are spread evenly over a box with these sides (d, any unit), by fuzzy c-means with the
/// fuzzifier m, or by k-means if they are `hard`; m judges both. The rows are made up from a fixed seed: between two seeds an index differs by about 0.01. `None` for one
/// cluster, for more than 64 clusters or columns, and if nothing can be divided.
pub fn indices(k: u32, sides: &[f64], m: f64, hard: bool) -> Option<Indices> {
    let sides: Vec<f64> = sides.iter().copied().filter(|side| *side > 0.0 && side.is_finite()).collect();
    let d = sides.len();
    if !(2..=MOST).contains(&(k as usize)) || !(1..=MOST).contains(&d) {
        return None;
    }
    let n = (40 * k as usize).clamp(600, 2_000);
    let mut stream = Stream::new(SEED, b"veilsum rows evenly v1  ");
    let values = (0..n).flat_map(|_| sides.iter()).map(|side| side * stream.unit()).collect();
    let domain = Domain::new(vec![0.0; d], sides.clone(), Scaling::None).ok()?;
    let rows = Prepared::new(&Rows::new(values, d).ok()?, &domain, OutOfBox::Clip).ok()?;
    let epsilon = 1e-4 * sides.iter().map(|side| side * side).sum::<f64>().sqrt();
    let algorithm = match hard {
        false => Algorithm::Fcm { m, epsilon, max_rounds: 100 },
        true => Algorithm::Kmeans { epsilon, max_rounds: 100 },
    };
    let recipe = Recipe {
        clusters: Clusters::exactly(k),
        validity: Validity { full: true, judge_m: m, ..Validity::basic() },
        ..Recipe::plain(algorithm, k, Seeding::Candidates(Candidates::usual(SEED)))
    };
    pooled::run(&mut recipe.run(&domain, 1).ok()?, &rows).ok().map(|outcome| outcome.indices)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The halves of a line are summed up by hand.
    #[test]
    fn the_scale_depends_on_columns_and_clusters() {
        let sure = |k, d| indices(k, &vec![1.0; d], 2.0, true).unwrap().modified_partition_coefficient.unwrap();
        let by_hand = {
            let each = (0..10_000).map(|i| (f64::from(i) + 0.5) / 10_000.0);
            let one = |x: f64| {
                let (a, b) = ((x - 0.25).powi(2), (x - 0.75).powi(2));
                (a * a + b * b) / ((a + b) * (a + b))
            };
            2.0 * each.map(one).sum::<f64>() / 10_000.0 - 1.0
        };
        let (line, four, thirty) = (sure(2, 1), sure(3, 4), sure(3, 30));
        assert!((line - by_hand).abs() < 0.03, "{line} {by_hand}");
        assert!(four < line && thirty < four, "{four} {thirty}");
        // A column without extent is none; units do not count.
        let flat = indices(2, &[5.0, 0.0], 2.0, true).unwrap().modified_partition_coefficient.unwrap();
        assert!((flat - line).abs() < 1e-6, "{flat} {line}");
        let sure = |m| indices(3, &[1.0; 4], m, false).unwrap().modified_partition_coefficient.unwrap();
        assert!(sure(1.2) > sure(2.0) + 0.2, "{} {}", sure(1.2), sure(2.0));
        for (k, d) in [(1, 3), (65, 3), (3, 65), (3, 0)] {
            assert_eq!(indices(k, &vec![1.0; d], 2.0, true), None);
        }
    }
}
