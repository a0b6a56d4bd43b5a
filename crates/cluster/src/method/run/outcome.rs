//! How a run ends: the best restart of every K, the index curve, the choice, the outcome.

use super::{Member, Run};
use ndarray::Array2;

use crate::method::{CurvePoint, Fit, Outcome, Stability, mechanism};
use crate::privacy::Noise;
use crate::query::Silhouette;
use crate::validity::Verdict;
use crate::{Centres, Indices, MethodError, Query, distance, metrics};

/// Restarts agree whose centres are all within this part of the least distance between two centres.
const AGREE: f64 = 0.1;

impl Run {
    /// What decides between restarts: `J_m` for fuzzy methods, inertia for the others. A collapsed run comes last.
    pub(super) fn objective(&self, at: usize) -> f64 {
        let Some(verdict) = &self.members[at].verdict else { return f64::INFINITY };
        if verdict.collapsed { f64::MAX } else { self.objective_of(verdict) }
    }

    fn objective_of(&self, verdict: &Verdict) -> f64 {
        match (self.recipe.algorithm.fuzzifier(), verdict.indices.inertia) {
            (None, Some(inertia)) => inertia,
            _ => verdict.objective,
        }
    }

    pub(super) fn curve(&self) -> Vec<CurvePoint> {
        let point = |at: &usize| {
            let member = &self.members[*at];
            let fit = member.iteration.fit();
            let verdict = member.verdict.as_ref();
            CurvePoint {
                k: member.k,
                restart: member.restart,
                indices: verdict.map(|verdict| verdict.indices.clone()).unwrap_or_default(),
                objective: verdict.map_or(f64::INFINITY, |verdict| self.objective_of(verdict)),
                rounds: rounds(&fit),
                converged: fit.converged,
                collapsed: verdict.is_some_and(|verdict| verdict.collapsed),
            }
        };
        self.best.iter().map(point).collect()
    }

    /// The member that the choice falls on; once all are judged.
    pub(super) fn chosen(&self) -> &Member {
        &self.members[self.chosen_at()]
    }

    fn chosen_at(&self) -> usize {
        self.best[self.recipe.choice.choose(&self.curve())]
    }

    /// The place of the K and restart that [`Run::stop_here`] hands over; it is the same in every copy of the run.
    pub(crate) fn ends_with(&self) -> Result<usize, MethodError> {
        let moved = |member: &Member| member.over || !member.iteration.fit().history.is_empty();
        match self.best.is_empty() {
            true => self.members.iter().position(moved).ok_or(MethodError::NoCentresYet),
            false => Ok(self.chosen_at()),
        }
    }

    /// Rounds that moved the centres of the K and restart at this place.
    pub(crate) fn rounds_of(&self, at: usize) -> u32 {
        self.members.get(at).map_or(0, |member| rounds(&member.iteration.fit()))
    }

    /// Whether the validity totals were given.
    pub(crate) fn is_judged(&self) -> bool {
        self.judged_over.is_some()
    }

    /// Why indices are missing.
    fn withheld(&self, k: u32) -> String {
        let rule = self.recipe.rule;
        format!(
            "K = {k}: fewer than {} rows or {} sites stand behind a cluster; nothing was summed up by cluster, and the indices \
             that need it are left out",
            rule.min_rows, rule.min_sites
        )
    }

    pub(super) fn outcome(&self) -> Result<Outcome, MethodError> {
        let member = self.chosen();
        if member.verdict.is_none() {
            return Err(MethodError::implausible("a run has not been judged"));
        }
        self.outcome_of(member)
    }

    /// The result where nothing more may be asked: the centres that the last totals gave, with the indices that were asked
    /// for already, mostly none. `converged` is what the totals so far say: false in the midst of the rounds.
    ///
    /// Where several K or restarts are open and none has been judged, there is nothing to choose by: it is the smallest K and
    /// its first restart, and a note says so.
    ///
    /// # Errors
    /// [`MethodError::NoCentresYet`] where no round has moved a centre.
    pub fn stop_here(&self) -> Result<Outcome, MethodError> {
        let member = &self.members[self.ends_with()?];
        let mut outcome = self.outcome_of(member)?;
        if !member.over {
            outcome.notes.push(format!("the run ended after round {}, before its stop rule held", outcome.rounds));
        }
        if self.members.len() > 1 && member.verdict.is_none() {
            outcome.notes.push(format!(
                "no index was asked for, so nothing chose among the K and the restarts: this is K = {}, restart {}",
                member.k, member.restart
            ));
        }
        if member.verdict.is_none() {
            outcome.notes.push("the run ended before its validity indices and its objective were asked for".into());
        }
        Ok(outcome)
    }

