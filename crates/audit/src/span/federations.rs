//! Federations at random: rows, plans and what happens to the cohort, played at the level of totals with the sites' own code.
//!
//! The same seed gives the same federation twice: with the release rule off, so that cohorts may differ by single sites, and with
//! it on, so that every cohort is a union of whole blocks. What is planted must be found in the first and nothing in the second.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use veilsum_cluster::{
    Algorithm, Batch, Centres, Domain, Method, OutOfBox, Prepared, Query, Recipe, Rows, Run, Scaling, Statistic, Step,
    answer_with_noise,
    method::{Seeding, Stage, TreeSeeding},
    query::{Bracket, FeatureParams, Histogram, LocalSteps, Moments},
    random::Stream,
};
use veilsum_node::question::{Layout, Question, SumBounds};

use super::{Assumed, Blocks, Told};
use crate::qr::row_space;

const LABEL: &[u8; 24] = b"veilsum audit span fed 1";
/// Rows that a plan allows a site.
const MAX_ROWS: u64 = 4_096;

/// The sites of a federation and how their numbers travel.
pub struct Sites {
    /// Every site's rows.
    pub rows: BTreeMap<String, Prepared>,
    /// The public box.
    pub domain: Domain,
    /// The form of every total.
    pub form: SumBounds,
    /// For questions that ask for blur.
    pub noise: Stream,
}

impl Sites {
    /// These rows in original units, by site.
    ///
    /// # Errors
    /// Where they leave the box.
    pub fn new(rows: &BTreeMap<String, Rows>, domain: Domain, step_bits: Option<u8>) -> Result<Sites> {
        let ready =
            |(name, rows): (&String, &Rows)| Ok((name.clone(), Prepared::new(rows, &domain, OutOfBox::Refuse)?));
        let ready: BTreeMap<String, Prepared> = rows.iter().map(ready).collect::<Result<_>>()?;
        let form = SumBounds { step_bits, ..SumBounds::new(ready.len(), MAX_ROWS) };
        Ok(Sites { rows: ready, domain, form, noise: Stream::new(0, LABEL) })
    }

    /// All of them.
    pub fn everybody(&self) -> BTreeSet<String> {
        self.rows.keys().cloned().collect()
    }

    /// The total over a cohort, as its aggregator decodes it.
    ///
    /// # Errors
    /// Where a site cannot answer.
    pub fn total(&mut self, question: &Question, cohort: &BTreeSet<String>) -> Result<Told> {
        let layout: Layout = question.layout(&self.domain, &self.form)?;
        let mut sum = vec![0u64; layout.words()];
        for site in cohort {
            let rows = self.rows.get(site).context("a site that is not there")?;
            let statistic = match question {
                Question::Cluster(batch) | Question::Drawn { batch, .. } => {
                    answer_with_noise(batch, rows, &mut self.noise)?
                }
                _ => Statistic { values: vec![rows.len() as f64] },
            };
            sum.iter_mut().zip(layout.encode(&statistic)?).for_each(|(s, w)| *s = s.wrapping_add(w));
        }
        let values = layout.decode(&sum, cohort.len(), None)?.values;
        Told::new(question.clone(), self.domain.clone(), &self.form, cohort.clone(), Some(values))
    }

    /// Plays a recipe. `cohort` says who is in each question's total (counted from 0; whether it is one of the algorithm's rounds);
    /// the run ends where nobody is.
    ///
    /// # Errors
    /// Where the recipe cannot be begun.
    pub fn play(
        &mut self,
        recipe: &Recipe,
        cohort: &mut dyn FnMut(usize, bool) -> Option<BTreeSet<String>>,
    ) -> Result<Vec<Told>> {
        let mut method = Run::new(recipe.clone(), &self.domain, self.rows.len() as u32)?;
        let mut step = method.next(None)?;
        let mut told: Vec<Told> = Vec::new();
        while let Step::Ask(batch) = step {
            let Some(cohort) = cohort(told.len(), method.stage() == Some(Stage::Iterating)) else { break };
            let total = self.total(&Question::Cluster(batch), &cohort)?;
            let values = total.values.clone().unwrap_or_default();
            told.push(total);
            // A method that cannot go on with a smaller cohort ends; what was released stays released.
            match method.next(Some(&veilsum_cluster::Totals { values, rows: None })) {
                Ok(next) => step = next,
                Err(_) => break,
            }
        }
        Ok(told)
    }
}

