//! Processes that stop and come back from their journals ([SPA-26]).

use super::{federation::committee, forced, sum, world};
use crate::sparse::{
    Kind, Record,
    testing::{Verdict, World},
};

/// Each site's process stops once as it sends a frame of this kind, and comes back.
fn crash_once(w: &mut World, kind: Kind, every: u16) {
    let mut crashed = std::collections::BTreeSet::new();
    w.hook = Box::new(move |wire| {
        let falls = wire.from_site && wire.kind == kind && wire.site % every == 1 && crashed.insert(wire.site);
        if falls { Verdict::Crash } else { Verdict::Pass }
    });
}

#[test]
fn stopped_at_the_masked_vector() {
    let mut w = world(50, forced(50), 3, 20);
    committee(&mut w);
    crash_once(&mut w, Kind::Input, 3);
    for round in 0..3u8 {
        let (values, cohort, missing) = w.ask(&[round], 3).unwrap();
        assert_eq!((cohort.len(), missing.len()), (50, 0));
        assert_eq!(values, sum(&cohort, 3));
    }
    assert!(w.site_errors.is_empty(), "{:?}", w.site_errors);
}

#[test]
fn the_committee_stopped_at_every_step() {
    for kind in [Kind::Held, Kind::Agree, Kind::Unmask] {
        let mut w = world(50, forced(50), 3, 21);
        // All of them at once.
        crash_once(&mut w, kind, 1);
        let mut crash = std::mem::replace(&mut w.hook, Box::new(|_| Verdict::Pass));
        w.hook = Box::new(move |wire| if wire.site % 5 == 0 { Verdict::Pass } else { crash(wire) });
        for round in 0..2u8 {
            let result = w.ask(&[round], 3);
            let (values, cohort, _) = result.unwrap_or_else(|e| panic!("{kind:?}: {e}; {:?}", w.site_errors));
            assert_eq!(values, sum(&cohort, 3), "{kind:?}");
        }
    }
}

/// After a restart the application's answer must come out as it was; another one never leaves.
#[test]
fn another_answer_after_a_restart_does_not_leave() {
    let mut w = world(50, forced(50), 3, 22);
    committee(&mut w);
    crash_once(&mut w, Kind::Input, 50);
    let mut asked = 0;
    w.answer = Box::new(move |site, a| {
        asked += u64::from(site == 1);
        vec![u64::from(site) + if site == 1 { asked } else { 0 }; a.words]
    });
    let (_, cohort, missing) = w.ask(b"q", 2).unwrap();
    assert_eq!((cohort.len(), missing), (49, vec![1]));
    assert!(w.site_errors.iter().any(|(s, e)| *s == 1 && e.to_string().contains("different")), "{:?}", w.site_errors);
}

#[test]
fn records_survive_their_bytes_and_damage_is_refused() {
    let mut w = world(50, forced(50), 2, 23);
    let members = committee(&mut w);
    w.ask(b"q", 2).unwrap();
    let journal = &w.journals[usize::from(members[0])];
    assert!(journal.len() >= 5, "{} entries", journal.len());
    for record in journal {
        let bytes = record.to_bytes();
        assert!(Record::from_bytes(&bytes).unwrap() == *record);
        assert!(Record::from_bytes(&bytes[..bytes.len() - 1]).is_err());
    }
    // Entries out of order are no journal.
    let config = || crate::sparse::testing::site_config(&w.kit, crate::sparse::Shape::Forced(forced(50)), members[0]);
    assert!(crate::sparse::Site::restore(config(), journal.clone()).is_ok());
    let reversed: Vec<Record> = journal.iter().rev().cloned().collect();
    assert!(crate::sparse::Site::restore(config(), reversed).is_err());
}
