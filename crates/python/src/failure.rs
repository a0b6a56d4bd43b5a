//! Errors as exceptions.

use pyo3::{exceptions::PyRuntimeError, prelude::*};
use veilsum_node::error::Failure;

/// The exception that the package makes of a failure.
pub(crate) fn raised(failure: impl Into<Failure>) -> PyErr {
    let failure = failure.into();
    Python::attach(|py| {
        let made = py.import("veilsum.errors").and_then(|errors| {
            errors.getattr("of_failure")?.call1((failure.code as u8, &failure.message, &failure.advice))
        });
        match made {
            Ok(exception) => PyErr::from_value(exception),
            Err(_) => PyRuntimeError::new_err(failure.to_string()),
        }
    })
}
