//! The site's side of a recipe: which questions belong to it at all, and what a whole run may ask.
//!
//! A site that agreed to a plan answers only these. It cannot yet see whether the centres of a question follow from the
//! totals before; that they lie in the box, and that every parameter is the plan's, it can.

use super::{Algorithm, Preparing, Recipe, Rule, Scale, Seeding, Stage, TreeSearch};
use crate::query::{Blur, Part};
use crate::{Batch, Centres, Domain, MethodError, Query, Start, Transform};

/// Centres may lie outside the box by so much of its extent: fixed-point sums are rounded.
const HAIR: f64 = 1e-6;

impl Recipe {
    /// In which part of a run a question belongs, if it belongs to this recipe: kind, parameters, K, number, points inside
    /// the box. `sites` is the size of the roster.
    ///
    /// # Errors
    /// A sentence for the site's operator.
    pub fn admits(&self, batch: &Batch, domain: &Domain, sites: u32) -> Result<Stage, String> {
        batch.check(domain).map_err(|error| error.to_string())?;
        let first = batch.queries.first().ok_or("the question is empty")?;
        let stage = self.stage_of(first)?;
        self.admits_transform(batch.transform.as_ref(), stage, domain)?;
        let inner = batch.domain(domain).map_err(|error| error.to_string())?;
        let most = match stage {
            Stage::Preparing | Stage::Ranging | Stage::Seeding | Stage::Counting => 1,
            Stage::Iterating | Stage::Validating => self.members(),
            Stage::Silhouettes => self.clusters.count(),
        };
        if batch.queries.len() > most {
            return Err(format!("{} questions at once where the plan has {most}", batch.queries.len()));
        }
        for query in &batch.queries {
            if self.stage_of(query)? != stage {
                return Err("it mixes questions of different parts of the run".into());
            }
            self.admits_query(query, &inner, sites)?;
        }
        Ok(stage)
    }

    /// Runs side by side.
    pub(crate) fn members(&self) -> usize {
        self.clusters.count() * self.restarts as usize
    }

    fn stage_of(&self, query: &Query) -> Result<Stage, String> {
        let full = self.validity.full || self.algorithm.fuzzifier().is_none();
        let stage = match query {
            Query::Moments(_) | Query::Histogram(_) if !self.preparation.is_none() => Stage::Preparing,
            Query::LocalChoice(_) if self.range.is_some() => Stage::Ranging,
            Query::Cells(_) if matches!(self.seeding, Seeding::Tree(_)) => Stage::Seeding,
            Query::FuzzyValidation { .. } if !full => Stage::Validating,
            Query::Validation(_) if full => Stage::Validating,
            Query::Silhouette(_) if self.validity.silhouette => Stage::Silhouettes,
            Query::Contingency(_) if self.validity.classes > 0 => Stage::Counting,
            Query::FuzzySums { .. } if matches!(self.algorithm, Algorithm::Fcm { .. }) => Stage::Iterating,
            Query::LocalFuzzy(_)
                if matches!(self.algorithm, Algorithm::FfcmAvg1 { .. } | Algorithm::FfcmAvg2 { .. }) =>
            {
                Stage::Iterating
            }
            Query::LocalMeans(_)
                if matches!(
                    self.algorithm,
                    Algorithm::Fkm { .. } | Algorithm::Kmeans { .. } | Algorithm::Kumar { .. }
                ) =>
            {
                Stage::Iterating
            }
            Query::Features(_) if matches!(self.algorithm, Algorithm::Ffcf { .. }) => Stage::Iterating,
            _ => return Err(format!("the plan's method never asks {}", query.kind())),
        };
        Ok(stage)
    }

    /// Only what the plan prepares may be moved, and only once it can be known.
    fn admits_transform(&self, transform: Option<&Transform>, stage: Stage, domain: &Domain) -> Result<(), String> {
        let Some(transform) = transform else {
            if stage > Stage::Preparing && !self.preparation.is_none() {
                return Err("the plan standardises rows, the question does not".into());
            }
            return Ok(());
        };
        if self.preparation.is_none() {
            return Err("the plan does not standardise rows".into());
        }
        let plain = self.preparation.scale == Scale::None || stage == Stage::Preparing;
        for column in 0..domain.columns() {
            let (low, high) = domain.working_interval(column);
            let clips = self.preparation.winsorise.iter().any(|winsor| winsor.column as usize == column);
            if !clips && (transform.lower[column], transform.upper[column]) != (low, high) {
                return Err(format!("it clips column {column} (counted from 0), the plan does not"));
            }
            if plain && (transform.shift[column], transform.factor[column]) != (0.0, 1.0) {
                return Err(format!("it scales column {column} (counted from 0), the plan does not"));
            }
        }
        Ok(())
    }

