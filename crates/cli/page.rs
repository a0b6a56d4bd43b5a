//! Pages of commands as files; how a page looks is decided in [`veilsum_charts`].

use std::path::{Path, PathBuf};

use clap::Args;
pub(crate) use veilsum_charts::{Page, text::BLANK};
use veilsum_node::{error::Failure, files};

/// Where the page goes.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct Print {
    /// Write the same as a page to print, too: one file without scripts that fetches nothing
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Writes a page, whole or not at all, if a file was asked for.
///
/// # Errors
/// A [`Failure`] where the file cannot be written.
pub(crate) fn write(page: &Page, file: Option<&Path>) -> Result<(), Failure> {
    let Some(file) = file else { return Ok(()) };
    files::write_atomic(file, page.html().as_bytes()).map_err(|e| {
        let failure = Failure::from(e);
        Failure { message: format!("--html: {}", failure.message), ..failure }
    })
}
