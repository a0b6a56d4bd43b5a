//! `KEYFILE.federations`: the rosters that the owner of a key agreed to, and with which of them each data set was used
//! ([ROS-8] to [ROS-10]).
//!
//! A roster is signed with a key that stands in it, so its signature does not say whose roster it is: anybody can sign one with
//! everybody's names. What a site compared with others once is therefore kept, whole, so that a later roster can be held
//! against it member by member. The file only grows, and is signed with the key that it stands beside.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use veilsum_proto::{
    identity::{Identity, Signature},
    roster::{Member, Roster},
    suite::Hash,
};

use super::file::{hash_of, hex, locked, read_document, to_toml};
use super::roster::MemberPart;
use crate::{
    error::Failure,
    files::{self, Existing},
    release::Data,
};
use veilsum_federation::agreed::fingerprint;
use veilsum_proto::identity::to_hex;

const FORMAT: &str = "veilsum-federations/1";
/// Label under which the file is signed.
const LABEL: &str = "federations";
/// Bytes of the file: dozens of rosters of a thousand members, or tens of thousands of small ones.
const MAX_FILE: usize = 16 << 20;
/// Changes that one message tells; the rest is counted.
const TOLD: usize = 12;
const NEXT: &str = "put it back as it was; if it is lost, or the key is a new one, move it aside: every roster must then be compared by \
                    telephone anew";

/// Hexadecimal digits of a roster's fingerprint as a person gives them: the whole of it, or its first 32 digits at least.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// Fewest digits: 128 bits. Whoever makes rosters can search for one that begins with the same 16 digits as another.
    pub const DIGITS: usize = 32;

    /// From digits, with or without dashes, colons and spaces between them ([ROS-8]).
    ///
    /// # Errors
    /// A sentence that says what is wrong with them.
    pub fn parse(text: &str) -> Result<Fingerprint, String> {
        let digits: String = text.chars().filter(|c| !"-: \t\r\n".contains(*c)).collect::<String>().to_lowercase();
        if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err("a fingerprint has digits and the letters a to f, with or without dashes".into());
        }
        match digits.len() {
            n if n < Self::DIGITS => Err(format!(
                "{n} digits, and at least {} are needed: a roster that begins with the same few digits can be searched for",
                Self::DIGITS
            )),
            n if n > 64 => Err(format!("{n} digits, and a whole fingerprint has 64")),
            _ => Ok(Fingerprint(digits)),
        }
    }

    /// Whether the roster's hash begins with these digits.
    pub fn fits(&self, roster: &Roster) -> bool {
        roster.hash().to_string().starts_with(&self.0)
    }
}

/// What the owner of a key agreed to before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Standing {
    /// This very roster, and no other of its name since.
    Agreed,
    /// No roster of this federation.
    New,
    /// Another roster of this federation.
    Changed {
        /// That roster.
        from: Box<Roster>,
    },
}

/// A data set that was used with a federation.
#[derive(Clone, PartialEq, Eq)]
pub struct Use {
    /// Its name and rows.
    pub data: Data,
    /// Name of the federation.
    pub federation: String,
    /// Its roster then.
    pub roster: Hash,
}

