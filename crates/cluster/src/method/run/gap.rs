//! The gap statistic (Tibshirani, Walther & Hastie 2001, J. R. Stat. Soc. B 63): how much tighter the clusters of the rows are than
//! those that the same method finds where there are none.
//!
//! With `W_K` the inertia of K clusters (squared distances to the nearest centre) and `W*_Kb` that of reference b = 1..B,
//!
//! ```text
//! gap(K) = mean_b ln W*_Kb - ln W_K        s(K) = sd_b(ln W*_Kb) sqrt(1 + 1/B)        smallest K: gap(K) >= gap(K+1) - s(K+1)
//! ```
//!
//! The references are rows uniform in the public box, as many as the cohort has (the paper's first variant; its second one turns the
//! box along principal components, which no question asks for). A categorical column has one category, each as likely as another.
//! These rows are then standardised as those of the sites are: only so do they look as rows without clusters do. They hold no data: everybody draws the same
//! ones from the plan's seed, and clusters them with the plan's own method, first centres and restarts, so that both sides of the
//! difference stop in equally good optima. Nothing is asked for it beside the inertia.
//!
//! Of more than [`REFERENCE_ROWS`] rows a reference has that many, and its inertia is scaled up. `s` is then that of the smaller
//! sample, which is larger. The size of the box plays no part, because it shifts the gap of every K alike; its shape does. Rows that are
//! flatter than the box (correlated columns, or some that fill less of their range) look clustered beside it: the gap then grows with K, and
//! the rule may hold for no K of the range. Where such columns are standardised the references are the flatter ones, and the gap falls.
//!
//! *Under noise* `W_K` is the mean of `squares` over the last rounds, each row's cut at the clip, of hard groups and fuzzy ones. So it is in totals
//! that are released anyway, and it moves with one row by the square of the clip and not of the box. The references fill a box that is turned and
//! stretched as the candidates for first centres lie (the paper's second variant). The plan is played over them with its noise, so `s` has
//! the noise in it. The rule is [`Choice::under_noise`](crate::method::Choice::under_noise).

use std::sync::Arc;

use rayon::prelude::*;

use super::super::recipe::{REFERENCE_ROWS, REFERENCES};
use super::Run;
use crate::method::{Choice, Clusters, Pick, Recipe, Scale, SeedPoints, Validity, mechanism};
use crate::offline::kmeans::drawn;
use crate::random::Stream;
use crate::{Domain, Error, OutOfBox, Prepared, Rows, Transform, pooled};

const LABEL: &[u8; 24] = b"veilsum gap reference v1";
/// Rows of a reference under noise at most.
const NOISY_ROWS: u64 = 1_000;

impl Run {
    /// Adds the gap and its `s` to the best restart of every K, where the plan chooses by them.
    pub(super) fn compare_with_references(&mut self) -> Result<(), Error> {
        if self.recipe.choice.by != Pick::Gap || self.best.len() < 2 {
            return Ok(());
        }
        let ks: Vec<u32> = self.best.iter().map(|at| self.members[*at].k).collect();
        let n = self.best.iter().filter_map(|at| self.members[*at].verdict.as_ref()).map(|verdict| verdict.rows).max();
        let (n, all) = (n.unwrap_or(0), Clusters { min: ks[0], max: ks[ks.len() - 1] });
        let (curves, own) = match self.is_noisy() {
            true => (self.noisy_references(n, all)?, self.told()?),
            false => (self.references(n, all)?, self.inertias()),
        };
        for ((place, at), (own, error)) in self.best.clone().into_iter().enumerate().zip(own) {
            let logs: Option<Vec<f64>> = curves.iter().map(|curve| *curve.get(place)?).collect();
            let (Some(logs), Some(verdict)) = (logs, &mut self.members[at].verdict) else { continue };
            let (mean, s) = mean_and_error(&logs);
            let gap = own.map(|own| mean - own.ln()).filter(|gap| gap.is_finite());
            (verdict.indices.gap, verdict.indices.gap_error) = (gap, gap.map(|_| s.hypot(error)));
        }
        Ok(())
    }

    /// The inertia of every K.
    fn inertias(&self) -> Vec<(Option<f64>, f64)> {
        let of = |at: &usize| self.members[*at].verdict.as_ref()?.indices.inertia;
        self.best.iter().map(|at| (of(at), 0.0)).collect()
    }

