//! The least squares of the linear adversary: totals as coordinates, groups of sites as rows, the wanted sums as right-hand sides.

use std::collections::BTreeSet;

use anyhow::Result;

use super::{probes, probes::Probes, reading::Reading, told::Told};
use crate::qr::{Columns, add, back, dot, row_space, triangularise};

/// A direction of a cohort's totals counts if a row moves it by at least this many standard deviations of its rounding.
const ABOVE_ROUNDING: f64 = 1e-3;
/// Probes of either half for each direction of the totals that stands above rounding.
const PROBES_A_COORDINATE: usize = 6;
/// The smallest number of probes, so that the mean is good for few directions too.
const LEAST_PROBES: usize = 1_000;

/// Weights of the rounding that are tried. With 1 a combination is best on the rows that are fitted; but steps of hard groups that
/// hardly any probe falls on look like nothing there and cost nothing, and are anything on other rows. Held-out rows decide.
const CAUTION: [f64; 3] = [1.0, 1e3, 1e6];

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

impl Space {
    /// Reads all totals at fresh probes.
    ///
    /// # Errors
    /// Where a question cannot be read.
    pub(super) fn of(told: &[Told], seed: u64) -> Result<Space> {
        let readings: Vec<Reading> = told.iter().map(|t| Reading::of(&t.question, &t.domain)).collect::<Result<_>>()?;
        let numbers: usize = readings.iter().map(Reading::len).sum();
        // Most numbers of smooth questions repeat what others said: probes are for what is independent, and rows for more numbers
        // would be rows that are all alike. As many as for all numbers are always enough.
        let (mut half, most) = (LEAST_PROBES, LEAST_PROBES.max(PROBES_A_COORDINATE * numbers));
        loop {
            let space = Space::at(told, &readings, half, seed)?;
            let needed = PROBES_A_COORDINATE * space.rank();
            if half >= needed.min(most) {
                return Ok(space);
            }
            half = most.min(needed.max(2 * half));
        }
    }

