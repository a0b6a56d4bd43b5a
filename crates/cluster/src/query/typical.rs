//! Sums of fuzzy c-means with other memberships, in which rows far from every centre have little weight: the noise cluster
//! (Davé 1991) and possibilistic c-means (Krishnapuram & Keller 1993).

use serde::{Deserialize, Serialize};

use super::family::{Block, Family, Sensitivity, fuzzy_centres};
use crate::kernel::{Form, Sums};
use crate::scale::farthest;
use crate::{Centres, Domain, Error, Prepared, Rows, distance, kernel};

/// Distances above this leave the range in which bounds are kept.
const MOST_DISTANCE: f64 = 1e150;

/// `Σ u_k^m x` (K x d) and `Σ u_k^m` (K). With δ the distance and `d_k = ||x - c_k||`, under [`Typicality::Noise`]
/// `u_k = d_k^(-2/(m-1)) / (Σ_j d_j^(-2/(m-1)) + δ^(-2/(m-1)))`, and under [`Typicality::Possibilistic`]
/// `u_k = 1 / (1 + (d_k / δ)^(2/(m-1)))`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TypicalSums {
    /// Current centres, K x d.
    pub centres: Centres,
    /// Fuzzifier, m > 1.
    pub m: f64,
    /// δ, > 0, units of the question.
    pub distance: f64,
    /// What a row's memberships are.
    pub typicality: Typicality,
}

/// How a row that is far from every centre loses its weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Typicality {
    /// To one cluster more, at the same distance from all rows.
    Noise,
    /// By every cluster for itself.
    Possibilistic,
}

/// What a row's memberships are where rows far from every centre lose their weight.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Typical {
    /// δ, > 0, units of the question.
    pub distance: f64,
    /// How they lose it.
    pub typicality: Typicality,
}

impl Typical {
    /// Whether the distance can be used.
    pub(super) fn check(self) -> Result<(), Error> {
        if self.distance > 0.0 && self.distance <= MOST_DISTANCE {
            return Ok(());
        }
        Err(Error::Question { what: "the distance of noise or of typical rows must be above 0" })
    }

    /// Memberships of a row, K; returns that in the noise cluster, 0 if there is none.
    pub(super) fn shares(self, x: &[f64], centres: &Centres, m: f64, u: &mut [f64]) -> f64 {
        let exponent = 2.0 / (m - 1.0);
        u.iter_mut().zip(centres.rows()).for_each(|(u, centre)| *u = distance::euclidean(x, centre));
        if self.typicality == Typicality::Possibilistic {
            u.iter_mut().for_each(|u| *u = 1.0 / (1.0 + (*u / self.distance).powf(exponent)));
            return 0.0;
        }
        let nearest = u.iter().fold(self.distance, |a, b| a.min(*b));
        // A row that is a centre belongs to it, or to all centres there alike.
        let share =
            |far: f64| if nearest > 0.0 { (nearest / far).powf(exponent) } else { f64::from(u8::from(far == 0.0)) };
        u.iter_mut().for_each(|u| *u = share(*u));
        let noise = share(self.distance);
        let sum = u.iter().sum::<f64>() + noise;
        u.iter_mut().for_each(|u| *u /= sum);
        noise / sum
    }
}

impl Typicality {
    /// The largest Euclidean norm of what one row's memberships to the power of m, any m > 1, in so many clusters can be.
    pub(super) fn most(self, k: usize) -> f64 {
        match self {
            Self::Noise => 1.0,
            Self::Possibilistic => (k as f64).sqrt(),
        }
    }
}

impl TypicalSums {
    fn typical(&self) -> Typical {
        Typical { distance: self.distance, typicality: self.typicality }
    }

    /// Memberships of n rows (n x d, units of the question) in K clusters, row by row: n x K, and under [`Typicality::Noise`]
    /// n x (K + 1), where the last one is that in the noise cluster and those of a row add up to 1.
    ///
    /// # Errors
    /// [`Error::ColumnMismatch`].
    pub fn memberships(&self, rows: &Rows) -> Result<Vec<f64>, Error> {
        let (k, d) = (self.centres.k(), self.centres.columns());
        if rows.columns() != d {
            return Err(Error::ColumnMismatch { expected: d, found: rows.columns() });
        }
        let shares = k + usize::from(self.typicality == Typicality::Noise);
        let mut all = vec![0.0; rows.len() * shares];
        for (row, u) in rows.iter().zip(all.chunks_exact_mut(shares)) {
            let (u, rest) = u.split_at_mut(k);
            let noise = self.typical().shares(row, &self.centres, self.m, u);
            rest.fill(noise);
        }
        Ok(all)
    }
}

impl Family for TypicalSums {
    fn check(&self, domain: &Domain) -> Result<(), Error> {
        self.typical().check()?;
        fuzzy_centres(&self.centres, self.m, domain)
    }

    fn layout(&self, domain: &Domain) -> Vec<Block> {
        let k = self.centres.k();
        vec![
            Block::per_row("weighted_sums", k * self.centres.columns(), domain.largest()),
            Block::per_row("weights", k, 1.0),
        ]
    }

    fn answer<'f>(&self, rows: &Prepared, form: &'f Form) -> Result<Sums<'f>, Error> {
        let (k, d) = (self.centres.k(), self.centres.columns());
        Ok(kernel::each_row(rows.packed(), form, k * d + k, |x, sums| {
            let mut u = vec![0.0; k];
            self.typical().shares(x, &self.centres, self.m, &mut u);
            let (sums, weights) = sums.split_at_mut(k * d);
            for ((u, sums), total) in u.iter().zip(sums.chunks_exact_mut(d)).zip(weights) {
                let weight = distance::power(*u, self.m);
                *total += weight;
                sums.iter_mut().zip(x).for_each(|(sum, x)| *sum += weight * x);
            }
        }))
    }

    /// Possibilistic memberships do not add up to 1: each may be 1.
    fn sensitivity(&self, domain: &Domain) -> Option<Sensitivity> {
        let most = self.typicality.most(self.centres.k());
        Some(Sensitivity::Blocks(vec![most * farthest(domain), most]))
    }
}
