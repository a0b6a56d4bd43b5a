//! What is said of rows where no `site.toml` says it.

use clap::Args;
use veilsum_node::{documents::rules_said, error::Failure, table::RowRules};

/// What an option says of rows.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct RowsSaid {
    /// A key of [rows] in site.toml, such as missing=leave-out; may be repeated
    ///
    /// delimiter (also tab, blanks), decimal, multiline, filter, missing, missing_marks, columns.NAME,
    /// values.COLUMN.WORD, units.COLUMN.factor, person and rows_per_person.
    #[arg(long = "rows", value_name = "KEY=VALUE")]
    said: Vec<String>,
}

impl RowsSaid {
    /// `rules` with what is said over them.
    ///
    /// # Errors
    /// A [`Failure`] that names the key at fault.
    pub(crate) fn over(&self, rules: &RowRules) -> Result<RowRules, Failure> {
        rules_said(rules, &self.said)
    }

    /// Whether anything is said.
    pub(crate) fn is_said(&self) -> bool {
        !self.said.is_empty()
    }

    /// A failure in the words of this option, where there is no `site.toml`.
    pub(crate) fn of_option(mut failure: Failure) -> Failure {
        for text in [&mut failure.message, &mut failure.advice] {
            for (of_file, of_option) in [
                ("under [rows] in site.toml", "with --rows"),
                ("in [rows.values] of site.toml", "with --rows 'values.COLUMN.WORD=MEANING'"),
                ("in [rows.columns] of site.toml", "with --rows columns.NAME=COLUMN"),
                ("missing_marks of site.toml", "--rows missing_marks"),
                ("[rows.columns]", "--rows columns.NAME=COLUMN"),
                ("the filter of site.toml", "the filter of --rows"),
                ("site.toml says ", "--rows says "),
            ] {
                *text = text.replace(of_file, of_option);
            }
        }
        failure
    }
}
