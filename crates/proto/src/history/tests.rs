use super::*;
use crate::roster::Member;

fn id(seed: u8) -> Identity {
    Identity::from_seed(&[seed; 32])
}

/// Coordinator 1, intermediary 2, sites 3 to 5.
fn first() -> RosterDocument {
    let member =
        |seed: u8, name: &str| Member { name: name.into(), key: id(seed).public(), address: "127.0.0.1:1".into() };
    let sites = (3..6).map(|seed| Member { address: String::new(), ..member(seed, &format!("site-{seed}")) }).collect();
    let (coordinator, intermediary) = (member(1, "hub"), member(2, "counter"));
    let roster = Roster { name: "test".into(), coordinator, intermediary, sites };
    roster.sign(&id(1)).unwrap().into()
}

fn rekey(old: u8, new: u8) -> Rekey {
    let party = if old == 2 { "counter".into() } else { format!("site-{}", old % 10) };
    Rekey::make("test", &party, &id(old), &id(new))
}

fn after(document: &RosterDocument, rekeys: &[Rekey]) -> RosterDocument {
    let roster = rekeyed(&document.signed.roster, rekeys);
    document.followed_by(roster, rekeys.to_vec(), &id(1)).unwrap()
}

fn with_site(document: &RosterDocument, seed: u8) -> RosterDocument {
    let mut roster = document.signed.roster.clone();
    let key = id(seed).public();
    roster.sites.push(Member { name: format!("site-{seed}"), key, address: String::new() });
    document.followed_by(roster, Vec::new(), &id(1)).unwrap()
}

fn step_of<'a>(from: &RosterDocument, to: &'a RosterDocument) -> Step<'a> {
    step(&from.signed.roster, &to.signed.roster, &to.history)
}

fn rule(result: Result<(), Error>) -> (Rule, String) {
    let e = result.unwrap_err();
    (e.rule().unwrap(), e.to_string())
}

/// [ROS-11]: who has one of the two keys cannot state it, and nothing of it can be changed.
#[test]
fn ros_11_both_keys_have_to_say_so() {
    let good = rekey(4, 14);
    good.verify().unwrap();
    let stranger = id(9);
    let forged = Rekey::make("test", "site-4", &stranger, &id(14));
    for bad in [
        Rekey { old: good.old, ..forged.clone() },
        Rekey { by_old: good.by_new, ..good.clone() },
        Rekey { by_new: good.by_old, ..good.clone() },
        Rekey { new: stranger.public(), ..good.clone() },
        Rekey { federation: "tess".into(), ..good.clone() },
        Rekey { party: "site-5".into(), ..good.clone() },
        Rekey { party: "a b".into(), ..good.clone() },
        Rekey::make("test", "site-4", &id(4), &id(4)),
        Rekey { new: PublicKey([0; 32]), ..good.clone() },
    ] {
        assert_eq!(rule(bad.verify()).0, Rule::Ros11, "{bad:?}");
    }
}

/// [ROS-13]: keys alone, by their own statements, however many; and nothing else.
#[test]
fn ros_13_only_keys_that_vouch_for_each_other_are_taken_without_a_call() {
    let start = first();
    let one = after(&start, &[rekey(4, 14)]);
    let two = after(&one, &[rekey(14, 24), rekey(2, 12)]);
    let more = with_site(&two, 6);
    for document in [&start, &one, &two, &more] {
        document.verify().unwrap();
        assert_eq!(RosterDocument::decode(&document.encode()).unwrap(), *document);
    }
    assert_eq!(step_of(&two, &two), Step::Same);
    assert_eq!(step_of(&one, &two), Step::Rekeyed(vec![&rekey(14, 24), &rekey(2, 12)]));
    let Step::Rekeyed(all) = step_of(&start, &two) else { panic!("three keys") };
    assert_eq!(all.len(), 3);
    assert_eq!(step_of(&two, &more), Step::Other);
    assert_eq!(step_of(&start, &more), Step::Other);
    assert_eq!(step_of(&two, &one), Step::Other, "an older one");
    // There and back again, and a new key from there: only what is behind the last time counts.
    let back = with_site(&start, 6).followed_by(start.signed.roster.clone(), Vec::new(), &id(1)).unwrap();
    let late = after(&back, &[rekey(4, 14)]);
    assert_eq!(step_of(&start, &late), Step::Rekeyed(vec![&rekey(4, 14)]));
    // A key that was changed beside one that was stated.
    let mut roster = rekeyed(&start.signed.roster, &[rekey(4, 14)]);
    roster.sites[2].key = id(15).public();
    let sly = start.followed_by(roster, vec![rekey(4, 14)], &id(1)).unwrap();
    assert_eq!(step_of(&start, &sly), Step::Other);
    let mut roster = rekeyed(&start.signed.roster, &[rekey(4, 14)]);
    roster.intermediary.address = "10.0.0.1:1".into();
    let moved = start.followed_by(roster, vec![rekey(4, 14)], &id(1)).unwrap();
    assert_eq!(step_of(&start, &moved), Step::Rekeyed(vec![&rekey(4, 14)]), "an address is nobody's key");
    let mut roster = moved.signed.roster.clone();
    roster.coordinator.address = "10.0.0.2:1".into();
    let moved = moved.followed_by(roster.clone(), Vec::new(), &id(1)).unwrap();
    assert!(matches!(step_of(&start, &moved), Step::Rekeyed(_)));
    // A site is dialled by nobody.
    roster.sites[0].address = "10.0.0.2:1".into();
    let odd = moved.followed_by(roster, Vec::new(), &id(1)).unwrap();
    assert_eq!(step_of(&moved, &odd), Step::Other);
}

