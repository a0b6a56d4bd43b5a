//! Records: the rows that fit all totals of a run best, by somebody to whom a few rows are unknown, or who has totals from before these rows
//! came. It starts at other people's rows and descends; a guess is one of those.

use std::sync::Mutex;

use anyhow::Result;
use rayon::prelude::*;
use veilsum_cluster::random::Stream;

use super::{
    attacks::Told,
    guess::Column,
    knows::Knows,
    scene::Scene,
    tried::{Answer, Tried, not_applicable},
};
use crate::{
    finding::short,
    least_squares::{Patience, System, descend, mean_and_spread},
};

const LABEL: &[u8; 24] = b"veilsum audit records v1";
/// Rows that are known but for these numbers: so many unknowns can be descended in minutes.
const NUMBERS: usize = 24;
/// Starts of the descent.
const STARTS: usize = 4;
const PATIENCE: Patience = Patience { steps: 80, stale: 10 };
/// Guesses by which blind guessing is measured.
const GUESSES: usize = 200;
/// Half the length by which a derivative is taken, of a number's range.
const STEP: f64 = 1e-6;
/// Successes that blind guessing has more rarely than this are none of its.
pub(super) const RARE: f64 = 1e-3;

/// Totals less those of all known rows, by the numbers of the unknown ones: -1 and 1 are the ends of a column's range.
struct Unknown<'a> {
    scene: &'a Scene,
    told: &'a Told,
    rows: &'a [usize],
    columns: &'a [Column],
    left: Vec<f64>,
    /// By number of a row what such rows usually are, and how much they differ.
    usual: Vec<(f64, f64)>,
    failed: Mutex<Option<anyhow::Error>>,
}

impl Unknown<'_> {
    fn row(&self, at: usize, x: &[f64]) -> Vec<f64> {
        let mut row = self.scene.sites[0].values[self.rows[at]].clone();
        for (column, x) in self.columns.iter().zip(x) {
            let [low, high] = column.ends;
            row[column.places.start] = (low + (x + 1.0) / 2.0 * (high - low)).clamp(low, high);
        }
        row
    }

    fn place(&self, row: &[f64]) -> Vec<f64> {
        let of = |column: &Column| {
            let [low, high] = column.ends;
            (2.0 * (row[column.places.start] - low) / (high - low) - 1.0).clamp(-1.0, 1.0)
        };
        self.columns.iter().map(of).collect()
    }

    fn adds(&self, at: usize, x: &[f64]) -> Vec<f64> {
        let site = &self.scene.sites[0];
        let told = self.told.played.influence(&self.scene.work, site, self.rows[at], &self.row(at, x));
        told.unwrap_or_else(|why| {
            if let Ok(mut failed) = self.failed.lock() {
                *failed = Some(why);
            }
            vec![f64::NAN; self.left.len()]
        })
    }
}

impl System for Unknown<'_> {
    fn equations(&self) -> usize {
        self.left.len() + self.rows.len() * self.columns.len()
    }

    fn evaluate(&self, x: &[f64], residuals: &mut [f64], jacobian: &mut [f64]) {
        let (n, d, entries) = (x.len(), self.columns.len(), self.left.len());
        jacobian.fill(0.0);
        let at: Vec<Vec<f64>> =
            (0..self.rows.len()).into_par_iter().map(|row| self.adds(row, &x[row * d..(row + 1) * d])).collect();
        for (entry, residual) in residuals[..entries].iter_mut().enumerate() {
            *residual = at.iter().map(|row| row[entry]).sum::<f64>() - self.left[entry];
        }
        let slope = |number: usize| {
            let (row, column) = (number / d, number % d);
            let mut moved = x[row * d..(row + 1) * d].to_vec();
            let step = if moved[column] > 0.0 { -STEP } else { STEP };
            moved[column] += step;
            self.adds(row, &moved).iter().zip(&at[row]).map(|(b, a)| (b - a) / step).collect::<Vec<f64>>()
        };
        let slopes: Vec<Vec<f64>> = (0..n).into_par_iter().map(slope).collect();
        for (number, slope) in slopes.iter().enumerate() {
            slope.iter().enumerate().for_each(|(entry, s)| jacobian[entry * n + number] = *s);
            let (mean, spread) = self.usual[number % d];
            residuals[entries + number] = (x[number] - mean) / spread;
            jacobian[(entries + number) * n + number] = 1.0 / spread;
        }
    }
}

/// The chance of so many successes or more in `of` tries.
pub(super) fn tail(hits: usize, of: usize, chance: f64) -> f64 {
    let mut term = (1.0 - chance).powi(of as i32);
    let mut below = 0.0;
    for i in 0..hits.min(of) {
        below += term;
        term *= (of - i) as f64 / (i + 1) as f64 * chance / (1.0 - chance);
    }
    (1.0 - below).max(0.0)
}

/// The worst column of a guess, in errors that make it known.
fn off(columns: &[Column], truth: &[f64], guess: &[f64]) -> f64 {
    let of = |column: &Column| (truth[column.places.start] - guess[column.places.start]).abs() / column.known;
    columns.iter().map(of).fold(0.0, f64::max)
}

