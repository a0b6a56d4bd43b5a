//! The least squares of the linear adversary: totals as coordinates, groups of sites as rows, the wanted sums as right-hand sides.

use std::collections::BTreeSet;

use anyhow::Result;

use super::{Told, probes, probes::Probes, reading::Reading};
use crate::qr::{Columns, add, back, dot, row_space, triangularise};

/// A direction of a cohort's totals counts where a row moves it by so many standard deviations of its rounding.
const ABOVE_ROUNDING: f64 = 1e-3;
/// Probes of either half for each number.
const PROBES_A_NUMBER: usize = 3;
/// And at least so many: few numbers deserve a good mean.
const LEAST_PROBES: usize = 500;

/// The span of all totals as functions of a row, in coordinates of one standard deviation each.
pub(super) struct Space {
    /// The distinct cohorts.
    pub(super) cohorts: Vec<BTreeSet<String>>,
    /// The cohort of each coordinate.
    of: Vec<usize>,
    /// By coordinate and then by target the triangle of the probes that are fitted, and that of those held out: norms of
    /// combinations are root mean squares over the probes.
    fit: Columns,
    hold: Columns,
    /// The totals in these coordinates, where all are known.
    totals: Option<Vec<f64>>,
    /// Root mean square of each target over the held-out probes: of 1, and of each column as a part of the box.
    size: Vec<f64>,
    /// Numbers that were read of the totals.
    pub(super) numbers: usize,
}

/// Sites that no cohort tells apart, or a part of them.
pub(super) struct Group {
    /// How many.
    pub(super) sites: usize,
    /// By cohort, whether they are in it.
    pub(super) inside: Vec<bool>,
}

/// The combinations of coordinates for one group: by target.
type Weights = Vec<Vec<f64>>;

impl Space {
    /// Reads all totals at fresh probes.
    ///
    /// # Errors
    /// Where a question cannot be read.
    pub(super) fn of(told: &[Told], seed: u64) -> Result<Space> {
        let readings: Vec<Reading> = told.iter().map(|t| Reading::of(&t.question, &t.domain)).collect::<Result<_>>()?;
        let numbers: usize = readings.iter().map(Reading::len).sum();
        let half = LEAST_PROBES.max(PROBES_A_NUMBER * numbers);
        let probes = Probes::draw(told, 2 * half, seed)?;
        let mut cohorts: Vec<BTreeSet<String>> = Vec::new();
        let mut raw: Vec<(Columns, Option<Vec<f64>>)> = Vec::new();
        let mut boxes = Vec::new();
        for (told, reading) in told.iter().zip(&readings) {
            let at = cohorts.iter().position(|c| *c == told.cohort).unwrap_or_else(|| {
                cohorts.push(told.cohort.clone());
                raw.push((Vec::new(), Some(Vec::new())));
                cohorts.len() - 1
            });
            let known = boxes.iter().position(|(domain, _)| *domain == told.domain);
            let known = match known {
                Some(known) => known,
                None => {
                    boxes.push((told.domain.clone(), probes.prepared(&told.domain)?));
                    boxes.len() - 1
                }
            };
            let deviations = reading.deviations(&told.deviations);
            let mut columns = probes::evaluate(reading, &boxes[known].1)?;
            let root = (half as f64).sqrt();
            columns.iter_mut().zip(&deviations).for_each(|(c, dev)| c.iter_mut().for_each(|x| *x /= dev * root));
            raw[at].0.extend(columns);
            let scaled = |values: &Vec<f64>| {
                reading.read(values).iter().zip(&deviations).map(|(v, d)| v / d).collect::<Vec<_>>()
            };
            raw[at].1 = raw[at].1.take().zip(told.values.as_ref()).map(|(before, now)| [before, scaled(now)].concat());
        }
        let (mut fit, mut hold) = (Vec::new(), Vec::new());
        let (mut of, mut totals) = (Vec::new(), Some(Vec::new()));
        // The first of every pair of probes is uniform: every other pair is held out.
        let part = |c: &[f64], held: bool| -> Vec<f64> {
            c.chunks(2)
                .enumerate()
                .filter(|(i, _)| (i % 2 == 1) == held)
                .flat_map(|(_, pair)| pair.iter().copied())
                .collect()
        };
        for (at, (columns, values)) in raw.into_iter().enumerate() {
            let (own, held): (Columns, Columns) =
                (columns.iter().map(|c| part(c, false)).collect(), columns.iter().map(|c| part(c, true)).collect());
            for v in row_space(own.clone(), ABOVE_ROUNDING) {
                fit.push(combined(&own, &v));
                hold.push(combined(&held, &v));
                of.push(at);
                totals = totals.zip(values.as_ref()).map(|(mut all, own)| {
                    all.push(dot(own, &v));
                    all
                });
            }
        }
        let root = (half as f64).sqrt();
        let d = probes.places.first().map_or(0, Vec::len);
        let mut size = Vec::new();
        for target in 0..=d {
            let column: Vec<f64> =
                probes.places.iter().map(|p| if target == 0 { 1.0 } else { p[target - 1] } / root).collect();
            fit.push(part(&column, false));
            let held = part(&column, true);
            size.push(dot(&held, &held).sqrt());
            hold.push(held);
        }
        // Norms are the same in the triangle, which has fewer rows.
        for side in [&mut fit, &mut hold] {
            let p = side.len();
            triangularise(side, p);
            side.iter_mut().for_each(|c| c.truncate(p));
        }
        Ok(Space { cohorts, of, fit, hold, totals, size, numbers })
    }

