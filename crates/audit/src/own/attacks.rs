//! The attacks on a plan, each on the organisation's own rows and beside blind guessing.

use anyhow::Result;
use rayon::prelude::*;
use veilsum_cluster::{
    Algorithm, Centres,
    method::{Clusters, Seeding},
    random::Stream,
};
use veilsum_node::plan::{PlanSpec, Recipe};

use super::{
    knows::Knows,
    likelihood::{Split, Unknown, Usual, area},
    play::{Played, play},
    scene::Scene,
    tried::{Answer, Tried, not_applicable},
};
use crate::finding::short;

const LABEL: &[u8; 24] = b"veilsum audit own     v1";

/// An adversary is sure of a row from this area under the curve on, and of a category from this chance on.
const SURE: f64 = 0.9;
/// A value is known where the error is this part of a blind guess's at most.
const KNOWN: f64 = 0.1;
/// More than the account allows, and not by rounding.
const BEYOND: f64 = 1.0 + 1e-6;

/// What single rows add to the totals of a run, and what the sample of rows like them adds.
pub(super) struct Told {
    pub(super) played: Played,
    pub(super) targets: Vec<Vec<f64>>,
    pub(super) sample: Vec<Vec<f64>>,
    usual: Usual,
}

impl Told {
    /// Plays a plan over the scene, and looks at every target and at the rows of the sample.
    ///
    /// # Errors
    /// Where the plan cannot be played.
    pub(super) fn of(scene: &Scene, work: &PlanSpec, draw: u64) -> Result<Told> {
        let played = play(work, scene.form_of(work)?, &scene.prepared(work)?, draw)?;
        let of = |(site, at): &(usize, usize)| {
            let site = &scene.sites[*site];
            played.influence(work, site, *at, &site.values[*at])
        };
        let own: Vec<(usize, usize)> = scene.targets.iter().map(|at| (0, *at)).collect();
        let targets = own.par_iter().map(of).collect::<Result<_>>()?;
        let sample: Vec<Vec<f64>> = scene.sample.par_iter().map(of).collect::<Result<_>>()?;
        let usual = Usual::of(&sample);
        Ok(Told { played, targets, sample, usual })
    }

    /// Two runs over the same rows as one.
    fn and(self, other: Told) -> Told {
        let join = |a: Vec<Vec<f64>>, b: Vec<Vec<f64>>| a.into_iter().zip(b).map(|(a, b)| [a, b].concat()).collect();
        let sample = join(self.sample, other.sample);
        Told { targets: join(self.targets, other.targets), usual: Usual::of(&sample), sample, ..self }
    }

    pub(super) fn unknown(&self, scene: &Scene, knows: Knows) -> Unknown<'_> {
        self.usual.unknown(knows.unknown(scene.sites[0].values.len(), scene.rows()))
    }

    /// By target, how many deviations apart totals with and without it are.
    fn presence(&self, scene: &Scene, knows: Knows) -> Vec<f64> {
        let unknown = self.unknown(scene, knows);
        // Beside unknown rows another one of their kind would stand in its place.
        let instead = (knows != Knows::AllOthers).then(|| self.usual.split(&self.usual.mean));
        let of = |row: &Vec<f64>| {
            let split = self.usual.split(row);
            unknown.apart(&instead.as_ref().map_or_else(|| split.clone(), |mean| split.less(mean)))
        };
        self.targets.par_iter().map(of).collect()
    }
}

/// Whether a row is there: the worst of the targets.
fn membership(
    scene: &Scene,
    told: &Told,
    plans: f64,
    attack: &'static str,
    tries: &'static str,
    of: &[Knows],
) -> Vec<Tried> {
    let line = |knows: &Knows| {
        let far = told.presence(scene, *knows);
        let (worst, most) = far.iter().copied().enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or_default();
        let areas: Vec<f64> = far.iter().map(|x| area(*x)).collect();
        let sure = areas.iter().filter(|area| **area >= SURE).count();
        // Instead of another row: one row more and one less.
        let times = if *knows == Knows::AllOthers { 1.0 } else { 4.0 };
        let over = scene.rho().is_some_and(|rho| most * most / 2.0 > times * plans * rho * BEYOND);
        let line = scene.targets.get(worst).map_or(0, |at| at + 1);
        let answer = Answer::of(over, sure > 0);
        let (best, rows) = (short(area(most)), areas.len());
        let gets =
            format!("is right about row {line} with an area under the curve of {best}; sure of {sure} of {rows} rows");
        Tried::new((attack, tries), Some(*knows), [gets, "0.5".into()], answer, 2.0 * area(most) - 1.0)
    };
    of.iter().map(line).collect()
}

