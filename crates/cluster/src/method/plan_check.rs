//! The site's side of a recipe: which questions belong to it at all, and what a whole run may ask.
//!
//! A site that agreed to a plan answers only these. It cannot yet see whether the centres of a question follow from the
//! totals before; that they lie in the box, that every parameter is the plan's, and that a question has the shape of one
//! that follows the question before ([`Recipe::follows`]), it can.

use std::collections::BTreeMap;

use super::prepare::{Preparing, Scale};
use super::recipe::{Recipe, Seeding};
use super::seed::{Candidates, MARGINS, ROUNDS};
use crate::algorithm::{Beginning, describe};
use crate::query::{FuzzyValidation, Histogram, LocalMeans, ShapedShifts, Shifts, Stage, Validation};
use crate::scale::inside;
use crate::{Batch, Centres, Domain, Error, Query, Transform};

/// A spread below this part of the box scales nothing, so no factor is larger than its reciprocal over the box.
const MAX_SCALE: f64 = 1e9;

impl Recipe {
    /// In which part of a run a question belongs, if it belongs to this recipe: kind, parameters, K, number, points inside
    /// the box (specification, QRY-10).
    ///
    /// # Errors
    /// A sentence for the site's operator.
    pub fn admits(&self, batch: &Batch, domain: &Domain) -> Result<Stage, String> {
        batch.check(domain)?;
        let first = batch.queries.first().ok_or("the question is empty")?;
        let stage = self.stage_of(first, domain)?;
        self.admits_transform(batch.transform.as_ref(), stage, domain)?;
        let inner = batch.domain(domain)?;
        let one = matches!(stage, Stage::Preparing | Stage::Ranging | Stage::Seeding)
            || (stage == Stage::Iterating && self.algorithm.traits().anchors(self.clusters.max).is_some()); // The same ones for all.
        let most = if one { 1 } else { self.members() };
        if batch.queries.len() > most {
            return Err(format!("{} questions at once where the plan has {most}", batch.queries.len()));
        }
        let mut of_k = BTreeMap::new();
        for query in &batch.queries {
            if self.stage_of(query, domain)? != stage {
                return Err("it mixes questions of different parts of the run".into());
            }
            if query.round() != first.round() {
                return Err("it mixes rounds".into());
            }
            self.admits_query(query, &inner)?;
            // Two partitions into the same K differ in a few rows only: the plan says how often a K is tried.
            let asked = of_k.entry(query.points().first().map_or(0, |points| points.k())).or_insert(0);
            *asked += 1;
            if *asked > self.restarts {
                return Err(format!("it asks more than {} times about one K", self.restarts));
            }
        }
        Ok(stage)
    }

    /// Whether a question can come after another one of the same run; both are admitted, and they are not the same. A site
    /// sees no totals, but much of what follows from them has a shape: quantiles are searched inside the bins of the search
    /// before, and all in the units that were found once.
    ///
    /// # Errors
    /// A sentence for the site's operator.
    pub fn follows(&self, before: &Batch, batch: &Batch, domain: &Domain) -> Result<(), String> {
        let (Some(last), Some(first)) = (before.queries.first(), batch.queries.first()) else {
            return Err("the question is empty".into());
        };
        let (was, is) = (self.stage_of(last, domain)?, self.stage_of(first, domain)?);
        if is < was {
            return Err("a question of an earlier part of the run".into());
        }
        self.same_units(before, batch, was, domain)?;
        let margins = matches!(first, Query::Margins(_));
        let fits = (was < is || first.follows(last))
            && match is {
                // Margins come first, and once.
                Stage::Seeding => margins == (was < is),
                Stage::Preparing | Stage::Ranging | Stage::Iterating | Stage::Validating => true,
            };
        if fits { Ok(()) } else { Err(format!("{} does not follow {}", batch.kind(), before.kind())) }
    }

    /// Different questions that one part of a run has at most.
    pub fn most_in(&self, stage: Stage) -> u32 {
        match stage {
            Stage::Preparing if self.algorithm.traits().describes.is_some() => self.most_describing(),
            Stage::Preparing => self.preparation.max_questions(self.noise.is_some()),
            Stage::Seeding => self.seeding.questions(),
            Stage::Iterating => self.algorithm.traits().max_questions(),
            _ => 1,
        }
    }