    /// Logarithms of the inertia of every K over each reference, scaled up to `n` rows.
    fn references(&self, n: u64, clusters: Clusters) -> Result<Vec<Vec<Option<f64>>>, Error> {
        let recipe = Recipe {
            clusters,
            range: None,
            preparation: Scale::None,
            validity: Validity { full: true, judge_m: self.recipe.validity.judge_m, ..Validity::basic() },
            choice: Choice { by: Pick::FuzzyDaviesBouldin, elbow: false },
            ..self.recipe.clone()
        };
        let (public, transform, seed) = (&self.public, self.transform.as_ref(), recipe.seeding.seed());
        let up = (n as f64 / n.clamp(1, REFERENCE_ROWS) as f64).ln();
        let one = |reference: u64| {
            let rows = without_clusters(public, transform, seed.wrapping_add(reference), n.min(REFERENCE_ROWS))?;
            let curve = pooled::run(&mut recipe.run(rows.domain(), 1)?, &rows)?.curve;
            let of = |k: u32| {
                let point = curve.iter().find(|point| point.k == k)?;
                point.indices.inertia.map(|inertia| inertia.ln() + up)
            };
            Ok(clusters.each().map(of).collect())
        };
        (0..REFERENCES).into_par_iter().map(one).collect()
    }

    /// What the last rounds told of the squares of every K, and the part of it that is its noise's deviation.
    fn told(&self) -> Result<Vec<(Option<f64>, f64)>, Error> {
        let Some(levels) = self.recipe.levels(&self.domain)? else { return Ok(Vec::new()) };
        let rounds = self.recipe.algorithm.traits().rounds;
        let last = f64::from(rounds - levels.first_of_last(rounds)).sqrt();
        let of = |at: &usize| {
            let pulled = self.members[*at].iteration.fit().pulled.filter(|pulled| pulled.total > 0.0)?;
            Some((Some(pulled.total), levels.of_round(pulled.clip)[2].deviation * self.excess / last / pulled.total))
        };
        Ok(self.best.iter().map(|at| of(at).unwrap_or((None, 0.0))).collect())
    }

    /// As [`Self::references`], of what the last noisy rounds tell.
    fn noisy_references(&self, n: u64, clusters: Clusters) -> Result<Vec<Vec<Option<f64>>>, Error> {
        let recipe = Recipe { clusters, ..self.recipe.clone() };
        let rows = n.clamp(NOISY_ROWS / 10, NOISY_ROWS);
        let seed = recipe.seeding.seed();
        let (domain, excess) = (&self.domain, self.excess);
        let shape = Lying::of(self.candidates.as_ref(), domain, &self.public);
        let one = |reference: u64| {
            let mut stream = Stream::new(seed.wrapping_add(reference), LABEL);
            let points = shape.rows(rows, &mut stream);
            let weight = n.max(1) as f64 / rows as f64;
            let found = mechanism::squares(&recipe, domain, (excess, seed), (points, weight), &mut stream)?;
            Ok(found.into_iter().map(|square| square.filter(|square| *square > 0.0).map(f64::ln)).collect())
        };
        (0..REFERENCES).into_par_iter().map(one).collect()
    }
}

/// Rows without clusters as noisy totals tell where rows lie: a box turned and stretched to the spread of the candidates for first centres (the
/// paper's second variant), and the shares of categories among them.
struct Lying {
    middle: Vec<f64>,
    /// The lower triangle whose product with itself is the covariance of the numbers, N x N.
    root: Vec<f64>,
    /// Shares of each categorical column, and what a row's own category and all others count.
    categories: Vec<(Vec<f64>, [f64; 2])>,
}

impl Lying {
    /// Of these candidates, in the units of `domain`; of none that hold rows the whole box. The public box knows which columns are categories.
    fn of(candidates: Option<&SeedPoints>, domain: &Domain, public: &Domain) -> Lying {
        let (d, numbers) = (public.columns(), public.numbers());
        let walls: Vec<(f64, f64)> = (0..d).map(|column| domain.working_interval(column)).collect();
        let known = candidates.filter(|candidates| candidates.count() > 0);
        let (mut mean, mut covariance) =
            (walls.iter().map(|(low, high)| (low + high) / 2.0).collect::<Vec<_>>(), vec![0.0; d * d]);
        if let Some(SeedPoints { weights, points, .. }) = known {
            let all: f64 = weights.iter().sum();
            let of =
                |column: usize| points.rows().zip(weights).map(|(x, weight)| weight * x[column]).sum::<f64>() / all;
            mean = (0..d).map(of).collect();
            for (x, weight) in points.rows().zip(weights) {
                for (at, entry) in covariance.iter_mut().enumerate() {
                    *entry += weight / all * (x[at / d] - mean[at / d]) * (x[at % d] - mean[at % d]);
                }
            }
        }
        let spread = |column: usize| match known {
            Some(known) => known.deviations[column],
            None => (walls[column].1 - walls[column].0) / 12f64.sqrt(),
        };
        (0..numbers).for_each(|column| {
            let entry = &mut covariance[column * d + column];
            *entry = entry.max(spread(column).powi(2));
        });
        let mut root = vec![0.0; numbers * numbers];
        for i in 0..numbers {
            for j in 0..=i {
                let done: f64 = (0..j).map(|l| root[i * numbers + l] * root[j * numbers + l]).sum();
                let left = covariance[i * d + j] - done;
                root[i * numbers + j] = match (i == j, root[j * numbers + j]) {
                    (true, _) => left.max(0.0).sqrt(),
                    (false, 0.0) => 0.0,
                    (false, pivot) => left / pivot,
                };
            }
        }
        let mut at = numbers;
        let of_column = |count: &usize| {
            let columns = at..at + count;
            at += count;
            let (low, high) = walls[columns.start];
            (columns.map(|column| ((mean[column] - low) / (high - low)).max(1e-9)).collect(), [high, low])
        };
        let categories = public.categories().iter().map(of_column).collect();
        Lying { middle: mean[..numbers].to_vec(), root, categories }
    }

