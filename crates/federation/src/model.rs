//! A model: the centres that a run ends with, and all that is needed to use them on one's own rows.

use serde::{Deserialize, Serialize};
use veilsum_cluster::{
    Centres, Domain, Error, Outcome, Rows, Scaling, Transform, assign,
    method::{ALGORITHMS, Belonging, Extrapolation},
    query::{Query, ShapeModel, ShapedSums, TypicalSums, Typicality},
};
use veilsum_proto::suite::Hash;

use crate::{
    app_messages::clean,
    columns,
    error::{Code, Failure},
    plan::{Categorical, Column, PlanSpec},
};

/// First line of every model file.
pub const FORMAT: &str = "veilsum-model/1";

/// Bytes of a model file: twice the largest set of centres (a million numbers) as decimal text.
pub const MAX_FILE: usize = 64 << 20;

/// Numbers of a model with covariances at most, K (2 d + d (d + 1) / 2): as text of some 30 bytes each they fit the message that
/// ends a run. A larger one has its covariances in the result alone.
const MAX_SHAPED: usize = 1 << 18;

/// Centres with their columns and units.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// [`FORMAT`].
    pub format: String,
    /// The method's name.
    pub method: String,
    /// Number of clusters.
    pub k: u32,
    /// Fuzzifier.
    pub m: f64,
    /// The columns of numbers in the order of every centre, with their public range.
    pub columns: Vec<Column>,
    /// The columns of categories, whose indicators follow the numbers in every centre: shares of the categories.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categorical: Vec<Categorical>,
    /// How rows become working units.
    pub scaling: Scaling,
    /// Centres in original units, K x d.
    pub centres: Vec<Vec<f64>>,
    /// Centres in working units, K x d.
    pub centres_working: Vec<Vec<f64>>,
    /// How the cohort standardised working units, if it did: memberships are computed in the units that it leads to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standardisation: Option<Transform>,
    /// Of `gk` and `gmm` the covariance of every cluster in working units, K lower triangles row by row, d (d + 1) / 2 each. Models
    /// of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covariances_working: Option<Vec<Vec<f64>>>,
    /// Of `gmm` the share of every cluster (K), which add up to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<Vec<f64>>,
    /// Of `fcm-noise` and `pcm` the plan's δ, in the units that memberships are computed in. Models of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance: Option<f64>,
    /// Hash of the plan that the run followed, hexadecimal.
    pub plan: String,
    /// Whether the centres came to rest on totals that were asked, and the run to its end: false in all that ended early. Models of
    /// earlier versions do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub converged: Option<bool>,
    /// Why the run ended before its method did, where it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_early: Option<Early>,
    /// How much of the centres rests on estimated totals, where the run could not ask to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extrapolated: Option<Extrapolation>,
}

/// What the memberships of a row in the clusters of a model follow from.
enum Rule {
    /// The distances to the centres, as in fuzzy c-means.
    Fuzzy(Centres, f64),
    /// Covariances, in a box of these units.
    Shaped(ShapedSums, Domain),
    /// The distances to the centres and δ.
    Typical(TypicalSums),
}

/// A model that is ready to be used on rows.
pub struct Assignment<'a> {
    model: &'a Model,
    rule: Rule,
}

impl Assignment<'_> {
    /// Memberships of n rows, row by row, as the model's method has them in its rounds: n x K. Under a noise cluster
    /// ([`Model::has_noise`]) they are n x (K + 1), the last one that in the noise cluster. Those of a row add up to 1, but under
    /// `pcm`, where every cluster judges a row by itself. `values` are row-major in original units, as for [`Model::to_working`].
    ///
    /// # Errors
    /// A sentence where a value is not finite.
    pub fn memberships(&self, values: Vec<f64>) -> Result<Vec<f64>, String> {
        let rows = self.model.to_working(values)?;
        match &self.rule {
            Rule::Fuzzy(centres, m) => assign::memberships(&rows, centres, *m)
                .map(|u| u.as_slice().unwrap_or_default().to_vec())
                .map_err(|e| e.to_string()),
            Rule::Shaped(clusters, domain) => clusters.memberships(&rows, domain).map_err(|e| e.to_string()),
            Rule::Typical(clusters) => clusters.memberships(&rows).map_err(|e| e.to_string()),
        }
    }
}

