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
fn joined(all: &[Centres]) -> Result<Centres, Error> {
    Centres::from_rows(&all.iter().flat_map(Centres::rows).map(<[f64]>::to_vec).collect::<Vec<_>>())
}
