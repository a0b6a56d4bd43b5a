//! One part of a site's answer: the words of some of its rows, wherever these rows are. Parts add up to the same words whatever their
//! number, their order and who computed them ([SUM-1]).

use std::{path::PathBuf, sync::Arc};

use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::{exceptions::PyValueError, prelude::*};
use serde::{Deserialize, Serialize};
use veilsum_answerer::contract::{Categorical, Column};
use veilsum_cluster::{Batch, Domain, OutOfBox, Per, Prepared, Scaling, SumStep};
use veilsum_federation::question::Layout as Steps;
use veilsum_node::{
    documents::{self, RowsFrom},
    error::Failure,
    table::RowRules,
};

use crate::{failure::raised, parties::Planned, rows::slice};

/// What a question is about and how its answer is written, as in the first line and in a question of the contract of answerers.
#[derive(Serialize, Deserialize)]
struct Layout {
    columns: Vec<Column>,
    #[serde(default)]
    categorical: Vec<Categorical>,
    scaling: Scaling,
    out_of_box: OutOfBox,
    /// Whether the plan has noise: rows that cannot be used are left out then ([NOI-8]).
    #[serde(default)]
    noise: bool,
    blocks: Vec<Block>,
}

/// A stretch of words, each of which counts steps of 2^-`fraction_bits`.
#[derive(Serialize, Deserialize)]
struct Block {
    #[serde(default)]
    name: String,
    len: usize,
    fraction_bits: i32,
}

impl Layout {
    fn domain(&self) -> Result<Domain, Failure> {
        let (lower, upper) = self.columns.iter().map(|c| (c.lower, c.upper)).unzip();
        let ones: Vec<Vec<f64>> = self.categorical.iter().map(|c| vec![c.one; c.categories.len()]).collect();
        Ok(Domain::mixed(lower, upper, self.scaling, &ones)?)
    }

    fn steps(&self) -> Vec<SumStep> {
        self.blocks.iter().map(|block| SumStep { len: block.len, fraction_bits: block.fraction_bits }).collect()
    }
}

/// Rows of a part.
const TOGETHER: usize = 1 << 16;

fn read<'a, T: Deserialize<'a>>(what: &str, text: &'a str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|e| PyValueError::new_err(format!("the {what} cannot be read: {e}")))
}

fn refused(e: impl std::fmt::Display) -> Failure {
    Failure::input(e, "ask a question that fits the plan's box, with the layout that was made for it")
}

/// The layout of this question (JSON) under a plan, as JSON.
#[pyfunction]
pub(crate) fn layout(planned: &Planned, question: &str) -> PyResult<String> {
    let (federation, batch): (_, Batch) = (&planned.0, read("question", question)?);
    let made = || -> Result<Layout, Failure> {
        let work = &federation.work;
        let steps = Steps::of_batch(&batch, &work.domain()?, &federation.form()?)?;
        let of = |block: &veilsum_federation::question::ScaledBlock| Block {
            name: block.block.name.to_owned(),
            len: block.block.len,
            fraction_bits: block.summed_bits,
        };
        let column =
            |c: &veilsum_federation::plan::Column| Column { name: c.name.clone(), lower: c.lower, upper: c.upper };
        let named = |c: &veilsum_federation::plan::Categorical| Categorical {
            column: c.column.clone(),
            categories: c.categories.clone(),
            one: c.one(),
        };
        Ok(Layout {
            columns: work.columns.iter().map(column).collect(),
            categorical: work.categorical.iter().map(named).collect(),
            scaling: work.scaling,
            out_of_box: work.out_of_box,
            noise: work.recipe.noise.is_some(),
            blocks: steps.blocks.iter().map(of).collect(),
        })
    };
    serde_json::to_string(&made().map_err(raised)?).map_err(|e| PyValueError::new_err(e.to_string()))
}