    /// So many rows.
    fn rows(&self, rows: u64, stream: &mut Stream) -> Vec<f64> {
        let n = self.middle.len();
        let mut values = Vec::new();
        for _ in 0..rows {
            let sides: Vec<f64> = (0..n).map(|_| (2.0 * stream.unit() - 1.0) * 3f64.sqrt()).collect();
            values.extend(
                self.middle
                    .iter()
                    .enumerate()
                    .map(|(i, middle)| middle + (0..=i).map(|j| self.root[i * n + j] * sides[j]).sum::<f64>()),
            );
            for (shares, [one, none]) in &self.categories {
                let own = drawn(shares, stream.unit() * shares.iter().sum::<f64>());
                values.extend((0..shares.len()).map(|at| if at == own { *one } else { *none }));
            }
        }
        values
    }
}

/// So many rows without clusters, in the units of the questions.
fn without_clusters(
    public: &Domain,
    transform: Option<&Transform>,
    seed: u64,
    rows: u64,
) -> Result<Arc<Prepared>, Error> {
    let d = public.columns();
    let mut stream = Stream::new(seed, LABEL);
    let mut values = Vec::with_capacity(rows as usize * d);
    for _ in 0..rows {
        let numbers = public.lower().iter().zip(public.upper()).take(public.numbers());
        values.extend(numbers.map(|(low, high)| low + stream.unit() * (high - low)));
        for count in public.categories() {
            let own = stream.below(*count as u64) as usize;
            values.extend((0..*count).map(|at| if at == own { 1.0 } else { 0.0 }));
        }
    }
    let rows = Prepared::new(&Rows::new(values, d)?, public, OutOfBox::Clip)?;
    let Some(transform) = transform else { return Ok(Arc::new(rows)) };
    rows.transformed(transform)
}

/// The mean, and `sd sqrt(1 + 1/B)` with the deviation of B numbers around it.
fn mean_and_error(logs: &[f64]) -> (f64, f64) {
    let b = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / b;
    let variance = logs.iter().map(|log| (log - mean) * (log - mean)).sum::<f64>() / b;
    (mean, (variance * (1.0 + 1.0 / b)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scaling;

    fn mean(rows: &Rows, of: impl Fn(&[f64]) -> f64) -> f64 {
        rows.iter().map(of).sum::<f64>() / rows.len() as f64
    }

    /// Under noise they lie as the candidates do, and have one category of each column, in standardised units, too.
    #[test]
    fn noisy_references_lie_as_the_candidates_do() {
        let ones = [vec![0.5; 2]];
        let public = Domain::mixed(vec![0.0; 2], vec![10.0; 2], Scaling::Box, &ones).unwrap();
        let standardised = Transform { shift: vec![0.5, 0.5, 0.0, 0.0], ..Transform::identity(&public) };
        let (weights, deviations, margins) = (vec![300.0, 100.0], vec![0.1; 4], Vec::new());
        for (domain, shift) in [(public.clone(), 0.0), (standardised.domain(&public).unwrap(), 0.5)] {
            let places = [[0.4, 0.4, 0.5, 0.0], [0.6, 0.6, 0.0, 0.5]];
            let places = places.map(|[a, b, c, d]| vec![a - shift, b - shift, c, d]);
            let points = crate::Centres::from_rows(&places).unwrap();
            let known = SeedPoints {
                weights: weights.clone(),
                points,
                deviations: deviations.clone(),
                margins: margins.clone(),
            };
            let lying = Lying::of(Some(&known), &domain, &public);
            let rows = Rows::new(lying.rows(4_000, &mut Stream::new(1, LABEL)), 4).unwrap();
            assert!(rows.iter().all(|row| row[2] + row[3] == 0.5 && (row[2] == 0.0 || row[3] == 0.0)));
            assert!((mean(&rows, |row| row[2] / 0.5) - 0.75).abs() < 0.03);
            assert!((mean(&rows, |row| row[0]) - (0.45 - shift)).abs() < 0.01);
            let of = |a: usize, b: usize| mean(&rows, |row| (row[a] + shift - 0.45) * (row[b] + shift - 0.45));
            assert!((of(0, 0) - 0.01).abs() < 0.001 && (of(0, 1) - 0.0075).abs() < 0.001, "{} {}", of(0, 0), of(0, 1));
        }
    }
}
