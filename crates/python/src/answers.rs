//! One part of a site's answer: the words of some of its rows, wherever these rows are. Parts add up to the same words whatever their
//! number, their order and who computed them ([SUM-1]).

use std::path::PathBuf;

use numpy::{PyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::{exceptions::PyValueError, prelude::*};
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_128;
use veilsum_cluster::{Batch, Prepared};
use veilsum_federation::answerer::Steps;
use veilsum_federation::{plan::PlanSpec, question};
use veilsum_node::{
    documents::{self, Federation, RowsFrom},
    error::Failure,
};

use crate::{failure::raised, parties::Planned, rows::slice};

/// What a question is about, and how its answer is written.
#[derive(Serialize, Deserialize)]
pub(crate) struct Layout {
    /// The method part of the plan.
    pub(crate) work: PlanSpec,
    pub(crate) steps: Steps,
}

fn read<'a, T: Deserialize<'a>>(what: &str, text: &'a str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|e| PyValueError::new_err(format!("the {what} cannot be read: {e}")))
}

fn refused(e: impl std::fmt::Display) -> Failure {
    Failure::input(e, "ask a question that fits the plan's box, with the layout that was made for it")
}

fn steps_of(federation: &Federation, batch: &Batch) -> Result<Steps, Failure> {
    Ok(question::Layout::of_batch(batch, &federation.work.domain()?, &federation.form()?)?.steps())
}

/// The layout of this question (JSON) under a plan, as JSON.
#[pyfunction]
pub(crate) fn layout(planned: &Planned, question: &str) -> PyResult<String> {
    let (federation, batch): (_, Batch) = (&planned.0, read("question", question)?);
    let steps = steps_of(federation, &batch).map_err(raised)?;
    serde_json::to_string(&Layout { work: PlanSpec::clone(&federation.work), steps })
        .map_err(|e| PyValueError::new_err(e.to_string()))
}

/// What a part says of its rows: their words (none where nothing is asked), how many they are, how many could not be used, and a digest of
/// them all.
type Part<'py> = (Bound<'py, PyArray1<i64>>, u64, u64, u128);

/// The answer of these rows (n x d, original units, indicators behind the numbers). Those count that can be used: all their values are finite
/// numbers, inside the box where the plan refuses others. Digests add up as words do, modulo 2^128.
#[pyfunction]
pub(crate) fn answer<'py>(
    py: Python<'py>,
    question: Option<&str>,
    layout: &str,
    x: PyReadonlyArray2<'py, f64>,
) -> PyResult<Part<'py>> {
    let batch: Option<Batch> = question.map(|question| read("question", question)).transpose()?;
    let layout: Layout = read("layout", layout)?;
    let columns = x.shape()[1];
    let values = slice(&x)?;
    let done = py.detach(|| -> Result<_, Failure> {
        let domain = layout.work.domain()?;
        if columns != domain.columns() {
            return Err(refused(format!("rows of {columns} columns, where the plan has {}", domain.columns())));
        }
        let (rows, bad) = Prepared::usable(values, columns, &domain, layout.work.out_of_box)?;
        let words =
            batch.map_or(Ok(Vec::new()), |batch| veilsum_federation::answerer::words(&batch, &rows, &layout.steps));
        Ok((words.map_err(refused)?, rows.len() as u64, bad as u64, digest(values, &layout.work.names())))
    });
    let (words, used, bad, digest) = done.map_err(raised)?;
    Ok((PyArray1::from_vec(py, words), used, bad, digest))
}

/// The sum of a hash of every row without a hole, whose coordinates (of these names) are taken in the order of their names, so that the order of
/// neither rows nor columns counts.
fn digest(values: &[f64], names: &[String]) -> u128 {
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_unstable_by_key(|at| &names[*at]);
    let mut bytes = Vec::with_capacity(8 * names.len());
    let of_row = |row: &[f64]| {
        bytes.clear();
        // Both zeros are one.
        bytes.extend(order.iter().flat_map(|at| (row[*at] + 0.0).to_le_bytes()));
        XxHash3_128::oneshot(&bytes)
    };
    let whole = values.chunks_exact(names.len()).filter(|row| row.iter().all(|x| x.is_finite()));
    whole.map(of_row).fold(0, u128::wrapping_add)
}

/// The words of a site whose rows are in this file, folder or pattern, as `veilsum run --data` reads them.
#[pyfunction]
pub(crate) fn of_file<'py>(
    py: Python<'py>,
    planned: &Planned,
    question: &str,
    data: PathBuf,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let (federation, batch): (_, Batch) = (&planned.0, read("question", question)?);
    let done = py.detach(|| -> Result<_, Failure> {
        let rows = documents::load_rows(federation, &RowsFrom::file(data))?.rows;
        rows.words(&batch, &steps_of(federation, &batch)?).map_err(refused)
    });
    Ok(PyArray1::from_vec(py, done.map_err(raised)?))
}
