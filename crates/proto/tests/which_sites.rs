//! Which sites a total covers: all of the roster, or those that are left ([POL-1]), in virtual time; what becomes of a run when a site is
//! lost or comes back.

use veilsum_testkit::prelude::*;

use crate::script::of_sites;

/// [POL-1]: over the same sites there is no total without one of them, and what was released before stands.
#[test]
fn pol_1_over_the_same_sites_a_loss_ends_the_run_with_what_is_out() {
    for (kind, nth, before) in
        [(Kind::AdvertiseKeys, 1, 0), (Kind::MaskedInput, 1, 0), (Kind::MaskedInput, 3, 2), (Kind::Unmask, 3, 3)]
    {
        let mut w = World::new(Kit::same(5, |_| {}), 2);
        of_sites(&mut w, move |wire, sent| match (wire.site, wire.kind, sent) == (2, kind, nth) {
            true => Verdict::Vanish,
            false => Verdict::Pass,
        });
        for round in 0..before {
            // Shares of the others are enough for the round in which it is lost after its words are there.
            assert_eq!(w.ask_exact(&[round]), [0, 1, 2, 3, 4], "{kind:?}");
        }
        let error = w.total(&[9]).unwrap_err();
        assert!(matches!(&error, Error::Quorum { alive: 4, needed: 5, .. }), "{kind:?}: {error}");
        assert_eq!(w.site_errors, []);
    }
}

/// [UNM-1]: the intermediary certifies survivors also where nobody is missing, over lost frames and crashes too.
#[test]
fn unm_1_the_intermediary_shows_a_certificate_in_every_round() {
    for boundary in 0..14 {
        let mut w = World::new(Kit { role: PartyId::Intermediary, ..Kit::same(4, |_| {}) }, 15);
        w.network.loss = 20;
        (w.crashes, w.hub_crashes) = (vec![Crash { site: 2, boundary, away: Some(1_000) }], vec![boundary]);
        for round in 0..3 {
            assert_eq!(w.ask_exact(&[round]), [0, 1, 2, 3], "boundary {boundary}");
        }
        let sent = |kind: Kind| w.sent_by_sites.iter().filter(|(_, k, _)| *k == kind).count();
        assert!(sent(Kind::ConsistencyCheck) >= 12 && sent(Kind::Unmask) >= 9 && w.opened.is_empty());
    }
}
