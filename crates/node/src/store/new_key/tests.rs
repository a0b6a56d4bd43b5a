//! A key is replaced, and whatever rests on it goes on ([LED-9]).

use std::collections::{BTreeMap, BTreeSet};

use veilsum_proto::{
    identity::PublicKey,
    ledger::{Answer, Entry, Note},
    message::Disclosure,
    policy::Cost,
    release::block_id,
    suite::{self, Hash},
};

use super::*;
use crate::{
    documents::{
        Standing, load_roster, sign_next,
        tests::{Folder, kit},
        write_key,
    },
    files::Existing,
    release::{Data, Left},
    store::{
        LedgerError,
        ledger::{FILE, check},
    },
};

const PLAN: Hash = Hash([1; 32]);

/// Site-1 of three, which has agreed to the roster and has answered once in a block of all.
struct Party {
    folder: Folder,
    ids: Vec<Arc<Identity>>,
    roster: Roster,
}

fn fresh(old: &Identity, seed: u8) -> Identity {
    Identity::from_seed(&[seed; 32]).with_digests(old.digest_secret())
}

fn block(sites: &[PublicKey]) -> Vec<(PublicKey, u32)> {
    let mut block: Vec<_> = sites.iter().map(|key| (*key, 0)).collect();
    block.sort_unstable_by_key(|(key, _)| key.0);
    block
}

fn data() -> Data {
    Data { name: "rows".into(), rows: Hash([5; 32]) }
}

fn left() -> Left {
    let slot = Some((0, 1));
    Left {
        plan: PLAN,
        session: Hash([2; 32]),
        run: Hash([3; 32]),
        slot,
        cohort: Some(Hash([9; 32])),
        context: Hash([4; 32]),
    }
}

impl Party {
    fn new(name: &str) -> Party {
        let (roster, ids) = kit(3);
        let party = Party { folder: Folder::new(name), ids: ids.into_iter().map(Arc::new).collect(), roster };
        write_key(party.place().key, "site-1", party.own(), Existing::Refuse).unwrap();
        sign_next(party.file(), party.roster.clone(), Vec::new(), &party.ids[0]).unwrap();
        Federations::change(&party.place().key, party.own(), |known| {
            known.take(&party.roster, &[]);
            Ok(())
        })
        .unwrap();
        let sites: Vec<PublicKey> = party.roster.sites.iter().map(|site| site.key).collect();
        let mut ledger = party.open(party.own()).unwrap();
        let answer = Answer {
            kind: "fuzzy_sums".into(),
            question: suite::hash("test", &[]),
            cost: Cost { scalars: 9, nano_rho: None },
            drawn: None,
            probed: None,
        };
        ledger.book_mut().promise(&left(), answer, block(&sites)).unwrap();
        ledger.record(&[7; 100], Disclosure::MaskedWords, &left()).unwrap();
        drop(ledger);
        party
    }

    fn own(&self) -> &Arc<Identity> {
        &self.ids[2]
    }

    fn place(&self) -> Place {
        let at = |name: &str| self.folder.at(name);
        Place { key: at("a.key"), state: at("a.state"), head: at("a.key.head") }
    }

    fn file(&self) -> PathBuf {
        self.folder.at("roster.toml")
    }

    fn open(&self, identity: &Arc<Identity>) -> Result<Ledger, LedgerError> {
        let place = self.place();
        Ledger::open(&place.state, Some(&place.head), identity.clone(), data(), PLAN)
    }

    /// The coordinator signs a roster in which this member has that key.
    fn signs(&self, member: usize, old: &Identity, new: &Identity) -> Roster {
        let rekey = Rekey::make(&self.roster.name, &self.roster.sites[member].name, old, new);
        sign_next(self.file(), load_roster(self.file()).unwrap(), vec![rekey], &self.ids[0]).unwrap().signed.roster
    }

    fn take_up(&self, roster: &Roster) -> Result<(Identity, String, Changes), Failure> {
        identity_for(&self.place(), &self.file(), roster)
    }

    fn entries(&self, key: PublicKey) -> Vec<Entry> {
        check(&self.place().state.join(FILE), key, None).unwrap().entries
    }

