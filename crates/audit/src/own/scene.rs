//! The federation that a plan is tried on: an organisation's own rows as the first site, and strangers at all others.

use std::{path::Path, sync::Arc};

use anyhow::{Result, ensure};
use veilsum_cluster::{Prepared, distance, random::Stream};
use veilsum_node::{
    documents::{self, Federation, RowsFrom},
    plan::PlanSpec,
    question::SumBounds,
    table,
};
use veilsum_proto::plan::Terms;

use super::{
    guess::Column,
    play::{Site, playable},
};
use crate::least_squares::mean_and_spread;

const LABEL: &[u8; 24] = b"veilsum audit others  v1";

/// Rows of one's own that are attacked; the farthest from all others come first.
const TARGETS: usize = 32;
/// Of them so many that are far from all others.
const OUTLIERS: usize = 12;
/// Rows by which an adversary knows what such rows usually are.
const SAMPLE: usize = 400;
/// Steps in which values may come.
const STEPS: [f64; 7] = [1000.0, 100.0, 10.0, 1.0, 0.1, 0.01, 0.001];
/// Rows among which outliers are looked for.
const LOOKED_AT: usize = 2_000;

/// A plan, the rows that it is tried on, and which of them are looked at.
#[derive(Clone)]
pub struct Scene {
    /// What is computed, as one process can play it.
    pub(super) work: PlanSpec,
    pub(super) terms: Arc<Terms>,
    /// Rows by site; the first are one's own.
    pub(super) sites: Vec<Site>,
    /// Rows of the first site that are attacked.
    pub(super) targets: Vec<usize>,
    /// Rows like them, by site and place; none is a target.
    pub(super) sample: Vec<(usize, usize)>,
    /// Whether the other sites' rows were drawn.
    pub(super) drawn: bool,
}

impl Scene {
    /// One's own rows under this plan, beside those of `others`, a file for each other site, or drawn ones where there is no file.
    ///
    /// # Errors
    /// Where rows cannot be read, or there are not as many files as other sites.
    pub fn new(federation: &Federation, own: &RowsFrom, others: &[std::path::PathBuf], seed: u64) -> Result<Scene> {
        let n = federation.roster.sites.len();
        let mut sites = vec![read(federation, own)?];
        ensure!(sites[0].values.len() >= 3, "{}: an audit needs three rows", own.data.display());
        if others.is_empty() {
            sites.resize(n, sites[0].clone());
        } else {
            ensure!(
                others.len() == n - 1,
                "--others: {} files for the {} other sites of the roster",
                others.len(),
                n - 1
            );
            for file in others {
                sites.push(read(federation, &RowsFrom { data: file.clone(), ..own.clone() })?);
            }
        }
        Ok(Scene::over((*federation.work).clone(), federation.terms.clone(), sites, others.is_empty(), seed))
    }

    /// The rows of these sites under this plan; the first site is one's own, and in the place of all others strangers are `drawn`.
    pub fn over(work: PlanSpec, terms: Arc<Terms>, sites: Vec<Site>, drawn: bool, seed: u64) -> Scene {
        let work = playable(&work);
        Scene { work, terms, sites, targets: Vec::new(), sample: Vec::new(), drawn }.again(seed)
    }

    /// The same with other strangers, where they are drawn, and other rows that are looked at; those far from all others stay.
    pub(super) fn again(&self, seed: u64) -> Scene {
        let (mut scene, mut stream) = (self.clone(), Stream::new(seed, LABEL));
        scene.look(&mut stream);
        scene
    }

