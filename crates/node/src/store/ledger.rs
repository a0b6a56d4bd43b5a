//! A site's ledger on disk. It records everything that ever left under one identity, over all plans and runs ([LED-1]
//! to [LED-7], [LED-9]), and what was given away.
//!
//! The account is the state folder's, whichever key signs in it: beside the file is its head, which says where it ends, and holds the secret
//! with which rows are digested.

mod course;
mod error;
mod file;
mod look;

use std::{
    collections::BTreeSet,
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use veilsum_proto::{
    identity::{Identity, PublicKey},
    ledger::{Entry, Head, Note},
    message::Disclosure,
    policy::Policy,
    roster::Roster,
    suite::{self, Hash},
};
use zeroize::Zeroizing;

pub use error::LedgerError;
use file::Fault;
pub use look::{Checked, all, check};

use super::log::{self, Log};
use crate::{
    agreed::Federation,
    egress::Entered,
    files::{self, Existing, Replacement},
    release::{Book, Data, Left, Needs, needs, set_of},
};

/// Name of the file in the state folder.
pub const FILE: &str = "ledger.jsonl";
/// Name of the file beside it that says where it ends.
pub const HEAD: &str = "ledger.head";

/// An open ledger.
pub struct Ledger {
    identity: Arc<Identity>,
    book: Book,
    head: Head,
    /// Digests of the frames of this plan that left; the same bytes again get no new entry.
    sent: BTreeSet<Hash>,
    /// Who signed last.
    signer: Option<PublicKey>,
    disk: Option<Disk>,
}

struct Disk {
    log: Log,
    head_path: PathBuf,
    digests: Zeroizing<[u8; 32]>,
    _lock: File,
}

impl Ledger {
    /// Makes a ledger that lasts as long as this process.
    pub fn in_memory(identity: Arc<Identity>, data: Data) -> Ledger {
        let book = Book::new(identity.clone(), data);
        Ledger { identity, book, head: Head::default(), sent: BTreeSet::new(), signer: None, disk: None }
    }

    /// Opens the ledger in `folder` for a run of `plan`, checks every entry of it, and that it is not behind its head. It begins none.
    ///
    /// # Errors
    /// [`LedgerError`]; the site then answers nothing.
    pub fn open(folder: &Path, identity: Arc<Identity>, data: Data, plan: Hash) -> Result<Ledger, LedgerError> {
        Self::open_as(folder, identity, data, plan, false)
    }

    /// This key signs from now on, in the place of one that is lost, or in turn with those of other federations ([LED-9]). Whether it did
    /// not before.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn take_over(folder: &Path, identity: Arc<Identity>) -> Result<bool, LedgerError> {
        if !matches!(Self::look(folder, &identity.public()), Err(LedgerError::Foreign { .. })) {
            return Ok(false);
        }
        let data = Data { name: String::new(), table: None };
        Self::open_as(folder, identity, data, Hash::default(), true).map(|_| true)
    }

    /// Whoever signs in another's place is one who signed before, unless `anew`: then that is noted at once.
    fn open_as(
        folder: &Path,
        identity: Arc<Identity>,
        data: Data,
        plan: Hash,
        anew: bool,
    ) -> Result<Ledger, LedgerError> {
        let path = folder.join(FILE);
        known(folder)?;
        let lock = lock(&path, &plan)?;
        let mut ledger = Ledger::in_memory(identity, data);
        let log = Log::open(path.clone()).map_err(|source| LedgerError::Io { path, source })?;
        let (last, known) = ledger.read(log, folder, lock, &plan)?;
        ledger.signer = last;
        Replacement::remove_drafts(&folder.join(HEAD));
        match last.filter(|_| !known) {
            Some(signer) if !anew => Err(LedgerError::Foreign { path: folder.to_owned(), signer }),
            Some(_) => {
                ledger.signs()?;
                ledger.sync()?;
                Ok(ledger)
            }
            None => Ok(ledger),
        }
    }

    /// Reads and checks all of it. Who signed last, and whether this key ever signed.
    fn read(
        &mut self,
        mut log: Log,
        folder: &Path,
        lock: File,
        plan: &Hash,
    ) -> Result<(Option<PublicKey>, bool), LedgerError> {
        let path = log.path().to_owned();
        let damaged = |what: String| LedgerError::Damaged { path: path.clone(), what };
        let known = known(folder)?;
        // The head's own entry must be there.
        let mut seen = known.head.entries == 0;
        let (own, mut signed) = (self.identity.public(), false);
        let (book, sent) = (&mut self.book, &mut self.sent);
        let read = file::read(log.file(), |entry, head| {
            signed |= entry.signer == own;
            seen |= known.head == head;
            if entry.plan == *plan {
                sent.insert(entry.digest);
            }
            book.take(&entry);
        });
        let cut = |head: Head| LedgerError::Cut { path: path.clone(), there: head.entries };
        let (head, good, signer) = match read {
            Ok(whole) => (whole.head, whole.good, whole.signer),
            // [LED-6]: what the torn line was to protect did not leave, or the head would know it.
            Err((head, Fault::Torn { good, signer, .. })) if seen => (head, good, signer),
            Err((head, Fault::Torn { .. })) => return Err(cut(head)),
            Err((_, fault)) => return Err(fault.of(&path)),
        };
        self.head = head;
        if !seen {
            return Err(if known.head.entries <= self.head.entries {
                damaged(format!("entry {} is not the one that its head names", known.head.entries - 1))
            } else {
                cut(self.head)
            });
        }
        log.keep(good).map_err(|source| LedgerError::Io { path, source })?;
        self.disk = Some(Disk { log, head_path: folder.join(HEAD), digests: known.digests, _lock: lock });
        Ok((signer, signed))
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

    /// Notes something beside the frames that left, durably; `digest` is of the frame that it is about.
    ///
    /// # Errors
    /// [`LedgerError`] where it cannot be written.
    pub fn note(&mut self, note: Note, left: &Left, digest: Hash) -> Result<(), LedgerError> {
        self.signs()?;
        let entry = Entry { note: Some(note), ..self.entry(left, Disclosure::Nothing, 0, digest) };
        self.add(entry)?;
        self.sync()
    }

    /// [POL-10]: the operator accepts the sites of this roster, for good.
    ///
    /// # Errors
    /// [`LedgerError`] where it cannot be written.
    pub fn accept(&mut self, roster: &Roster) -> Result<(), LedgerError> {
        let set = set_of(roster);
        if self.book.account().names(&set) {
            return Ok(());
        }
        self.note(Note::Sites(set), &Left::default(), Hash::default())
    }

    /// [POL-9], [POL-10]: the operator agrees to whatever of this plan needs it.
    ///
    /// # Errors
    /// [`LedgerError`] where it cannot be written.
    pub fn agree(&mut self, federation: &Federation, policy: &Policy) -> Result<(), LedgerError> {
        let Federation { roster, terms, work } = federation;
        let needs = needs((roster, terms, work), policy, self.book.account(), self.book.data().table.as_ref());
        if needs.contains(&Needs::Set) {
            self.accept(roster)?;
        }
        if needs.iter().any(|needs| *needs != Needs::Set) {
            let plan = terms.hash();
            let table = self.book.data().table.filter(|_| work.recipe.noise.is_none());
            self.note(Note::Agreed(table), &Left { plan, ..Left::default() }, Hash::default())?;
        }
        Ok(())
    }

    fn entry(&self, left: &Left, discloses: Disclosure, bytes: u64, digest: Hash) -> Entry {
        Entry {
            index: self.head.entries,
            previous: self.head.link,
            signer: self.identity.public(),
            plan: left.plan,
            session: left.session,
            run: left.run,
            slot: None,
            cohort: None,
            discloses,
            bytes,
            digest,
            data: self.book.data().name.clone(),
            note: None,
            answer: None,
        }
    }

    /// [LED-9]: before this key's next entry, if another one signed last.
    fn signs(&mut self) -> Result<(), LedgerError> {
        if self.signer.is_none_or(|before| before == self.identity.public()) {
            return Ok(());
        }
        let entry = self.entry(&Left::default(), Disclosure::Nothing, 0, Hash::default());
        self.add(Entry { note: Some(Note::Signer), ..entry })
    }

    fn add(&mut self, entry: Entry) -> Result<(), LedgerError> {
        if let Some(disk) = &mut self.disk {
            let line = file::write(&entry, &entry.sign(&self.identity));
            disk.log.append(line.as_bytes()).map_err(|source| disk.io(source))?;
        }
        self.head = Head { entries: entry.index + 1, link: entry.link() };
        self.signer = Some(entry.signer);
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
            self.signs()?;
            let due = answers.then(|| self.book.due(left).map_err(|_| LedgerError::Unasked)).transpose()?;
            let round = left.slot.is_some() && left.cohort.is_some();
            let entry = Entry {
                slot: left.slot.filter(|_| round),
                cohort: left.cohort.filter(|_| round),
                answer: due,
                ..self.entry(left, discloses, frame.len() as u64, digest)
            };
            self.add(entry)?;
            self.sent.insert(digest);
        }
        if answers {
            self.book.take_back(&left.session);
        }
        Ok(Entered::by_the_ledger(discloses))
    }

    /// The head, written and not on disk yet, where there are entries that it does not know of. The steps of [`Ledger::sync`] are taken
    /// by themselves where other files go to the disk with it: the entries must be there before the head takes its name.
    pub(crate) fn next_head(&self) -> Result<Option<Replacement>, LedgerError> {
        let Some(disk) = self.disk.as_ref().filter(|disk| disk.log.is_dirty()) else { return Ok(None) };
        let text = file::write_head(&self.head, &disk.digests);
        Replacement::write(&disk.head_path, text.as_bytes()).map(Some).map_err(LedgerError::Head)
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
            Some(disk) => disk.sync(&self.head),
            None => Ok(()),
        }
    }
}

