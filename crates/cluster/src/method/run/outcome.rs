//! How a run ends: the best restart of every K, the index curve, the choice, the outcome.

use super::{Member, Run};
use ndarray::Array2;

use crate::algorithm::{Algorithm, CLEAR_SHARE, confined};
use crate::method::{ClusterSizes, CurvePoint, Fit, Outcome, Stability};
use crate::profile::Profile;
use crate::validity::Verdict;
use crate::{Centres, Error, distance, metrics, refuse};

/// Restarts agree whose centres are all within this part of the least distance between two centres.
const AGREE: f64 = 0.1;
/// What doubles lose of a square for each row.
const DOUBLES: f64 = 1e-15;

impl Run {
    /// What decides between restarts: `J_m` for fuzzy methods, inertia for the others. A collapsed run comes last.
    pub(super) fn objective(&self, at: usize) -> f64 {
        let Some(verdict) = &self.members[at].verdict else { return f64::INFINITY };
        if verdict.collapsed {
            return f64::MAX;
        }
        self.objective_of(&self.members[at], verdict)
    }

    /// Of hard methods the inertia, which the validation has without noise and the last rounds with it.
    fn objective_of(&self, member: &Member, verdict: &Verdict) -> f64 {
        match (self.recipe.algorithm.traits().fuzzifier, verdict.indices.inertia) {
            (Some(_), _) => verdict.objective,
            (None, Some(inertia)) if !self.is_noisy() => inertia,
            _ => member.iteration.fit().pulled.map_or(f64::INFINITY, |pulled| pulled.total.max(f64::MIN_POSITIVE)),
        }
    }

    /// By how much rounding may change an objective of so many clusters: half a step of a square in the box for each site and cluster, and
    /// what doubles lose over the rows.
    fn step_of_objective(&self, k: u32, rows: u64) -> f64 {
        let square = self.domain.diameter().powi(2);
        square * (f64::from(k) * self.rounded).max(DOUBLES * rows as f64)
    }

    /// What the objective of a member is below, if totals do not tell it from 0.
    fn below(&self, member: &Member) -> Option<f64> {
        let verdict = member.verdict.as_ref().filter(|_| !self.is_noisy())?;
        let (objective, step) = (self.objective_of(member, verdict), self.step_of_objective(member.k, verdict.rows));
        (objective <= step).then_some(objective + step)
    }

