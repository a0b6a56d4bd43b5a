//! A site's ledger on disk. It records everything that ever left from one state folder, over all plans and runs ([LED-1]
//! to [LED-7], [LED-9]), and what was given away.
//!
//! The account is the state folder's, whichever key signs in it: beside the file is its head, which says where it ends, and holds the secret
//! with which rows are digested.

mod error;
mod file;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use veilsum_proto::{
    identity::{Identity, PublicKey, fingerprint},
    message::Disclosure,
    policy::Asked,
    standing::{Member, Standing},
    suite::{self, Hash},
};
use zeroize::Zeroizing;

pub use error::LedgerError;
use file::Fault;
pub use file::{Checked, all, check, look};

use crate::{
    account::Account,
    entry::{Answer, Cost, Damage, Entry, Event, Frame, Head, Note, Place, Table, Talk, Totals},
    guard::Granted,
    log::{self, Log},
    met::{Met, SetBack},
    policy::{Bound, Policy},
    verdict::{Needs, No, PlanFacts, Verdict, Yes, decide, fits, judge, needs},
};

/// Name of the file in the state folder.
pub const FILE: &str = "ledger.jsonl";
/// Name of the file beside it that says where it ends.
pub const HEAD: &str = "ledger.head";

/// The rows that a ledger counts for.
#[derive(Clone, PartialEq, Eq)]
pub struct Data {
    /// The operator's name for them, which is only a label.
    pub name: String,
    /// How many they are, and their digest; nothing where they are not read.
    pub table: Option<Table>,
}

impl Data {
    /// Under this name so many rows with this digest, which is keyed here.
    pub fn of(name: &str, identity: &Identity, rows: u64, digest: &Hash) -> Data {
        let digest = suite::hash("rows in a ledger", &[&*identity.digest_secret(), &digest.0]);
        Data { name: name.to_owned(), table: Some(Table { rows, digest }) }
    }

    /// Rows that are not read.
    pub fn unread(name: &str) -> Data {
        Data { name: name.to_owned(), table: None }
    }
}

/// An answer to a question of the plan.
pub struct Offer {
    /// Name of the question's kind.
    pub kind: &'static str,
    /// What it gives away.
    pub cost: Cost,
    /// Where a public draw decides whose rows it is made of: digest of the keys of these sites.
    pub drawn: Option<Hash>,
}

/// Names a question by its bytes.
pub fn question_digest(query: &[u8]) -> Hash {
    suite::hash("question in a ledger", &[query])
}

/// That a ledger has an entry of a frame. The ledger alone makes one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entered(());

/// An open ledger.
pub struct Ledger {
    identity: Arc<Identity>,
    data: Data,
    account: Account,
    head: Head,
    /// Digests of the frames of this plan that left; the same bytes again get no new entry.
    sent: BTreeSet<Hash>,
    /// Rounds whose answer this process may still send, by session: it was charged for it.
    due: BTreeMap<Hash, (Talk, Place)>,
    /// Who signed last.
    signer: Option<PublicKey>,
    disk: Option<Disk>,
}

struct Disk {
    log: Log,
    /// What the head on disk says.
    known: Head,
    head_path: PathBuf,
    digests: Zeroizing<[u8; 32]>,
    _lock: File,
}

impl Ledger {
    /// Makes a ledger that lasts as long as this process, for rehearsals: what it counts is forgotten with it.
    pub fn in_memory(identity: Arc<Identity>, data: Data) -> Ledger {
        Ledger {
            identity,
            data,
            account: Account::default(),
            head: Head::default(),
            sent: BTreeSet::new(),
            due: BTreeMap::new(),
            signer: None,
            disk: None,
        }
    }

