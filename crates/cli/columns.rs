//! The columns that options name, and what may stand in them.

use veilsum_node::{
    documents::{Columns, USUAL_WEIGHT},
    error::Failure,
    plan::{Categorical, Column},
    table::spelling::normal,
};

/// A column, and what may stand in it where that was said.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Wanted {
    /// What `columns.toml` says of it.
    Named(String),
    /// Numbers of this range.
    Number(Column),
    /// One of these categories.
    Category(String, Vec<String>),
}

impl Wanted {
    /// Its name.
    pub(crate) fn name(&self) -> &str {
        match self {
            Wanted::Named(name) | Wanted::Category(name, _) => name,
            Wanted::Number(column) => &column.name,
        }
    }

    /// As a plan has it, if it is a column of categories.
    pub(crate) fn categorical(&self) -> Option<Categorical> {
        let Wanted::Category(column, categories) = self else { return None };
        Some(Categorical { column: column.clone(), categories: categories.clone(), weight: USUAL_WEIGHT })
    }
}

/// The columns of numbers and of categories of a plan: those that were named, or all of `columns.toml`.
///
/// # Errors
/// A [`Failure`] that names the column of which nothing is known.
pub(crate) fn of_plan(wanted: &[Wanted], known: Option<&Columns>) -> Result<(Vec<Column>, Vec<Categorical>), Failure> {
    let known = known.map(Columns::of_plan);
    if wanted.is_empty() {
        return known.ok_or_else(|| {
            let next = "name every column with --column NAME=LOW:HIGH, or a file of them with --columns FILE";
            Failure::usage("no column is named, and there is no columns.toml", next)
        });
    }
    let (known_numbers, known_categorical) = known.unwrap_or_default();
    let (mut numbers, mut categorical) = (Vec::new(), Vec::new());
    for one in wanted {
        let before = numbers.len() + categorical.len();
        match one {
            Wanted::Number(column) => numbers.push(column.clone()),
            Wanted::Category(..) => categorical.extend(one.categorical()),
            Wanted::Named(name) => {
                numbers.extend(known_numbers.iter().find(|of| of.name == *name).cloned());
                categorical.extend(known_categorical.iter().find(|of| of.column == *name).cloned());
            }
        }
        if numbers.len() + categorical.len() == before {
            let name = one.name();
            let what = format!("--column {name}: no range and no categories are given, and no columns.toml has it");
            return Err(Failure::usage(what, FORM));
        }
    }
    Ok((numbers, categorical))
}

const FORM: &str =
    "write it as NAME=LOW:HIGH, as in age=0:120, or NAME=CATEGORY,CATEGORY, as in smoker=never,former,current";

/// `NAME`, `NAME=LOW:HIGH` or `NAME=CATEGORY,CATEGORY` (one with a comma in double quotes); the name of a column of numbers may itself hold an equals sign. Letters are composed,
/// as those of files are.
pub(crate) fn parse_column(text: &str) -> Result<Wanted, String> {
    let text = &*normal(text);
    if !text.is_empty() && !text.contains('=') {
        return Ok(Wanted::Named(text.to_owned()));
    }
    if let Some((name, listed)) = text.split_once('=').filter(|(_, listed)| listed.contains(',')) {
        let mut reader =
            csv::ReaderBuilder::new().has_headers(false).trim(csv::Trim::All).from_reader(listed.as_bytes());
        let categories: Vec<String> = reader.deserialize().next().and_then(Result::ok).unwrap_or_default();
        if listed.chars().any(char::is_control) {
            return Err("a category holds a control character, such as the end of a line".into());
        }
        if name.is_empty() || categories.iter().any(String::is_empty) {
            return Err(FORM.into());
        }
        return Ok(Wanted::Category(name.to_owned(), categories));
    }
    let (name, range) = text.rsplit_once('=').filter(|(name, _)| !name.is_empty()).ok_or(FORM)?;
    let (low, high) = range.split_once(':').ok_or(FORM)?;
    let bound = |s: &str| s.trim().parse::<f64>().ok().filter(|v| v.is_finite());
    let (Some(lower), Some(upper)) = (bound(low), bound(high)) else {
        return Err(format!("the range of {name:?} is not two numbers; {FORM}"));
    };
    if lower >= upper {
        return Err(format!("the range of {name:?} has no inside: LOW must be below HIGH"));
    }
    Ok(Wanted::Number(Column { name: name.to_owned(), lower, upper }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns() {
        let number = Wanted::Number(Column { name: "a=b".into(), lower: -1000.0, upper: 2.0 });
        assert_eq!(parse_column("a=b=-1e3:2"), Ok(number));
        let category = Wanted::Category("s".into(), ["a, b", "c"].map(str::to_owned).into());
        assert_eq!(parse_column("s=\"a, b\", c"), Ok(category));
        assert_eq!(parse_column("a"), Ok(Wanted::Named("a".into())));
        assert_eq!(parse_column("cafe\u{301}"), Ok(Wanted::Named("caf\u{e9}".into())));
        for bad in ["", "=1:2", "a=1", "a=1:x", "a=NaN:1", "a=1:1", "a=2:1", "a=0:inf", "smoker=a", "=a,b", "s=a,,b"] {
            assert!(parse_column(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_column_without_range_or_categories_is_in_columns_toml() {
        let unlisted = of_plan(&[Wanted::Named("smoker".into())], None);
        assert!(unlisted.unwrap_err().message.contains("no categories are given"));
    }
}