    fn look(&mut self, stream: &mut Stream) {
        let mut own: Vec<usize> = (0..self.sites[0].values.len()).collect();
        stream.shuffle(&mut own);
        let rows: Vec<Vec<f64>> = own.iter().take(LOOKED_AT).map(|i| self.boxed(&self.sites[0].values[*i])).collect();
        let lonely = |at: usize| {
            let others = rows.iter().enumerate().filter(|(i, _)| *i != at);
            others.map(|(_, other)| distance::squared(&rows[at], other)).fold(f64::INFINITY, f64::min)
        };
        let mut far: Vec<(f64, usize)> = (0..rows.len()).map(|i| (lonely(i), own[i])).collect();
        far.sort_by(|a, b| b.0.total_cmp(&a.0));
        // At least a third of small sites stays to say what rows usually are.
        let most = TARGETS.min(own.len() - own.len() / 3);
        let mut targets: Vec<usize> = far.iter().take(OUTLIERS.min(most)).map(|(_, i)| *i).collect();
        if self.drawn {
            // Nobody elsewhere is like a person who is far from all others.
            let usual: Vec<usize> = own.iter().copied().filter(|i| !targets.contains(i)).collect();
            for site in 1..self.sites.len() {
                self.sites[site] = strangers(&self.work, &self.sites[0], &usual, stream);
            }
        }
        let rest: Vec<usize> =
            own.iter().copied().filter(|i| !targets.contains(i)).take(most - targets.len()).collect();
        targets.extend(rest);
        let mut like: Vec<(usize, usize)> = own.iter().filter(|i| !targets.contains(i)).map(|i| (0, *i)).collect();
        like.truncate(SAMPLE / 2);
        let most = SAMPLE.min(2 * self.rows());
        while like.len() < most && self.sites.len() > 1 {
            let site = 1 + stream.below(self.sites.len() as u64 - 1) as usize;
            like.push((site, stream.below(self.sites[site].values.len() as u64) as usize));
        }
        (self.targets, self.sample) = (targets, like);
    }

    /// The form of answers under a plan of this federation.
    ///
    /// # Errors
    /// Where the plan cannot be used.
    pub(super) fn form_of(&self, work: &PlanSpec) -> Result<SumBounds> {
        Ok(work.form(self.sites.len(), self.terms.max_rows)?)
    }

    /// Every site's rows, ready to answer.
    ///
    /// # Errors
    /// Where they do not fit the plan's box.
    pub(super) fn prepared(&self, work: &PlanSpec) -> Result<Vec<Prepared>> {
        self.sites.iter().map(|site| site.all(work)).collect()
    }

    /// Rows of all sites.
    pub(super) fn rows(&self) -> usize {
        self.sites.iter().map(|site| site.values.len()).sum()
    }

    /// What the plan may spend; nothing where it is exact.
    pub(super) fn rho(&self) -> Option<f64> {
        self.work.recipe.noise.map(|noise| noise.rho())
    }

    /// A row in box units: 0 is a column's lower end, 1 its upper end.
    pub(super) fn boxed(&self, row: &[f64]) -> Vec<f64> {
        let Ok(domain) = self.work.domain() else { return row.to_vec() };
        let ends = domain.lower().iter().zip(domain.upper());
        row.iter().zip(ends).map(|(x, (low, high))| ((x - low) / (high - low)).clamp(0.0, 1.0)).collect()
    }

    /// The largest step of which all values of a column of numbers are multiples.
    fn step(&self, column: usize) -> Option<f64> {
        let all = || self.sites.iter().flat_map(|site| &site.values).map(|row| row[column]);
        STEPS.into_iter().find(|step| all().all(|x| (x / step - (x / step).round()).abs() < 1e-6))
    }

    /// An error that makes a number known.
    fn known(&self, column: usize, ends: [f64; 2], step: Option<f64>) -> f64 {
        let all = self.sites.iter().flat_map(|site| &site.values).map(|row| row[column]);
        let (_, spread) = mean_and_spread(all);
        let part = (spread / 50.0).min((ends[1] - ends[0]) / 100.0).max((ends[1] - ends[0]) * 1e-6);
        step.map_or(part, |step| (0.49 * step).max(part))
    }

    /// The columns of the plan's header.
    pub(super) fn columns(&self) -> Vec<Column> {
        let numbers = self.work.columns.len();
        let mut place = 0;
        let of = |(at, name): (usize, &str)| {
            let width = at.checked_sub(numbers).map_or(1, |at| self.work.categorical[at].categories.len());
            place += width;
            let is_category = at >= numbers;
            let ends = self.work.columns.get(at).map_or([0.0, 1.0], |column| [column.lower, column.upper]);
            let step = if is_category { Some(1.0) } else { self.step(at) };
            let places = place - width..place;
            let known = if is_category { 0.5 } else { self.known(at, ends, step) };
            Column { name: name.to_owned(), places, is_category, ends, step, known }
        };
        self.work.headers().enumerate().map(of).collect()
    }

