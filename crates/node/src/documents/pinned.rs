//! `pinned.toml`, beside a party's key: the roster that it agreed to, the digest of the policy under which it took part last, and how far it has come in joining
//! ([ROS-8], [ROS-9], [JOI-5]).
//!
//! A roster is signed with a key that stands in it, so its signature does not say whose roster it is: anybody can sign one with
//! everybody's names. The one that a party compared with others is therefore kept, whole, so that every other one can be held against it
//! member by member.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use veilsum_federation::agreed::fingerprint;
use veilsum_proto::{
    joining::Nonce,
    roster::{Member, Roster},
    suite::Hash,
};

use super::file::{document, read_text, text_of};
use crate::{
    error::{Code, Failure},
    files::{self, Existing},
};

const FORMAT: &str = "veilsum-pinned/1";
/// Bytes of the file: a roster of a thousand members.
const MAX_FILE: usize = 1 << 20;
/// Changes that one message tells; the rest is counted.
const TOLD: usize = 12;
/// Attempts to join that are kept: more parties than anybody tries in one folder.
const MOST_BEGUN: usize = 8;
const NEXT: &str =
    "put it back as it was; if it is lost, move it aside: the roster must then be compared by telephone anew";

/// How a roster stands to what the party agreed to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Standing {
    /// It is this very roster.
    Agreed,
    /// It has agreed to none.
    New,
    /// To this other roster of this federation.
    Changed(Box<Roster>),
}

/// One attempt to join. It has no `Debug`: until it is shown, its number is a secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Begun {
    /// The hash of the token.
    pub invitation: Hash,
    /// What this party drew.
    pub nonce: Nonce,
    /// What the coordinator answered, once it did.
    pub answer: Option<Nonce>,
}

impl Begun {
    /// The attempt with this invitation that was begun before with the key at this place; else one that begins with `fresh`, on the disk
    /// when this returns.
    ///
    /// # Errors
    /// A [`Failure`] where it cannot be read or written.
    pub fn take_up(key: &Path, invitation: Hash, fresh: Nonce) -> Result<Begun, Failure> {
        if let Some(found) = Pinned::load(key)?.joining.into_iter().find(|found| found.invitation == invitation) {
            return Ok(found);
        }
        let begun = Begun { invitation, nonce: fresh, answer: None };
        Pinned::change(key, |pinned| {
            pinned.joining.drain(..(pinned.joining.len() + 1).saturating_sub(MOST_BEGUN));
            pinned.joining.push(begun.clone());
        })?;
        Ok(begun)
    }

    /// Keeps the coordinator's answer, before anything is shown to it. Another answer than before is none ([JOI-5]).
    ///
    /// # Errors
    /// A [`Failure`] where it is another, or cannot be written.
    pub fn answered(&mut self, key: &Path, answer: Nonce) -> Result<(), Failure> {
        match self.answer {
            Some(before) if before == answer => Ok(()),
            Some(_) => {
                let what = "the coordinator answers the same invitation with another number than before [JOI-5]";
                let next = "ask its operator by telephone for a new invitation; somebody may stand between you";
                Err(Failure::new(Code::Peer, what, next))
            }
            None => {
                self.answer = Some(answer);
                Pinned::change(key, |pinned| {
                    let own = pinned.joining.iter_mut().find(|begun| begun.invitation == self.invitation);
                    own.into_iter().for_each(|begun| begun.clone_from(self));
                })
            }
        }
    }
}

/// What a party keeps beside its key.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Pinned {
    /// The roster that it agreed to.
    pub roster: Option<Roster>,
    /// Digest of the policy under which it took part last.
    pub policy: Option<Hash>,
    /// The invitations that were taken up last in this folder, by whichever party.
    pub joining: Vec<Begun>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    policy: Option<Hash>,
    roster: Option<RosterPart>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    joining: Vec<Begun>,
}

#[derive(Serialize, Deserialize)]
struct RosterPart {
    hash: Hash,
    #[serde(flatten)]
    roster: Roster,
}

impl Pinned {
    /// Where it is kept.
    pub fn beside(key: &Path) -> PathBuf {
        key.with_file_name("pinned.toml")
    }

