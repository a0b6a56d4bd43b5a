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
mod rows;
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
pub use rows::{DEFAULT_MEMORY, RowsFrom};
pub use schema::{
    Fit, MAX_SCHEMA, Reading, Taken, adopt_schema, fit_of, header_of, load_schema, other_schema, parse_schema,
    proposed_schema, reading_of, schema_beside, schema_differs, schema_file_beside, schema_text, take_schema,
};
pub use site::{SitePolicy, load_policy, policy_of};

pub use veilsum_federation::agreed::{Federation, fingerprint, roster_fingerprint, whoami};
use veilsum_federation::{agreed::numbered, error::Failure};

use crate::{
    plan::OutOfBox,
    release::{DataError, Origin, Prepared, Rows},
    table::{self, TableSpec},
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

/// A site's rows from where they are: the plan's columns, scaled into the plan's box.
///
/// # Errors
/// A [`Failure`] that names file, row and column and never a value.
pub fn load_rows(federation: &Federation, from: impl Into<RowsFrom>) -> Result<Prepared, Failure> {
    load_rows_and_origin(federation, from).map(|(rows, _)| rows)
}

/// The same, and the rows as they stand in the file, by which a ledger knows them again.
///
/// # Errors
/// As [`load_rows`].
pub fn load_rows_and_origin(federation: &Federation, from: impl Into<RowsFrom>) -> Result<(Prepared, Origin), Failure> {
    let (from, work) = (from.into(), &federation.work);
    let domain = work.domain()?;
    let mut table = table::read(&from.data, &spec_of(federation, &from)?)?;
    let (values, labels) = table.drain();
    let named = work.labels.as_ref().zip(labels);
    let fault = |e: DataError| in_file(&from.data, e.into());
    let rows = Rows::new(values, domain.columns()).map_err(fault)?;
    let mut prepared = Prepared::new(&rows, &domain, work.out_of_box).map_err(fault)?;
    if let Some((wanted, found)) = &named {
        // Every label was looked at when its row was read.
        let labels = numbered(found, wanted).unwrap_or_default();
        prepared = prepared.with_labels(labels).map_err(fault)?;
    }
    let origin = Origin::new(work.names(), rows, named.map(|(of, labels)| (of.column.clone(), labels)));
    Ok((prepared, origin))
}

/// What a plan wants of a site's rows.
fn spec_of(federation: &Federation, from: &RowsFrom) -> Result<TableSpec, Failure> {
    let (work, domain) = (&federation.work, federation.work.domain()?);
    let within = match work.out_of_box {
        OutOfBox::Refuse => domain.lower().iter().copied().zip(domain.upper().iter().copied()).collect(),
        OutOfBox::Clip => Vec::new(),
    };
    Ok(TableSpec {
        columns: work.columns.iter().map(|c| c.name.clone()).collect(),
        categorical: work.categorical.clone(),
        label: work.labels.as_ref().map(|labels| labels.column.clone()),
        classes: work.labels.as_ref().map_or(Vec::new(), |labels| labels.classes.clone()),
        schema: federation.schema.clone(),
        ranges: false,
        within,
        rules: Some(from.rules.clone()),
        list: from.list.clone(),
    })
}

#[cfg(test)]
pub(crate) mod tests;