impl Disk {
    fn io(&self, source: std::io::Error) -> LedgerError {
        LedgerError::Io { path: self.log.path().to_owned(), source }
    }

    fn sync(&mut self, head: &Head) -> Result<(), LedgerError> {
        if self.log.sync().map_err(|source| self.io(source))? {
            write_head(&self.head_path, head, &self.digests).inspect_err(|_| self.log.give_up())?;
        }
        Ok(())
    }
}

fn write_head(path: &Path, head: &Head, digests: &[u8; 32]) -> Result<(), LedgerError> {
    let text = file::write_head(head, digests);
    files::write_private(path, text.as_bytes(), Existing::Replace).map_err(LedgerError::Head)
}

fn read_head(path: &Path) -> Result<Option<file::Known>, LedgerError> {
    match std::fs::symlink_metadata(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        _ => {}
    }
    let text = Zeroizing::new(files::read_limited(path, file::MAX_HEAD).map_err(LedgerError::Head)?);
    let known = file::read_head(&text);
    known.map(Some).ok_or_else(|| match file::form_of(&text) {
        Some(form) => LedgerError::Form { path: path.to_owned(), form },
        None => LedgerError::Damaged { path: path.to_owned(), what: "it is no head of a ledger".into() },
    })
}

/// What the head of the account in `folder` says.
fn known(folder: &Path) -> Result<file::Known, LedgerError> {
    let head = folder.join(HEAD);
    if let Some(known) = read_head(&head)? {
        return Ok(known);
    }
    Err(match folder.join(FILE).metadata() {
        Ok(file) if file.len() > 0 => match check(&folder.join(FILE), None) {
            Err(form @ LedgerError::Form { .. }) => form,
            _ => LedgerError::NoHead(head),
        },
        _ => LedgerError::NoAccount(folder.to_owned()),
    })
}