/// What one plan asks.
enum Plan {
    Method(Box<Recipe>),
    /// These questions, one after the other.
    Asked(Vec<Query>),
}

/// What happens to the cohort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Nothing,
    /// The site leaves in the middle of the first plan.
    Lost,
    /// The site comes with the second plan.
    Joins,
    /// In every round of the algorithm some sites are drawn.
    Sampled,
}

/// A federation at random and all that it released.
pub struct Federation {
    /// What it is, for people.
    pub what: String,
    /// All totals.
    pub told: Vec<Told>,
    /// The sites' rows.
    pub rows: BTreeMap<String, Prepared>,
    /// What the adversary may take for granted.
    pub assumed: Assumed,
    /// Sites that must be found, by their row counts: nobody with the rule on.
    pub planted: Vec<Planted>,
}

/// A site that the totals give away.
pub struct Planted {
    /// Its name.
    pub site: String,
    /// Whether totals that hold the row count as such say it; else rounds of fuzzy c-means do.
    pub exact: bool,
}

/// The federation of this seed, with the release rule or without.
///
/// # Errors
/// Where a plan cannot be played, which is a defect of this generator.
pub fn draw(seed: u64, rule: bool) -> Result<Federation> {
    let mut stream = Stream::new(seed, LABEL);
    let stream = &mut stream;
    // What only one of the two needs comes from a stream of its own.
    let mut apart = Stream::new(!seed, LABEL);
    let event = [Event::Nothing, Event::Lost, Event::Joins, Event::Sampled][stream.below(4) as usize];
    // A draw of sites tells all of them apart only where there are as many rounds.
    let most = if event == Event::Sampled { 7 } else { 20 };
    let n = 3 + stream.below(most - 2) as usize;
    // Three columns now and then: they cost the most.
    let d = [1, 1, 2, 2, 2, 2, 3][stream.below(7) as usize];
    let names: Vec<String> = (0..n).map(|i| format!("site-{:02}", i + 1)).collect();
    let mut sites = sites(&names, d, stream)?;
    let contributors = if n >= 8 && stream.below(2) == 1 { 3 } else { 2 };
    let least = contributors + 1;
    let plans = (1 + stream.below(4) as usize).max(if event == Event::Joins { 2 } else { 1 });
    let single = names[stream.below(n as u64) as usize].clone();
    let blocks = rule.then(|| blocks(&names, least, &mut apart)).transpose()?;

    let mut told = Vec::new();
    let mut kinds = Vec::new();
    for number in 0..plans {
        let rounds = match (event, number) {
            // One for each site that may be drawn.
            (Event::Sampled, _) => n as u32 + 4,
            (Event::Lost, 0) => 20,
            (Event::Joins, 0 | 1) => 10,
            _ => 4,
        };
        let (kind, plan) = plan(event, rounds, &sites.domain, stream)?;
        let length = match &plan {
            Plan::Asked(asked) => asked.len(),
            Plan::Method(recipe) => recipe.algorithm.max_questions(recipe.rule) as usize,
        };
        kinds.push(kind);
        let everybody = sites.everybody();
        let mut here = everybody.clone();
        if event == Event::Joins && number == 0 || event == Event::Lost && number > 0 {
            here.remove(&single);
        }
        // Half of the first plan's questions are over everybody.
        let counted = &mut 0;
        let mut draws = Stream::new(stream.below(u64::MAX), LABEL);
        let mut cohort = |iterating: bool| {
            *counted += usize::from(iterating);
            let mut wanted = here.clone();
            if event == Event::Lost && number == 0 && *counted > length.div_ceil(2) {
                wanted.remove(&single);
            }
            if event == Event::Sampled && iterating {
                wanted = drawn(&wanted, blocks.as_ref(), &mut draws);
            }
            match &blocks {
                None => Some(wanted),
                Some(blocks) => blocks.allowed(&wanted),
            }
        };
        match plan {
            Plan::Method(recipe) => told.extend(sites.play(&recipe, &mut |_, iterating| cohort(iterating))?),
            Plan::Asked(asked) => {
                for query in asked {
                    if let Some(cohort) = cohort(true) {
                        told.push(sites.total(&Question::Cluster(Batch::from(query)), &cohort)?);
                    }
                }
            }
        }
        // The other aggregator, at the end.
        if stream.below(2) == 1
            && let Some(cohort) = cohort(false)
        {
            told.push(sites.total(&Question::CountRows, &cohort)?);
        }
    }
    let planted = if rule { Vec::new() } else { planted(event, &single, &names, &told) };
    let all: usize = sites.rows.values().map(Prepared::len).sum();
    Ok(Federation {
        what: format!("seed {seed}: {n} sites, {d} columns, {event:?}, {}", kinds.join(" + ")),
        told,
        assumed: Assumed { contributors, least, rows: all as f64 / n as f64, seed },
        rows: sites.rows,
        planted,
    })
}