    /// Whether rows are moved at all: the quantiles 0 and 1 are the ends of the box, and there is nothing to find.
    pub fn prepares(&self) -> bool {
        let preparation = &self.preparation;
        preparation.scale != Scale::None || preparation.winsorise.iter().any(|w| w.lower > 0.0 || w.upper < 1.0)
    }

    /// Clip bounds stay from the first question that has them, and everything from the end of the preparation.
    fn same_units(&self, before: &Batch, batch: &Batch, was: Stage, domain: &Domain) -> Result<(), String> {
        let identity = Transform::identity(domain);
        let (old, new) =
            (before.transform.as_ref().unwrap_or(&identity), batch.transform.as_ref().unwrap_or(&identity));
        let clips = matches!(before.queries.first(), Some(Query::Histogram(_)))
            || (self.narrows() && was == Stage::Preparing)
            || (&old.lower, &old.upper) == (&new.lower, &new.upper);
        if !clips || (was > Stage::Preparing && old != new) {
            return Err("rows are standardised otherwise than in the question before".into());
        }
        Ok(())
    }

    /// Runs side by side.
    pub(crate) fn members(&self) -> usize {
        self.clusters.count() * self.restarts as usize
    }

    fn stage_of(&self, query: &Query, domain: &Domain) -> Result<Stage, String> {
        if self.noise.is_some() && query.sensitivity(domain).is_none() {
            return Err(format!("the plan has noise, and {} is not accounted for", query.kind()));
        }
        let stage = self.place_of(query);
        let open = match stage {
            Stage::Preparing => self.prepares() || self.algorithm.traits().describes.is_some(),
            Stage::Ranging => self.range.is_some(),
            Stage::Seeding => match query {
                Query::Margins(_) => true,
                Query::Shifts(_) => self.noise.is_some(),
                _ => self.noise.is_none(),
            },
            // Under noise the rounds clip how far a row pulls.
            Stage::Iterating if self.noise.is_some() && self.algorithm.traits().describes.is_none() => match query {
                Query::Shifts(_) => !self.algorithm.traits().has_covariances(),
                Query::ShapedShifts(_) => self.algorithm.traits().has_covariances(),
                _ => false,
            },
            Stage::Iterating => self.alike(query).iter().any(|one| one.kind() == query.kind()),
            // A description has nothing to judge.
            Stage::Validating if self.algorithm.traits().describes.is_some() => false,
            Stage::Validating => self.alike(query).iter().any(|one| one.kind() == query.kind()),
        };
        if open { Ok(stage) } else { Err(format!("the plan's method never asks {}", query.kind())) }
    }

    /// The part of this plan's runs that a question is of: products that whiten columns are a preparation, and sums around more
    /// points than there may be clusters are of candidates for first centres.
    pub fn place_of(&self, query: &Query) -> Stage {
        let seeds = matches!(self.seeding, Seeding::Candidates(_));
        match query {
            Query::ShapedSums(_) if self.whitens() => Stage::Preparing,
            Query::Shifts(Shifts { centres, .. }) | Query::LocalMeans(LocalMeans { centres, .. })
                if seeds && centres.k() > self.most_points() as usize =>
            {
                Stage::Seeding
            }
            other => other.stage(),
        }
    }

    /// Whether rows are clipped around the middle of their standardised column: under noise, whose amount follows from how far rows
    /// may lie.
    fn narrows(&self) -> bool {
        self.noise.is_some() && self.preparation.scale != Scale::None
    }

    /// Whether columns are whitened.
    pub fn whitens(&self) -> bool {
        self.preparation.scale == Scale::Whiten
    }

    /// What the plan asks in the part of a run and about the points of this question, wherever these say it all.
    fn alike(&self, query: &Query) -> Vec<Query> {
        let stage = query.stage();
        if stage == Stage::Ranging {
            return self.local_choice().map(Query::from).into_iter().collect();
        }
        let Some(centres) = query.points().first().copied().cloned() else { return Vec::new() };
        match stage {
            Stage::Preparing | Stage::Ranging | Stage::Seeding => Vec::new(),
            Stage::Iterating => self.algorithm.asks(&centres),
            Stage::Validating => vec![self.validation_of(centres)],
        }
    }

