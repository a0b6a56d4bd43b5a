//! `federation.toml`: whom the coordinator invited, who knocked with which key, and whom it let in (spec section 18).
//!
//! The file is the coordinator's own (mode 0600) and holds no secret: of a token it has the hash. Several processes change it, one
//! at a time: those in which the operator decides, and the one that listens.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use veilsum_proto::{
    identity::PublicKey,
    joining::{Code, Meeting, Nonce, Reply, Role},
    limits::MAX_SITES,
    roster::{Member, Roster, check_name},
    suite::Hash,
};

use super::{
    PlanAnswer,
    file::{document, locked, read_text, text_of, try_locked},
};
use crate::{
    error::Failure,
    files::{self, Existing},
};

const FORMAT: &str = "veilsum-guests/1";
/// Bytes of the file: as many guests as a roster has members, of at most 800 bytes.
const MAX_FILE: usize = 1 << 20;
const NEXT: &str = "put it back as it was, or begin the federation anew in another folder";

/// How far a guest has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// The invitation is out.
    Invited,
    /// A key knocked with it and has shown its nonce; the operator has to compare.
    Waiting,
    /// The operator compared, and it is on the roster.
    Approved,
    /// The operator said no, or took the invitation back.
    Rejected,
}

/// What a guest knocked with, and what it was answered. Neither is ever another for one invitation ([JOI-5]).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Knocked {
    /// Its key.
    pub key: PublicKey,
    /// Where it will listen; empty for a site.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// What it committed itself to.
    pub commitment: Hash,
    /// The coordinator's nonce.
    pub nonce: Nonce,
    /// The guest's own, once it has shown it.
    pub shown: Option<Nonce>,
}

/// One invited party.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guest {
    /// Its name.
    pub party: String,
    /// Its role.
    pub role: Role,
    /// The hash of its token.
    pub invitation: Hash,
    /// Seconds since 1970 from which on nobody may knock with it.
    pub expires: u64,
    /// How far it has come.
    pub stage: Stage,
    /// What it has: the hash of the roster and of the plan that it said to have received.
    pub has: Option<[Hash; 2]>,
    /// The one who knocked.
    pub knocked: Option<Knocked>,
    /// What it said to which roster and plan, since it stands by.
    pub said: Option<Said>,
}

/// What a member says to a plan before anything is asked ([PRO-2]).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Said {
    /// The roster's hash.
    pub roster: Hash,
    /// The plan's.
    pub plan: Hash,
    /// The answer.
    pub answer: PlanAnswer,
}

/// A run that the operator began.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Counted from 1, for people; a coordinator whose folder was put back counts some numbers twice.
    pub number: u64,
    /// What it is known by: drawn when it began, and never twice.
    pub id: Hash,
    /// The plan's hash.
    pub plan: Hash,
    /// Names of the sites that it goes without.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// Whether a member left it and said that the ledger of another one was set back ([LED-11]).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub set_back: bool,
    /// The exit code with which it ended; none while it goes on.
    pub ended: Option<u8>,
}

/// The federation as its coordinator founds it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestList {
    /// Name of the federation.
    pub federation: String,
    /// How often a plan was proposed: members are asked anew each time ([PRO-1]).
    #[serde(default)]
    pub proposed: u64,
    /// The largest number of a run that a member knew ([PRO-4]).
    #[serde(default)]
    pub numbered: u64,
    /// The coordinator.
    pub coordinator: Member,
    /// The last run.
    pub run: Option<Run>,
    /// In the order in which they were invited.
    #[serde(default, rename = "guest")]
    pub guests: Vec<Guest>,
}

/// So far a member may say that runs were counted on: a number is for people, and no member may make it unreadable.
const AHEAD: u64 = 1000;

impl GuestList {
    /// A member knows a run of this number. Whether this list did not, and runs are counted on from there.
    pub fn counts_on_from(&mut self, number: u64) -> bool {
        let (known, begun) = (self.last(), self.run.as_ref().map_or(0, |run| run.number));
        // By what began here, and not by what was said: nobody gets further by saying it again.
        self.numbered = known.max(number.min(begun.saturating_add(AHEAD)));
        self.numbered > known
    }

    /// The largest number of a run that is known.
    pub fn last(&self) -> u64 {
        self.run.as_ref().map_or(0, |run| run.number).max(self.numbered)
    }

