//! A site's ledger on disk. It records everything that ever left under one identity, over all plans and runs ([LED-1]
//! to [LED-7]), and what was given away about the rows at hand.
//!
//! The file is in the state folder and its head beside the key. Anybody who cuts the file, or puts an older copy in its
//! place, would have to change both places.

mod error;
mod file;
mod kept;
mod look;

use std::{
    collections::BTreeSet,
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use veilsum_proto::{
    codec,
    identity::{Identity, PublicKey, Signature},
    ledger::{Entry, Form, Head, Note},
    message::Disclosure,
    suite::{self, Hash},
};

pub use error::LedgerError;
use file::Fault;
pub use kept::{KEPT_FOR_A_PROPOSAL, KEPT_FOR_A_RUN};
pub use look::{Checked, adopt, all, check};

use super::log::{self, Log};
use crate::{
    egress::Entered,
    files::{self, Existing, Replacement},
    release::{Book, Data, Left},
};

/// Name of the file in the state folder.
pub const FILE: &str = "ledger.jsonl";
/// Name of the file beside it that says in which rounds the words left that may still be undone.
const ROUNDS: &str = "rounds";
/// The number of conversations in it, of which the latest are kept: two for each plan.
const MOST_ROUNDS: usize = 16;
/// The largest size of the file: a signature, a length and three hashes for each.
const MAX_ROUNDS: usize = 64 + 8 + MOST_ROUNDS * 96;
const SIGNED_ROUNDS: &str = "rounds that may be undone";

/// An open ledger.
pub struct Ledger {
    identity: Arc<Identity>,
    book: Book,
    head: Head,
    /// Digests of the frames of this plan that left; the same bytes again get no new entry.
    sent: BTreeSet<Hash>,
    /// The masked words that left last in each conversation.
    words: Vec<Words>,
    disk: Option<Disk>,
}

/// Masked words that left last in a conversation: a certificate names their round by its context, an entry by their digest.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Words {
    session: Hash,
    context: Hash,
    digest: Hash,
}

struct Disk {
    log: Log,
    head_path: Option<PathBuf>,
    _locks: Vec<File>,
}

impl Ledger {
    /// Makes a ledger that lasts as long as this process.
    pub fn in_memory(identity: Arc<Identity>, data: Data) -> Ledger {
        let book = Book::new(identity.clone(), data);
        Ledger { identity, book, head: Head::default(), sent: BTreeSet::new(), words: Vec::new(), disk: None }
    }

    /// Opens (or begins) the ledger in `folder` for a run of `plan`, checks every entry of it, and that it is not behind its
    /// head at `head`.
    ///
    /// # Errors
    /// [`LedgerError`]; the site then answers nothing.
    pub fn open(
        folder: &Path,
        head: Option<&Path>,
        identity: Arc<Identity>,
        data: Data,
        plan: Hash,
    ) -> Result<Ledger, LedgerError> {
        let key = identity.public();
        let path = folder.join(FILE);
        let io = |source| LedgerError::Io { path: path.clone(), source };
        log::make_private_folder(folder).map_err(|source| LedgerError::Io { path: folder.to_owned(), source })?;
        let locks = [Some(path.as_path()), head].into_iter().flatten();
        // The head is locked too, because another state folder with the same key would be another account of the same
        // rows.
        let locks = locks.map(|path| lock(path, &plan)).collect::<Result<Vec<_>, _>>()?;
        let mut ledger = Ledger::in_memory(identity, data);
        let log = Log::open(path.clone()).map_err(io)?;
        let disk = Disk { log, head_path: head.map(Path::to_owned), _locks: locks };
        ledger.read(disk, key, &plan)?;
        ledger.words = rounds_in(folder, &key);
        Ok(ledger)
    }

    fn read(&mut self, mut disk: Disk, key: PublicKey, plan: &Hash) -> Result<(), LedgerError> {
        let path = disk.log.path().to_owned();
        let damaged = |what: String| LedgerError::Damaged { path: path.clone(), what };
        let known = disk.head_path.as_deref().map(|p| read_head(p, &key)).transpose()?.flatten();
        // The head's own entry must be there.
        let mut seen = known.is_none_or(|known| known.entries == 0);
        let (book, sent) = (&mut self.book, &mut self.sent);
        let read = file::read(disk.log.file(), key, |entry, head| {
            seen |= known == Some(head);
            if matches!(entry.note, Some(Note::Undone)) {
                sent.remove(&entry.digest);
            } else if entry.plan == *plan {
                sent.insert(entry.digest);
            }
            book.take(&entry);
        });
        let cut = |head: Head| LedgerError::Cut { path: path.clone(), there: head.entries };
        let (head, good) = match read {
            Ok(whole) => (whole.head, whole.good),
            // [LED-6]: what the torn line was to protect did not leave, or the head would know it.
            Err((head, Fault::Torn { good, .. })) if seen => (head, good),
            Err((head, Fault::Torn { .. })) => return Err(cut(head)),
            Err((_, fault)) => return Err(fault.of(&path)),
        };
        self.head = head;
        if !seen {
            return Err(match known {
                Some(known) if known.entries <= self.head.entries => {
                    damaged(format!("entry {} is not the one that its head names", known.entries.saturating_sub(1)))
                }
                _ => cut(self.head),
            });
        }
        if known.is_none()
            && let Some(head_path) = &disk.head_path
        {
            if self.head.entries > 0 {
                return Err(LedgerError::NoHead { path: head_path.clone() });
            }
            // An empty ledger has a head from the beginning, so that a ledger that was taken away is noticed.
            write_head(head_path, &self.head, &self.identity)?;
        }
        disk.log.keep(good).map_err(|source| LedgerError::Io { path, source })?;
        self.disk = Some(disk);
        Ok(())
    }