    /// Only what the plan prepares may be moved, and only once it can be known.
    fn admits_transform(&self, transform: Option<&Transform>, stage: Stage, domain: &Domain) -> Result<(), String> {
        let Some(transform) = transform else {
            if stage > Stage::Preparing && self.prepares() {
                return Err("the plan standardises rows, the question does not".into());
            }
            return Ok(());
        };
        if !self.prepares() {
            return Err("the plan does not standardise rows".into());
        }
        if transform.mixes() && !(self.whitens() && stage > Stage::Preparing) {
            return Err("it mixes columns, the plan does not".into());
        }
        let unscaled = self.preparation.scale == Scale::None || stage == Stage::Preparing;
        for column in 0..domain.columns() {
            let (low, high) = domain.working_interval(column);
            let clips = self.preparation.winsorise.iter().any(|w| {
                w.column as usize == column
                    && (w.lower > 0.0 || transform.lower[column] == low)
                    && (w.upper < 1.0 || transform.upper[column] == high)
            });
            let clips = clips || (self.narrows() && stage > Stage::Preparing);
            if !clips && (transform.lower[column], transform.upper[column]) != (low, high) {
                return Err(format!("it clips column {column} (counted from 0), the plan does not"));
            }
            // Categories have the plan's weight and keep it.
            let plain = unscaled || column >= domain.numbers();
            if plain && (transform.shift[column], transform.diagonal(column)) != (0.0, 1.0) {
                return Err(format!("it scales column {column} (counted from 0), the plan does not"));
            }
            // No rows of the box spread wider than it, and those that hardly spread at all are not scaled.
            let stretch = transform.diagonal(column) * (high - low);
            if !plain && transform.diagonal(column) != 1.0 && !(0.99..=1.01 * MAX_SCALE).contains(&stretch) {
                return Err(format!("it scales column {column} (counted from 0) as no rows would have it"));
            }
        }
        Ok(())
    }

    fn admits_query(&self, query: &Query, domain: &Domain) -> Result<(), String> {
        for points in query.points() {
            inside(points, domain)?;
        }
        if let (true, Query::ShapedSums(asked)) = (self.whitens(), query) {
            let own = describe::products(&asked.centres) == *query && asked.centres.k() == 1;
            return if own { Ok(()) } else { Err("a parameter is not the plan's".into()) };
        }
        if let (Stage::Seeding, Seeding::Candidates(params)) = (self.place_of(query), &self.seeding) {
            let levels = self.levels(domain)?;
            let count = params.count(self.most_points()) as usize;
            let own = match query.points().first() {
                None => *query == MARGINS.into(),
                Some(points) if points.k() == count => {
                    let sums = |round| Candidates::sums((*points).clone(), round, levels.as_ref());
                    (0..ROUNDS).any(|round| *query == sums(round))
                }
                Some(_) => false,
            };
            return if own { Ok(()) } else { Err("a parameter is not the plan's".into()) };
        }
        let describes = self.algorithm.traits().describes;
        let holds = self.fits_k(query)
            && match query {
                Query::Moments(q) if describes.is_some() => q.around.is_none() || !describe::correlates(domain),
                Query::Missing(_) => describes.is_some(),
                Query::Histogram(q) if describes.is_some() => {
                    describes.and_then(|bins| describe::histogram(domain, bins)).as_ref() == Some(q)
                }
                Query::Moments(q) => {
                    self.preparation.scale == Scale::Standard || (self.whitens() && q.around.is_none())
                }
                Query::Histogram(q) => q.bins == self.preparation.bins && self.wants(q, domain.numbers()),
                Query::Margins(_) => false,
                Query::Shifts(q) => self.admits_shifts(q, domain)?,
                Query::ShapedShifts(q) => self.admits_shaped_shifts(q, domain)?,
                Query::ShapedSums(q) if describes.is_some() => {
                    describe::correlates(domain) && self.alike(query).contains(&Query::ShapedSums(q.clone()))
                }
                Query::ShapedSums(q) => {
                    self.alike(query).iter().any(|own| matches!(own, Query::ShapedSums(own) if q.like(own)))
                }
                // All others follow from the plan and their points, to the last parameter.
                other => self.alike(other).contains(other),
            };
        if holds { Ok(()) } else { Err("a parameter is not the plan's".into()) }
    }

