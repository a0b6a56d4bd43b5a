//! Secret key files, the public cards made from them, and the statements of new keys.
//!
//! A card says under which name and key somebody wants to be on a roster; its self-signature proves that the key is
//! theirs, not whose they are. Operators compare fingerprints for that.

use std::path::Path;

use serde::{Deserialize, Serialize};
use veilsum_proto::{
    history::Rekey,
    identity::{Identity, PublicKey, Signature, from_hex},
    roster::check_name,
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
    // Filled without growing, so that no unwiped copy of the seed is left behind.
    let mut text = Zeroizing::new(String::with_capacity(512 + name.len()));
    text.push_str("# The secret key of one party. Never send it to anybody; a copy of it is that party.\n");
    text.push_str("format = \"veilsum-key/1\"\nname = \"");
    text.push_str(name);
    text.push_str("\"\nseed = \"");
    push_hex(&mut text, &identity.seed());
    if identity.digest_secret() != identity.seed() {
        text.push_str("\"\ndigests = \"");
        push_hex(&mut text, &identity.digest_secret());
    }
    text.push_str("\"\n");
    Ok(files::write_private(path, text.as_bytes(), existing)?)
}

fn push_hex(text: &mut String, secret: &[u8; 32]) {
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
    let (identity, name) = parse_key(&bytes).map_err(|why| {
        let next = "take the file that `veilsum keygen` wrote, or make a new key and send its card to the coordinator";
        Failure::input(format!("{}: {why}", path.display()), next)
    })?;
    // What stands there may be the seed, so it is not quoted, and never goes on to a card or a log.
    if check_name(&name).is_err() || looks_like_a_seed(&name) {
        let what = format!("{}: the name is none, or it is a seed in the wrong place", path.display());
        return Err(Failure::input(what, "put name and seed back as `veilsum keygen` wrote them, or make a new key"));
    }
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

/// A key file is three or four lines of TOML, read by hand: a general parser would copy the seed and quote it in its errors.
fn parse_key(bytes: &[u8]) -> Result<(Identity, String), String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8 text")?;
    let (mut format, mut name, mut seed, mut digests) = (None, None, None, None);
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let bad =
            || format!("line {}: not one of format, name, seed and digests with a value in double quotes", at + 1);
        let (key, value) = line.split_once('=').ok_or_else(bad)?;
        let value = value.trim().strip_prefix('"').and_then(|v| v.strip_suffix('"')).ok_or_else(bad)?;
        let place = match key.trim() {
            "format" => &mut format,
            "name" => &mut name,
            "seed" => &mut seed,
            "digests" => &mut digests,
            _ => return Err(bad()),
        };
        if place.replace(value).is_some() {
            return Err(format!("line {}: the same key a second time", at + 1));
        }
    }
    if format != Some(KEY_FORMAT) {
        return Err(format!("it does not say format = {KEY_FORMAT:?}"));
    }
    let name = name.ok_or("the name is missing")?.to_owned();
    let seed = secret(seed.ok_or("the seed is missing")?).ok_or("the seed is damaged")?;
    let identity = Identity::from_seed(&seed);
    let Some(digests) = digests else { return Ok((identity, name)) };
    let digests = secret(digests).ok_or("the secret of digests is damaged")?;
    Ok((identity.with_digests(digests), name))
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
