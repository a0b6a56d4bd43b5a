//! Rosters that follow each other, as a member meets them ([ROS-9], [ROS-13]).

use std::path::PathBuf;

use veilsum_proto::{
    history::{Rekey, RosterDocument},
    roster::Member,
};

use super::*;
use crate::documents::{
    load_roster, roster_fingerprint, sign_next,
    tests::{Folder, kit},
    write_roster, write_roster_document,
};

struct Case {
    folder: Folder,
    roster: Roster,
    ids: Vec<Identity>,
}

fn id(seed: u8) -> Identity {
    Identity::from_seed(&[seed; 32])
}

impl Case {
    /// Site-1 agreed to the first roster of its federation.
    fn new(name: &str) -> Case {
        let (roster, ids) = kit(3);
        let case = Case { folder: Folder::new(name), roster, ids };
        sign_next(case.file(), case.roster.clone(), Vec::new(), &case.ids[0]).unwrap();
        let heard = Fingerprint::parse(&roster_fingerprint(&case.roster.hash())).unwrap();
        assert_eq!(case.offered(Some(&heard)).unwrap(), Changes(Vec::new()));
        case
    }

    fn file(&self) -> PathBuf {
        self.folder.at("roster.toml")
    }

    fn key(&self) -> PathBuf {
        self.folder.at("a.key")
    }

    fn offered(&self, given: Option<&Fingerprint>) -> Result<Changes, Failure> {
        let (file, key) = (self.file(), self.key());
        let roster = load_roster(&file)?;
        Offered { file: &file, roster: &roster, key: &key, identity: &self.ids[2] }.agree(given, None)
    }

    fn rekeys(&self, stated: &[(usize, &Identity, u8)]) -> RosterDocument {
        let rekey = |(site, old, new): &(usize, &Identity, u8)| {
            Rekey::make("test", &self.roster.sites[*site].name, old, &id(*new))
        };
        let rekeys = stated.iter().map(rekey).collect();
        sign_next(self.file(), load_roster(self.file()).unwrap(), rekeys, &self.ids[0]).unwrap()
    }

    fn adds(&self, name: &str, seed: u8) -> RosterDocument {
        let mut roster = load_roster(self.file()).unwrap();
        roster.sites.push(Member { name: name.into(), key: id(seed).public(), address: String::new() });
        sign_next(self.file(), roster, Vec::new(), &self.ids[0]).unwrap()
    }

    fn agreed(&self) -> usize {
        Federations::load(&self.key(), &self.ids[2]).unwrap().agreed.len()
    }

    /// Refused under this rule, with and without the fingerprint.
    fn refused(&self, rule: &str) -> Failure {
        let before = self.agreed();
        let heard = Fingerprint::parse(&roster_fingerprint(&load_roster(self.file()).unwrap().hash())).unwrap();
        let failures = [None, Some(&heard)].map(|given| self.offered(given).unwrap_err());
        assert!(failures.iter().all(|failure| failure.message.contains(rule)), "{failures:?}");
        assert_eq!(self.agreed(), before);
        let [failure, _] = failures;
        failure
    }
}

/// [ROS-13]: new keys that their old ones state, one after another, are taken and told; whatever comes with another change is not.
#[test]
fn ros_13_stated_keys_are_taken_and_told() {
    let case = Case::new("stated");
    case.rekeys(&[(1, &case.ids[3], 81)]);
    case.rekeys(&[(1, &id(81), 82), (2, &case.ids[4], 83)]);
    let told = case.offered(None).unwrap();
    let said = "site-2 has a new key, signed with its old one; site-3 has a new key, signed with its old one";
    assert_eq!((told.to_string().as_str(), case.agreed()), (said, 2));
    assert_eq!(case.offered(None).unwrap(), Changes(Vec::new()), "once");
    case.rekeys(&[(1, &id(82), 84)]);
    case.adds("late", 85);
    let failure = case.refused("[ROS-9]");
    assert!(failure.message.contains("site-2 has a new key, signed with its old one; late (site) is new"), "{failure}");
    assert!(failure.message.contains("joining: late.") && failure.message.contains("[LED-9]"), "{failure}");
    assert!(failure.advice.contains("veilsum roster accept"), "{failure}");
}

