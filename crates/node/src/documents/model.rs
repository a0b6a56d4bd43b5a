//! Models as files.

use std::{path::Path, sync::Arc};

use veilsum_federation::{
    error::Failure,
    model::{MAX_FILE, Model},
};

use super::site::load_policy;
use crate::{
    files,
    table::{Filter, RowRules, TableSpec, Unusable},
};

/// Reads and checks a model file: the model, and the bytes of its file, by which a result names it.
///
/// # Errors
/// A [`Failure`] that names the file and what is wrong.
pub fn read_model(path: &Path) -> Result<(Model, Vec<u8>), Failure> {
    let bytes = files::read_limited(path, MAX_FILE)?;
    let model = Model::from_bytes(&bytes).map_err(|why| {
        let next = "take the model.json that the run wrote, whole and unchanged";
        Failure::input(format!("{}: the model {why}", path.display()), next)
    })?;
    Ok((model, bytes))
}

/// What a model reads of rows, in the words of this policy: of every row that can be used.
///
/// # Errors
/// A [`Failure`] where the policy cannot be read.
pub fn rows_of(model: &Model, policy: Option<&Path>, unusable: Unusable) -> Result<TableSpec, Failure> {
    let rules = policy.map(load_policy).transpose()?.map(|site| (*site.rows).clone()).unwrap_or_default();
    let all = RowRules { missing: None, filter: Filter::default(), person: None, rows_per_person: None, ..rules };
    Ok(TableSpec {
        columns: model.columns.iter().map(|column| column.name.clone()).collect(),
        categorical: model.categorical.clone(),
        // Outside the box a row has memberships all the same.
        within: model.columns.iter().map(|column| (column.lower, column.upper)).collect(),
        clips: true,
        rules: Arc::new(all),
        unusable,
        ..TableSpec::default()
    })
}

/// Writes a model, whole or not at all.
///
/// # Errors
/// A [`Failure`] where the file cannot be written.
pub fn write_model(model: &Model, path: impl AsRef<Path>) -> Result<(), Failure> {
    files::write_atomic(path, &model.to_bytes())
}