/// What the totals give away by design: a site whose part is a combination of cohorts with exact row counts; and one that leaves
/// or joins between rounds of fuzzy c-means, ten on either side.
fn planted(event: Event, single: &str, names: &[String], told: &[Told]) -> Vec<Planted> {
    let part = |of: &BTreeSet<String>, site: &String| f64::from(u8::from(of.contains(site)));
    let exact: Vec<&BTreeSet<String>> = told.iter().filter(|t| counts_rows(&t.question)).map(|t| &t.cohort).collect();
    let basis = row_space(names.iter().map(|site| exact.iter().map(|c| part(c, site)).collect()).collect(), 1e-9);
    let alone = |i: usize| basis.iter().map(|b| b[i] * b[i]).sum::<f64>() > 1.0 - 1e-9;
    let mut found: Vec<Planted> =
        (0..names.len()).filter(|i| alone(*i)).map(|i| Planted { site: names[i].clone(), exact: true }).collect();
    let fuzzy =
        |with: bool| told.iter().filter(|t| fuzzy_sums(&t.question) && t.cohort.contains(single) == with).count();
    let moved = [Event::Lost, Event::Joins].contains(&event) && fuzzy(true) >= 10 && fuzzy(false) >= 10;
    if moved && !found.iter().any(|p| p.site == single) {
        found.push(Planted { site: single.to_owned(), exact: false });
    }
    found
}

/// Whether a combination of the answer is the row count, whatever the rows are: groups, memberships, bins add up to it.
fn counts_rows(question: &Question) -> bool {
    let (Question::Cluster(batch) | Question::Drawn { batch, .. }) = question else { return true };
    !batch.queries.iter().all(|q| matches!(q, Query::FuzzySums { .. } | Query::Cells(_) | Query::LocalFuzzy(_)))
}

fn fuzzy_sums(question: &Question) -> bool {
    matches!(question, Question::Cluster(batch) if batch.queries.iter().all(|q| matches!(q, Query::FuzzySums { .. })))
}

/// Sites with rows around three middles, of different sizes, in a box of any units.
fn sites(names: &[String], d: usize, stream: &mut Stream) -> Result<Sites> {
    let middles: Vec<Vec<f64>> = (0..3).map(|_| (0..d).map(|_| 0.15 + 0.7 * stream.unit()).collect()).collect();
    let (low, wide) = (10.0 * (stream.unit() - 0.5), 10f64.powf(4.0 * stream.unit() - 2.0));
    let mut rows = BTreeMap::new();
    for name in names {
        let own = 30 + stream.below(60) as usize;
        let mut values = Vec::with_capacity(own * d);
        for _ in 0..own {
            let middle = &middles[stream.below(3) as usize];
            values.extend(middle.iter().map(|m| low + wide * (m + 0.1 * stream.normal_pair()[0]).clamp(0.0, 1.0)));
        }
        rows.insert(name.clone(), Rows::new(values, d)?);
    }
    let scaling = if stream.below(2) == 0 { Scaling::Box } else { Scaling::None };
    let domain = Domain::new(vec![low; d], vec![low + wide; d], scaling)?;
    let step_bits = [None, Some(40), Some(24)][stream.below(3) as usize];
    Sites::new(&rows, domain, step_bits)
}

/// Blocks of at least this many sites each; every site is in one.
fn blocks(names: &[String], least: usize, stream: &mut Stream) -> Result<Blocks> {
    let mut names = names.to_vec();
    stream.shuffle(&mut names);
    let number = 1 + stream.below((names.len() / least) as u64) as usize;
    let mut blocks = vec![BTreeSet::new(); number];
    for (i, name) in names.into_iter().enumerate() {
        blocks[if i < number * least { i % number } else { stream.below(number as u64) as usize }].insert(name);
    }
    Ok(Blocks::new(blocks, least)?)
}