    /// What the owner of this key keeps; nothing where there is no file.
    ///
    /// # Errors
    /// A [`Failure`] where there is one that cannot be used. It is left as it is.
    pub fn load(key: &Path) -> Result<Pinned, Failure> {
        let path = Self::beside(key);
        if std::fs::symlink_metadata(&path).is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound) {
            return Ok(Pinned::default());
        }
        let File { policy, joining, roster } = document(&path, &read_text(&path, MAX_FILE)?, FORMAT, NEXT)?;
        let roster = roster.map(|part| {
            let damaged = || Failure::input(format!("{}: it is damaged [ROS-8]", path.display()), NEXT);
            if part.roster.hash() == part.hash { Ok(part.roster) } else { Err(damaged()) }
        });
        Ok(Pinned { policy, joining, roster: roster.transpose()? })
    }

    /// Changes the file (mode 0600, on the disk when this returns).
    ///
    /// # Errors
    /// As [`Pinned::load`], and where it cannot be written.
    pub fn change(key: &Path, change: impl FnOnce(&mut Pinned)) -> Result<(), Failure> {
        let before = Self::load(key)?;
        let mut after = before.clone();
        change(&mut after);
        if before == after {
            return Ok(());
        }
        if after == Pinned::default() {
            let failed = |e| files::unwritten(&e, format!("pinned.toml cannot be removed ({e})"), "remove it");
            return std::fs::remove_file(Self::beside(key)).map_err(failed);
        }
        let part = |roster: Roster| RosterPart { hash: roster.hash(), roster };
        let file = File { policy: after.policy, joining: after.joining, roster: after.roster.map(part) };
        let comment =
            "# The roster that this party agreed to, and the digest of the policy under which it took part last.\n";
        files::write_private(Self::beside(key), text_of(comment, FORMAT, &file)?.as_bytes(), Existing::Replace)
    }
}

/// What is another in `new` than in `old`, a sentence each; nothing but for the same roster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Changes(pub Vec<String>);

impl Changes {
    /// What a change from `old` to `new` means for whoever has agreed to `old`, a sentence for each kind ([POL-10]).
    pub fn meaning(old: &Roster, new: &Roster) -> Vec<String> {
        let missing = |of: &Roster, from: &Roster| {
            let gone = of.sites.iter().filter(|site| !from.sites.iter().any(|other| other.key == site.key));
            gone.map(|site| site.name.clone()).collect::<Vec<_>>()
        };
        let (joins, leaves) = (missing(new, old), missing(old, new));
        let (again, joins): (Vec<_>, Vec<_>) = joins.into_iter().partition(|name| leaves.contains(name));
        let leaves: Vec<_> = leaves.into_iter().filter(|name| !again.contains(name)).collect();
        let mut told = Vec::new();
        if !again.is_empty() {
            told.push(format!(
                "another key: {}. Whoever has it counts as this site from now on, and its account goes on if its folder says so: let its \
                 operator say in the call that the old key is lost",
                some(&again, ", ", " and")
            ));
        }
        if !joins.is_empty() {
            told.push(format!(
                "joining: {}. Every site agrees to the new roster, and goes on with its account; the totals before are of the others alone, so \
                 what joins can be computed as a difference, up to noise where the totals have any [POL-10]",
                some(&joins, ", ", " and")
            ));
        }
        if !leaves.is_empty() {
            told.push(format!(
                "leaving: {}. The others go on without it; the totals before are of it too, so its part can be computed as a difference, up to \
                 noise where the totals have any [POL-10]",
                some(&leaves, ", ", " and")
            ));
        }
        if old.intermediary.key != new.intermediary.key {
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
        f.write_str(&some(&self.0, "; ", "; and"))
    }
}

/// A few of them, and how many more there are.
fn some(all: &[String], between: &str, and: &str) -> String {
    let shown = all[..all.len().min(TOLD)].join(between);
    if all.len() > TOLD { format!("{shown}{and} {} more", all.len() - TOLD) } else { shown }
}

fn with_roles(roster: &Roster) -> impl Iterator<Item = (&'static str, &Member)> {
    ["coordinator", "intermediary"].into_iter().chain(std::iter::repeat("site")).zip(roster.members())
}

#[cfg(test)]
mod tests {
    use veilsum_proto::identity::Identity;

    use super::*;
    use crate::documents::tests::Folder;

