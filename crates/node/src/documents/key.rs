//! Secret key files, what takes their place when they are lost, the public cards made from them, and the statements of new keys.
//!
//! A card says under which name and key somebody wants to be on a roster; its self-signature proves that the key is
//! theirs, not whose they are. Operators compare fingerprints for that.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use veilsum_proto::{
    history::{Rekey, rekeyed},
    identity::{Identity, PublicKey, Signature, from_hex},
    roster::{Roster, check_name},
};
use zeroize::Zeroizing;

use super::change::RekeyPart;
use super::digits;
use super::file::{read_document, refused, text_of};
use crate::{
    error::Failure,
    files::{self, Existing},
};

const KEY_FORMAT: &str = "veilsum-key/1";
const RECOVERY_FORMAT: &str = "veilsum-recovery/1";
const REKEY_FORMAT: &str = "veilsum-rekey/1";
const CARD_FORMAT: &str = "veilsum-card/1";
/// Label under which a card is signed.
const LABEL: &str = "card";
/// Bytes of a key file or a card: a few short lines.
const MAX_FILE: usize = 4 << 10;

/// A public card whose self-signature was checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Card {
    /// The party's name.
    pub name: String,
    /// Its identity.
    pub key: PublicKey,
    /// `host:port` where a coordinator or intermediary listens; empty for a site.
    pub address: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CardFile {
    name: String,
    #[serde(with = "digits")]
    key: PublicKey,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    address: String,
    #[serde(with = "digits")]
    signature: Signature,
}

/// Writes a secret key file (mode 0600).
///
/// # Errors
/// A [`Failure`] where the file is there already or cannot be written.
pub fn write_key(path: impl AsRef<Path>, name: &str, identity: &Identity, existing: Existing) -> Result<(), Failure> {
    check_name(name).map_err(|why| Failure::input(why, "choose another --name"))?;
    if looks_like_a_seed(name) {
        return Err(Failure::input("a name of 64 hexadecimal digits looks like a seed", "choose another --name"));
    }
    let comment = "# The secret key of one party. Never send it to anybody; a copy of it is that party.\n";
    let text = secrets(comment, KEY_FORMAT, name, identity, &[]);
    Ok(files::write_private(path, text.as_bytes(), existing)?)
}

/// Name and secrets, and what else is known of them. Filled without growing, so that no unwiped copy of the seed is left behind.
fn secrets(comment: &str, format: &str, name: &str, of: &Identity, more: &[(&str, &[u8])]) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::with_capacity(1024 + name.len()));
    [comment, "format = \"", format, "\"\nname = \"", name].iter().for_each(|part| text.push_str(part));
    let (seed, digests) = (of.seed(), of.digest_secret());
    let own = [("seed", &seed[..]), ("digests", &digests[..])];
    // A key from before there was a secret of its own for digests has none.
    for (key, bytes) in own.into_iter().take(if digests == seed { 1 } else { 2 }).chain(more.iter().copied()) {
        ["\"\n", key, " = \""].iter().for_each(|part| text.push_str(part));
        push_hex(&mut text, bytes);
    }
    text.push_str("\"\n");
    text
}

/// What makes a party of a federation of somebody whose key is lost ([ROS-11]).
pub struct Recovery {
    /// The party's name.
    pub name: String,
    /// The key that it is for.
    pub old: PublicKey,
    /// By that key, beforehand.
    pub by_old: Signature,
    /// The one that takes its place.
    pub new: Arc<Identity>,
}

/// Writes a recovery file (mode 0600): a next identity, and that the party's own has named it. Without a ledger it answers nothing.
///
/// # Errors
/// A [`Failure`] where it cannot be written.
pub fn write_recovery(path: impl AsRef<Path>, name: &str, old: &Identity, new: &Identity) -> Result<(), Failure> {
    let comment =
        "# What brings one party back that has lost its key: veilsum rekey --recovery FILE. Keep it on no machine.\n";
    let (key, by_old) = (old.public(), Rekey::recovery(old, &new.public()).to_bytes());
    let text = secrets(comment, RECOVERY_FORMAT, name, new, &[("old", &key.0), ("by_old", &by_old)]);
    Ok(files::write_private(path, text.as_bytes(), Existing::Replace)?)
}