    /// The smallest K whose rows lie on its centres, as far as totals tell it.
    fn perfect(&self) -> Option<&Member> {
        self.best.iter().map(|at| &self.members[*at]).find(|member| self.below(member).is_some())
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
                objective: verdict.map(|verdict| self.objective_of(member, verdict)),
                rounds: rounds(&fit),
                converged: fit.converged,
                collapsed: verdict.is_some_and(|verdict| verdict.collapsed),
            }
        };
        self.best.iter().map(point).collect()
    }

    /// The member that the choice falls on; once all are judged.
    pub(super) fn chosen(&self) -> &Member {
        let (choice, curve) = (&self.recipe.choice, self.curve());
        let place = || if self.is_noisy() { choice.under_noise(&curve).0 } else { choice.choose(&curve) };
        self.perfect().unwrap_or_else(|| &self.members[self.best[place()]])
    }

    pub(super) fn outcome(&self) -> Result<Outcome, Error> {
        let member = self.chosen();
        let open = member.verdict.is_none() && self.recipe.algorithm.traits().describes.is_none();
        refuse(open, || Error::implausible("a run has not been judged"))?;
        self.outcome_of(member)
    }

    /// The result where nothing more may be asked: the centres that the last totals gave, with the indices that were asked
    /// for already, mostly none. `converged` is what the totals so far say: false in the midst of the rounds.
    ///
    /// Where several K or restarts are open and none has been judged, there is nothing to choose by: it is the smallest K and
    /// its first restart, and a note says so.
    ///
    /// # Errors
    /// [`Error::NoCentresYet`] where no round has moved a centre.
    pub fn stop_here(&self) -> Result<Outcome, Error> {
        let moved = |member: &&Member| member.over || !member.iteration.fit().history.is_empty();
        let member = match self.best.is_empty() {
            true => self.members.iter().find(moved).ok_or(Error::NoCentresYet)?,
            false => self.chosen(),
        };
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

    /// What the run may end with where somebody else judges: the result that each K and restart is.
    ///
    /// # Errors
    /// [`Error`] where centres are none in working units.
    pub fn candidates(&self) -> Result<Vec<Outcome>, Error> {
        self.members.iter().map(|member| self.outcome_of(member)).collect()
    }

    /// The result that one member is.
    fn outcome_of(&self, member: &Member) -> Result<Outcome, Error> {
        let fit = member.iteration.fit();
        let verdict = member.verdict.as_ref();
        let centres = self.working(&fit.centres)?;
        let indices = verdict.map(|verdict| verdict.indices.clone()).unwrap_or_default();
        let mut notes = self.notes.clone();
        if self.transform.is_some() && self.prepared_over != member.cohort {
            notes.push(
                "the standardisation is over the sites of its own round; of these some were lost before the last one"
                    .into(),
            );
        }
        let curve = if self.best.len() > 1 { self.curve() } else { Vec::new() };
        if !curve.is_empty() {
            notes.extend(self.recipe.choice.told(&curve));
        }
        for point in curve.iter().filter(|point| point.collapsed) {
            notes.push(format!("K = {}: centres coincide, the run collapsed; its indices mean nothing", point.k));
        }
        if verdict.is_some_and(|verdict| verdict.collapsed) && curve.is_empty() {
            notes.push("centres coincide, the run collapsed; the indices mean nothing".into());
        }
        let below = self.below(member);
        if let Some(below) = below {
            notes.push(format!(
                "the objective is below {below:.2e}, and steps of totals tell no more: it and the indices of squares are not shown"
            ));
        }
        notes.extend(self.abstained(member, &fit));
        let hard = verdict.and_then(|verdict| verdict.clusters.as_ref());
        let off_means = hard.map(|clusters| {
            let apart = |(a, b): (&[f64], &[f64])| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
            fit.centres.rows().zip(clusters.means.rows()).map(apart).fold(0.0, f64::max)
        });
        let objective = verdict.map_or(f64::INFINITY, |verdict| self.objective_of(member, verdict));
        let traits = self.recipe.algorithm.traits();
        let least = CLEAR_SHARE * fit.weights.iter().sum::<f64>();
        Ok(Outcome {
            centres,
            m: self.recipe.judge_m(),
            clusters: self.clusters(member),
            n_total: verdict.map(|verdict| verdict.rows).or(fit.description.as_ref().map(|found| found.rows)),
            rounds: rounds(&fit),
            converged: fit.converged,
            history: fit.history.clone(),
            indices,
            objective,
            objective_per_row: verdict.map_or(f64::INFINITY, |verdict| objective / verdict.rows as f64),
            transform: self.transform.clone(),
            curve,
            questions: self.questions,
            notes,
            centres_over: member.cohort,
            judged_over: self.judged_over,
            deviations: match &fit.description {
                Some(found) => Some(found.variances.iter().map(|variance| variance.sqrt()).collect()),
                None => self.candidates.as_ref().map(|points| points.deviations.clone()),
            },
            rival: member.rival,
            margins: self.candidates.as_ref().map(|points| points.margins.clone()),
            profile: self.profile(&fit.centres, verdict),
            candidates: self.candidates.as_ref().map(|points| points.count() as u32),
            off_means,
            local_centres: (traits.counts_local_centres && !fit.weights.is_empty()).then(|| fit.weights.clone()),
            below,
            frozen: fit.weights.iter().filter(|weight| **weight <= least).count() as u32,
            pulled: fit.pulled.clone(),
            stability: self.stability(member),
            description: fit.description,
        })
    }

    /// How many took no part in the last round of a method in which a site finds K clusters of its own, as far as totals over one
    /// cohort tell it.
    fn abstained(&self, member: &Member, fit: &Fit) -> Option<String> {
        let (traits, k) = (self.recipe.algorithm.traits(), member.k);
        let rows = member.verdict.as_ref().filter(|_| self.judged_over == Some(member.cohort))?.rows as f64;
        let (all, of) = match self.recipe.algorithm {
            // Memberships of a row add up to 1.
            Algorithm::FfcmAvg1 { powers: false, local, .. } if local.most > 1 => (rows, "rows"),
            // Each site has K centres.
            Algorithm::FfcmAvg2 { .. } if traits.local_steps > 1 => (f64::from(self.sites), "sites"),
            _ => return None,
        };
        let took = fit.weights.iter().sum::<f64>() / if of == "sites" { f64::from(k) } else { 1.0 };
        let left = (all - took).round();
        (left >= 1.0 && left > 1e-4 * all).then(|| {
            format!(
                "{left:.0} of {all:.0} {of} had no part in the centres: a site with fewer rows than K = {k} has no clusters of its own \
                 to average"
            )
        })
    }

    /// What the columns have to do with the clusters: noise leaves nothing of it that has an error.
    fn profile(&self, centres: &Centres, verdict: Option<&Verdict>) -> Option<Profile> {
        let verdict = verdict.filter(|_| !self.is_noisy())?;
        let profile = Profile::of(centres, verdict)?;
        let Some(transform) = &self.transform else { return Some(profile) };
        let by: Vec<f64> = transform.factor.iter().map(|factor| 1.0 / factor).collect();
        let back =
            |means: &[f64]| Some(transform.back(&Centres::from_rows(&[means.to_vec()]).ok()?).ok()?.row(0).to_vec());
        Some(profile.stretched(back, &by))
    }

    /// What the clusters hold.
    fn clusters(&self, member: &Member) -> ClusterSizes {
        let k = member.k as usize;
        if self.recipe.algorithm.traits().describes.is_some() {
            return ClusterSizes::unknown(k, "a description has no clusters");
        }
        let fuzzy = self.recipe.algorithm.traits().fuzzifier.is_some();
        let found = match &member.verdict {
            Some(verdict) => ClusterSizes::of(k, &verdict.held, fuzzy),
            None => ClusterSizes::unknown(k, "the run ended before its validity totals were asked for"),
        };
        if self.is_noisy() {
            // Noise may leave squares of less than nothing.
            let found = found.without_deviations("deviations: nobody knows how far noise moved them");
            let pulled = member.iteration.fit().pulled.filter(|_| !fuzzy);
            return pulled.map_or(found.clone(), |pulled| found.counted(&pulled.weights));
        }
        match &self.transform {
            Some(transform) => found.stretched(&transform.factor.iter().map(|factor| 1.0 / factor).collect::<Vec<_>>()),
            None => found,
        }
    }

    /// How far the other restarts of a member's K agree with it.
    fn stability(&self, chosen: &Member) -> Option<Stability> {
        let centres = chosen.iteration.fit().centres;
        let (gap, k) = (crate::metrics::gap(&centres, &self.domain), chosen.k as usize);
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
        let objectives =
            restarts.iter().map(|member| member.verdict.as_ref().map(|verdict| self.objective_of(member, verdict)));
        let worst = objectives.collect::<Option<Vec<_>>>().map(|all| all.into_iter().fold(0.0, f64::max));
        let best = chosen.verdict.as_ref().map(|verdict| self.objective_of(chosen, verdict)).filter(|best| *best > 0.0);
        let worst = worst.zip(best).map(|(worst, best)| worst / best).filter(|ratio| ratio.is_finite());
        Some(Stability { matched_distance: matched.into_iter().map(|(mean, _)| mean).collect(), agreement, worst })
    }

    /// Centres of the questions in working units.
    pub(super) fn working(&self, centres: &Centres) -> Result<Centres, Error> {
        match &self.transform {
            Some(transform) => {
                let back = transform.back(centres).map_err(Error::implausible)?;
                Ok(if self.is_noisy() { confined(&back, &self.public) } else { back })
            }
            None => Ok(centres.clone()),
        }
    }
}

fn rounds(fit: &Fit) -> u32 {
    u32::try_from(fit.history.len()).unwrap_or(u32::MAX)
}
