//! Ledgers whose first entries have an earlier form: they are read, go on, and are refused where a byte of them is changed.

use super::*;
use veilsum_proto::ledger::Form;

/// [LED-1], [REL-5]: a ledger from before blocks is carried forward: what it gave away counts, and its last cohort is the block.
#[test]
fn a_ledger_from_before_blocks_is_carried_forward() {
    let site = Site::new("old");
    fs::create_dir_all(site.folder.0.join("state")).unwrap();
    let (mut text, mut head) = (String::new(), Head::default());
    let survivors = release::block_id(block().iter().map(|(key, _)| *key));
    let mut add = |discloses, slot: u16, cohort: Hash, question: Option<u16>| {
        let entry = Entry {
            index: head.entries,
            previous: head.link,
            plan: PLAN,
            session: left(0, 9).session,
            run: RUN,
            slot: Some((0, slot)),
            cohort: Some(cohort),
            discloses,
            bytes: 100,
            digest: Hash([slot as u8; 32]),
            data: "rows".into(),
            rows: Hash([5; 32]),
            version: 0,
            block: None,
            note: None,
            answer: question.map(|n| Answer { probed: Some(Box::new(Probed::default())), ..answer(n) }),
            form: Form::BeforeBlocks,
        };
        head = Head { entries: entry.index + 1, link: entry.link() };
        text += &file::write(&entry, &entry.sign(&identity(1)));
    };
    add(Disclosure::MaskedWords, 1, Hash([9; 32]), Some(1));
    add(Disclosure::MaskedWords, 2, Hash([9; 32]), Some(2));
    add(Disclosure::SelfMaskShares, 2, survivors, None);
    assert!(!text.contains("version") && !text.contains("form"));
    fs::write(site.file(), &text).unwrap();
    assert!(matches!(site.open(), Err(LedgerError::NoHead { .. })));
    adopt(&site.file(), &site.head(), &identity(1)).unwrap();
    let mut ledger = site.open().unwrap();
    assert_eq!((ledger.book().spent(&other()).scalars, ledger.book().standing().block), (18, Some(survivors)));
    round(&mut ledger, 3, 9).unwrap();
    drop(ledger);
    assert!(fs::read_to_string(site.file()).unwrap().starts_with(&text));
    assert_eq!(site.open().unwrap().book().spent(&other()).scalars, 27);
}

/// Bytes that a program from before the account in rho wrote: its ledger, the head beside the key, and the key's public part. It has
/// exact answers with and without centres, one with noise and a draw, the columns, and a declared change.
const LEDGER: &str = include_str!("before_account/ledger.jsonl");
const HEAD: &str = include_str!("before_account/head.json");
const OWNER: &str = include_str!("before_account/owner.txt");

fn kept() -> Site {
    let site = Site::new("kept");
    fs::create_dir_all(site.folder.0.join("state")).unwrap();
    fs::write(site.file(), LEDGER).unwrap();
    fs::write(site.head(), HEAD).unwrap();
    site
}

/// [LED-1] to [LED-3], [POL-8], [POL-9]: what it gave away counts as it does now.
#[test]
fn a_ledger_from_before_the_account_goes_on() {
    let site = kept();
    let owner: PublicKey = OWNER.trim().parse().unwrap();
    let checked = check(&site.file(), owner, None).unwrap();
    assert!(checked.entries.iter().all(|entry| entry.form == Form::BeforeAccount));
    let mut ledger = site.open_for(data("rows", 6)).unwrap();
    assert_eq!((owner, ledger.head(), ledger.head().entries), (identity(1).public(), checked.head, 9));
    let (spent, account) = (ledger.book().spent(&other()), ledger.book().account());
    assert_eq!((spent.questions, spent.scalars, spent.nano_rho), (3, 13, 2_143_325));
    assert!(account.is_exact() && !account.changed_since_exact(), "the last exact answer is of these rows");
    assert_eq!((account.version(), &account.block().unwrap().members), (1, &block_at(1)));
    assert_eq!(account.columns().collect::<Vec<_>>(), ["x"]);
    // The same question in the form of today is another answer; with noise it spends from the same account.
    let asked = left(4, 9);
    for nano_rho in [None, Some(5)] {
        let given = Answer { cost: Cost { nano_rho, ..answer(1).cost }, ..answer(1) };
        assert!(!ledger.book().repeats(&asked, &given));
        ledger.book_mut().promise(&asked, given, block_at(1)).unwrap();
        assert_eq!(ledger.book().spent(&other()).nano_rho, 2_143_325 + nano_rho.unwrap_or(0));
    }
    ledger.record(b"words", Disclosure::MaskedWords, &asked).unwrap();
    ledger.note(Note::Changed(Vec::new()), &Left::default(), Hash::default()).unwrap();
    drop(ledger);
    let text = fs::read_to_string(site.file()).unwrap();
    let new = text.strip_prefix(LEDGER).expect("older lines stay as they were");
    assert!(LEDGER.contains("\"milli_bits\":168000") && LEDGER.contains("\"lower\":[0.0,-1.55]"));
    assert!(["milli_bits", "frame", "centres"].iter().all(|name| !new.contains(name)));
    let ledger = site.open_for(data("rows", 6)).unwrap();
    assert_eq!((ledger.head().entries, ledger.book().spent(&other()).nano_rho), (11, 2_143_330));
    assert!(ledger.book().account().changed_since_exact());
}

/// [LED-1] to [LED-3]: whatever the form, a changed byte is found.
#[test]
fn an_older_ledger_is_refused_after_one_byte_is_changed() {
    let site = kept();
    for at in (0..LEDGER.len() - 1).step_by(7) {
        let mut bad = LEDGER.as_bytes().to_vec();
        bad[at] ^= if bad[at].is_ascii_alphabetic() { 0x20 } else { 1 };
        fs::write(site.file(), &bad).unwrap();
        damaged(site.check(None));
    }
    // Its lines do not pass for lines of today.
    for (from, to) in [
        ("{\"index\":3", "{\"form\":3,\"index\":3"),
        ("\"milli_bits\":300000,", ""),
        ("\"centres\":[]", "\"centres\":null"),
    ] {
        assert!(LEDGER.contains(from));
        fs::write(site.file(), LEDGER.replacen(from, to, 1)).unwrap();
        damaged(site.check(None));
    }
    fs::write(site.file(), LEDGER).unwrap();
    site.check(None).unwrap();
}
