//! First centres from totals: candidates from the margins, moved and weighed by sums, then weighted greedy k-means++ off-line
//! over those that hold rows.
//!
//! The first question counts rows in bins of every column. Candidates, some for each cluster, are drawn from these margins as if
//! columns were independent, far from each other (k-means++, Arthur & Vassilvitskii 2007). Two rounds then ask for the rows
//! nearest to each candidate and their sums. After the first one candidates without rows are drawn anew beside those that have
//! many. What the second one leaves are points with weights, few enough to cluster them off-line, many times. Its work
//! and its noise grow with the columns and the clusters, not with the cells of the box.
//!
//! *Under noise* the rounds ask [`Shifts`], each row pulling a quarter of the box's half diagonal at most, and a candidate whose
//! weight could be noise holds no rows. Without noise they ask [`LocalMeans`], the exact sums. No count is an error.
//!
//! *It falls short* with fewer candidates that hold rows than clusters: rows that coincide, or noise that drowns them. The
//! fullest of the others are first centres then, too.
//!
//! ```
//! use veilsum_cluster::method::{CandidateSearch, Candidates};
//! use veilsum_cluster::{OutOfBox, Prepared, pooled, synthetic};
//!
//! let example = synthetic::five_gaussians(synthetic::DEFAULT_SEED);
//! let domain = synthetic::five_gaussians_domain();
//! let sites = example
//!     .sites
//!     .iter()
//!     .map(|site| Prepared::new(&site.rows, &domain, OutOfBox::Refuse))
//!     .collect::<Result<Vec<_>, _>>()?;
//! let params = Candidates::usual(1);
//! let mut search = CandidateSearch::new(&params, 5, None, &domain)?;
//! let points = loop {
//!     let totals = pooled::totals(&search.ask().into(), &sites)?;
//!     if let Some(points) = search.take(&totals.values)? {
//!         break points;
//!     }
//! };
//! let start = points.start(5, params.seed, params.tries)?;
//! let truth = domain.centres_to_box(&example.truth)?;
//! assert!(veilsum_cluster::metrics::matched_distance(&start, &truth)?.max_abs < 0.1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::metrics::lost;
use crate::offline::kmeans::{WeightedFit, best_and_others, drawn, greedy_plus_plus, weighted_lloyd};
use crate::privacy::{Levels, Noise};
use crate::query::{Bracket, LocalMeans, LocalSteps, Margins, Shifts};
use crate::random::Stream;
use crate::totals_check::{check_values, steady};
use crate::{Centres, Domain, Error, Query, refuse};

const LABEL: &[u8; 24] = b"veilsum candidates v1   ";

/// Bins of every column. The number is prime: rows often lie on halves, quarters and tenths of a column, and on which side of an edge
/// they are would be told by rounding.
pub(crate) const MARGINS: Margins = Margins { bins: 17 };
/// Rounds of sums, and of those under noise if many rows stand against it.
const ROUNDS: u32 = 2;
const ROUNDS_OF_MANY: u32 = 3;
/// Points of the margins for each candidate, and steps of Lloyd over them.
const DRAWN_EACH: usize = 16;
const SPREADING: u32 = 3;
/// Candidates at most if there are fewer clusters.
const MOST: u32 = 1_024;
/// Candidates for each cluster at most.
const MOST_EACH: u32 = 16;
/// A count below so many deviations of its noise could be noise: of a candidate's rows, and of a bin's.
const CLEAR: f64 = 2.0;
/// How far beside a full candidate an empty one is drawn, in standard deviations of the columns.
const BESIDE: f64 = 0.5;
/// Many rows of a cluster against the noise ([`Noise::above`]).
const MANY: f64 = 400.0;
/// How far others are moved.
const A_LITTLE: f64 = 1e-3;

/// First centres from totals: how many candidates, and what is drawn off-line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidates {
    /// Seed of all draws; the k-means++ of restart r uses seed + r.
    pub seed: u64,
    /// Candidates for each cluster of the largest K, 2 to 16.
    pub each: u32,
    /// Off-line tries, of which the best counts (20 is usual), 1 to 1,000.
    pub tries: u32,
}

impl Candidates {
    /// What is usual: five candidates for each cluster.
    pub fn usual(seed: u64) -> Self {
        Self { seed, each: 5, tries: 20 }
    }

