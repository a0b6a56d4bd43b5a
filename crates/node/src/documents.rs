//! The text files that people exchange or keep: key, roster, plan, a site's own policy, and what it agreed to.
//!
//! All are TOML with a first line that says what they are. Reading is limited in size, strict about unknown keys, and
//! ends in a verified type or in an error that names the file, the line and the next step. Signatures cover the meaning
//! (the protocol's own encoding), not the text: comments may be added, numbers may not be changed.

mod answer;
mod columns;
mod file;
mod guests;
mod invitation;
mod key;
mod methods;
mod model;
mod offered;
mod pinned;
mod plan;
mod plan_keys;
mod roster;
mod rows;
mod site;

use std::{path::Path, sync::Arc};

use veilsum_proto::{plan::SignedTerms, roster::SignedRoster};

use file::in_file;

pub use answer::PlanAnswer;
pub use columns::{
    Columns, MAX_COLUMNS_FILE, USUAL_WEIGHT, adopt_columns, columns_beside, columns_text, load_columns, take_columns,
};
pub use guests::{Guest, GuestList, Knocked, Run, Said, Stage};
pub use invitation::{answer_line, invitation_line, parse_answer, parse_invitation};
pub use key::{check_address, load_identity, write_key};
pub use model::{read_model, rows_of, write_model};
pub use offered::Offered;
pub use pinned::{Begun, Changes, Pinned, Standing};
pub use plan::{edited_plan, load_plan, with_settings, write_plan};
pub use plan_keys::{PLAN_KEYS, has_setting};
pub use roster::{load_roster, load_signed_roster, write_roster};
pub use rows::{HANDED, HandOver, Handed, Loaded, Reading, RowsFrom, reading_of, rules_said};
pub use site::{SitePolicy, keep_policy, load_policy, policy_of, whole_rho};

pub use veilsum_federation::{
    agreed::{Federation, fingerprint, whoami},
    spoken::{Fingerprint, WORDS, roster_fingerprint},
};
use veilsum_federation::{error::Failure, question::too_many_rows};

