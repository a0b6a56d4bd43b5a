//! Models as files.

use std::path::Path;

use veilsum_federation::{
    error::Failure,
    model::{MAX_FILE, Model},
};

use crate::files;

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

/// Writes a model, whole or not at all.
///
/// # Errors
/// A [`Failure`] where the file cannot be written.
pub fn write_model(model: &Model, path: impl AsRef<Path>) -> Result<(), Failure> {
    Ok(files::write_atomic(path, &model.to_bytes())?)
}