/// Six in ten of the sites; of the blocks, where there are any.
fn drawn(of: &BTreeSet<String>, blocks: Option<&Blocks>, stream: &mut Stream) -> BTreeSet<String> {
    let mut units: Vec<BTreeSet<String>> = match blocks {
        None => of.iter().map(|site| BTreeSet::from([site.clone()])).collect(),
        Some(blocks) => blocks.all().to_vec(),
    };
    stream.shuffle(&mut units);
    let count = ((0.6 * units.len() as f64).round() as usize).max(1);
    units.into_iter().take(count).flatten().collect()
}

/// A plan at random: its name and what it asks.
fn plan(event: Event, rounds: u32, domain: &Domain, stream: &mut Stream) -> Result<(String, Plan)> {
    let k = 2 + stream.below(if domain.columns() < 3 { 3 } else { 2 }) as u32;
    let local = LocalSteps { most: 3, epsilon: 0.0 };
    let algorithm = match (stream.below(10), event) {
        (0, _) => {
            return Ok((
                "histograms".into(),
                Plan::Asked(histograms(if event == Event::Sampled { rounds } else { 2 }, domain, stream)),
            ));
        }
        (1, _) => return Ok(("near centres".into(), Plan::Asked(near(k, domain, stream)?))),
        (2, _) => return Ok(("moments".into(), Plan::Asked(vec![Query::Moments(Moments { around: None }); 2]))),
        (3, _) => Algorithm::Kmeans { epsilon: 0.0, max_rounds: rounds },
        (4, _) => Algorithm::Kumar { epsilon: 0.0, max_rounds: rounds, local },
        (5, _) => Algorithm::Fkm { epsilon: 0.0, max_rounds: rounds, min_rows: 1, local_steps: 2, finish: 0 },
        (6, _) => Algorithm::FfcmAvg1 { m: 2.0, epsilon: 0.0, max_rounds: rounds, local, powers: false },
        (7, Event::Nothing) => {
            let features = FeatureParams { min: 4, max: 8, tau: 0.8, m: 2.0 };
            Algorithm::Ffcf { m: 2.0, features, anchors: 0, merge: false }
        }
        _ => Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: rounds },
    };
    let seed = stream.below(1 << 32);
    let tree = matches!(algorithm, Algorithm::Ffcf { .. }) || stream.below(3) == 0;
    let seeding = if tree {
        Seeding::Tree(TreeSeeding { seed, cells_per_cluster: 2, tries: 2, min_rows: 3, blur: 0.0 })
    } else {
        Seeding::Uniform { seed }
    };
    let name = format!("{} K {k}{}", algorithm.name(), if tree { " from cells" } else { "" });
    Ok((name, Plan::Method(Box::new(Recipe::plain(algorithm, k, seeding)))))
}

fn histograms(number: u32, domain: &Domain, stream: &mut Stream) -> Vec<Query> {
    let of = |stream: &mut Stream| {
        let column = stream.below(domain.columns() as u64) as usize;
        let (lower, upper) = domain.working_interval(column);
        let brackets = vec![Bracket { column: column as u32, lower, upper }];
        Query::Histogram(Histogram { brackets, bins: 12 + stream.below(24) as u32 })
    };
    (0..number).map(|_| of(stream)).collect()
}

/// One round of fuzzy c-means twice, at centres that are nearly the same.
fn near(k: u32, domain: &Domain, stream: &mut Stream) -> Result<Vec<Query>> {
    let first: Vec<Vec<f64>> = (0..k).map(|_| (0..domain.columns()).map(|_| stream.unit()).collect()).collect();
    let mut second = first.clone();
    second.iter_mut().flatten().for_each(|x| *x += 1e-3 * stream.normal_pair()[0]);
    let working = |parts: Vec<Vec<f64>>| -> Result<Query> {
        let place = |(j, x): (usize, &f64)| {
            let (low, high) = domain.working_interval(j);
            low + x * (high - low)
        };
        let rows: Vec<Vec<f64>> = parts.iter().map(|c| c.iter().enumerate().map(place).collect()).collect();
        Ok(Query::fuzzy_sums(Centres::from_rows(&rows)?, 2.0))
    };
    Ok(vec![working(first)?, working(second)?])
}
