//! The journal of a site or of the coordinator: a file of mode 0600, every entry checksummed and on disk before bytes leave. It
//! grows at its end; a site's is replaced with every answer, so that nothing of a closed slot stays in it ([JRN-4]).
//!
//! A torn last entry was not followed by a send, so it is dropped. Anything else that does not read back whole is
//! refused, because guessing could mean masking two vectors with one key.

use std::{
    fs::File,
    io::{self, Read},
    marker::PhantomData,
    path::{Path, PathBuf},
    time::SystemTime,
};

use veilsum_proto::{
    Error, aggregator,
    journal::Record,
    suite::{self, Hash},
};
use zeroize::Zeroizing;

use super::log::{self, Log, NoLock};
use crate::error::Failure;

const MAGIC: &[u8; 16] = b"veilsum-journal1";
/// Bytes before an entry: its length, a checksum of the length, a checksum of the entry.
const HEAD: usize = 16;

/// The entries of a journal.
pub trait Entry: Sized {
    /// Bytes of the largest entry.
    const MAX_ENTRY: usize;
    /// Bytes of the largest file that is read back.
    const MAX_FILE: u64;
    /// Its bytes.
    fn bytes(&self) -> Zeroizing<Vec<u8>>;
    /// Reads an entry back.
    ///
    /// # Errors
    /// `Error::Journal`.
    fn read(bytes: &[u8]) -> Result<Self, Error>;
}

/// The entries of a site. The largest is a deck of 1,000 members and 256 slots.
impl Entry for Record {
    const MAX_ENTRY: usize = 16 << 20;
    const MAX_FILE: u64 = 256 << 20;

    fn bytes(&self) -> Zeroizing<Vec<u8>> {
        self.to_bytes()
    }

    fn read(bytes: &[u8]) -> Result<Self, Error> {
        Record::from_bytes(bytes)
    }
}

/// The entries of the coordinator. The largest is the opening of a total of 8 MiB; a run has some hundreds of totals.
impl Entry for aggregator::Record {
    const MAX_ENTRY: usize = 64 << 20;
    const MAX_FILE: u64 = 16 << 30;

    fn bytes(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(self.to_bytes())
    }

    fn read(bytes: &[u8]) -> Result<Self, Error> {
        aggregator::Record::from_bytes(bytes)
    }
}

/// A journal that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The disk or its permissions.
    #[error("the journal {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Another process holds it.
    #[error("the journal {path} is in use by another process: two processes must not share one identity")]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// It was changed or cut.
    #[error("the journal {path} is damaged ({what}): what was sent before can no longer be told")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where.
        what: &'static str,
    },
}

impl From<JournalError> for Failure {
    fn from(e: JournalError) -> Self {
        let next = match e {
            JournalError::Io { .. } => "check free space and permissions of the folder (--state)",
            JournalError::Locked { .. } => "stop the other process",
            JournalError::Damaged { .. } => {
                "never put an older copy in its place: a site needs a new plan, as it can no longer tell what it answered, and a \
                 coordinator moves the file away and begins anew"
            }
        };
        Failure::input(e, next)
    }
}

/// An open, locked journal.
pub struct Journal<R = Record> {
    log: Log,
    _lock: File,
    entries: PhantomData<R>,
}

impl Journal {
    /// Opens (or makes) a site's journal of `session` in `folder` and reads its entries.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn open(folder: &Path, session: &Hash) -> Result<(Journal, Vec<Record>), JournalError> {
        Journal::of(folder, session)
    }
}