    /// Where it is kept.
    pub fn within(folder: &Path) -> PathBuf {
        folder.join("federation.toml")
    }

    /// Begins a federation in a folder that has none.
    ///
    /// # Errors
    /// A [`Failure`] where there is one already, or the name cannot be used.
    pub fn found(folder: &Path, federation: &str, coordinator: Member) -> Result<(), Failure> {
        let next = "give the federation a name of letters, digits, `-`, `_` and `.`";
        check_name(federation).map_err(|why| Failure::input(why, next))?;
        let (guests, run, proposed, numbered) = (Vec::new(), None, 0, 0);
        let list = GuestList { federation: federation.into(), coordinator, guests, run, proposed, numbered };
        list.write(folder, Existing::Refuse)
    }

    /// Reads it.
    ///
    /// # Errors
    /// A [`Failure`] that names the file.
    pub fn load(folder: &Path) -> Result<GuestList, Failure> {
        let path = Self::within(folder);
        if !path.exists() {
            let what = format!("{}: no federation was founded in this folder", path.display());
            let next = "say --folder, or found one: veilsum federation create NAME --listen HOST:PORT";
            return Err(Failure::input(what, next));
        }
        document(&path, &read_text(&path, MAX_FILE)?, FORMAT, NEXT)
    }

    /// The place of the one process that serves this federation, until it is dropped; nothing where another has it.
    ///
    /// # Errors
    /// A [`Failure`] where the lock cannot be made.
    pub fn serving(folder: &Path) -> Result<Option<std::fs::File>, Failure> {
        try_locked(&Self::within(folder))
    }

    /// Changes it, which no other process does meanwhile; it is on the disk when this returns.
    ///
    /// # Errors
    /// As [`GuestList::load`], those of `change`, and where it cannot be written. Nothing is changed then.
    pub fn change<T>(folder: &Path, change: impl FnOnce(&mut GuestList) -> Result<T, Failure>) -> Result<T, Failure> {
        let _held = locked(&Self::within(folder))?;
        let before = Self::load(folder)?;
        let mut after = before.clone();
        let done = change(&mut after)?;
        if before != after {
            after.write(folder, Existing::Replace)?;
        }
        Ok(done)
    }

    fn write(&self, folder: &Path, existing: Existing) -> Result<(), Failure> {
        let comment = "# Whom the coordinator invited, and who came. Changed with `veilsum federation`.\n";
        files::write_private(Self::within(folder), text_of(comment, FORMAT, self)?.as_bytes(), existing)
    }

    /// The guest of this name.
    pub fn guest(&mut self, party: &str) -> Option<&mut Guest> {
        self.guests.iter_mut().find(|guest| guest.party == party)
    }

    /// Invites a party, in the place of an invitation that was taken back ([JOI-3]).
    ///
    /// # Errors
    /// A [`Failure`] where the name is in use, or there are as many as a roster takes.
    pub fn invite(&mut self, party: &str, role: Role, invitation: Hash, expires: u64) -> Result<(), Failure> {
        let names = "give each party a name of its own, of letters, digits, `-`, `_` and `.`";
        check_name(party).map_err(|why| Failure::input(why, names))?;
        let taken = |why: String, next: &str| Err(Failure::input(why, next));
        if party == self.coordinator.name {
            return taken(format!("{party} is the coordinator [JOI-3]"), names);
        }
        if self.guest(party).is_some_and(|guest| guest.stage != Stage::Rejected) {
            return taken(
                format!("{party} is invited already [JOI-3]: two parties cannot have one name"),
                "give each party a name of its own; to replace an invitation, take it back first: veilsum federation remove PARTY",
            );
        }
        self.guests.retain(|guest| guest.party != party);
        let of = |role: Role| self.guests.iter().filter(|g| g.role == role && g.stage != Stage::Rejected).count();
        match role {
            Role::Intermediary if of(role) > 0 => {
                return taken("an intermediary is invited already".into(), "a federation has one intermediary");
            }
            Role::Site if of(role) >= MAX_SITES => {
                return taken(format!("{MAX_SITES} sites are invited already"), "a federation has no more sites");
            }
            _ => {}
        }
        let (party, stage) = (party.to_owned(), Stage::Invited);
        let (knocked, has, said) = (None, None, None);
        self.guests.push(Guest { party, role, invitation, expires, stage, knocked, has, said });
        Ok(())
    }

