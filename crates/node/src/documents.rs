//! The text files that people exchange or keep: key, card, roster, plan, a site's own policy, and what it agreed to.
//!
//! All are TOML with a first line that says what they are. Reading is limited in size, strict about unknown keys, and
//! ends in a verified type or in an error that names the file, the line and the next step. Signatures cover the meaning
//! (the protocol's own encoding), not the text: comments may be added, numbers may not be changed.

mod federations;
mod key;
mod model;
mod offered;
mod plan;
mod roster;
mod site;

use std::path::Path;

use serde::{Deserialize, de::DeserializeOwned};
use veilsum_proto::{
    Error,
    identity::{from_hex, to_hex},
    plan::SignedTerms,
    roster::SignedRoster,
    suite::Hash,
};

pub use federations::{Changes, Federations, Fingerprint, Standing, Use};
pub use key::{Card, check_address, load_card, load_identity, write_card, write_key};
pub use model::{read_model, write_model};
pub use offered::Offered;
pub use plan::{load_plan, write_plan};
pub use roster::{load_roster, write_roster};
pub use site::{SitePolicy, load_policy, policy_of};

pub use veilsum_federation::agreed::{Federation, fingerprint, roster_fingerprint, whoami};
use veilsum_federation::{
    agreed::numbered,
    error::{Code, Failure, OUTSIDE_BOX},
};

use crate::{
    files,
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
    Ok((roster::load_signed_roster(roster)?, plan::load_signed_plan(plan, &federation.roster)?))
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
    let mut table = table::read(data, &TableSpec { columns, label })?;
    let named = work.labels.as_ref().zip(table.labels.take());
    let labels = named.as_ref().map(|(wanted, found)| numbered(found, wanted)).transpose();
    let labels = labels.map_err(|row| {
        let what = format!("{}: its label is not among those of the plan", table::place_of(data, row));
        Failure::input(what, "correct the row, or agree on a plan that lists its label")
    })?;
    let rows = Rows::new(table.values, work.columns.len()).map_err(|e| in_file(data, e.into()))?;
    let domain = work.domain()?;
    let prepared = Prepared::new(&rows, &domain, work.out_of_box).map_err(|e| match e {
        DataError::OutsideBox { row, column } => {
            let name = work.columns.get(column).map_or("?", |c| c.name.as_str());
            let what = format!("{}, column {name:?}: outside the plan's public box", table::place_of(data, row));
            Failure::input(what, OUTSIDE_BOX)
        }
        other => in_file(data, other.into()),
    })?;
    let names: Vec<String> = work.columns.iter().map(|c| c.name.clone()).collect();
    let origin = Origin::new(names, rows, named.map(|(of, labels)| (of.column.clone(), labels)));
    let prepared = match labels {
        Some(labels) => prepared.with_labels(labels).map_err(|e| in_file(data, e.into()))?,
        None => prepared,
    };
    Ok((prepared, origin))
}

// ---- Shared by the documents ----------------------------------------------------------------------------------------

#[derive(Deserialize)]
struct Head {
    format: Option<String>,
}

/// Reads a document of exactly this format.
fn read_document<T: DeserializeOwned>(path: &Path, max: usize, format: &str, next: &str) -> Result<T, Failure> {
    let text = read_text(path, max)?;
    let head: Head = toml::from_str(&text).map_err(|e| parse_failure(path, &text, &e, next))?;
    match head.format.as_deref() {
        Some(found) if found == format => {}
        found => {
            let found = found.map_or("says no format".into(), |f| format!("says format = {f:?}"));
            let what = format!("{}: it {found} where {format:?} belongs", path.display());
            return Err(Failure::input(what, format!("check that it is the right file; {next}")));
        }
    }
    toml::from_str(&text).map_err(|e| parse_failure(path, &text, &e, next))
}

fn read_text(path: &Path, max: usize) -> Result<String, Failure> {
    let bytes = files::read_limited(path, max)?;
    String::from_utf8(bytes).map_err(|_| {
        Failure::input(format!("{}: it is not UTF-8 text", path.display()), "check that it is the right file")
    })
}

/// The parser's own rendering quotes the line; its message alone does not.
fn parse_failure(path: &Path, text: &str, error: &toml::de::Error, next: &str) -> Failure {
    let why = error.message().lines().next().unwrap_or("it is not TOML");
    let line = error.span().map(|s| 1 + text.bytes().take(s.start).filter(|b| *b == b'\n').count());
    let place = line.map_or(String::new(), |l| format!(", line {l}"));
    Failure::input(format!("{}{place}: {why}", path.display()), next)
}

/// A document whose contents or signature the protocol core refused.
fn refused(path: &Path, error: &Error, next: impl Into<String>) -> Failure {
    // Whoever changed the file need not be the signer, so the signer is not accused.
    let why = match error {
        Error::PeerMisbehaved { what, rule, .. } => format!("{what} {rule}"),
        other => other.to_string(),
    };
    Failure::input(format!("{}: {why}", path.display()), next)
}

fn in_file(path: &Path, failure: Failure) -> Failure {
    Failure { message: format!("{}: {}", path.display(), failure.message), ..failure }
}

/// Fixed-length bytes from hexadecimal digits of `key` in the file.
fn hex<const N: usize>(path: &Path, key: &str, digits: &str) -> Result<[u8; N], Failure> {
    from_hex(digits).and_then(|b| b.try_into().ok()).ok_or_else(|| {
        let what = format!("{}: {key} is not {} hexadecimal digits", path.display(), 2 * N);
        Failure::input(what, "ask whoever sent the file to send it again")
    })
}

fn hash_of(path: &Path, key: &str, digits: &str) -> Result<Hash, Failure> {
    hex(path, key, digits).map(Hash)
}

/// The text of a document. The types here always have one.
fn to_toml<T: serde::Serialize>(comment: &str, value: &T) -> Result<String, Failure> {
    toml::to_string(value).map(|text| format!("{comment}{text}")).map_err(|e| {
        Failure::new(
            Code::Internal,
            format!("the document has no text form: {e}"),
            "this is a defect, please report it",
        )
    })
}

#[cfg(test)]
pub(crate) mod tests;