/// The file beside a key.
#[derive(Clone, PartialEq, Eq)]
pub struct Federations {
    path: PathBuf,
    /// Every roster that was agreed to, oldest first.
    pub agreed: Vec<Roster>,
    /// Every data set with every federation that it was used with, or may be used with.
    pub used: Vec<Use>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: String,
    signature: String,
    #[serde(default)]
    agreed: Vec<AgreedPart>,
    #[serde(default)]
    data: Vec<DataPart>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AgreedPart {
    name: String,
    roster: String,
    coordinator: MemberPart,
    intermediary: MemberPart,
    site: Vec<MemberPart>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DataPart {
    name: String,
    rows: String,
    federation: String,
    roster: String,
}

impl Federations {
    /// Where they are kept: beside the key.
    pub fn beside(key: &Path) -> PathBuf {
        let mut name = key.as_os_str().to_owned();
        name.push(".federations");
        PathBuf::from(name)
    }

    /// What the owner of this key agreed to; nothing where there is no file.
    ///
    /// # Errors
    /// A [`Failure`] where there is one that this key did not sign as it stands. It is left as it is.
    pub fn load(key: &Path, identity: &Identity) -> Result<Federations, Failure> {
        let path = Self::beside(key);
        if fs::symlink_metadata(&path).is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound) {
            return Ok(Federations { path, agreed: Vec::new(), used: Vec::new() });
        }
        let damaged = || {
            let what = format!("{}: it is damaged, or another key signed it [ROS-8]", path.display());
            Failure::input(what, NEXT)
        };
        let File { format: _, signature, agreed, data } = read_document(&path, MAX_FILE, FORMAT, NEXT)?;
        let signature = Signature::from_bytes(&hex(&path, "signature", &signature).map_err(again)?);
        let roster = |part: AgreedPart| -> Result<Roster, Failure> {
            let roster = Roster {
                name: part.name,
                coordinator: part.coordinator.into_member(&path)?,
                intermediary: part.intermediary.into_member(&path)?,
                sites: part.site.into_iter().map(|m| m.into_member(&path)).collect::<Result<_, _>>()?,
            };
            if roster.hash().to_string() == part.roster { Ok(roster) } else { Err(damaged()) }
        };
        let used = |part: DataPart| -> Result<Use, Failure> {
            let data = Data { name: part.name, rows: hash_of(&path, "rows", &part.rows)? };
            Ok(Use { data, federation: part.federation, roster: hash_of(&path, "roster", &part.roster)? })
        };
        let all = Federations {
            agreed: agreed.into_iter().map(roster).collect::<Result<_, _>>().map_err(again)?,
            used: data.into_iter().map(used).collect::<Result<_, _>>().map_err(again)?,
            path: path.clone(),
        };
        let signed = all.signed();
        let parts: Vec<&[u8]> = signed.iter().map(Vec::as_slice).collect();
        if !identity.public().verify(LABEL, &parts, &signature) {
            return Err(damaged());
        }
        Ok(all)
    }

    /// The meaning of the file, in parts.
    fn signed(&self) -> Vec<Vec<u8>> {
        let mut parts = vec![self.agreed.iter().flat_map(|roster| roster.hash().0).collect()];
        for Use { data, federation, roster } in &self.used {
            let texts = [&data.name, federation].map(|text| text.as_bytes().to_vec());
            parts.extend(texts.into_iter().chain([data.rows, *roster].map(|hash| hash.0.to_vec())));
        }
        parts
    }

    /// Changes the file, which no other process changes meanwhile (mode 0600, on the disk when this returns).
    ///
    /// # Errors
    /// As [`Federations::load`], those of `change`, and where it cannot be written.
    pub fn change(
        key: &Path,
        identity: &Identity,
        change: impl FnOnce(&mut Federations) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let _held = locked(&Self::beside(key))?;
        let before = Self::load(key, identity)?;
        let mut after = before.clone();
        change(&mut after)?;
        if before == after { Ok(()) } else { after.write(identity) }
    }

    fn write(&self, identity: &Identity) -> Result<(), Failure> {
        let signed = self.signed();
        let parts: Vec<&[u8]> = signed.iter().map(Vec::as_slice).collect();
        let agreed = |roster: &Roster| AgreedPart {
            name: roster.name.clone(),
            roster: roster.hash().to_string(),
            coordinator: MemberPart::from_member(&roster.coordinator),
            intermediary: MemberPart::from_member(&roster.intermediary),
            site: roster.sites.iter().map(MemberPart::from_member).collect(),
        };
        let data = |used: &Use| DataPart {
            name: used.data.name.clone(),
            rows: used.data.rows.to_string(),
            federation: used.federation.clone(),
            roster: used.roster.to_string(),
        };
        let file = File {
            format: FORMAT.into(),
            signature: to_hex(&identity.sign(LABEL, &parts).to_bytes()),
            agreed: self.agreed.iter().map(agreed).collect(),
            data: self.used.iter().map(data).collect(),
        };
        let comment = "# The rosters that this party agreed to, oldest first, and the data sets that it used with them.\n\
                       # Signed with the key beside it: a change by hand breaks the signature.\n";
        let text = to_toml(comment, &file)?;
        if text.len() > MAX_FILE {
            let what = format!("{} would be longer than {MAX_FILE} bytes", self.path.display());
            return Err(Failure::input(
                what,
                "use the rosters that are in it: this party has agreed to as many as it can remember",
            ));
        }
        Ok(files::write_private(&self.path, text.as_bytes(), Existing::Replace)?)
    }

    /// The roster of a federation of this name that was agreed to last.
    pub fn last(&self, name: &str) -> Option<&Roster> {
        self.agreed.iter().rev().find(|agreed| agreed.name == name)
    }

    /// How this roster stands to what was agreed to before ([ROS-9]).
    pub fn standing(&self, roster: &Roster) -> Standing {
        match self.last(&roster.name) {
            None => Standing::New,
            Some(last) if last == roster => Standing::Agreed,
            Some(last) => Standing::Changed { from: Box::new(last.clone()) },
        }
    }

    /// The last use of this data set with another federation that none with this one matches ([ROS-10]). It is the same data
    /// set where the name is, or the rows are, as in the ledger's account; the rows of one federation under the name that
    /// another's have are still the first one's.
    pub fn elsewhere(&self, federation: &str, data: &Data) -> Option<&Use> {
        let same = |a: &Data, b: &Data| a.name == b.name || a.rows == b.rows;
        let here = |of: &Data| self.used.iter().any(|used| used.federation == federation && same(&used.data, of));
        self.used.iter().rev().find(|used| used.federation != federation && same(&used.data, data) && !here(&used.data))
    }

    /// Writes down that this data set was used, or may be used, with this roster.
    pub fn use_with(&mut self, roster: &Roster, data: &Data) {
        let data = data.clone();
        let used = Use { data, federation: roster.name.clone(), roster: roster.hash() };
        if !self.used.contains(&used) {
            self.used.push(used);
        }
    }
}

/// Whoever damaged the file, no coordinator sent it.
fn again(failure: Failure) -> Failure {
    Failure { advice: NEXT.into(), ..failure }
}

/// What is another in `new` than in `old`, a sentence each; nothing but for the same roster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Changes(pub Vec<String>);

impl Changes {
    /// Between two rosters of one federation: who is new or gone, and whose key, name, role or address is another.
    pub fn between(old: &Roster, new: &Roster) -> Changes {
        let mut told = Vec::new();
        for (role, was) in with_roles(old) {
            let by_name = with_roles(new).find(|(_, m)| m.name == was.name);
            let by_key = || with_roles(new).find(|(_, m)| m.key == was.key);
            let Some((now_role, now)) = by_name.or_else(by_key) else {
                told.push(format!("{} ({role}) is gone", was.name));
                continue;
            };
            if now.name != was.name {
                told.push(format!("{} ({role}) is called {} now", was.name, now.name));
            }
            if now_role != role {
                told.push(format!("{} was {role} and is {now_role}", now.name));
            }
            if now.key != was.key {
                let (was, is) = (fingerprint(&was.key.0), fingerprint(&now.key.0));
                told.push(format!("{} ({now_role}) has another key: {is}, which was {was}", now.name));
            }
            if now.address != was.address {
                // An address may hold any character.
                told.push(format!("{} has another address: {:?}, which was {:?}", now.name, now.address, was.address));
            }
        }
        for (role, now) in with_roles(new) {
            if !old.members().any(|was| was.name == now.name || was.key == now.key) {
                told.push(format!("{} ({role}) is new, with the key {}", now.name, fingerprint(&now.key.0)));
            }
        }
        if told.is_empty() && old != new {
            told.push("the sites stand in another order".into());
        }
        Changes(told)
    }
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.0[..self.0.len().min(TOLD)];
        f.write_str(&shown.join("; "))?;
        match self.0.len() - shown.len() {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

fn with_roles(roster: &Roster) -> impl Iterator<Item = (&'static str, &Member)> {
    ["coordinator", "intermediary"].into_iter().chain(std::iter::repeat("site")).zip(roster.members())
}

#[cfg(test)]
mod tests;
