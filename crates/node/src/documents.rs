//! The text files that people exchange or keep: key, card, roster, plan, a site's own policy, and what it agreed to.
//!
//! All are TOML with a first line that says what they are. Reading is limited in size, strict about unknown keys, and
//! ends in a verified type or in an error that names the file, the line and the next step. Signatures cover the meaning
//! (the protocol's own encoding), not the text: comments may be added, numbers may not be changed.

mod answer;
mod change;
mod federations;
mod file;
mod guests;
mod invitation;
mod key;
mod meeting;
mod model;
mod offered;
mod plan;
mod roster;
mod schema;
mod site;

use std::path::Path;

use veilsum_proto::{plan::SignedTerms, roster::SignedRoster};

use file::in_file;

pub use answer::PlanAnswer;
pub use federations::{Changes, Federations, Fingerprint, Never, Standing, Use};
pub use guests::{Guest, GuestList, Knocked, Run, Said, Stage};
pub use invitation::{invitation_line, parse_invitation};
pub use key::{Card, check_address, load_card, load_identity, load_rekey, write_card, write_key, write_rekey};
pub use meeting::Begun;
pub use model::{read_model, write_model};
pub use offered::Offered;
pub use plan::{load_plan, write_plan};
pub use roster::{
    load_roster, load_roster_document, load_signed_roster, sign_next, write_roster, write_roster_document,
};
pub use schema::{
    Fit, MAX_SCHEMA, Reading, Taken, adopt_schema, fit_of, header_of, load_schema, other_schema, parse_schema,
    proposed_schema, reading_of, schema_beside, schema_differs, schema_file_beside, schema_text, take_schema,
};
pub use site::{SitePolicy, load_policy, policy_of};

pub use veilsum_federation::agreed::{Federation, fingerprint, roster_fingerprint, whoami};
use veilsum_federation::{
    agreed::numbered,
    error::{Failure, OUTSIDE_BOX},
};

use crate::{
    plan::PlanSpec,
    release::{DataError, Origin, Prepared, Rows},
    table::{self, Reasons, TableSpec},
};

/// Both documents with their signatures, verified: for a client in another language, which verifies them itself.
///
/// # Errors
/// A [`Failure`] that names the file.
pub fn load_signed(roster: impl AsRef<Path>, plan: impl AsRef<Path>) -> Result<(SignedRoster, SignedTerms), Failure> {
    let (roster, plan) = (roster.as_ref(), plan.as_ref());
    let federation = load_federation(roster, plan)?;
    Ok((load_signed_roster(roster)?, plan::load_signed_plan(plan, &federation.roster)?))
}

/// What was agreed on, from the two files, and from `schema.toml` beside the roster where there is one.
///
/// # Errors
/// A [`Failure`] that names the file.
pub fn load_federation(roster: impl AsRef<Path>, plan: impl AsRef<Path>) -> Result<Federation, Failure> {
    let path = roster.as_ref();
    let roster_of = load_roster(path)?;
    let terms = load_plan(&plan, &roster_of)?;
    let schema = schema_beside(path)?;
    Federation::new(roster_of, terms).and_then(|of| of.under(schema)).map_err(|f| in_file(plan.as_ref(), f))
}

/// A site's rows from a CSV file: the plan's columns, scaled into the plan's box.
///
/// # Errors
/// A [`Failure`] that names file, row and column and never a value.
pub fn load_rows(federation: &Federation, data: impl AsRef<Path>) -> Result<Prepared, Failure> {
    load_rows_and_origin(federation, data).map(|(rows, _)| rows)
}

/// The same, and the rows as they stand in the file, by which a ledger knows them again.
///
/// # Errors
/// As [`load_rows`].
pub fn load_rows_and_origin(federation: &Federation, data: impl AsRef<Path>) -> Result<(Prepared, Origin), Failure> {
    let (data, work) = (data.as_ref(), &federation.work);
    let columns: Vec<String> = work.columns.iter().map(|c| c.name.clone()).collect();
    let label = work.labels.as_ref().map(|labels| labels.column.clone());
    let domain = work.domain()?;
    let (categorical, schema) = (work.categorical.clone(), federation.schema.clone());
    let mut table = table::read(data, &TableSpec { columns, categorical, label, schema, ranges: false })?;
    let left_out = std::mem::take(&mut table.left_out);
    let named = work.labels.as_ref().zip(table.labels.take());
    let labels = named.as_ref().map(|(wanted, found)| numbered(found, wanted)).transpose();
    let labels = labels.map_err(|row| {
        let others = work.labels.as_ref().zip(named.as_ref()).map_or(Vec::new(), |(wanted, (_, found))| {
            let strange = |(row, label)| (!wanted.classes.contains(label)).then_some((row, wanted.column.as_str()));
            let in_file = |(row, column)| (left_out.row_in_file(row), column);
            found.iter().enumerate().filter_map(strange).map(in_file).collect()
        });
        let all = tallied(data, &others, "a label that the plan does not list in");
        let what = format!(
            "{}: its label is not among those of the plan{all}",
            table::place_of(data, left_out.row_in_file(row))
        );
        Failure::input(what, "correct the row, or agree on a plan that lists its label")
    })?;
    let rows = Rows::new(table.values, domain.columns()).map_err(|e| in_file(data, e.into()))?;
    let prepared = Prepared::new(&rows, &domain, work.out_of_box).map_err(|e| match e {
        DataError::OutsideBox { row, column } => {
            let name = work.columns.get(column).map_or("?", |c| c.name.as_str());
            let mut all = outside(work, (domain.lower(), domain.upper()), &rows);
            all.iter_mut().for_each(|(row, _)| *row = left_out.row_in_file(*row));
            let all = tallied(data, &all, "a value outside the plan's public box in");
            let place = table::place_of(data, left_out.row_in_file(row));
            let what = format!("{place}, column {name:?}: outside the plan's public box{all}");
            Failure::input(what, OUTSIDE_BOX)
        }
        other => in_file(data, other.into()),
    })?;
    let origin = Origin::new(work.names(), rows, named.map(|(of, labels)| (of.column.clone(), labels)));
    let prepared = match labels {
        Some(labels) => prepared.with_labels(labels).map_err(|e| in_file(data, e.into()))?,
        None => prepared,
    };
    Ok((prepared, origin))
}

/// Every row outside the box, with the first column in which it is.
fn outside<'a>(work: &'a PlanSpec, (low, high): (&[f64], &[f64]), rows: &Rows) -> Vec<(usize, &'a str)> {
    let beyond = |row: &[f64]| {
        let mut bounds = row.iter().zip(low.iter().zip(high));
        bounds.position(|(value, (low, high))| !(low..=high).contains(&value))
    };
    let name = |column: usize| work.columns.get(column).map_or("?", |c| c.name.as_str());
    rows.iter().enumerate().filter_map(|(row, values)| Some((row, name(beyond(values)?)))).collect()
}

/// What is added to an error about the first row where it is not the only one: how many there are by column, with the first
/// lines of them.
fn tallied(data: &Path, rows: &[(usize, &str)], why: &str) -> String {
    if rows.len() < 2 {
        return String::new();
    }
    let at: Vec<usize> = rows.iter().map(|(row, _)| *row).collect();
    let mut reasons = Reasons::default();
    for ((_, column), line) in rows.iter().zip(table::lines_of(data, &at)) {
        reasons.note(format!("{why} {column:?}"), line);
    }
    format!("; in all {} rows cannot be used: {reasons}", reasons.rows())
}

#[cfg(test)]
pub(crate) mod tests;
