use std::fs;

use super::*;
use crate::{documents::tests::Folder, random::system_rng, store::Told};
use veilsum_proto::{
    aggregator::{self, Aggregator, Millis},
    journal::RecordKind,
    site::{self, Site, SiteConfig},
};

// Other crates' tests have it, too.
#[allow(unreachable_pub)]
#[path = "../../../../testkit/src/kit.rs"]
mod kit;
use kit::Kit;

/// A folder for the journals of one session.
struct Place(Folder);

impl Place {
    fn new() -> Place {
        Place(Folder::new("journal"))
    }

    fn open(&self) -> Result<(Journal<Record>, Vec<Record>), Failure> {
        Journal::open(&self.0.0, &session())
    }

    /// The file with these records in it.
    fn with(&self, records: &[Record]) -> PathBuf {
        let (mut journal, _) = self.open().unwrap();
        records.iter().for_each(|r| journal.append(r).unwrap());
        journal.log.path().to_owned()
    }

    fn refused(&self, why: &str) {
        let told = self.open().map(|(_, back)| back.len());
        assert!(matches!(&told, Err(failure) if failure.message.contains(why)), "{told:?}");
    }
}

fn session() -> Hash {
    suite::hash("s", &[])
}

/// Every entry that a site of three writes in one run of `rounds` rounds, with decks of two slots.
fn entries(rounds: u8) -> (SiteConfig, Vec<Record>) {
    let mut records = Vec::new();
    let config = run(rounds, |_, output| match output {
        site::Output::Persist(r) => records.push(r),
        site::Output::Rewrite(all) => records = all,
        _ => {}
    });
    (config, records)
}

/// One run, and what the first of three sites wants written in each of its rounds.
fn run(rounds: u8, mut written: impl FnMut(u8, site::Output)) -> SiteConfig {
    let (mut rng, kit) = (system_rng(), Kit::same(3, |terms| terms.max_rows = 10));
    let mut sites: Vec<Site> = (0..3).map(|i| Site::new(kit.site(i)).unwrap()).collect();
    let mut hub = Aggregator::new(kit.coordinator(), Millis(0), &mut rng).unwrap();
    (0..3).for_each(|s| hub.handle(aggregator::Input::Attached(s), Millis(0)));
    let mut asked = 0;
    hub.handle(aggregator::Input::Ask { query: vec![asked], words: 2 }, Millis(0));
    while let Some(output) = hub.poll() {
        match output {
            aggregator::Output::Send { to, bytes } => {
                sites[usize::from(to)].handle(site::Input::Message(&bytes), &mut rng).unwrap();
                while let Some(output) = sites[usize::from(to)].poll() {
                    match output {
                        site::Output::Persist(_) | site::Output::Rewrite(_) if to == 0 => written(asked, output),
                        site::Output::Send { bytes, .. } => {
                            hub.handle(aggregator::Input::Messages(&[(to, &bytes)]), Millis(0));
                        }
                        site::Output::Event(site::Event::Asked(a)) => {
                            let consent = kit.consents(&a).unwrap();
                            let input = site::Input::Contribute { consent, values: vec![1; a.words] };
                            sites[usize::from(to)].handle(input, &mut rng).unwrap();
                        }
                        _ => {}
                    }
                }
            }
            aggregator::Output::Event(aggregator::Event::Total { .. }) if asked + 1 < rounds => {
                asked += 1;
                hub.handle(aggregator::Input::Ask { query: vec![asked], words: 2 }, Millis(0));
            }
            aggregator::Output::Persist(_) | aggregator::Output::Event(_) => {}
        }
    }
    kit.site(0)
}

fn names(records: &[Record]) -> Vec<String> {
    records.iter().map(|record| format!("{record:?}")).collect()
}

#[test]
fn what_is_appended_comes_back_and_restores_a_site() {
    let place = Place::new();
    let (config, records) = entries(2);
    assert_eq!(names(&records), ["Deck", "Chain", "Masked", "Released"].map(|kind| format!("Record({kind})")));
    let (mut journal, old) = place.open().unwrap();
    assert!(old.is_empty());
    records.iter().for_each(|r| journal.append(r).unwrap());
    crate::files::check_private(journal.log.path()).unwrap();
    place.refused("in use by another process");
    drop(journal);
    let (mut journal, back) = place.open().unwrap();
    assert!(back == records);
    Site::restore(config, back).unwrap();
    journal.rewrite(&[]).unwrap();
    drop(journal);
    assert!(place.open().unwrap().1.is_empty());
}

