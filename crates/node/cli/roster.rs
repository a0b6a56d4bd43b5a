//! `veilsum roster`: make, add, show, verify.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use veilsum_proto::{
    identity::Identity,
    roster::{Member, Roster, SignedRoster},
};

use super::exit::Failure;
use crate::documents::{Card, fingerprint, load_card, load_identity, load_roster, write_roster};

/// `veilsum roster`
#[derive(Args, Debug)]
pub struct RosterArgs {
    /// What to do with it
    #[command(subcommand)]
    pub command: RosterCommand,
}

/// What to do with a roster.
#[derive(Subcommand, Debug)]
pub enum RosterCommand {
    /// Make a roster from cards and sign it with the coordinator's key
    Make(MakeArgs),
    /// Add sites and sign again; every party needs the new file, and a new plan
    Add(AddArgs),
    /// Print a verified roster
    Show(ReadArgs),
    /// Check contents and signature; exit code 3 where they are bad
    Verify(ReadArgs),
}

/// `veilsum roster make`
#[derive(Args, Debug)]
pub struct MakeArgs {
    /// Name of the federation
    #[arg(long)]
    pub name: String,
    /// The coordinator's card
    #[arg(long, value_name = "FILE.card")]
    pub coordinator: PathBuf,
    /// The intermediary's card; another organisation's
    #[arg(long, value_name = "FILE.card")]
    pub intermediary: PathBuf,
    /// A site's card; repeat for every site, at least three
    #[arg(long = "site", value_name = "FILE.card", num_args = 1..)]
    pub sites: Vec<PathBuf>,
    /// The coordinator's secret key file
    #[arg(long, value_name = "FILE.key")]
    pub key: PathBuf,
    /// Where to write the roster
    #[arg(long, value_name = "FILE", default_value = "roster.toml")]
    pub out: PathBuf,
}

/// `veilsum roster add`
#[derive(Args, Debug)]
pub struct AddArgs {
    /// The roster; it is replaced
    #[arg(long, value_name = "FILE")]
    pub roster: PathBuf,
    /// A new site's card; repeat for more
    #[arg(long = "site", value_name = "FILE.card", num_args = 1.., required = true)]
    pub sites: Vec<PathBuf>,
    /// The coordinator's secret key file
    #[arg(long, value_name = "FILE.key")]
    pub key: PathBuf,
}

/// `veilsum roster show` and `verify`
#[derive(Args, Debug)]
pub struct ReadArgs {
    /// The roster
    #[arg(long, value_name = "FILE", default_value = "roster.toml")]
    pub roster: PathBuf,
}

/// Runs `veilsum roster`.
///
/// # Errors
/// A [`Failure`] that names the card, member or file at fault.
pub fn roster(args: &RosterArgs, json: bool) -> Result<(), Failure> {
    match &args.command {
        RosterCommand::Make(a) => make(a, json),
        RosterCommand::Add(a) => add(a, json),
        RosterCommand::Show(a) => {
            let roster = load_roster(&a.roster)?;
            super::print(json, &to_json(&roster), &to_text(&roster))
        }
        RosterCommand::Verify(a) => {
            let roster = load_roster(&a.roster)?;
            let text = format!(
                "{} is valid: {} sites, signed by {}\n\
                 fingerprint  {}  (compare it with the other operators by telephone)",
                a.roster.display(),
                roster.sites.len(),
                roster.coordinator.name,
                fingerprint(&roster.hash().0)
            );
            let value = json!({ "valid": true, "name": roster.name, "sites": roster.sites.len(),
                "hash": roster.hash().to_string(), "fingerprint": fingerprint(&roster.hash().0) });
            super::print(json, &value, &text)
        }
    }
}

