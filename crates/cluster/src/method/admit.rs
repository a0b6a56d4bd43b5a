//! The site's side of a recipe: which questions belong to it at all, and what a whole run may ask.
//!
//! A site that agreed to a plan answers only these. It cannot yet see whether the centres of a question follow from the
//! totals before; that they lie in the box, that every parameter is the plan's, and that a question has the shape of one
//! that follows the question before ([`Recipe::follows`]), it can.

use std::collections::BTreeMap;

use super::{Algorithm, GroupThreshold, Preparing, Recipe, Scale, Seeding, Stage, TreeSearch};
use crate::query::{
    Blur, Bracket, Cells, Features, Histogram, LocalFuzzy, LocalMeans, Moments, Part, Shifts, Silhouette, Sizes, Tree,
    Ungrouped,
};
use crate::{Batch, Centres, Domain, MethodError, Query, Start, Transform};

/// Centres may lie outside the box by so much of its extent: fixed-point sums are rounded.
const HAIR: f64 = 1e-6;
/// A spread below this part of the box scales nothing, so no factor is larger than its reciprocal over the box.
const MAX_SCALE: f64 = 1e9;

impl Recipe {
    /// In which part of a run a question belongs, if it belongs to this recipe: kind, parameters, K, number, points inside
    /// the box (specification, QRY-10). `sites` is the size of the roster.
    ///
    /// # Errors
    /// A sentence for the site's operator.
    pub fn admits(&self, batch: &Batch, domain: &Domain, sites: u32) -> Result<Stage, String> {
        batch.check(domain).map_err(|error| error.to_string())?;
        let first = batch.queries.first().ok_or("the question is empty")?;
        let stage = self.stage_of(first)?;
        self.admits_transform(batch.transform.as_ref(), stage, domain)?;
        let inner = batch.domain(domain).map_err(|error| error.to_string())?;
        let one = matches!(stage, Stage::Preparing | Stage::Ranging | Stage::Seeding | Stage::Counting)
            || matches!(first, Query::Features(_)); // Every K and restart asks about the same anchors.
        let most = match stage {
            _ if one => 1,
            Stage::Silhouettes => self.clusters.count(),
            _ => self.members(),
        };
        if batch.queries.len() > most {
            return Err(format!("{} questions at once where the plan has {most}", batch.queries.len()));
        }
        let each = if stage == Stage::Silhouettes { 1 } else { self.restarts };
        let mut of_k = BTreeMap::new();
        for query in &batch.queries {
            if self.stage_of(query)? != stage {
                return Err("it mixes questions of different parts of the run".into());
            }
            if let (Query::Shifts(one), Query::Shifts(other)) = (first, query)
                && one.round != other.round
            {
                return Err("it mixes rounds".into());
            }
            if query.part().is_some_and(|part| half(part) != first.part().map_or(0, half)) {
                return Err("it mixes counts and sums".into());
            }
            self.admits_query(query, &inner, sites)?;
            // Two partitions into the same K differ in a few rows only: the plan says how often a K is tried.
            let asked = of_k.entry(query.points().first().map_or(0, |points| points.k())).or_insert(0);
            *asked += 1;
            if *asked > each {
                return Err(format!("it asks more than {each} times about one K"));
            }
        }
        Ok(stage)
    }

    /// Whether a question can come after another one of the same run; both are admitted, and they are not the same. A site
    /// sees no totals, but much of what follows from them has a shape: quantiles are searched inside the bins of the search
    /// before, a tree only grows, sums are asked of clusters whose counts were asked, silhouettes and labels of centres that
    /// were judged, and all in the units that were found once.
    ///
    /// # Errors
    /// A sentence for the site's operator.
    pub fn follows(&self, before: &Batch, batch: &Batch, domain: &Domain) -> Result<(), String> {
        let (Some(last), Some(first)) = (before.queries.first(), batch.queries.first()) else {
            return Err("the question is empty".into());
        };
        let (was, is) = (self.stage_of(last)?, self.stage_of(first)?);
        if is < was {
            return Err("a question of an earlier part of the run".into());
        }
        self.same_units(before, batch, was, domain)?;
        let fits = match (last, first) {
            (_, Query::Moments(Moments { around: Some(_) })) => {
                matches!(last, Query::Moments(Moments { around: None }))
            }
            (Query::Moments(_), Query::Moments(_)) => false,
            (Query::Histogram(last), Query::Histogram(next)) => next.brackets.iter().all(|b| is_bin(b, last)),
            (_, Query::Histogram(_)) => false,
            (Query::Cells(last), Query::Cells(next)) => self.grows(last, next),
            (_, Query::Cells(next)) => next.tree.splits.is_empty(),
            (_, Query::Validation(_) | Query::Ungrouped(_)) if self.counts_clusters() => {
                was == Stage::Sizing && before.queries.len() == batch.queries.len() && asked_about(before, batch)
            }
            // Not of centres whose clusters were too small.
            (_, Query::Silhouette(_)) => was == Stage::Validating && asked_about(&summed(before), batch),
            (Query::Shifts(last), Query::Shifts(next)) => last.round.checked_add(1) == Some(next.round),
            (_, Query::Contingency(_)) => was >= Stage::Validating && asked_about(before, batch),
            _ => {
                let counted = was == Stage::Iterating && last.part().is_some_and(Part::counts);
                match first.part() {
                    Some(Part::Sums(_)) => counted && batch.queries.iter().all(|sums| counts_of(before, sums)),
                    // Where no cluster passes, the run is over.
                    Some(Part::Counts | Part::Changes(_)) => !counted,
                    _ => true,
                }
            }
        };
        if fits { Ok(()) } else { Err(format!("{} does not follow {}", batch.kind(), before.kind())) }
    }