#[test]
fn a_new_deck_takes_the_old_keys_off_the_disk() {
    let (config, records) = entries(20);
    let decks = records.iter().filter(|r| r.kind() == RecordKind::Deck).count();
    assert!(decks <= 2, "{:?}", names(&records));
    assert!(records.iter().any(|r| r.kind() == RecordKind::Chain));
    assert!(Site::restore(config, records).is_ok());
}

/// [JRN-4]: in the file itself, between every two rounds. A deck's secrets are found by where they stand in the entry
/// that was written when it was ready.
#[test]
fn no_secret_of_a_closed_slot_is_in_the_file() {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Deck {
        kind: u32,
        names: [[u8; 32]; 2],
        index: u32,
        directory: [u8; 32],
        threshold: u16,
        members: Vec<u16>,
        first: u16,
        pairs: Vec<(u16, [u8; 32])>,
        seeds: Vec<[u8; 32]>,
        held: Vec<Vec<[u8; 32]>>,
        slot_commitments: Vec<[u8; 32]>,
    }
    fn pairs(deck: &Deck) -> impl Iterator<Item = &[u8; 32]> {
        deck.pairs.iter().map(|(_, pair)| pair)
    }
    let place = Place::new();
    let (mut journal, _) = place.open().unwrap();
    let path = journal.log.path().to_owned();
    let (mut deck, mut looked): (Option<Deck>, [usize; 2]) = (None, [0; 2]);
    run(5, |round, output| {
        match &output {
            site::Output::Persist(record) => journal.append(record).unwrap(),
            site::Output::Rewrite(all) => journal.rewrite(all).unwrap(),
            _ => {}
        }
        let bytes = fs::read(&path).unwrap();
        let holds = |secret: &[u8; 32]| bytes.windows(32).any(|w| w == secret);
        match (output, &deck) {
            (site::Output::Persist(record), None) => {
                deck = veilsum_proto::codec::decode("deck", &record.to_bytes(), 1 << 20).ok();
                let deck = deck.as_ref().expect("the first entry is the deck");
                assert!(pairs(deck).chain(&deck.seeds).chain(deck.held.iter().flatten()).all(holds));
            }
            (site::Output::Rewrite(_), Some(deck)) => {
                for (slot, (seed, held)) in deck.seeds.iter().zip(&deck.held).enumerate() {
                    let open = slot >= usize::from(round);
                    assert!([seed].into_iter().chain(held).all(|s| holds(s) == open), "slot {slot}, round {round}");
                    looked[usize::from(open)] += 1;
                }
                assert!(pairs(deck).all(|pair| holds(pair) == (round == 0)));
            }
            _ => {}
        }
    });
    assert_eq!(looked, [1 + 2 + 3 + 4, 8 + 7 + 6 + 5 + 4], "closed and open slots");
}

#[test]
fn a_torn_end_is_dropped_and_damage_is_refused() {
    let (place, (_, records)) = (Place::new(), entries(2));
    let path = place.with(&records);
    let whole = fs::read(&path).unwrap();
    for cut in [1, 5, 11, 13, 40] {
        fs::write(&path, &whole[..whole.len() - cut]).unwrap();
        assert_eq!(place.open().unwrap().1.len(), records.len() - 1, "cut {cut}");
    }
    for at in (0..64).chain([whole.len() / 2, whole.len() - 50, whole.len() - 1]) {
        let mut bad = whole.clone();
        bad[at] ^= 0x40;
        fs::write(&path, &bad).unwrap();
        place.refused(" is damaged (");
    }
}

