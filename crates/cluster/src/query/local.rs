//! Sums of local centres: what FFCM, FKM, Kumar and exact k-means need from a site.

use serde::{Deserialize, Serialize};

use super::family::{Block, Family, RoundHalf, ShowsRows, SinceCentres, Stage, fuzzy_centres, same_columns};
use crate::kernel::{self, Assigned, Bounds, Form, HardSums, Sums};
use crate::random::Stream;
use crate::{AnswerError, Centres, Domain, Packed, Prepared, QueryError, distance};

/// Steps of a site's own iteration at most; each costs one pass over its rows.
const MAX_STEPS: u32 = 1000;

/// Columns from which on bounds pay where every row's distance is asked for, too: with 2 and 4 the plain pass took 0.8 to 1.4 of their
/// time on most rows, with 8 and 16 it took 1.0 to 2.4. Counts and sums alone always gain.
const LEAST_COLUMNS: usize = 8;

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
/// Blocks, in this order: `weights` (K), `sums` of weight times local centre (K x d); for [`Pull::Nearest`] also `sites`, the
/// number of sites that contribute to each cluster (K), and `distances`, the sum of squared distances of local centres to
/// the global ones they count at (1). [`RoundHalf::Counts`] has `weights` and `sites` (`weights` alone where there are no sites),
/// [`RoundHalf::Sums`] `weights` and `sums` of the clusters listed: the weights come again, so that a mean is made from one cohort.
///
/// A local centre to which no row gives weight stays where it began, outside the rows perhaps. It says nothing about them and
/// counts nowhere; so a site without rows contributes zeros, and everything that counts lies in the box. (The papers count
/// all K local centres under avg2. So does this as long as weights stay in the range of `f64`: always at m = 2.)
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
    /// Which half.
    pub part: RoundHalf,
}

/// Local Lloyd steps from the global centres; sums of the groups that come out.
///
/// A group is the rows nearest to one local centre (ties to the lowest index), counted BEFORE its mean is taken, so that
/// size times mean is the exact sum of its rows. Groups below `min_rows` are left out by the site. A centre without rows
/// stays; with `nearest` the global centres to which no row is nearest are left out of the site's iteration altogether.
///
/// Blocks, in this order: `rows` (K), `sums` of their values (K x d), `sites` that contribute (K), `distances`, the sum of
/// squared distances of the rows counted to the local centre that they belonged to in the last step (1). [`RoundHalf::Counts`] has
/// `rows` and `sites`, [`RoundHalf::Sums`] `rows` and `sums` of the clusters listed, [`RoundHalf::Changes`] `rows`, `sites` and `changed`,
/// the rows that are in the cluster and were not when its sum was asked last, or the other way round (K; 0 where it never was).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LocalMeans {
    /// Global centres, K x d.
    pub centres: Centres,
    /// The site's own iteration; one step is exact federated Lloyd.
    pub local: LocalSteps,
    /// Groups smaller than this are not sent (FKM's p), >= 1.
    pub min_rows: u64,
    /// A group counts at the global centre nearest to its mean (FKM), not at the one of its index (k-means, Kumar).
    pub nearest: bool,
    /// Which half.
    pub part: RoundHalf,
}

impl Family for LocalFuzzy {
    fn stage(&self) -> Stage {
        Stage::Iterating
    }

    fn check(&self, domain: &Domain) -> Result<(), QueryError> {
        fuzzy_centres(&self.centres, self.m, domain)?;
        self.local.check()?;
        self.part.check(self.centres.k())
    }

    fn layout(&self, domain: &Domain) -> Vec<Block> {
        let k = self.centres.k();
        let largest = domain.largest();
        if self.pull != Pull::Nearest {
            // A row adds at most 1 to a weight, and a local centre is a weighted mean of rows.
            let shape =
                Shape { weights: ("weights", 1.0), sums: largest, per_site: false, sites: false, distance: None };
            return shape.blocks(&self.part, k, domain.columns());
        }
        // All K local centres of a site may count at one global centre, each no farther away than from any other.
        let all = k as f64;
        let distance = Some(all * nearest_reach(&self.centres, domain));
        Shape { weights: ("weights", all), sums: all * largest, per_site: true, sites: true, distance }.blocks(
            &self.part,
            k,
            domain.columns(),
        )
    }

