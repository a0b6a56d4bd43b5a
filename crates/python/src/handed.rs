//! Rows that Python hands over in place of a file: an array in memory, or a frame of Spark, whose executors answer from its parts.

use std::sync::Arc;

use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use veilsum_cluster::{Batch, Domain, privacy::Unit};
use veilsum_federation::answerer::Steps;
use veilsum_federation::{
    agreed,
    answerer::{Answerer, Hash, Source, Take},
    plan::PlanSpec,
    question::Question,
};
use veilsum_node::{
    documents::{self, Federation, Handed, Loaded},
    error::{Code, Failure},
};
use veilsum_proto::suite;

use crate::{answers::Layout, parties::Planned, rows::slice};

/// What `rows(planned)` hands over: an array, n x d, or an object that has rows elsewhere (`veilsum.spark.Frame`).
pub(crate) fn handed(rows: Py<PyAny>) -> Handed {
    Handed(Arc::new(move |federation| {
        let found = Python::attach(|py| -> PyResult<Result<Vec<f64>, Py<PyAny>>> {
            let found = rows.bind(py).call1((Planned(federation.clone()),))?;
            Ok(match found.extract::<PyReadonlyArray2<'_, f64>>() {
                Ok(values) => Ok(slice(&values)?.to_vec()),
                Err(_) => Err(found.unbind()),
            })
        });
        match found.map_err(|e| failed(&e))? {
            Ok(values) => documents::rows_in_memory(federation, &values),
            Err(frame) => Elsewhere::open(federation, frame),
        }
    }))
}

/// An exception of the package as what it was made of, and another as an error of whoever handed the rows over.
fn failed(e: &PyErr) -> Failure {
    Python::attach(|py| {
        let text = |name: &str| e.value(py).getattr(name).and_then(|of| of.extract::<String>());
        let code = e.value(py).getattr("exit_code").and_then(|of| of.extract::<u8>());
        match (code, text("message"), text("next_step")) {
            (Ok(code), Ok(message), Ok(next)) => Failure::new(Code::from_number(code), message, next),
            _ => {
                let what = format!("the rows that were handed over cannot be read: {e}");
                Failure::input(what, "look at where they come from")
            }
        }
    })
}

/// Rows of which another process has each part. It computes the words of its part; here they are added.
struct Elsewhere {
    frame: Py<PyAny>,
    federation: Federation,
    domain: Domain,
    rows: u64,
    digest: Hash,
}

impl Elsewhere {
    fn open(federation: &Federation, frame: Py<PyAny>) -> Result<Loaded, Failure> {
        let work = &federation.work;
        let whole = agreed::questions(work)?.into_iter().find_map(|question| match question {
            Question::Cluster(batch) | Question::Drawn { batch, .. } if !batch.comes_in_parts() => Some(batch.kind()),
            _ => None,
        });
        let persons = work.recipe.noise.is_some_and(|noise| matches!(noise.unit, Unit::Person { .. }));
        if let Some(what) = whole.or(persons.then_some("persons")) {
            let what = format!(
                "this plan asks what is no sum over parts of the rows ({what}), and rows in Spark are answered from in parts"
            );
            let next = "hand over the same rows in memory (df.toPandas()) or as a file, or ask for a plan of fcm, kmeans or describe";
            return Err(Failure::input(what, next));
        }
        let (rows, seen) = Python::attach(|py| -> PyResult<(u64, u128)> {
            let opened = frame.bind(py).call_method0("open")?;
            opened.extract()
        })
        .map_err(|e| failed(&e))?;
        let digest = suite::hash("rows elsewhere", &[&rows.to_le_bytes(), &seen.to_le_bytes()]);
        let framing = format!("{:?} {:?} {:?} {:?}", work.columns, work.categorical, work.scaling, work.out_of_box);
        let digest = suite::hash("rows elsewhere", &[&digest.0, framing.as_bytes()]);
        let domain = work.domain()?;
        let rows = Elsewhere { frame, federation: federation.clone(), domain, rows, digest };
        Ok(Loaded { rows: Arc::new(rows), tally: None })
    }
}

impl Answerer for Elsewhere {
    fn domain(&self) -> &Domain {
        &self.domain
    }

    fn rows(&self) -> u64 {
        self.rows
    }

    fn digest(&self) -> Hash {
        self.digest
    }

    fn words(&self, batch: &Batch, steps: &Steps) -> Result<Vec<i64>, Failure> {
        let layout = Layout { work: PlanSpec::clone(&self.federation.work), steps: steps.clone() };
        let text = |e: serde_json::Error| Failure::defect(e);
        let asked = (serde_json::to_string(batch).map_err(text)?, serde_json::to_string(&layout).map_err(text)?);
        Python::attach(|py| -> PyResult<Vec<i64>> {
            let words = self.frame.bind(py).call_method1("words", asked)?;
            Ok(words.extract::<PyReadonlyArray1<'_, i64>>()?.as_slice()?.to_vec())
        })
        .map_err(|e| failed(&e))
    }

    fn sum(&self, batch: &Batch, factors: &[f64], take: &mut Take<'_>) -> Result<(), Failure> {
        let mut found = Ok(());
        let taken = take(Source::Elsewhere(&mut || {
            let words = self.words(batch, &Steps::Guarded(factors.to_vec()));
            words.unwrap_or_else(|failure| {
                found = Err(failure);
                Vec::new()
            })
        }));
        found.and(taken.map_err(Failure::from))
    }
}