    /// Opens the ledger in `folder`, for a run of `plan` where there is one, checks every entry of it, and that it is not behind its head.
    /// It begins none.
    ///
    /// # Errors
    /// [`LedgerError`]; the site then answers nothing.
    pub fn open(folder: &Path, identity: Arc<Identity>, data: Data, plan: Option<Hash>) -> Result<Ledger, LedgerError> {
        let (ledger, signed) = Self::open_any(folder, identity, data, plan)?;
        match ledger.signer {
            Some(signer) if !signed => Err(LedgerError::Foreign { path: folder.to_owned(), signer }),
            _ => Ok(ledger),
        }
    }

    /// This key signs from now on, in the place of one that is lost, or in turn with those of other federations ([LED-9]). Whether it did
    /// not before.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn take_over(folder: &Path, identity: Arc<Identity>) -> Result<bool, LedgerError> {
        if !matches!(look(folder, &identity.public()), Err(LedgerError::Foreign { .. })) {
            return Ok(false);
        }
        let (mut ledger, _) = Self::open_any(folder, identity, Data::unread(""), None)?;
        ledger.signs()?;
        ledger.sync().map(|()| true)
    }

    /// The same for any key, and whether it signed before.
    fn open_any(
        folder: &Path,
        identity: Arc<Identity>,
        data: Data,
        plan: Option<Hash>,
    ) -> Result<(Ledger, bool), LedgerError> {
        let path = folder.join(FILE);
        known(folder)?;
        let lock = lock(&path, plan)?;
        let mut ledger = Ledger::in_memory(identity, data);
        let log = Log::open(path.clone()).map_err(|source| LedgerError::Io { path, source })?;
        let signed = ledger.read(log, folder, lock, plan)?;
        Ok((ledger, signed))
    }

    /// Reads and checks all of it. Whether this key ever signed.
    fn read(&mut self, mut log: Log, folder: &Path, lock: File, plan: Option<Hash>) -> Result<bool, LedgerError> {
        let path = log.path().to_owned();
        let known = known(folder)?;
        // The head's own entry must be there.
        let mut seen = known.head.entries == 0;
        let mut sure = 0;
        let (own, mut signed) = (self.identity.public(), false);
        let (account, sent) = (&mut self.account, &mut self.sent);
        let read = file::read(log.file(), |entry, head, good| {
            signed |= entry.signer == own;
            if known.head == head {
                (seen, sure) = (true, good);
            }
            if let Event::Frame(frame) = &entry.event
                && Some(frame.talk.plan) == plan
            {
                sent.insert(frame.digest);
            }
            account.take(&entry);
        });
        let cut = |head: Head| LedgerError::Cut { path: path.clone(), there: head.entries };
        let whole = match read {
            Ok(whole) => whole,
            // [LED-6]: what the torn line was to protect did not leave, or the head would know it.
            Err(Fault::Torn(whole)) if seen => whole,
            Err(Fault::Torn(whole)) => return Err(cut(whole.head)),
            Err(fault) => return Err(fault.of(&path)),
        };
        (self.head, self.signer) = (whole.head, whole.signer);
        if !seen {
            return Err(if known.head.entries <= self.head.entries {
                LedgerError::Damaged { path, what: Damage::Head(known.head.entries - 1) }
            } else {
                cut(self.head)
            });
        }
        let io = |source| LedgerError::Io { path: path.clone(), source };
        log.keep(whole.good).map_err(io)?;
        let head_path = folder.join(HEAD);
        // A process ended before the head knew of its last entries: perhaps no disk does. Nothing may rest on them before one does ([LED-4]).
        if known.head != self.head {
            log.again(sure).map_err(io)?;
            put_head(&head_path, &self.head, &known.digests, || Ok(())).map_err(io)?;
        }
        self.disk = Some(Disk { log, known: self.head, head_path, digests: known.digests, _lock: lock });
        Ok(signed)
    }

    /// What was given away.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// The rows at hand.
    pub fn data(&self) -> &Data {
        &self.data
    }

    /// Where it ends.
    pub fn head(&self) -> Head {
        self.head
    }

    /// What this site states of its account ([LED-11]).
    pub fn standing(&self) -> Standing {
        Standing { account: Some(self.identity.account()), answered: self.account.answered() }
    }

    /// [LED-11]: compares what the members of a deck state of their ledgers with what is kept, and keeps it, before anything is sent in
    /// the deck.
    ///
    /// # Errors
    /// [`SetBack`] within where what one of them states cannot follow what is kept of it; nothing of it is then kept. [`LedgerError`] where
    /// it cannot be written.
    pub fn meet(&mut self, talk: &Talk, deck: u32, members: &[Member]) -> Result<Result<(), SetBack>, LedgerError> {
        let met = self.account.met();
        if let Err(back) = met.check(talk, members) {
            return Ok(Err(back));
        }
        let (all, members) = (Met::all(members), Met::list(members));
        if !met.has(talk, deck, (all, &members)) {
            self.note(Note::Met { talk: *talk, deck, all, members })?;
        }
        Ok(Ok(()))
    }

    /// Notes something beside the frames that left, durably.
    ///
    /// # Errors
    /// [`LedgerError`] where it cannot be written.
    fn note(&mut self, note: Note) -> Result<(), LedgerError> {
        self.signs()?;
        self.add(Event::Note(note))?;
        self.sync()
    }

    /// [POL-8]: the account promises this from now on. Without it, it promises the usual.
    ///
    /// # Errors
    /// [`LedgerError`] where it cannot be written.
    pub fn bind(&mut self, bound: Bound) -> Result<(), LedgerError> {
        let now = self.account.bound();
        if bound.before < now.of_unit(bound.unit).before || self.account.is_settled() && bound.unit != now.unit {
            return Err(LedgerError::Unwritable);
        }
        if self.head.entries > 0 {
            return self.note(Note::Account(bound));
        }
        self.add(Event::Note(Note::Account(bound)))?;
        self.sync()
    }

    /// [POL-10]: the operator accepts this set of sites, for good.
    ///
    /// # Errors
    /// [`LedgerError`] where it cannot be written.
    pub fn accept(&mut self, set: Hash) -> Result<(), LedgerError> {
        if self.account.names(&set) { Ok(()) } else { self.note(Note::Sites(set)) }
    }

    /// [POL-9], [POL-10]: the operator, who was shown what [`judge`] says, agrees to whatever of this plan needs it. Nothing is noted of a
    /// plan that policy or account refuse.
    ///
    /// # Errors
    /// [`LedgerError`] where it cannot be written.
    pub fn agree(&mut self, facts: &PlanFacts, policy: &Policy) -> Result<Result<(), No>, LedgerError> {
        if let Err(why) = fits(facts, policy, &self.account) {
            return Ok(Err(why));
        }
        let needs = needs(facts, policy, &self.account, self.data.table.as_ref());
        if needs.contains(&Needs::Set) {
            self.accept(facts.set)?;
        }
        if needs.iter().any(|needs| *needs != Needs::Set) {
            let totals = if facts.gives.is_exact() { Totals::Exact(self.data.table) } else { Totals::Noisy };
            self.note(Note::Agreed { plan: facts.plan, totals })?;
        }
        Ok(Ok(()))
    }

    /// Judges a whole plan and notes that its run begins, in one step: nobody else has the ledger meanwhile. A run that was interrupted
    /// goes on.
    ///
    /// # Errors
    /// [`LedgerError`] where the ledger cannot be written.
    pub fn begin_run(&mut self, facts: &PlanFacts, policy: &Policy) -> Result<Verdict, LedgerError> {
        let verdict = judge(facts, policy, &self.account, self.data.table.as_ref());
        if let (Verdict::Yes(Yes { nano_rho: Some(price), .. }), false) =
            (&verdict, self.account.has_begun(&facts.plan))
        {
            let bound = self.account.bound();
            if bound.unit != policy.unit {
                self.bind(bound.of_unit(policy.unit))?;
            }
            self.note(Note::Begun { plan: facts.plan, nano_rho: *price })?;
        }
        Ok(verdict)
    }

    /// The run of this plan is over: what it has not spent is free again.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn end_run(&mut self, plan: &Hash) -> Result<(), LedgerError> {
        if self.account.has_begun(plan) { self.note(Note::Ended(*plan)) } else { Ok(()) }
    }

    /// May this answer be made? Asks the policy about it and what was given away before ([POL-1], [POL-2], [POL-4], [POL-8] to [POL-10]).
    /// On consent it is charged, on disk, before a row is visited ([LED-7]), and one frame of its round may leave. Everything that is read
    /// is public, or in the ledger, and under a plan without noise the table's digest: no row.
    ///
    /// # Errors
    /// [`No`] within; [`LedgerError`] if it cannot be charged.
    pub fn consent(
        &mut self,
        facts: &PlanFacts,
        policy: &Policy,
        asked: &Asked,
        (talk, place): (&Talk, Place),
        offer: Offer,
    ) -> Result<Result<Granted, No>, LedgerError> {
        let Offer { kind, cost, drawn } = offer;
        let table = self.data.table.filter(|_| cost.nano_rho.is_none());
        let answer = Answer { kind: kind.to_owned(), question: question_digest(&asked.query), cost, drawn, table };
        match decide(facts, policy, &self.account, asked, (talk, &place), &answer) {
            Ok(granted) => self.charge(*talk, place, answer).map(|()| Ok(granted)),
            Err(no) => Ok(Err(no)),
        }
    }

    /// The head follows with the answer: until then nothing rests on the entry but the answer itself.
    fn charge(&mut self, talk: Talk, place: Place, answer: Answer) -> Result<(), LedgerError> {
        self.signs()?;
        self.add(Event::Note(Note::Charged { talk, place, answer }))?;
        if let Some(disk) = &mut self.disk {
            disk.log.sync().map_err(|source| disk.io(source))?;
        }
        self.due.insert(talk.session, (talk, place));
        Ok(())
    }

    /// Before this key's next entry: if there is none, what the account promises; if another one signed last, that ([LED-9]).
    fn signs(&mut self) -> Result<(), LedgerError> {
        let note = match self.signer {
            None => Note::Account(self.account.bound()),
            Some(before) if before != self.identity.public() => Note::Signer,
            Some(_) => return Ok(()),
        };
        self.add(Event::Note(note))
    }

    fn add(&mut self, event: Event) -> Result<(), LedgerError> {
        let Head { entries: index, link: previous } = self.head;
        let entry = Entry { index, previous, signer: self.identity.public(), event };
        // What could not be read again would shut the account for good.
        if !entry.is_whole() {
            return Err(LedgerError::Unwritable);
        }
        if let Some(disk) = &mut self.disk {
            let line = file::write(&entry, &entry.sign(&self.identity));
            disk.log.append(line.as_bytes()).map_err(|source| disk.io(source))?;
        }
        self.head = Head { entries: entry.index + 1, link: entry.link() };
        self.signer = Some(entry.signer);
        self.account.take(&entry);
        Ok(())
    }

    /// [LED-4]: enters a frame before it leaves. An answer is in the journal by now, and on disk here when this returns; other frames may
    /// share the next answer's way to the disk.
    ///
    /// # Errors
    /// [`LedgerError`]; the frame must then not leave.
    pub fn enter(
        &mut self,
        frame: &[u8],
        discloses: Disclosure,
        (talk, round): (&Talk, Option<Place>),
    ) -> Result<Entered, LedgerError> {
        let digest = suite::hash("ledger frame", &[frame]);
        if !self.sent.contains(&digest) {
            self.signs()?;
            let answers = discloses == Disclosure::MaskedWords;
            if answers
                && self.due.get(&talk.session).is_none_or(|(of, place)| (of, Some(place)) != (talk, round.as_ref()))
            {
                return Err(LedgerError::Unasked);
            }
            let (bytes, data) = (frame.len() as u64, self.data.name.clone());
            self.add(Event::Frame(Frame { talk: *talk, round, discloses, bytes, digest, data }))?;
            if answers {
                self.due.remove(&talk.session);
                self.sync()?;
            }
            self.sent.insert(digest);
        }
        Ok(Entered(()))
    }

    /// Whether this frame of the plan is entered: any other one never left.
    pub fn has_left(&self, frame: &[u8]) -> bool {
        self.sent.contains(&suite::hash("ledger frame", &[frame]))
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
    fn io(&self, source: io::Error) -> LedgerError {
        LedgerError::Io { path: self.log.path().to_owned(), source }
    }

    /// The bytes of entries and head go to the disk side by side; the head takes its name once the entries are there.
    fn sync(&mut self, head: &Head) -> Result<(), LedgerError> {
        if self.known == *head {
            return self.log.sync().map(drop).map_err(|source| self.io(source));
        }
        let Disk { log, head_path: path, digests, .. } = self;
        let put = thread::scope(|scope| {
            let entries = thread::Builder::new().spawn_scoped(scope, || log.sync().map(drop))?;
            let there = || entries.join().unwrap_or_else(|_| Err(io::Error::other("a write panicked")));
            put_head(path, head, digests, there)
        });
        if let Err(source) = put {
            let path = if self.log.is_dirty() { self.log.path() } else { &self.head_path }.to_owned();
            self.log.give_up();
            return Err(LedgerError::Io { path, source });
        }
        self.known = *head;
        Ok(())
    }
}