    /// Proposes the plan in force: whatever was said to it before counts no more.
    ///
    /// # Errors
    /// As [`GuestList::change`].
    pub fn propose(folder: &Path) -> Result<(), Failure> {
        Self::change(folder, |list| {
            list.proposed += 1;
            list.guests.iter_mut().for_each(|guest| guest.said = None);
            Ok(())
        })
    }

    /// What is compared with this guest.
    pub fn meeting(&self, guest: &Guest, key: PublicKey, address: &str) -> Meeting {
        Meeting {
            coordinator: self.coordinator.key,
            joiner: key,
            invitation: guest.invitation,
            party: guest.party.clone(),
            role: guest.role,
            address: address.to_owned(),
        }
    }

    /// The digits that this guest's operator will say; none before it has shown its nonce.
    pub fn code(&self, guest: &Guest) -> Option<Code> {
        let knocked = guest.knocked.as_ref()?;
        Some(self.meeting(guest, knocked.key, &knocked.address).code(knocked.shown.as_ref()?, &knocked.nonce))
    }

    /// Somebody knocks with a token. The first key to do so is the only one from then on, with what it committed itself to, and is
    /// answered `fresh` for good ([JOI-3], [JOI-5]).
    ///
    /// # Errors
    /// A sentence for whoever knocked.
    pub fn knock(&mut self, token: &Hash, knock: Knocked, named: (&str, Role), now: u64) -> Result<Nonce, String> {
        let mut others = self.guests.iter().filter(|g| g.invitation != *token).filter_map(|g| g.knocked.as_ref());
        let busy = knock.key == self.coordinator.key || others.any(|k| k.key == knock.key);
        let Some(guest) = self.guests.iter_mut().find(|guest| guest.invitation == *token) else {
            return Err("nobody was invited with this line, or the invitation was replaced [JOI-3]".into());
        };
        if (guest.party.as_str(), guest.role) != named {
            return Err("this line invites another party [JOI-3]".into());
        }
        match (&guest.knocked, guest.stage) {
            (_, Stage::Rejected) => Err("the coordinator's operator took this invitation back".into()),
            (Some(first), _)
                if (first.key, &first.address, first.commitment) == (knock.key, &knock.address, knock.commitment) =>
            {
                Ok(first.nonce)
            }
            (Some(first), _) if first.key == knock.key => {
                Err("this key knocked before and says something else now [JOI-5]".into())
            }
            (Some(_), _) => Err(format!(
                "the invitation of {} was used already, by another key [JOI-3]: if that was not its operator, take the invitation back",
                guest.party
            )),
            (None, _) if now >= guest.expires => Err(format!("the invitation of {} has expired [JOI-3]", guest.party)),
            (None, _) if busy => Err("this key belongs to another party of the federation [JOI-3]".into()),
            (None, _) if (guest.role == Role::Intermediary) == knock.address.is_empty() => {
                Err("an intermediary needs an address, and a site has none".into())
            }
            (None, _) => {
                let nonce = knock.nonce;
                guest.knocked = Some(Knocked { shown: None, ..knock });
                Ok(nonce)
            }
        }
    }

    /// The one who knocked shows its nonce: from now on the operator can compare ([JOI-4]).
    ///
    /// # Errors
    /// A sentence for whoever knocked.
    pub fn show(&mut self, token: &Hash, nonce: Nonce) -> Result<(), String> {
        let found = self.guests.iter().position(|guest| guest.invitation == *token);
        let found = found.ok_or("nobody was invited with this line")?;
        let guest = &self.guests[found];
        let knocked = guest.knocked.as_ref().ok_or("nobody knocked with this line")?;
        let meeting = self.meeting(guest, knocked.key, &knocked.address);
        if meeting.commitment(&nonce) != knocked.commitment {
            return Err("this is not the number that was committed to [JOI-4]".into());
        }
        let guest = &mut self.guests[found];
        guest.knocked.iter_mut().for_each(|knocked| knocked.shown = Some(nonce));
        if guest.stage == Stage::Invited {
            guest.stage = Stage::Waiting;
        }
        Ok(())
    }