    /// Whether a question about centres is about a K of the plan, and one about anchors about as many as there may be.
    fn fits_k(&self, query: &Query) -> bool {
        let most = self.algorithm.traits().anchors(self.clusters.max).filter(|_| query.stage() == Stage::Iterating);
        query.points().first().is_none_or(|points| match most {
            Some(most) => points.k() <= most as usize,
            None => (self.clusters.min as usize..=self.clusters.max as usize).contains(&points.k()),
        })
    }

    /// Whether every bracket is of a quantile that the plan searches.
    fn wants(&self, q: &Histogram, columns: usize) -> bool {
        let mut left: Vec<usize> = (0..columns as u32).map(|column| self.quantiles(column)).collect();
        q.brackets.iter().all(|bracket| match left.get_mut(bracket.column as usize) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        })
    }

    fn admits_shifts(&self, q: &Shifts, domain: &Domain) -> Result<bool, String> {
        let levels = self.levels(domain)?.ok_or("the plan has no noise")?;
        let m = self.algorithm.traits().fuzzifier.map(f64::to_bits);
        Ok(q.m.map(f64::to_bits) == m
            && q.typical == self.algorithm.traits().typical
            && levels.may_pull(q.round, q.middle, q.clip)
            && q.round < self.algorithm.traits().max_questions())
    }

    fn admits_shaped_shifts(&self, q: &ShapedShifts, domain: &Domain) -> Result<bool, String> {
        let levels = self.levels(domain)?.ok_or("the plan has no noise")?;
        let own = |query: &Query| matches!(query, Query::ShapedSums(own) if q.clusters.like(own));
        Ok(q.clip == levels.pull_in_parts(q.round)
            && q.round < self.algorithm.traits().max_questions()
            && self.algorithm.asks(&q.clusters.centres).iter().any(own))
    }

    /// Quantiles that the plan searches in a column.
    fn quantiles(&self, column: u32) -> usize {
        let ends = |w: &super::prepare::Winsor| usize::from(w.lower > 0.0) + usize::from(w.upper < 1.0);
        let winsors = self.preparation.winsorise.iter().filter(|w| w.column == column).map(ends).sum::<usize>();
        winsors + if self.preparation.scale == Scale::Robust { 3 } else { 0 }
    }

    /// Numbers that the largest question of a run has at most, without building it.
    pub fn most_words(&self, columns: usize) -> u64 {
        let (d, restarts) = (columns as u64, u64::from(self.restarts));
        let (min, max) = (u64::from(self.clusters.min), u64::from(self.clusters.max));
        let all_k = (max.saturating_sub(min) + 1).saturating_mul(min + max) / 2;
        let seeding = match &self.seeding {
            Seeding::Candidates(params) => params.most_words(self.most_points(), d),
            _ => 0,
        };
        let asked = match self.algorithm.traits().anchors(self.clusters.max) {
            Some(anchors) => u64::from(anchors),
            None => all_k.saturating_mul(restarts),
        };
        let covariance = if self.algorithm.traits().has_covariances() { d.saturating_mul(d + 1) / 2 } else { 0 };
        let members = (max.saturating_sub(min) + 1).saturating_mul(restarts);
        // Beside the numbers of every cluster, one of the fit.
        let rounds = asked.saturating_mul(d + 2 + covariance).saturating_add(members);
        let vectors = if self.validity.vectors { 2 * d } else { 0 };
        // Of each cluster, and four sums over all of them.
        let judging =
            all_k.saturating_mul(restarts).saturating_mul(7 + vectors).saturating_add(members.saturating_mul(4));
        let bins = u64::from(self.preparation.bins) + 1;
        let quantiles = 2 * self.preparation.winsorise.len() as u64
            + if self.preparation.scale == Scale::Robust { 3 * d } else { 0 };
        let ranging = self.range.map_or(0, |range| u64::from(range.most) + 1);
        // Means, products and what a mixture's question has beside them.
        let describing = self.algorithm.traits().describes.map_or(0, |bins| {
            let products = if d <= 64 { d * (d + 1) / 2 } else { d };
            d.saturating_mul(u64::from(bins) + 1).max(d + products + 2)
        });
        let whitening = if self.whitens() { d + d.saturating_mul(d + 1) / 2 + 2 } else { 0 };
        [whitening, describing, seeding, rounds, judging, quantiles.saturating_mul(bins), ranging, d + 1]
            .into_iter()
            .max()
            .unwrap_or(0)
    }

    /// Roughly how many multiplications the longest question of a run costs a site with so many rows.
    pub fn most_operations(&self, rows: u64, columns: usize) -> f64 {
        let (rows, d, restarts) = (rows as f64, columns as f64, f64::from(self.restarts));
        let (min, max) = (f64::from(self.clusters.min), f64::from(self.clusters.max));
        let all_k = self.clusters.count() as f64 * (min + max) / 2.0 * restarts;
        let each = if self.algorithm.traits().has_covariances() { d * (d + 1.0) } else { d };
        let each_row = self.algorithm.traits().comparisons(all_k) * each;
        let choice = self.local_choice().map_or(0.0, |choice| {
            let tried = f64::from(choice.most - choice.min + 1) * f64::from(choice.min + choice.most) / 2.0;
            tried * d * f64::from(choice.starts) * f64::from(choice.local.most)
        });
        rows * each_row.max(choice)
    }

    /// One question of every part of a run, the way it would begin from first centres uniform in the box: for sizes, bounds
    /// and precision. Where the plan standardises, the real bounds depend on what is found.
    ///
    /// # Errors
    /// Those of [`Recipe::check`].
    pub fn sample(&self, domain: &Domain) -> Result<Vec<Batch>, Error> {
        self.check(domain)?;
        if let Some(bins) = self.algorithm.traits().describes {
            return Ok(describe::questions(domain, bins, self.noise.is_some())?.into_iter().map(Batch::from).collect());
        }
        let mut all = Vec::new();
        if let Some(preparing) = Preparing::new(&self.preparation, domain, self.noise.is_some())? {
            all.push(preparing.ask());
            if self.whitens() {
                all.extend(describe::questions(domain, 2, self.noise.is_some())?.pop().map(Batch::from));
            }
        }
        all.extend(self.local_choice().map(|choice| Query::LocalChoice(choice).into()));
        if let Seeding::Candidates(params) = &self.seeding {
            let levels = self.levels(domain)?;
            let count = params.count(self.most_points()) as usize;
            let candidates = Centres::uniform(domain, count, 0)?;
            all.push(Query::from(MARGINS).into());
            all.push(Candidates::sums(candidates, 0, levels.as_ref()).into());
        }
        let mut queries: Vec<Query> = Vec::new();
        let mut judging = Vec::new();
        for (number, k) in self.clusters.each().flat_map(|k| (0..self.restarts).map(move |_| k)).enumerate() {
            let start = Centres::uniform(domain, k as usize, number as u64)?;
            let anchors = match self.algorithm.traits().anchors(self.clusters.max) {
                Some(most) => Centres::uniform(domain, most as usize, 0)?,
                None => start.clone(),
            };
            let query = match self.noisy(start.clone(), domain)? {
                Some(iteration) => iteration.ask(),
                None => {
                    let at = Beginning { anchors: Some(&anchors), ..Beginning::at(domain, &start) };
                    self.algorithm.begin(at)?.ask()
                }
            };
            if !queries.contains(&query) {
                queries.push(query);
            }
            judging.push(self.validation_of(start));
        }
        let later = self.later_rounds(&queries, domain)?;
        all.push(Batch { transform: None, queries });
        all.extend(later);
        all.push(Batch { transform: None, queries: judging });
        Ok(all)
    }

    /// Under noise, the questions of the last round, where they are of another form than the first ones.
    fn later_rounds(&self, first: &[Query], domain: &Domain) -> Result<Option<Batch>, Error> {
        let Some(levels) = self.levels(domain)? else { return Ok(None) };
        let round = self.algorithm.traits().max_questions().saturating_sub(1);
        let middle = levels.is_around_middle(round);
        let clip = levels.coarsest_pull(round);
        let later = |query: &Query| match query {
            Query::Shifts(q) => Query::Shifts(Shifts { middle, clip, round, ..q.clone() }),
            Query::ShapedShifts(q) => {
                let clip = levels.pull_in_parts(round);
                Query::ShapedShifts(ShapedShifts { clip, round, ..q.clone() })
            }
            other => other.clone(),
        };
        Ok(Some(Batch { transform: None, queries: first.iter().map(later).collect() }))
    }

    /// The validation question at some centres.
    pub fn validation_of(&self, centres: Centres) -> Query {
        let m = self.judge_m();
        if self.judges_fully() {
            Validation { centres, m, vectors: self.validity.vectors }.into()
        } else {
            FuzzyValidation { centres, m }.into()
        }
    }
}