/// Writes the head, which takes its name after `before`.
fn put_head(path: &Path, head: &Head, digests: &[u8; 32], before: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    log::replace(path, file::write_head(head, digests).as_bytes(), before)
}

/// What the head at `path` says, if there is one.
fn read_head(path: &Path) -> Result<Option<file::Known>, LedgerError> {
    let io = |source| LedgerError::Io { path: path.to_owned(), source };
    let damaged = |what| LedgerError::Damaged { path: path.to_owned(), what };
    // Looked at before it is opened, as opening a named pipe would wait for somebody to write to it.
    match std::fs::symlink_metadata(path).and_then(|_| path.metadata()) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Ok(meta) if !meta.is_file() => return Err(damaged(Damage::NoFile)),
        found => found.map_err(io)?,
    };
    // Room for all of it at once: a vector that grows leaves unwiped copies behind.
    let mut text = Zeroizing::new(Vec::with_capacity(file::MAX_HEAD + 1));
    File::open(path).and_then(|file| file.take(file::MAX_HEAD as u64 + 1).read_to_end(&mut text)).map_err(io)?;
    file::read_head(&text).map(Some).ok_or_else(|| match file::form_of(&text) {
        Some(form) => LedgerError::Form { path: path.to_owned(), form },
        None => damaged(Damage::NoHead),
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
    let _lock = lock(&folder.join(FILE), None)?;
    if read_head(&folder.join(HEAD))?.is_some() {
        return Ok(false);
    }
    // It has a head from the beginning, so that a ledger that was taken away is noticed.
    let path = folder.join(HEAD);
    let put = put_head(&path, &Head::default(), digests, || Ok(()));
    put.map(|()| true).map_err(|source| LedgerError::Io { path, source })
}

/// How long a ledger that another process holds is waited for: who answers a proposal, or agrees to a plan, has it for moments.
const PATIENCE: Duration = Duration::from_secs(3);

/// The file beside a ledger whose lock the process that holds it keeps, with that process's number in it.
fn lock(ledger: &Path, plan: Option<Hash>) -> Result<File, LedgerError> {
    let path = ledger.with_added_extension("lock");
    let plan = plan.map_or(String::new(), |plan| format!(", plan {}", fingerprint(&plan.0)));
    let who = format!("process {}{plan}\n", std::process::id());
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
