//! `veilsum keygen`: a secret key file and the public card made from it.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use veilsum_proto::{identity::Identity, roster::check_name};
use zeroize::Zeroizing;

use crate::party::{head_of, state_of};
use crate::verb::Verb;
use veilsum_node::{
    documents::{Federations, check_address, fingerprint, load_identity, write_card, write_key, write_recovery},
    error::{Code, Failure},
    files::{Existing, FileError},
};

/// Make a party's secret key and its public card
#[derive(Args, Debug)]
pub(crate) struct KeygenArgs {
    /// Name of the party: letters, digits, `-`, `_`, `.`
    #[arg(long)]
    pub name: String,
    /// Where it listens; for a coordinator or intermediary only
    #[arg(long, value_name = "HOST:PORT")]
    pub address: Option<String>,
    /// Folder for NAME.key and NAME.card
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
    /// Replace an older key: whoever holds the old one is nobody then
    #[arg(long)]
    pub force: bool,
}

impl Verb for KeygenArgs {
    /// Makes a key and its card.
    ///
    /// # Errors
    /// A [`Failure`] where the name cannot be used or a file is there already.
    fn run(&self, json: bool) -> Result<(), Failure> {
        let args = self;
        let name = &args.name;
        check_name(name).map_err(|why| Failure::new(Code::Usage, why, "choose another --name"))?;
        let address = args.address.as_deref().unwrap_or_default();
        check_address(address).map_err(|f| Failure { code: Code::Usage, ..f })?;
        let (key_path, card_path) = (args.out.join(format!("{name}.key")), args.out.join(format!("{name}.card")));
        let existing = if args.force { Existing::Replace } else { Existing::Refuse };
        if !args.force {
            // Looked at first: a new key beside the card of an older one, or what would bring that back, would be a trap.
            [&key_path, &card_path, &key_path.with_extension("recovery")].into_iter().try_for_each(|p| absent(p))?;
        }
        without_past(&key_path)?;
        let identity = fresh()?;
        let recovery = made(&key_path, name, &identity, existing)?;
        write_card(&card_path, name, &identity, address)?;

        let short = fingerprint(&identity.public().0);
        let value = json!({
            "name": name,
            "address": address,
            "public_key": identity.public().to_string(),
            "fingerprint": short,
            "key_file": key_path.display().to_string(),
            "card_file": card_path.display().to_string(),
            "recovery_file": recovery.display().to_string(),
        });
        let text = format!(
            "secret key   {}  (stays here; mode 0600)\nrecovery     {}  (move it to a safe place now, off this machine)\n\
             public card  {}  (send it to the coordinator)\nfingerprint  {short}  (tell it by telephone)",
            key_path.display(),
            recovery.display(),
            card_path.display()
        );
        crate::verb::print(json, &value, &text)
    }
}

/// A new identity, with a secret of its own for digests, so that a later key need not keep this one's seed.
fn fresh() -> Result<Identity, Failure> {
    Ok(Identity::from_seed(&*seed()?).with_digests(seed()?))
}

/// The one that takes its place: the secret of digests stays, because the ledger knows rows by it.
pub(crate) fn next_identity(old: &Identity) -> Result<Identity, Failure> {
    Ok(Identity::from_seed(&*seed()?).with_digests(old.digest_secret()))
}

/// Writes what brings a party back whose key is lost, beside that key (mode 0600).
pub(crate) fn recovery_of(key: &Path, name: &str, identity: &Identity) -> Result<PathBuf, Failure> {
    let path = key.with_extension("recovery");
    write_recovery(&path, name, identity, &next_identity(identity)?)?;
    Ok(path)
}

/// Writes what brings a key back and then the key, so that no key is ever there without it: both or neither, unless this process is killed
/// in between.
fn made(key: &Path, name: &str, identity: &Identity, existing: Existing) -> Result<PathBuf, Failure> {
    let recovery = recovery_of(key, name, identity)?;
    write_key(key, name, identity, existing).inspect_err(|_| drop(std::fs::remove_file(&recovery)))?;
    Ok(recovery)
}

/// What was given away under a key is counted under it: another one in its place would begin the count anew.
fn without_past(key: &Path) -> Result<(), Failure> {
    let beside = [head_of(key), state_of(key, None), Federations::beside(key)];
    beside.into_iter().find(|path| path.exists()).map_or(Ok(()), |past| {
        Err(Failure::input(
            format!("{} is a key with a past: {} is beside it", key.display(), past.display()),
            "keep this key with its ledger; if it is lost, take its recovery file (veilsum rekey --recovery FILE); a key for another \
             party gets another name or folder",
        ))
    })
}

/// 32 bytes of the operating system's randomness.
fn seed() -> Result<Zeroizing<[u8; 32]>, Failure> {
    let mut seed = Zeroizing::new([0u8; 32]);
    getrandom::fill(&mut seed[..])
        .map_err(|e| Failure::new(Code::Internal, format!("the system has no randomness ({e})"), "try again later"))?;
    Ok(seed)
}

/// The identity of a party whose key is at `path`; it is made there (mode 0600) where there is none, and, unless it is a coordinator's,
/// what brings it back.
///
/// # Errors
/// A [`Failure`] where it cannot be written or read, or is another party's.
pub(crate) fn key_of(path: &Path, name: &str, coordinates: bool) -> Result<Identity, Failure> {
    if std::fs::symlink_metadata(path).is_err() {
        without_past(path)?;
        let identity = fresh()?;
        if coordinates {
            write_key(path, name, &identity, Existing::Refuse)?;
        } else {
            let recovery = made(path, name, &identity, Existing::Refuse)?;
            crate::tell!(
                "move {} to a safe place now, off this machine: it brings {name} back if its key is lost",
                recovery.display()
            );
        }
    }
    let (identity, of) = load_identity(path)?;
    if of == name {
        return Ok(identity);
    }
    let what = format!("{}: this is the key of {of}, and not of {name}", path.display());
    Err(Failure::input(what, "choose another --folder"))
}

fn absent(path: &Path) -> Result<(), Failure> {
    if std::fs::symlink_metadata(path).is_ok() {
        let exists = FileError::Exists { path: path.to_owned() };
        return Err(Failure { advice: "choose another --name or --out".into(), ..exists.into() });
    }
    Ok(())
}
