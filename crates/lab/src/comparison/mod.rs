//! The plain, server-sees-everything forms of the papers' methods and k-FED: for tests and tables only.
//!
//! No plan can name them: their server sees every site's centres. They share the off-line parts with the product
//! ([`offline`](veilsum_cluster::offline)) but not its kernel: local iterations are written out row by row here.

pub mod central;
pub mod ffcf;
pub mod ffcm;
pub mod fkm;
pub mod kfed;
pub mod silhouette;

use veilsum_cluster::{Centres, Error, Rows};

/// Rows as points of the off-line methods.
fn points(rows: &Rows) -> Result<Centres, Error> {
    if rows.is_empty() {
        return Err(Error::NoRows);
    }
    Centres::new(rows.len(), rows.columns(), rows.as_slice().to_vec())
}

/// One list of all points.
fn joined<'a>(all: impl IntoIterator<Item = &'a Centres>) -> Result<Centres, Error> {
    let mut all = all.into_iter();
    let first = all.next().ok_or(Error::NoCentres)?;
    let mut values = first.as_slice().to_vec();
    for centres in all {
        if centres.columns() != first.columns() {
            return Err(Error::ColumnMismatch { expected: first.columns(), found: centres.columns() });
        }
        values.extend_from_slice(centres.as_slice());
    }
    Centres::new(values.len() / first.columns(), first.columns(), values)
}