    /// Makes a space with this many probes in each half.
    fn at(told: &[Told], readings: &[Reading], half: usize, seed: u64) -> Result<Space> {
        let numbers: usize = readings.iter().map(Reading::len).sum();
        let probes = Probes::draw(told, 2 * half, seed)?;
        let mut cohorts: Vec<BTreeSet<String>> = Vec::new();
        let mut raw: Vec<(Columns, Option<Vec<f64>>)> = Vec::new();
        let mut boxes = Vec::new();
        for (told, reading) in told.iter().zip(readings) {
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
            // Over all probes: what only held-out rows tell apart must have a coordinate, or a sum that holds always fails on them.
            for v in row_space(columns, 2f64.sqrt() * ABOVE_ROUNDING) {
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

    /// The least-squares problem of these groups, solved for each of them.
    ///
    /// The error on a group's rows counts as often as the group has rows, as they may err alike. What a combination amplifies of
    /// the rounding counts with it; more than that where [`CAUTION`] says so.
    pub(super) fn solve(&self, groups: Vec<Group>, rows: f64) -> Solved<'_> {
        let (e, p) = (self.rank(), self.fit.first().map_or(0, Vec::len));
        let mut columns: Columns = Vec::with_capacity(e + groups.len() * self.targets());
        for j in 0..e {
            let mut column = vec![0.0; groups.len() * p];
            for (g, group) in groups.iter().enumerate().filter(|(_, group)| group.inside[self.of[j]]) {
                add(&mut column[g * p..(g + 1) * p], rows * group.sites as f64, &self.fit[j]);
            }
            columns.push(column);
        }
        for (g, group) in groups.iter().enumerate() {
            for target in &self.fit[e..] {
                let mut column = vec![0.0; groups.len() * p];
                add(&mut column[g * p..(g + 1) * p], rows * group.sites as f64, target);
                columns.push(column);
            }
        }
        triangularise(&mut columns, e);
        columns.iter_mut().for_each(|c| c.resize(e, 0.0));
        let levels = CAUTION.iter().map(|caution| {
            let mut columns = columns.clone();
            for (j, column) in columns.iter_mut().enumerate() {
                column.resize(2 * e, 0.0);
                if j < e {
                    column[e + j] = *caution;
                }
            }
            triangularise(&mut columns, e);
            let weights = columns[e..].iter().map(|y| back(&columns, y[..e].to_vec())).collect::<Columns>();
            let of_group = |weights: &[Vec<f64>]| weights.iter().map(|w| self.effect(&groups, w)).collect();
            Level { effects: weights.chunks(self.targets()).map(of_group).collect(), weights }
        });
        let levels = levels.collect();
        Solved { space: self, groups, rows, levels }
    }

    /// What a combination of coordinates is on all groups' held-out rows.
    fn effect(&self, groups: &[Group], weights: &[f64]) -> Columns {
        let p = self.hold.first().map_or(0, Vec::len);
        let mut by_cohort = vec![vec![0.0; p]; self.cohorts.len()];
        weights.iter().enumerate().for_each(|(j, w)| add(&mut by_cohort[self.of[j]], *w, &self.hold[j]));
        let on = |group: &Group| {
            let mut sum = vec![0.0; p];
            by_cohort.iter().zip(&group.inside).filter(|(_, i)| **i).for_each(|(c, _)| add(&mut sum, 1.0, c));
            sum
        };
        groups.iter().map(on).collect()
    }
}

/// Solutions for one caution.
struct Level {
    /// By group and then target: the combination of coordinates.
    weights: Columns,
    /// By group, target and group: what it is on the held-out rows.
    effects: Vec<Vec<Columns>>,
}

/// Solutions for some groups.
pub(super) struct Solved<'a> {
    space: &'a Space,
    groups: Vec<Group>,
    rows: f64,
    levels: Vec<Level>,
}

/// What a sum over some groups is known to.
#[derive(Clone, Copy)]
pub(super) struct Known {
    /// The error on held-out rows and by rounding, as a part of what there is.
    pub(super) predicted: f64,
    /// The estimate, where totals are known.
    pub(super) estimate: Option<f64>,
}

impl Solved<'_> {
    /// The sum of each target over this many sites of each group, by the combination that is best on the held-out rows.
    pub(super) fn known(&self, set: &[usize]) -> Vec<Known> {
        let best = |target| {
            let all = self.levels.iter().map(|level| self.at(level, set, target));
            all.min_by(|a, b| a.predicted.total_cmp(&b.predicted)).unwrap_or(Known { predicted: 1.0, estimate: None })
        };
        (0..self.space.targets()).map(best).collect()
    }

    fn at(&self, level: &Level, set: &[usize], target: usize) -> Known {
        let space = self.space;
        // Of k sites in a group of k + r a share of its sum is guessed; this one has the least error, and is 1 where r = 0.
        let share = |g: usize, k: usize| {
            let (k, r) = (k as f64, (self.groups[g].sites - k) as f64);
            k * k / (k * k + r * r)
        };
        let parts: Vec<(usize, f64)> = (0..set.len()).filter(|g| set[*g] > 0).map(|g| (g, share(g, set[g]))).collect();
        let mut weights = vec![0.0; space.rank()];
        parts.iter().for_each(|(g, by)| add(&mut weights, *by, &level.weights[g * space.targets() + target]));
        let mut square = dot(&weights, &weights);
        for (g, group) in self.groups.iter().enumerate() {
            let mut off = vec![0.0; space.hold.first().map_or(0, Vec::len)];
            parts.iter().for_each(|(of, by)| add(&mut off, *by, &level.effects[*of][target][g]));
            square += (self.rows * (group.sites - set[g]) as f64).powi(2) * dot(&off, &off);
            add(&mut off, -1.0, &space.hold[space.rank() + target]);
            square += (self.rows * set[g] as f64).powi(2) * dot(&off, &off);
        }
        let own = self.rows * set.iter().sum::<usize>() as f64;
        let estimate = space.totals.as_ref().map(|totals| dot(&weights, totals));
        Known { predicted: square.sqrt() / (own * space.size[target]), estimate }
    }
}

/// The sum of the columns with these weights.
fn combined(columns: &[Vec<f64>], weights: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; columns.first().map_or(0, Vec::len)];
    columns.iter().zip(weights).for_each(|(c, w)| add(&mut sum, *w, c));
    sum
}