    /// Questions that it asks for so many clusters at most.
    pub fn questions(noise: Option<&Noise>, clusters: u32) -> u32 {
        let many = noise.is_some_and(|noise| noise.above(clusters) >= MANY);
        1 + if many { ROUNDS_OF_MANY } else { ROUNDS }
    }

    /// Candidates for so many points that are wanted: always more than these.
    pub fn count(&self, points: u32) -> u32 {
        points.saturating_mul(self.each).min(MOST.max(points.saturating_add(1)))
    }

    /// Distances off-line, about: those of drawing and spreading the candidates, and of every try over them with twenty steps of Lloyd.
    pub(crate) fn distances(&self, points: u32) -> u64 {
        let (many, k) = (u64::from(self.count(points)), u64::from(points));
        let greedy = |k: u64| 2 + u64::from(k.max(1).ilog2());
        let spread = [DRAWN_EACH as u64, many, many, greedy(many) + u64::from(SPREADING)];
        let tries = [u64::from(self.tries), many, k, greedy(k) + 20];
        let product = |of: [u64; 4]| of.into_iter().fold(1, u64::saturating_mul);
        product(spread).saturating_add(product(tries))
    }

    /// Numbers that its longest question asks for.
    pub(crate) fn most_words(&self, points: u32, columns: u64) -> u64 {
        let bins = u64::from(MARGINS.bins) + 1;
        (bins * columns).max(u64::from(self.count(points)) * (columns + 2) + 1)
    }

    /// Whether it can be asked.
    ///
    /// # Errors
    /// [`Error::Parameter`].
    pub fn check(&self) -> Result<(), Error> {
        refuse(!(2..=MOST_EACH).contains(&self.each), || {
            Error::parameter(format!("first centres from totals take 2 to {MOST_EACH} candidates for each cluster"))
        })?;
        let tries = (1..=1000).contains(&self.tries);
        refuse(!tries, || Error::parameter("first centres from totals take 1 to 1000 tries"))
    }

    /// The question of round `round`, counted from 0, about these candidates.
    pub(crate) fn sums(candidates: Centres, round: u32, levels: Option<&Levels>) -> Query {
        match levels {
            Some(levels) => {
                let clip = levels.pull_of_candidates();
                Shifts { centres: candidates, m: None, middle: false, clip, round }.into()
            }
            None => LocalMeans { centres: candidates, local: LocalSteps::ONE, min_rows: 1, nearest: false }.into(),
        }
    }
}

/// The candidates that the rounds left, fullest first.
#[derive(Debug, Clone, PartialEq)]
pub struct SeedPoints {
    /// Rows of each, P; 0 of those whose rows could be noise.
    pub weights: Vec<f64>,
    /// Where they are, P x d.
    pub points: Centres,
    /// Standard deviation of every column over all rows, d, units of the questions, as far as the margins tell it: rows are
    /// taken to be spread evenly in their bin.
    pub deviations: Vec<f64>,
    /// Rows of every column in bins of equal width over its side of the box, with the noise that they have.
    pub margins: Vec<Vec<f64>>,
}

impl SeedPoints {
    /// First centres for K clusters (K x d, units of the questions): the best of `tries` weighted greedy k-means++ starts, each
    /// followed by weighted Lloyd. If fewer points than clusters hold rows, the K fullest points.
    ///
    /// # Errors
    /// [`Error::Parameter`] for K = 0.
    pub fn start(&self, k: usize, seed: u64, tries: u32) -> Result<Centres, Error> {
        Ok(self.best(k, seed, tries)?.0)
    }

    /// The same, and how many times as large the objective over the points is in the best other try of which a centre lies elsewhere;
    /// `None` if none of them does.
    pub(crate) fn start_and_rival(
        &self,
        k: usize,
        (seed, tries): (u64, u32),
        domain: &Domain,
    ) -> Result<(Centres, Option<f64>), Error> {
        let (start, least, others) = self.best(k, seed, tries)?;
        let elsewhere = others.iter().filter(|other| lost(&other.centres, &start, domain) > 0);
        let rival = elsewhere.map(|other| other.objective / least).min_by(f64::total_cmp);
        Ok((start, rival))
    }

