//! The result of a run, for `result.json`.

use std::{borrow::Cow, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
/// What a method ends with: a [`RunResult`] before it is told.
pub use veilsum_cluster::Outcome;
use veilsum_cluster::{
    Centres, Indices,
    method::{ClusterSizes, CurvePoint},
    profile::Profile,
    warnings::{self, Warning},
};
use veilsum_proto::{roster::PartyId, suite::Hash};

use crate::{
    agreed::Federation,
    description::Description,
    dp::Privacy,
    error::Failure,
    errors::ResultErrors,
    method_session::MethodSession,
    model::{Early, Model},
    near,
    plan::{PlanSpec, Shares},
    signed::Signed,
    traffic::Traffic,
};

/// A site that was not there to the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Departure {
    /// Its name.
    pub site: String,
    /// The first question, counted from 1, whose total is without it.
    pub question: u32,
    /// What the coordinator knows of the reason, in a line; `null` where it is not known, as at a site.
    pub why: Option<String>,
}

/// What one column has to do with the clusters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColumnProfile {
    /// Its name.
    pub column: String,
    /// Its part of the squares between clusters, in the units of the questions; all columns together have 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub between: Option<f64>,
    /// Its part of the squares of all rows around their mean, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// The part of its own squares that lies between clusters, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explained: Option<f64>,
    /// Mean over all rows, original units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// Standard deviation over all rows, divisor N, original units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deviation: Option<f64>,
}

impl ColumnProfile {
    /// Of every column, as far as the totals of a run tell it; the largest part of the squares between clusters first.
    fn all(work: &PlanSpec, names: &[String], found: Profile) -> Vec<ColumnProfile> {
        let to = |means: &[f64]| work.units(&Centres::from_rows(&[means.to_vec()]).ok()?).ok()?.0.into_iter().next();
        let found = found.stretched(to, &work.extents());
        let of = |from: &[f64], at: usize| from.get(at).copied();
        let one = |(at, name): (usize, &String)| ColumnProfile {
            column: name.clone(),
            between: of(&found.between, at),
            total: of(&found.total, at),
            explained: of(&found.explained, at),
            mean: of(&found.means, at),
            deviation: of(&found.deviations, at),
        };
        let mut all: Vec<ColumnProfile> = names.iter().enumerate().map(one).collect();
        all.sort_by(|a, b| b.between.unwrap_or(0.0).total_cmp(&a.between.unwrap_or(0.0)));
        all
    }
}

