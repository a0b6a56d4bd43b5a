//! The roster, which says who takes part. Its coordinator signs it and every site pins it (spec section 5).

use serde::{Deserialize, Serialize};

use crate::{
    codec,
    error::Error,
    identity::{Identity, PublicKey, Signature},
    limits::{MAX_ADDRESS, MAX_NAME, MAX_SITES, MIN_SITES},
    rule::Rule,
    suite::{self, Hash},
};

/// A party as the protocol addresses it. Sites are numbered in the roster's order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum PartyId {
    /// Runs the method and sums masked statistics.
    Coordinator,
    /// Sums the masked row counts and learns no centre.
    Intermediary,
    /// A data owner, by its place in the roster.
    Site(u16),
}

impl PartyId {
    /// Whether this aggregator opens its totals to its cohort, so that every site recomputes them and follows the method with a
    /// copy of its own ([OPN-2] to [OPN-9]). The coordinator does. The intermediary does not: with the row count a site that colludes
    /// could tell the coordinator what [APP-3] withholds from it.
    pub fn opens(self) -> bool {
        self == PartyId::Coordinator
    }
}

/// One member of a roster.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Unique name: letters, digits, `-`, `_`, `.`; at most 64 bytes.
    pub name: String,
    /// The member's identity.
    pub key: PublicKey,
    /// `host:port` where the coordinator or intermediary listens; for a site, which only dials out, it is not used.
    #[serde(default)]
    pub address: String,
}

/// All members of a federation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Roster {
    /// Name of the federation.
    pub name: String,
    /// Runs the method.
    pub coordinator: Member,
    /// Sums the row counts; must be another organisation than the coordinator's.
    pub intermediary: Member,
    /// The data owners.
    pub sites: Vec<Member>,
}

/// A roster and the coordinator's signature on it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SignedRoster {
    /// What was signed.
    pub roster: Roster,
    /// By the coordinator's identity.
    pub signature: Signature,
}

const LABEL: &str = "roster";

impl Roster {
    /// Checks names, keys and sizes ([ROS-1], [ROS-2], [ROS-4], [KEY-2]).
    ///
    /// # Errors
    /// `Error::Invalid` naming the member at fault.
    pub fn check(&self) -> Result<(), Error> {
        let bad = |why: String, rule| Err(Error::invalid("roster", why, rule));
        check_sites(self.sites.len())?;
        check_name(&self.name).map_err(|why| Error::invalid("roster", why, Rule::Ros2))?;
        let mut seen: Vec<&Member> = Vec::with_capacity(self.sites.len() + 2);
        for m in self.members() {
            check_name(&m.name).map_err(|why| Error::invalid("roster", why, Rule::Ros2))?;
            if !m.key.is_usable() {
                return bad(format!("the key of {} is not a usable Ed25519 key", m.name), Rule::Key2);
            }
            if m.address.len() > MAX_ADDRESS {
                return bad(format!("the address of {} is too long", m.name), Rule::Ros2);
            }
            if let Some(other) = seen.iter().find(|o| o.key == m.key) {
                return bad(format!("{} and {} have the same key", other.name, m.name), Rule::Ros4);
            }
            if seen.iter().any(|o| o.name == m.name) {
                return bad(format!("the name {} stands twice", m.name), Rule::Ros4);
            }
            seen.push(m);
        }
        Ok(())
    }