impl<R: Entry> Journal<R> {
    /// Opens (or makes) the journal of `session` in `folder` and reads its entries.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn of(folder: &Path, session: &Hash) -> Result<(Journal<R>, Vec<R>), JournalError> {
        let path = file_of(folder, session);
        let io = |source| JournalError::Io { path: path.clone(), source };
        log::make_private_folder(folder).map_err(|source| JournalError::Io { path: folder.to_owned(), source })?;
        // The lock is a file of its own, because the journal's file is replaced when it is rewritten.
        let lock = log::lock(&path.with_extension("lock"), "").map_err(|why| match why {
            NoLock::Held(_) => JournalError::Locked { path: path.clone() },
            NoLock::Io(source) => io(source),
        })?;
        let mut journal = Journal { log: Log::open(path.clone()).map_err(io)?, _lock: lock, entries: PhantomData };
        let records = journal.read()?;
        Ok((journal, records))
    }

    /// The entries of the journal of `session` in `folder`, without locking or mending it; nothing where there is none.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn look(folder: &Path, session: &Hash) -> Result<Option<(Vec<R>, SystemTime)>, JournalError> {
        let path = file_of(folder, session);
        let io = |source| JournalError::Io { path: path.clone(), source };
        let damaged = |what| JournalError::Damaged { path: path.clone(), what };
        let file = match File::open(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(io)?,
        };
        let about = file.metadata().map_err(io)?;
        if about.len() > R::MAX_FILE {
            return Err(damaged("it is larger than any journal"));
        }
        let mut bytes = Zeroizing::new(Vec::with_capacity(about.len() as usize));
        file.take(R::MAX_FILE).read_to_end(&mut bytes).map_err(io)?;
        let Some(rest) = bytes.strip_prefix(MAGIC) else { return Ok(None) };
        let (records, _) = whole(rest).map_err(damaged)?;
        Ok(Some((records, about.modified().map_err(io)?)))
    }

    fn io(&self, source: io::Error) -> JournalError {
        JournalError::Io { path: self.log.path().to_owned(), source }
    }

    fn read(&mut self) -> Result<Vec<R>, JournalError> {
        let path = self.log.path().to_owned();
        let damaged = |what| JournalError::Damaged { path: path.clone(), what };
        let length = self.log.file().metadata().map_err(|e| self.io(e))?.len();
        if length > R::MAX_FILE {
            return Err(damaged("it is larger than any journal"));
        }
        let mut bytes = Zeroizing::new(Vec::with_capacity(length as usize));
        self.log.file().read_to_end(&mut bytes).map_err(|e| self.io(e))?;
        if bytes.len() < MAGIC.len() {
            // New, or torn before its first entry.
            self.rewrite(&[])?;
            return Ok(Vec::new());
        }
        let Some(rest) = bytes.strip_prefix(MAGIC) else {
            return Err(damaged("its first line is not a journal's"));
        };
        let (records, good) = whole(rest).map_err(damaged)?;
        self.log.keep(good).map_err(|e| self.io(e))?;
        Ok(records)
    }

    /// Appends an entry and waits until it is on disk.
    ///
    /// # Errors
    /// [`JournalError::Io`]; what it protects must then not be sent.
    pub fn append(&mut self, record: &R) -> Result<(), JournalError> {
        let bytes = lines(&[], std::slice::from_ref(record));
        self.log.add(&bytes).map_err(|e| self.io(e))
    }

    /// Replaces all entries by `records`, durably: the new file is complete on disk before it takes the old one's name.
    /// The old bytes are overwritten; on a disk that copies on write they may live on.
    ///
    /// # Errors
    /// [`JournalError::Io`]; what the new entries protect must then not be sent.
    pub fn rewrite(&mut self, records: &[R]) -> Result<(), JournalError> {
        self.log.replace(&lines(MAGIC, records), R::MAX_FILE).map_err(|e| self.io(e))
    }
}

/// The whole entries of what stands after the magic, and where they end; a torn end is left out.
fn whole<R: Entry>(mut rest: &[u8]) -> Result<(Vec<R>, u64), &'static str> {
    let mut records = Vec::new();
    let mut good = MAGIC.len() as u64;
    while !rest.is_empty() {
        let Some((head, more)) = rest.split_first_chunk::<HEAD>() else { break };
        let ([l0, l1, l2, l3, ..], sum) = (head, &head[8..]);
        let length = u32::from_le_bytes([*l0, *l1, *l2, *l3]);
        if head[..8] != length_field(length) {
            return Err("an entry's length does not match its checksum");
        }
        let length = length as usize;
        if length > R::MAX_ENTRY {
            return Err("an entry declares an impossible length");
        }
        let Some((entry, after)) = more.split_at_checked(length) else { break };
        if checksum(entry) != sum {
            return Err("a checksum does not match");
        }
        records.push(R::read(entry).map_err(|_| "an entry cannot be read")?);
        good += (HEAD + length) as u64;
        rest = after;
    }
    Ok((records, good))
}

