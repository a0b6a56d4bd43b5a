use std::{fs, path::PathBuf, time::UNIX_EPOCH};

use veilsum_proto::standing::{Answered, Standing, set_of_sites};
use veilsum_testkit::vectors::{answered, array, cases, hash, list, number};

use super::*;
use crate::{account::Spent, entry::FORM, policy::Unit, tests::Folder, verdict::Gives};

mod met;
mod size;

fn identity(n: u8) -> Arc<Identity> {
    Arc::new(Identity::from_seed(&[n; 32]))
}

fn data(name: &str, rows: u8) -> Data {
    Data { name: name.into(), table: Some(table(rows)) }
}

fn table(rows: u8) -> Table {
    Table { rows: u64::from(rows), digest: Hash([rows; 32]) }
}

/// A ledger with its first entry.
fn begun(mut ledger: Ledger) -> Ledger {
    if ledger.head().entries == 0 {
        ledger.bind(Bound::default()).unwrap();
    }
    ledger
}

fn memory() -> Ledger {
    begun(Ledger::in_memory(identity(1), data("rows", 5)))
}

const PLAN: Hash = Hash([1; 32]);
const RUN: Hash = Hash([3; 32]);

const TALK: Talk = Talk { plan: PLAN, session: Hash([2; 32]), run: RUN };
/// Somebody else's conversation, which was charged nothing.
const OTHER: Talk = Talk { session: Hash([77; 32]), ..TALK };

fn place(slot: u16, cohort: u8) -> Place {
    Place { deck: 0, slot, cohort: Hash([cohort; 32]) }
}

fn answer(question: u16) -> Answer {
    Answer {
        kind: "fuzzy_sums".into(),
        question: suite::hash("test", &[&question.to_le_bytes()]),
        cost: Cost { scalars: 9, nano_rho: None },
        drawn: None,
        table: Some(table(5)),
    }
}

/// The same with noise.
fn noised(question: u16, nano_rho: u64) -> Answer {
    Answer { cost: Cost { scalars: 9, nano_rho: Some(nano_rho) }, table: None, ..answer(question) }
}

impl Ledger {
    fn record(&mut self, frame: &[u8], discloses: Disclosure, round: Option<Place>) -> Result<(), LedgerError> {
        self.enter(frame, discloses, (&TALK, round)).map(drop)
    }
}

fn charge(ledger: &mut Ledger, place: Place, answer: Answer) {
    ledger.charge(TALK, place, answer).unwrap();
}

/// One round: the answer, then the shares for the total over `survivors`.
fn round(ledger: &mut Ledger, number: u16, survivors: u8) -> Result<(), LedgerError> {
    let asked = place(number, 9);
    ledger.charge(TALK, asked, answer(number))?;
    ledger.record(&[number as u8; 100], Disclosure::MaskedWords, Some(asked))?;
    ledger.record(&[number as u8; 50], Disclosure::SelfMaskShares, Some(place(number, survivors)))
}

struct Site {
    folder: Folder,
}

impl Site {
    fn new(name: &str) -> Site {
        let folder = Folder::new(name);
        begin(&folder.0.join("state"), &identity(1).digest_secret()).unwrap();
        Site { folder }
    }

    fn file(&self) -> PathBuf {
        self.folder.0.join("state").join(FILE)
    }

    fn head(&self) -> PathBuf {
        self.folder.0.join("state").join(HEAD)
    }

    fn open(&self) -> Result<Ledger, LedgerError> {
        self.open_for(data("rows", 5))
    }

    fn open_for(&self, data: Data) -> Result<Ledger, LedgerError> {
        Ledger::open(&self.folder.0.join("state"), identity(1), data, Some(PLAN)).map(begun)
    }

    /// What somebody else makes of the file.
    fn check(&self, head: Option<Hash>) -> Result<Checked, LedgerError> {
        check(&self.file(), head)
    }
}

fn damaged(found: Result<impl Sized, LedgerError>) -> String {
    match found {
        Err(LedgerError::Damaged { what, .. }) => what.to_string(),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was taken"),
    }
}