    fn answer<'f>(&self, rows: &Prepared, form: &'f Form, _: Option<&mut Stream>) -> Result<Sums<'f>, AnswerError> {
        let (k, d) = (self.centres.k(), self.centres.columns());
        let mut found = Found::nothing(k, d);
        if !rows.is_empty() {
            let local = self.iterate(rows.packed())?;
            match self.pull {
                Pull::Powers => (found.weights, found.sums) = (local.weights, local.sums),
                Pull::Memberships => {
                    let validation = kernel::fuzzy_validation(rows.packed(), &local.centres, self.m)?;
                    for (c, weight) in
                        validation.memberships.iter().enumerate().filter(|(c, _)| local.weights[*c] > 0.0)
                    {
                        found.add(c, *weight, local.centres.row(c).iter().map(|x| weight * x));
                    }
                }
                Pull::Nearest => {
                    for (centre, _) in local.centres.rows().zip(&local.weights).filter(|(_, weight)| **weight > 0.0) {
                        let (near, square) = distance::nearest(centre, self.centres.rows());
                        found.add(near, 1.0, centre.iter().copied());
                        found.distance += square;
                    }
                }
            }
        }
        Ok(form.whole(match (&self.part, self.pull) {
            (RoundHalf::Sums(_), _) | (_, Pull::Nearest) => found.values(&self.part, d),
            (RoundHalf::Counts | RoundHalf::Changes(_), _) => found.weights,
            (RoundHalf::Both, _) => [found.weights, found.sums].concat(),
        }))
    }

    fn points(&self) -> Vec<&Centres> {
        vec![&self.centres]
    }

    fn half(&self) -> Option<&RoundHalf> {
        Some(&self.part)
    }

    fn half_mut(&mut self) -> Option<&mut RoundHalf> {
        Some(&mut self.part)
    }

    fn shows_rows(&self) -> Option<ShowsRows> {
        (self.pull != Pull::Nearest).then_some(ShowsRows { block: "weights", blocks: None })
    }
}

/// Where a site's own fuzzy c-means ended.
struct LocalCentres {
    centres: Centres,
    /// `sum_j u_jk^m` of the memberships that gave the centres (K); 0 for one that stayed.
    weights: Vec<f64>,
    /// `sum_j u_jk^m x_j` of the same (K x d); 0 for one that stayed.
    sums: Vec<f64>,
}

impl LocalFuzzy {
    /// Centres from memberships, memberships from centres, until the memberships rest.
    fn iterate(&self, rows: &Packed) -> Result<LocalCentres, AnswerError> {
        let d = self.centres.columns();
        let mut centres = self.centres.clone();
        let mut step = 0;
        loop {
            let kernel::FuzzySums { weighted_sums: mut sums, mut weights, .. } =
                kernel::fuzzy_sums(rows, &centres, self.m)?;
            let mut values = centres.as_slice().to_vec();
            for ((centre, sum), weight) in values.chunks_exact_mut(d).zip(sums.chunks_exact_mut(d)).zip(&mut weights) {
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
                return Ok(LocalCentres { centres, weights, sums });
            }
        }
    }
}

impl Family for LocalMeans {
    fn stage(&self) -> Stage {
        Stage::Iterating
    }

    fn check(&self, domain: &Domain) -> Result<(), QueryError> {
        same_columns(&self.centres, domain)?;
        self.local.check()?;
        if self.min_rows == 0 {
            return Err(QueryError::Parameter { what: "a group of no rows cannot be sent" });
        }
        if let RoundHalf::Changes(since) = &self.part {
            if !self.is_exact() {
                return Err(QueryError::Parameter {
                    what: "rows that change their cluster are counted for exact Lloyd only",
                });
            }
            return since.check(self.centres.k(), domain);
        }
        self.part.check(self.centres.k())
    }