/// [JRN-4]: wherever the power fails while one journal takes the place of another.
#[test]
fn a_journal_that_was_being_overwritten_is_found_under_the_new_one_s_other_name() {
    let (place, (_, records)) = (Place::new(), entries(2));
    let (mut journal, _) = place.open().unwrap();
    let path = journal.log.path().to_owned();
    let other = path.with_added_extension("new");
    let (old, new) = (&records[..3], &records[..]);
    let [old_bytes, new_bytes] = [old, new].map(|records| {
        journal.rewrite(records).unwrap();
        fs::read(&path).unwrap()
    });
    drop(journal);
    let opened = || {
        let (journal, back) = place.open()?;
        assert!(!other.exists(), "what was to replace a journal is not left behind");
        let again = fs::read(journal.log.path()).unwrap();
        drop(journal);
        assert!(place.open().unwrap().1 == back && fs::read(&path).unwrap() == again);
        Ok::<_, Failure>(back)
    };
    // The new one is on its way, up to any byte: the old one holds.
    for there in [0, 7, 16, 40, new_bytes.len() / 2, new_bytes.len() - 1, new_bytes.len()] {
        fs::write(&path, &old_bytes).unwrap();
        fs::write(&other, &new_bytes[..there]).unwrap();
        assert!(opened().unwrap() == old, "{there} bytes of the new one");
    }
    // The old one is being overwritten, any part of it first: the new one holds.
    let end = old_bytes.len();
    for gone in [0..end, 0..16, 0..17, 16..48, 40..end, end / 2..end, end - 40..end] {
        let mut bytes = old_bytes.clone();
        bytes[gone.clone()].fill(0);
        assert!(bytes != old_bytes);
        fs::write(&path, &bytes).unwrap();
        fs::write(&other, &new_bytes).unwrap();
        assert!(opened().unwrap() == new, "{gone:?} overwritten");
        // Without a whole one in its place it is damage.
        for left in [None, Some(&new_bytes[..new_bytes.len() - 1])] {
            fs::write(&path, &bytes).unwrap();
            left.map_or(Ok(()), |left| fs::write(&other, left)).unwrap();
            place.refused(" is damaged (");
            let _ = fs::remove_file(&other);
        }
    }
}

/// [JRN-4]: one file under both names, as some file systems leave it, stays; what was to replace a journal that somebody removed is
/// overwritten.
#[test]
fn what_was_to_replace_a_journal_is_overwritten_unless_it_is_the_journal() {
    use std::io::Read;
    let (place, (_, records)) = (Place::new(), entries(2));
    let (mut journal, _) = place.open().unwrap();
    let path = journal.log.path().to_owned();
    let other = path.with_added_extension("new");
    journal.rewrite(&records).unwrap();
    drop(journal);
    fs::hard_link(&path, &other).unwrap();
    for _ in 0..2 {
        assert!(place.open().unwrap().1 == records && !other.exists());
    }
    fs::rename(&path, &other).unwrap();
    let mut left = File::open(&other).unwrap();
    assert!(place.open().unwrap().1.is_empty() && !other.exists());
    let mut bytes = Vec::new();
    left.read_to_end(&mut bytes).unwrap();
    assert!(!bytes.is_empty() && bytes.iter().all(|byte| *byte == 0));
}

/// What was said to a site may lose its end to a loss of power, because its secrets say how far it has to reach; they may not
/// ([`a_torn_end_is_dropped_and_damage_is_refused`]).
#[test]
fn a_transcript_may_lose_its_end() {
    let place = Place::new();
    let open = || Journal::<Told>::open(&place.0.0, &session());
    let (mut journal, _) = open().unwrap();
    let told = [Told::Counted(vec![0, 1]), Told::Counted(vec![0, 2])];
    told.iter().for_each(|told| journal.append(told).unwrap());
    let path = journal.log.path().to_owned();
    drop(journal);
    let whole = fs::read(&path).unwrap();
    let changed = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    for (bytes, left) in [
        ([&whole[..], &[0; 64]].concat(), 2),
        (changed(whole.len() - 1), 1),
        (whole[..whole.len() - 1].to_vec(), 1),
        (changed(MAGIC.len()), 0),
    ] {
        fs::write(&path, bytes).unwrap();
        assert_eq!(open().unwrap().1, told[..left]);
    }
    fs::write(&path, b"the lines of something else").unwrap();
    assert!(open().is_err());
    drop(Journal::<Told>::empty(&place.0.0, &session()).unwrap());
    assert!(open().unwrap().1.is_empty());
}