/// Rows of one's own, all others known.
///
/// # Errors
/// Where a row cannot answer.
pub(super) fn records(scene: &Scene, told: &Told, seed: u64) -> Result<Vec<Tried>> {
    let tries =
        "somebody looks for the few rows with which all totals of the run fit best, as after a change of few rows";
    let no = |why| Ok(vec![not_applicable("records", tries, why)]);
    let columns: Vec<Column> = scene.columns().into_iter().filter(|column| !column.is_category).collect();
    if !told.played.adds_up() {
        return no("not all totals are sums over rows");
    }
    let count = Knows::FEW.min(scene.targets.len()).min(NUMBERS / columns.len().max(1));
    if columns.is_empty() || count == 0 {
        return no("the columns of numbers are none, or more than this attack can solve for");
    }
    // Every other one: those far from all others come first, and usual ones are of interest, too.
    let stride = (scene.targets.len() / count).max(1);
    let rows: Vec<usize> = scene.targets.iter().step_by(stride).take(count).copied().collect();
    let own = &scene.sites[0];
    let mut known = scene.prepared(&scene.work)?;
    known[0] = own.prepared(&scene.work, (0..own.values.len()).filter(|at| !rows.contains(at)))?;
    let failed = Mutex::new(None);
    let left = told.played.without(&known)?;
    let mut system = Unknown { scene, told, rows: &rows, columns: &columns, left, usual: Vec::new(), failed };
    let others: Vec<&Vec<f64>> = scene.sample.iter().map(|(site, at)| &scene.sites[*site].values[*at]).collect();
    let usual = |column: usize| {
        let (mean, spread) = mean_and_spread(others.iter().map(|row| system.place(row)[column]));
        (mean, spread.max(1e-3))
    };
    system.usual = (0..columns.len()).map(usual).collect();
    let mut stream = Stream::new(seed, LABEL);
    let mut draw = || others[stream.below(others.len().max(1) as u64) as usize].clone();
    if others.is_empty() {
        return no("there are no other rows to start from");
    }
    // Most of all totals are told by rounding, and the rest by the noise.
    let zero = (system.equations() as f64).sqrt() / 2.0;
    let mut best = None;
    for _ in 0..STARTS {
        let start = (0..count).flat_map(|_| system.place(&draw())).collect();
        let found = descend(&system, start, 1.0, zero, PATIENCE);
        if best.as_ref().is_none_or(|best: &crate::least_squares::Solution| found.residual < best.residual) {
            best = Some(found);
        }
        if best.as_ref().is_some_and(|best| best.residual < 2.0 * zero) {
            break;
        }
    }
    if let Some(why) = system.failed.lock().ok().and_then(|mut failed| failed.take()) {
        return Err(why);
    }
    let solved = best.map(|best| best.x).unwrap_or_default();
    let d = columns.len();
    let guesses: Vec<Vec<f64>> = (0..count).map(|row| system.row(row, &solved[row * d..(row + 1) * d])).collect();
    let nearest = |at: &usize, guesses: &[Vec<f64>]| {
        let far = |guess: &&Vec<f64>| off(&columns, &own.values[*at], guess);
        guesses.iter().min_by(|a, b| far(a).total_cmp(&far(b))).cloned().unwrap_or_default()
    };
    let hit = |at: &&usize, guesses: &[Vec<f64>]| off(&columns, &own.values[**at], &nearest(at, guesses)) <= 1.0;
    let found = rows.iter().filter(|at| hit(at, &guesses)).count();
    let mut blind = (0, vec![0.0; d]);
    for guess in 0..GUESSES {
        let drawn: Vec<Vec<f64>> = (0..count).map(|_| draw()).collect();
        blind.0 += rows.iter().filter(|at| hit(at, &drawn)).count();
        let at = &rows[guess % rows.len()];
        let near = nearest(at, &drawn);
        for (sum, column) in blind.1.iter_mut().zip(&columns) {
            let place = column.places.start;
            *sum += (near[place] - own.values[*at][place]).abs() / GUESSES as f64;
        }
    }
    let chance = (blind.0 as f64 + 1.0) / (GUESSES * count) as f64;
    let best = rows.iter().min_by(|a, b| {
        let far = |at: &usize| off(&columns, &own.values[*at], &nearest(at, &guesses));
        far(a).total_cmp(&far(b))
    });
    let at = best.copied().unwrap_or_default();
    let near = nearest(&at, &guesses);
    let errors = |column: &Column| (near[column.places.start] - own.values[at][column.places.start]).abs();
    let named = |errors: &[f64]| {
        let of = |(column, x): (&Column, &f64)| format!("{} off by {}", column.name, short(*x));
        let more = (d > SHOWN).then(|| "...".to_owned());
        columns.iter().zip(errors).take(SHOWN).map(of).chain(more).collect::<Vec<_>>().join(", ")
    };
    let (found_errors, blindly) = (named(&columns.iter().map(errors).collect::<Vec<_>>()), named(&blind.1));
    let share = blind.0 as f64 / (GUESSES * count) as f64;
    let gets = format!("{found} of {count} rows come out; nearest is row {}: {found_errors}", at + 1);
    let said = [gets, format!("{} % of rows; {blindly}", short(100.0 * share))];
    let answer = Answer::of(false, found > 0 && tail(found, count, chance) < RARE);
    let more = found as f64 / count as f64 - share;
    Ok(vec![Tried::new(("records", tries), Some(Knows::AllButFew), said, answer, more)])
}

/// Columns that a line has room for.
const SHOWN: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_are_those_of_a_coin() {
        assert!((tail(2, 2, 0.5) - 0.25).abs() < 1e-12);
        assert!((tail(1, 2, 0.5) - 0.75).abs() < 1e-12);
        assert_eq!(tail(0, 5, 0.1), 1.0);
        assert!(tail(1, 6, 1e-4) < RARE);
    }
}