/// [LED-4], [LED-7].
#[test]
fn what_left_is_there_again_and_the_same_frame_is_free() {
    let site = Site::new("ledger");
    let mut ledger = site.open().unwrap();
    ledger.record(b"keys", Disclosure::PublicKeys, None).unwrap();
    for number in 1..=3 {
        round(&mut ledger, number, 9).unwrap();
    }
    let (head, spent) = (ledger.head(), ledger.account().spent());
    assert_eq!((head.entries, spent), (11, Spent { answers: 3, scalars: 27, nano_rho: 0 }));
    // The same frame again, as after a lost connection: it leaves, and nothing is new.
    ledger.record(&[2; 100], Disclosure::MaskedWords, Some(place(2, 9))).unwrap();
    assert_eq!((ledger.head(), ledger.account().spent()), (head, spent));
    // The same question in another slot counts again.
    charge(&mut ledger, place(40, 9), answer(2));
    ledger.record(b"another frame", Disclosure::MaskedWords, Some(place(40, 9))).unwrap();
    assert_eq!((ledger.head().entries, ledger.account().spent().answers), (13, 4));
    drop(ledger);
    for path in [site.file(), site.head()] {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let back = site.open().unwrap();
    assert_eq!((back.head().entries, back.account().spent().scalars), (13, 36));
    drop(back);
    let checked = site.check(Some(head.link)).unwrap();
    assert_eq!(checked.entries.len(), 13);
    let text = fs::read_to_string(site.file()).unwrap();
    assert!(text.lines().all(|line| line.starts_with("{\"form\":1,\"index\":")), "{text}");
    assert!(text.contains("\"kind\":\"fuzzy_sums\""), "{text}");
}

/// [LED-7]: an answer is charged before it is made, and leaves in one frame; the same frame again is free, and another one does not leave. One
/// that was charged and never left is charged again.
#[test]
fn led_7_a_charge_is_for_one_frame() {
    let site = Site::new("once");
    let mut ledger = site.open().unwrap();
    let spent = |ledger: &Ledger| (ledger.account().spent().nano_rho, ledger.account().rho_of(&PLAN));
    let words =
        |ledger: &mut Ledger, frame: &[u8], slot| ledger.record(frame, Disclosure::MaskedWords, Some(place(slot, 9)));
    let charged = |ledger: &Ledger, slot| ledger.account().has_charged(TALK.session, RUN, (0, slot));
    assert!(!charged(&ledger, 1));
    charge(&mut ledger, place(1, 9), noised(1, 7));
    assert!(charged(&ledger, 1) && !charged(&ledger, 2));
    assert!(!ledger.disk.as_ref().unwrap().log.is_dirty(), "it is on disk before a row is visited");
    for _ in 0..2 {
        words(&mut ledger, b"words", 1).unwrap();
        assert_eq!((ledger.head().entries, spent(&ledger)), (3, (7, 7)));
    }
    assert!(ledger.has_left(b"words") && !ledger.has_left(b"other words"));
    assert!(matches!(words(&mut ledger, b"other words", 1), Err(LedgerError::Unasked)));
    charge(&mut ledger, place(2, 9), noised(2, 5));
    assert_eq!(spent(&ledger), (12, 12), "before it is made");
    // The process ends here, and nothing leaves for what it was charged.
    drop(ledger);
    let mut ledger = site.open().unwrap();
    assert_eq!(spent(&ledger), (12, 12));
    assert!(matches!(words(&mut ledger, b"other words", 2), Err(LedgerError::Unasked)));
    assert!(!ledger.account().has_answered(&TALK, &place(2, 9)));
    charge(&mut ledger, place(2, 9), noised(2, 5));
    words(&mut ledger, b"other words", 2).unwrap();
    assert_eq!(spent(&ledger), (17, 17));
    assert!(ledger.has_left(b"words") && ledger.account().has_answered(&TALK, &place(2, 9)));
    assert!(!ledger.account().has_answered(&TALK, &place(3, 9)));
    assert!(!ledger.account().has_answered(&OTHER, &place(1, 9)));
}

/// [LED-7]: an answer that nobody was charged for, or for another round than was charged, does not leave; what was charged still does.
#[test]
fn led_7_what_was_not_charged_does_not_leave() {
    let mut ledger = memory();
    charge(&mut ledger, place(1, 9), noised(1, 9));
    for (talk, round) in [(TALK, Some(place(2, 9))), (TALK, None), (OTHER, Some(place(1, 9)))] {
        let stray = ledger.enter(b"words", Disclosure::MaskedWords, (&talk, round));
        assert!(matches!(stray, Err(LedgerError::Unasked)));
    }
    assert_eq!(ledger.head().entries, 2);
    ledger.record(b"words", Disclosure::MaskedWords, Some(place(1, 9))).unwrap();
}

/// [LED-1], [LED-2], [LED-3]: one byte, anywhere.
#[test]
fn a_changed_byte_is_found_and_the_entry_named() {
    let site = Site::new("byte");
    let mut ledger = site.open().unwrap();
    (1..=3).for_each(|number| round(&mut ledger, number, 9).unwrap());
    ledger.sync().unwrap();
    drop(ledger);
    let whole = fs::read(site.file()).unwrap();
    let line_of = |at: usize| whole[..at].iter().filter(|b| **b == b'\n').count();
    // Every thirteenth: all fields of all entries, and an ordinary run stays short.
    for at in (0..whole.len() - 1).step_by(13) {
        let mut bad = whole.clone();
        // Capitals, digits and signs become others that JSON or hexadecimal may take.
        bad[at] ^= if bad[at].is_ascii_alphabetic() { 0x20 } else { 1 };
        fs::write(site.file(), &bad).unwrap();
        let what = match site.check(None) {
            // The digit of the form itself.
            Err(LedgerError::Form { form, .. }) if form != u64::from(FORM) => continue,
            other => damaged(other),
        };
        let (line, named) = (line_of(at), |n: usize| what.contains(&format!("entry {n} ")));
        assert!(named(line) || (whole[at] == b'\n' && named(line + 1)), "byte {at} of entry {line}: {what}");
        if at % 10 == 0 {
            damaged(site.open());
        }
    }
    // A space that means nothing, a line out of order, one left out, one twice, another key's.
    let lines: Vec<&[u8]> = whole.split_inclusive(|b| *b == b'\n').collect();
    let text = String::from_utf8(whole.clone()).unwrap();
    let changed = [
        text.replacen("\"index\":", "\"index\": ", 1).into_bytes(),
        text.replacen("\"form\":1,", "", 1).into_bytes(),
        [lines[1], lines[0], lines[2]].concat(),
        [lines[0], lines[2]].concat(),
        [lines[0], lines[0]].concat(),
        [&b"\n"[..], &whole].concat(),
    ];
    for bad in changed {
        fs::write(site.file(), bad).unwrap();
        damaged(site.check(None));
        damaged(site.open());
    }
    fs::write(site.file(), &whole).unwrap();
    let stranger = Ledger::open(&site.folder.0.join("state"), identity(2), data("rows", 5), Some(PLAN));
    assert!(matches!(stranger, Err(LedgerError::Foreign { .. })));
    // [LED-9]: two federations' keys sign in turn, once the operator has said that it is one account.
    let (state, entries) = (site.folder.0.join("state"), site.open().unwrap().head().entries);
    Ledger::take_over(&state, identity(2)).unwrap();
    Ledger::take_over(&state, identity(2)).unwrap();
    let notes = |mut ledger: Ledger| {
        ledger.note(Note::Sites(Hash([9; 32]))).unwrap();
        ledger.head().entries - entries
    };
    let other = || Ledger::open(&state, identity(2), data("rows", 5), Some(PLAN)).unwrap();
    assert_eq!([notes(other()), notes(site.open().unwrap()), notes(other())], [2, 4, 6]);
    // Who only looks signs nothing.
    assert_eq!(site.open().unwrap().head().entries - entries, 6);
}

/// [LED-5]: the head beside the key knows what was there.
#[test]
fn a_ledger_that_was_cut_or_rolled_back_is_refused() {
    let site = Site::new("cut");
    let mut ledger = site.open().unwrap();
    round(&mut ledger, 1, 9).unwrap();
    ledger.sync().unwrap();
    let (older, early) = (fs::read(site.file()).unwrap(), ledger.head());
    (2..=3).for_each(|number| round(&mut ledger, number, 9).unwrap());
    ledger.sync().unwrap();
    let last = ledger.head();
    drop(ledger);
    let whole = fs::read(site.file()).unwrap();
    let cuts = [0, older.len(), older.len() + 20, whole.len() - 1, whole.len() - 30];
    for length in cuts {
        fs::write(site.file(), &whole[..length]).unwrap();
        assert!(matches!(site.open(), Err(LedgerError::Cut { .. })), "cut to {length}");
        assert_eq!(fs::read(site.file()).unwrap().len(), length, "a ledger that is refused is not mended");
        assert!(site.check(Some(last.link)).is_err());
    }
    fs::remove_file(site.file()).unwrap();
    assert!(matches!(site.open(), Err(LedgerError::Cut { there: 0, .. })));
    // Another one, honestly signed, that went on otherwise from the older copy.
    fs::write(site.file(), &older).unwrap();
    let (head, away) = (site.head(), site.folder.0.join("away"));
    fs::rename(&head, &away).unwrap();
    assert!(matches!(site.open(), Err(LedgerError::NoHead(_))));
    assert!(matches!(all(&site.folder.0.join("state")), Err(LedgerError::NoHead(_))));
    fs::rename(&away, &head).unwrap();
    // The newest again, and a link that was noted early.
    fs::write(site.file(), &whole).unwrap();
    site.check(Some(early.link)).unwrap();
    assert_eq!(site.open().unwrap().head(), last);
    // A damaged head.
    let text = fs::read_to_string(&head).unwrap();
    fs::write(&head, text.replacen("\"link\":\"", "\"link\":\"0", 1)).unwrap();
    assert!(damaged(site.open()).contains("no head of a ledger"));
    fs::write(&head, text.replacen("\"entries\":10", "\"entries\":2", 1)).unwrap();
    assert!(damaged(site.open()).contains("not the one that its head names"));
}

/// [LED-6]: what the torn line was to protect never left.
#[test]
fn a_torn_end_is_mended_where_nothing_left() {
    let site = Site::new("torn");
    let mut ledger = site.open().unwrap();
    round(&mut ledger, 1, 9).unwrap();
    ledger.sync().unwrap();
    let head = ledger.head();
    drop(ledger);
    let whole = fs::read(site.file()).unwrap();
    fs::write(site.file(), [&whole[..], &whole[..200]].concat()).unwrap();
    let torn = site.check(None).map(|_| ()).unwrap_err();
    assert!(matches!(&torn, LedgerError::Torn { entry: 4, .. }), "{torn}");
    assert!(matches!(site.check(Some(Hash([1; 32]))), Err(LedgerError::Cut { there: 4, .. })));
    assert_eq!(site.open().unwrap().head(), head);
    assert_eq!(fs::read(site.file()).unwrap(), whole);
    // An entry behind the head: written, and the process ended before the head was.
    let mut ledger = site.open().unwrap();
    ledger.record(b"keys", Disclosure::PublicKeys, None).unwrap();
    drop(ledger);
    assert_eq!(site.open().unwrap().head().entries, 5);
}

/// [LED-4]: an entry that cannot be written protects a frame that does not leave, and nothing follows it.
#[test]
fn a_disk_that_fails_lets_nothing_leave() {
    let site = Site::new("disk");
    let mut ledger = site.open().unwrap();
    round(&mut ledger, 1, 9).unwrap();
    let disk = ledger.disk.as_mut().unwrap();
    let good = std::mem::replace(&mut disk.log.file, File::open(site.file()).unwrap());
    assert!(matches!(round(&mut ledger, 2, 9), Err(LedgerError::Io { .. })));
    // Room again: still nothing, because a part of the line may stand there.
    ledger.disk.as_mut().unwrap().log.file = good;
    let keys = ledger.record(b"keys", Disclosure::PublicKeys, None);
    assert!(matches!(keys, Err(LedgerError::Io { .. })));
    drop(ledger);
    assert_eq!(site.open().unwrap().head().entries, 4);
    // A head that cannot be written.
    let mut ledger = site.open().unwrap();
    ledger.disk.as_mut().unwrap().head_path = site.folder.0.join("missing").join(HEAD);
    charge(&mut ledger, place(3, 9), answer(3));
    let words = ledger.record(b"words", Disclosure::MaskedWords, Some(place(3, 9)));
    assert!(matches!(words, Err(LedgerError::Io { .. })));
}

/// [LED-6].
#[test]
fn two_runs_at_once_are_told_of_each_other() {
    let site = Site::new("two");
    let held = site.open().unwrap();
    match site.open() {
        Err(LedgerError::Locked { who, .. }) => {
            assert!(who.contains(&format!("process {}", std::process::id())) && who.contains("plan 0101"), "{who}");
        }
        _ => panic!("two at once"),
    }
    drop(held);
    site.open().unwrap();
}

/// What the second implementation writes: whole chains, and broken ones with the rule and the entry at fault.
#[test]
fn vectors() {
    let folder = Folder::new("vectors");
    let file = folder.0.join(FILE);
    let mut seen = BTreeSet::new();
    for case in cases("ledger") {
        let function = case["function"].as_str().unwrap();
        seen.insert(function.to_owned());
        match function {
            "chain" => {
                fs::write(&file, case["text"].as_str().unwrap()).unwrap();
                let found = check(&file, case["head"].as_str().map(|_| hash(&case["head"])));
                match (case["rule"].as_str(), found) {
                    (None, Ok(Checked { head, entries, .. })) => {
                        assert_eq!((head.entries, head.link), (number(&case["entries"]), hash(&case["link"])));
                        let lines: String = entries.iter().map(|e| e.link().to_string()).collect();
                        assert_eq!(lines.len(), 64 * entries.len());
                    }
                    (Some("LED-5"), Err(LedgerError::Cut { there, .. })) => assert_eq!(there, case["entry"]),
                    (Some("LED-1"), Err(LedgerError::Form { form, .. })) => assert_ne!(form, u64::from(FORM)),
                    (Some(rule), Err(bad @ (LedgerError::Damaged { .. } | LedgerError::Torn { .. }))) => {
                        let (entry, what) = (format!("entry {} ", case["entry"]), bad.to_string());
                        assert!(what.contains(rule) && what.contains(&entry), "{}: {what}", case["name"]);
                    }
                    (rule, found) => panic!("{}: {rule:?}, {:?}", case["name"], found.err()),
                }
            }
            "sites" => {
                let keys = list(&case["keys"]).iter().map(|key| PublicKey(array(key)));
                assert_eq!(set_of_sites(keys), hash(&case["result"]));
            }
            "answers" => {
                let slot = (number(&case["deck"]) as u32, number(&case["slot"]) as u16);
                let after = answered(&case["before"]).and(&hash(&case["session"]), &hash(&case["run"]), slot);
                assert_eq!(after, answered(&case["after"]));
            }
            other => panic!("no test reads {other}"),
        }
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["answers", "chain", "sites"]);
}

/// [POL-9]: the operator agrees to one plan, and to its exact totals of one table; every table is kept.
#[test]
fn pol_9_an_agreement_is_for_one_plan_and_one_table() {
    let site = Site::new("agreed");
    let mut ledger = site.open().unwrap();
    let agreed = |ledger: &Ledger, plan: Hash, now: u8| ledger.account().has_agreed(&plan, Some(&table(now)));
    let agrees = |ledger: &mut Ledger, plan, table: Option<u8>| {
        ledger.note(Note::Agreed { plan, totals: Totals::Exact(table.map(self::table)) }).unwrap();
    };
    agrees(&mut ledger, PLAN, Some(5));
    assert!(agreed(&ledger, PLAN, 5) && !agreed(&ledger, Hash([77; 32]), 5));
    assert!(!agreed(&ledger, PLAN, 6), "what came between would be the difference of two totals");
    assert!(ledger.account().has_agreed(&PLAN, None), "who does not know the rows does not ask for another");
    // It outlives the process.
    drop(ledger);
    let mut ledger = site.open().unwrap();
    assert!(agreed(&ledger, PLAN, 5) && ledger.account().tables().is_empty());
    charge(&mut ledger, place(1, 9), answer(1));
    ledger.record(b"words", Disclosure::MaskedWords, Some(place(1, 9))).unwrap();
    agrees(&mut ledger, PLAN, None);
    assert!(agreed(&ledger, PLAN, 6), "whichever answers first");
    charge(&mut ledger, place(2, 9), Answer { table: Some(table(6)), ..answer(2) });
    ledger.record(b"other words", Disclosure::MaskedWords, Some(place(2, 9))).unwrap();
    assert!(!agreed(&ledger, PLAN, 5) && agreed(&ledger, PLAN, 6));
    // With noise no table counts.
    ledger.note(Note::Agreed { plan: Hash([77; 32]), totals: Totals::Noisy }).unwrap();
    assert!(agreed(&ledger, Hash([77; 32]), 5));
    assert_eq!(ledger.account().tables(), [(PLAN, table(5)), (PLAN, table(6))]);
}

/// [POL-10]: a set of sites is named once, for good, whatever else the account holds; another set is another.
#[test]
fn pol_10_a_set_of_sites_is_named_for_good() {
    let site = Site::new("sets");
    let set = |sites: &[u8]| set_of_sites(sites.iter().map(|n| identity(*n).public()));
    let (three, turned, four) = (set(&[1, 2, 3]), set(&[3, 1, 2]), set(&[1, 2, 3, 4]));
    let mut ledger = site.open().unwrap();
    let names = |ledger: &Ledger, set: &Hash| ledger.account().names(set);
    assert!(!names(&ledger, &three));
    ledger.accept(three).unwrap();
    let entries = ledger.head().entries;
    ledger.accept(turned).unwrap();
    assert_eq!(ledger.head().entries, entries, "the same sites in another order");
    drop(ledger);
    let ledger = site.open().unwrap();
    assert!(names(&ledger, &three) && names(&ledger, &turned) && !names(&ledger, &four));
}

/// [POL-8]: what a run that has begun may spend is nobody else's until it has ended.
#[test]
fn pol_8_runs_that_have_begun_count_whole() {
    let mut ledger = memory();
    let beside = |ledger: &Ledger, plan: Hash| ledger.account().committed(Some(&plan));
    ledger.note(Note::Begun { plan: PLAN, nano_rho: 100 }).unwrap();
    assert_eq!((beside(&ledger, Hash([99; 32])), beside(&ledger, PLAN)), (100, 0), "its own");
    charge(&mut ledger, place(1, 9), noised(1, 30));
    ledger.record(b"words", Disclosure::MaskedWords, Some(place(1, 9))).unwrap();
    assert_eq!(beside(&ledger, Hash([99; 32])), 100, "what it has spent is among it");
    ledger.end_run(&PLAN).unwrap();
    assert_eq!(beside(&ledger, Hash([99; 32])), 30);
}

/// [POL-8]: the first entry says what the account promises, also where nobody does; a raised cap is another one. The unit is settled with the
/// first run.
#[test]
fn pol_8_the_first_entry_says_what_the_account_promises() {
    let site = Site::new("bound");
    let open = || Ledger::open(&site.folder.0.join("state"), identity(1), data("rows", 5), None).unwrap();
    let mut ledger = open();
    ledger.accept(Hash([9; 32])).unwrap();
    let notes = |ledger: Ledger| {
        drop(ledger);
        let note = |entry: Entry| if let Event::Note(note) = entry.event { Some(note) } else { None };
        site.check(None).unwrap().entries.into_iter().filter_map(note).collect::<Vec<_>>()
    };
    let first = vec![Note::Account(Bound::default()), Note::Sites(Hash([9; 32]))];
    assert_eq!(notes(ledger), first);
    let mut ledger = open();
    let raised = Bound { nano_rho: 2_000_000_000, before: 7, ..ledger.account().bound() };
    ledger.bind(raised).unwrap();
    let account = |ledger: &Ledger| (ledger.account().bound(), ledger.account().spent().nano_rho);
    assert_eq!(account(&ledger), (raised, 7), "what other folders spent is spent");
    assert_eq!(notes(ledger), [&first[..], &[Note::Account(raised)]].concat());
    let mut ledger = open();
    let facts = PlanFacts {
        plan: PLAN,
        set: Hash([9; 32]),
        sites: 3,
        least: 3,
        threshold: 3,
        colluders: 0,
        totals: veilsum_proto::plan::Sites::Same,
        questions: 1,
        method: Hash([0; 32]),
        columns: Vec::new(),
        gives: Gives::Noisy { nano_rho: 5, unit: Unit::Person(3), max_rows: 1 << 20 },
    };
    let policy = Policy { unit: Unit::Person(3), ..Policy::default() };
    assert!(matches!(ledger.begin_run(&facts, &policy).unwrap(), Verdict::Yes(_)));
    // What was spent of rows is nine times as much of persons of three.
    let of_persons = Bound { unit: Unit::Person(3), before: 9 * 7, ..raised };
    assert_eq!(notes(ledger)[3..], [Note::Account(of_persons), Note::Begun { plan: PLAN, nano_rho: 5 }]);
}

/// [LED-4]: what a process that died had written, and its head does not know, is brought to the disk before anything rests on it.
#[test]
fn led_4_a_head_that_is_behind_is_mended_first() {
    let site = Site::new("behind");
    let mut ledger = site.open().unwrap();
    let length = || fs::metadata(site.file()).unwrap().len();
    let (before, head) = (length(), fs::read(site.head()).unwrap());
    charge(&mut ledger, place(1, 9), noised(1, 7));
    assert!(length() > before && fs::read(site.head()).unwrap() == head);
    // The process ends here.
    drop(ledger);
    // What no disk may have is written again. An account that is whole stays as it is.
    for mended in [true, false] {
        File::options().write(true).open(site.file()).unwrap().set_modified(UNIX_EPOCH).unwrap();
        assert_eq!(site.open().unwrap().account().spent().nano_rho, 7);
        assert_eq!(fs::metadata(site.file()).unwrap().modified().unwrap() > UNIX_EPOCH, mended);
    }
    assert_ne!(fs::read(site.head()).unwrap(), head, "the head knows of it when anything can rest on it");
}