    /// Different questions that one part of a run has at most.
    pub fn most_in(&self, stage: Stage) -> u32 {
        match (stage, &self.seeding) {
            (Stage::Preparing, _) => self.preparation.max_questions(),
            (Stage::Seeding, Seeding::Tree(tree)) => {
                TreeSearch::max_questions(self.leaves(tree), self.seeding_rule(tree))
            }
            (Stage::Iterating, _) => self.algorithm.max_questions(self.rule),
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
            || (&old.lower, &old.upper) == (&new.lower, &new.upper);
        if !clips || (was > Stage::Preparing && old != new) {
            return Err("rows are standardised otherwise than in the question before".into());
        }
        Ok(())
    }

    /// Whether the tree of `next` is that of `last` with some of its open splits made, and new ones proposed.
    fn grows(&self, last: &Cells, next: &Cells) -> bool {
        let steps = |tree: &Tree, from: usize| -> Vec<(u32, u32, u64)> {
            let steps = tree.of.iter().zip(&tree.splits).skip(from);
            steps.map(|(of, split)| (*of, split.column, split.at.to_bits())).collect()
        };
        // `open` splits at the end were, or are, only proposed.
        let (made, mades) = (last.tree.splits.len() - open(last), next.tree.splits.len() - open(next));
        let (old, new) = (steps(&last.tree, 0), steps(&next.tree, 0));
        if open(next) == 0 || mades < made || old[..made] != new[..made] {
            return false;
        }
        let proposed = &old[made..];
        let two = self.seeding_rule_of().is_some_and(|rule| rule.two_steps());
        match (two, &last.part, &next.part) {
            // Sums of what the counts allow; or counts of other splits, where they allowed none.
            (true, Part::Counts, Part::Sums(_)) => mades == made && within(&new[made..], proposed),
            (true, Part::Counts, _) => mades == made,
            // Whatever was counted first is made.
            (true, _, Part::Counts) => new[..mades] == old[..],
            (true, ..) => false,
            (false, ..) => within(&new[made..mades], proposed),
        }
    }

    fn seeding_rule_of(&self) -> Option<GroupThreshold> {
        match &self.seeding {
            Seeding::Tree(tree) => Some(self.seeding_rule(tree)),
            _ => None,
        }
    }

    /// Runs side by side.
    pub(crate) fn members(&self) -> usize {
        self.clusters.count() * self.restarts as usize
    }

    fn stage_of(&self, query: &Query) -> Result<Stage, String> {
        let full = self.judges_fully();
        let stage = match query {
            Query::Moments(_) | Query::Histogram(_) if self.prepares() => Stage::Preparing,
            Query::LocalChoice(_) if self.range.is_some() => Stage::Ranging,
            Query::Cells(_) if matches!(self.seeding, Seeding::Tree(_)) => Stage::Seeding,
            Query::FuzzyValidation { .. } if !full => Stage::Validating,
            Query::Sizes(_) if self.counts_clusters() => Stage::Sizing,
            Query::Validation(_) if full => Stage::Validating,
            Query::Ungrouped(_) if self.counts_clusters() => Stage::Validating,
            Query::Silhouette(_) if self.validity.silhouette => Stage::Silhouettes,
            Query::Contingency(_) if self.validity.classes > 0 => Stage::Counting,
            // Under noise the rounds ask nothing but this.
            Query::Shifts(_) if self.noise.is_some() => Stage::Iterating,
            _ if self.noise.is_some() && !matches!(query, Query::FuzzyValidation { .. }) => {
                return Err(format!("the plan has noise, and {} is not accounted for", query.kind()));
            }
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
            if stage > Stage::Preparing && self.prepares() {
                return Err("the plan standardises rows, the question does not".into());
            }
            return Ok(());
        };
        if !self.prepares() {
            return Err("the plan does not standardise rows".into());
        }
        let plain = self.preparation.scale == Scale::None || stage == Stage::Preparing;
        for column in 0..domain.columns() {
            let (low, high) = domain.working_interval(column);
            let clips = self.preparation.winsorise.iter().any(|w| {
                w.column as usize == column
                    && (w.lower > 0.0 || transform.lower[column] == low)
                    && (w.upper < 1.0 || transform.upper[column] == high)
            });
            if !clips && (transform.lower[column], transform.upper[column]) != (low, high) {
                return Err(format!("it clips column {column} (counted from 0), the plan does not"));
            }
            if plain && (transform.shift[column], transform.factor[column]) != (0.0, 1.0) {
                return Err(format!("it scales column {column} (counted from 0), the plan does not"));
            }
            // No rows of the box spread wider than it, and those that hardly spread at all are not scaled.
            let stretch = transform.factor[column] * (high - low);
            if !plain && transform.factor[column] != 1.0 && !(0.99..=1.01 * MAX_SCALE).contains(&stretch) {
                return Err(format!("it scales column {column} (counted from 0) as no rows would have it"));
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
            Query::Ungrouped(q) => same(k_fits(q.centres.k()) && q.m.to_bits() == judge),
            Query::Sizes(q) => same(k_fits(q.centres.k())),
            Query::Silhouette(q) => same(k_fits(q.centres.k()) && q.rows.iter().all(|rows| rows.fract() == 0.0)),
            Query::Contingency(q) => same(k_fits(q.centres.k()) && q.classes == self.validity.classes),
            Query::Shifts(q) => {
                let levels = self.levels(domain).map_err(|error| error.to_string())?.ok_or("the plan has no noise")?;
                let (middle, clip) = levels.pull(q.round);
                let rounds = self.algorithm.max_questions(self.rule);
                let near = (q.clip - clip).abs() <= HAIR * clip && q.clip <= clip * (1.0 + 1e-9);
                same(
                    k_fits(q.centres.k())
                        && q.m.map(f64::to_bits) == self.algorithm.fuzzifier().map(f64::to_bits)
                        && (q.middle, near) == (middle, true)
                        && q.round < rounds,
                )
            }
            Query::Moments(_) => same(self.preparation.scale == Scale::Standard),
            Query::Histogram(q) => {
                let mut left: Vec<usize> = (0..domain.columns() as u32).map(|column| self.quantiles(column)).collect();
                let mut wanted = |bracket: &Bracket| match left.get_mut(bracket.column as usize) {
                    Some(left) if *left > 0 => {
                        *left -= 1;
                        true
                    }
                    _ => false,
                };
                same(q.bins == self.preparation.bins && q.brackets.iter().all(&mut wanted))
            }
            Query::LocalChoice(q) => same(self.local_choice().as_ref() == Some(q)),
            Query::Cells(q) => {
                let Seeding::Tree(tree) = &self.seeding else { return same(false) };
                let blur = (tree.blur > 0.0).then_some(Blur { strength: tree.blur, sites });
                same(q.blur == blur && q.tree.splits.len() < self.leaves(tree).max(1))?;
                self.admits_nodes(q, self.seeding_rule(tree))
            }
        }
    }

    /// The whole cohort, or children of leaves that are divided now: all of them, or the lower ones and the others are the
    /// difference. Nodes within each other would show the same rows twice, under fresh noise.
    fn admits_nodes(&self, q: &Cells, rule: GroupThreshold) -> Result<(), String> {
        let splits = q.tree.splits.len();
        let sums = matches!(q.part, Part::Sums(_));
        if splits == 0 {
            return if sums { Ok(()) } else { Err("the whole cohort is asked with its sums".into()) };
        }
        let part = match &q.part {
            Part::Counts => rule.two_steps(),
            Part::Sums(_) => rule.two_steps() || rule.min_sites == 1,
            Part::Both => !rule.two_steps() && rule.min_sites > 1,
            Part::Changes(_) => false,
        };
        if !part {
            return Err("it asks counts and sums otherwise than the plan".into());
        }
        let (now, step) = (open(q), if sums { 2 } else { 1 });
        let made = splits.checked_sub(now).ok_or("it asks about more cells than are divided")?;
        let children = (2 * made as u32 + 1..).step_by(step).take(q.nodes.len());
        let whole = q.nodes.len() * step == 2 * now && children.eq(q.nodes.iter().copied());
        if !whole || q.tree.of[made..].iter().any(|of| *of as usize > 2 * made) {
            return Err("it asks about other cells than those that are divided now".into());
        }
        Ok(())
    }

    /// Quantiles that the plan searches in a column.
    fn quantiles(&self, column: u32) -> usize {
        let ends = |w: &super::Winsor| usize::from(w.lower > 0.0) + usize::from(w.upper < 1.0);
        let winsors = self.preparation.winsorise.iter().filter(|w| w.column == column).map(ends).sum::<usize>();
        winsors + if self.preparation.scale == Scale::Robust { 3 } else { 0 }
    }

    fn tree_leaves(&self) -> Option<usize> {
        match &self.seeding {
            Seeding::Tree(tree) => Some(self.leaves(tree)),
            _ => None,
        }
    }

    /// Where counts are asked first, sums never come along with them.
    fn admits_part(&self, part: &Part) -> bool {
        if matches!(part, Part::Changes(_)) && self.min_change == 1 {
            return false;
        }
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
        let members = (max.saturating_sub(min) + 1).saturating_mul(restarts);
        // Of each cluster, and five sums over all of them.
        let judging =
            all_k.saturating_mul(restarts).saturating_mul(7 + vectors).saturating_add(members.saturating_mul(5));
        let bins = u64::from(self.preparation.bins) + 1;
        let quantiles = 2 * self.preparation.winsorise.len() as u64
            + if self.preparation.scale == Scale::Robust { 3 * d } else { 0 };
        let labels = max.saturating_mul(u64::from(self.validity.classes));
        let ranging = self.range.map_or(0, |range| u64::from(range.most) + 1);
        [tree, rounds, judging, quantiles.saturating_mul(bins), labels, ranging, d + 1].into_iter().max().unwrap_or(0)
    }

    /// Roughly how many multiplications the longest question of a run costs a site with so many rows.
    pub fn most_operations(&self, rows: u64, columns: usize) -> f64 {
        let (rows, d, restarts) = (rows as f64, columns as f64, f64::from(self.restarts));
        let (min, max) = (f64::from(self.clusters.min), f64::from(self.clusters.max));
        let all_k = self.clusters.count() as f64 * (min + max) / 2.0 * restarts;
        let each_row = match &self.algorithm {
            Algorithm::Fcm { .. } | Algorithm::Kmeans { .. } => all_k * d,
            Algorithm::FfcmAvg1 { local, .. } | Algorithm::FfcmAvg2 { local, .. } | Algorithm::Kumar { local, .. } => {
                all_k * d * f64::from(local.most)
            }
            Algorithm::Fkm { local_steps, .. } => all_k * d * f64::from(*local_steps),
            Algorithm::Ffcf { features, .. } => f64::from(features.max).powi(2) * d,
        };
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
    pub fn sample(&self, domain: &Domain, sites: u32) -> Result<Vec<Batch>, MethodError> {
        self.check(domain)?;
        let mut all = Vec::new();
        if let Some(preparing) = Preparing::new(&self.preparation, domain)? {
            all.push(preparing.ask());
        }
        all.extend(self.local_choice().map(|choice| Query::LocalChoice(choice).into()));
        if let Seeding::Tree(tree) = &self.seeding {
            let search = TreeSearch::new(tree, self.leaves(tree), GroupThreshold::NONE, domain, sites)?;
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
            let query = match self.noisy(start.clone(), domain)? {
                Some(iteration) => iteration.ask(),
                None => self.algorithm.begin(start.clone(), Some(&cells), GroupThreshold::NONE, 0)?.ask(),
            };
            if !queries.contains(&query) {
                queries.push(query);
            }
            judging.push(self.validation_of(start, true));
        }
        let later = self.later_rounds(&queries, domain)?;
        all.push(Batch { transform: None, queries });
        all.extend(later);
        let silhouettes = judging.iter().flat_map(Query::points).map(|centres| {
            let (k, centres) = (centres.k(), centres.clone());
            Query::Silhouette(Silhouette { means: centres.clone(), centres, rows: vec![1.0; k], scatter: vec![0.0; k] })
        });
        // Of every K one restart.
        let silhouettes: Vec<Query> = silhouettes.step_by(self.restarts as usize).collect();
        if self.counts_clusters() {
            let sizes = |centres: &Centres| Query::Sizes(Sizes { centres: centres.clone() });
            let sizes = judging.iter().flat_map(Query::points).map(sizes).collect();
            all.push(Batch { transform: None, queries: sizes });
        }
        all.push(Batch { transform: None, queries: judging });
        if self.validity.silhouette {
            all.push(Batch { transform: None, queries: silhouettes });
        }
        Ok(all)
    }

    /// Under noise, the questions of the last round, where they are of another form than the first ones.
    fn later_rounds(&self, first: &[Query], domain: &Domain) -> Result<Option<Batch>, MethodError> {
        let Some(levels) = self.levels(domain)? else { return Ok(None) };
        let round = self.algorithm.max_questions(GroupThreshold::NONE).saturating_sub(1);
        let (middle, clip) = levels.pull(round);
        if (middle, clip) == levels.pull(0) {
            return Ok(None);
        }
        let later = |query: &Query| match query {
            Query::Shifts(q) => Query::Shifts(Shifts { middle, clip, round, ..q.clone() }),
            other => other.clone(),
        };
        Ok(Some(Batch { transform: None, queries: first.iter().map(later).collect() }))
    }

    /// The validation question at some centres; `grouped` where every cluster may be summed up.
    pub fn validation_of(&self, centres: Centres, grouped: bool) -> Query {
        let m = self.judge_m();
        if self.counts_clusters() && !grouped {
            Query::Ungrouped(Ungrouped { centres, m })
        } else if self.judges_fully() {
            Query::Validation(crate::query::Validation { centres, m, vectors: self.validity.vectors })
        } else {
            Query::FuzzyValidation { centres, m }
        }
    }
}

/// Splits at the end of a tree whose children are asked about.
fn open(q: &Cells) -> usize {
    match q.part {
        _ if q.tree.splits.is_empty() => 0,
        Part::Sums(_) => q.nodes.len(),
        Part::Counts | Part::Both | Part::Changes(_) => q.nodes.len() / 2,
    }
}

/// Whether `some` are among `all`, in their order.
fn within<T: PartialEq>(some: &[T], all: &[T]) -> bool {
    let mut all = all.iter();
    some.iter().all(|one| all.any(|other| other == one))
}

/// Whether a bracket is a bin of the search before, to the last bit: both sides compute edges by one expression.
fn is_bin(bracket: &Bracket, last: &Histogram) -> bool {
    let cuts = |old: &Bracket| {
        let width = (old.upper - old.lower) / f64::from(last.bins);
        let guess = ((bracket.lower - old.lower) / width).round() as u32;
        let (bins, lower, upper) = (last.bins, bracket.lower, bracket.upper);
        let bin = |bin: u32| bin < bins && old.edge(bin, bins) == lower && old.edge(bin + 1, bins) == upper;
        (guess.saturating_sub(1)..=guess.saturating_add(1)).any(bin)
    };
    last.brackets.iter().filter(|old| old.column == bracket.column).any(cuts)
}

/// Which half of a round a question is, where its kind has halves.
fn half(part: &Part) -> u8 {
    match part {
        Part::Counts | Part::Changes(_) => 1,
        Part::Sums(_) => 2,
        Part::Both => 3,
    }
}

/// The questions of a validation that sum up by cluster.
fn summed(batch: &Batch) -> Batch {
    let queries = batch.queries.iter().filter(|query| matches!(query, Query::Validation(_))).cloned().collect();
    Batch { transform: batch.transform.clone(), queries }
}

/// Whether `before` asked for the counts of what `sums` asks the sums of.
fn counts_of(before: &Batch, sums: &Query) -> bool {
    let counts = |query: &Query| {
        let mut query = query.clone();
        match &mut query {
            Query::LocalFuzzy(LocalFuzzy { part, .. })
            | Query::LocalMeans(LocalMeans { part, .. })
            | Query::Features(Features { part, .. }) => *part = Part::Counts,
            _ => return None,
        }
        Some(query)
    };
    let asked = |query: &Query| query.part().is_some_and(Part::counts) && counts(query) == counts(sums);
    before.queries.iter().any(asked)
}

/// Whether all first points of a batch (the centres) are among those of the batch before.
fn asked_about(before: &Batch, batch: &Batch) -> bool {
    let centres = |batch: &Batch| batch.queries.iter().filter_map(|q| q.points().first().copied().cloned()).collect();
    let known: Vec<Centres> = centres(before);
    batch.queries.iter().all(|q| q.points().first().is_some_and(|centres| known.contains(centres)))
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
