//! Secret key files.

use std::path::Path;

use veilsum_proto::{
    identity::{Identity, from_hex},
    roster::check_name,
};
use zeroize::Zeroizing;

use crate::{
    carrier::Address,
    error::Failure,
    files::{self, Existing},
};

const FORMAT: &str = "veilsum-key/1";
/// Bytes of a key file: a few short lines.
const MAX_FILE: usize = 4 << 10;

/// Writes a secret key file (mode 0600).
///
/// # Errors
/// A [`Failure`] where the file is there already or cannot be written.
pub fn write_key(path: impl AsRef<Path>, name: &str, identity: &Identity, existing: Existing) -> Result<(), Failure> {
    check_name(name).map_err(|why| Failure::input(why, "give the party a name that is allowed"))?;
    if looks_like_a_seed(name) {
        let next = "give the party a shorter name";
        return Err(Failure::input("a name of 64 hexadecimal digits looks like a seed", next));
    }
    // Filled without growing, so that no unwiped copy of the seed is left behind.
    let mut text = Zeroizing::new(String::with_capacity(1024 + name.len()));
    let comment = "# The secret key of one party. Never send it to anybody; a copy of it is that party.\n";
    let parts = [comment, "format = \"", FORMAT, "\"\nname = \"", name, "\"\nseed = \""];
    parts.iter().for_each(|part| text.push_str(part));
    for digit in identity.seed().iter().flat_map(|byte| [byte >> 4, byte & 15]) {
        text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
    }
    text.push_str("\"\n");
    files::write_private(path, text.as_bytes(), existing)
}

/// Reads a secret key file that only its owner can read: the identity and its name.
///
/// # Errors
/// A [`Failure`] that names the file and never its contents.
pub fn load_identity(path: impl AsRef<Path>) -> Result<(Identity, String), Failure> {
    let path = path.as_ref();
    let bytes = files::read_private(path, MAX_FILE)?;
    parse(&bytes).map_err(|why| {
        let next = "take the file that was written when this party joined; if it is lost, let the coordinator invite the party anew";
        Failure::input(format!("{}: {why}", path.display()), next)
    })
}

fn looks_like_a_seed(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|b| b.is_ascii_hexdigit())
}

/// The file is a few lines of TOML, read by hand: a general parser would copy the seed and quote it in its errors.
fn parse(bytes: &[u8]) -> Result<(Identity, String), String> {
    const KEYS: [&str; 3] = ["format", "name", "seed"];
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8 text")?;
    let mut values = [None; KEYS.len()];
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let bad = || format!("line {}: not one of {} with a value in double quotes", at + 1, KEYS.join(", "));
        let (key, value) = line.split_once('=').ok_or_else(bad)?;
        let value = value.trim().strip_prefix('"').and_then(|v| v.strip_suffix('"')).ok_or_else(bad)?;
        let place = KEYS.iter().position(|known| *known == key.trim()).ok_or_else(bad)?;
        if values[place].replace(value).is_some() {
            return Err(format!("line {}: the same key a second time", at + 1));
        }
    }
    let [said, name, seed] = values;
    if said != Some(FORMAT) {
        return Err(format!("it does not say format = {FORMAT:?}"));
    }
    let name = name.ok_or("the name is missing")?.to_owned();
    let seed = secret(seed.ok_or("the seed is missing")?).ok_or("the seed is damaged")?;
    let identity = Identity::from_seed(&seed);
    // What stands there may be the seed, so it is not quoted, and never goes on to a log.
    if check_name(&name).is_err() || looks_like_a_seed(&name) {
        return Err("the name is none, or it is a seed in the wrong place".into());
    }
    Ok((identity, name))
}

fn secret(digits: &str) -> Option<Zeroizing<[u8; 32]>> {
    let bytes = Zeroizing::new(from_hex(digits)?);
    let mut secret = Zeroizing::new([0u8; 32]);
    (bytes.len() == secret.len()).then(|| secret.copy_from_slice(&bytes))?;
    Some(secret)
}

/// Whether `address` is empty or `HOST:PORT`.
///
/// # Errors
/// A [`Failure`] that quotes it.
pub fn check_address(address: &str) -> Result<(), Failure> {
    let usable = || address.len() <= 256 && address.parse::<Address>().is_ok_and(|address| address.port() > 0);
    if address.is_empty() || usable() {
        return Ok(());
    }
    let shown: String = address.chars().take(80).collect();
    let next = "give a host name or IP and a port, as in hub.example.org:7700";
    Err(Failure::input(format!("the address {shown:?} is not HOST:PORT"), next))
}