/// Whether a row is there, by all totals of the plan.
pub(super) fn presence(scene: &Scene, told: &Told) -> Vec<Tried> {
    let tries = "somebody asks whether a person is among your rows, and compares all totals of the run with what they would be without";
    membership(scene, told, 1.0, "presence", tries, &Knows::EACH)
}

/// A second plan over the same rows: one cluster more, or one bin more. There is none for every plan.
///
/// # Errors
/// Where the second plan cannot be played.
pub(super) fn second(scene: &Scene, draw: u64) -> Result<Option<Told>> {
    let Clusters { min, max } = scene.work.recipe.clusters;
    let recipe = match scene.work.recipe.algorithm {
        Algorithm::Describe { bins } => {
            Recipe { algorithm: Algorithm::Describe { bins: bins + 1 }, ..scene.work.recipe.clone() }
        }
        _ => Recipe { clusters: Clusters { min: min + 1, max: max + 1 }, ..scene.work.recipe.clone() },
    };
    let work = PlanSpec { recipe, ..scene.work.clone() };
    if matches!(scene.work.recipe.seeding, Seeding::Given { .. }) || work.check().is_err() {
        return Ok(None);
    }
    Told::of(scene, &work, draw).map(Some)
}

/// The same as presence, over both plans.
pub(super) fn two_plans(scene: &Scene, told: Told, second: Option<Told>) -> Vec<Tried> {
    let tries =
        "the same after a second plan over the same rows, with one cluster more, or one bin more in a description";
    let Some(second) = second else {
        return vec![not_applicable("two plans", tries, "this plan has no twin with another K")];
    };
    let of = |told: &Told| membership(scene, told, 2.0, "two plans", tries, &[Knows::NoRow, Knows::OtherSites]);
    // Nobody has to look at the second one.
    let first = of(&told);
    worse(first, of(&told.and(second)))
}

/// Rows whose first centres somebody chooses.
const CHOSEN: usize = 3;
/// Between the two centres beside a row, box units.
const BESIDE: f64 = 1e-6;

/// Given first centres, two of them beside one row.
///
/// # Errors
/// Where a plan with such centres can be made and not be played.
pub(super) fn chosen_start(scene: &Scene, seed: u64) -> Result<Vec<Tried>> {
    let tries = "the coordinator makes the same plan with first centres of its choice, two of them beside a person whom it knows";
    let mut stream = Stream::new(seed, LABEL);
    let k = scene.work.recipe.clusters.min.max(2);
    let (mut worst, mut tried) = (Vec::new(), 0usize);
    for place in 0..scene.targets.len().min(CHOSEN) {
        let row = scene.boxed(&scene.sites[0].values[scene.targets[place]]);
        let mut beside = row.clone();
        beside[0] += if beside[0] > 0.5 { -BESIDE } else { BESIDE };
        let mut centres = vec![row.clone(), beside];
        centres.extend((2..k).map(|_| row.iter().map(|_| stream.unit()).collect()));
        let recipe = Recipe {
            clusters: Clusters::exactly(k),
            seeding: Seeding::Given { centres: Centres::from_rows(&centres)? },
            restarts: 1,
            range: None,
            ..scene.work.recipe.clone()
        };
        let work = PlanSpec { recipe, ..scene.work.clone() };
        if work.check().is_err() {
            continue;
        }
        tried += 1;
        // Half of the sample does for one row, and takes half the time.
        let sample = scene.sample.iter().step_by(2).copied().collect();
        let aimed = Scene { targets: vec![scene.targets[place]], sample, ..scene.clone() };
        let told = Told::of(&aimed, &work, seed)?;
        let lines = membership(&aimed, &told, 1.0, "chosen start", tries, &[Knows::NoRow, Knows::OtherSites]);
        worst = if worst.is_empty() { lines } else { worse(worst, lines) };
    }
    if tried == 0 {
        return Ok(vec![not_applicable("chosen start", tries, "this method takes no first centres from a plan")]);
    }
    Ok(worst)
}

/// By line the one with the worse answer.
fn worse(a: Vec<Tried>, b: Vec<Tried>) -> Vec<Tried> {
    a.into_iter().zip(b).map(|(a, b)| if b.answer > a.answer { b } else { a }).collect()
}