    /// Coordinator, intermediary, then the sites in order.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        [&self.coordinator, &self.intermediary].into_iter().chain(&self.sites)
    }

    /// The member with number `id`.
    pub fn member(&self, id: PartyId) -> Option<&Member> {
        match id {
            PartyId::Coordinator => Some(&self.coordinator),
            PartyId::Intermediary => Some(&self.intermediary),
            PartyId::Site(i) => self.sites.get(usize::from(i)),
        }
    }

    /// The name of `id` for an error or a log line.
    pub fn name_of(&self, id: PartyId) -> String {
        self.member(id).map_or_else(|| "a party that is not on the roster".into(), |m| m.name.clone())
    }

    /// Who has this key.
    pub fn find(&self, key: &PublicKey) -> Option<PartyId> {
        Some(match self.members().position(|member| member.key == *key)? {
            0 => PartyId::Coordinator,
            1 => PartyId::Intermediary,
            place => PartyId::Site((place - 2) as u16),
        })
    }

    /// Identifies the roster in everything that follows ([ROS-6]).
    pub fn hash(&self) -> Hash {
        suite::hash(LABEL, &[&codec::encode(self)])
    }

    /// Checks and signs.
    ///
    /// # Errors
    /// As [`Roster::check`], and `Error::Invalid` where `signer` is not the roster's coordinator.
    pub fn sign(self, signer: &Identity) -> Result<SignedRoster, Error> {
        self.check()?;
        if signer.public() != self.coordinator.key {
            return Err(Error::invalid("roster", "it can be signed only by its coordinator", Rule::Ros6));
        }
        let signature = signer.sign(LABEL, &[&codec::encode(&self)]);
        Ok(SignedRoster { roster: self, signature })
    }
}

impl SignedRoster {
    /// Checks the contents and the coordinator's signature ([ROS-6]).
    ///
    /// # Errors
    /// As [`Roster::check`], and `Error::PeerMisbehaved` where the signature is not the coordinator's.
    pub fn verify(self) -> Result<Roster, Error> {
        self.roster.check()?;
        let c = &self.roster.coordinator;
        if !c.key.verify(LABEL, &[&codec::encode(&self.roster)], &self.signature) {
            let what = "the roster was changed after it was signed, or never signed";
            return Err(Error::peer(&c.name, what, Rule::Ros6));
        }
        Ok(self.roster)
    }
}

/// Checks how many sites a roster has ([ROS-1]), before anybody makes keys for them.
///
/// # Errors
/// `Error::Invalid` that says why there must not be fewer, or where the reason is written why there must not be more.
pub fn check_sites(sites: usize) -> Result<(), Error> {
    let why = match sites {
        ..MIN_SITES => format!(
            "{sites} sites: a federation has at least {MIN_SITES}, because between two every total shows each the other's part"
        ),
        MIN_SITES..=MAX_SITES => return Ok(()),
        _ => format!("{sites} sites: a federation has at most {MAX_SITES}; docs/src/decisions.md says why"),
    };
    Err(Error::invalid("roster", why, Rule::Ros1))
}

/// Whether `name` may stand in a roster or plan ([ROS-2]).
///
/// # Errors
/// A sentence that says what is wrong with it.
pub fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > MAX_NAME {
        return Err(format!("a name has 1 to {MAX_NAME} bytes, not {}", name.len()));
    }
    if !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)) {
        return Err(format!("the name {name:?} holds something else than letters, digits, '-', '_' and '.'"));
    }
    // It becomes the name of a file, and a word on a command line.
    if name.starts_with(['.', '-']) {
        return Err(format!("the name {name:?} begins with '.' or '-'"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [ROS-1]; nobody signs what others refuse.
    #[test]
    fn too_few_or_too_many_sites_are_refused_with_the_reason() {
        let refused = |sites: usize, words: &[&str]| {
            let text = check_sites(sites).unwrap_err().to_string();
            assert!(words.iter().all(|word| text.contains(word)), "{text}");
        };
        refused(2, &["2 sites", "at least 3"]);
        refused(1_001, &["1001 sites", "at most 1000", "docs/src/decisions.md"]);
        assert!(check_sites(3).is_ok() && check_sites(1_000).is_ok());
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/decisions.md");
        assert!(std::path::Path::new(page).exists(), "the message points to a page that is not there");
        let kit = crate::testing::Kit::new(3, |_| {});
        let mut roster = (*kit.roster).clone();
        roster.sites.pop();
        assert_eq!(roster.sign(&kit.identities[0]).unwrap_err().rule(), Some(Rule::Ros1));
    }

    /// [ROS-2]: a name leads nowhere else where it becomes a file's, and is no option.
    #[test]
    fn ros_2_a_name_is_no_way_to_another_folder() {
        for name in ["..", ".", "../a", "a/b", ".hidden", "-x", "--help", "", "a b", "a\\b", "a\0"] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        for name in ["a", "a.b", "site-1", "_a", "9"] {
            assert_eq!(check_name(name), Ok(()), "{name:?}");
        }
    }
}