    /// So many of them at most, others in each draw.
    pub(super) fn some_columns(&self, most: usize, draw: u64) -> Vec<Column> {
        let mut all = self.columns();
        if all.len() > most {
            Stream::new(draw, LABEL).shuffle(&mut all);
            all.truncate(most);
        }
        all
    }

    /// Values that the column has in the sample, spread over all of them.
    pub(super) fn values_of(&self, column: &Column, most: usize) -> Vec<Vec<f64>> {
        let cells = self.sample.iter().map(|(site, at)| self.sites[*site].values[*at][column.places.clone()].to_vec());
        let mut all: Vec<Vec<f64>> = cells.collect();
        all.sort_by(|a, b| {
            a.iter().zip(b).map(|(a, b)| a.total_cmp(b)).find(|o| o.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
        });
        if column.is_category {
            all.dedup();
        }
        let (len, most) = (all.len(), most.min(all.len()));
        let mut spread: Vec<Vec<f64>> = (0..most).map(|i| all[(2 * i + 1) * len / (2 * most)].clone()).collect();
        spread.dedup();
        spread
    }
}

/// A site's rows as the plan reads them.
fn read(federation: &Federation, from: &RowsFrom) -> Result<Site> {
    let values = table::read(&from.data, &documents::spec_of(federation, from)?)?.values;
    let width = federation.work.names().len().max(1);
    Ok(Site { values: values.chunks_exact(width).map(<[f64]>::to_vec).collect() })
}

/// As many rows like a site's own: each is one of its `usual` ones, moved by less than such rows usually differ.
fn strangers(work: &PlanSpec, own: &Site, usual: &[usize], stream: &mut Stream) -> Site {
    let n = own.values.len();
    let numbers = work.columns.len();
    let spread = |column: usize| mean_and_spread(usual.iter().map(|at| own.values[*at][column])).1;
    // Silverman's rule for so many numbers of a row.
    let width = (n as f64).powf(-1.0 / (numbers as f64 + 4.0));
    let spreads: Vec<f64> = (0..numbers).map(|column| width * spread(column)).collect();
    let whole: Vec<bool> = (0..numbers).map(|c| own.values.iter().all(|row| row[c].fract() == 0.0)).collect();
    let mut draw = || {
        let at = usual[stream.below(usual.len() as u64) as usize];
        let mut row = own.values[at].clone();
        for (column, bounds) in work.columns.iter().enumerate() {
            let moved = row[column] + spreads[column] * stream.normal_pair()[0];
            let moved = if whole[column] { moved.round() } else { moved };
            row[column] = moved.clamp(bounds.lower, bounds.upper);
        }
        row
    };
    Site { values: (0..n).map(|_| draw()).collect() }
}

/// The federation of a plan file and of the roster beside it, or at `roster`.
///
/// # Errors
/// Where one of them cannot be read.
pub fn federation(plan: &Path, roster: Option<&Path>) -> Result<Federation> {
    let beside = plan.with_file_name("roster.toml");
    Ok(documents::load_federation(roster.unwrap_or(&beside), plan)?)
}

/// 40 rows at each of three sites.
#[cfg(test)]
pub(super) fn made_up() -> Scene {
    use veilsum_cluster::{Algorithm, Rows, method::Seeding};
    use veilsum_node::{
        loopback::{LoopbackSite, default_terms},
        plan,
    };
    let mut stream = Stream::new(1, LABEL);
    let column = |name: &str| plan::Column { name: name.into(), lower: 0.0, upper: 1.0 };
    let fcm = Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: 3 };
    let work = PlanSpec::plain(vec![column("x"), column("y")], fcm, 3, Seeding::Uniform { seed: 1 });
    let mut site = || Site { values: (0..40).map(|_| vec![stream.unit(), stream.unit()]).collect() };
    let sites: Vec<Site> = (0..3).map(|_| site()).collect();
    let rows = |site: &Site| LoopbackSite::new("site", Rows::new(site.values.concat(), 2).expect("rows"));
    let terms = default_terms(&sites.iter().map(rows).collect::<Vec<_>>(), &work);
    Scene::over(work, Arc::new(terms), sites, false, 1)
}
