//! What each column has to do with the clusters, from totals that a run asks anyway.

use serde::{Deserialize, Serialize};

use crate::Centres;
use crate::validity::Verdict;

/// The columns beside the clusters. Squares are those of the distances that the method compared, so a column that counts much there
/// has a large part of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Each column's part of the squares between clusters, d, which add up to 1; empty if the clusters lie in one place.
    pub between: Vec<f64>,
    /// Each column's part of the squares of all rows around their mean, d; empty if the plan asks for no sums of coordinates.
    pub total: Vec<f64>,
    /// The part of a column's own squares that lies between clusters, d, from 0 to 1; likewise.
    pub explained: Vec<f64>,
    /// Mean of every column over all rows, d; likewise. Units of the questions until [`Profile::stretched`].
    pub means: Vec<f64>,
    /// Standard deviation of every column over all rows, divisor N, d; likewise.
    pub deviations: Vec<f64>,
    /// The part of a column's squares between clusters that is one cluster's, and that cluster, d; empty where `between` is.
    pub largest: Vec<(usize, f64)>,
}

impl Profile {
    /// Of the totals of a validation at these centres (K x d, units of the questions). `None` if somebody else judged.
    pub(crate) fn of(centres: &Centres, verdict: &Verdict) -> Option<Self> {
        let held = &verdict.held;
        let hard = verdict.clusters.as_ref().zip(held.deviations.as_ref());
        let (places, weights) = match (&verdict.clusters, &held.rows) {
            (Some(clusters), _) => (&clusters.means, &clusters.rows),
            (None, Some(rows)) => (centres, rows),
            (None, None) => (centres, &held.mass),
        };
        let (d, n) = (centres.columns(), weights.iter().sum::<f64>());
        if weights.len() != centres.k() || n <= 0.0 {
            return None;
        }
        let (mut profile, means, between) = Self::apart(places, weights);
        if let Some((clusters, deviations)) = hard {
            // Deviations are around the centres; around the mean of its rows a cluster has less, by the shift theorem.
            let inside = |column: usize| {
                let each = deviations.iter().enumerate().map(|(k, of)| {
                    let moved = clusters.means.row(k)[column] - centres.row(k)[column];
                    clusters.rows[k] * (of[column].powi(2) - moved.powi(2)).max(0.0)
                });
                each.sum::<f64>()
            };
            let total: Vec<f64> = (0..d).map(|column| inside(column) + between[column]).collect();
            profile.explained =
                total.iter().zip(&between).map(|(all, part)| if *all > 0.0 { part / all } else { 0.0 }).collect();
            profile.deviations = total.iter().map(|all| (all / n).sqrt()).collect();
            (profile.total, profile.means) = (parts(&total), means);
        }
        Some(profile)
    }

    /// What lies between clusters at these places that hold so much: the profile, means and squares by column.
    pub(crate) fn apart(places: &Centres, weights: &[f64]) -> (Self, Vec<f64>, Vec<f64>) {
        let (d, n) = (places.columns(), weights.iter().sum::<f64>());
        let over = |column: usize, of: &dyn Fn(f64) -> f64| -> Vec<f64> {
            places.rows().zip(weights).map(|(row, weight)| weight * of(row[column])).collect()
        };
        let means: Vec<f64> = (0..d).map(|column| over(column, &|x| x).iter().sum::<f64>() / n).collect();
        let apart: Vec<Vec<f64>> = (0..d).map(|column| over(column, &|x| (x - means[column]).powi(2))).collect();
        let between: Vec<f64> = apart.iter().map(|squares| squares.iter().sum()).collect();
        let largest = apart.iter().zip(&between).map(|(squares, all)| {
            let most = (0..squares.len()).max_by(|a, b| squares[*a].total_cmp(&squares[*b])).unwrap_or(0);
            (most, if *all > 0.0 { squares[most] / all } else { 0.0 })
        });
        let mut profile = Self { largest: largest.collect(), between: parts(&between), ..Self::default() };
        if profile.between.is_empty() {
            profile.largest.clear();
        }
        (profile, means, between)
    }

    /// The same with means and deviations in other units: `to` gives a point's, and a deviation is multiplied by its column's factor.
    #[must_use]
    pub fn stretched(mut self, to: impl Fn(&[f64]) -> Option<Vec<f64>>, by: &[f64]) -> Self {
        match to(&self.means) {
            Some(means) if !self.means.is_empty() => self.means = means,
            _ => self.means.clear(),
        }
        self.deviations.iter_mut().zip(by).for_each(|(deviation, factor)| *deviation *= factor);
        self
    }
}

/// Parts of their sum; nothing if there is none.
fn parts(of: &[f64]) -> Vec<f64> {
    let all: f64 = of.iter().sum();
    if all > 0.0 && all.is_finite() { of.iter().map(|part| part / all).collect() } else { Vec::new() }
}

