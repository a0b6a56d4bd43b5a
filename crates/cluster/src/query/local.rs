//! Sums of local centres: what FFCM, FKM and exact k-means need from a site.

use serde::{Deserialize, Serialize};

use super::family::{Block, Family, ShowsRows, fuzzy_centres, reaches};
use crate::kernel::{self, Assigned, Form, HardSums, Sums};
use crate::{Centres, Domain, Error, Packed, Prepared, distance, refuse};

/// Steps of a site's own iteration at most; each costs one pass over its rows.
const MAX_STEPS: u32 = 1000;

/// A weight below this gives no centre: the quotient of two such sums has no correct digit to spare.
const CLEAR: f64 = 1e-250;

/// How far a site iterates on its own.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LocalSteps {
    /// Steps at most; 1 to 1000.
    pub most: u32,
    /// Stop earlier when the memberships (fuzzy: Frobenius norm of U' - U) or the centres (hard: Frobenius norm) change
    /// less; 0 makes all steps, except that hard steps stop when nothing moves.
    pub epsilon: f64,
}

/// What a local centre contributes to a total.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pull {
    /// `W_k c_k` and `W_k`, by index, `W_k = sum_j u_jk` at the local centres (the authors' code for avg1).
    Memberships,
    /// As before with `W_k = sum_j u_jk^m` of the memberships that gave the centres (avg1 as printed, Eq. 7).
    Powers,
    /// Each local centre counts 1 at the nearest global centre (avg2).
    Nearest,
}

/// Local fuzzy c-means from the global centres; sums of what comes out.
///
/// Blocks, in this order: `weights` (K), `sums` of weight times local centre (K x d); for [`Pull::Nearest`] also `distances`, the
/// sum of squared distances of local centres to the global ones they count at (1).
///
/// A local centre to which no row gives weight stays where it began, outside the rows perhaps. It says nothing about them and
/// counts nowhere; so a site without rows contributes zeros, and everything that counts lies in the box. (The papers count
/// all K local centres under avg2. So does this as long as weights stay in the range of `f64`: always at m = 2.)
///
/// A site that iterates and has fewer rows than K contributes zeros too: each row would draw a centre onto itself, and rounding would
/// say which centres are left over, and where.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LocalFuzzy {
    /// Global centres, K x d.
    pub centres: Centres,
    /// Fuzzifier, m > 1.
    pub m: f64,
    /// The site's own iteration.
    pub local: LocalSteps,
    /// What counts.
    pub pull: Pull,
}

/// Local Lloyd steps from the global centres; sums of the groups that come out.
///
/// A group is the rows nearest to one local centre (ties to the lowest index), counted BEFORE its mean is taken, so that
/// size times mean is the exact sum of its rows. Groups below `min_rows` are left out by the site. A centre without rows
/// stays; with `nearest` the global centres to which no row is nearest are left out of the site's iteration altogether.
///
/// Blocks, in this order: `rows` (K), `sums` of their values (K x d), `distances`, the sum of squared distances of the rows
/// counted to the local centre that they belonged to in the last step (1).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LocalMeans {
    /// Global centres, K x d.
    pub centres: Centres,
    /// The site's own iteration; one step is exact federated Lloyd.
    pub local: LocalSteps,
    /// Groups smaller than this are not sent (FKM's p), >= 1.
    pub min_rows: u64,
    /// A group counts at the global centre nearest to its mean (FKM), not at the one of its index (k-means).
    pub nearest: bool,
}

impl Family for LocalFuzzy {
    fn check(&self, domain: &Domain) -> Result<(), Error> {
        fuzzy_centres(&self.centres, self.m, domain)?;
        self.local.check()
    }

    fn layout(&self, domain: &Domain) -> Vec<Block> {
        let (k, d, largest) = (self.centres.k(), domain.columns(), domain.largest());
        if self.pull != Pull::Nearest {
            // A row adds at most 1 to a weight, and a local centre is a weighted mean of rows.
            return vec![Block::per_row("weights", k, 1.0), Block::per_row("sums", k * d, largest)];
        }
        // All K local centres of a site may count at one global centre, each no farther away than from any other.
        let (all, (_, nearest)) = (k as f64, reaches(&self.centres, domain));
        vec![
            Block::per_site("weights", k, all),
            Block::per_site("sums", k * d, all * largest),
            Block::per_site("distances", 1, all * (nearest * nearest)),
        ]
    }