fn file_of(folder: &Path, session: &Hash) -> PathBuf {
    folder.join(format!("{}.journal", &session.to_string()[..16]))
}

/// The entries as the file has them, after `first`.
fn lines<R: Entry>(first: &[u8], records: &[R]) -> Zeroizing<Vec<u8>> {
    let entries: Vec<_> = records.iter().map(R::bytes).collect();
    // With its full capacity from the start: growing would leave copies of secrets behind.
    let length = first.len() + entries.iter().map(|e| HEAD + e.len()).sum::<usize>();
    let mut bytes = Zeroizing::new(Vec::with_capacity(length));
    bytes.extend_from_slice(first);
    for entry in &entries {
        bytes.extend_from_slice(&length_field(entry.len() as u32));
        bytes.extend_from_slice(&checksum(entry));
        bytes.extend_from_slice(entry);
    }
    bytes
}

/// A length with a checksum of its own: a damaged length must not pass for a torn end.
fn length_field(length: u32) -> [u8; 8] {
    let length = length.to_le_bytes();
    let sum = suite::hash("journal length", &[&length]).0;
    [length[0], length[1], length[2], length[3], sum[0], sum[1], sum[2], sum[3]]
}

fn checksum(entry: &[u8]) -> [u8; 8] {
    let mut out = [0; 8];
    out.copy_from_slice(&suite::hash("journal entry", &[entry]).0[..8]);
    out
}

#[cfg(test)]
mod tests {
    use std::{fs, sync::Arc};

    use super::*;
    use crate::role::system_rng;
    use veilsum_proto::{
        aggregator::{self, Aggregator, AggregatorConfig, Millis, Timing},
        identity::Identity,
        plan::Terms,
        policy::{self, Floor},
        roster::{Member, PartyId, Roster},
        site::{self, Site, SiteConfig},
    };

    fn folder(name: &str) -> PathBuf {
        let unique = format!("veilsum-journal-{name}-{}-{:?}", std::process::id(), std::thread::current().id());
        std::env::temp_dir().join(unique)
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
        let mut rng = system_rng();
        let ids: Vec<Arc<Identity>> = (0..5).map(|_| Arc::new(Identity::generate(&mut rng))).collect();
        let member = |i: usize| Member { name: format!("p{i}"), key: ids[i].public(), address: String::new() };
        let roster = Arc::new(Roster {
            name: "j".into(),
            coordinator: member(0),
            intermediary: member(1),
            sites: (2..5).map(member).collect(),
        });
        let terms = Arc::new(Terms {
            roster: roster.hash(),
            min_cohort: 3,
            threshold: 0,
            colluders: 0,
            block_size: 0,
            slots: 8,
            max_rows: 10,
            min_total_rows: 0,
            opening: true,
            application: Vec::new(),
        });
        let config = |i: usize| SiteConfig {
            identity: ids[i].clone(),
            roster: roster.clone(),
            terms: terms.clone(),
            floor: Floor::default(),
            aggregator: PartyId::Coordinator,
        };
        let mut sites: Vec<Site> = (2..5).map(|i| Site::new(config(i)).unwrap()).collect();
        let hub = AggregatorConfig {
            identity: ids[0].clone(),
            roster: roster.clone(),
            terms: terms.clone(),
            role: PartyId::Coordinator,
            timing: Timing::default(),
            slots: 8,
        };
        let mut hub = Aggregator::new(hub, Millis(0), &mut rng).unwrap();
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
                                hub.handle(aggregator::Input::Message { from: to, bytes: &bytes }, Millis(0));
                            }
                            site::Output::Event(site::Event::Asked(a)) => {
                                let consent = policy::decide_by_floor(&terms, &Floor::default(), &a).unwrap();
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
        config(2)
    }

