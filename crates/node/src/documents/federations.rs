//! `KEYFILE.federations`: the rosters that the owner of a key agreed to, the changes between them, and with which of them each data
//! set was used ([ROS-8] to [ROS-10], [ROS-13]).
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
    codec,
    history::{Rekey, SignedChange, Step, fork, rekeyed, step},
    identity::{Identity, PublicKey, Signature},
    roster::{Member, Roster},
    suite::Hash,
};

use super::change::ChangePart;
use super::digits;
use super::file::{locked, read_document, text_of};
use super::roster::{MemberPart, parts_of, roster_of};
use crate::{
    error::Failure,
    files::{self, Existing},
    release::Data,
};
use veilsum_federation::agreed::fingerprint;

const FORMAT: &str = "veilsum-federations/1";
/// Label under which the file is signed.
const LABEL: &str = "federations";
/// Bytes of the file: dozens of rosters of a thousand members, or tens of thousands of small ones.
const MAX_FILE: usize = 16 << 20;
/// Changes that one message tells; the rest is counted.
const TOLD: usize = 12;
const NEXT: &str = "put it back as it was; if it is lost, or the key is a new one, move it aside: every roster must then be compared by \
                    telephone anew";

/// What the owner of a key agreed to before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Standing {
    /// This very roster, and no other of its name since.
    Agreed,
    /// No roster of this federation.
    New,
    /// Another roster of this federation, which differs by keys that the keys before them vouch for, and by addresses alone.
    Rekeyed {
        /// That roster.
        from: Box<Roster>,
    },
    /// Another roster of this federation.
    Changed {
        /// That roster.
        from: Box<Roster>,
    },
}