/// How a run ended that could not ask its method to the end ([APP-8]).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Early {
    /// Rounds that moved these centres on totals that were asked: of the K and restart that they are of, where there were
    /// several.
    pub round: u32,
    /// Whether these centres had come to rest on totals that were asked: then only indices are missing or estimated.
    #[serde(default)]
    pub at_rest: bool,
    /// Why no more could be asked, for a person. Like the names below it is the coordinator's word: a site that writes this file
    /// has checked round and centres against its own copy of the method, and of these only that they are on the roster.
    pub reason: String,
    /// Who was lost, by name: was gone, silent, or left out because it broke a rule.
    pub lost: Vec<String>,
    /// Who was there and refused to answer, by name, as its policy or the rest of its budgets has it.
    #[serde(default)]
    pub refused: Vec<String>,
}

impl Early {
    /// Of an outcome that [`crate::method_session::MethodSession::finish`] gave, with who was lost and who refused.
    pub fn of(outcome: &Outcome, reason: &str, lost: Vec<String>, refused: Vec<String>) -> Early {
        let estimated = outcome.extrapolated.map_or(0, |extrapolated| extrapolated.rounds);
        let round = outcome.rounds.saturating_sub(estimated);
        Early { round, at_rest: outcome.converged, reason: clean(reason), lost, refused }
    }

    /// What came of a run that ended so, as a failed command says it.
    pub fn failure(&self) -> Failure {
        Failure::new(
            Code::Early,
            format!("the run ended early, after round {}: {}", self.round, self.reason),
            "the result that is out so far was written, marked as not converged; for one to the end, run again when the same \
             parties are there",
        )
    }
}

impl Model {
    /// The model of a run's outcome, and of how it ended early, where it did.
    ///
    /// # Errors
    /// [`Failure`] where the centres do not fit the plan's columns.
    pub fn of(work: &PlanSpec, plan: &Hash, outcome: &Outcome, ended_early: Option<Early>) -> Result<Model, Failure> {
        let model = Model::new(work, plan, &outcome.centres, outcome.transform.clone())?;
        let converged = Some(outcome.converged && ended_early.is_none());
        let (k, d) = (outcome.centres.k(), outcome.centres.columns());
        let shapes = outcome.shapes.as_ref().filter(|_| k * (2 * d + d * (d + 1) / 2) <= MAX_SHAPED);
        Ok(Model {
            covariances_working: shapes.map(|shapes| shapes.covariances.clone()),
            weights: shapes.and_then(|shapes| shapes.weights.clone()),
            converged,
            ended_early,
            extrapolated: outcome.extrapolated,
            ..model
        })
    }

    /// The model of final centres (working units), without covariances.
    ///
    /// # Errors
    /// [`Failure`] where the centres do not fit the plan's columns.
    pub fn new(
        work: &PlanSpec,
        plan: &Hash,
        working: &Centres,
        standardisation: Option<Transform>,
    ) -> Result<Model, Failure> {
        let (k, m) = (u32::try_from(working.k()).unwrap_or(u32::MAX), work.recipe.judge_m());
        let (centres, _) = work.units(working)?;
        let distance = work.recipe.algorithm.traits().typical.map(|typical| typical.distance);
        Ok(Model {
            format: FORMAT.into(),
            method: work.method_name().into(),
            k,
            m,
            columns: work.columns.clone(),
            categorical: work.categorical.clone(),
            scaling: work.scaling,
            centres,
            centres_working: working.rows().map(<[f64]>::to_vec).collect(),
            standardisation,
            covariances_working: None,
            weights: None,
            distance,
            plan: plan.to_string(),
            converged: None,
            ended_early: None,
            extrapolated: None,
        })
    }

