//! `veilsum schema`: a proposal of what the columns of a federation are, to be filled in by people.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use veilsum_node::{
    cost::counted,
    documents::proposed_schema,
    error::{Code, Failure},
    files,
    table::RowRules,
};

use crate::{
    rows::RowsSaid,
    verb::{self, Verb},
};

/// Propose a schema from a file's header; its rows add nothing
#[derive(Args, Debug)]
pub(crate) struct SchemaArgs {
    /// A file with the columns; its header alone is read
    #[arg(long, value_name = "ROWS")]
    pub data: PathBuf,
    /// A column that no plan may use: it stays at every site
    #[arg(long, value_name = "COLUMN")]
    pub label: Option<String>,
    /// How the file is written
    #[command(flatten)]
    pub rows: RowsSaid,
    /// Where to write the proposal; a file that is there stays
    #[arg(long, value_name = "FILE", default_value = "schema.toml")]
    pub out: PathBuf,
}

impl Verb for SchemaArgs {
    /// Runs `veilsum schema`.
    ///
    /// # Errors
    /// A [`Failure`] that names the file.
    fn run(&self, json: bool) -> Result<(), Failure> {
        let out = self.out.display();
        if self.out.exists() {
            let what = format!("{out}: it is there already");
            return Err(Failure::new(Code::Usage, what, "choose another --out, or remove that file first"));
        }
        let (text, columns) =
            proposed_schema(&self.data, &self.rows.over(&RowRules::default())?, self.label.as_deref())
                .map_err(RowsSaid::of_option)?;
        files::write_atomic(&self.out, text.as_bytes())?;
        let says = format!(
            "{out}: a proposal of {} from the header alone; it cannot be used before every \"?\" in it is filled in",
            counted(columns.len(), "column")
        );
        let next = format!("fill it in from what is known of the columns, then: veilsum check --schema {out}");
        let value = json!({ "written": self.out, "columns": columns, "label": self.label, "says": says, "next": next });
        verb::print(json, &value, &format!("{says}\nnext: {next}"))
    }
}
