//! What a whole run may ask: the parts that its questions are of, their sizes, and one of each.

use super::prepare::{Preparing, Scale};
use super::recipe::{Recipe, Seeding};
use super::seed::{Candidates, MARGINS};
use crate::algorithm::{Beginning, describe};
use crate::query::{FuzzyValidation, LocalMeans, Shifts, Stage, Validation};
use crate::{Batch, Centres, Domain, Error, Query};

impl Recipe {
    /// Whether rows are moved at all.
    pub fn prepares(&self) -> bool {
        self.preparation != Scale::None
    }

    /// Runs side by side.
    pub(crate) fn members(&self) -> usize {
        self.clusters.count() * self.restarts as usize
    }

    /// The part of this plan's runs that a question is of: sums around more points than there may be clusters are of candidates for
    /// first centres.
    pub fn place_of(&self, query: &Query) -> Stage {
        let seeds = matches!(self.seeding, Seeding::Candidates(_));
        match query {
            Query::Shifts(Shifts { centres, .. }) | Query::LocalMeans(LocalMeans { centres, .. })
                if seeds && centres.k() > self.most_points() as usize =>
            {
                Stage::Seeding
            }
            other => other.stage(),
        }
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
        let members = (max.saturating_sub(min) + 1).saturating_mul(restarts);
        // Beside the numbers of every cluster, one of the fit.
        let rounds = asked.saturating_mul(d + 2).saturating_add(members);
        let vectors = if self.validity.vectors { 2 * d } else { 0 };
        // Of each cluster, and four sums over all of them.
        let judging =
            all_k.saturating_mul(restarts).saturating_mul(7 + vectors).saturating_add(members.saturating_mul(4));
        let ranging = self.range.map_or(0, |range| u64::from(range.most) + 1);
        let describing = self.algorithm.traits().describes.map_or(0, |bins| d.saturating_mul(u64::from(bins) + 1));
        [describing, seeding, rounds, judging, ranging, d + 1].into_iter().max().unwrap_or(0)
    }

    /// Roughly how many multiplications the longest question of a run costs a site with so many rows.
    pub fn most_operations(&self, rows: u64, columns: usize) -> f64 {
        let (rows, d, restarts) = (rows as f64, columns as f64, f64::from(self.restarts));
        let (min, max) = (f64::from(self.clusters.min), f64::from(self.clusters.max));
        let all_k = self.clusters.count() as f64 * (min + max) / 2.0 * restarts;
        let each_row = self.algorithm.traits().comparisons(all_k) * d;
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
            return Ok(describe::questions(domain, bins).into_iter().map(Batch::from).collect());
        }
        let mut all = Vec::new();
        all.extend(
            Preparing::new(self.preparation, domain, self.noise.is_some())?.map(|preparing| preparing.ask().into()),
        );
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
            let at = Beginning { anchors: Some(&anchors), ..Beginning::at(domain, &start) };
            let query = self.begin(at)?.ask();
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
        let round = self.algorithm.traits().rounds.saturating_sub(1);
        let middle = levels.is_around_middle(round);
        let clip = levels.coarsest_pull(round);
        let later = |query: &Query| match query {
            Query::Shifts(q) => Query::Shifts(Shifts { middle, clip, round, ..q.clone() }),
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