    /// Coordinates above rounding.
    pub(super) fn rank(&self) -> usize {
        self.of.len()
    }

    /// Targets: 1, and each column as a part of the box.
    pub(super) fn targets(&self) -> usize {
        self.size.len()
    }

    /// For each wanted group the combinations of coordinates that come nearest to each target on its rows and to 0 on all
    /// others', a group's error counting as the rows of all its sites together (they may err alike), and rounding with them.
    pub(super) fn solve(&self, groups: &[Group], rows: f64, wanted: &[usize]) -> Vec<Weights> {
        let (e, p) = (self.rank(), self.fit.first().map_or(0, Vec::len));
        let height = groups.len() * p + e;
        let mut columns: Columns = Vec::with_capacity(e + wanted.len() * self.targets());
        for j in 0..e {
            let mut column = vec![0.0; height];
            for (g, group) in groups.iter().enumerate().filter(|(_, group)| group.inside[self.of[j]]) {
                add(&mut column[g * p..(g + 1) * p], rows * group.sites as f64, &self.fit[j]);
            }
            column[groups.len() * p + j] = 1.0;
            columns.push(column);
        }
        for w in wanted {
            for target in &self.fit[e..] {
                let mut column = vec![0.0; height];
                add(&mut column[w * p..(w + 1) * p], rows * groups[*w].sites as f64, target);
                columns.push(column);
            }
        }
        triangularise(&mut columns, e);
        let solved: Vec<Vec<f64>> = columns[e..].iter().map(|y| back(&columns, y[..e].to_vec())).collect();
        solved.chunks(self.targets()).map(<[_]>::to_vec).collect()
    }

    /// What a combination of coordinates is on the held-out rows, cohort by cohort.
    fn by_cohort(&self, weights: &[f64]) -> Columns {
        let p = self.hold.first().map_or(0, Vec::len);
        let mut out = vec![vec![0.0; p]; self.cohorts.len()];
        weights.iter().enumerate().for_each(|(j, w)| add(&mut out[self.of[j]], *w, &self.hold[j]));
        out
    }

    /// What the weights of a wanted group do to all groups' held-out rows: by target, then by group.
    pub(super) fn effect(&self, groups: &[Group], weights: &Weights) -> Vec<Columns> {
        let of = |weights: &Vec<f64>| {
            let by_cohort = self.by_cohort(weights);
            let on = |group: &Group| {
                let mut sum = vec![0.0; by_cohort.first().map_or(0, Vec::len)];
                by_cohort
                    .iter()
                    .zip(&group.inside)
                    .filter(|(_, inside)| **inside)
                    .for_each(|(c, _)| add(&mut sum, 1.0, c));
                sum
            };
            groups.iter().map(on).collect()
        };
        weights.iter().map(of).collect()
    }

    /// The predicted error for the sum of a target over the groups of `set`, as a part of that sum's size: by target. `weights`
    /// and `effects` are those of the groups in it.
    pub(super) fn predicted(
        &self,
        groups: &[Group],
        rows: f64,
        set: &[usize],
        weights: &[&Weights],
        effects: &[&Vec<Columns>],
    ) -> Vec<f64> {
        let own: f64 = set.iter().map(|g| rows * groups[*g].sites as f64).sum();
        let at = |target: usize| {
            let mut combined = vec![0.0; self.rank()];
            weights.iter().for_each(|w| add(&mut combined, 1.0, &w[target]));
            let mut square = dot(&combined, &combined);
            for (g, group) in groups.iter().enumerate() {
                let mut off = vec![0.0; self.hold.first().map_or(0, Vec::len)];
                effects.iter().for_each(|e| add(&mut off, 1.0, &e[target][g]));
                if set.contains(&g) {
                    add(&mut off, -1.0, &self.hold[self.rank() + target]);
                }
                square += (rows * group.sites as f64).powi(2) * dot(&off, &off);
            }
            square.sqrt() / (own * self.size[target])
        };
        (0..self.targets()).map(at).collect()
    }

    /// The estimates by target, where totals are known.
    pub(super) fn estimates(&self, weights: &[&Weights]) -> Option<Vec<f64>> {
        let totals = self.totals.as_ref()?;
        Some((0..self.targets()).map(|t| weights.iter().map(|w| dot(&w[t], totals)).sum()).collect())
    }
}

/// The sum of the columns with these weights.
fn combined(columns: &[Vec<f64>], weights: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; columns.first().map_or(0, Vec::len)];
    columns.iter().zip(weights).for_each(|(c, w)| add(&mut sum, *w, c));
    sum
}
