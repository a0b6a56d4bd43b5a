//! `columns.toml`: the columns of a federation, said before there is a plan. They are a plan's columns with their units, and what marks a missing
//! value. The coordinator makes plans from the file and hands it to everybody who joins; a site reads its rows by the signed plan, and takes
//! the marks from here.

use std::path::Path;

use serde::Deserialize;

use super::{
    file::{document, read_text},
    rows::checked,
};
use crate::{
    columns::{self, Categorical, Column},
    error::Failure,
    files,
    table::{RowRules, spelling::normal},
};

const FORMAT: &str = "veilsum-columns/1";
const FILE: &str = "columns.toml";
/// Bytes of the file at most.
pub const MAX_COLUMNS_FILE: usize = 256 << 10;
/// Weight of a column of categories where no plan says it: half of the largest squared distance in one column of numbers in box units.
pub const USUAL_WEIGHT: f64 = 0.5;

/// What the file says.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Columns {
    /// Words that stand for a missing value, beside the usual ones.
    #[serde(default, rename = "missing_marks")]
    pub marks: Vec<String>,
    /// Columns of numbers.
    #[serde(default, rename = "column")]
    pub numbers: Vec<Measured>,
    /// Columns of categories.
    #[serde(default)]
    pub categorical: Vec<Named>,
}

/// A column of numbers.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    name: String,
    lower: f64,
    upper: f64,
    unit: String,
}

/// A column of categories.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    column: String,
    categories: Vec<String>,
}

impl Columns {
    /// What the numbers of this column are measured in.
    pub fn unit(&self, name: &str) -> Option<&str> {
        self.numbers.iter().find(|of| normal(&of.name) == name).map(|of| of.unit.as_str())
    }

    /// All of them, as a plan has them.
    pub fn of_plan(&self) -> (Vec<Column>, Vec<Categorical>) {
        let name = |name: &str| normal(name).into_owned();
        let column = |of: &Measured| Column { name: name(&of.name), lower: of.lower, upper: of.upper };
        let categorical = |of: &Named| {
            let (column, categories) = (name(&of.column), of.categories.clone());
            Categorical { column, categories, weight: USUAL_WEIGHT }
        };
        (self.numbers.iter().map(column).collect(), self.categorical.iter().map(categorical).collect())
    }
}

/// The columns in a file.
///
/// # Errors
/// A [`Failure`] that names the file, and the line or the column.
pub fn load_columns(path: &Path) -> Result<Columns, Failure> {
    parse(path, &read_text(path, MAX_COLUMNS_FILE)?)
}

fn parse(path: &Path, text: &str) -> Result<Columns, Failure> {
    let next = "correct it, or ask the coordinator for the file again";
    let refused = |why: String| Failure::input(format!("{}: {why}", path.display()), next);
    let found: Columns = document(path, text, FORMAT, next)?;
    let (numbers, categorical) = found.of_plan();
    columns::check(&numbers, &categorical).map_err(refused)?;
    if let Some(Column { name, lower, upper }) = numbers.iter().find(|of| of.lower.total_cmp(&of.upper).is_ge()) {
        return Err(refused(format!("the range of the column {name:?}, {lower} to {upper}, has no inside")));
    }
    checked(RowRules { marks: found.marks.clone(), ..RowRules::default() })
        .map_err(|why| refused(why.trim_start_matches("rows.").to_owned()))?;
    Ok(found)
}

/// The columns beside a document (a roster, a key), where there are some.
///
/// # Errors
/// As [`load_columns`].
pub fn columns_beside(document: &Path) -> Result<Option<Columns>, Failure> {
    let path = document.with_file_name(FILE);
    if path.exists() { load_columns(&path).map(Some) } else { Ok(None) }
}

/// The text of the file in a federation's folder, where there is one, as it is handed out.
///
/// # Errors
/// As [`load_columns`].
pub fn columns_text(folder: &Path) -> Result<Option<String>, Failure> {
    let path = folder.join(FILE);
    if !path.exists() {
        return Ok(None);
    }
    let text = read_text(&path, MAX_COLUMNS_FILE)?;
    parse(&path, &text).map(|_| Some(text))
}

/// Founds a federation with these columns: the file is checked and copied into its folder.
///
/// # Errors
/// As [`load_columns`], and where it cannot be written.
pub fn adopt_columns(folder: &Path, file: &Path) -> Result<(), Failure> {
    take_columns(&folder.join(FILE), &read_text(file, MAX_COLUMNS_FILE)?).map(drop)
}

/// Keeps the columns that were handed out beside a document, unless some are there: how many there are now.
///
/// # Errors
/// As [`load_columns`], and where the file cannot be written.
pub fn take_columns(document: &Path, text: &str) -> Result<usize, Failure> {
    let path = document.with_file_name(FILE);
    let found = match columns_beside(document)? {
        Some(there) => there,
        None => {
            let found = parse(&path, text)?;
            files::write_atomic(&path, text.as_bytes())?;
            found
        }
    };
    Ok(found.numbers.len() + found.categorical.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::tests::Folder;

    const TEXT: &str = "format = \"veilsum-columns/1\"\nmissing_marks = [\"-99\"]\n\
        [[column]]\nname = \"age\"\nunit = \"years\"\nlower = 0\nupper = 120\n\
        [[categorical]]\ncolumn = \"smoker\"\ncategories = [\"never\", \"current\"]\n";

    #[test]
    fn what_is_wrong_with_columns_is_said() {
        let parsed = |text: &str| parse(Path::new("columns.toml"), text).map_err(|failure| failure.to_string());
        let (numbers, categorical) = parsed(TEXT).unwrap().of_plan();
        assert_eq!((numbers[0].upper, categorical[0].categories.len()), (120.0, 2));
        for (from, to, said) in [
            ("columns/1", "columns/9", "format"),
            ("lower = 0\n", "", "lower"),
            ("lower = 0\n", "lower = \"low\"\n", "line 6"),
            ("lower = 0\n", "lower = 130\n", "age"),
            ("unit = \"years\"\n", "", "unit"),
            (", \"current\"", "", "smoker"),
            ("smoker", "age", "age"),
            ("-99", "true", "missing_marks"),
            ("unit", "also_called", "also_called"),
        ] {
            let told = parsed(&TEXT.replacen(from, to, 1)).unwrap_err();
            assert!(told.contains("columns.toml") && told.contains(said), "{from} -> {to}: {told}");
        }
    }

    #[test]
    fn columns_that_were_handed_out_take_the_place_of_none() {
        let folder = Folder::new("columns");
        let (roster, own) = (folder.at("roster.toml"), folder.at(FILE));
        assert!(take_columns(&roster, "format = 1").is_err() && columns_beside(&roster).unwrap().is_none());
        assert_eq!((take_columns(&roster, TEXT).unwrap(), std::fs::read_to_string(&own).unwrap()), (2, TEXT.into()));
        let other = TEXT.replacen("120", "130", 1);
        assert_eq!((take_columns(&roster, &other).unwrap(), std::fs::read_to_string(&own).unwrap()), (2, TEXT.into()));
    }
}