    /// The result that one member is.
    fn outcome_of(&self, member: &Member) -> Result<Outcome, MethodError> {
        let fit = member.iteration.fit();
        let verdict = member.verdict.as_ref();
        let centres = self.working(&fit.centres)?;
        let mut indices = verdict.map_or_else(
            || Indices { fuzzy_davies_bouldin: f64::INFINITY, ..Indices::default() },
            |verdict| verdict.indices.clone(),
        );
        if let Some(counts) = &self.contingency {
            indices.adjusted_rand = Some(metrics::adjusted_rand_from(counts, self.recipe.validity.classes as usize));
        }
        let mut notes = self.notes.clone();
        notes.extend(self.recipe.noise.as_ref().map(Noise::promise));
        if self.transform.is_some() && self.prepared_over != member.cohort {
            notes.push(
                "the standardisation is over the sites of its own round; of these some were lost before the last one"
                    .into(),
            );
        }
        let small = self.best.iter().map(|at| &self.members[*at]).filter(|member| !member.grouped);
        notes.extend(small.map(|member| self.withheld(member.k)));
        let curve = if self.best.len() > 1 { self.curve() } else { Vec::new() };
        for point in curve.iter().filter(|point| point.collapsed) {
            notes.push(format!("K = {}: centres coincide, the run collapsed; its indices mean nothing", point.k));
        }
        if verdict.is_some_and(|verdict| verdict.collapsed) && curve.is_empty() {
            notes.push("centres coincide, the run collapsed; the indices mean nothing".into());
        }
        let objective = verdict.map_or(f64::INFINITY, |verdict| self.objective_of(verdict));
        Ok(Outcome {
            centres,
            m: self.recipe.judge_m(),
            weights: fit.weights.clone(),
            n_total: verdict.map(|verdict| verdict.rows),
            rounds: rounds(&fit),
            converged: fit.converged,
            history: fit.history,
            indices,
            objective,
            objective_per_row: verdict.map_or(f64::INFINITY, |verdict| objective / verdict.rows as f64),
            transform: self.transform.clone(),
            curve,
            questions: self.questions,
            notes,
            contingency: self.contingency.clone(),
            centres_over: member.cohort,
            judged_over: self.judged_over,
            stability: self.stability(member),
            extrapolated: None,
        })
    }

    /// How far the other restarts of a member's K agree with it.
    fn stability(&self, chosen: &Member) -> Option<Stability> {
        let centres = chosen.iteration.fit().centres;
        let (gap, k) = (mechanism::gap(&centres, &self.domain), chosen.k as usize);
        let restarts: Vec<&Member> = self.members.iter().filter(|member| member.k == chosen.k).collect();
        if restarts.len() < 2 || restarts.iter().any(|member| member.iteration.fit().history.is_empty()) {
            return None;
        }
        let matched = |member: &&Member| {
            let other = member.iteration.fit().centres;
            let apart = |(i, j)| distance::euclidean(centres.row(i), other.row(j));
            let cost = Array2::from_shape_fn((k, k), apart);
            let pairs = metrics::assignment(&cost).ok()?;
            let far = pairs.into_iter().enumerate().map(|pair| cost[pair] / gap);
            // Where two centres coincide no distance is small beside theirs.
            Some(far.fold((0.0, 0.0f64), |(sum, most), far| (sum + far / k as f64, most.max(far))))
                .filter(|(mean, _)| mean.is_finite())
        };
        let matched = restarts.iter().map(matched).collect::<Option<Vec<_>>>()?;
        let agree = matched.iter().filter(|(_, most)| *most <= AGREE).count();
        let agreement = agree as f64 / matched.len() as f64;
        Some(Stability { matched_distance: matched.into_iter().map(|(mean, _)| mean).collect(), agreement })
    }

    /// Centres of the questions in working units.
    pub(super) fn working(&self, centres: &Centres) -> Result<Centres, MethodError> {
        match &self.transform {
            Some(transform) => transform.back(centres).map_err(|error| MethodError::implausible(error.to_string())),
            None => Ok(centres.clone()),
        }
    }
}

fn rounds(fit: &Fit) -> u32 {
    u32::try_from(fit.history.len()).unwrap_or(u32::MAX)
}

/// Round B of one member; `None` where its clusters are not known.
pub(super) fn silhouette(member: &Member) -> Option<Query> {
    let clusters = member.verdict.as_ref()?.clusters.clone()?;
    let centres = member.iteration.fit().centres;
    Some(Query::Silhouette(Silhouette {
        centres,
        means: clusters.means,
        rows: clusters.rows,
        scatter: clusters.scatter,
    }))
}
