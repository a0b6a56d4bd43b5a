//! A site's ledger on disk: everything that ever left under one identity, over all plans and runs ([LED-1] to [LED-7]), and
//! what of it was given away about the rows at hand.
//!
//! The file stands in the state folder, its head beside the key: whoever cuts the file, or puts an older copy in its place,
//! would have to do it in both places.

mod account;
mod error;
mod file;
mod origin;
mod smooth;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{File, OpenOptions, TryLockError},
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use veilsum_proto::{
    codec,
    identity::{Identity, PublicKey, Signature},
    ledger::{Answer, Entry, Head, Note},
    message::Disclosure,
    policy::{Cost, Smooth, Spent},
    release::{self, Broken, Standing},
    suite::{self, Hash},
};

pub use account::{Account, Data, Known, Membership, digest_of_rows};
pub use error::LedgerError;
use file::Fault;
pub use origin::{Origin, Together};
pub use smooth::{Kept, QUESTIONS};

use crate::files::{self, Existing};

/// Name of the file in the state folder.
pub const FILE: &str = "ledger.jsonl";
/// Name of the file beside it that says in which rounds the words left that may still be undone.
const ROUNDS: &str = "rounds";
/// Conversations in it, the last ones: two a plan.
const MOST_ROUNDS: usize = 16;
/// Bytes of it: a signature, a length and three hashes for each.
const MAX_ROUNDS: usize = 64 + 8 + MOST_ROUNDS * 96;
const SIGNED_ROUNDS: &str = "rounds that may be undone";

/// To which plan, conversation and round a frame belongs.
#[derive(Clone, Copy, Default)]
pub struct Left {
    /// The plan.
    pub plan: Hash,
    /// The session.
    pub session: Hash,
    /// The run.
    pub run: Hash,
    /// Deck and slot.
    pub slot: Option<(u32, u16)>,
    /// Digest of the keys of the sites whose total this is.
    pub cohort: Option<Hash>,
    /// Context of the frame.
    pub context: Hash,
}

/// An open ledger.
pub struct Ledger {
    identity: Arc<Identity>,
    data: Data,
    head: Head,
    /// Digests of the frames of this plan that left: the same bytes again are nothing new.
    sent: BTreeSet<Hash>,
    /// The masked words that left last in each conversation.
    words: Vec<Words>,
    account: Account,
    /// The answer that each conversation has agreed to and that has not left yet, by session.
    promised: BTreeMap<Hash, Promise>,
    disk: Option<Disk>,
}

/// Masked words that left last in a conversation: a certificate names their round by its context, an entry by their digest.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Words {
    session: Hash,
    context: Hash,
    digest: Hash,
}

/// An answer that was agreed to.
struct Promise {
    context: Hash,
    answer: Answer,
    /// What it adds to the account; nothing where it was given before.
    cost: Option<Cost>,
    /// The block of its total that this site is in.
    block: Vec<(PublicKey, u32)>,
}

struct Disk {
    path: PathBuf,
    head_path: Option<PathBuf>,
    file: File,
    _locks: Vec<File>,
    /// Bytes of whole entries.
    good: u64,
    /// Entries may not be on disk yet.
    dirty: bool,
    /// An entry could not be written: nothing more leaves.
    broken: bool,
}

impl Ledger {
    /// A ledger that lasts as long as this process.
    pub fn in_memory(identity: Arc<Identity>, data: Data) -> Ledger {
        let account = Account::default();
        let (head, sent, promised) = (Head::default(), BTreeSet::new(), BTreeMap::new());
        Ledger { identity, data, head, sent, words: Vec::new(), account, promised, disk: None }
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
        let path = folder.join(FILE);
        let io = |source| LedgerError::Io { path: path.clone(), source };
        super::journal::make_private_folder(folder)
            .map_err(|source| LedgerError::Io { path: folder.to_owned(), source })?;
        let locks = [Some(path.as_path()), head].into_iter().flatten();
        // The head's too: another state folder with the same key would be another account of the same rows.
        let locks = locks.map(|path| lock(path, &plan)).collect::<Result<Vec<_>, _>>()?;
        let mut options = OpenOptions::new();
        let file = super::journal::private(options.read(true).append(true).create(true)).open(&path).map_err(io)?;
        // Its name lasts before its head says that it is there.
        files::sync_folder(folder).map_err(io)?;
        let mut ledger = Ledger::in_memory(identity, data);
        ledger.account.keep(questions_in(folder, &ledger.identity.public())?);
        let disk = Disk {
            path: path.clone(),
            head_path: head.map(Path::to_owned),
            file,
            _locks: locks,
            good: 0,
            dirty: false,
            broken: false,
        };
        ledger.read(disk, &plan)?;
        ledger.words = rounds_in(folder, &ledger.identity.public());
        Ok(ledger)
    }