    /// What was given away and is promised.
    pub fn book(&self) -> &Book {
        &self.book
    }

    /// The same, for promising an answer.
    pub fn book_mut(&mut self) -> &mut Book {
        &mut self.book
    }

    /// Where it ends.
    pub fn head(&self) -> Head {
        self.head
    }

    /// Writes down, durably, a note that is no frame.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn note(&mut self, note: Note, left: &Left, digest: Hash) -> Result<(), LedgerError> {
        let version = self.book.account().version() + u32::from(matches!(note, Note::Changed(_) | Note::Separate(_)));
        let entry =
            Entry { slot: left.slot, version, note: Some(note), ..self.entry(left, Disclosure::Nothing, 0, digest) };
        self.add(entry)?;
        self.sync()
    }

    /// [REL-6]: what left in the round `left.context` enters no total. Nothing is noted where it is not known that
    /// words left in exactly this round, because slots have the same numbers in every run and the coordinator chooses a
    /// run's name.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn undo(&mut self, left: &Left) -> Result<(), LedgerError> {
        // Words of this round that have not left are withdrawn.
        self.book.undo(&left.session, &left.context);
        let round = |words: &Words| (words.session, words.context) == (left.session, left.context);
        match self.words.iter().position(round) {
            Some(at) => {
                let digest = self.words.remove(at).digest;
                // If they leave nevertheless, they count as new ones.
                self.sent.remove(&digest);
                self.note(Note::Undone, left, digest)
            }
            None => Ok(()),
        }
    }

    /// Masked words have left. Their round is kept beside the ledger for a later process, as long as a certificate
    /// could still undo the block. Where that file is lost, the block stays.
    fn words_left(&mut self, left: &Left, digest: Hash) {
        let words = Words { session: left.session, context: left.context, digest };
        if self.words.contains(&words) {
            return;
        }
        self.words.retain(|before| before.session != left.session);
        self.words.push(words);
        self.words.drain(..self.words.len().saturating_sub(MOST_ROUNDS));
        let digests: BTreeSet<Hash> = self.words.iter().map(|words| words.digest).collect();
        if let Some(disk) = &self.disk
            && self.book.account().block().is_some_and(|block| block.rests_on(&digests))
        {
            let list = codec::encode(&self.words);
            let signature = self.identity.sign(SIGNED_ROUNDS, &[&list]);
            let path = disk.log.path().with_file_name(ROUNDS);
            let bytes = [&signature.to_bytes()[..], &list].concat();
            if let Err(e) = files::write_private(&path, &bytes, Existing::Replace) {
                tracing::warn!(
                    "{e}: after a restart the block of these rows stays, also where this round gives no total"
                );
            }
        }
    }

    fn entry(&self, left: &Left, discloses: Disclosure, bytes: u64, digest: Hash) -> Entry {
        Entry {
            index: self.head.entries,
            previous: self.head.link,
            plan: left.plan,
            session: left.session,
            run: left.run,
            slot: None,
            cohort: None,
            discloses,
            bytes,
            digest,
            data: self.book.data().name.clone(),
            rows: self.book.data().rows,
            version: self.book.account().version(),
            block: None,
            note: None,
            answer: None,
            form: Form::Present,
        }
    }

    fn add(&mut self, entry: Entry) -> Result<(), LedgerError> {
        if let Some(disk) = &mut self.disk {
            let line = file::write(&entry, &entry.sign(&self.identity));
            disk.log.append(line.as_bytes()).map_err(|source| disk.io(source))?;
        }
        self.head = Head { entries: entry.index + 1, link: entry.link() };
        self.book.take(&entry);
        Ok(())
    }

    /// [LED-4]: writes down a frame before it leaves. An answer is on disk, and its head with it, when this returns; other frames
    /// may share the next answer's way to the disk.
    ///
    /// # Errors
    /// [`LedgerError`]; the frame must then not leave.
    pub fn record(&mut self, frame: &[u8], discloses: Disclosure, left: &Left) -> Result<(), LedgerError> {
        self.enter(frame, discloses, left)?;
        if discloses == Disclosure::MaskedWords { self.sync() } else { Ok(()) }
    }

    /// Enters a frame that is to leave: [`Ledger::record`] without its way to the disk.
    pub(crate) fn enter(&mut self, frame: &[u8], discloses: Disclosure, left: &Left) -> Result<Entered, LedgerError> {
        let digest = suite::hash("ledger frame", &[frame]);
        let answers = discloses == Disclosure::MaskedWords;
        if !self.sent.contains(&digest) {
            let due = answers.then(|| self.book.due(left).map_err(|_| LedgerError::Unasked)).transpose()?;
            let round = left.slot.is_some() && left.cohort.is_some();
            let said = self.book.account().block().map(|block| &block.members);
            let entry = Entry {
                slot: left.slot.filter(|_| round),
                cohort: left.cohort.filter(|_| round),
                block: due.as_ref().map(|due| due.block.clone()).filter(|block| Some(block) != said),
                answer: due.map(|due| due.answer),
                ..self.entry(left, discloses, frame.len() as u64, digest)
            };
            self.add(entry)?;
            self.sent.insert(digest);
        }
        if answers {
            self.words_left(left, digest);
            self.book.take_back(&left.session);
        }
        Ok(Entered::by_the_ledger(discloses))
    }

    /// The head, written and not on disk yet, where there are entries that it does not know of. The steps of [`Ledger::sync`] are taken
    /// by themselves where other files go to the disk with it: the entries must be there before the head takes its name.
    pub(crate) fn next_head(&self) -> Result<Option<Replacement>, LedgerError> {
        let path = self.disk.as_ref().filter(|disk| disk.log.is_dirty()).and_then(|disk| disk.head_path.as_ref());
        path.map(|path| Replacement::write(path, head_text(&self.head, &self.identity).as_bytes()))
            .transpose()
            .map_err(LedgerError::Head)
    }

    /// Waits until the entries are on disk; their head is still to follow.
    pub(crate) fn sync_entries(&mut self) -> Result<(), LedgerError> {
        let Some(disk) = &mut self.disk else { return Ok(()) };
        disk.log.sync().map(drop).map_err(|source| disk.io(source))
    }

    /// What was to be on disk with the last entries may not be there: nothing more is entered.
    pub(crate) fn give_up(&mut self) {
        if let Some(disk) = &mut self.disk {
            disk.log.give_up();
        }
    }

    /// Everything so far is on disk, and the head says so.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn sync(&mut self) -> Result<(), LedgerError> {
        match &mut self.disk {
            Some(disk) => disk.sync(&self.head, &self.identity),
            None => Ok(()),
        }
    }
}