    fn admits_query(&self, query: &Query, domain: &Domain, sites: u32) -> Result<(), String> {
        for points in query.points() {
            inside(points, domain)?;
        }
        let k_fits = |k: usize| (self.clusters.min as usize..=self.clusters.max as usize).contains(&k);
        let same = |holds: bool| if holds { Ok(()) } else { Err("a parameter is not the plan's".to_owned()) };
        let judge = self.judge_m().to_bits();
        match query {
            Query::FuzzySums { centres, m } | Query::FuzzyValidation { centres, m } => {
                same(k_fits(centres.k()) && m.to_bits() == judge)
            }
            Query::LocalFuzzy(q) => {
                use crate::query::Pull;
                same(
                    k_fits(q.centres.k())
                        && q.m.to_bits() == judge
                        && match &self.algorithm {
                            Algorithm::FfcmAvg1 { local, powers, .. } => {
                                let pull = if *powers { Pull::Powers } else { Pull::Memberships };
                                q.local == *local && q.pull == pull && q.part == Part::Both
                            }
                            Algorithm::FfcmAvg2 { local, .. } => {
                                q.local == *local && q.pull == Pull::Nearest && self.admits_part(&q.part)
                            }
                            _ => false,
                        },
                )
            }
            Query::LocalMeans(q) => same(
                k_fits(q.centres.k())
                    && self.admits_part(&q.part)
                    && match &self.algorithm {
                        Algorithm::Fkm { min_rows, local_steps, finish, .. } => {
                            let aligned = q.nearest && q.min_rows == *min_rows && q.local.most == *local_steps;
                            let lloyd = *finish > 0 && !q.nearest && q.min_rows == 1 && q.local.most == 1;
                            (aligned || lloyd) && q.local.epsilon == 0.0
                        }
                        Algorithm::Kmeans { .. } => {
                            !q.nearest && q.min_rows == 1 && q.local.most == 1 && q.local.epsilon == 0.0
                        }
                        Algorithm::Kumar { local, .. } => !q.nearest && q.min_rows == 1 && q.local == *local,
                        _ => false,
                    },
            ),
            Query::Features(q) => same(
                matches!(&self.algorithm, Algorithm::Ffcf { features, .. } if q.params == *features)
                    && self.tree_leaves().is_some_and(|most| q.anchors.k() <= most)
                    && self.admits_part(&q.part),
            ),
            Query::Validation(q) => {
                same(k_fits(q.centres.k()) && q.m.to_bits() == judge && q.vectors == self.validity.vectors)
            }
            Query::Silhouette(q) => same(k_fits(q.centres.k())),
            Query::Contingency(q) => same(k_fits(q.centres.k()) && q.classes == self.validity.classes),
            Query::Moments(_) => same(self.preparation.scale == Scale::Standard),
            Query::Histogram(q) => {
                let quantiles = 2 * self.preparation.winsorise.len()
                    + if self.preparation.scale == Scale::Robust { 3 * domain.columns() } else { 0 };
                same(q.bins == self.preparation.bins && q.brackets.len() <= quantiles)
            }
            Query::LocalChoice(q) => same(self.local_choice().as_ref() == Some(q)),
            Query::Cells(q) => {
                let Seeding::Tree(tree) = &self.seeding else { return same(false) };
                let blur = (tree.blur > 0.0).then_some(Blur { strength: tree.blur, sites });
                let most = self.leaves(tree);
                let part = self.seeding_rule(tree).two_steps() || q.part == Part::Both;
                // A round may ask about both children of every leaf.
                same(q.blur == blur && part && q.tree.splits.len() <= 2 * most && q.nodes.len() <= 2 * most)
            }
        }
    }

    fn tree_leaves(&self) -> Option<usize> {
        match &self.seeding {
            Seeding::Tree(tree) => Some(self.leaves(tree)),
            _ => None,
        }
    }