/// What no operator can agree to ([ROS-13]).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Never {
    /// The coordinator signed two changes of one roster: the one that was kept, and the one that is offered.
    Fork(Box<[SignedChange; 2]>),
    /// The coordinator of this name of a federation has another key.
    Coordinator,
    /// This member has a key that it replaced.
    Replaced(String),
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
    /// Every change of a roster that was shown with one of them.
    pub changes: Vec<SignedChange>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(with = "digits")]
    signature: Signature,
    #[serde(default)]
    agreed: Vec<AgreedPart>,
    #[serde(default)]
    data: Vec<DataPart>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    change: Vec<ChangePart>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AgreedPart {
    name: String,
    #[serde(with = "digits")]
    roster: Hash,
    coordinator: MemberPart,
    intermediary: MemberPart,
    site: Vec<MemberPart>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DataPart {
    name: String,
    #[serde(with = "digits")]
    rows: Hash,
    federation: String,
    #[serde(with = "digits")]
    roster: Hash,
}

impl Federations {
    /// Where they are kept: beside the key.
    pub fn beside(key: &Path) -> PathBuf {
        key.with_added_extension("federations")
    }

    /// What the owner of this key agreed to; nothing where there is no file.
    ///
    /// # Errors
    /// A [`Failure`] where there is one that this key did not sign as it stands. It is left as it is.
    pub fn load(key: &Path, identity: &Identity) -> Result<Federations, Failure> {
        Self::load_of(key, &identity.public())
    }

    /// The same by the public key alone.
    ///
    /// # Errors
    /// As [`Federations::load`].
    pub fn load_of(key: &Path, owner: &PublicKey) -> Result<Federations, Failure> {
        let path = Self::beside(key);
        if fs::symlink_metadata(&path).is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound) {
            return Ok(Federations { path, agreed: Vec::new(), used: Vec::new(), changes: Vec::new() });
        }
        let damaged = || {
            let what = format!("{}: it is damaged, or another key signed it [ROS-8]", path.display());
            Failure::input(what, NEXT)
        };
        let File { signature, agreed, data, change } = read_document(&path, MAX_FILE, FORMAT, NEXT)?;
        let roster = |part: AgreedPart| {
            let roster = roster_of(part.name, (part.coordinator, part.intermediary, part.site));
            if roster.hash() == part.roster { Ok(roster) } else { Err(damaged()) }
        };
        let used = |DataPart { name, rows, federation, roster }| Use { data: Data { name, rows }, federation, roster };
        let all = Federations {
            agreed: agreed.into_iter().map(roster).collect::<Result<_, _>>()?,
            used: data.into_iter().map(used).collect(),
            changes: change.into_iter().map(SignedChange::from).collect(),
            path: path.clone(),
        };
        let signed = all.signed();
        let parts: Vec<&[u8]> = signed.iter().map(Vec::as_slice).collect();
        if !owner.verify(LABEL, &parts, &signature) {
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
        // A file from before there were any has no such part; uses have four each.
        if !self.changes.is_empty() {
            parts.push(codec::encode(&self.changes));
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

    /// Signs the file anew with the key that takes the place of `old` ([LED-9]); where it has signed it already, nothing is left to
    /// do.
    ///
    /// # Errors
    /// As [`Federations::load`] with the old key, and where it cannot be written.
    pub fn hand_over(key: &Path, old: &PublicKey, new: &Identity) -> Result<(), Failure> {
        let path = Self::beside(key);
        let _held = locked(&path)?;
        if !path.exists() || Self::load(key, new).is_ok() {
            return Ok(());
        }
        Self::load_of(key, old)?.write(new)
    }

    fn write(&self, identity: &Identity) -> Result<(), Failure> {
        let signed = self.signed();
        let parts: Vec<&[u8]> = signed.iter().map(Vec::as_slice).collect();
        let agreed = |roster: &Roster| {
            let (coordinator, intermediary, site) = parts_of(roster);
            AgreedPart { name: roster.name.clone(), roster: roster.hash(), coordinator, intermediary, site }
        };
        let data =
            |Use { data: Data { name, rows }, federation, roster }: Use| DataPart { name, rows, federation, roster };
        let file = File {
            signature: identity.sign(LABEL, &parts),
            agreed: self.agreed.iter().map(agreed).collect(),
            data: self.used.iter().cloned().map(data).collect(),
            change: self.changes.iter().map(ChangePart::from).collect(),
        };
        let comment = "# The rosters that this party agreed to, oldest first, and the data sets that it used with them.\n\
                       # Signed with the key beside it: a change by hand breaks the signature.\n";
        let text = text_of(comment, FORMAT, &file)?;
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

    /// The same for a roster with the history that leads to it and holds ([ROS-9], [ROS-13]).
    ///
    /// # Errors
    /// [`Never`] where it is one that cannot be agreed to, whoever says so.
    pub fn judge(&self, roster: &Roster, history: &[SignedChange]) -> Result<Standing, Never> {
        let Some(last) = self.last(&roster.name) else { return Ok(Standing::New) };
        if last.coordinator.key != roster.coordinator.key {
            return Err(Never::Coordinator);
        }
        if let Some((known, offered)) = fork(&self.changes, history) {
            return Err(Never::Fork(Box::new([known.clone(), offered.clone()])));
        }
        let replaced = |m: &&Member| self.rekeys(&roster.name).any(|rekey| rekey.old == m.key);
        if let Some(member) = roster.members().find(replaced) {
            return Err(Never::Replaced(member.name.clone()));
        }
        let from = Box::new(last.clone());
        Ok(match step(last, roster, history) {
            Step::Same => Standing::Agreed,
            Step::Rekeyed(_) => Standing::Rekeyed { from },
            Step::Other => Standing::Changed { from },
        })
    }

    /// Statements of new keys in this federation, of all changes that were shown.
    fn rekeys<'a>(&'a self, federation: &'a str) -> impl Iterator<Item = &'a Rekey> {
        self.changes.iter().flat_map(|signed| &signed.change.rekeys).filter(move |r| r.federation == federation)
    }

    /// Adds a roster that is agreed to, and the changes that it came with.
    pub fn take(&mut self, roster: &Roster, history: &[SignedChange]) {
        if self.last(&roster.name) != Some(roster) {
            self.agreed.push(roster.clone());
        }
        self.see(history);
    }

    /// Remembers changes that were shown, whether they are agreed to or not: another one in the place of one of them is a fork
    /// ([ROS-13]).
    pub fn see(&mut self, history: &[SignedChange]) {
        for signed in history {
            if !self.changes.contains(signed) {
                self.changes.push(signed.clone());
            }
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

/// What is another in `new` than in `old`, a sentence each; nothing but for the same roster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Changes(pub Vec<String>);

impl Changes {
    /// As [`Changes::between`], where new keys that the history states are told as such, and how they are stated.
    pub fn along(old: &Roster, new: &Roster, history: &[SignedChange]) -> Changes {
        let stated = rekeyed(old, history.iter().flat_map(|signed| &signed.change.rekeys));
        let fresh = stated.members().zip(old.members()).filter(|(now, was)| now.key != was.key);
        let rekeys = history.iter().flat_map(|signed| &signed.change.rekeys);
        let by_old = rekeyed(old, rekeys.filter(|rekey| !rekey.is_recovered()));
        let how = |now: &Member| match by_old.members().any(|member| member.key == now.key) {
            true => "signed with its old one",
            false => "from its recovery file, because the old one is lost: call its operator",
        };
        let mut told: Vec<String> = fresh.map(|(now, _)| format!("{} has a new key, {}", now.name, how(now))).collect();
        told.extend(Changes::between(&stated, new).0);
        Changes(told)
    }

    /// What a change from `old` to `new` means for whoever has agreed to `old`, a sentence for each kind ([REL-2] to [REL-5]).
    pub fn meaning(old: &Roster, new: &Roster, history: &[SignedChange]) -> Vec<String> {
        let stated = rekeyed(old, history.iter().flat_map(|signed| &signed.change.rekeys));
        let missing = |of: &Roster, from: &Roster| {
            let gone = of.sites.iter().filter(|site| !from.sites.iter().any(|other| other.key == site.key));
            gone.map(|site| site.name.clone()).collect::<Vec<_>>()
        };
        let (joins, leaves) = (missing(new, &stated), missing(&stated, new));
        let mut told = Vec::new();
        let both: Vec<String> = joins.iter().filter(|name| leaves.contains(name)).cloned().collect();
        if !both.is_empty() {
            told.push(format!(
                "{}: a key that its old one did not sign makes another site of it; what follows holds for both",
                some(&both)
            ));
        }
        if !joins.is_empty() {
            told.push(format!(
                "joining: {}. A block of sites that has answered stays as it is, so these rows enter totals only in a block of enough \
                 sites that have answered in none, or have declared their rows separate [REL-3]",
                some(&joins)
            ));
        }
        if !leaves.is_empty() {
            told.push(format!(
                "leaving: {}. Sites that have answered in one block with a site that left give no totals of these rows without it; they can \
                 declare other rows altogether (`veilsum ledger separate`), and join as new ones [REL-4]",
                some(&leaves)
            ));
        }
        let fresh = stated.members().zip(old.members()).filter(|(now, was)| now.key != was.key);
        let fresh: Vec<String> = fresh.map(|(now, _)| now.name.clone()).collect();
        if !fresh.is_empty() {
            told.push(format!(
                "a new key by its own statement: {}. Blocks, ledgers and budgets go on [LED-9]",
                some(&fresh)
            ));
        }
        if stated.intermediary.key != new.intermediary.key {
            let name = &new.intermediary.name;
            told.push(format!(
                "{name} sums the row counts; it must belong to another organisation than the coordinator"
            ));
        }
        told
    }

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

/// A few names, and how many more there are.
fn some(names: &[String]) -> String {
    let shown = &names[..names.len().min(TOLD)];
    match names.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn with_roles(roster: &Roster) -> impl Iterator<Item = (&'static str, &Member)> {
    ["coordinator", "intermediary"].into_iter().chain(std::iter::repeat("site")).zip(roster.members())
}

#[cfg(test)]
mod tests;