impl Disk {
    fn io(&self, source: std::io::Error) -> LedgerError {
        LedgerError::Io { path: self.log.path().to_owned(), source }
    }

    fn sync(&mut self, head: &Head, identity: &Identity) -> Result<(), LedgerError> {
        if self.log.sync().map_err(|source| self.io(source))?
            && let Some(path) = &self.head_path
        {
            write_head(path, head, identity).inspect_err(|_| self.log.give_up())?;
        }
        Ok(())
    }
}

/// The rounds whose words may be undone; none where the file is missing or not this key's.
fn rounds_in(folder: &Path, key: &PublicKey) -> Vec<Words> {
    let Ok(bytes) = files::read_limited(folder.join(ROUNDS), MAX_ROUNDS) else { return Vec::new() };
    let Some((signature, list)) = bytes.split_first_chunk::<64>() else { return Vec::new() };
    if !key.verify(SIGNED_ROUNDS, &[list], &Signature::from_bytes(signature)) {
        return Vec::new();
    }
    codec::decode("rounds", list, MAX_ROUNDS).unwrap_or_default()
}

fn write_head(path: &Path, head: &Head, identity: &Identity) -> Result<(), LedgerError> {
    files::write_private(path, head_text(head, identity).as_bytes(), Existing::Replace).map_err(LedgerError::Head)
}

fn head_text(head: &Head, identity: &Identity) -> String {
    file::write_head(head, &head.sign(identity))
}

fn read_head(path: &Path, key: &PublicKey) -> Result<Option<Head>, LedgerError> {
    match std::fs::symlink_metadata(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        _ => {}
    }
    let text = files::read_limited(path, file::MAX_HEAD).map_err(LedgerError::Head)?;
    let head = file::read_head(&text, key);
    head.map(Some)
        .ok_or_else(|| LedgerError::Damaged { path: path.to_owned(), what: "it is not signed by this key".into() })
}

/// How long a ledger that another process holds is waited for: who answers a proposal, or declares a change, has it for moments.
const PATIENCE: Duration = Duration::from_secs(3);

/// The file beside a ledger or a head whose lock the process that holds it keeps, with that process's number in it.
fn lock(ledger: &Path, plan: &Hash) -> Result<File, LedgerError> {
    let path = ledger.with_added_extension("lock");
    let who = format!("process {}, plan {}\n", std::process::id(), crate::documents::fingerprint(&plan.0));
    let end = Instant::now() + PATIENCE;
    loop {
        match log::lock(&path, &who).map_err(|source| LedgerError::Io { path: path.clone(), source })? {
            Err(_) if Instant::now() < end => thread::sleep(Duration::from_millis(20)),
            lock => return lock.map_err(|who| LedgerError::Locked { path: ledger.to_owned(), who }),
        }
    }
}

#[cfg(test)]
mod tests;