/// [ROS-11], [ROS-13]: a lost key has named the one that takes its place; that holds, and not without a call.
#[test]
fn ros_13_a_recovered_key_is_valid_and_needs_a_call() {
    let by_old = Rekey::recovery(&id(4), &id(14).public());
    let recovered = |new: u8, by_old| Rekey::recovered("test", "site-4", (id(4).public(), by_old), &id(new));
    let good = recovered(14, by_old);
    good.verify().unwrap();
    assert!(good.is_recovered() && !rekey(4, 14).is_recovered());
    for bad in [
        recovered(15, by_old),
        recovered(14, rekey(4, 14).by_old),
        recovered(14, Rekey::recovery(&id(14), &id(14).public())),
    ] {
        let own = bad.by_old == rekey(4, 14).by_old;
        assert_eq!(bad.verify().is_ok(), own, "{bad:?}");
    }
    let start = first();
    let one = after(&start, &[good]);
    one.verify().unwrap();
    assert_eq!(step_of(&start, &one), Step::Other);
    // Also where an ordinary one is behind it.
    let two = after(&one, &[rekey(14, 24)]);
    assert_eq!((step_of(&start, &two), step_of(&one, &two)), (Step::Other, Step::Rekeyed(vec![&rekey(14, 24)])));
}

/// [ROS-12]: what does not follow, is not signed, comes back or is the coordinator's.
#[test]
fn ros_12_a_history_that_does_not_hold_is_refused() {
    let start = first();
    let one = after(&start, &[rekey(4, 14)]);
    let two = after(&one, &[rekey(5, 15)]);
    let check = |change: &dyn Fn(&mut RosterDocument), says: &str| {
        let mut bad = two.clone();
        change(&mut bad);
        let (rule, text) = rule(bad.verify());
        assert!((rule == Rule::Ros12 || rule == Rule::Ros11) && text.contains(says), "{says}: {text}");
    };
    let resign = |d: &mut RosterDocument, at: usize| {
        d.history[at].signature = id(1).sign(CHANGE, &[&codec::encode(&d.history[at].change)]);
    };
    check(&|d| drop(d.history.remove(0)), "change 1 stands where change 0");
    check(&|d| d.history.truncate(1), "ends at another roster");
    check(&|d| d.history[0].change.previous.0[0] ^= 1, "hub misbehaved: change 0");
    check(&|d| d.history[1].change.rekeys.clear(), "hub misbehaved: change 1");
    check(
        &|d| {
            d.history[1].change.previous.0[0] ^= 1;
            resign(d, 1);
        },
        "change 1 does not follow",
    );
    // The coordinator, with its own key: a statement that nobody made, an old one, another federation's, its own.
    let put = |rekey: Rekey| {
        move |d: &mut RosterDocument| {
            d.history[1].change.rekeys = vec![rekey.clone()];
            d.history[1].signature = id(1).sign(CHANGE, &[&codec::encode(&d.history[1].change)]);
        }
    };
    check(&put(Rekey { old: id(5).public(), ..rekey(9, 15) }), "did not sign");
    check(&put(rekey(4, 14)), "replaced or used before");
    check(&put(rekey(4, 24)), "replaced or used before");
    check(&put(rekey(14, 4)), "replaced or used before");
    check(&put(Rekey::make("other", "site-5", &id(5), &id(15))), "another federation");
    check(&put(Rekey::make("test", "hub", &id(1), &id(11))), "the coordinator's key");
    check(&put(Rekey::make("test", "site-5", &id(5), &id(1))), "replaced or used before");
    check(&put(Rekey::make("test", "site-5", &id(5), &id(25))), "has not the key");
    // A key that was replaced is nobody's any more.
    let mut roster = two.signed.roster.clone();
    roster.sites[1].key = id(4).public();
    let back = two.followed_by(roster, Vec::new(), &id(1)).unwrap_err();
    assert!(back.to_string().contains("was replaced by another one"), "{back}");
    let mut roster = two.signed.roster.clone();
    roster.coordinator.key = id(11).public();
    assert!(two.followed_by(roster, Vec::new(), &id(11)).is_err());
    // So many that nobody could read them.
    let mut long = two.clone();
    long.history = vec![two.history[0].clone(); MAX_CHANGES + 1];
    assert!(rule(long.verify()).1.contains("more than"));
    assert!(RosterDocument::decode(&vec![0; MAX_ROSTER + 1]).is_err());
}

/// [ROS-12]: two next rosters behind one are shown, both; the same roster in another place is none.
#[test]
fn ros_12_a_fork_names_both_changes() {
    let start = first();
    let one = after(&start, &[rekey(4, 14)]);
    let other = with_site(&start, 6);
    let (known, new) = fork(&one.history, &other.history).unwrap();
    assert_eq!((known, new), (&one.history[0], &other.history[0]));
    assert!(known.is_by(&id(1).public()) && new.is_by(&id(1).public()) && !new.is_by(&id(2).public()));
    assert_eq!(fork(&one.history, &after(&one, &[rekey(5, 15)]).history), None);
    // There and back again, and on another way from there: no fork, because it is another step.
    let there = with_site(&start, 6);
    let back = there.followed_by(start.signed.roster.clone(), Vec::new(), &id(1)).unwrap();
    let again = with_site(&back, 7);
    again.verify().unwrap();
    assert_eq!(fork(&back.history, &again.history), None);
}