    fn answer<'f>(&self, rows: &Prepared, form: &'f Form) -> Result<Sums<'f>, Error> {
        let (k, d) = (self.centres.k(), self.centres.columns());
        let mut found = Found::nothing(k, d);
        if rows.len() >= if self.local.most > 1 { k } else { 1 } {
            let (centres, sums) = self.iterate(rows.packed())?;
            match self.pull {
                Pull::Powers => (found.weights, found.sums) = (sums.weights, sums.weighted_sums),
                Pull::Memberships => {
                    let validation = kernel::fuzzy_validation(rows.packed(), &centres, self.m)?;
                    for (c, weight) in validation.memberships.iter().enumerate().filter(|(c, _)| sums.weights[*c] > 0.0)
                    {
                        found.add(c, *weight, centres.row(c).iter().map(|x| weight * x));
                    }
                }
                Pull::Nearest => {
                    for (centre, _) in centres.rows().zip(&sums.weights).filter(|(_, weight)| **weight > 0.0) {
                        let (near, square) = distance::nearest(centre, self.centres.rows());
                        found.add(near, 1.0, centre.iter().copied());
                        found.distance += square;
                    }
                }
            }
        }
        let distance = (self.pull == Pull::Nearest).then_some(found.distance);
        Ok(form.whole(found.weights.into_iter().chain(found.sums).chain(distance).collect()))
    }

    fn shows_rows(&self) -> Option<ShowsRows> {
        (self.pull != Pull::Nearest).then_some(ShowsRows { block: "weights", blocks: None })
    }
}

impl LocalFuzzy {
    /// Centres from memberships, memberships from centres, until the memberships rest: the last centres, and the sums of the memberships that
    /// gave them, which are 0 for a centre that stayed.
    fn iterate(&self, rows: &Packed) -> Result<(Centres, kernel::FuzzySums), Error> {
        let d = self.centres.columns();
        let mut centres = self.centres.clone();
        let mut step = 0;
        loop {
            let mut sums = kernel::fuzzy_sums(rows, &centres, self.m)?;
            let mut values = centres.as_slice().to_vec();
            let clusters = values.chunks_exact_mut(d).zip(sums.weighted_sums.chunks_exact_mut(d));
            for ((centre, sum), weight) in clusters.zip(&mut sums.weights) {
                if *weight > CLEAR && sum.iter().all(|total| (total / *weight).is_finite()) {
                    centre.iter_mut().zip(sum).for_each(|(coordinate, total)| *coordinate = *total / *weight);
                } else {
                    *weight = 0.0;
                    sum.fill(0.0);
                }
            }
            let next = Centres::finite(d, &values);
            step += 1;
            // Equal centres give equal memberships for ever; the norm is computed only where it decides.
            let over = step >= self.local.most
                || next == centres
                || (self.local.epsilon > 0.0
                    && kernel::membership_shift(rows, &centres, &next, self.m)? < self.local.epsilon);
            centres = next;
            if over {
                return Ok((centres, sums));
            }
        }
    }
}

impl Family for LocalMeans {
    fn check(&self, domain: &Domain) -> Result<(), Error> {
        domain.same_columns(self.centres.columns())?;
        self.local.check()?;
        refuse(self.min_rows == 0, || Error::Question("a group of no rows cannot be sent"))
    }

    fn layout(&self, domain: &Domain) -> Vec<Block> {
        let (_, nearest) = reaches(&self.centres, domain);
        let first = nearest * nearest;
        // From the second step on there is a local centre among the site's own rows.
        let distance = if self.local.most > 1 { first.max(domain.diameter().powi(2)) } else { first };
        let k = self.centres.k();
        vec![
            Block::per_row("rows", k, 1.0),
            Block::per_row("sums", k * domain.columns(), domain.largest()),
            Block::per_row("distances", 1, distance),
        ]
    }

