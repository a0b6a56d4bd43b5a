//! Whole numbers from totals: a column of two values row by row (Dinur & Nissim 2003; Cohen & Nissim 2020), how often each of a few possible
//! rows occurs (a lattice), and a site's share of a category by all other sites (property inference).

use std::collections::BTreeMap;

use anyhow::Result;
use rayon::prelude::*;
use veilsum_cluster::privacy::{self, HONEST};

use super::{
    attacks::Told,
    guess::Column,
    knows::Knows,
    likelihood::Usual,
    play::Site,
    scene::Scene,
    solve::{RARE, tail},
    tried::{Answer, Tried, not_applicable},
};
use crate::{
    finding::short,
    lattice,
    least_squares::{dot, solve_symmetric},
};

/// Rows whose value is unknown at most.
const ROWS: usize = 150;
/// Exact totals are told to this part of their rounding, so that what they do not tell is left to what is usual.
const EXACT: f64 = 1e-3;
/// A column is known where this part of the rows is wrong at most, and half as many as a blind guess's.
const WRONG: f64 = 0.1;

fn key(values: &[f64]) -> Vec<u64> {
    values.iter().map(|x| x.to_bits()).collect()
}

/// Two values of which each of some rows has one, known but for which.
struct Two {
    name: String,
    rows: Vec<usize>,
    /// Whether each has the second one.
    truth: Vec<bool>,
    /// One's own site if all rows had the first one, and if all had the second one.
    sites: [Site; 2],
}

impl Two {
    /// The two values that occur most among those by row; none where there are more, or not two.
    fn of<T: Ord + Clone>(name: String, values: &[T], few: bool, with: impl Fn(&T) -> Site) -> Option<Two> {
        let mut counts: BTreeMap<&T, usize> = BTreeMap::new();
        values.iter().for_each(|value| *counts.entry(value).or_default() += 1);
        let fits = few || counts.len() == 2;
        let mut counts: Vec<(&T, usize)> = counts.into_iter().filter(|_| fits).collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let (most, next) = (counts.first()?.0, counts.get(1)?.0);
        let has = |at: &usize| values[*at] == *most || values[*at] == *next;
        let rows: Vec<usize> = (0..values.len()).filter(has).take(ROWS).collect();
        let truth = rows.iter().map(|at| values[*at] == *next).collect();
        Some(Two { name, rows, truth, sites: [with(most), with(next)] })
    }

    /// Every column of two values.
    fn all(scene: &Scene) -> Vec<Two> {
        let own = &scene.sites[0];
        let column = |column: Column| {
            let values: Vec<Vec<u64>> = own.values.iter().map(|row| key(&row[column.places.clone()])).collect();
            let with = |value: &Vec<u64>| {
                let mut site = own.clone();
                let value: Vec<f64> = value.iter().map(|bits| f64::from_bits(*bits)).collect();
                site.values.iter_mut().for_each(|row| row[column.places.clone()].copy_from_slice(&value));
                site
            };
            Two::of(column.name.clone(), &values, column.is_category, with)
        };
        scene.columns().into_iter().filter_map(column).collect()
    }
}

/// Whole numbers 0 or 1 with `along` x near `left`. Where totals are exact the most certain one is taken first, and the others are adjusted
/// to it; under noise that would only carry errors on.
fn zeros_and_ones(along: &[Vec<f64>], left: &[f64], share: f64, exact: bool) -> Vec<bool> {
    let n = along.len();
    let usual = 1.0 / (share * (1.0 - share)).max(1e-3);
    let square: Vec<f64> = (0..n * n)
        .into_par_iter()
        .map(|at| dot(&along[at / n], &along[at % n]) + if at / n == at % n { usual } else { 0.0 })
        .collect();
    let column = |of: usize| {
        let unit = (0..n).map(|i| f64::from(u8::from(i == of))).collect();
        solve_symmetric(square.clone(), unit).unwrap_or_else(|| vec![0.0; n])
    };
    let mut inverse: Vec<Vec<f64>> = (0..n).into_par_iter().map(column).collect();
    let against: Vec<f64> = along.iter().map(|a| dot(a, left) + usual * share).collect();
    let mut x: Vec<f64> = inverse.iter().map(|row| dot(row, &against)).collect();
    let mut open: Vec<usize> = (0..if exact { n } else { 0 }).collect();
    while !open.is_empty() {
        let sure = |i: &usize| (x[*i] - 0.5).abs() / inverse[*i][*i].max(1e-12).sqrt();
        let at = (0..open.len()).max_by(|a, b| sure(&open[*a]).total_cmp(&sure(&open[*b]))).unwrap_or_default();
        let fixed = open.swap_remove(at);
        let (by, variance) = (f64::from(u8::from(x[fixed] > 0.5)) - x[fixed], inverse[fixed][fixed].max(1e-12));
        let row = inverse[fixed].clone();
        for i in &open {
            x[*i] += row[*i] / variance * by;
            let factor = row[*i] / variance;
            open.iter().for_each(|j| inverse[*i][*j] -= factor * row[*j]);
        }
        x[fixed] += by;
    }
    x.iter().map(|x| *x > 0.5).collect()
}