fn make(args: &MakeArgs, json: bool) -> Result<(), Failure> {
    let (coordinator, intermediary) = (load_card(&args.coordinator)?, load_card(&args.intermediary)?);
    for (card, path) in [(&coordinator, &args.coordinator), (&intermediary, &args.intermediary)] {
        if card.address.is_empty() {
            return Err(Failure::input(
                format!("{}: the card of {} has no address, and the sites must reach it", path.display(), card.name),
                "make the card with `veilsum keygen --address HOST:PORT`",
            ));
        }
    }
    let roster = Roster {
        name: args.name.clone(),
        coordinator: member(coordinator),
        intermediary: member(intermediary),
        sites: sites(&args.sites)?,
    };
    let signed = sign(roster, &args.key)?;
    write_roster(&args.out, &signed)?;
    done(json, &args.out, &signed.roster, "send it to every party")
}

fn add(args: &AddArgs, json: bool) -> Result<(), Failure> {
    let mut roster = load_roster(&args.roster)?;
    roster.sites.extend(sites(&args.sites)?);
    let signed = sign(roster, &args.key)?;
    write_roster(&args.roster, &signed)?;
    let note = "send it to every party; plans made for the old roster are void: make a new one";
    done(json, &args.roster, &signed.roster, note)
}

fn sites(paths: &[PathBuf]) -> Result<Vec<Member>, Failure> {
    // The protocol would carry a site's address to everybody, and nobody dials a site.
    paths.iter().map(|p| Ok(Member { address: String::new(), ..member(load_card(p)?) })).collect()
}

fn member(card: Card) -> Member {
    Member { name: card.name, key: card.key, address: card.address }
}

fn sign(roster: Roster, key: &Path) -> Result<SignedRoster, Failure> {
    let (identity, _) = load_identity(key)?;
    roster.check().map_err(|e| {
        Failure::input(e, "correct the list of cards: 3 to 1,000 sites, and every party has its own name and key")
    })?;
    signer(&identity, &roster, key, "roster")?;
    Ok(roster.sign(&identity)?)
}

/// Only the coordinator signs, and it should hear so by name.
pub(crate) fn signer(identity: &Identity, roster: &Roster, key: &Path, what: &str) -> Result<(), Failure> {
    if identity.public() == roster.coordinator.key {
        return Ok(());
    }
    let coordinator = &roster.coordinator.name;
    Err(Failure::input(
        format!("{}: only {coordinator}, the coordinator, can sign the {what}, and this is not its key", key.display()),
        format!("run this with the key file of {coordinator}"),
    ))
}

fn done(json: bool, path: &Path, roster: &Roster, note: &str) -> Result<(), Failure> {
    let short = fingerprint(&roster.hash().0);
    let value = json!({ "written": path.display().to_string(), "sites": roster.sites.len(),
        "hash": roster.hash().to_string(), "fingerprint": short, "note": note });
    let text = format!(
        "{}: {} with {} sites\nfingerprint  {short}  (every operator compares it by telephone)\n{note}",
        path.display(),
        roster.name,
        roster.sites.len()
    );
    super::print(json, &value, &text)
}

fn to_json(roster: &Roster) -> Value {
    let member = |m: &Member| {
        let short = fingerprint(&m.key.0);
        json!({ "name": m.name, "address": m.address, "key": m.key.to_string(), "fingerprint": short })
    };
    json!({
        "name": roster.name,
        "hash": roster.hash().to_string(),
        "fingerprint": fingerprint(&roster.hash().0),
        "coordinator": member(&roster.coordinator),
        "intermediary": member(&roster.intermediary),
        "sites": roster.sites.iter().map(member).collect::<Vec<_>>(),
    })
}

fn to_text(roster: &Roster) -> String {
    let mut text = format!("{}\nfingerprint  {}\n\n", roster.name, fingerprint(&roster.hash().0));
    let width = roster.members().map(|m| m.name.len()).max().unwrap_or(0);
    let roles = ["coordinator", "intermediary"].into_iter().map(str::to_owned);
    let roles = roles.chain((0..roster.sites.len()).map(|i| format!("site {i}")));
    for (role, m) in roles.zip(roster.members()) {
        text += &format!("{role:<13} {:<width$}  key {}  {}\n", m.name, fingerprint(&m.key.0), m.address);
    }
    text
}