/// Rows whose values are guessed at most, values of them in a draw at most, and values that are tried for each.
const GUESSED: usize = 6;
const CELLS: usize = 48;
const TRIED: usize = 10;
/// Values of a column that are tried, the true one first, and what each adds to the totals.
type Guesses = (Vec<Vec<f64>>, Vec<Split>);
/// Runs of the noise for each value.
const DRAWS: usize = 100;

/// One column's value of one row, all other columns of it known.
///
/// # Errors
/// Where a changed row cannot answer.
pub(super) fn value(scene: &Scene, told: &Told, seed: u64) -> Result<Vec<Tried>> {
    let tries =
        "somebody knows a person's other columns, and takes for the last one the value that fits all totals best";
    let columns = scene.some_columns(CELLS, seed);
    let mut lines = Vec::new();
    // Guesses and what they add to the totals are the same for everybody who looks.
    let rows = scene.targets.len().min(GUESSED).min(CELLS / columns.len().max(1));
    let jobs: Vec<(usize, usize)> =
        (0..rows).flat_map(|row| (0..columns.len()).map(move |column| (row, column))).collect();
    let prior: Vec<Vec<Vec<f64>>> = columns.iter().map(|column| scene.values_of(column, TRIED)).collect();
    let change = |(row, column): &(usize, usize)| -> Result<Guesses> {
        let (at, places) = (scene.targets[*row], &columns[*column].places);
        let own = &scene.sites[0].values[at];
        let mut guesses = vec![own[places.clone()].to_vec()];
        let near = columns[*column].neighbours(&guesses[0]);
        let others: Vec<Vec<f64>> = near.into_iter().chain(prior[*column].iter().cloned()).collect();
        for guess in others {
            if !guesses.contains(&guess) {
                guesses.push(guess);
            }
        }
        let of = |guess: &Vec<f64>| {
            let mut changed = own.clone();
            changed[places.clone()].copy_from_slice(guess);
            let adds = told.played.influence(&scene.work, &scene.sites[0], at, &changed)?;
            Ok(told.usual.split(&adds))
        };
        let adds = guesses.iter().map(of).collect::<Result<_>>()?;
        Ok((guesses, adds))
    };
    let guesses = jobs.par_iter().map(change).collect::<Result<Vec<_>>>()?;
    for knows in Knows::EACH {
        let unknown = told.unknown(scene, knows);
        let outcome = |((row, column), (guesses, adds)): (&(usize, usize), &Guesses)| {
            let left: Vec<Vec<f64>> = adds.iter().map(|x| unknown.unexplained(x)).collect();
            let mut stream = Stream::new(seed ^ (*row as u64) << 32 ^ *column as u64, LABEL);
            let far = |a: usize, b: usize| unknown.apart(&adds[a].less(&adds[b]));
            (*column, super::guess::guessed(&columns[*column], guesses, &left, far, DRAWS, &mut stream))
        };
        let found: Vec<_> = jobs.par_iter().zip(&guesses).map(outcome).collect();
        // The column that is told best.
        let ratio = |of: &super::guess::Guessed| of.error / of.blind.max(f64::MIN_POSITIVE);
        let mut by_column: Vec<Option<super::guess::Guessed>> = vec![None; columns.len()];
        let mut over = false;
        for (column, of) in found {
            over |= scene.rho().is_some_and(|rho| of.farthest * of.farthest / 2.0 > 4.0 * rho * BEYOND);
            let best = &mut by_column[column];
            if of.blind > 0.0 && best.as_ref().is_none_or(|best| ratio(&of) < ratio(best)) {
                *best = Some(of);
            }
        }
        let best = by_column.iter().zip(&columns).filter_map(|(of, column)| Some((of.as_ref()?, column)));
        let Some((best, column)) = best.min_by(|a, b| ratio(a.0).total_cmp(&ratio(b.0))) else {
            lines.push(not_applicable("value", tries, "no column has two values"));
            break;
        };
        let exact = column.step.is_some() && best.wrong <= 1.0 - SURE && best.error <= best.blind / 2.0;
        let known = exact || !column.is_category && ratio(best) <= KNOWN;
        let answer = Answer::of(over, known);
        let gets = if exact { column.exactly(1.0 - best.wrong) } else { column.error(best.error) };
        let said = [gets, column.error(best.blind)];
        lines.push(Tried::new(("value", tries), Some(knows), said, answer, 1.0 - ratio(best)));
    }
    Ok(lines)
}

/// Outliers without whom the plan is played once more.
const LEFT_OUT: usize = 4;
/// A centre is a record where no column is off by more than this part of its range, and by much less than without the record.
const AT: f64 = 0.02;