    fn read(&mut self, mut disk: Disk, plan: &Hash) -> Result<(), LedgerError> {
        let path = disk.path.clone();
        let damaged = |what: String| LedgerError::Damaged { path: path.clone(), what };
        let key = self.identity.public();
        let known = disk.head_path.as_deref().map(|p| read_head(p, &key)).transpose()?.flatten();
        // The head's own entry must be there.
        let mut seen = known.is_none_or(|known| known.entries == 0);
        let (account, sent) = (&mut self.account, &mut self.sent);
        let read = file::read(&disk.file, key, |entry, head| {
            seen |= known == Some(head);
            if entry.plan == *plan {
                sent.insert(entry.digest);
            }
            account.take(&entry);
        });
        let cut = |head: Head| LedgerError::Cut { path: path.clone(), there: head.entries };
        (self.head, disk.good) = match read {
            Ok(whole) => whole,
            // [LED-6]: what the torn line was to protect did not leave, or the head would know it.
            Err((head, Fault::Torn { good, .. })) if seen => {
                disk.file.set_len(good).map_err(|source| LedgerError::Io { path: path.clone(), source })?;
                (head, good)
            }
            Err((head, Fault::Torn { .. })) => return Err(cut(head)),
            Err((_, Fault::Io(source))) => return Err(LedgerError::Io { path, source }),
            Err((_, fault)) => return Err(damaged(fault.to_string())),
        };
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
            // From its first moment on: an empty ledger has a head too, so that one that was taken away is missed.
            write_head(head_path, &self.head, &self.identity)?;
        }
        disk.file.seek(SeekFrom::End(0)).map_err(|source| LedgerError::Io { path, source })?;
        self.disk = Some(disk);
        Ok(())
    }

    /// Where it ends.
    pub fn head(&self) -> Head {
        self.head
    }

    /// What was given away on these rows so far and is promised to the other aggregator, for an answer as `left` says;
    /// `counted` where it makes its run one of those that count.
    pub fn spent(&self, left: &Left, counted: bool) -> Spent {
        let mut spent = self.account.spent(&left.session, counted.then_some(left.run), left.slot);
        self.promised_elsewhere(&left.session).for_each(|cost| spent.add(&cost));
        spent
    }

    /// rho in 10^-9 of all answers with noise under the plan of `left`, as in [`Ledger::spent`].
    pub fn rho_of_plan(&self, left: &Left) -> u64 {
        let promised = self.promised_elsewhere(&left.session).filter_map(|cost| cost.nano_rho);
        promised.fold(self.account.rho_of(&left.plan), u64::saturating_add)
    }

    fn promised_elsewhere<'a>(&'a self, session: &'a Hash) -> impl Iterator<Item = Cost> + 'a {
        self.promised.iter().filter(move |(other, _)| *other != session).filter_map(|(_, promise)| promise.cost)
    }

    /// Measures all smooth questions answered so far, and what they tell with the one that `record` describes; `None` where it
    /// is none ([POL-9]).
    pub fn measure(&mut self, record: Option<&Kept>, cost: &Cost) -> Option<Smooth> {
        match record {
            Some(record) => self.account.measure_with(record, cost),
            None => {
                self.account.measure();
                None
            }
        }
    }

    /// [POL-9]: keeps what measuring a smooth question takes. Where it cannot be written, its numbers will count one by one
    /// after a restart.
    pub fn keep(&mut self, record: Kept) {
        if self.account.knows(&record) {
            return;
        }
        if let Some(disk) = &self.disk {
            let path = disk.path.with_file_name(QUESTIONS);
            if let Err(e) = smooth::append(&path, &record, &self.identity) {
                tracing::warn!(
                    "{} cannot be written ({e}): after a restart this question counts by its numbers",
                    path.display()
                );
            }
        }
        self.account.keep([record]);
    }

    /// Whether this answer gives nothing away that was not given before: the same numbers from the same sites, or the last
    /// answer of its session once more.
    pub fn repeats(&self, left: &Left, answer: &Answer) -> bool {
        left.cohort.is_some_and(|cohort| {
            self.account.gave(&cohort, &self.data.rows, answer)
                || self.account.last_in(&left.session, left.slot, &cohort, answer) == Some(&self.data.rows)
        })
    }

    /// What was given away on these rows.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// [LED-7]: an answer over `block` was agreed to. It counts from now on, and the frame of this context may leave.
    ///
    /// # Errors
    /// [`Broken`] where the keys of the deck were exchanged for another version of these rows ([REL-7]), or the other conversation
    /// has promised an answer over another block, or over other versions of this one, that has not left yet ([REL-5]).
    pub fn promise(&mut self, left: &Left, answer: Answer, block: Vec<(PublicKey, u32)>) -> Result<(), Broken> {
        let broken = |what, rule| Err(Broken { what, site: None, rule });
        let own = self.identity.public();
        let stated = block.iter().find(|(key, _)| *key == own).map(|(_, version)| *version);
        if stated != Some(self.account.version()) {
            let what = "asks in a deck whose keys were exchanged for an earlier version of these rows; a new run exchanges new ones";
            return broken(what, "REL-7");
        }
        if self.promised.iter().any(|(session, promise)| *session != left.session && promise.block != block) {
            return broken(
                "asks these rows in another block than the one in which the other aggregator asks them",
                "REL-5",
            );
        }
        let cost = (!self.repeats(left, &answer)).then_some(answer.cost);
        self.promised.insert(left.session, Promise { context: left.context, answer, cost, block });
        Ok(())
    }

    /// What was promised in this conversation, if it has not left, does not leave any more: it is set up anew ([KEX-9]).
    pub fn take_back(&mut self, session: &Hash) {
        self.promised.remove(session);
    }

    /// [LED-8]: what the rows at hand, which came from `origin`, are to this ledger, where something was answered before.
    pub fn known(&self, origin: &Origin) -> Known {
        self.account.known(&origin.columns(&self.identity, &self.account.together()))
    }

    /// What this site states of its data set ([REL-5], [REL-7]).
    pub fn standing(&self) -> Standing {
        Standing { block: self.account.block().map(|block| block.id), version: self.account.version() }
    }

    /// Writes down something that is no frame, durably.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn note(&mut self, note: Note, left: &Left, digest: Hash) -> Result<(), LedgerError> {
        let version = self.account.version() + u32::from(matches!(note, Note::Changed(_) | Note::Separate(_)));
        let entry =
            Entry { slot: left.slot, version, note: Some(note), ..self.entry(left, Disclosure::Nothing, 0, digest) };
        self.add(entry)?;
        self.sync()
    }

    /// [REL-6]: what left in the round `left.context` enters no total. Nothing is noted where it is not known that words left in
    /// this very round: slots have the same numbers in every run, and a run's name is the coordinator's.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn undo(&mut self, left: &Left) -> Result<(), LedgerError> {
        // What has not left in this round does not leave any more.
        if self.promised.get(&left.session).is_some_and(|promise| promise.context == left.context) {
            self.promised.remove(&left.session);
        }
        let round = |words: &Words| (words.session, words.context) == (left.session, left.context);
        match self.words.iter().position(round) {
            Some(at) => {
                let digest = self.words.remove(at).digest;
                self.note(Note::Undone, left, digest)
            }
            None => Ok(()),
        }
    }

    /// Masked words have left. Beside the ledger it is kept in which round, for a process after this one, as long as a
    /// certificate could still undo the block. Where it is lost, the block stays.
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
            && self.account.block().is_some_and(|block| block.rests_on(&digests))
        {
            let list = codec::encode(&self.words);
            let signature = self.identity.sign(SIGNED_ROUNDS, &[&list]);
            let path = disk.path.with_file_name(ROUNDS);
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
            data: self.data.name.clone(),
            rows: self.data.rows,
            version: self.account.version(),
            block: None,
            note: None,
            answer: None,
            old: false,
        }
    }

    fn add(&mut self, entry: Entry) -> Result<(), LedgerError> {
        if let Some(disk) = &mut self.disk {
            disk.append(&file::write(&entry, &entry.sign(&self.identity)))?;
        }
        self.head = Head { entries: entry.index + 1, link: entry.link() };
        self.account.take(&entry);
        Ok(())
    }

    /// [LED-4]: writes down a frame before it leaves. An answer is on disk, and its head with it, when this returns; other frames
    /// may share the next answer's way to the disk.
    ///
    /// # Errors
    /// [`LedgerError`]; the frame must then not leave.
    pub fn record(&mut self, frame: &[u8], discloses: Disclosure, left: &Left) -> Result<(), LedgerError> {
        let digest = suite::hash("ledger frame", &[frame]);
        let answers = discloses == Disclosure::MaskedWords;
        if !self.sent.contains(&digest) {
            let promise = self.promised.get(&left.session).filter(|p| answers && p.context == left.context);
            if answers && promise.is_none() {
                return Err(LedgerError::Unasked);
            }
            // The same slot has the same noise and the same words, or it is not the same slot: also where the rows are others.
            if let (Some(promise), Some(cohort)) = (promise, &left.cohort)
                && promise.answer.cost.nano_rho.is_some()
                && self.account.last_in(&left.session, left.slot, cohort, &promise.answer).is_some()
            {
                return Err(LedgerError::Unasked);
            }
            // [REL-5]: whatever was looked at before, these are the words that would fix another block.
            let id = |promise: &Promise| release::block_id(promise.block.iter().map(|(key, _)| *key));
            if let (Some(promise), Some(block)) = (promise, self.account.block())
                && block.id != id(promise)
            {
                return Err(LedgerError::Unasked);
            }
            let round = left.slot.is_some() && left.cohort.is_some();
            let said = self.account.block().map(|block| &block.members);
            let entry = Entry {
                slot: left.slot.filter(|_| round),
                cohort: left.cohort.filter(|_| round),
                block: promise.map(|p| p.block.clone()).filter(|block| Some(block) != said),
                answer: promise.map(|p| p.answer.clone()),
                ..self.entry(left, discloses, frame.len() as u64, digest)
            };
            self.add(entry)?;
            self.sent.insert(digest);
        }
        if answers {
            self.words_left(left, digest);
            self.promised.remove(&left.session);
        }
        if answers { self.sync() } else { Ok(()) }
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
        LedgerError::Io { path: self.path.clone(), source }
    }

    fn append(&mut self, line: &str) -> Result<(), LedgerError> {
        if self.broken {
            return Err(self.io(std::io::Error::other("an entry could not be written before")));
        }
        if let Err(source) = self.file.write_all(line.as_bytes()) {
            // A part of the line may stand there; nothing may follow it.
            self.broken = true;
            let _ = self.file.set_len(self.good);
            return Err(self.io(source));
        }
        self.good += line.len() as u64;
        self.dirty = true;
        Ok(())
    }

    fn sync(&mut self, head: &Head, identity: &Identity) -> Result<(), LedgerError> {
        if !self.dirty {
            return Ok(());
        }
        let synced = if self.broken { Err(std::io::Error::other("an entry was lost")) } else { self.file.sync_data() };
        if let Err(source) = synced {
            // What the system lost of it cannot be told.
            self.broken = true;
            return Err(self.io(source));
        }
        if let Some(path) = &self.head_path
            && let Err(e) = write_head(path, head, identity)
        {
            self.broken = true;
            return Err(e);
        }
        self.dirty = false;
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
    let text = file::write_head(head, &head.sign(identity));
    files::write_private(path, text.as_bytes(), Existing::Replace).map_err(LedgerError::Head)
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

/// The file beside a ledger or a head whose lock the process that holds it keeps, with that process's number in it.
fn lock(ledger: &Path, plan: &Hash) -> Result<File, LedgerError> {
    let path = ledger.with_added_extension("lock");
    let io = |source| LedgerError::Io { path: path.clone(), source };
    let mut options = OpenOptions::new();
    let mut lock =
        super::journal::private(options.read(true).write(true).create(true).truncate(false)).open(&path).map_err(io)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut who = String::new();
            // Whatever stands there is shown, if it is what another process of ours wrote.
            let _ = lock.take(128).read_to_string(&mut who);
            let plain = who.lines().next().filter(|line| line.chars().all(|c| c.is_ascii_graphic() || c == ' '));
            let who = plain.filter(|line| !line.is_empty()).unwrap_or("which did not say who it is").to_owned();
            return Err(LedgerError::Locked { path: ledger.to_owned(), who });
        }
        Err(TryLockError::Error(source)) => return Err(io(source)),
    }
    let who = format!("process {}, plan {}\n", std::process::id(), crate::documents::fingerprint(&plan.0));
    lock.set_len(0).and_then(|()| lock.write_all(who.as_bytes())).map_err(io)?;
    Ok(lock)
}