/// How often the best guess of one of two values is right, where totals are so many deviations apart and one value has this share.
fn best_share(apart: f64, share: f64) -> f64 {
    let most = share.max(1.0 - share);
    if apart < 1e-9 {
        return most;
    }
    let (tilt, half) = ((most / (1.0 - most).max(1e-12)).ln() / apart, apart / 2.0);
    let normal = |x: f64| if x < 0.0 { 1.0 - privacy::best_auc(x * x) } else { privacy::best_auc(x * x) };
    most * normal(half + tilt) + (1.0 - most) * normal(half - tilt)
}

/// A column of two values for many rows at once, all else known.
///
/// # Errors
/// Where a row cannot answer.
pub(super) fn whole_numbers(scene: &Scene, told: &Told) -> Result<Vec<Tried>> {
    let tries =
        "somebody knows all columns but one, of two values, and solves all totals for the whole numbers of every row";
    if !told.played.adds_up() {
        return Ok(vec![not_applicable("whole numbers", tries, "not all totals are sums over rows")]);
    }
    let mut lines = Vec::new();
    for Two { name, rows, truth, sites } in Two::all(scene) {
        let site = &scene.sites[0];
        let with = |site: &Site| -> Result<Vec<Vec<f64>>> {
            let of = |at: &usize| told.played.influence(&scene.work, site, *at, &site.values[*at]);
            rows.par_iter().map(of).collect()
        };
        let (base, other) = (with(&sites[0])?, with(&sites[1])?);
        let mut known = scene.prepared(&scene.work)?;
        known[0] = site.prepared(&scene.work, (0..site.values.len()).filter(|at| !rows.contains(at)))?;
        let mut left = told.played.without(&known)?;
        base.iter().for_each(|row| left.iter_mut().zip(row).for_each(|(x, own)| *x -= own));
        let scale = if scene.rho().is_some() { 1.0 } else { EXACT };
        let along: Vec<Vec<f64>> =
            base.iter().zip(&other).map(|(a, b)| a.iter().zip(b).map(|(a, b)| scale * (b - a)).collect()).collect();
        left.iter_mut().for_each(|x| *x *= scale);
        let n = truth.len();
        let nexts = truth.iter().filter(|is| **is).count();
        let found = zeros_and_ones(&along, &left, nexts as f64 / n as f64, scene.rho().is_none());
        let right = found.iter().zip(&truth).filter(|(a, b)| a == b).count();
        // Blindly: the value that occurs more often.
        let blind = nexts.max(n - nexts);
        let share = blind as f64 / n as f64;
        // A value that is replaced costs four times the account.
        let bound = scene.rho().map(|rho| best_share((8.0 * rho).sqrt(), share));
        let few = (n - right) as f64 <= (WRONG * n as f64).min((n - blind) as f64 / 2.0);
        let over = bound.is_some_and(|most| tail(right, n, most) < 1e-6);
        let answer = Answer::of(over, few && tail(right, n, share) < RARE);
        let said = [format!("{name}: {right} of {n} rows right"), format!("{blind} right")];
        let more = (right as f64 - blind as f64) / (n - blind).max(1) as f64;
        let line = Tried::new(("whole numbers", tries), Some(Knows::OtherSites), said, answer, more);
        lines.push((answer, right - blind.min(right), line));
    }
    let worst = lines.into_iter().max_by_key(|(answer, more, _)| (*answer, *more));
    Ok(vec![worst.map_or_else(|| not_applicable("whole numbers", tries, "no column has two values"), |line| line.2)])
}

