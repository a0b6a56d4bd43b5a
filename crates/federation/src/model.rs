//! A model: the centres that a run ends with, and all that is needed to use them on one's own rows.

use serde::{Deserialize, Serialize};
use veilsum_cluster::{Centres, Domain, Outcome, Rows, Scaling, Transform, assign};
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
    /// Hash of the plan that the run followed, hexadecimal.
    pub plan: String,
    /// Whether the centres came to rest, and the run to its end: false in all that ended early. Models of a whole run with noise, whose
    /// rounds are fixed, and of earlier versions do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub converged: Option<bool>,
    /// Why the run ended before its method did, where it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_early: Option<Early>,
}

/// How a run ended that could not ask its method to the end ([APP-8]).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Early {
    /// Rounds that moved these centres: of the K and restart that they are of, where there were
    /// several.
    pub round: u32,
    /// Whether these centres had come to rest: then only indices are missing.
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
        Early { round: outcome.rounds, at_rest: outcome.converged, reason: clean(reason), lost, refused }
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
    /// Whether a row in its columns and original units lies in the box that the plan names.
    pub fn is_within(&self, row: &[f64]) -> bool {
        row.iter().zip(&self.columns).all(|(x, column)| (column.lower..=column.upper).contains(x))
    }

    /// The model of a run's outcome, and of how it ended early, where it did.
    ///
    /// # Errors
    /// [`Failure`] where the centres do not fit the plan's columns.
    pub fn of(work: &PlanSpec, plan: &Hash, outcome: &Outcome, ended_early: Option<Early>) -> Result<Model, Failure> {
        let model = Model::new(work, plan, &outcome.centres, outcome.transform.clone())?;
        let says = work.recipe.noise.is_none() || ended_early.is_some();
        let converged = says.then_some(outcome.converged && ended_early.is_none());
        Ok(Model { converged, ended_early, ..model })
    }

    /// The model of final centres (working units).
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
            plan: plan.to_string(),
            converged: None,
            ended_early: None,
        })
    }

    /// What whoever uses the model has to know, as a sentence: how its centres came about, unless they came to rest or the file does
    /// not say.
    pub fn caution(&self) -> Option<String> {
        match (&self.ended_early, self.converged) {
            (Some(Early { round, at_rest: true, .. }), _) => {
                Some(format!("the run of this model ended early, after its centres came to rest in round {round}"))
            }
            (Some(Early { round, .. }), _) => {
                Some(format!("the run of this model ended early, after round {round}, before its centres came to rest"))
            }
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
        let back = domain.centres_to_original(&working).map_err(|e| format!("centres_working: {e}"))?;
        for (a, b) in original.rows().zip(back.rows()) {
            for (column, (a, b)) in a.iter().zip(b).enumerate() {
                let scale = (domain.upper()[column] - domain.lower()[column]).max(a.abs());
                if (a - b).abs() > 1e-9 * scale {
                    return Err("centres and centres_working are not the same centres".into());
                }
            }
        }
        if let Some(standardisation) = &self.standardisation {
            standardisation.domain(&domain).map_err(|e| format!("standardisation: {e}"))?;
        }
        self.centres().map(drop)
    }

    /// Memberships of n rows, row by row, as fuzzy c-means has them: n x K. `values` are row-major in original units, as for
    /// [`Model::to_working`].
    ///
    /// # Errors
    /// A sentence where a value is not finite.
    pub fn memberships(&self, values: Vec<f64>) -> Result<Vec<f64>, String> {
        let u = assign::memberships(&self.to_working(values)?, &self.centres()?, self.m).map_err(|e| e.to_string())?;
        Ok(u.as_slice().unwrap_or_default().to_vec())
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
    use crate::tests::work;

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