/// How likely one of `d` columns has this part of the squares between K clusters or more, if the clusters lie in all directions
/// alike: K - 1 directions share the squares, so a column's part has the beta distribution of (K - 1)/2 and (K - 1)(d - 1)/2. At
/// most 1, by the sum over columns.
pub(crate) fn by_chance(part: f64, k: usize, d: usize) -> f64 {
    if k < 2 || d < 2 {
        return 1.0;
    }
    // With x the square of a sine the density has no pole for K = 2.
    let powers = ((k - 2) as f64, ((k - 1) * (d - 1)) as f64 - 1.0);
    let density = |angle: f64| angle.sin().powf(powers.0) * angle.cos().powf(powers.1);
    let sum = |from: f64| {
        const STEPS: usize = 2_000;
        let step = (std::f64::consts::FRAC_PI_2 - from) / STEPS as f64;
        (0..STEPS).map(|at| density(from + (at as f64 + 0.5) * step) * step).sum::<f64>()
    };
    (d as f64 * sum(part.clamp(0.0, 1.0).sqrt().asin()) / sum(0.0)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Validation;
    use crate::validity::Geometry;
    use crate::{Batch, Domain, Prepared, Query, Scaling, pooled};

    /// Against the sums over the rows themselves.
    #[test]
    fn squares_are_those_of_the_rows() {
        let rows = [[0.0, 0.1], [0.2, 0.0], [0.1, 0.2], [0.9, 0.3], [1.0, 0.1], [0.8, 0.4], [0.95, 0.25]];
        let domain = Domain::new(vec![0.0; 2], vec![1.0; 2], Scaling::Box).unwrap();
        let centres = Centres::from_rows(&[vec![0.15, 0.1], vec![0.85, 0.3]]).unwrap();
        let site = [Prepared::known(&rows.concat(), &domain)];
        let profile = |centres: &Centres, query: Query| {
            let totals = pooled::totals(&Batch::from(query.clone()), &site).unwrap();
            let verdict = query.verdict(Geometry::of(centres), &totals.values, totals.rows).unwrap();
            Profile::of(centres, &verdict).unwrap()
        };
        let found = profile(&centres, Validation { centres: centres.clone(), m: 2.0, vectors: true }.into());
        let mean =
            |rows: &[[f64; 2]], column: usize| rows.iter().map(|row| row[column]).sum::<f64>() / rows.len() as f64;
        let squares =
            |rows: &[[f64; 2]], at: f64, column: usize| rows.iter().map(|row| (row[column] - at).powi(2)).sum::<f64>();
        let (first, second) = rows.split_at(3);
        let total: Vec<f64> = (0..2).map(|j| squares(&rows, mean(&rows, j), j)).collect();
        let within: Vec<f64> =
            (0..2).map(|j| squares(first, mean(first, j), j) + squares(second, mean(second, j), j)).collect();
        let all = total.iter().sum::<f64>();
        let between = all - within.iter().sum::<f64>();
        for j in 0..2 {
            let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{j}: {a} {b}");
            near(found.total[j], total[j] / all);
            near(found.between[j], (total[j] - within[j]) / between);
            near(found.explained[j], (total[j] - within[j]) / total[j]);
            near(found.means[j], mean(&rows, j));
            near(found.deviations[j], (total[j] / 7.0).sqrt());
        }
        // Of masses alone, what lies between the centres.
        let found = profile(&centres, Query::fuzzy_validation(centres.clone(), 2.0));
        assert!((found.between[0] - 0.49 / 0.53).abs() < 1e-12 && found.total.is_empty() && found.means.is_empty());
        let one = Centres::from_rows(&[vec![0.5, 0.5]]).unwrap();
        let found = profile(&one, Query::fuzzy_validation(one.clone(), 2.0));
        assert!(found.between.is_empty(), "one cluster has nothing between");
    }

    #[test]
    fn chance_is_that_of_the_beta_distribution() {
        // K = 3 in d columns: Beta(1, d - 1), whose tail is (1 - x)^(d - 1).
        for (part, d) in [(0.5, 4), (0.9, 2), (0.3, 30)] {
            let tail = (d as f64 * (1.0_f64 - part).powi(d - 1)).min(1.0);
            assert!((by_chance(part, 3, d as usize) - tail).abs() < 1e-4, "{part} {d}");
        }
        // K = 2 in two columns: the arcsine distribution.
        let tail = 2.0 * (1.0 - 2.0 / std::f64::consts::PI * 0.99_f64.sqrt().asin());
        assert!((by_chance(0.99, 2, 2) - tail).abs() < 1e-4);
        assert_eq!((by_chance(1.0, 2, 1), by_chance(1.0, 1, 5)), (1.0, 1.0));
    }
}