    fn roster(sites: u8) -> Roster {
        let member = |seed: u8, name: String| Member {
            name,
            key: Identity::from_seed(&[seed; 32]).public(),
            address: String::new(),
        };
        Roster {
            name: "test".into(),
            coordinator: member(1, "hub".into()),
            intermediary: member(2, "counter".into()),
            sites: (3..3 + sites).map(|seed| member(seed, format!("site-{seed}"))).collect(),
        }
    }

    /// [ROS-8]: a file that is not as it was written is none, and stays.
    #[test]
    fn ros_8_what_is_written_is_read_and_damage_is_seen() {
        let folder = Folder::new("pinned");
        let key = folder.at("a.key");
        assert!(Pinned::load(&key).unwrap() == Pinned::default());
        let whole = Pinned { roster: Some(roster(3)), policy: Some(Hash([7; 32])), joining: Vec::new() };
        Pinned::change(&key, |pinned| *pinned = whole.clone()).unwrap();
        assert!(Pinned::load(&key).unwrap() == whole);
        let (path, good) = (Pinned::beside(&key), std::fs::read_to_string(Pinned::beside(&key)).unwrap());
        for bad in [good.replacen("site-4", "site-9", 1), good.replace("hash", "hush"), good[..200].to_owned()] {
            std::fs::write(&path, &bad).unwrap();
            assert!(Pinned::load(&key).is_err() && Pinned::change(&key, |pinned| pinned.policy = None).is_err());
            assert_eq!(std::fs::read_to_string(&path).unwrap(), bad);
        }
    }

    #[test]
    fn changes_name_everybody_whom_they_are_about() {
        let (old, fresh) = (roster(3), Identity::from_seed(&[9; 32]).public());
        let told = |change: &dyn Fn(&mut Roster)| {
            let mut new = old.clone();
            change(&mut new);
            (Changes::between(&old, &new).to_string(), Changes::meaning(&old, &new).join("; "))
        };
        let (said, means) = told(&|new| new.sites[0].key = fresh);
        assert!(said.starts_with("site-3 (site) has another key"), "{said}");
        assert!(means.starts_with("another key: site-3.") && !means.contains("leaving"), "{means}");
        let (said, means) = told(&|new| drop(new.sites.remove(1)));
        assert!(said == "site-4 (site) is gone" && means.starts_with("leaving: site-4"), "{said}; {means}");
        let (said, means) = told(&|new| new.sites = roster(4).sites);
        assert!(said.starts_with("site-6 (site) is new") && means.starts_with("joining: site-6"), "{said}; {means}");
        let (said, means) = told(&|new| new.intermediary.key = fresh);
        assert!(said.contains("(intermediary) has another key") && means.contains("another organisation"), "{means}");
        assert!(told(&|new| new.coordinator.address = "a:1".into()).0.starts_with("hub has another address"));
        assert_eq!(told(&|new| new.sites.reverse()).0, "the sites stand in another order");
        assert_eq!(told(&|_| {}), (String::new(), String::new()));
        let many = Changes::between(&old, &roster(60)).to_string();
        assert!(many.ends_with("; and 45 more"), "{many}");
    }

    /// [JOI-5]: neither this party's number nor the other's changes with a second attempt.
    #[test]
    fn an_attempt_that_is_taken_up_says_the_same_and_hears_the_same() {
        let folder = Folder::new("begun");
        let path = folder.at("a.key");
        let mut begun = Begun::take_up(&path, Hash([1; 32]), Nonce([2; 32])).unwrap();
        begun.answered(&path, Nonce([3; 32])).unwrap();
        let mut again = Begun::take_up(&path, Hash([1; 32]), Nonce([9; 32])).unwrap();
        assert_eq!((again.nonce, again.answer), (Nonce([2; 32]), Some(Nonce([3; 32]))));
        again.answered(&path, Nonce([3; 32])).unwrap();
        assert!(again.answered(&path, Nonce([4; 32])).unwrap_err().message.contains("[JOI-5]"));
        let other = Begun::take_up(&path, Hash([5; 32]), Nonce([9; 32])).unwrap();
        assert_eq!((other.nonce, other.answer), (Nonce([9; 32]), None));
        // Another party that joins from the same folder takes nothing from the first.
        let again = Begun::take_up(&folder.at("b.key"), Hash([1; 32]), Nonce([9; 32])).unwrap();
        assert_eq!((again.nonce, again.answer), (Nonce([2; 32]), Some(Nonce([3; 32]))));
    }
}