    /// The coordinator's operator was brought the answer of `party`: it is in ([JOI-8]). `fresh` is what a knock would have been answered.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn answered(&mut self, party: &str, reply: &Reply, fresh: Nonce, now: u64) -> Result<(), String> {
        let guest = self.guest(party).ok_or("nobody was invited under this name")?.clone();
        let (coordinator, role, invitation) = (self.coordinator.key, guest.role, guest.invitation);
        if reply.token.hash() != invitation || !reply.is_for(coordinator, party, role) {
            return Err("this is the answer to another invitation, or its own key did not sign it [JOI-8]".into());
        }
        let commitment = self.meeting(&guest, reply.key, &reply.address).commitment(&reply.nonce);
        let knocked = Knocked { key: reply.key, address: reply.address.clone(), commitment, nonce: fresh, shown: None };
        self.knock(&invitation, knocked, (party, role), now)?;
        self.show(&invitation, reply.nonce)?;
        if let Some(guest) = self.guest(party) {
            guest.stage = Stage::Approved;
        }
        Ok(())
    }

    /// The roster of everybody who was let in; none as long as somebody is invited or waits ([JOI-6]).
    pub fn roster(&self) -> Option<Roster> {
        let coming = |guest: &&Guest| guest.stage != Stage::Rejected;
        let member = |guest: &Guest| {
            let knocked = guest.knocked.as_ref().filter(|_| guest.stage == Stage::Approved)?;
            Some(Member { name: guest.party.clone(), key: knocked.key, address: knocked.address.clone() })
        };
        let of = |role| self.guests.iter().filter(coming).filter(move |guest| guest.role == role).map(member);
        Some(Roster {
            name: self.federation.clone(),
            coordinator: self.coordinator.clone(),
            intermediary: of(Role::Intermediary).next()??,
            sites: of(Role::Site).collect::<Option<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use veilsum_proto::identity::Identity;

    use super::*;
    use crate::documents::tests::Folder;

    fn key(seed: u8) -> PublicKey {
        Identity::from_seed(&[seed; 32]).public()
    }

    fn list() -> GuestList {
        let coordinator = Member { name: "hub".into(), key: key(1), address: "127.0.0.1:1".into() };
        let mut list = GuestList {
            federation: "test".into(),
            coordinator,
            guests: Vec::new(),
            run: None,
            proposed: 0,
            numbered: 0,
        };
        list.invite("counter", Role::Intermediary, Hash([0; 32]), 100).unwrap();
        for (i, party) in ["a", "b", "c"].into_iter().enumerate() {
            list.invite(party, Role::Site, Hash([i as u8 + 1; 32]), 100).unwrap();
        }
        list
    }

    fn knock(list: &GuestList, of: usize, seed: u8, drawn: u8) -> Knocked {
        let address = if list.guests[of].role == Role::Site { "" } else { "127.0.0.1:2" };
        let commitment = list.meeting(&list.guests[of], key(seed), address).commitment(&Nonce([seed; 32]));
        Knocked { key: key(seed), address: address.into(), commitment, nonce: Nonce([drawn; 32]), shown: None }
    }

    /// [PRO-4]: a member that knows later runs moves the next number, by so much at most and never back.
    #[test]
    fn runs_are_counted_on_from_what_members_know() {
        let mut list = list();
        assert!(!list.counts_on_from(0) && list.counts_on_from(3) && !list.counts_on_from(2));
        assert_eq!(list.last(), 3);
        assert!(list.counts_on_from(u64::MAX) && !list.counts_on_from(u64::MAX), "however often it is said");
        assert_eq!(list.last(), AHEAD);
    }

    /// [JOI-3], [JOI-5]: the first key is the only one, and gets the same answer however often it asks.
    #[test]
    fn an_invitation_serves_one_key_and_one_pair_of_nonces() {
        let mut list = list();
        let token = Hash([1; 32]);
        assert_eq!(list.knock(&token, knock(&list, 1, 10, 7), ("a", Role::Site), 99), Ok(Nonce([7; 32])));
        assert_eq!(
            list.knock(&token, knock(&list, 1, 10, 8), ("a", Role::Site), 500),
            Ok(Nonce([7; 32])),
            "resumed, after its time"
        );
        let other = Knocked { commitment: Hash([9; 32]), ..knock(&list, 1, 10, 8) };
        assert!(list.knock(&token, other, ("a", Role::Site), 99).unwrap_err().contains("something else"));
        assert!(
            list.knock(&token, knock(&list, 1, 11, 8), ("a", Role::Site), 99).unwrap_err().contains("used already")
        );
        assert!(list.code(&list.guests[1]).is_none(), "nothing to compare before the nonce is shown");
        assert!(list.show(&token, Nonce([11; 32])).unwrap_err().contains("[JOI-4]"));
        assert_eq!(list.guests[1].stage, Stage::Invited);
        list.show(&token, Nonce([10; 32])).unwrap();
        let code = list.code(&list.guests[1]).unwrap();
        let meeting = list.meeting(&list.guests[1], key(10), "");
        assert_eq!((code, list.guests[1].stage), (meeting.code(&Nonce([10; 32]), &Nonce([7; 32])), Stage::Waiting));
    }

    /// [JOI-3].
    #[test]
    fn who_was_not_invited_does_not_come_in() {
        let mut list = list();
        let mut refused = |token: u8, of: usize, seed: u8, named: (&str, Role), now: u64| {
            let knocked = knock(&list, of, seed, 7);
            list.knock(&Hash([token; 32]), knocked, named, now).unwrap_err()
        };
        assert!(refused(9, 1, 10, ("a", Role::Site), 0).contains("nobody was invited"));
        assert!(refused(1, 1, 10, ("b", Role::Site), 0).contains("another party"));
        assert!(refused(1, 1, 10, ("a", Role::Intermediary), 0).contains("another party"));
        assert!(refused(1, 1, 10, ("a", Role::Site), 100).contains("expired"));
        assert!(refused(1, 1, 1, ("a", Role::Site), 0).contains("another party"), "the coordinator's own key");
        assert!(refused(0, 1, 10, ("counter", Role::Intermediary), 0).contains("address"));
        list.knock(&Hash([1; 32]), knock(&list, 1, 10, 7), ("a", Role::Site), 0).unwrap();
        let twice = list.knock(&Hash([2; 32]), knock(&list, 2, 10, 7), ("b", Role::Site), 0);
        assert!(twice.unwrap_err().contains("belongs to another party"));
        list.guest("c").unwrap().stage = Stage::Rejected;
        let gone = list.knock(&Hash([3; 32]), knock(&list, 3, 12, 7), ("c", Role::Site), 0);
        assert!(gone.unwrap_err().contains("took this invitation back"));
    }

    /// [JOI-3], [JOI-6]: one name, one party; and no roster while somebody is waited for.
    #[test]
    fn a_roster_comes_about_when_nobody_is_waited_for() {
        let mut list = list();
        for name in ["a", "hub", "no name", ""] {
            assert!(list.invite(name, Role::Site, Hash([5; 32]), 1).is_err(), "{name}");
        }
        assert!(list.invite("second", Role::Intermediary, Hash([5; 32]), 1).is_err());
        for of in 0..4 {
            assert_eq!(list.roster(), None);
            let (name, role) = (list.guests[of].party.clone(), list.guests[of].role);
            list.knock(&Hash([of as u8; 32]), knock(&list, of, 20 + of as u8, 1), (&name, role), 0).unwrap();
            list.show(&Hash([of as u8; 32]), Nonce([20 + of as u8; 32])).unwrap();
            assert_eq!(list.roster(), None, "{name} was not approved");
            list.guests[of].stage = Stage::Approved;
        }
        let roster = list.roster().unwrap();
        roster.check().unwrap();
        assert_eq!(roster.sites.iter().map(|m| m.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
        list.invite("d", Role::Site, Hash([9; 32]), 1).unwrap();
        assert_eq!(list.roster(), None);
        list.guest("d").unwrap().stage = Stage::Rejected;
        assert_eq!(list.roster(), Some(roster));
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = Folder::new("guests");
        let mut all = list();
        all.knock(&Hash([1; 32]), knock(&all, 1, 10, 7), ("a", Role::Site), 0).unwrap();
        all.show(&Hash([1; 32]), Nonce([10; 32])).unwrap();
        all.guests[2].has = Some([Hash([1; 32]), Hash([2; 32])]);
        GuestList::found(&folder.0, "test", all.coordinator.clone()).unwrap();
        assert!(GuestList::found(&folder.0, "test", all.coordinator.clone()).is_err(), "there is one");
        GuestList::change(&folder.0, |list| {
            *list = all.clone();
            Ok(())
        })
        .unwrap();
        assert_eq!(GuestList::load(&folder.0).unwrap(), all);
    }
}