    /// First centres, their objective, and the other tries; without tries 0 and none.
    fn best(&self, k: usize, seed: u64, tries: u32) -> Result<(Centres, f64, Vec<WeightedFit>), Error> {
        refuse(k == 0, || Error::parameter("the number of clusters K must be at least 1"))?;
        if self.count() >= k {
            let mut stream = Stream::new(seed, LABEL);
            let (best, others) = best_and_others(&self.points, &self.weights, k, tries, &mut stream);
            return Ok((best.centres, best.objective, others));
        }
        let d = self.points.columns();
        Ok((Centres::finite(d, &self.points.as_slice()[..k.min(self.points.k()) * d]), 0.0, Vec::new()))
    }

    /// How many hold rows.
    pub fn count(&self) -> usize {
        self.weights.iter().filter(|weight| **weight > 0.0).count()
    }
}

/// The conversation that finds them.
#[derive(Debug, Clone)]
pub struct CandidateSearch {
    seed: u64,
    count: usize,
    levels: Option<Levels>,
    domain: Domain,
    /// The candidates of the open question; none while the margins are asked for.
    candidates: Option<Centres>,
    deviations: Vec<f64>,
    margins: Vec<Vec<f64>>,
    round: u32,
    rounds: u32,
}

impl CandidateSearch {
    /// Its beginning over `domain`, for so many first centres or anchors at most, with the levels of a plan with noise.
    ///
    /// # Errors
    /// [`Error::Parameter`].
    pub fn new(params: &Candidates, points: u32, levels: Option<&Levels>, domain: &Domain) -> Result<Self, Error> {
        params.check()?;
        Ok(Self {
            seed: params.seed,
            count: params.count(points) as usize,
            levels: levels.copied(),
            domain: domain.clone(),
            candidates: None,
            deviations: Vec::new(),
            margins: Vec::new(),
            round: 0,
            rounds: levels.map_or(ROUNDS, |levels| levels.searches.saturating_sub(1)),
        })
    }

    /// The open question.
    pub fn ask(&self) -> Query {
        match &self.candidates {
            None => MARGINS.into(),
            Some(candidates) => Candidates::sums(candidates.clone(), self.round, self.levels.as_ref()),
        }
    }

    /// Takes its totals; the points once they are found.
    ///
    /// # Errors
    /// [`Error::Implausible`] for totals that are none, and nothing has changed then.
    pub fn take(&mut self, values: &[f64]) -> Result<Option<SeedPoints>, Error> {
        let query = self.ask();
        check_values(values, query.words(&self.domain))?;
        // Of so many deviations hardly one count of nothing is.
        let noise = self.levels.and_then(|levels| levels.of(&query, &self.domain)).map_or(0.0, |all| all[0].deviation);
        let least = (CLEAR * noise).max(0.5);
        let Some(before) = self.candidates.take() else {
            let margins = Margin::all(values, least, &self.domain);
            let deviations: Vec<f64> = margins.iter().map(Margin::deviation).collect();
            let infinite = deviations.iter().any(|deviation| !deviation.is_finite());
            refuse(infinite, || Error::implausible("bins hold more rows than there can be"))?;
            self.deviations = deviations;
            let each = MARGINS.bins as usize + 1;
            self.margins = values.chunks_exact(each).map(|counts| counts[1..].to_vec()).collect();
            self.candidates = Some(self.spread(&margins));
            return Ok(None);
        };
        let (k, d) = (before.k(), before.columns());
        let (weights, sums) = values.split_at(k);
        let around = self.levels.is_some();
        let mut places = before.as_slice().to_vec();
        for ((place, sum), weight) in places.chunks_exact_mut(d).zip(sums.chunks_exact(d)).zip(weights) {
            if *weight >= least {
                place.iter_mut().zip(sum).for_each(|(x, sum)| *x = if around { *x } else { 0.0 } + sum / weight);
            }
        }
        let held: Vec<f64> = weights.iter().map(|weight| if *weight >= least { *weight } else { 0.0 }).collect();
        self.round += 1;
        if self.round < self.rounds {
            self.candidates = Some(self.inside(self.beside(&places, &held)));
            return Ok(None);
        }
        Ok(Some(self.points(&self.inside(places), &held, weights)))
    }