/// Possible rows at most, of a lattice that is reduced in seconds.
const CELLS: usize = 32;
/// Totals that go into the lattice.
const TOTALS: usize = 12;
/// Cells with so few rows tell of single persons.
const FEW: f64 = 4.0;

/// How often each possible row occurs, where columns have few values.
///
/// # Errors
/// Where a row cannot answer.
pub(super) fn cells(scene: &Scene, told: &Told) -> Result<Vec<Tried>> {
    let tries = "columns have few values, and somebody looks for the whole numbers of each possible row that add up to the totals";
    let no = |why| Ok(vec![not_applicable("possible rows", tries, why)]);
    if !told.played.adds_up() {
        return no("not all totals are sums over rows alone");
    }
    // Which values a column may have is known: everybody reads the schema.
    let mut possible: Vec<Vec<f64>> = vec![Vec::new()];
    for column in scene.columns() {
        let each: BTreeMap<Vec<u64>, Vec<f64>> = scene
            .sites
            .iter()
            .flat_map(|site| &site.values)
            .map(|row| (key(&row[column.places.clone()]), row[column.places.clone()].to_vec()))
            .collect();
        if each.len() * possible.len() > CELLS {
            return no("there are many possible rows");
        }
        possible = possible.iter().flat_map(|row| each.values().map(|v| [&row[..], v].concat())).collect();
    }
    let site = &scene.sites[0];
    let deviations: Vec<f64> = told.played.asked.iter().flat_map(|asked| asked.deviations.iter().copied()).collect();
    let unit = |row: &Vec<f64>| -> Result<Vec<f64>> {
        let told = told.played.influence(&scene.work, site, 0, row)?;
        Ok(told.iter().zip(&deviations).map(|(x, s)| x * s).collect())
    };
    let parts: Vec<Vec<f64>> = possible.iter().map(unit).collect::<Result<_>>()?;
    let released: Vec<f64> = told.played.asked.iter().flat_map(|asked| asked.total.iter().copied()).collect();
    // The row count, and the totals in which possible rows differ most.
    let spread = |entry: usize| {
        let all = parts.iter().map(|part| part[entry]);
        all.clone().fold(f64::MIN, f64::max) - all.fold(f64::MAX, f64::min)
    };
    let usable = |entry: &usize| parts.iter().all(|part| part[*entry].abs() < 512.0);
    let mut order: Vec<usize> = (1..released.len()).filter(usable).collect();
    order.sort_by(|a, b| spread(*b).total_cmp(&spread(*a)));
    order.truncate(TOTALS);
    order.push(0);
    let chosen = |of: &Vec<f64>| order.iter().map(|entry| of[*entry]).collect::<Vec<f64>>();
    let parts: Vec<Vec<f64>> = parts.iter().map(chosen).collect();
    let truth: Vec<f64> = possible
        .iter()
        .map(|cell| scene.sites.iter().flat_map(|site| &site.values).filter(|row| *row == cell).count() as f64)
        .collect();
    let even = scene.rows() as f64 / possible.len() as f64;
    let found = lattice::whole_numbers(&parts, &chosen(&released), even).unwrap_or_default();
    let right = found.iter().zip(&truth).filter(|(a, b)| (*a - *b).abs() < 0.5).count();
    let rare = truth.iter().filter(|n| **n > 0.5 && **n <= FEW).count();
    let chance = truth.iter().filter(|n| (**n - even).abs() < 1.0).count();
    let cells = truth.len();
    let gets = format!("{right} of {cells} counts are right; {rare} are of 1 to {FEW} rows");
    let answer = Answer::of(false, right == cells && rare > 0 && chance < right);
    let more = (right as f64 - chance as f64) / (cells - chance).max(1) as f64;
    let said = [gets, format!("{chance} of {cells}")];
    Ok(vec![Tried::new(("possible rows", tries), None, said, answer, more)])
}

/// The share is known where it is off by this part of a blind guess's error.
const KNOWN: f64 = 0.1;