    /// One exact step counts and sums up a row in one cluster. What a site finds by steps of its own may move by any amount.
    fn answer<'f>(&self, rows: &Prepared, form: &'f Form) -> Result<Sums<'f>, Error> {
        let (k, d) = (self.centres.k(), self.centres.columns());
        if self.is_exact() {
            return self.lloyd(rows.packed(), form);
        }
        let mut found = Found::nothing(k, d);
        if !rows.is_empty() {
            let groups = self.iterate(rows.packed())?;
            for (c, (count, sum)) in groups.counts.iter().zip(groups.sums.chunks_exact(d)).enumerate() {
                if *count < self.min_rows as f64 || *count == 0.0 {
                    continue;
                }
                let at = if self.nearest {
                    let mean: Vec<f64> = sum.iter().map(|total| total / count).collect();
                    distance::nearest(&mean, self.centres.rows()).0
                } else {
                    c
                };
                found.add(at, *count, sum.iter().copied());
                found.distance += groups.squares[c];
            }
        }
        let Found { weights, sums, distance } = found;
        Ok(form.whole(weights.into_iter().chain(sums).chain([distance]).collect()))
    }

    fn shows_rows(&self) -> Option<ShowsRows> {
        Some(ShowsRows { block: "rows", blocks: None })
    }
}

impl LocalMeans {
    /// Whether a round of it is a step of exact Lloyd.
    pub(super) fn is_exact(&self) -> bool {
        self.local.most == 1 && self.min_rows == 1 && !self.nearest
    }

    /// One step of exact Lloyd.
    fn lloyd<'f>(&self, rows: &Packed, form: &'f Form) -> Result<Sums<'f>, Error> {
        let (k, d) = (self.centres.k(), self.centres.columns());
        let add = |row: &Assigned<'_>, sums: &mut Sums<'f>| {
            sums.add(row.own, 1.0);
            row.add_to(sums, k + row.own * d);
            sums.add(k * (d + 1), row.square);
        };
        kernel::over_nearest(rows, &self.centres, form, k * (d + 1) + 1, add)
    }

    /// Groups of the last step.
    fn iterate(&self, rows: &Packed) -> Result<HardSums, Error> {
        let d = self.centres.columns();
        let mut centres = self.centres.clone();
        let mut groups = kernel::hard_sums(rows, &centres)?;
        for step in 1..self.local.most {
            let keep = |c: &usize| groups.counts[*c] > 0.0 || !(self.nearest && step == 1);
            let mut values = Vec::with_capacity(centres.as_slice().len());
            let mut moved = 0.0;
            for c in (0..centres.k()).filter(keep) {
                let (count, sum) = (groups.counts[c], &groups.sums[c * d..(c + 1) * d]);
                for (old, total) in centres.row(c).iter().zip(sum) {
                    let new = if count > 0.0 { total / count } else { *old };
                    moved += (new - old) * (new - old);
                    values.push(new);
                }
            }
            // Groups belong to the centres they were counted at; a last step that moves nothing changes none.
            if moved == 0.0 || moved.sqrt() < self.local.epsilon {
                break;
            }
            centres = Centres::finite(d, &values);
            groups = kernel::hard_sums(rows, &centres)?;
        }
        Ok(groups)
    }
}

impl LocalSteps {
    /// One step.
    pub const ONE: Self = Self { most: 1, epsilon: 0.0 };
    /// As many as there may be, until hardly anything changes.
    pub const TO_CONVERGENCE: Self = Self { most: MAX_STEPS, epsilon: 1e-4 };

    /// 1 to 1000 steps, and a usable epsilon.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let (steps, rests) = ((1..=MAX_STEPS).contains(&self.most), self.epsilon.is_finite() && self.epsilon >= 0.0);
        refuse(!steps, || Error::Question("a site's own iteration takes 1 to 1000 steps"))?;
        refuse(!rests, || Error::Question("epsilon of a site's own iteration must be finite, 0 or above"))
    }
}

/// What a site adds to the totals of all clusters.
struct Found {
    weights: Vec<f64>,
    sums: Vec<f64>,
    distance: f64,
}

impl Found {
    fn nothing(k: usize, d: usize) -> Self {
        Self { weights: vec![0.0; k], sums: vec![0.0; k * d], distance: 0.0 }
    }

    fn add(&mut self, cluster: usize, weight: f64, sum: impl ExactSizeIterator<Item = f64>) {
        let d = sum.len();
        self.weights[cluster] += weight;
        self.sums[cluster * d..(cluster + 1) * d].iter_mut().zip(sum).for_each(|(total, x)| *total += x);
    }
}

#[cfg(test)]
mod tests;
