//! What the estimators call: a fit, and what rows are to centres.

use numpy::{
    Element, PyArray1, PyArray2, PyReadonlyArray, PyReadonlyArray2, PyReadonlyArray3, PyUntypedArrayMethods,
    ndarray::{Array2, Dimension},
};
use pyo3::{exceptions::PyValueError, prelude::*};
use rayon::prelude::*;
use veilsum_cluster::{
    Algorithm, Centres, Error, Outcome, Prepared, Recipe, algorithm, distance,
    method::{Seeding, Validity},
    offline, pooled,
    random::Stream,
};
use veilsum_node::error::Failure;

use crate::failure::raised;

/// Rows that one task takes: enough that handing it over costs nothing, few enough for all cores to have work.
const CHUNK: usize = 2_048;

type Numbers<'py> = PyReadonlyArray2<'py, f64>;

/// The values of an array that lie in one piece.
pub(crate) fn slice<'a, T: Element, D: Dimension>(array: &'a PyReadonlyArray<'_, T, D>) -> PyResult<&'a [T]> {
    array.as_slice().map_err(|_| PyValueError::new_err("an array is not C-contiguous"))
}

fn centres_of(array: &Numbers<'_>) -> PyResult<Centres> {
    let [k, d] = array.shape() else { return Err(PyValueError::new_err("centres have two dimensions")) };
    Centres::new(*k, *d, slice(array)?.to_vec()).map_err(raised)
}

fn same_columns(x: &Numbers<'_>, centres: &Centres) -> PyResult<usize> {
    let found = x.shape()[1];
    if found != centres.columns() {
        return Err(raised(Error::ColumnMismatch { expected: centres.columns(), found }));
    }
    Ok(found)
}

/// Fits `algorithm` (JSON) to x (n x d) from each of `starts` (r x K x d), and returns the outcome of smallest objective as JSON, with
/// the validity totals that `validity` (JSON) asks, and the centre nearest to every row. Reads x where it lies.
#[pyfunction]
#[pyo3(signature = (x, algorithm, validity, starts, labels=true))]
pub(crate) fn fit<'py>(
    py: Python<'py>,
    x: Numbers<'py>,
    algorithm: &str,
    validity: &str,
    starts: PyReadonlyArray3<'py, f64>,
    labels: bool,
) -> PyResult<(String, Bound<'py, PyArray1<i64>>)> {
    let wrong = |e: serde_json::Error| PyValueError::new_err(e.to_string());
    let algorithm: Algorithm = serde_json::from_str(algorithm).map_err(wrong)?;
    let validity: Validity = serde_json::from_str(validity).map_err(wrong)?;
    let [_, k, d] = starts.shape() else { return Err(PyValueError::new_err("starts have three dimensions")) };
    let (k, d, columns, values) = (*k, *d, x.shape()[1], slice(&x)?);
    let starts = slice(&starts)?;
    let best = py.detach(|| -> Result<(Outcome, Vec<i64>), Failure> {
        let rows = Prepared::alone(values, columns)?;
        let mut best: Option<Outcome> = None;
        for start in starts.chunks_exact(k * d) {
            let centres = Centres::new(k, d, start.to_vec())?;
            let recipe = Recipe {
                validity,
                ..Recipe::plain(algorithm.clone(), u32::try_from(k).unwrap_or(u32::MAX), Seeding::Given { centres })
            };
            let mut run = recipe.run(rows.domain(), 1)?;
            let outcome = pooled::run(&mut run, &rows)?;
            if best.as_ref().is_none_or(|known| outcome.objective < known.objective) {
                best = Some(outcome);
            }
        }
        let best = best.ok_or_else(|| Failure::input("there are no first centres", "give at least one start"))?;
        let labels = if labels { rows.packed().nearest(&best.centres)? } else { Vec::new() };
        Ok((best, labels.into_iter().map(i64::from).collect()))
    });
    let (best, labels) = best.map_err(raised)?;
    Ok((serde_json::to_string(&best).map_err(wrong)?, PyArray1::from_vec(py, labels)))
}

/// The fuzzifier of rows of so many columns, if nobody names one.
#[pyfunction]
pub(crate) fn usual_fuzzifier(columns: usize, rows: u64) -> f64 {
    algorithm::usual_fuzzifier(columns, rows)
}

/// First centres (K x d) among the rows of x by greedy k-means++ (Arthur & Vassilvitskii 2007).
#[pyfunction]
pub(crate) fn plus_plus<'py>(
    py: Python<'py>,
    x: Numbers<'py>,
    k: usize,
    seed: u64,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let points = centres_of(&x)?;
    let chosen = py.detach(|| {
        let weights = vec![1.0; points.k()];
        offline::kmeans::greedy_plus_plus(&points, &weights, k, &mut Stream::new(seed, b"veilsum python first c.."))
    });
    let values = Array2::from_shape_fn(chosen.shape(), |(centre, column)| chosen.row(centre)[column]);
    Ok(PyArray2::from_owned_array(py, values))
}