    /// What whoever uses the model has to know, as a sentence: how its centres came about, unless they came to rest or the file does
    /// not say.
    pub fn caution(&self) -> Option<String> {
        let estimated = self.extrapolated.filter(|found| found.rounds > 0).map_or_else(String::new, |found| {
            let (rounds, error) = (found.rounds, found.held_out_error);
            format!("; the totals of {rounds} more are estimated (relative error {error:.1e} on probes)")
        });
        match (&self.ended_early, self.converged) {
            (Some(Early { round, at_rest: true, .. }), _) => {
                Some(format!("the run of this model ended early, after its centres came to rest in round {round}"))
            }
            (Some(Early { round, .. }), _) => Some(format!(
                "the run of this model ended early, after round {round}, before its centres came to rest{estimated}"
            )),
            (None, Some(false)) => Some("the run of this model ended before its centres came to rest".into()),
            (None, _) => None,
        }
    }

    /// The model as JSON text.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Numbers, texts and lists always have a JSON form.
        let mut text = serde_json::to_vec_pretty(self).unwrap_or_default();
        text.push(b'\n');
        text
    }

    /// Reads and checks JSON text.
    ///
    /// # Errors
    /// What is wrong, as the end of a sentence that begins "the model ".
    pub fn from_bytes(bytes: &[u8]) -> Result<Model, String> {
        if bytes.len() > MAX_FILE {
            return Err(format!("is longer than {MAX_FILE} bytes"));
        }
        let model: Model = serde_json::from_slice(bytes).map_err(|e| format!("cannot be read: {e}"))?;
        model.check().map_err(|why| format!("is not valid: {why}"))?;
        Ok(model)
    }

    /// Whether all parts fit each other.
    ///
    /// # Errors
    /// A sentence that names the part.
    pub fn check(&self) -> Result<(), String> {
        if self.format != FORMAT {
            return Err(format!("it says format {:?} where {FORMAT:?} belongs", self.format));
        }
        if !(self.m.is_finite() && self.m > 1.0) {
            return Err("the fuzzifier m must be a finite number above 1".into());
        }
        columns::check(&self.columns, &self.categorical)?;
        let domain = self.domain()?;
        let working = self.working_centres()?;
        let original = Centres::from_rows(&self.centres).map_err(|e| format!("centres: {e}"))?;
        for (name, c) in [("centres", &original), ("centres_working", &working)] {
            if c.k() != self.k as usize || c.columns() != domain.columns() {
                return Err(format!("{name} are {} x {}, not k x columns", c.k(), c.columns()));
            }
        }
        let back = domain.reported(&working).map_err(|e| format!("centres_working: {e}"))?;
        for (a, b) in original.rows().zip(back.rows()) {
            for (column, (a, b)) in a.iter().zip(b).enumerate() {
                let scale = (domain.upper()[column] - domain.lower()[column]).max(a.abs());
                if (a - b).abs() > 1e-9 * scale {
                    return Err("centres and centres_working are not the same centres".into());
                }
            }
        }
        self.rule().map(drop)
    }

    /// Whether rows may belong to a noise cluster, which has no centre.
    pub fn has_noise(&self) -> bool {
        self.belonging() == Belonging::Typical(Typicality::Noise)
    }

    /// The model, ready to be used on rows.
    ///
    /// # Errors
    /// A [`Failure`], without the file's name, where the model is not valid, or has not all that its method needs.
    pub fn assignment(&self) -> Result<Assignment<'_>, Failure> {
        let unusable = |why: String| {
            Failure::input(
                format!("the model is not valid: {why}"),
                "take the model.json that the run wrote, unchanged",
            )
        };
        if let Some(rule) = self.rule().map_err(unusable)? {
            return Ok(Assignment { model: self, rule });
        }
        let method = &self.method;
        let (lacking, advice) = match self.belonging() {
            Belonging::Mixture | Belonging::GustafsonKessel => (
                "covariances",
                "models of earlier versions, and of very many clusters and columns, keep none: make the run again, or take `shapes` of \
                 its result.json",
            ),
            _ => ("distance", "models of earlier versions keep none: make the run again"),
        };
        let what = format!("a model of {method} that has no {lacking} cannot say where rows belong under {method}");
        Err(Failure::input(what, advice))
    }

    /// The rule of its method; a method that this version does not know has that of fuzzy c-means.
    fn belonging(&self) -> Belonging {
        ALGORITHMS.iter().find(|about| about.name == self.method).map_or(Belonging::Fuzzy, |about| about.belonging)
    }

    /// What memberships follow from; `None` where the model has not kept it.
    fn rule(&self) -> Result<Option<Rule>, String> {
        let public = self.domain()?;
        let domain = match &self.standardisation {
            None => public,
            Some(standardisation) => standardisation.domain(&public).map_err(|e| format!("standardisation: {e}"))?,
        };
        let (centres, m, method) = (self.centres()?, self.m, self.method.as_str());
        let mixture = self.belonging() == Belonging::Mixture;
        let shaped = mixture || self.belonging() == Belonging::GustafsonKessel;
        let typicality = if let Belonging::Typical(typicality) = self.belonging() { Some(typicality) } else { None };
        if self.covariances_working.is_some() && !shaped
            || self.weights.is_some() && !(mixture && self.covariances_working.is_some())
            || self.distance.is_some() && typicality.is_none()
        {
            return Err(format!("covariances, weights or a distance are not for {method}"));
        }
        let plain = |e: Error| match e {
            Error::Question { what } => what.to_owned(),
            other => other.to_string(),
        };
        if let Some(typicality) = typicality {
            let Some(distance) = self.distance else { return Ok(None) };
            let clusters = TypicalSums { centres, m, distance, typicality };
            Query::from(clusters.clone()).check(&domain).map_err(plain)?;
            return Ok(Some(Rule::Typical(clusters)));
        }
        if !shaped {
            return Ok(Some(Rule::Fuzzy(centres, m)));
        }
        let Some(covariances) = &self.covariances_working else { return Ok(None) };
        let even = || vec![1.0 / centres.k() as f64; centres.k()];
        let model = match mixture {
            true => ShapeModel::Mixture { weights: self.weights.clone().unwrap_or_else(even) },
            false => ShapeModel::GustafsonKessel { m },
        };
        let clusters = ShapedSums::left(centres, covariances, model, self.standardisation.as_ref(), &domain);
        clusters.map(|clusters| Some(Rule::Shaped(clusters, domain))).map_err(plain)
    }

    /// The public box.
    ///
    /// # Errors
    /// A sentence that names the column.
    pub fn domain(&self) -> Result<Domain, String> {
        columns::domain(&self.columns, &self.categorical, self.scaling).map_err(|e| format!("columns: {e}"))
    }

    /// The names of all coordinates of a centre.
    pub fn names(&self) -> Vec<String> {
        columns::names(&self.columns, &self.categorical)
    }

    /// The centres in working units.
    ///
    /// # Errors
    /// A sentence where they have no common shape.
    pub fn working_centres(&self) -> Result<Centres, String> {
        Centres::from_rows(&self.centres_working).map_err(|e| format!("centres_working: {e}"))
    }

    /// The centres in the units that memberships are computed in.
    ///
    /// # Errors
    /// A sentence where they have no common shape.
    pub fn centres(&self) -> Result<Centres, String> {
        let working = self.working_centres()?;
        match &self.standardisation {
            None => Ok(working),
            Some(standardisation) => standardisation.centres(&working).map_err(|e| format!("centres_working: {e}")),
        }
    }

    /// Row-major values (original units) in the units that memberships are computed in. Unlike in a run, rows outside the
    /// box stay outside: nobody adds them up, and they too are nearest to some centre. Columns that the cohort clipped are
    /// clipped here too.
    ///
    /// # Errors
    /// A sentence where a value is not finite.
    pub fn to_working(&self, values: Vec<f64>) -> Result<Rows, String> {
        let domain = self.domain()?;
        let d = domain.columns();
        if values.is_empty() {
            return Rows::new(values, d).map_err(|e| e.to_string());
        }
        // The box maps points that may lie outside it only as centres; rows are such points here.
        let points = Centres::new(values.len() / d, d, values).map_err(|e| e.to_string())?;
        let working = domain.centres_to_box(&points).map_err(|e| e.to_string())?;
        let mut values = working.as_slice().to_vec();
        if self.scaling == Scaling::Direction {
            for (row, values) in values.chunks_exact_mut(d).enumerate() {
                if !veilsum_cluster::unit(values) {
                    return Err(Error::NoDirection { row }.to_string());
                }
            }
        }
        if let Some(t) = &self.standardisation {
            for (i, value) in values.iter_mut().enumerate() {
                let column = i % d;
                let (low, high) = domain.working_interval(column);
                // A clip bound at the end of the box clips nobody.
                let lower = if t.lower[column] > low { t.lower[column] } else { f64::NEG_INFINITY };
                let upper = if t.upper[column] < high { t.upper[column] } else { f64::INFINITY };
                *value = value.clamp(lower, upper);
            }
            values = values.chunks_exact(d).flat_map(|row| t.point(row)).collect();
        }
        Rows::new(values, d).map_err(|e| e.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::work;

    fn sample() -> Model {
        let centres = Centres::from_rows(&[vec![0.1, 0.2], vec![1.0 / 3.0, 0.9]]).unwrap();
        Model::new(&work(2), &Hash([1; 32]), &centres, None).unwrap()
    }

    #[test]
    fn there_and_back() {
        let back = Model::from_bytes(&sample().to_bytes()).unwrap();
        assert_eq!(back.columns, sample().columns);
        let distance = back.centres().unwrap().frobenius_distance(&sample().centres().unwrap()).unwrap();
        assert!(distance < 1e-15);
        let rows = back.to_working(vec![-1.0, 0.0, 5.0, 20.0]).unwrap();
        assert_eq!(rows.as_slice(), &[0.0, 0.0, 2.0, 2.0]);
        assert!(Model::from_bytes(b"{\"format\":1}").is_err());
    }

    /// The same as a model of `gmm`, whose clusters lie across each other.
    fn shaped() -> Model {
        let covariances = vec![vec![0.05, 0.04, 0.05], vec![0.05, -0.04, 0.05]];
        let (covariances_working, weights) = (Some(covariances), Some(vec![0.25, 0.75]));
        Model { method: "gmm".into(), covariances_working, weights, ..sample() }
    }

    fn memberships(model: &Model, row: [f64; 2]) -> Vec<f64> {
        model.assignment().unwrap().memberships(row.to_vec()).unwrap()
    }

    #[test]
    fn what_a_method_needs_is_kept_and_used() {
        let plain = String::from_utf8(sample().to_bytes()).unwrap();
        assert!(["covariances_working", "weights", "distance"].iter().all(|key| !plain.contains(key)), "{plain}");
        let gk = Model { method: "gk".into(), weights: None, ..shaped() };
        let noise = Model { method: "fcm-noise".into(), distance: Some(0.1), ..sample() };
        let pcm = Model { method: "pcm".into(), ..noise.clone() };
        for model in [shaped(), gk.clone(), noise.clone(), pcm.clone()] {
            assert_eq!(Model::from_bytes(&model.to_bytes()).unwrap(), model);
        }
        // [-0.7, 2] is the first centre. Along the second diagonal the second cluster reaches farther.
        let near = [-0.7, 2.0];
        assert!(memberships(&gk, near)[0] > 0.999);
        for model in [shaped(), gk.clone()] {
            let u = memberships(&model, [-1.0, 10.0]);
            assert!(u[1] > 0.9 && (u[0] + u[1] - 1.0).abs() < 1e-12, "{u:?}");
        }
        let even = Model { weights: None, ..shaped() };
        assert!(memberships(&even, near)[0] > memberships(&shaped(), near)[0], "the first has a quarter of the rows");
        let far = memberships(&noise, [1000.0, 1000.0]);
        assert!(far.len() == 3 && far[2] > 0.999, "{far:?}");
        assert!(memberships(&pcm, [1000.0, 1000.0]).iter().all(|u| *u < 1e-5));
        // A model of an earlier version can be read, and assigns nothing by a rule that is not its own.
        for (model, lacking) in [
            (Model { covariances_working: None, weights: None, ..shaped() }, "covariances"),
            (Model { covariances_working: None, ..gk }, "covariances"),
            (Model { distance: None, ..noise }, "distance"),
            (Model { distance: None, ..pcm }, "distance"),
        ] {
            let model = Model::from_bytes(&model.to_bytes()).unwrap();
            let failure = model.assignment().err().expect("nothing to assign by");
            assert!(failure.message.contains(lacking) && failure.advice.contains("make the run again"), "{failure}");
        }
    }

    #[test]
    fn what_is_kept_for_a_method_is_checked() {
        let noise = Model { method: "fcm-noise".into(), distance: Some(0.1), ..sample() };
        let change = |model: &Model, f: &dyn Fn(&mut Model)| {
            let mut model = model.clone();
            f(&mut model);
            model.check().unwrap_err()
        };
        for matrix in [vec![0.05, 0.06, 0.05], vec![0.05, 0.0], Vec::new(), vec![0.05; 6], vec![5.0, 0.0, 0.05]] {
            let told = change(&shaped(), &|m| m.covariances_working.as_mut().unwrap()[1] = matrix.clone());
            assert!(told.contains("covariance"), "{matrix:?}: {told}");
        }
        for value in [f64::NAN, f64::INFINITY, -0.05, 0.0] {
            change(&shaped(), &|m| m.covariances_working.as_mut().unwrap()[0][0] = value);
            change(&noise, &|m| m.distance = Some(value));
            change(&shaped(), &|m| m.weights = Some(vec![value, 0.5]));
        }
        change(&shaped(), &|m| m.covariances_working.as_mut().unwrap().truncate(1));
        change(&shaped(), &|m| m.weights.as_mut().unwrap().truncate(1));
        for method in ["fcm", "gk", "pcm", "kmeans"] {
            assert!(change(&shaped(), &|m| m.method = method.into()).contains("not for"), "{method}");
        }
        assert!(change(&noise, &|m| m.method = "fcm".into()).contains("not for"));
        assert!(change(&shaped(), &|m| m.covariances_working = None).contains("not for"));
    }

    #[test]
    fn parts_that_do_not_fit_are_named() {
        let change = |f: &dyn Fn(&mut Model)| {
            let mut m = sample();
            f(&mut m);
            m.check().unwrap_err()
        };
        assert!(change(&|m| m.format = "x".into()).contains("format"));
        assert!(change(&|m| m.m = 1.0).contains("fuzzifier"));
        assert!(change(&|m| m.k = 3).contains("k x columns"));
        assert!(change(&|m| m.columns[1].upper = 0.0).contains("columns"));
        assert!(change(&|m| m.columns.truncate(1)).contains("k x columns"));
        assert!(change(&|m| m.centres[0][0] += 0.01).contains("not the same"));
        assert!(change(&|m| m.centres_working[0].clear()).contains("centres_working"));
    }
}