/// What share of one's own rows has a property, for all other sites together.
///
/// # Errors
/// Where a row cannot answer.
pub(super) fn share(scene: &Scene, told: &Told, draw: u64) -> Result<Vec<Tried>> {
    let tries =
        "all other sites together take their own parts off the totals, and ask which share of your rows has a property";
    if !told.played.adds_up() {
        return Ok(vec![not_applicable("share of a site", tries, "not all totals are sums over rows")]);
    }
    // They know their own noise, too: one site's share of it is left.
    let honest = if scene.rho().is_some() { HONEST as f64 } else { 1.0 };
    let own = scene.sites[0].values.len() as f64;
    let targets = scene.targets.iter().map(|at| &scene.sites[0].values[*at]).zip(&told.targets);
    let sampled = scene.sample.iter().map(|(site, at)| &scene.sites[*site].values[*at]).zip(&told.sample);
    // Half of them does, in a fraction of the time.
    let all: Vec<(&Vec<f64>, &Vec<f64>)> = sampled.chain(targets).step_by(2).collect();
    let mut best: Option<(f64, String)> = None;
    for column in scene.some_columns(PROPERTIES, draw) {
        let mut values: Vec<f64> = all.iter().map(|(row, _)| row[column.places.start]).collect();
        values.sort_by(f64::total_cmp);
        let middle = if column.is_category { 1.0 } else { values[values.len() / 2] };
        let is: Vec<bool> = all.iter().map(|(row, _)| row[column.places.start] >= middle).collect();
        let with = is.iter().filter(|is| **is).count();
        if with.min(all.len() - with) < KIND {
            continue;
        }
        let mean = |kind: bool| {
            let mut sums = vec![0.0; told.played.entries()];
            let of_kind = all.iter().zip(&is).filter(|(_, is)| **is == kind);
            of_kind.for_each(|((_, told), _)| sums.iter_mut().zip(*told).for_each(|(sum, x)| *sum += x));
            let count = if kind { with } else { all.len() - with } as f64;
            sums.iter_mut().for_each(|sum| *sum *= honest.sqrt() / count);
            sums
        };
        let (a, b) = (mean(true), mean(false));
        // What rows of one kind differ by, beside their kind's mean.
        let beside = |((_, told), is): (&(&Vec<f64>, &Vec<f64>), &bool)| {
            let usual = if *is { &a } else { &b };
            told.iter().zip(usual).map(|(x, m)| honest.sqrt() * x - m).collect()
        };
        let beside: Vec<Vec<f64>> = all.iter().zip(&is).map(beside).collect();
        let change: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
        let usual = Usual::of(&beside);
        let apart = usual.unknown(own).apart(&usual.split(&change));
        let error = (0.8 / (apart * own).max(1e-12)).min(BLIND);
        let name = match scene.work.names().get(column.places.start) {
            Some(name) if column.is_category => name.clone(),
            _ => format!("{} from {} on", column.name, short(middle)),
        };
        if best.as_ref().is_none_or(|best| error < best.0) {
            best = Some((error, name));
        }
    }
    let Some((error, name)) = best else {
        return Ok(vec![not_applicable("share of a site", tries, "no property has both kinds of rows")]);
    };
    let said = [
        format!("{name}: the share of your rows, off by {} % of them", short(100.0 * error)),
        format!("off by {} %, any share being as likely", short(100.0 * BLIND)),
    ];
    let answer = Answer::of(false, error <= KNOWN * BLIND);
    let line = Tried::new(("share of a site", tries), Some(Knows::OtherSites), said, answer, 1.0 - error / BLIND);
    Ok(vec![Tried { of_rows: false, ..line }])
}

/// Columns that are asked about in a draw.
const PROPERTIES: usize = 12;
/// Rows of either kind by which one says how they differ.
const KIND: usize = 8;
/// The mean error of the guess that half of the rows have a property.
const BLIND: f64 = 0.25;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_guess_of_two_values() {
        assert_eq!(best_share(0.0, 0.3), 0.7);
        // One deviation to either side.
        assert!((best_share(2.0, 0.5) - 0.841_344_7).abs() < 1e-6);
        assert!(best_share(20.0, 0.01) > 0.999_999);
    }
}