    fn names(records: &[Record]) -> Vec<&'static str> {
        records.iter().map(Record::name).collect()
    }

    #[test]
    fn what_is_appended_comes_back_and_restores_a_site() {
        let dir = folder("append");
        let session = suite::hash("s", &[]);
        let (config, records) = entries(2);
        assert_eq!(names(&records), ["deck", "chain", "masked", "released"]);
        let (mut journal, old) = Journal::open(&dir, &session).unwrap();
        assert!(old.is_empty());
        records.iter().for_each(|r| journal.append(r).unwrap());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(journal.log.path()).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert!(matches!(Journal::open(&dir, &session), Err(JournalError::Locked { .. })));
        drop(journal);
        let (mut journal, back) = Journal::open(&dir, &session).unwrap();
        assert!(back == records);
        Site::restore(config, back).unwrap();
        journal.rewrite(&[]).unwrap();
        drop(journal);
        let (_, nothing) = Journal::open(&dir, &session).unwrap();
        assert!(nothing.is_empty());
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_new_deck_takes_the_old_keys_off_the_disk() {
        let (config, records) = entries(20);
        let decks = records.iter().filter(|r| r.name() == "deck").count();
        assert!(decks <= 2, "{:?}", names(&records));
        assert!(records.iter().any(|r| r.name() == "chain"));
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
            blocks: Vec<([u8; 32], Vec<u16>, Vec<u32>)>,
            first: u16,
            pairs: Vec<[u8; 32]>,
            seeds: Vec<[u8; 32]>,
            held: Vec<Vec<[u8; 32]>>,
            slot_commitments: Vec<[u8; 32]>,
        }
        let dir = folder("closed");
        let (mut journal, _) = Journal::open(&dir, &suite::hash("s", &[])).unwrap();
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
                    assert!(deck.pairs.iter().chain(&deck.seeds).chain(deck.held.iter().flatten()).all(holds));
                }
                (site::Output::Rewrite(_), Some(deck)) => {
                    for (slot, (seed, held)) in deck.seeds.iter().zip(&deck.held).enumerate() {
                        let open = slot >= usize::from(round);
                        assert!([seed].into_iter().chain(held).all(|s| holds(s) == open), "slot {slot}, round {round}");
                        looked[usize::from(open)] += 1;
                    }
                    assert!(deck.pairs.iter().all(|pair| holds(pair) == (round == 0)));
                }
                _ => {}
            }
        });
        assert_eq!(looked, [1 + 2 + 3 + 4, 8 + 7 + 6 + 5 + 4], "closed and open slots");
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_torn_end_is_dropped_and_damage_is_refused() {
        let dir = folder("torn");
        let session = suite::hash("s", &[]);
        let (_, records) = entries(2);
        let (mut journal, _) = Journal::open(&dir, &session).unwrap();
        records.iter().for_each(|r| journal.append(r).unwrap());
        let path = journal.log.path().to_owned();
        drop(journal);
        let whole = fs::read(&path).unwrap();
        for cut in [1, 5, 11, 13, 40] {
            fs::write(&path, &whole[..whole.len() - cut]).unwrap();
            let (_, back) = Journal::open(&dir, &session).unwrap();
            assert_eq!(back.len(), records.len() - 1, "cut {cut}");
        }
        for at in (0..64).chain([whole.len() / 2, whole.len() - 50, whole.len() - 1]) {
            let mut bad = whole.clone();
            bad[at] ^= 0x40;
            fs::write(&path, &bad).unwrap();
            let opened = Journal::open(&dir, &session).map(|(_, back)| back.len());
            assert!(matches!(opened, Err(JournalError::Damaged { .. })), "byte {at}: {opened:?}");
        }
        fs::remove_dir_all(dir).unwrap();
    }
}