/// Reads a recovery file that only its owner can read, and checks that the lost key has signed it.
///
/// # Errors
/// A [`Failure`] that names the file and never its contents.
pub fn load_recovery(path: impl AsRef<Path>) -> Result<Recovery, Failure> {
    let path = path.as_ref();
    let next = "take the file as `veilsum join` or `veilsum keygen` wrote it; without it the party is taken out, and joins anew with other rows";
    let bytes = files::read_private(path, MAX_FILE)?;
    let read = parse_secrets(&bytes, RECOVERY_FORMAT).and_then(|Secrets { name, identity, old, by_old }| {
        let damaged = || "the lost key has not signed it".to_owned();
        let bytes = |digits: Option<&str>| digits.and_then(from_hex).ok_or_else(damaged);
        let old = PublicKey(bytes(old)?.try_into().map_err(|_| damaged())?);
        let by_old = Signature::from_bytes(&bytes(by_old)?.try_into().map_err(|_| damaged())?);
        let recovery = Recovery { name, old, by_old, new: Arc::new(identity) };
        let holds = Rekey::recovered(&recovery.name, &recovery.name, (old, by_old), &recovery.new).verify();
        holds.map(|()| recovery).map_err(|_| damaged())
    });
    read.map_err(|why| Failure::input(format!("{}: {why}", path.display()), next))
}

fn push_hex(text: &mut String, secret: &[u8]) {
    for digit in secret.iter().flat_map(|byte| [byte >> 4, byte & 15]) {
        text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
    }
}

/// Reads a secret key file that only its owner can read: the identity and its name.
///
/// # Errors
/// A [`Failure`] that names the file and never its contents.
pub fn load_identity(path: impl AsRef<Path>) -> Result<(Identity, String), Failure> {
    let path = path.as_ref();
    let bytes = match files::read_private(path, MAX_FILE) {
        Ok(bytes) if !is_card(&bytes) => bytes,
        // It is open to others because it is no secret, so that is not what is wrong with it.
        Err(e) if !files::read_limited(path, MAX_FILE).map(Zeroizing::new).is_ok_and(|bytes| is_card(&bytes)) => {
            return Err(e.into());
        }
        _ => {
            let next = "name the file with the secret key, which `veilsum keygen` wrote beside the card (NAME.key)";
            return Err(Failure::input(format!("{}: this is a public card, and no secret key", path.display()), next));
        }
    };
    let Secrets { name, identity, .. } = parse_secrets(&bytes, KEY_FORMAT).map_err(|why| {
        let next = "take the file that `veilsum keygen` wrote; if it is lost, take its recovery file: veilsum rekey --recovery FILE";
        Failure::input(format!("{}: {why}", path.display()), next)
    })?;
    Ok((identity, name))
}

fn is_card(bytes: &[u8]) -> bool {
    says_format(bytes, CARD_FORMAT)
}

fn says_format(bytes: &[u8], format: &str) -> bool {
    let line = format!("format = {format:?}");
    bytes.split(|b| *b == b'\n').any(|found| found.trim_ascii() == line.as_bytes())
}

fn looks_like_a_seed(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|b| b.is_ascii_hexdigit())
}

/// What a file of secrets says.
struct Secrets<'a> {
    name: String,
    identity: Identity,
    old: Option<&'a str>,
    by_old: Option<&'a str>,
}

/// A file of secrets is a few lines of TOML, read by hand: a general parser would copy the seed and quote it in its errors.
fn parse_secrets<'a>(bytes: &'a [u8], format: &str) -> Result<Secrets<'a>, String> {
    const KEYS: [&str; 6] = ["format", "name", "seed", "digests", "old", "by_old"];
    let keys = if format == KEY_FORMAT { &KEYS[..4] } else { &KEYS };
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8 text")?;
    let mut values = [None; KEYS.len()];
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let bad = || format!("line {}: not one of {} with a value in double quotes", at + 1, keys.join(", "));
        let (key, value) = line.split_once('=').ok_or_else(bad)?;
        let value = value.trim().strip_prefix('"').and_then(|v| v.strip_suffix('"')).ok_or_else(bad)?;
        let place = keys.iter().position(|known| *known == key.trim()).ok_or_else(bad)?;
        if values[place].replace(value).is_some() {
            return Err(format!("line {}: the same key a second time", at + 1));
        }
    }
    let [said, name, seed, digests, old, by_old] = values;
    if said != Some(format) {
        return Err(format!("it does not say format = {format:?}"));
    }
    let name = name.ok_or("the name is missing")?.to_owned();
    let seed = secret(seed.ok_or("the seed is missing")?).ok_or("the seed is damaged")?;
    let mut identity = Identity::from_seed(&seed);
    if let Some(digests) = digests {
        identity = identity.with_digests(secret(digests).ok_or("the secret of digests is damaged")?);
    }
    // What stands there may be the seed, so it is not quoted, and never goes on to a card or a log.
    if check_name(&name).is_err() || looks_like_a_seed(&name) {
        return Err("the name is none, or it is a seed in the wrong place".into());
    }
    Ok(Secrets { name, identity, old, by_old })
}

fn secret(digits: &str) -> Option<Zeroizing<[u8; 32]>> {
    let bytes = Zeroizing::new(from_hex(digits)?);
    let mut secret = Zeroizing::new([0u8; 32]);
    (bytes.len() == secret.len()).then(|| secret.copy_from_slice(&bytes))?;
    Some(secret)
}

