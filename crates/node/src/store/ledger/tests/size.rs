//! What a ledger costs: bytes a question, and time with many entries.

use std::time::Instant;

use veilsum_cluster::{Batch, Centres, Query, random::Stream};
use veilsum_proto::release::{Blocks, Member, Standing};

use super::*;

/// A round of fuzzy c-means with K centres in d columns, over a block of `members`.
fn fuzzy(clusters: usize, d: usize) -> Answer {
    let mut stream = Stream::new(9, b"veilsum ledger size test");
    let at: Vec<f64> = (0..clusters * d).map(|_| stream.unit()).collect();
    let centres = Centres::new(clusters, d, at).unwrap();
    let batch = Batch { transform: None, queries: vec![Query::fuzzy_sums(centres, 2.0)] };
    let query = crate::question::Question::Cluster(batch).to_bytes();
    let numbers = (clusters * (d + 1)) as u64;
    Answer {
        kind: "fuzzy_sums".into(),
        question: suite::hash("question in a ledger", &[&query, &[]]),
        cost: Cost { scalars: numbers, nano_rho: None },
        drawn: None,
    }
}

/// Bytes of the lines of one question in which nobody is missing: masked words, then shares. The first has the block as well.
fn bytes_of_a_question(clusters: usize, d: usize) -> [usize; 2] {
    let mut ledger = memory();
    let mut lines = [0; 2];
    for round in 0..2u16 {
        let asked = left(round, 9);
        promise(&mut ledger, &asked, fuzzy(clusters, d));
        for (frame, what) in [
            (vec![round as u8; 8 * clusters * (d + 1) + 200], Disclosure::MaskedWords),
            (vec![1 + round as u8; 300], Disclosure::SelfMaskShares),
        ] {
            let due = (what == Disclosure::MaskedWords).then(|| ledger.book().due(&asked).unwrap());
            let said = ledger.book().account().block().map(|block| &block.members);
            let entry = Entry {
                slot: asked.slot,
                cohort: asked.cohort,
                block: due.as_ref().map(|due| due.block.clone()).filter(|block| Some(block) != said),
                answer: due.map(|due| due.answer),
                ..ledger.entry(&asked, what, frame.len() as u64, suite::hash("ledger frame", &[&frame]))
            };
            lines[usize::from(round)] += file::write(&entry, &entry.sign(&ledger.identity)).len();
            ledger.record(&frame, what, &asked).unwrap();
        }
    }
    lines
}

/// Prints what the book says of a ledger's size.
#[test]
fn a_question_takes_few_bytes() {
    for (clusters, d) in [(3, 2), (10, 16)] {
        let [first, later] = bytes_of_a_question(clusters, d);
        println!("K = {clusters}, d = {d}: {later} bytes a question, the first one {first} with a block of four");
        assert!(later < 2_000 && first > later, "{first} {later}");
    }
}

/// Prints what the rule of whole blocks costs a question with 100 sites and 10,000 entries ([REL-3] to [REL-7]): the ledger's
/// account says which block the rows are in, and the rule is checked for every block of the cohort.
#[test]
#[ignore = "prints a time for people and asserts nothing: a time is no test"]
fn what_the_blocks_cost_with_many_entries() {
    let mut ledger = memory();
    let own = ledger.book().standing().account;
    let id = |site: u16| own.filter(|_| site == 0).unwrap_or(Hash([site as u8 + 1; 32]));
    let standing = |site| Standing { account: Some(id(site)), ..Standing::default() };
    let key = identity(1).public();
    let members: Vec<Member> = (0..100).map(|site| Member { site, key, standing: standing(site) }).collect();
    let sites: Vec<Vec<u16>> = (0..10).map(|b| (0..10).map(|i| 10 * b + i).collect()).collect();
    let blocks = Blocks::of(&members, &sites).unwrap();
    let own = release::OwnBlock { id: blocks.0[0].id, members: sites[0].iter().map(|site| (id(*site), 0)).collect() };
    let all: Vec<u16> = (0..100).collect();
    for round in 0..5_000u16 {
        let asked = left(round, 9);
        ledger.book_mut().promise(&asked, answer(round), own.members.clone()).unwrap();
        ledger.record(&round.to_le_bytes(), Disclosure::MaskedWords, &asked).unwrap();
        ledger.record(&[&round.to_le_bytes()[..], &[1]].concat(), Disclosure::SelfMaskShares, &asked).unwrap();
    }
    assert_eq!(ledger.head().entries, 10_001);
    let (began, times) = (Instant::now(), 1_000u32);
    for _ in 0..times {
        let known = ledger.book().account().block().unwrap();
        let before = release::OwnBlock { id: known.id, members: known.members.clone() };
        release::admit(&own, Some(&before), &blocks, &all, Some(&all[..50]), 3).unwrap();
        std::hint::black_box(ledger.book().standing());
    }
    let each = began.elapsed() / times;
    println!("blocks: {each:?} a question, 100 sites in ten blocks, 10,000 entries");
    assert!(each.as_micros() < 1_000, "{each:?}");
}
