//! The options that name columns of categories, the same for `plan make` and `demo`.

use clap::Args;
use veilsum_node::{
    error::{Code, Failure},
    plan::Categorical,
    schema::Schema,
};

use crate::method::heading;

/// Weight of a column where none is given: half of the largest squared distance in one column of numbers in box units.
const USUAL_WEIGHT: f64 = 0.5;

/// Columns of categories.
#[derive(Args, Debug, Clone)]
pub(crate) struct CategoryArgs {
    /// A column of categories and every category that may occur; repeat for every such column
    ///
    /// The list is public and must not come from the rows. A row with a category that is not listed is an error at its site. Where
    /// there is a schema, COLUMN alone takes its list.
    #[arg(long = "category", value_name = "COLUMN[=NAME,NAME,...]", value_parser = parse_category, hide_short_help = true,
        help_heading = heading::ROWS)]
    pub category: Vec<(String, Vec<String>)>,
    /// Squared distance of two rows that differ in a category, for all such columns or for one [default: 0.5]
    ///
    /// It is the gamma of k-prototypes, in squared units of the questions: a column of numbers has 1 at most in box units, and 2 on
    /// average where columns are standardised.
    #[arg(long, value_name = "[COLUMN=]WEIGHT", value_parser = parse_weight, hide_short_help = true,
        help_heading = heading::ROWS)]
    pub category_weight: Vec<(Option<String>, f64)>,
}

impl CategoryArgs {
    /// The columns, each with its weight: the last one given for it, or else for all. What has no list takes the schema's, and
    /// `all` stands for every column of categories that the schema has.
    ///
    /// # Errors
    /// A [`Failure`] where a weight is of no such column, or a column has no list.
    pub(crate) fn columns(&self, schema: Option<&Schema>, all: bool) -> Result<Vec<Categorical>, Failure> {
        let mut category = self.category.clone();
        if all {
            let known = schema.map_or(Vec::new(), |schema| schema.categorical(USUAL_WEIGHT));
            category.extend(known.into_iter().map(|of| (of.column, of.categories)));
        }
        for (column, categories) in category.iter_mut().filter(|(_, categories)| categories.is_empty()) {
            let known = schema.and_then(|schema| schema.get(column)?.categorical(USUAL_WEIGHT));
            *categories = known.map(|of| of.categories).ok_or_else(|| {
                let what = format!(
                    "--category {column}: no categories are listed, and no schema has such a column of categories"
                );
                Failure::new(Code::Usage, what, "write it as COLUMN=NAME,NAME, as in smoker=never,former,current")
            })?;
        }
        let of = |column: &String| category.iter().any(|(name, _)| name == column);
        if category.is_empty() && !self.category_weight.is_empty() {
            let what = "--category-weight: there is no column of categories";
            return Err(Failure::new(Code::Usage, what, "name it with --category first"));
        }
        if let Some((Some(column), _)) =
            self.category_weight.iter().find(|(name, _)| name.as_ref().is_some_and(|c| !of(c)))
        {
            let what = format!("--category-weight {column}: there is no such column of categories");
            return Err(Failure::new(Code::Usage, what, "name it with --category first"));
        }
        let weight = |column: Option<&str>| {
            self.category_weight.iter().rev().find(|(name, _)| name.as_deref() == column).map(|(_, weight)| *weight)
        };
        let one = |(column, categories): &(String, Vec<String>)| Categorical {
            column: column.clone(),
            categories: categories.clone(),
            weight: weight(Some(column)).or(weight(None)).unwrap_or(USUAL_WEIGHT),
        };
        let columns: Vec<Categorical> = category.iter().map(one).collect();
        // Before any row is read with them.
        veilsum_node::columns::check(&[], &columns)
            .map_err(|why| Failure::new(Code::Usage, why, "correct --category or --category-weight"))?;
        Ok(columns)
    }
}

/// `COLUMN=NAME,NAME,...`
fn parse_category(text: &str) -> Result<(String, Vec<String>), String> {
    let form = "write it as COLUMN=NAME,NAME, as in smoker=never,former,current";
    if !text.is_empty() && !text.contains('=') {
        return Ok((text.to_owned(), Vec::new()));
    }
    let (column, categories) = text.split_once('=').filter(|(column, _)| !column.is_empty()).ok_or(form)?;
    let categories: Vec<String> = categories.split(',').map(|category| category.trim().to_owned()).collect();
    if categories.iter().any(|category| category.chars().any(char::is_control)) {
        return Err("a category holds a control character, such as the end of a line".into());
    }
    if categories.len() < 2 || categories.iter().any(String::is_empty) {
        return Err(form.into());
    }
    Ok((column.to_owned(), categories))
}

/// `WEIGHT` or `COLUMN=WEIGHT`
fn parse_weight(text: &str) -> Result<(Option<String>, f64), String> {
    let (column, weight) = match text.rsplit_once('=') {
        Some((column, weight)) => (Some(column.to_owned()), weight),
        None => (None, text),
    };
    let weight = weight.parse::<f64>().ok().filter(|w| w.is_finite() && *w > 0.0);
    Ok((column, weight.ok_or("write it as a number above 0, or as COLUMN=NUMBER")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_of_one_column_go_before_those_of_all() {
        let category = ["smoker=never,former,current", "sex=f,m"].map(|text| parse_category(text).unwrap()).to_vec();
        let weights = |given: &[&str]| {
            let category_weight = given.iter().map(|text| parse_weight(text).unwrap()).collect();
            let columns = CategoryArgs { category: category.clone(), category_weight }.columns(None, false);
            columns.map(|columns| columns.iter().map(|c| c.weight).collect::<Vec<f64>>())
        };
        assert_eq!(weights(&[]).unwrap(), [0.5, 0.5]);
        assert_eq!(weights(&["sex=2", "0.25"]).unwrap(), [0.25, 2.0]);
        assert!(weights(&["age=1"]).unwrap_err().message.contains("age"));
        let bare = vec![parse_category("smoker").unwrap()];
        let unlisted = CategoryArgs { category: bare, category_weight: Vec::new() }.columns(None, false);
        assert!(unlisted.unwrap_err().message.contains("no categories are listed"));
        for bad in ["", "smoker=a", "=a,b", "smoker=a,,b"] {
            assert!(parse_category(bad).is_err(), "{bad}");
        }
        for bad in ["", "x", "0", "-1", "sex=", "sex=inf"] {
            assert!(parse_weight(bad).is_err(), "{bad}");
        }
    }
}
