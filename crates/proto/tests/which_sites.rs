//! Which sites a total covers: all of the roster, or those that are left ([POL-1]), in virtual time; what becomes of a run when a site is
//! lost or comes back.

use veilsum_proto::{Error, Rule, message::Kind, roster::PartyId};
use veilsum_testkit::federation::{Crash, Kit, Verdict, World};

use crate::script::of_sites;

const WORDS: usize = 3;

/// Every site adds its number and one to every word.
fn world(kit: Kit, seed: u64) -> World {
    let mut w = World::new(kit, seed);
    w.answer = Box::new(|site, asked| vec![u64::from(site) + 1; asked.words]);
    w
}

fn ask(w: &mut World, round: u8) -> Result<Vec<u16>, Error> {
    let (values, cohort, _) = w.ask(&[round], WORDS)?;
    assert_eq!(values, vec![cohort.iter().map(|s| u64::from(*s) + 1).sum::<u64>(); WORDS], "the total of its cohort");
    Ok(cohort)
}

/// The site vanishes for good instead of sending its nth frame of a kind.
fn vanishes(w: &mut World, site: u16, kind: Kind, nth: usize) {
    of_sites(
        w,
        move |wire, sent| {
            if (wire.site, wire.kind, sent) == (site, kind, nth) { Verdict::Vanish } else { Verdict::Pass }
        },
    );
}

/// [POL-1]: over the same sites there is no total without one of them, and what was released before stands.
#[test]
fn pol_1_over_the_same_sites_a_loss_ends_the_run_with_what_is_out() {
    let all = vec![0, 1, 2, 3, 4];
    for (kind, nth, before) in
        [(Kind::AdvertiseKeys, 1, 0), (Kind::MaskedInput, 1, 0), (Kind::MaskedInput, 3, 2), (Kind::Unmask, 3, 3)]
    {
        let mut w = world(Kit::same(5, |_| {}), 2);
        vanishes(&mut w, 2, kind, nth);
        for round in 0..before {
            // Shares of the others are enough for the round in which it is lost after its words are there.
            assert_eq!(ask(&mut w, round), Ok(all.clone()), "{kind:?}");
        }
        let error = ask(&mut w, 9).unwrap_err();
        assert!(matches!(&error, Error::Quorum { alive: 4, needed: 5, .. }), "{kind:?}: {error}");
        assert_eq!(w.site_errors, []);
    }
}

/// Any sites are enough, as many as the plan's floor and threshold.
#[test]
fn over_any_sites_a_run_goes_on_with_those_that_are_left() {
    for kind in [Kind::AdvertiseKeys, Kind::MaskedInput] {
        let mut w = world(Kit::new(5, |_| {}), 2);
        vanishes(&mut w, 2, kind, 1);
        for round in 0..3 {
            assert_eq!(ask(&mut w, round), Ok(vec![0, 1, 3, 4]), "{kind:?}");
        }
        assert_eq!(w.site_errors, []);
    }
    let mut w = world(Kit::new(5, |t| t.min_cohort = 5), 2);
    vanishes(&mut w, 2, Kind::MaskedInput, 1);
    assert_eq!(ask(&mut w, 0).unwrap_err().rule().unwrap(), Rule::Sur3);
}

/// [UNM-1]: the intermediary certifies survivors also where nobody is missing, over lost frames and crashes too.
#[test]
fn unm_1_the_intermediary_shows_a_certificate_in_every_round() {
    for boundary in 0..14 {
        let mut w = world(Kit { role: PartyId::Intermediary, ..Kit::same(4, |_| {}) }, 15);
        w.network.loss = 20;
        (w.crashes, w.hub_crashes) = (vec![Crash { site: 2, boundary, away: Some(1_000) }], vec![boundary]);
        for round in 0..3 {
            assert_eq!(ask(&mut w, round), Ok(vec![0, 1, 2, 3]), "boundary {boundary}");
        }
        let sent = |kind: Kind| w.sent_by_sites.iter().filter(|(_, k, _)| *k == kind).count();
        assert!(sent(Kind::ConsistencyCheck) >= 12 && sent(Kind::Unmask) >= 9 && w.opened.is_empty());
    }
}
