//! The extension module `veilsum._core`: what the Python package `veilsum` calls. Rows are read where NumPy has them, everything that
//! takes time runs without the interpreter's lock, and documents come and go as JSON.
//!
//! Read it in this order: `failure` (errors as exceptions), `rows` (estimators), `parties` (federations, and roles without I/O),
//! `handed` (a site's rows), `answers` (parts of its answer), `cells` (what stands in frames).

mod answers;
mod cells;
mod failure;
mod handed;
mod parties;
mod rows;

use std::ffi::OsString;

use pyo3::prelude::*;

/// The extension module of the package `veilsum`, which wraps it.
#[pymodule]
mod _core {
    #[pymodule_export]
    use super::{
        answers::{answer, layout, of_file},
        call,
        cells::{coded, name, number, type_of},
        parties::{Party, Planned, addressed, found, simulate, stand_by},
        rows::{distances, fit, memberships, nearest, objective, plus_plus, usual_fuzzifier},
        run,
    };

    /// Signals stay Python's.
    #[pymodule_init]
    fn init(_module: &super::Bound<'_, super::PyModule>) -> super::PyResult<()> {
        veilsum_node::role::stop::leave_signals_alone();
        Ok(())
    }
}

/// One command of the program `veilsum` in this process: the JSON document that it prints with `--json`.
#[pyfunction]
fn call(py: Python<'_>, args: Vec<OsString>) -> PyResult<String> {
    let done = py.detach(|| veilsum_cli::call(args));
    Ok(done.map_err(failure::raised)?.to_string())
}

/// The whole program in this process: prints, and returns its exit code.
#[pyfunction]
fn run(py: Python<'_>, args: Vec<OsString>) -> u8 {
    py.detach(|| veilsum_cli::run(args))
}
