//! How a run ends: the best restart of every K, the index curve, the choice, the outcome.

use super::{Member, Run};
use crate::method::{CurvePoint, Fit, Outcome};
use crate::privacy::Noise;
use crate::query::Silhouette;
use crate::validity::Verdict;
use crate::{MethodError, Query, metrics};

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
        let at = self.recipe.choice.choose(&self.curve());
        &self.members[self.best[at]]
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
        let fit = member.iteration.fit();
        let verdict = member.verdict.clone().ok_or_else(|| MethodError::implausible("a run has not been judged"))?;
        let centres = match &self.transform {
            Some(transform) => {
                transform.back(&fit.centres).map_err(|error| MethodError::implausible(error.to_string()))?
            }
            None => fit.centres.clone(),
        };
        let mut indices = verdict.indices.clone();
        if let Some(counts) = &self.contingency {
            indices.adjusted_rand = Some(metrics::adjusted_rand_from(counts, self.recipe.validity.classes as usize));
        }
        let mut notes = self.notes.clone();
        notes.extend(self.recipe.noise.as_ref().map(Noise::promise));
        let small = self.best.iter().map(|at| &self.members[*at]).filter(|member| !member.grouped);
        notes.extend(small.map(|member| self.withheld(member.k)));
        let curve = if self.best.len() > 1 { self.curve() } else { Vec::new() };
        for point in curve.iter().filter(|point| point.collapsed) {
            notes.push(format!("K = {}: centres coincide, the run collapsed; its indices mean nothing", point.k));
        }
        if verdict.collapsed && curve.is_empty() {
            notes.push("centres coincide, the run collapsed; the indices mean nothing".into());
        }
        let objective = self.objective_of(&verdict);
        Ok(Outcome {
            centres,
            m: self.recipe.judge_m(),
            weights: fit.weights.clone(),
            n_total: Some(verdict.rows),
            rounds: rounds(&fit),
            converged: fit.converged,
            history: fit.history,
            indices,
            objective,
            objective_per_row: objective / verdict.rows as f64,
            transform: self.transform.clone(),
            curve,
            questions: self.questions,
            notes,
            contingency: self.contingency.clone(),
        })
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
