//! Models as files.

use std::{path::Path, sync::Arc};

use veilsum_federation::{
    error::Failure,
    model::{MAX_FILE, Model},
};

use super::{schema::schema_beside, site::load_policy};
use crate::{
    files,
    schema::{Missing, Schema},
    table::{Filter, RowRules, TableSpec},
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

/// What the model in `file` reads of rows, in the words of the schema beside it and of this policy: of every row, none is left out.
///
/// # Errors
/// A [`Failure`] where schema or policy cannot be read.
pub fn rows_of(model: &Model, file: &Path, policy: Option<&Path>) -> Result<TableSpec, Failure> {
    let schema = schema_beside(file)?.map(|schema| Arc::new(Schema { missing: Missing::Refuse, ..schema }));
    let rules = policy.map(load_policy).transpose()?.map(|site| (*site.rows).clone()).unwrap_or_default();
    let all = RowRules { missing: None, filter: Filter::default(), person: None, rows_per_person: None, ..rules };
    Ok(TableSpec {
        columns: model.columns.iter().map(|column| column.name.clone()).collect(),
        categorical: model.categorical.clone(),
        schema,
        rules: Arc::new(all),
        ..TableSpec::default()
    })
}

/// Writes a model, whole or not at all.
///
/// # Errors
/// A [`Failure`] where the file cannot be written.
pub fn write_model(model: &Model, path: impl AsRef<Path>) -> Result<(), Failure> {
    Ok(files::write_atomic(path, &model.to_bytes())?)
}