    /// Every file but the locks.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let read = |folder: &Path| fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect::<Vec<_>>();
        let all = read(&self.folder.0).into_iter().chain(read(&self.place().state));
        let all = all.filter(|path| path.is_file() && path.extension().is_none_or(|end| end != "lock"));
        all.map(|path| (path.clone(), fs::read(&path).unwrap())).collect()
    }

    fn put(&self, files: &BTreeMap<PathBuf, Vec<u8>>) {
        self.files().keys().for_each(|path| fs::remove_file(path).unwrap());
        for (path, bytes) in files {
            files::write_private(path, bytes, Existing::Replace).unwrap();
        }
    }
}

fn rekeyed(entries: &[Entry]) -> usize {
    entries.iter().filter(|entry| matches!(entry.note, Some(Note::Rekeyed(_) | Note::Renamed(_)))).count()
}

/// [LED-9]: stopped between any two of its writes, the same call finishes it, and nothing is done twice or lost.
#[test]
fn led_9_a_key_is_replaced_wherever_the_process_was_stopped() {
    let party = Party::new("new-key");
    let (place, old) = (party.place(), party.own());
    let new = fresh(old, 88);
    write_key(next_of(&place.key), "site-1", &new, Existing::Refuse).unwrap();
    let (_, name, told) = party.take_up(&party.roster).unwrap();
    assert!(name == "site-1" && told.0.is_empty() && place.key.with_added_extension("next").exists(), "nothing yet");
    let spent = party.open(old).unwrap().book().spent(&Left::default());
    let roster = party.signs(0, old, &new);
    let before = party.files();
    // Agreed to, and stopped right after.
    Offered { file: &party.file(), roster: &roster, key: &place.key, identity: old }.agree(None, None).unwrap();
    let agreed = party.files();
    party.put(&before);
    let (taken, _, told) = party.take_up(&roster).unwrap();
    assert!(told.to_string().contains("site-1 has a new key, signed with its old one"), "{told}");
    assert_eq!(taken.public(), new.public());
    let after = party.files();
    let order = ["a.state/ledger.jsonl", "a.key.head", "a.state/rounds", "a.key.federations", "a.key"];
    let order = order.map(|name| party.folder.at(name));
    for path in &order {
        assert_ne!(before[path], after[path], "{} is signed anew", path.display());
    }
    let waiting = next_of(&place.key);
    assert!(!after.contains_key(&waiting));
    let mut stopped = vec![("before".to_owned(), before.clone())];
    for done in 0..=order.len() {
        let mut files = agreed.clone();
        order[..done].iter().for_each(|path| drop(files.insert(path.clone(), after[path].clone())));
        if done == order.len() {
            files.remove(&waiting);
        }
        stopped.push((format!("after {done} files"), files));
    }
    let (mut torn, ledger) = (agreed, &order[0]);
    let cut = after[ledger].len() - 40;
    torn.insert(ledger.clone(), after[ledger][..cut].to_vec());
    stopped.push(("in the middle of the note".into(), torn));
    for (when, files) in stopped {
        party.put(&files);
        let (now, _, _) = party.take_up(&roster).unwrap_or_else(|failure| panic!("{when}: {failure}"));
        let now = Arc::new(now);
        assert_eq!(now.public(), new.public(), "{when}");
        assert_eq!(party.files(), after, "{when}: the same files, byte for byte");
        let mut ledger = party.open(&now).unwrap_or_else(|e| panic!("{when}: {e}"));
        let sites: Vec<PublicKey> = roster.sites.iter().map(|site| site.key).collect();
        let known = ledger.book().account().block().unwrap();
        assert_eq!((known.id, &known.members), (block_id(sites.iter().copied()), &block(&sites)), "{when}");
        assert_eq!(ledger.book().spent(&Left::default()), spent, "{when}");
        // The round is still known by its context.
        ledger.undo(&left()).unwrap();
        assert!(ledger.book().account().block().is_none(), "{when}");
        assert_eq!(rekeyed(&party.entries(new.public())), 1, "{when}");
    }
    // Who has the old key alone reads it, and neither writes nor forges what is behind the note.
    assert!(matches!(party.open(old), Err(LedgerError::Rekeyed { .. })));
    let found = check(order[0].as_path(), old.public(), None).unwrap();
    assert_eq!(found.owners, [old.public(), new.public()]);
    assert!(check(order[0].as_path(), party.ids[3].public(), None).is_err());
    let standing = Federations::load(&place.key, &new).unwrap().judge(&roster, &[]).unwrap();
    assert_eq!(standing, Standing::Agreed);
    // Rows are known by the same secret as before.
    assert!(new.digest_secret() == old.digest_secret() && new.seed() != old.seed());
}