    fn layout(&self, domain: &Domain) -> Vec<Block> {
        let first = nearest_reach(&self.centres, domain);
        // From the second step on there is a local centre among the site's own rows.
        let distance = if self.local.most > 1 { first.max(domain.diameter().powi(2)) } else { first };
        let shape = Shape {
            weights: ("rows", 1.0),
            sums: domain.largest(),
            per_site: false,
            sites: true,
            distance: Some(distance),
        };
        shape.blocks(&self.part, self.centres.k(), domain.columns())
    }

    fn answer<'f>(&self, rows: &Prepared, form: &'f Form, _: Option<&mut Stream>) -> Result<Sums<'f>, AnswerError> {
        let (k, d) = (self.centres.k(), self.centres.columns());
        if self.is_exact() {
            return self.lloyd(rows, form);
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
        Ok(form.whole(found.values(&self.part, d)))
    }

    fn points(&self) -> Vec<&Centres> {
        match &self.part {
            RoundHalf::Changes(since) => [&self.centres].into_iter().chain(&since.centres).collect(),
            RoundHalf::Counts | RoundHalf::Sums(_) | RoundHalf::Both => vec![&self.centres],
        }
    }

    fn half(&self) -> Option<&RoundHalf> {
        Some(&self.part)
    }

    fn half_mut(&mut self) -> Option<&mut RoundHalf> {
        Some(&mut self.part)
    }

    fn adds_up_over_rows(&self) -> bool {
        self.is_exact()
    }

    fn shows_rows(&self) -> Option<ShowsRows> {
        Some(ShowsRows { block: "rows", blocks: None })
    }
}

impl LocalMeans {
    /// Whether a round of it is a step of exact Lloyd.
    fn is_exact(&self) -> bool {
        self.local.most == 1 && self.min_rows == 1 && !self.nearest
    }

