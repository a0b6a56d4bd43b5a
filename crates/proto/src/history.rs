//! The changes of a roster, one signed behind the other, and the statements by which a member has another key (spec section
//! 5, [ROS-11] to [ROS-13]).
//!
//! A roster alone says who takes part now. With the changes behind it a party sees how it came from the one that it agreed to:
//! a new key that the old one vouches for is no news about who takes part, and everything else is.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{
    codec,
    error::Error,
    identity::{Identity, PublicKey, Signature},
    limits::{MAX_CHANGES, MAX_REKEYS, MAX_ROSTER},
    roster::{Roster, SignedRoster, check_name},
    rule::Rule,
    suite::Hash,
};

const REKEY: &str = "rekey";
const RECOVERY: &str = "recovery";
const CHANGE: &str = "roster change";

/// A party's statement that it has another key from now on, by both keys: who has only one of them cannot make it. The old one signed
/// it now, or has named the new one beforehand, for the day on which it is lost.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Rekey {
    /// Name of the federation.
    pub federation: String,
    /// Name of the party on its roster.
    pub party: String,
    /// The key that it had.
    pub old: PublicKey,
    /// The key that it has instead.
    pub new: PublicKey,
    /// By the old key: the statement, or the new key alone.
    pub by_old: Signature,
    /// By the new one.
    pub by_new: Signature,
}

impl Rekey {
    /// States that `party` of `federation` has the key of `new` in place of that of `old`.
    pub fn make(federation: &str, party: &str, old: &Identity, new: &Identity) -> Rekey {
        let (old_key, new_key) = (old.public(), new.public());
        let parts = [federation.as_bytes(), party.as_bytes(), &old_key.0, &new_key.0];
        Rekey {
            federation: federation.into(),
            party: party.into(),
            old: old_key,
            new: new_key,
            by_old: old.sign(REKEY, &parts),
            by_new: new.sign(REKEY, &parts),
        }
    }

    /// What a key signs while it is there: this one may take its place, in every federation, once it is lost ([ROS-11]).
    pub fn recovery(old: &Identity, new: &PublicKey) -> Signature {
        old.sign(RECOVERY, &[&new.0])
    }

    /// The statement without the old key, by what it signed beforehand.
    pub fn recovered(federation: &str, party: &str, (old, by_old): (PublicKey, Signature), new: &Identity) -> Rekey {
        let parts = [federation.as_bytes(), party.as_bytes(), &old.0, &new.public().0];
        let by_new = new.sign(REKEY, &parts);
        Rekey { federation: federation.into(), party: party.into(), old, new: new.public(), by_old, by_new }
    }

    /// Whether the old key has named the new one beforehand, and did not sign this statement: nobody takes it without a call ([ROS-13]).
    pub fn is_recovered(&self) -> bool {
        self.old.verify(RECOVERY, &[&self.new.0], &self.by_old)
    }

    /// Checks names, keys and both signatures ([ROS-11]).
    ///
    /// # Errors
    /// `Error::Invalid` that says which of them does not hold.
    pub fn verify(&self) -> Result<(), Error> {
        let bad = |why: String| Err(Error::invalid("rekey", why, Rule::Ros11));
        for name in [&self.federation, &self.party] {
            check_name(name).or_else(bad)?;
        }
        if self.old == self.new || !self.new.is_usable() {
            return bad(format!("the new key of {} is none, or the old one", self.party));
        }
        let parts = [self.federation.as_bytes(), self.party.as_bytes(), &self.old.0, &self.new.0];
        if !self.is_recovered() && !self.old.verify(REKEY, &parts, &self.by_old) {
            return bad(format!("the old key of {} did not sign that it has a new one", self.party));
        }
        if !self.new.verify(REKEY, &parts, &self.by_new) {
            return bad(format!("the new key of {} did not sign that it takes the place of the old one", self.party));
        }
        Ok(())
    }
}

/// One roster takes the place of another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Change {
    /// Counted from 0.
    pub number: u32,
    /// The roster before.
    pub previous: Hash,
    /// The roster from then on.
    pub roster: Hash,
    /// Which of its members have another key by their own statement.
    pub rekeys: Vec<Rekey>,
}

