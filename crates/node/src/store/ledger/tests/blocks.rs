//! Which block the rows are in, and whether they are the rows that were answered from before.

use super::*;
use veilsum_proto::Rule;

/// [LED-7], [LED-8]: a name decides nothing; rows that changed are noticed, and count for the same data set.
#[test]
fn rows_do_not_become_new_by_a_new_name() {
    let site = Site::new("names");
    let mut ledger = site.open_for(data("ward", 5)).unwrap();
    assert_eq!(ledger.book().known(&origin(5)), Known::Same(columns(5)));
    ledger.note(Note::Columns(columns(5)), &Left::default(), Hash::default()).unwrap();
    round(&mut ledger, 1, 9).unwrap();
    drop(ledger);
    for (name, rows) in [("ward", 5), ("ward", 6), ("other", 5), ("other", 6)] {
        let ledger = site.open_for(data(name, rows)).unwrap();
        assert_eq!(ledger.book().spent(&other()).scalars, 9, "{name} {rows}");
        let known = if rows == 5 { Known::Same(Vec::new()) } else { Known::Other(vec!["x".into()]) };
        assert_eq!(ledger.book().known(&origin(rows)), known, "{name} {rows}");
    }
    // Another column is no change.
    let wider = |y: [f64; 2]| {
        let rows = Rows::new(vec![5.0, y[0], 9.0, y[1]], 2).unwrap();
        Origin::new(vec!["x".into(), "y".into()], rows)
    };
    let mut ledger = site.open_for(data("ward", 5)).unwrap();
    let Known::Same(new) = ledger.book().known(&wider([1.0, 2.0])) else { panic!("a column more") };
    assert_eq!(new.iter().map(|c| &c.name[..]).collect::<Vec<_>>(), [r#"["x","y"]"#, "y"]);
    // From then on they stand in the same rows ([LED-8]).
    ledger.note(Note::Columns(new), &Left::default(), Hash::default()).unwrap();
    assert_eq!(ledger.book().known(&wider([1.0, 2.0])), Known::Same(Vec::new()));
    let rows = Together::named(r#"["x","y"]"#).unwrap();
    assert_eq!(ledger.book().known(&wider([2.0, 1.0])), Known::OtherRows(vec![rows.clone()]));
    assert_eq!(ledger.book().known(&wider([2.0, 3.0])), Known::Other(vec!["y".into()]));
    let names = ["x".to_owned(), "y".to_owned()];
    assert_eq!(ledger.book().account().columns().cloned().collect::<Vec<_>>(), names);
    assert_eq!(ledger.book().account().together(), vec![rows]);
    drop(ledger);
    // A change that is declared: the rows are known, what was given away still counts, and answers from them are new ones.
    let mut ledger = site.open_for(data("ward", 6)).unwrap();
    let before = ledger.book().standing();
    ledger.note(Note::Changed(columns(6)), &Left::default(), Hash::default()).unwrap();
    assert_eq!(ledger.book().standing(), Standing { version: before.version + 1, ..before });
    let asked = Left { context: Hash([60; 32]), ..left(1, 9) };
    let changed = block_at(&ledger, 1);
    ledger.book_mut().promise(&asked, answer(1), changed).unwrap();
    ledger.record(b"from other rows", Disclosure::MaskedWords, &asked).unwrap();
    assert_eq!(ledger.book().spent(&other()).scalars, 18);
    drop(ledger);
    // Other rows altogether: no block, and the account goes on.
    let mut ledger = site.open_for(data("ward", 7)).unwrap();
    assert!(matches!(ledger.book().known(&origin(7)), Known::Other(_)));
    ledger.note(Note::Separate(columns(7)), &Left::default(), Hash::default()).unwrap();
    assert_eq!(
        (ledger.book().standing(), ledger.book().spent(&other()).scalars),
        (Standing { block: None, version: 2, ..ledger.book().standing() }, 18)
    );
    // Keys that were exchanged before say another version: that of rows which are gone.
    for version in [0, 1] {
        let asked = Left { context: Hash([61; 32]), ..left(2, 9) };
        let earlier = block_at(&ledger, version);
        let refused = ledger.book_mut().promise(&asked, answer(2), earlier).unwrap_err();
        assert_eq!(refused.rule, Rule::Rel7, "{version}");
        assert!(ledger.record(b"words", Disclosure::MaskedWords, &asked).is_err());
    }
    let (now, own) = (block_at(&ledger, 2), ledger.book().standing().account);
    let stranger: Vec<_> = now.iter().copied().filter(|(id, _)| Some(*id) != own).collect();
    assert_eq!(ledger.book_mut().promise(&left(2, 9), answer(2), stranger).unwrap_err().rule, Rule::Rel7);
    ledger.book_mut().promise(&left(2, 9), answer(2), now).unwrap();
}

/// [REL-5]: a site's two conversations are asked at the same time, before any words have left: it answers in one block, of one
/// version, and the other aggregator is refused before and after these words leave.
#[test]
fn two_conversations_promise_one_block() {
    let mut ledger = memory();
    let counting = Left { session: Hash([20; 32]), context: Hash([7; 32]), ..left(1, 9) };
    let mut larger = block(&ledger);
    larger.insert(0, (Hash([0; 32]), 0));
    let others_changed: Vec<_> =
        block(&ledger).into_iter().map(|(id, v)| (id, if id == Hash([2; 32]) { v + 1 } else { v })).collect();
    promise(&mut ledger, &left(1, 9), answer(1));
    for block in [larger, others_changed] {
        assert_eq!(ledger.book_mut().promise(&counting, answer(2), block).unwrap_err().rule, Rule::Rel5);
        assert!(matches!(ledger.record(b"count", Disclosure::MaskedWords, &counting), Err(LedgerError::Unasked)));
    }
    promise(&mut ledger, &counting, answer(2));
    ledger.record(b"count", Disclosure::MaskedWords, &counting).unwrap();
    ledger.record(b"words", Disclosure::MaskedWords, &left(1, 9)).unwrap();
    // The same conversation may promise another thing: what it promised before does not leave any more. Neither does what it
    // promised in a set-up, or a slot, that is gone.
    let mut ledger = memory();
    promise(&mut ledger, &left(1, 9), answer(1));
    let mut larger = block(&ledger);
    larger.insert(0, (Hash([0; 32]), 0));
    ledger.book_mut().promise(&left(2, 9), answer(1), larger.clone()).unwrap();
    assert!(matches!(ledger.record(b"words", Disclosure::MaskedWords, &left(1, 9)), Err(LedgerError::Unasked)));
    ledger.book_mut().take_back(&left(2, 9).session);
    promise(&mut ledger, &counting, answer(2));
    ledger.undo(&counting).unwrap();
    ledger.book_mut().promise(&left(3, 9), answer(1), larger).unwrap();
    assert!(matches!(ledger.record(b"count", Disclosure::MaskedWords, &counting), Err(LedgerError::Unasked)));
}

/// [REL-5]: the last look is at the moment when words leave, whoever looked before: they fix no second block.
#[test]
fn words_over_another_block_than_the_fixed_one_do_not_leave() {
    let mut ledger = memory();
    round(&mut ledger, 1, 9).unwrap();
    let smaller: Vec<_> = block(&ledger).into_iter().filter(|(id, _)| *id != Hash([2; 32])).collect();
    ledger.book_mut().promise(&left(2, 9), answer(2), smaller).unwrap();
    let entries = ledger.head().entries;
    assert!(matches!(ledger.record(b"words", Disclosure::MaskedWords, &left(2, 9)), Err(LedgerError::Unasked)));
    assert_eq!((ledger.head().entries, &ledger.book().account().block().unwrap().members), (entries, &block(&ledger)));
}

/// [REL-5], [REL-6]: masked words fix the block; it is undone when every round of it came to nothing.
#[test]
fn a_block_is_fixed_by_masked_words_and_undone_by_certificates() {
    let site = Site::new("block");
    let mut ledger = site.open().unwrap();
    ledger.record(b"keys", Disclosure::PublicKeys, &Left { slot: None, cohort: None, ..left(0, 9) }).unwrap();
    assert_eq!(ledger.book().standing().block, None);
    let id = release::block_id(block(&ledger).iter().map(|(id, _)| *id));
    let undone = |ledger: &mut Ledger, slot: u16| {
        ledger.undo(&Left { cohort: None, ..left(slot, 9) }).unwrap();
        ledger.book().standing().block
    };
    // What follows words in the same conversation came after their round: only the last ones can be undone.
    for (slots, undo, last) in [(vec![1], vec![1], None), (vec![2, 3], vec![3, 3, 2], Some(id))] {
        slots.iter().for_each(|slot| round(&mut ledger, *slot, 9).unwrap());
        let found: Vec<Option<Hash>> = undo.iter().map(|slot| undone(&mut ledger, *slot)).collect();
        assert_eq!(found.last(), Some(&last), "{slots:?}");
    }
    round(&mut ledger, 4, 9).unwrap();
    // Another run has slots of the same numbers: what is undone there was never this round's.
    let other_run = Left { run: Hash([4; 32]), cohort: None, context: Hash([99; 32]), ..left(4, 9) };
    ledger.undo(&other_run).unwrap();
    assert_eq!(ledger.book().standing().block, Some(id));
    drop(ledger);
    let ledger = site.open().unwrap();
    assert_eq!(ledger.book().standing().block, Some(id));
    assert_eq!(ledger.book().account().block().unwrap().members, block(&ledger));
    // The block stands in the first answer over it alone.
    let answers = site.check(None).unwrap().entries.into_iter().filter(|e| e.answer.is_some());
    assert_eq!(answers.map(|e| e.block.is_some()).collect::<Vec<_>>(), [true, true, false, false]);
}

/// [REL-6]: a process that was started again undoes what the one before sent, in that very round and no other.
#[test]
fn a_block_is_undone_after_a_restart() {
    let gone_when = |again: bool, rounds: u16, context: u8, change: &dyn Fn(&std::path::Path)| {
        let site = Site::new("restart");
        let mut ledger = site.open().unwrap();
        (1..=rounds).for_each(|number| round(&mut ledger, number, 9).unwrap());
        drop(ledger);
        change(&site.head());
        let mut ledger = site.open().unwrap();
        if again {
            ledger.record(&[rounds as u8; 100], Disclosure::MaskedWords, &left(rounds, 9)).unwrap();
        }
        for _ in 0..2 {
            ledger.undo(&Left { cohort: None, context: Hash([context; 32]), ..left(1, 9) }).unwrap();
        }
        drop(ledger);
        site.open().unwrap().book().standing().block.is_none()
    };
    let gone = |rounds, context, change| gone_when(false, rounds, context, change);
    let same = |_: &std::path::Path| {};
    assert!(gone(1, 1, &same));
    assert!(!gone(1, 2, &same), "another round");
    assert!(!gone(2, 2, &same) && !gone(2, 1, &same), "an earlier round stands");
    let lost = |path: &std::path::Path| {
        let head = file::read_head(&fs::read(path).unwrap()).unwrap();
        assert_eq!(head.words.len(), 1);
        write_head(path, &head.head, &head.digests, &[]).unwrap();
    };
    assert!(!gone(1, 1, &lost), "nobody knows in which round the words left");
    assert!(gone_when(true, 1, 1, &lost), "asked again, it sends the same words");
}

/// [REL-5], [REL-6]: words that a certificate undid fix the block like any others, if they leave after it all the same: from a
/// journal that was set back.
#[test]
fn words_that_were_undone_leave_as_new_ones() {
    for restarted in [false, true] {
        let site = Site::new("undone");
        let mut ledger = site.open().unwrap();
        round(&mut ledger, 1, 9).unwrap();
        ledger.undo(&Left { cohort: None, ..left(1, 9) }).unwrap();
        assert_eq!(ledger.book().standing().block, None);
        if restarted {
            drop(ledger);
            ledger = site.open().unwrap();
        }
        let again = |ledger: &mut Ledger| ledger.record(&[1; 100], Disclosure::MaskedWords, &left(1, 9));
        assert!(matches!(again(&mut ledger), Err(LedgerError::Unasked)), "restarted: {restarted}");
        promise(&mut ledger, &left(1, 9), answer(1));
        again(&mut ledger).unwrap();
        let id = release::block_id(block(&ledger).iter().map(|(id, _)| *id));
        assert_eq!(ledger.book().standing().block, Some(id), "restarted: {restarted}");
        drop(ledger);
        assert_eq!(site.open().unwrap().book().standing().block, Some(id), "restarted: {restarted}");
    }
}