use crate::{
    answerer::{ClusterError, Prepared, Rows},
    plan::{Categorical, Column, OutOfBox},
    table::{self, Table, TableSpec, Tally, Unusable},
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

/// What was agreed on, from the two files.
///
/// # Errors
/// A [`Failure`] that names the file.
pub fn load_federation(roster: impl AsRef<Path>, plan: impl AsRef<Path>) -> Result<Federation, Failure> {
    let roster = load_roster(roster)?;
    let terms = load_plan(&plan, &roster)?;
    Federation::new(roster, terms).map_err(|f| in_file(plan.as_ref(), f))
}

/// A site's rows from where they are, or whoever answers in their place.
///
/// # Errors
/// A [`Failure`] that names file, row and column and never a value.
pub fn load_rows(federation: &Federation, from: &RowsFrom) -> Result<Loaded, Failure> {
    let loaded = match &from.handed {
        Some(Handed(hand_over)) => hand_over(federation)?,
        None => read_rows(federation, from)?,
    };
    let most = federation.terms.max_rows;
    if loaded.rows_asked(federation) > most { Err(too_many_rows(most)) } else { Ok(loaded) }
}

fn read_rows(federation: &Federation, from: &RowsFrom) -> Result<Loaded, Failure> {
    read_often(from)?;
    let table = table::read(&from.data, &spec_of(federation, from)?)?;
    let tally = table.tally();
    let rows = ready(federation, &from.data, table)?.with_missing(tally.missing(&federation.work.categorical))?;
    Ok(Loaded { rows: Arc::new(rows), tally: Some(tally) })
}

/// Rows that a program hands over in place of a file: n x d numbers in the plan's columns and original units, indicators of categories
/// behind the numbers.
///
/// # Errors
/// A [`Failure`] that names the row; as [`load_rows`].
pub fn rows_in_memory(federation: &Federation, values: &[f64]) -> Result<Loaded, Failure> {
    let (table, missing) = table_in_memory(federation, values)?;
    let tally = table.tally();
    let rows = ready(federation, Path::new(HANDED), table)?.with_missing(missing)?;
    Ok(Loaded { rows: Arc::new(rows), tally: Some(tally) })
}

/// The same as a table, and the rows without a value by column of the box.
///
/// # Errors
/// As [`rows_in_memory`].
pub fn table_in_memory(federation: &Federation, values: &[f64]) -> Result<(Table, Vec<u64>), Failure> {
    let work = &federation.work;
    let (columns, categorical) = (work.names(), Vec::new());
    let of_file = spec_of(federation, &RowsFrom::default())?;
    let table = table::read_given(values, &TableSpec { columns, categorical, ..of_file })?;
    let mut missing = table.tally().missing(&[]);
    // Those of categories count at their first indicator, as a file's do.
    let mut indicators = &mut missing[work.columns.len()..];
    for of in &work.categorical {
        let (own, rest) = indicators.split_at_mut(of.categories.len());
        own[1..].fill(0);
        indicators = rest;
    }
    Ok((table, missing))
}

/// Whether rows fit to columns for which there is no plan yet, as one with noise reads them. If an operator `typed` the columns, values out of
/// their ranges and of none of their categories are counted. Nothing is kept of the rows.
///
/// # Errors
/// As [`load_rows`], but for single rows.
pub fn look_at_columns(
    (numbers, categorical): (Vec<Column>, Vec<Categorical>),
    typed: bool,
    from: &RowsFrom,
) -> Result<Tally, Failure> {
    let spec = TableSpec {
        columns: numbers.iter().map(|column| column.name.clone()).collect(),
        within: numbers.iter().map(|column| (column.lower, column.upper)).collect(),
        clips: true,
        categorical,
        rules: from.rules.clone(),
        list: from.list.clone(),
        unusable: Unusable::Weightless,
        ..TableSpec::default()
    };
    let spec = if typed { spec } else { spec.without_ranges() };
    let (tally, fault) = table::look(&from.data, &spec)?;
    let tally = if typed { tally } else { tally.without_ranges() };
    fault.map_or(Ok(tally), |fault| Err(fault.into()))
}

/// What of a site's rows a plan reads; under noise without what the plan's ranges and
/// categories make of them ([NOI-8]). Nothing is kept of the rows.
///
/// # Errors
/// As [`load_rows`], but for single rows.
pub fn look_at_rows(federation: &Federation, from: &RowsFrom) -> Result<Tally, Failure> {
    let (noisy, spec) = (federation.work.recipe.noise.is_some(), spec_of(federation, from)?);
    let (tally, _) = table::look(&from.data, &if noisy { spec.without_ranges() } else { spec })?;
    Ok(if noisy { tally.without_ranges() } else { tally })
}

/// Whether the rows are where they can be read more than once.
fn read_often(from: &RowsFrom) -> Result<(), Failure> {
    let pipe = std::fs::metadata(&from.data).is_ok_and(|of| !of.is_file() && !of.is_dir());
    if !pipe || from.rules.person.is_none() {
        return Ok(());
    }
    let data = from.data.display();
    let what =
        format!("{data}: it is a pipe, which can be read once, and rows cut to so many of a person are read twice");
    let next =
        "give the rows as a file, a folder, or on standard input (--data -); or take person out of [rows] in site.toml";
    Err(Failure::input(what, next))
}

fn ready(federation: &Federation, data: &Path, table: Table) -> Result<Prepared, Failure> {
    let work = &federation.work;
    let domain = work.domain()?;
    let fault = |e: ClusterError| in_file(data, e.into());
    let rows = Rows::new(table.values, domain.columns()).map_err(fault)?;
    Prepared::new(&rows, &domain, work.out_of_box).map_err(fault)
}

/// What a plan wants of a site's rows.
///
/// # Errors
/// A [`Failure`] where the plan cannot be used, or the secret for rows of persons cannot be read.
pub fn spec_of(federation: &Federation, from: &RowsFrom) -> Result<TableSpec, Failure> {
    let (work, domain) = (&federation.work, federation.work.domain()?);
    if work.recipe.noise.is_some() && from.rules.multiline {
        let what = "site.toml says that cells may span lines (multiline), and under noise every line is read by itself";
        let next = "export the file without line breaks in cells, and take multiline out of [rows] in site.toml";
        return Err(Failure::input(what, next));
    }
    Ok(TableSpec {
        columns: work.columns.iter().map(|c| c.name.clone()).collect(),
        categorical: work.categorical.clone(),
        label: None,
        within: domain.lower().iter().copied().zip(domain.upper().iter().copied()).collect(),
        clips: work.out_of_box == OutOfBox::Clip,
        rules: from.rules.clone(),
        list: from.list.clone(),
        person_key: from.person_key()?,
        unusable: if work.recipe.noise.is_some() { Unusable::Weightless } else { Unusable::Refused },
        halt: from.halt.clone(),
    })
}

#[cfg(test)]
pub(crate) mod tests;