    /// One step of exact Lloyd: from what is known of the rows where that is kept, else row by row. Both give the same words.
    fn lloyd<'f>(&self, rows: &Prepared, form: &'f Form) -> Result<Sums<'f>, AnswerError> {
        let pays = self.part != RoundHalf::Both || self.centres.columns() >= LEAST_COLUMNS;
        let known = match form.is_whole() && pays {
            true => rows.with_bounds(&self.centres, |bounds| self.lloyd_known(rows.packed(), bounds, form))?,
            false => None,
        };
        let mut sums = known.map_or_else(|| self.lloyd_plain(rows.packed(), form), Ok)?;
        let (k, d) = (self.centres.k(), self.centres.columns());
        let sites = match self.part {
            RoundHalf::Counts | RoundHalf::Changes(_) => k,
            RoundHalf::Sums(_) => return Ok(sums),
            RoundHalf::Both => k * (d + 1),
        };
        for c in (0..k).filter(|c| sums.value(*c) > 0.0).collect::<Vec<_>>() {
            sums.add(sites + c, 1.0);
        }
        Ok(sums)
    }

    /// Everything but the sites, from bounds at these centres; nothing where a contribution is no number of steps, which the plain pass names.
    fn lloyd_known<'f>(
        &self,
        rows: &Packed,
        bounds: &mut Bounds,
        form: &'f Form,
    ) -> Result<Option<Sums<'f>>, AnswerError> {
        let (k, d) = (self.centres.k(), self.centres.columns());
        Ok(match &self.part {
            RoundHalf::Counts => {
                let mut sums = form.nothing(2 * k);
                bounds.add_counts(&mut sums, 0, 0..k);
                Some(sums)
            }
            RoundHalf::Changes(since) => {
                let mut sums = form.nothing(3 * k);
                bounds.add_counts(&mut sums, 0, 0..k);
                let changed = since.changes(rows, &bounds.own().collect::<Vec<_>>(), |at| bounds.changed_since(at))?;
                changed.into_iter().enumerate().for_each(|(c, rows)| sums.add_whole(2 * k + c, rows));
                Some(sums)
            }
            RoundHalf::Sums(list) => {
                let list = || list.iter().map(|c| *c as usize);
                let mut sums = form.nothing(list().len() * (d + 1));
                bounds.add_counts(&mut sums, 0, list());
                bounds.add_sums(rows, form, &mut sums, list().len(), list()).then_some(sums)
            }
            RoundHalf::Both => {
                let mut sums = form.nothing(k * (d + 2) + 1);
                bounds.add_counts(&mut sums, 0, 0..k);
                let whole = bounds.add_sums(rows, form, &mut sums, k, 0..k)
                    && bounds.add_squares(rows, form, &mut sums, k * (d + 2));
                whole.then_some(sums)
            }
        })
    }

    /// The same, row by row.
    fn lloyd_plain<'f>(&self, rows: &Packed, form: &'f Form) -> Result<Sums<'f>, AnswerError> {
        let (k, d) = (self.centres.k(), self.centres.columns());
        let over = |width, add: &(dyn Fn(&Assigned<'_>, &mut Sums<'f>) + Sync)| {
            kernel::over_nearest(rows, &self.centres, form, width, add)
        };
        Ok(match &self.part {
            RoundHalf::Counts => over(2 * k, &|row, sums| sums.add(row.own, 1.0))?,
            RoundHalf::Changes(since) => {
                let mut sums = over(3 * k, &|row, sums| sums.add(row.own, 1.0))?;
                let changed = since.changes(rows, &places(rows, &self.centres)?, |_| None)?;
                changed.into_iter().enumerate().for_each(|(c, rows)| sums.add_whole(2 * k + c, rows));
                sums
            }
            RoundHalf::Sums(list) => {
                let places: Vec<Option<usize>> = (0..k as u32).map(|c| list.binary_search(&c).ok()).collect();
                let add = |row: &Assigned<'_>, sums: &mut Sums<'f>| {
                    if let Some(at) = places[row.own] {
                        sums.add(at, 1.0);
                        row.add_to(sums, list.len() + at * d);
                    }
                };
                over(list.len() * (d + 1), &add)?
            }
            RoundHalf::Both => {
                let add = |row: &Assigned<'_>, sums: &mut Sums<'f>| {
                    sums.add(row.own, 1.0);
                    row.add_to(sums, k + row.own * d);
                    sums.add(k * (d + 2), row.square);
                };
                over(k * (d + 2) + 1, &add)?
            }
        })
    }

    /// Groups of the last step.
    fn iterate(&self, rows: &Packed) -> Result<HardSums, AnswerError> {
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

    /// 1 to 1000 steps, and a usable epsilon.
    pub(crate) fn check(&self) -> Result<(), QueryError> {
        if self.most == 0 || self.most > MAX_STEPS {
            return Err(QueryError::Parameter { what: "a site's own iteration takes 1 to 1000 steps" });
        }
        if !(self.epsilon.is_finite() && self.epsilon >= 0.0) {
            return Err(QueryError::Parameter { what: "epsilon of a site's own iteration must be finite, 0 or above" });
        }
        Ok(())
    }
}

impl SinceCentres {
    fn check(&self, k: usize, domain: &Domain) -> Result<(), QueryError> {
        let all = self.centres.len() as u32;
        let named = (1..=all).all(|place| self.of.contains(&place));
        if all == 0 || self.of.len() != k || !named || self.of.iter().any(|place| *place > all) {
            return Err(QueryError::Parameter { what: "earlier centres and the clusters that they are of do not fit" });
        }
        if self.centres.iter().any(|centres| centres.k() != k) {
            return Err(QueryError::Parameter { what: "earlier centres have another K" });
        }
        self.centres.iter().try_for_each(|centres| same_columns(centres, domain))
    }