/// The result of a run, as the coordinator knows it, or a site that runs a copy of the method; read from a file, what the file says of it. A
/// site that ran no copy writes fewer members.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RunResult {
    /// Name of the method.
    pub method: String,
    /// Number of clusters.
    pub k: u32,
    /// Fuzzifier that memberships are computed with.
    pub m: f64,
    /// What `describe` found; its one centre is the mean of all rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<Description>,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// K x d, original units.
    #[serde(deserialize_with = "near::rows")]
    pub centres: Vec<Vec<f64>>,
    /// K x d, box units.
    #[serde(deserialize_with = "near::rows")]
    pub centres_box: Vec<Vec<f64>>,
    /// The shares of every category in every cluster, where there are columns of categories: the coordinates of `centres` behind
    /// the numbers, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<Shares>,
    /// What each cluster of these centres holds: `sizes`, `mass`, `weight`, `deviations` (original units), and why
    /// some of it is missing.
    #[serde(flatten)]
    pub clusters: ClusterSizes,
    /// Rows of the sites that the indices are over (those of `cohort`, where no index is there); `null` where nobody told it.
    pub n_total: Option<u64>,
    /// Who told `n_total`: the intermediary's count, or the sum of all memberships where a counted site left the run.
    pub n_total_from: Option<Cow<'static, str>>,
    /// Rounds that moved the centres.
    pub rounds: u32,
    /// Whether the centres came to rest, and the run to its end; a site's file that has it from an early model may not say.
    pub converged: Option<bool>,
    /// Why the run ended before its method did, where it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_early: Option<Early>,
    /// Objective: J_m for fuzzy methods, sum of squared distances to the nearest centre for hard ones; squared units of the
    /// questions. `None` where the run ended before it was asked for, and below the steps of its total.
    pub objective: Option<f64>,
    /// The objective over N.
    pub objective_per_row: Option<f64>,
    /// Validity indices.
    pub indices: veilsum_cluster::Indices,
    /// One point for every K that was tried; empty where the plan names one K.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<veilsum_cluster::method::CurvePoint>,
    /// Whether the restarts came to the same centres; absent where there was one start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stability: Option<veilsum_cluster::method::Stability>,
    /// Questions put to the sites, each one masked sum.
    pub questions: u32,
    /// How the cohort standardised working units, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standardisation: Option<veilsum_cluster::Transform>,
    /// Sites that the centres are over: those of the last total that moved them.
    pub cohort: Vec<String>,
    /// Sites that objective, indices and `n_total` are over, where a site was lost in between and these are not
    /// those of `cohort`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub indices_cohort: Option<Vec<String>>,
    /// Sites of the roster that are not in the last total.
    pub missing: Vec<String>,
    /// When and why each of them went, and each that was lost after that total; the word of whoever writes it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub departures: Vec<Departure>,
    /// Hash of the plan.
    pub plan_hash: String,
    /// The shift of every round.
    pub history: Vec<veilsum_cluster::Round>,
    /// Frames by sender and phase, as the coordinator saw them; at a site those that it sent. After a restart they are those since.
    pub traffic: Traffic,
    /// The differential privacy that the run promises, if it does: then masses, counts and indices are noisy too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub privacy: Option<Privacy>,
    /// What the noisy numbers may be off, and which of these [`errors`](crate::errors) drown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<ResultErrors>,
    /// What a reader should know before using the numbers.
    pub warnings: Vec<String>,
    /// What each column has to do with the clusters, the largest part first; absent under noise, and if totals do not tell it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub profile: Vec<ColumnProfile>,
    /// What to doubt about the result, each with its name and the numbers it rests on; always there.
    pub findings: Vec<Warning>,
    /// The model that the sites received.
    #[serde(skip)]
    pub model: Option<Model>,
    /// The run's name and the text of the result with the signatures on it, once there are any.
    #[serde(skip)]
    pub signed: Option<(Hash, Signed)>,
    /// All questions and openings of the run, as a file of openings has them, where they are all there.
    #[serde(skip)]
    pub openings: Option<Arc<[u8]>>,
}

/// The indices that do not rest on squared distances of rows to their centres.
fn without_squares(of: &Indices) -> Indices {
    Indices {
        fuzzy_davies_bouldin: of.fuzzy_davies_bouldin,
        davies_bouldin: of.davies_bouldin,
        partition_coefficient: of.partition_coefficient,
        partition_entropy: of.partition_entropy,
        modified_partition_coefficient: of.modified_partition_coefficient,
        osse: of.osse,
        osse_squared: of.osse_squared,
        ..Indices::default()
    }
}

impl RunResult {
    /// As JSON. What noise drowns stands as `null`, and under `errors`.
    pub fn to_json(&self) -> Value {
        let mut value = serde_json::to_value(self).unwrap_or_else(|_| json!({}));
        for pointer in self.errors.iter().flat_map(|errors| &errors.not_distinguishable_from_noise) {
            if let Some(drowned) = value.pointer_mut(pointer) {
                *drowned = Value::Null;
            }
        }
        value
    }