/// [ROS-9]: a key that nobody stated makes another site of it.
#[test]
fn ros_9_a_key_that_nobody_stated_is_told_as_another_site() {
    let case = Case::new("unstated");
    let mut roster = case.roster.clone();
    roster.sites[1].key = id(81).public();
    roster.sites.remove(2);
    roster.sites.push(Member { name: "late".into(), key: id(82).public(), address: String::new() });
    sign_next(case.file(), roster, Vec::new(), &case.ids[0]).unwrap();
    let message = case.refused("[ROS-9]").message;
    for said in
        ["site-2 (site) has another key", "site-2: a key that its old one did not sign", "leaving: site-2, site-3."]
    {
        assert!(message.contains(said), "{said}: {message}");
    }
}

/// [ROS-13], [ROS-12]: two histories from one roster: the second one is refused whoever says yes, and both changes are kept.
#[test]
fn ros_13_a_fork_is_refused_and_kept_as_evidence() {
    let case = Case::new("fork");
    let first = load_roster_document(case.file()).unwrap();
    case.rekeys(&[(1, &case.ids[3], 81)]);
    case.offered(None).unwrap();
    write_roster_document(case.file(), &first).unwrap();
    let forked = case.adds("late", 85);
    let failure = case.refused("[ROS-13]");
    assert!(failure.code == Code::Peer && failure.message.contains("different histories"), "{failure}");
    let kept = std::fs::read_to_string(case.folder.at("a.key.fork-0.toml")).unwrap();
    let [one, two] = [&first.signed.roster, &forked.signed.roster].map(|roster| roster.hash().to_string());
    assert!(
        kept.matches("[[change]]").count() == 2 && kept.contains(&two) && kept.matches(&one).count() == 2,
        "{kept}"
    );
    assert!(kept.contains(&case.ids[0].public().to_string()), "{kept}");
}

/// [ROS-13]: neither an older key nor another coordinator, whoever says yes; an older roster without either needs a call.
#[test]
fn ros_13_what_was_replaced_does_not_come_back() {
    let case = Case::new("replaced");
    let first = load_roster_document(case.file()).unwrap();
    case.rekeys(&[(1, &case.ids[3], 81)]);
    case.offered(None).unwrap();
    write_roster_document(case.file(), &first).unwrap();
    let failure = case.refused("[ROS-13]");
    assert!(failure.message.contains("site-2 has a key that it replaced"), "{failure}");
    let mut roster = case.roster.clone();
    roster.coordinator.key = id(86).public();
    write_roster(case.file(), &roster.sign(&id(86)).unwrap()).unwrap();
    let failure = case.refused("[ROS-13]");
    assert!(failure.message.contains("hub (coordinator) has another key"), "{failure}");
    let case = Case::new("older");
    let first = load_roster_document(case.file()).unwrap();
    let later = case.adds("late", 85).signed.roster;
    Federations::change(&case.key(), &case.ids[2], |known| {
        known.take(&later, &[]);
        Ok(())
    })
    .unwrap();
    write_roster_document(case.file(), &first).unwrap();
    assert!(case.refused("[ROS-9]").message.contains("late (site) is gone"));
}

/// [ROS-9]: the owner of a key that agreed to one roster of this name is told of the other one, and not to send a card.
#[test]
fn a_roster_without_this_key_is_held_against_the_one_that_was_agreed_to() {
    let case = Case::new("without-this-key");
    let (file, key, mut roster) = (case.file(), case.key(), case.roster.clone());
    let told = |roster: &Roster| {
        let offered = Offered { file: &file, roster, key: &key, identity: &case.ids[2] };
        offered.whoami().map_err(|failure| failure.to_string())
    };
    assert_eq!(told(&roster), Ok(PartyId::Site(0)));
    roster.sites[0].key = id(77).public();
    let other = told(&roster).unwrap_err();
    assert!(other.contains("[ROS-9]") && other.contains("has another key: "), "{other}");
    assert!(other.contains("by telephone") && !other.contains("card"), "{other}");
    // Of a federation of another name nothing was agreed to.
    roster.name = "second".into();
    assert!(told(&roster).unwrap_err().contains("send your card"));
}