    /// Rows by cluster that entered or left it; `now` has the cluster of every row (n), and `known` may know the answer for earlier centres.
    fn changes<'b>(
        &self,
        rows: &Packed,
        now: &[usize],
        known: impl Fn(&Centres) -> Option<&'b [i64]>,
    ) -> Result<Vec<f64>, AnswerError> {
        let mut changed = vec![0.0; self.of.len()];
        for (place, before) in (1..).zip(&self.centres) {
            let of_place = |c: &usize| self.of[*c] == place;
            if let Some(known) = known(before) {
                (0..known.len()).filter(of_place).for_each(|c| changed[c] += known[c] as f64);
                continue;
            }
            for (now, before) in now.iter().zip(places(rows, before)?) {
                if *now != before {
                    [*now, before].into_iter().filter(of_place).for_each(|c| changed[c] += 1.0);
                }
            }
        }
        Ok(changed)
    }
}

/// The cluster of every row.
fn places(rows: &Packed, centres: &Centres) -> Result<Vec<usize>, AnswerError> {
    Ok(kernel::nearest(rows, centres)?.into_iter().map(|near| near.index as usize).collect())
}

/// No point of the box is farther from its nearest centre (squared).
fn nearest_reach(centres: &Centres, domain: &Domain) -> f64 {
    let nearest = centres.rows().map(|centre| domain.reach(centre)).fold(f64::INFINITY, f64::min);
    nearest * nearest
}

/// What the blocks of a question have in common.
struct Shape {
    weights: (&'static str, f64),
    sums: f64,
    /// Whether weights and sums are bounded by site, not by row; the distance is then, too.
    per_site: bool,
    /// Whether there are counts of sites.
    sites: bool,
    distance: Option<f64>,
}

impl Shape {
    fn blocks(&self, part: &RoundHalf, k: usize, d: usize) -> Vec<Block> {
        let block = if self.per_site { Block::per_site } else { Block::per_row };
        let weights = |len: usize| block(self.weights.0, len, self.weights.1);
        let sites = self.sites.then(|| Block::per_site("sites", k, 1.0));
        match part {
            RoundHalf::Counts => [weights(k)].into_iter().chain(sites).collect(),
            RoundHalf::Changes(_) => [weights(k)].into_iter().chain(sites).chain([block("changed", k, 1.0)]).collect(),
            RoundHalf::Sums(list) => vec![weights(list.len()), block("sums", list.len() * d, self.sums)],
            RoundHalf::Both => {
                let distance = self.distance.map(|bound| block("distances", 1, bound));
                [weights(k), block("sums", k * d, self.sums)].into_iter().chain(sites).chain(distance).collect()
            }
        }
    }
}

/// What a site adds to the totals of all clusters.
struct Found {
    weights: Vec<f64>,
    sums: Vec<f64>,
    sites: Vec<f64>,
    distance: f64,
}

impl Found {
    fn nothing(k: usize, d: usize) -> Self {
        Self { weights: vec![0.0; k], sums: vec![0.0; k * d], sites: vec![0.0; k], distance: 0.0 }
    }

    fn add(&mut self, cluster: usize, weight: f64, sum: impl ExactSizeIterator<Item = f64>) {
        let d = sum.len();
        self.weights[cluster] += weight;
        self.sites[cluster] = 1.0;
        self.sums[cluster * d..(cluster + 1) * d].iter_mut().zip(sum).for_each(|(total, x)| *total += x);
    }

    /// The vector of a question with sites and a distance.
    fn values(self, part: &RoundHalf, d: usize) -> Vec<f64> {
        match part {
            RoundHalf::Counts | RoundHalf::Changes(_) => [self.weights, self.sites].concat(),
            RoundHalf::Both => [self.weights, self.sums, self.sites, vec![self.distance]].concat(),
            RoundHalf::Sums(list) => {
                let places = || list.iter().map(|c| *c as usize);
                let sums = places().flat_map(|c| &self.sums[c * d..(c + 1) * d]);
                places().map(|c| &self.weights[c]).chain(sums).copied().collect()
            }
        }
    }
}

#[cfg(test)]
mod tests;