/// What a ledger says when it is read by itself.
pub struct Checked {
    /// Where it ends.
    pub head: Head,
    /// Every entry.
    pub entries: Vec<Entry>,
}

/// Reads a ledger from its file and its owner's public key alone, and checks that it holds the entry with the link `head`
/// where one is known ([LED-2], [LED-3], [LED-5]).
///
/// # Errors
/// [`LedgerError`] with the entry at fault.
pub fn check(path: &Path, key: PublicKey, head: Option<Hash>) -> Result<Checked, LedgerError> {
    let io = |source| LedgerError::Io { path: path.to_owned(), source };
    // Looked at before it is opened, as opening a named pipe would wait for somebody to write to it.
    if !std::fs::metadata(path).map_err(io)?.is_file() {
        return Err(LedgerError::Damaged { path: path.to_owned(), what: "it is not a file".into() });
    }
    let (mut entries, mut seen) = (Vec::new(), head.is_none_or(|link| link == Hash::default()));
    let read = file::read(File::open(path).map_err(io)?, key, |entry, at| {
        seen |= head == Some(at.link);
        entries.push(entry);
    });
    match read {
        Ok((at, _)) if seen => Ok(Checked { head: at, entries }),
        Ok((at, _)) => Err(LedgerError::Cut { path: path.to_owned(), there: at.entries }),
        Err((_, Fault::Io(source))) => Err(io(source)),
        Err((_, fault @ Fault::Torn { .. })) if seen => {
            Err(LedgerError::Torn { path: path.to_owned(), what: fault.to_string() })
        }
        Err((_, fault)) => Err(LedgerError::Damaged { path: path.to_owned(), what: fault.to_string() }),
    }
}

