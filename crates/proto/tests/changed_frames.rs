//! Frames of a whole run doubled, reordered and replayed, in both directions: nobody panics, and the totals stay exact. Changes of one
//! message are in `known_lies.txt`, two different answers to one question in `protocol/vectors/v4/bad_*.json`.

use veilsum_testkit::prelude::*;

#[test]
fn every_frame_doubled_and_led_by_an_older_one() {
    let mut fed = World::noted(5, 42, |t| t.slots = 4);
    /// Frames seen so far, by site and direction.
    type Past = BTreeMap<(u16, bool), Vec<Vec<u8>>>;
    let past: RefCell<Past> = RefCell::default();
    let mut turn = 0usize;
    fed.tap(move |w| {
        let mut past = past.borrow_mut();
        let old = past.entry((w.site, w.from_site)).or_default();
        turn += 1;
        let mut out = Vec::new();
        if !old.is_empty() {
            // Everything from long ago to the frame before.
            out.push(old[turn * 7 % old.len()].clone());
        }
        out.extend([w.bytes.clone(), w.bytes.clone()]);
        // A reply to a replay is no news and is not replayed in its turn, or the wire would never fall silent.
        if old.len() < 60 {
            old.push(w.bytes.clone());
        }
        if turn > 6_000 { vec![w.bytes.clone()] } else { out }
    });
    for r in 0..9u8 {
        assert_eq!(fed.ask_exact(&[r]).len(), 5, "round {r}: {:?}", fed.site_errors);
    }
}

#[test]
fn frames_of_one_run_are_nothing_in_the_next() {
    let mut first = World::noted(5, 44, |_| {});
    first.ask_exact(b"q");
    let mut second = World::noted(5, 45, |_| {});
    second.ask_exact(b"a");
    let count = second.seen().iter().filter(|w| w.from_site).count();
    for w in first.seen() {
        second.inject(w.site, w.from_site, &w.bytes);
    }
    assert_eq!(second.seen().iter().filter(|w| w.from_site).count(), count, "no site answers to another run");
    assert_eq!(second.ask_exact(b"q").len(), 5, "{:?}", second.events);
}

#[test]
fn a_complaint_after_the_acknowledgement_is_too_late() {
    let mut fed = World::noted(7, 55, |_| {});
    let (me, s) = (fed.identity(4), fed.session());
    let context = Rc::new(RefCell::new(Hash::default()));
    let log = context.clone();
    fed.tap(move |w| {
        if w.kind == Kind::ShareAck && w.site == 4 {
            log.replace(parts(&w.bytes).context);
            return vec![w.bytes.clone(), raw(&me, &s, Kind::ShareComplaint, &log.borrow(), &codec::encode(&1u16))];
        }
        vec![w.bytes.clone()]
    });
    assert_eq!(fed.ask_exact(b"q").len(), 7);
    let late = raw(&fed.identity(4), &s, Kind::ShareComplaint, &context.borrow(), &codec::encode(&1u16));
    fed.inject(4, true, &late);
    assert_eq!(fed.ask_exact(b"r").len(), 7, "{:?}", fed.events);
}