/// How the answers of parts of the rows make that of all of them: `"sum"`, word by word; `"merge"`, by [`merge`]; or `"whole"`: they do
/// not, and all rows must be together.
#[pyfunction]
pub(crate) fn parts(question: &str, layout: &str) -> PyResult<&'static str> {
    let (batch, layout): (Batch, Layout) = (read("question", question)?, read("layout", layout)?);
    let blocks = layout.domain().and_then(|domain| batch.layout(&domain).map_err(refused)).map_err(raised)?;
    Ok(match batch.comes_in_parts() {
        false => "whole",
        true if blocks.iter().all(|block| block.per == Per::Row) => "sum",
        true => "merge",
    })
}

/// The words of these rows (n x d, original units, indicators behind the numbers), how many rows they are of, and how many could not
/// be used: those with a value that is no finite number, or outside the box where the plan refuses them.
#[pyfunction]
pub(crate) fn answer<'py>(
    py: Python<'py>,
    question: &str,
    layout: &str,
    x: PyReadonlyArray2<'py, f64>,
) -> PyResult<(Bound<'py, PyArray1<i64>>, u64, u64)> {
    let (batch, layout): (Batch, Layout) = (read("question", question)?, read("layout", layout)?);
    let columns = x.shape()[1];
    let values = slice(&x)?;
    let done = py.detach(|| -> Result<_, Failure> {
        let domain = layout.domain()?;
        if columns != domain.columns() {
            return Err(refused(format!("rows of {columns} columns, where the layout has {}", domain.columns())));
        }
        let steps = layout.steps();
        // Parts of a size that memory is used again for; parts of words make the words of all.
        let together = if batch.comes_in_parts() { TOGETHER * columns.max(1) } else { values.len().max(1) };
        let mut total: Option<(Vec<i64>, u64, u64)> = None;
        for part in values.chunks(together).chain(values.is_empty().then_some(values)) {
            let (rows, bad) = Prepared::usable(part, columns, &domain, layout.out_of_box)?;
            let words = veilsum_cluster::words(&batch, &rows, &steps).map_err(refused)?;
            let (used, bad) = (rows.len() as u64, bad as u64);
            match &mut total {
                None => total = Some((words, used, bad)),
                Some((sum, all, left)) => {
                    batch.merge(&domain, sum, &words).map_err(refused)?;
                    (*all, *left) = (*all + used, *left + bad);
                }
            }
        }
        Ok(total.unwrap_or_default())
    });
    let (words, rows, bad) = done.map_err(raised)?;
    Ok((PyArray1::from_vec(py, words), rows, bad))
}

/// The words of a site whose rows are in this file, folder or pattern, as `veilsum run --data` reads them: in memory where they fit into
/// so many bytes, else streamed.
#[pyfunction]
#[pyo3(signature = (planned, question, data, memory=None))]
pub(crate) fn of_file<'py>(
    py: Python<'py>,
    planned: &Planned,
    question: &str,
    data: PathBuf,
    memory: Option<u64>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let (federation, batch): (_, Batch) = (&planned.0, read("question", question)?);
    let done = py.detach(|| -> Result<_, Failure> {
        let rules = Arc::new(RowRules { memory, ..RowRules::default() });
        let rows = documents::load_rows(federation, RowsFrom { data, rules, ..RowsFrom::default() })?.rows;
        let steps = Steps::of_batch(&batch, &federation.work.domain()?, &federation.form()?)?.steps();
        rows.words(&batch, &steps).map_err(refused)
    });
    Ok(PyArray1::from_vec(py, done.map_err(raised)?))
}

/// The words of two parts of the rows together.
#[pyfunction]
pub(crate) fn merge<'py>(
    py: Python<'py>,
    question: &str,
    layout: &str,
    words: PyReadonlyArray1<'py, i64>,
    more: PyReadonlyArray1<'py, i64>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let (batch, layout): (Batch, Layout) = (read("question", question)?, read("layout", layout)?);
    if !batch.comes_in_parts() {
        return Err(raised(refused("this question needs all rows together")));
    }
    let mut sum = words.as_slice()?.to_vec();
    let domain = layout.domain().map_err(raised)?;
    batch.merge(&domain, &mut sum, more.as_slice()?).map_err(|e| raised(refused(e)))?;
    Ok(PyArray1::from_vec(py, sum))
}