/// A change and the coordinator's signature on it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SignedChange {
    /// What was signed.
    pub change: Change,
    /// By the coordinator's identity.
    pub signature: Signature,
}

impl SignedChange {
    /// Whether this coordinator signed it.
    pub fn is_by(&self, coordinator: &PublicKey) -> bool {
        coordinator.verify(CHANGE, &[&codec::encode(&self.change)], &self.signature)
    }

    /// Whether the two say different things of the same step: the one who signed both tells different parties different
    /// histories ([ROS-12]).
    pub fn contradicts(&self, other: &SignedChange) -> bool {
        (self.change.number, self.change.previous) == (other.change.number, other.change.previous)
            && self.change != other.change
    }
}

/// A roster and how it came about: what a coordinator hands out, and what stands in `roster.toml`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RosterDocument {
    /// The roster as it is now.
    pub signed: SignedRoster,
    /// All changes from the first roster to this one, in order; none for a first roster.
    pub history: Vec<SignedChange>,
}

/// How a roster relates to one that was agreed to before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step<'a> {
    /// It is the same one.
    Same,
    /// It differs by keys, every one of which is stated by the key before it, and by addresses alone. Oldest first.
    Rekeyed(Vec<&'a Rekey>),
    /// It differs by something else, or its history does not lead here from that one.
    Other,
}

impl From<SignedRoster> for RosterDocument {
    /// A first roster.
    fn from(signed: SignedRoster) -> Self {
        RosterDocument { signed, history: Vec::new() }
    }
}

impl RosterDocument {
    /// Reads the bytes of [`RosterDocument::encode`]. Nothing is verified yet.
    ///
    /// # Errors
    /// `Error::Malformed` where they are none, or too many.
    pub fn decode(bytes: &[u8]) -> Result<RosterDocument, Error> {
        codec::decode("roster with its history", bytes, MAX_ROSTER)
    }

    /// Its bytes, at most [`MAX_ROSTER`] of a document that verifies.
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// Checks the roster, and that its history leads to it ([ROS-6], [ROS-11], [ROS-12]).
    ///
    /// # Errors
    /// As [`SignedRoster::verify`]; `Error::Invalid` with the change at fault; `Error::PeerMisbehaved` where the coordinator did
    /// not sign one.
    pub fn verify(&self) -> Result<(), Error> {
        let roster = self.signed.clone().verify()?;
        let bad = |why: String| Err(Error::invalid("history of the roster", why, Rule::Ros12));
        if self.history.len() > MAX_CHANGES || self.rekeys().count() > MAX_REKEYS {
            return bad(format!("it has more than {MAX_CHANGES} changes, or more than {MAX_REKEYS} new keys"));
        }
        let coordinator = &roster.coordinator;
        let mut before = None;
        // Keys that were replaced, and keys that took the place of others.
        let (mut retired, mut taken) = (BTreeSet::new(), BTreeSet::from([coordinator.key]));
        for (at, signed) in self.history.iter().enumerate() {
            let Change { number, previous, roster: now, rekeys } = &signed.change;
            if *number as usize != at {
                return bad(format!("change {number} stands where change {at} belongs"));
            }
            if before.is_some_and(|before| before != *previous) || now == previous {
                return bad(format!("change {at} does not follow from the one before it"));
            }
            if !signed.is_by(&coordinator.key) {
                let what = format!("change {at} of the roster was changed after it was signed, or never signed");
                return Err(Error::peer(&coordinator.name, what, Rule::Ros12));
            }
            for rekey in rekeys {
                rekey.verify()?;
                let party = &rekey.party;
                if rekey.federation != roster.name {
                    return bad(format!("change {at} has a new key of {party} that it stated for another federation"));
                }
                if rekey.old == coordinator.key {
                    return bad(format!("change {at} replaces the coordinator's key, on which everything here rests"));
                }
                if !retired.insert(rekey.old) || !taken.insert(rekey.new) || retired.contains(&rekey.new) {
                    return bad(format!("change {at} has a new key of {party} that was replaced or used before"));
                }
            }
            before = Some(*now);
        }
        let hash = roster.hash();
        if before.is_some_and(|before| before != hash) {
            return bad("it ends at another roster than the one that it stands with".into());
        }
        if let Some(member) = roster.members().find(|member| retired.contains(&member.key)) {
            return bad(format!("{} has a key that was replaced by another one", member.name));
        }
        let stated = self.history.last().map_or(&[][..], |last| &last.change.rekeys);
        match stated.iter().find(|rekey| !roster.members().any(|m| m.key == rekey.new && m.name == rekey.party)) {
            Some(rekey) => bad(format!("{} has not the key that its last change names", rekey.party)),
            None => Ok(()),
        }
    }

