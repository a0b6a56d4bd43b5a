//! Cells of frames, read as those of files are.

use pyo3::prelude::*;
use veilsum_node::table::{
    Cell,
    spelling::{Spellings, normal},
    types,
};

/// A value of a column.
#[derive(FromPyObject)]
pub(crate) enum Value {
    Bool(bool),
    Whole(i128),
    Number(f64),
    Text(String),
}

impl Value {
    fn cell(&self) -> Cell<'_> {
        match self {
            Value::Bool(yes) => Cell::Bool(*yes),
            Value::Whole(x) => Cell::Whole(*x),
            Value::Number(x) => Cell::Number(*x),
            Value::Text(text) => Cell::Text(text.as_bytes()),
        }
    }
}

/// The number that a text is: NaN where it says that there is none, `None` where it says something else.
#[pyfunction]
pub(crate) fn number(text: &str) -> Option<f64> {
    let cell = Cell::Text(text.as_bytes());
    if cell.is_nothing() { Some(f64::NAN) } else { cell.number() }
}

/// Which of `categories` each value is, from 0; -1 where it is none of them, and -2 where there is no value. With `other` one that is not listed is that of this place.
#[pyfunction]
#[pyo3(signature = (values, categories, other=None))]
pub(crate) fn coded(values: Vec<Option<Value>>, categories: Vec<String>, other: Option<i64>) -> Vec<i64> {
    let words = Spellings::new(categories.iter().map(String::as_str).zip(0i64..));
    let code = |value: &Value| {
        let cell = value.cell();
        cell.among(&words).unwrap_or(if cell.is_nothing() { -2 } else { other.unwrap_or(-1) })
    };
    values.iter().map(|value| value.as_ref().map_or(-2, code)).collect()
}

/// The name of the type that the Arrow C interface writes like this, and its writer like that; where it holds no numbers, why and what to do.
#[pyfunction]
#[pyo3(signature = (format, extension=None))]
pub(crate) fn type_of(format: &str, extension: Option<&str>) -> (String, Option<(&'static str, &'static str)>) {
    types::of_format(format, extension)
}

/// The name of a column as all forms have it.
#[pyfunction(name = "normal")]
pub(crate) fn name(text: &str) -> String {
    normal(text).into_owned()
}