/// [LED-9], [REL-5]: the others' ledgers follow; once, and only where the key belonged to their block.
#[test]
fn led_9_the_others_follow_a_new_key() {
    let party = Party::new("follow");
    let (place, old) = (party.place(), party.own());
    let (second, third) = (fresh(&party.ids[4], 89), fresh(&party.ids[4], 90));
    party.signs(2, &party.ids[4], &second);
    let roster = party.signs(2, &second, &third);
    let spent = party.open(old).unwrap().book().spent(&Left::default());
    for _ in 0..2 {
        follow(&place, &party.file(), &roster, old).unwrap();
        assert_eq!(rekeyed(&party.entries(old.public())), 2, "one after the other, and each once");
    }
    let ledger = party.open(old).unwrap();
    let sites: BTreeSet<PublicKey> = roster.sites.iter().map(|site| site.key).collect();
    assert_eq!(ledger.book().standing().block, Some(block_id(sites)));
    assert_eq!(ledger.book().spent(&Left::default()), spent);
    drop(ledger);
    // The intermediary's is none of the block's.
    let other = fresh(&party.ids[1], 91);
    let rekey = Rekey::make(&roster.name, &roster.intermediary.name, &party.ids[1], &other);
    let roster = sign_next(party.file(), roster, vec![rekey], &party.ids[0]).unwrap().signed.roster;
    follow(&place, &party.file(), &roster, old).unwrap();
    assert_eq!(party.entries(old.public()).len(), 3);
}

/// A party that never answered has no ledger to hand over; one whose next key is on a roster that nobody agreed to keeps the old one.
#[test]
fn a_new_key_is_taken_up_with_a_roster_that_was_agreed_to() {
    let (roster, ids) = kit(3);
    let folder = Folder::new("no-ledger");
    let place = Place { key: folder.at("b.key"), state: folder.at("b.state"), head: folder.at("b.head") };
    let (file, old) = (folder.at("roster.toml"), &ids[1]);
    write_key(&place.key, "counter", old, Existing::Refuse).unwrap();
    let new = fresh(old, 92);
    write_key(next_of(&place.key), "counter", &new, Existing::Refuse).unwrap();
    sign_next(&file, roster.clone(), Vec::new(), &ids[0]).unwrap();
    let rekey = Rekey::make(&roster.name, &roster.intermediary.name, old, &new);
    let next = sign_next(&file, roster.clone(), vec![rekey], &ids[0]).unwrap().signed.roster;
    let Err(failure) = identity_for(&place, &file, &next) else { panic!("nobody compared it") };
    assert!(failure.message.contains("[ROS-8]"), "{failure}");
    assert_eq!(load_identity(&place.key).unwrap().0.public(), old.public());
    Federations::change(&place.key, old, |known| {
        known.take(&roster, &[]);
        Ok(())
    })
    .unwrap();
    assert_eq!(identity_for(&place, &file, &next).unwrap().0.public(), new.public());
    assert!(!place.state.exists() && !place.head.exists());
    assert_eq!(load_identity(&place.key).unwrap().0.public(), new.public());
}

/// [ROS-11]: whoever stole a key can state a new one, and the party is told at its next start.
#[test]
fn a_new_key_that_a_thief_stated_is_told_to_its_party() {
    let party = Party::new("thief");
    let roster = party.signs(0, party.own(), &Identity::from_seed(&[93; 32]));
    for waits in [false, true] {
        if waits {
            write_key(next_of(&party.place().key), "site-1", &fresh(party.own(), 94), Existing::Refuse).unwrap();
        }
        let Err(failure) = party.take_up(&roster) else { panic!("taken up") };
        assert!(failure.message.contains("[ROS-11]") && failure.advice.contains("stolen"), "{failure}");
    }
    assert_eq!(load_identity(party.place().key).unwrap().0.public(), party.own().public());
}