/// Writes a party's public card. Anybody may read it.
///
/// # Errors
/// A [`Failure`] where name or address cannot be used, or the file cannot be written.
pub fn write_card(path: impl AsRef<Path>, name: &str, identity: &Identity, address: &str) -> Result<(), Failure> {
    check_name(name).map_err(|why| Failure::input(why, "choose another --name"))?;
    check_address(address)?;
    let key = identity.public();
    let signature = identity.sign(LABEL, &[name.as_bytes(), &key.0, address.as_bytes()]);
    let file = CardFile { name: name.into(), key, address: address.into(), signature };
    let comment = "# A public card: send it to the coordinator, and compare the fingerprint by telephone.\n";
    Ok(files::write_atomic(path, text_of(comment, CARD_FORMAT, &file)?.as_bytes())?)
}

/// Reads a card and checks that whoever made it holds the key.
///
/// # Errors
/// A [`Failure`] that names the file.
pub fn load_card(path: impl AsRef<Path>) -> Result<Card, Failure> {
    let path = path.as_ref();
    let next = "ask its owner to make it again with `veilsum keygen`";
    let bytes = Zeroizing::new(files::read_limited(path, MAX_FILE)?);
    if says_format(&bytes, KEY_FORMAT) {
        return Err(Failure::input(
            format!("{}: this is a SECRET key, and no card; whoever has a copy can act as its owner", path.display()),
            "if it is your own, name the card beside it (NAME.card); if somebody sent it, others know it now: tell \
             its owner to make another key (`veilsum keygen`) and to send its card alone",
        ));
    }
    let CardFile { name, key, address, signature } = read_document(path, MAX_FILE, CARD_FORMAT, next)?;
    let bad = |why: String| Failure::input(format!("{}: {why}", path.display()), next);
    check_name(&name).map_err(bad)?;
    check_address(&address).map_err(|f| bad(f.message))?;
    if !key.verify(LABEL, &[name.as_bytes(), &key.0, address.as_bytes()], &signature) {
        return Err(bad(format!("the card of {name} was changed after it was signed with its own key")));
    }
    Ok(Card { name, key, address })
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RekeyFile {
    rekey: RekeyPart,
}

/// Writes a statement of a new key, which is public.
///
/// # Errors
/// A [`Failure`] where the file cannot be written.
pub fn write_rekey(path: impl AsRef<Path>, rekey: &Rekey) -> Result<(), Failure> {
    let file = RekeyFile { rekey: RekeyPart(rekey.clone()) };
    let comment = "# A party has a new key, and its old one says so: send it to the coordinator.\n";
    Ok(files::write_atomic(path, text_of(comment, REKEY_FORMAT, &file)?.as_bytes())?)
}

/// Reads a statement of a new key and checks both signatures ([ROS-11]).
///
/// # Errors
/// A [`Failure`] that names the file.
pub fn load_rekey(path: impl AsRef<Path>) -> Result<Rekey, Failure> {
    let path = path.as_ref();
    let next = "ask its party to make it again with `veilsum rekey`";
    let RekeyFile { rekey: RekeyPart(rekey) } = read_document(path, MAX_FILE, REKEY_FORMAT, next)?;
    rekey.verify().map_err(|e| refused(path, &e, next))?;
    Ok(rekey)
}

/// Where a party's statement of its new key for this federation is: beside the key.
pub fn statement_beside(key: &Path, federation: &str) -> PathBuf {
    key.with_extension(format!("{federation}.rekey"))
}

/// The roster as it is with the key that this party stated, which may not be on it yet.
pub fn as_stated(roster: Roster, key: &Path, identity: &Identity) -> Roster {
    let stated = load_rekey(statement_beside(key, &roster.name)).ok();
    let own = stated.filter(|rekey| rekey.new == identity.public() && rekey.federation == roster.name);
    own.map_or_else(|| roster.clone(), |rekey| rekeyed(&roster, [&rekey]))
}

/// Whether `address` is empty or `HOST:PORT`.
///
/// # Errors
/// A [`Failure`] that quotes it.
pub fn check_address(address: &str) -> Result<(), Failure> {
    let usable = |(host, port): (&str, &str)| {
        !host.is_empty()
            && host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:[]".contains(&b))
            && port.parse::<u16>().is_ok_and(|p| p > 0)
    };
    if address.is_empty() || (address.len() <= 256 && address.rsplit_once(':').is_some_and(usable)) {
        return Ok(());
    }
    let shown: String = address.chars().take(80).collect();
    Err(Failure::input(
        format!("the address {shown:?} is not HOST:PORT"),
        "give a host name or IP and a port, as in hub.example.org:7700",
    ))
}