    /// Where counts are asked first, sums never come along with them.
    fn admits_part(&self, part: &Part) -> bool {
        if self.rule.two_steps() { *part != Part::Both } else { *part == Part::Both }
    }

    /// Numbers that the largest question of a run has at most, without building it.
    pub fn most_words(&self, columns: usize) -> u64 {
        let (d, restarts) = (columns as u64, u64::from(self.restarts));
        let (min, max) = (u64::from(self.clusters.min), u64::from(self.clusters.max));
        let all_k = (max.saturating_sub(min) + 1).saturating_mul(min + max) / 2;
        let tree = self.tree_leaves().map_or(0, |leaves| (leaves as u64 + 1).saturating_mul(2 * d + 3));
        let rounds = match &self.algorithm {
            Algorithm::Ffcf { .. } => self.tree_leaves().unwrap_or(0) as u64 * (d + 3),
            _ => all_k.saturating_mul(restarts).saturating_mul(d + 3),
        };
        let vectors = if self.validity.vectors { d } else { 0 };
        let judging = all_k.saturating_mul(restarts).saturating_mul(7 + vectors);
        let bins = u64::from(self.preparation.bins) + 1;
        let quantiles = 2 * self.preparation.winsorise.len() as u64
            + if self.preparation.scale == Scale::Robust { 3 * d } else { 0 };
        let labels = max.saturating_mul(u64::from(self.validity.classes));
        [tree, rounds, judging, quantiles.saturating_mul(bins), labels].into_iter().max().unwrap_or(0)
    }

    /// One question of every part of a run, the way it would begin from first centres uniform in the box: for sizes, bounds
    /// and precision. Where the plan standardises, the real bounds depend on what is found.
    ///
    /// # Errors
    /// Those of [`Recipe::check`].
    pub fn sample(&self, domain: &Domain, sites: u32) -> Result<Vec<Batch>, MethodError> {
        self.check(domain)?;
        let mut all = Vec::new();
        if let Some(preparing) = Preparing::new(&self.preparation, domain)? {
            all.push(preparing.ask());
        }
        all.extend(self.local_choice().map(|choice| Query::LocalChoice(choice).into()));
        if let Seeding::Tree(tree) = &self.seeding {
            let search = TreeSearch::new(tree, self.leaves(tree), Rule::NONE, domain, sites)?;
            all.push(search.ask().into());
        }
        let once = |error: crate::DataError| MethodError::parameter(error.to_string());
        let mut queries: Vec<Query> = Vec::new();
        let mut judging = Vec::new();
        for (number, k) in self.clusters.each().flat_map(|k| (0..self.restarts).map(move |_| k)).enumerate() {
            let start = Start::Uniform { seed: number as u64 }.centres(domain, k as usize).map_err(once)?;
            let anchors = match self.tree_leaves() {
                Some(leaves) => Start::Uniform { seed: 0 }.centres(domain, leaves).map_err(once)?,
                None => start.clone(),
            };
            let cells = super::SeedCells { weights: vec![1.0; anchors.k()], means: anchors };
            let query = self.algorithm.begin(start.clone(), Some(&cells), Rule::NONE, 0)?.ask();
            if !queries.contains(&query) {
                queries.push(query);
            }
            judging.push(self.validation_of(start));
        }
        all.push(Batch { transform: None, queries });
        all.push(Batch { transform: None, queries: judging });
        Ok(all)
    }

    /// The validation question at some centres.
    pub(crate) fn validation_of(&self, centres: Centres) -> Query {
        let m = self.judge_m();
        if self.validity.full || self.algorithm.fuzzifier().is_none() {
            Query::Validation(crate::query::Validation { centres, m, vectors: self.validity.vectors })
        } else {
            Query::FuzzyValidation { centres, m }
        }
    }
}

/// Whether points lie in the box (a hair of rounding aside), as every weighted mean of rows does.
///
/// # Errors
/// A sentence that names the column.
pub fn inside(points: &Centres, domain: &Domain) -> Result<(), String> {
    for row in points.rows() {
        for (column, value) in row.iter().enumerate() {
            let (low, high) = domain.working_interval(column);
            let hair = HAIR * (high - low);
            if *value < low - hair || *value > high + hair {
                return Err(format!("a centre lies outside the public box in column {column} (counted from 0)"));
            }
        }
    }
    Ok(())
}
