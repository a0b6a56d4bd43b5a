//! What a ledger keeps of others' ledgers ([LED-11]).

use veilsum_proto::standing::Member;

use super::*;

/// Sites with these seeds, each of which states so many answers.
fn members(stated: &[(u8, u64)]) -> Vec<Member> {
    let member = |(site, (seed, number)): (u16, &(u8, u64))| Member {
        site,
        key: identity(*seed).public(),
        standing: Standing { answered: Answered { number: *number, link: Hash([9; 32]) }, ..Standing::default() },
    };
    (0..).zip(stated).map(member).collect()
}

/// Whether it notes anything.
fn meet(ledger: &mut Ledger, at: &Talk, deck: u32, members: &[Member]) -> bool {
    let before = ledger.head();
    ledger.meet(at, deck, members).unwrap().unwrap();
    ledger.head() != before
}

/// [LED-11]: a site states its answers and nothing else of its ledger; what others state is there again, and totals over all of them
/// are added to it; a refusal changes nothing.
#[test]
fn led_11_a_ledger_keeps_what_others_stated() {
    let site = Site::new("met");
    let mut ledger = site.open().unwrap();
    assert_eq!(ledger.standing().answered, Answered::default());
    let at = |plan: u8| Talk { plan: Hash([plan; 32]), session: Hash([plan + 1; 32]), run: RUN };
    let first = members(&[(1, 0), (5, 3), (6, 7)]);
    assert!(meet(&mut ledger, &at(1), 0, &first) && !meet(&mut ledger, &at(1), 0, &first), "noted once");
    assert_eq!(ledger.standing().answered.number, 0, "a note is no answer");
    let all = Met::all(&first);
    for number in 1..=2 {
        let asked = Place { cohort: all, ..place(number, 9) };
        charge(&mut ledger, asked, answer(number));
        ledger.record(&[number as u8; 100], Disclosure::MaskedWords, Some(asked)).unwrap();
        for _ in 0..2 {
            ledger.record(&[number as u8; 50], Disclosure::SelfMaskShares, Some(asked)).unwrap();
        }
    }
    let answered = ledger.standing().answered;
    assert_eq!(answered.number, 2);
    drop(ledger);
    let mut ledger = site.open().unwrap();
    assert_eq!(ledger.standing().answered, answered, "the same for a new process");
    assert!(!meet(&mut ledger, &at(1), 0, &first), "and others'");
    let head = ledger.head();
    let back = ledger.meet(&at(7), 0, &members(&[(1, 2), (5, 5), (6, 8)])).unwrap().unwrap_err();
    assert_eq!((back.site, back.before, back.now, ledger.head()), (2, 9, 8, head));
    assert!(meet(&mut ledger, &at(7), 0, &members(&[(1, 2), (5, 5), (6, 9)])));
}