/// The secret with which the account in `folder` names its rows ([LED-1]); nothing before it has begun.
///
/// # Errors
/// [`LedgerError`] where the head cannot be used.
pub fn digests_of(folder: &Path) -> Result<Option<Zeroizing<[u8; 32]>>, LedgerError> {
    Ok(read_head(&folder.join(HEAD))?.map(|known| known.digests))
}

/// Begins an account in a folder that has none, with the secret by which it knows its rows, and others it, again. Whether it began one.
///
/// # Errors
/// [`LedgerError`] where it cannot be written, or there is one that cannot be used.
pub fn begin(folder: &Path, digests: &[u8; 32]) -> Result<bool, LedgerError> {
    match known(folder) {
        Ok(_) => return Ok(false),
        Err(LedgerError::NoAccount(_)) => {}
        Err(other) => return Err(other),
    }
    log::make_private_folder(folder).map_err(|source| LedgerError::Io { path: folder.to_owned(), source })?;
    // It has a head from the beginning, so that a ledger that was taken away is noticed.
    write_head(&folder.join(HEAD), &Head::default(), digests)?;
    Ok(true)
}

/// How long a ledger that another process holds is waited for: who answers a proposal, or declares a change, has it for moments.
const PATIENCE: Duration = Duration::from_secs(3);

/// The file beside a ledger whose lock the process that holds it keeps, with that process's number in it.
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