/// Memberships of one row, as the kernel has them where no square leaves the range in which it may divide; else by the safe way.
fn shared(row: &[f64], centres: &Centres, m: f64, u: &mut [f64]) -> f64 {
    if m == 2.0 {
        let (mut sum, mut safe) = (0.0, true);
        for (slot, centre) in u.iter_mut().zip(centres.rows()) {
            let square = distance::squared(row, centre);
            safe &= distance::SAFE.contains(&square);
            *slot = 1.0 / square;
            sum += *slot;
        }
        if safe && distance::SAFE.contains(&sum) {
            let over = 1.0 / sum;
            u.iter_mut().for_each(|slot| *slot *= over);
            // sum_k u_k^2 q_k, with u_k q_k = 1 / S for every k.
            return over;
        }
    }
    distance::memberships(row, centres.rows(), m, u)
}

/// `width` values of every row of x, by what it is to these centres.
fn of_each<T: Element + Send + Default>(
    py: Python<'_>,
    x: &Numbers<'_>,
    centres: &Centres,
    width: usize,
    of: impl Fn(&[f64], &mut [T]) + Sync,
) -> PyResult<Vec<T>> {
    let (d, values) = (same_columns(x, centres)?, slice(x)?);
    let mut all = Vec::new();
    all.resize_with(values.len() / d * width, T::default);
    py.detach(|| {
        values.par_chunks(CHUNK * d).zip(all.par_chunks_mut(CHUNK * width)).for_each(|(rows, own)| {
            rows.chunks_exact(d).zip(own.chunks_exact_mut(width)).for_each(|(row, own)| of(row, own));
        });
    });
    Ok(all)
}

/// Memberships (n x K) of the rows of x in clusters with these centres, for the fuzzifier m; each row adds up to 1.
#[pyfunction]
pub(crate) fn memberships<'py>(
    py: Python<'py>,
    x: Numbers<'py>,
    centres: Numbers<'py>,
    m: f64,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let centres = centres_of(&centres)?;
    let memberships = |row: &[f64], u: &mut [f64]| {
        shared(row, &centres, m, u);
    };
    matrix(py, centres.k(), of_each(py, &x, &centres, centres.k(), memberships)?)
}

fn matrix(py: Python<'_>, columns: usize, values: Vec<f64>) -> PyResult<Bound<'_, PyArray2<f64>>> {
    let array = Array2::from_shape_vec((values.len() / columns, columns), values);
    Ok(PyArray2::from_owned_array(py, array.map_err(|e| PyValueError::new_err(e.to_string()))?))
}

/// The objective `sum_j sum_k u_jk^m ||x_j - c_k||^2` of the rows of x; with m = 1 the sum of squared distances to the nearest centre.
#[pyfunction]
pub(crate) fn objective(py: Python<'_>, x: Numbers<'_>, centres: Numbers<'_>, m: f64) -> PyResult<f64> {
    let centres = centres_of(&centres)?;
    let (d, values) = (same_columns(&x, &centres)?, slice(&x)?);
    let of_chunk = |rows: &[f64]| -> f64 {
        let mut u = vec![0.0; centres.k()];
        let of_row = |row: &[f64]| match m {
            1.0 => distance::nearest(row, centres.rows()).1,
            m => shared(row, &centres, m, &mut u),
        };
        rows.chunks_exact(d).map(of_row).sum()
    };
    // Chunks are added in their order, so that the sum is the same whatever the number of threads.
    let parts: Vec<f64> = py.detach(|| values.par_chunks(CHUNK * d).map(of_chunk).collect());
    Ok(parts.iter().sum())
}

/// The centre nearest to every row of x (n, from 0; among equals the lowest).
#[pyfunction]
pub(crate) fn nearest<'py>(
    py: Python<'py>,
    x: Numbers<'py>,
    centres: Numbers<'py>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let centres = centres_of(&centres)?;
    let label = |row: &[f64], own: &mut [i64]| own[0] = distance::nearest(row, centres.rows()).0 as i64;
    Ok(PyArray1::from_vec(py, of_each(py, &x, &centres, 1, label)?))
}

/// Distances (n x K) of the rows of x from these centres.
#[pyfunction]
pub(crate) fn distances<'py>(
    py: Python<'py>,
    x: Numbers<'py>,
    centres: Numbers<'py>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let centres = centres_of(&centres)?;
    let far = |row: &[f64], own: &mut [f64]| {
        own.iter_mut().zip(centres.rows()).for_each(|(slot, centre)| *slot = distance::euclidean(row, centre));
    };
    matrix(py, centres.k(), of_each(py, &x, &centres, centres.k(), far)?)
}