/// The smooth questions that are kept beside a ledger ([POL-9]).
///
/// # Errors
/// [`LedgerError::Io`] where there is such a file and it cannot be read.
pub fn questions_in(folder: &Path, key: &PublicKey) -> Result<Vec<Kept>, LedgerError> {
    let path = folder.join(QUESTIONS);
    smooth::read(&path, key).map_err(|source| LedgerError::Io { path, source })
}

/// The entries of one's own ledger, checked against its head; none where there is neither.
///
/// # Errors
/// As [`check`].
pub fn all(path: &Path, head: &Path, identity: &Identity) -> Result<Vec<Entry>, LedgerError> {
    let known = read_head(head, &identity.public())?;
    if std::fs::symlink_metadata(path).is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound) {
        return match known {
            Some(known) if known.entries > 0 => Err(LedgerError::Cut { path: path.to_owned(), there: 0 }),
            _ => Ok(Vec::new()),
        };
    }
    let entries = check(path, identity.public(), known.map(|known| known.link))?.entries;
    if known.is_none() && !entries.is_empty() {
        return Err(LedgerError::NoHead { path: head.to_owned() });
    }
    Ok(entries)
}

/// Writes a head for a ledger that has none.
///
/// # Errors
/// As [`check`], and where there is a head already.
pub fn adopt(path: &Path, head: &Path, identity: &Identity) -> Result<Head, LedgerError> {
    let checked = check(path, identity.public(), None)?;
    let text = file::write_head(&checked.head, &checked.head.sign(identity));
    files::write_private(head, text.as_bytes(), Existing::Refuse).map_err(LedgerError::Head)?;
    Ok(checked.head)
}

impl Ledger {
    /// What was given away, without holding the ledger.
    ///
    /// # Errors
    /// As [`check`].
    pub fn look(folder: &Path, head: &Path, identity: &Identity) -> Result<Account, LedgerError> {
        let mut account = Account::default();
        account.keep(questions_in(folder, &identity.public())?);
        all(&folder.join(FILE), head, identity)?.iter().for_each(|entry| account.take(entry));
        account.measure();
        Ok(account)
    }
}

#[cfg(test)]
mod tests;