    /// Candidates far from each other, out of many points that are drawn column by column.
    fn spread(&self, margins: &[Margin]) -> Centres {
        let mut stream = Stream::new(self.seed, LABEL);
        let many = self.count * DRAWN_EACH;
        let values: Vec<f64> = (0..many).flat_map(|_| margins.iter()).map(|margin| margin.draw(&mut stream)).collect();
        let (points, weights) = (Centres::finite(margins.len(), &values), vec![1.0; many]);
        let start = greedy_plus_plus(&points, &weights, self.count, &mut stream);
        weighted_lloyd(&points, &weights, &start, SPREADING).centres
    }

    /// Draws those without rows anew beside others, in proportion to their rows, and moves these a little: a row of a grid would
    /// else often lie in the middle between two means of such rows, and the last bit of a sum would say where it counts.
    fn beside(&self, places: &[f64], held: &[f64]) -> Vec<f64> {
        let total: f64 = held.iter().sum();
        let mut stream = Stream::new(self.seed, b"veilsum candidates again");
        let d = self.deviations.len();
        let mut next = Vec::with_capacity(places.len());
        for (at, rows) in held.iter().enumerate() {
            let (from, far) = if *rows > 0.0 { (at, A_LITTLE) } else { (drawn(held, stream.unit() * total), BESIDE) };
            let from = if total > 0.0 { from } else { at };
            let around = places[from * d..].iter().zip(&self.deviations);
            next.extend(around.map(|(x, deviation)| x + far * deviation * stream.normal_pair()[0]));
        }
        next
    }

    fn inside(&self, mut places: Vec<f64>) -> Centres {
        let d = self.domain.columns();
        for (i, x) in places.iter_mut().enumerate() {
            let (low, high) = self.domain.working_interval(i % d);
            *x = steady(*x, low, high - low).clamp(low, high);
        }
        Centres::finite(d, &places)
    }

    /// The fullest first; of equal ones the earlier.
    fn points(&self, places: &Centres, held: &[f64], weights: &[f64]) -> SeedPoints {
        let mut order: Vec<usize> = (0..places.k()).collect();
        order.sort_by(|a, b| weights[*b].total_cmp(&weights[*a]).then(a.cmp(b)));
        let values: Vec<f64> = order.iter().flat_map(|at| places.row(*at)).copied().collect();
        SeedPoints {
            weights: order.iter().map(|at| held[*at]).collect(),
            points: Centres::finite(places.columns(), &values),
            deviations: self.deviations.clone(),
            margins: self.margins.clone(),
        }
    }
}

/// One column's bins with the rows in each of them.
struct Margin {
    bracket: Bracket,
    rows: Vec<f64>,
}

impl Margin {
    /// Counts that could be noise are nothing; a column of which nothing is left counts as spread evenly.
    fn all(values: &[f64], least: f64, domain: &Domain) -> Vec<Self> {
        let histogram = MARGINS.histogram(domain);
        let each = MARGINS.bins as usize + 1;
        let of = |(bracket, counts): (&Bracket, &[f64])| {
            let clear: Vec<f64> = counts[1..].iter().map(|n| if *n >= least { *n } else { 0.0 }).collect();
            let rows = if clear.iter().all(|n| *n == 0.0) { vec![1.0; clear.len()] } else { clear };
            Self { bracket: *bracket, rows }
        };
        histogram.brackets.iter().zip(values.chunks_exact(each)).map(of).collect()
    }

    fn ends(&self, bin: usize) -> (f64, f64) {
        let edge = |bin: usize| self.bracket.edge(bin as u32, MARGINS.bins);
        (edge(bin), edge(bin + 1))
    }

    fn draw(&self, stream: &mut Stream) -> f64 {
        let (low, high) = self.ends(drawn(&self.rows, stream.unit() * self.rows.iter().sum::<f64>()));
        low + (high - low) * stream.unit()
    }

    fn deviation(&self) -> f64 {
        let total: f64 = self.rows.iter().sum();
        let mean_of = |of: &dyn Fn(f64, f64) -> f64| {
            let part = |(bin, rows): (usize, &f64)| {
                let (low, high) = self.ends(bin);
                rows * of(low, high)
            };
            self.rows.iter().enumerate().map(part).sum::<f64>() / total
        };
        let mean = mean_of(&|low, high| low + (high - low) / 2.0);
        mean_of(&|low, high| (low + (high - low) / 2.0 - mean).powi(2) + (high - low).powi(2) / 12.0).sqrt()
    }
}