/// Whether a published centre is a record.
///
/// # Errors
/// Where the plan cannot be played without one of the rows.
pub(super) fn published(scene: &Scene, told: &Told, draw: u64) -> Result<Vec<Tried>> {
    let tries =
        "somebody reads the published centres, and takes each for the record of a person who is far from all others";
    if scene.work.recipe.algorithm.traits().describes.is_some() {
        return Ok(vec![not_applicable("published record", tries, "the plan publishes no centres")]);
    }
    let far = |centres: &Centres, row: &[f64]| -> Result<f64> {
        let (_, boxed) = scene.work.units(centres)?;
        let off = |centre: &Vec<f64>| centre.iter().zip(row).map(|(c, x)| (c - x).abs()).fold(0.0, f64::max);
        Ok(boxed.iter().map(off).fold(f64::INFINITY, f64::min))
    };
    let (work, form) = (&scene.work, scene.form_of(&scene.work)?);
    let whole = scene.prepared(work)?;
    let of = |at: &usize| -> Result<(usize, f64, f64)> {
        let row = scene.boxed(&scene.sites[0].values[*at]);
        let mut sites = whole.clone();
        sites[0] = scene.sites[0].prepared(work, (0..scene.sites[0].values.len()).filter(|i| i != at))?;
        let without = play(work, form, &sites, draw)?.outcome.centres;
        Ok((*at, far(&told.played.outcome.centres, &row)?, far(&without, &row)?))
    };
    let targets: Vec<usize> = scene.targets.iter().copied().take(LEFT_OUT).collect();
    let found = targets.par_iter().map(of).collect::<Result<Vec<_>>>()?;
    let ratio = |of: &(usize, f64, f64)| of.1 / of.2.max(1e-12);
    let best = found.into_iter().min_by(|a, b| ratio(a).total_cmp(&ratio(b))).unwrap_or((0, 1.0, 1.0));
    let (at, with, without) = best;
    let gets = format!("row {} is at most {} % of a column's range from a centre", at + 1, short(100.0 * with));
    let blind = format!("{} % (a run without the row)", short(100.0 * without));
    let answer = Answer::of(false, with <= AT && with < 0.2 * without);
    Ok(vec![Tried::new(("published record", tries), None, [gets, blind], answer, 1.0 - ratio(&best))])
}

/// Counts in exact totals that are as small as this tell of single persons.
const FEW: f64 = 5.0;

/// Whether an exact total counts few rows.
///
/// # Errors
/// Where a site cannot answer.
pub(super) fn few_in_a_cell(scene: &Scene, told: &Told) -> Result<Vec<Tried>> {
    let tries = "somebody looks for counts of very few rows among the totals: a rare category, a bin, a cluster of one";
    if scene.rho().is_some() {
        return Ok(vec![not_applicable("few in a cell", tries, "all counts have noise")]);
    }
    let deviations: Vec<f64> = told.played.asked.iter().flat_map(|asked| asked.deviations.iter().copied()).collect();
    let rows: Vec<&Vec<f64>> = told.targets.iter().chain(&told.sample).collect();
    // What a row adds to a count is nothing, or the same as every other row that it counts.
    let unit = |entry: usize| {
        let added = || rows.iter().map(|row| row[entry] * deviations[entry]);
        let one = added().find(|x| x.abs() > 1e-6)?;
        added().all(|x| x.abs() < 1e-6 || (x - one).abs() < 1e-6 * one.abs()).then_some((entry, one))
    };
    let cells: Vec<(usize, f64)> = (0..deviations.len()).filter_map(unit).collect();
    let mut totals = vec![0.0; cells.len()];
    for site in &scene.sites {
        let own = told.played.answer(&site.all(&scene.work)?)?;
        cells.iter().zip(&mut totals).for_each(|((at, one), total)| *total += own[*at] / one);
    }
    let is_few = |n: &&f64| (**n - n.round()).abs() < 1e-3 && **n > 0.5 && **n < FEW - 0.5;
    let few = totals.iter().filter(is_few).count();
    if cells.is_empty() {
        return Ok(vec![not_applicable("few in a cell", tries, "no total counts rows")]);
    }
    let gets = format!("{few} of {} counts are of 1 to {} rows", cells.len(), FEW - 1.0);
    let answer = Answer::of(false, few > 0);
    let share = few as f64 / cells.len() as f64;
    Ok(vec![Tried::new(("few in a cell", tries), None, [gets, "0".into()], answer, share)])
}
