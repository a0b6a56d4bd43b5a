//! A roster as people and programs read it.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use veilsum_node::{
    cost::some_of,
    documents::{fingerprint, load_identity, load_roster, roster_fingerprint},
    error::Failure,
    files::quoted,
};
use veilsum_proto::{
    identity::Identity,
    roster::{Member, Roster},
};

use crate::party::key_beside;

use crate::words::fingerprint_line;

/// Checks contents and signature, and says who is on it.
///
/// # Errors
/// A [`Failure`] that names what is bad.
pub(crate) fn verify(file: &Path, json: bool) -> Result<(), Failure> {
    let roster = load_roster(file)?;
    let (name, fingerprint_line, parties) = (&roster.name, fingerprint_line(&roster), parties(&roster));
    let (file, sites, signer) = (file.display(), roster.sites.len(), &roster.coordinator.name);
    let text = format!(
        "{file} is valid: {name}, {sites} sites, signed by {signer}\n{fingerprint_line}  (compare all words in a call with the other operators)\n\n{parties}"
    );
    let value = json!({ "valid": true, "name": roster.name, "sites": roster.sites.len(),
        "hash": roster.hash().to_string(), "fingerprint": roster_fingerprint(&roster.hash()), "roster": to_json(&roster) });
    crate::verb::print(json, &value, &text)
}

/// Everybody on it, or, where there are many, some of its sites and what shows all.
pub(crate) fn few(roster: &Roster, file: &Path) -> String {
    if roster.sites.len() <= 5 {
        return parties(roster);
    }
    let names: Vec<&str> = roster.sites.iter().map(|site| site.name.as_str()).collect();
    let (name, counter, sites) = (&roster.coordinator.name, &roster.intermediary.name, some_of(&names, ", "));
    let quoted = quoted(file);
    format!(
        "coordinator   {name}\nintermediary  {counter}\nsites         {sites}\na line for each, with its key: veilsum verify {quoted}\n"
    )
}

/// The coordinator's key file, as told or beside `file`, and its identity: nobody else signs, and it should hear so by name.
///
/// # Errors
/// A [`Failure`] if it cannot be read, or is another party's.
pub(crate) fn signer(
    key: Option<&PathBuf>,
    file: &Path,
    roster: &Roster,
    what: &str,
) -> Result<(PathBuf, Identity), Failure> {
    let key = key_beside(key, file)?;
    let (identity, _) = load_identity(&key)?;
    if identity.public() == roster.coordinator.key {
        return Ok((key, identity));
    }
    let coordinator = &roster.coordinator.name;
    Err(Failure::input(
        format!("{}: only {coordinator}, the coordinator, can sign the {what}, and this is not its key", key.display()),
        format!("run this with the key file of {coordinator}"),
    ))
}

pub(crate) fn to_json(roster: &Roster) -> Value {
    let member = |m: &Member| {
        let short = fingerprint(&m.key.0);
        json!({ "name": m.name, "address": m.address, "key": m.key.to_string(), "fingerprint": short })
    };
    json!({
        "name": roster.name,
        "hash": roster.hash().to_string(),
        "fingerprint": roster_fingerprint(&roster.hash()),
        "coordinator": member(&roster.coordinator),
        "intermediary": member(&roster.intermediary),
        "sites": roster.sites.iter().map(member).collect::<Vec<_>>(),
    })
}

/// Everybody on it, a line each, with the fingerprint of their key.
fn parties(roster: &Roster) -> String {
    let mut text = String::new();
    let width = roster.members().map(|m| m.name.len()).max().unwrap_or(0);
    let roles = ["coordinator", "intermediary"].into_iter().map(str::to_owned);
    let roles = roles.chain((0..roster.sites.len()).map(|i| format!("site {i}")));
    for (role, m) in roles.zip(roster.members()) {
        text += &format!("{role:<13} {:<width$}  key {}  {}\n", m.name, fingerprint(&m.key.0), m.address);
    }
    text
}