    /// Of an outcome of this conversation, with the intermediary's count of the sites of the last total, where it gave it; traffic
    /// is still to come.
    ///
    /// # Errors
    /// A [`Failure`] where the outcome is none of this plan.
    pub fn of(
        federation: &Federation,
        outcome: &Outcome,
        conversation: &MethodSession,
        counted: Option<u64>,
        ended_early: Option<Early>,
    ) -> Result<RunResult, Failure> {
        let Federation { roster, terms, work } = federation;
        let (centres, centres_box) = work.units(&outcome.centres)?;
        let names =
            |sites: &[u16]| sites.iter().map(|site| roster.name_of(PartyId::Site(*site))).collect::<Vec<String>>();
        let last = conversation.cohort();
        let missing: Vec<u16> = (0..roster.sites.len() as u16).filter(|site| !last.contains(site)).collect();
        let cohort = conversation.sites(outcome.centres_over);
        let judged = outcome.judged_over.map_or(cohort, |over| conversation.sites(over));
        let indices_cohort: Option<Vec<String>> = (judged != cohort).then(|| names(judged));
        // The count is of the sites of the last total, and of no others.
        let counted = counted.filter(|_| judged == last);
        let n_total = counted.or(outcome.n_total);
        let description = outcome.description.as_ref().map(|found| Description::of(work, found)).transpose()?;
        let from = match (counted, &description) {
            (Some(_), _) => "intermediary",
            (None, Some(_)) => "number of rows summed up",
            (None, None) => "sum of memberships",
        };
        let form = federation.form()?;
        let privacy = Privacy::of(federation);
        let errors = ResultErrors::of(work, form.noise, judged.len(), outcome, counted);
        let mut told = outcome.notes.clone();
        if let Some(indices_cohort) = &indices_cohort {
            told.push(format!(
                "a site was lost between the centres and their indices: row count, objective and indices are over {} alone",
                indices_cohort.join(", ")
            ));
        }
        if let (Some(counted), Some(summed)) = (counted, outcome.n_total)
            && counted != summed
            && work.recipe.noise.is_none()
        {
            told.push(
                "the intermediary's row count and the sum of all memberships differ: a site told them different things"
                    .into(),
            );
        }
        told.extend(privacy.as_ref().and_then(Privacy::warning));
        let columns = work.names();
        let deviations = errors.as_ref().map(|errors| errors.clusters.centres.as_slice());
        let categories = Shares::of(work, &centres, deviations);
        let profile =
            outcome.profile.clone().map(|found| ColumnProfile::all(work, &columns, found)).unwrap_or_default();
        let excess = form.noise.map_or(1.0, |_| veilsum_cluster::privacy::excess(judged.len()));
        let mut findings = warnings::of(&work.recipe, &work.domain()?, &columns, outcome, excess);
        // Why such a run has not converged is said already.
        findings.retain(|finding| ended_early.is_none() || finding.name != "not-converged");
        if let (Some(errors), Some(privacy)) = (&errors, &privacy)
            && let Some(noise) = &errors.noise
        {
            let (domain, at_most) = (work.domain()?, privacy.predicted_range.map_or(f64::INFINITY, |[_, high]| high));
            let of = &errors.clusters;
            let held = if of.mass.iter().all(Option::is_none) { &of.sizes } else { &of.mass };
            findings.extend(warnings::under_noise(&domain, outcome, &noise.centres_box, held, at_most));
        }
        let gone = (0..roster.sites.len() as u16).map(|site| (site, roster.name_of(PartyId::Site(site))));
        let named = |name: &String| {
            ended_early.as_ref().is_some_and(|early| early.lost.contains(name) || early.refused.contains(name))
        };
        let departures = gone
            .filter(|(site, name)| missing.contains(site) || named(name))
            .map(|(site, name)| Departure { site: name, question: conversation.gone_since(site), why: None })
            .collect();
        // A number below the steps of its total is none.
        let known = |objective: Option<f64>, indices: &Indices| match (objective, outcome.below) {
            (Some(objective), Some(below)) if objective <= below => (None, without_squares(indices)),
            _ => (objective.filter(|objective| objective.is_finite()), indices.clone()),
        };
        let point = |point: &CurvePoint| {
            let (objective, indices) = known(point.objective, &point.indices);
            CurvePoint { indices, objective, ..point.clone() }
        };
        let curve = outcome.curve.iter().map(point).collect();
        let (objective, indices) = known(Some(outcome.objective), &outcome.indices);
        let model = Model::of(work, &terms.hash(), outcome, ended_early.clone())?;
        Ok(RunResult {
            method: work.method_name().into(),
            k: outcome.centres.k() as u32,
            m: outcome.m,
            description,
            columns,
            categories,
            centres,
            centres_box,
            clusters: outcome.clusters.clone().stretched(&work.extents()),
            n_total,
            n_total_from: n_total.map(|_| from.into()),
            rounds: outcome.rounds,
            converged: Some(outcome.converged && ended_early.is_none()),
            ended_early,
            objective,
            objective_per_row: objective.map(|_| outcome.objective_per_row),
            indices,
            curve,
            stability: outcome.stability.clone(),
            questions: outcome.questions,
            standardisation: outcome.transform.clone(),
            cohort: names(cohort),
            indices_cohort,
            missing: names(&missing),
            departures,
            plan_hash: terms.hash().to_string(),
            history: outcome.history.clone(),
            traffic: Traffic::default(),
            privacy,
            errors,
            warnings: told,
            profile,
            findings,
            model: Some(model),
            signed: None,
            openings: None,
        })
    }
}