    /// All statements of new keys, oldest first.
    pub fn rekeys(&self) -> impl Iterator<Item = &Rekey> {
        self.history.iter().flat_map(|signed| &signed.change.rekeys)
    }

    /// The document with `roster` in the place of this one, signed, and the change behind the others. It is this document where the
    /// roster is the same.
    ///
    /// # Errors
    /// As [`Roster::sign`] and [`RosterDocument::verify`].
    pub fn followed_by(&self, roster: Roster, rekeys: Vec<Rekey>, signer: &Identity) -> Result<RosterDocument, Error> {
        if roster == self.signed.roster {
            return Ok(self.clone());
        }
        if roster.name != self.signed.roster.name || roster.coordinator.key != self.signed.roster.coordinator.key {
            let why = "the next roster is another federation's or another coordinator's";
            return Err(Error::invalid("roster", why, Rule::Ros12));
        }
        let change = Change {
            number: self.history.len() as u32,
            previous: self.signed.roster.hash(),
            roster: roster.hash(),
            rekeys,
        };
        let signature = signer.sign(CHANGE, &[&codec::encode(&change)]);
        let mut history = self.history.clone();
        history.push(SignedChange { change, signature });
        let next = RosterDocument { signed: roster.sign(signer)?, history };
        next.verify()?;
        Ok(next)
    }
}

/// How the roster `to`, with the history that leads to it and holds, relates to the one that was agreed to last ([ROS-13]).
pub fn step<'a>(from: &Roster, to: &Roster, history: &'a [SignedChange]) -> Step<'a> {
    if from == to {
        return Step::Same;
    }
    let hash = from.hash();
    // The last one: whatever led back to this roster is not between it and the one at hand.
    if let Some(at) = history.iter().rposition(|signed| signed.change.previous == hash) {
        let rekeys: Vec<&Rekey> = history[at..].iter().flat_map(|signed| &signed.change.rekeys).collect();
        let mut stated = rekeyed(from, rekeys.iter().copied());
        // Whoever answers at an address still has to hold the key.
        stated.coordinator.address.clone_from(&to.coordinator.address);
        stated.intermediary.address.clone_from(&to.intermediary.address);
        if stated == *to && !rekeys.iter().any(|rekey| rekey.is_recovered()) {
            return Step::Rekeyed(rekeys);
        }
    }
    Step::Other
}

/// The key that has taken this one's place by these statements; the same one where none has.
pub fn newest<'a>(key: PublicKey, rekeys: impl IntoIterator<Item = &'a Rekey>) -> PublicKey {
    rekeys.into_iter().fold(key, |key, rekey| if rekey.old == key { rekey.new } else { key })
}

/// `roster` with the keys that these statements name, one after the other, in the place of those before them.
pub fn rekeyed<'a>(roster: &Roster, rekeys: impl IntoIterator<Item = &'a Rekey>) -> Roster {
    let mut roster = roster.clone();
    for rekey in rekeys {
        let others = std::iter::once(&mut roster.intermediary).chain(&mut roster.sites);
        for member in others.filter(|m| m.key == rekey.old && m.name == rekey.party) {
            member.key = rekey.new;
        }
    }
    roster
}

/// The first change of `offered` that contradicts a known one, behind it ([ROS-12]).
pub fn fork<'a>(
    known: &'a [SignedChange],
    offered: &'a [SignedChange],
) -> Option<(&'a SignedChange, &'a SignedChange)> {
    offered.iter().find_map(|new| known.iter().find(|old| new.contradicts(old)).map(|old| (old, new)))
}

#[cfg(test)]
mod tests;
