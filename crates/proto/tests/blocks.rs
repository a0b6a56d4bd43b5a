//! Federations whose plans have blocks, in virtual time: what becomes of a run when a site is lost, joins or comes back
//! (spec section 11.3, [REL-1] to [REL-6]). Which blocks, changes and draws a site takes is in `protocol/vectors/v4/release.json`, and
//! that it is asked, in `policy/tests.rs`.

use veilsum_proto::{
    Error, Rule,
    aggregator::{Event, Loss},
    message::Kind,
    plan::Terms,
    release::{OwnBlock, block_id},
    roster::PartyId,
    suite::Hash,
};
use veilsum_testkit::federation::{Crash, Fixed, Kit, Verdict, World};

use crate::script::of_sites;

const WORDS: usize = 3;

/// Every site adds its number and one to every word.
fn world(n: usize, size: u16, seed: u64, change: impl FnOnce(&mut Terms)) -> World {
    let mut w = World::new(Kit::with_blocks(n, size, change), seed);
    w.answer = Box::new(|site, asked| vec![u64::from(site) + 1; asked.words]);
    w
}

fn ask(w: &mut World, round: u8) -> Result<Vec<u16>, Error> {
    let (values, cohort, _) = w.ask(&[round], WORDS)?;
    assert_eq!(values, vec![cohort.iter().map(|s| u64::from(*s) + 1).sum::<u64>(); WORDS], "the total of its cohort");
    Ok(cohort)
}

fn block(w: &World, sites: &[u16]) -> OwnBlock {
    let key = |s: &u16| Hash(w.kit.roster.member(PartyId::Site(*s)).unwrap().key.0);
    let mut members: Vec<_> = sites.iter().map(|s| (key(s), 0)).collect();
    members.sort_unstable();
    OwnBlock { id: block_id(sites.iter().map(key)), members }
}

/// These sites have answered in a run before, in this block.
fn released_before(w: &mut World, sites: &[u16]) {
    let block = block(w, sites);
    for site in sites {
        w.has_fixed(*site, Some(Fixed { block: block.clone(), by: (Hash([9; 32]), (0, 0)) }));
    }
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

fn loss(w: &World, site: u16) -> Option<&Loss> {
    w.events.iter().find_map(|e| match e {
        Event::Lost { site: lost, why } if *lost == site => Some(why),
        _ => None,
    })
}

/// The sites whose data set belongs to a block with these sites.
fn belongs(w: &World, sites: &[u16]) -> Vec<u16> {
    let id = block(w, sites).id;
    let here = |s: &u16| w.fixed[usize::from(*s)].as_ref().is_some_and(|fixed| fixed.block.id == id);
    (0..w.fixed.len() as u16).filter(here).collect()
}

/// [REL-5], [REL-6]: nothing is out, so nothing is lost: those who are left are a block of their own.
#[test]
fn a_loss_in_the_first_round_costs_the_one_that_is_lost() {
    // Before its words leave, or after them: lost on the way to the aggregator.
    for kind in [Kind::MaskedInput, Kind::ShareAck, Kind::AdvertiseKeys] {
        let mut w = world(5, 0, 1, |_| {});
        vanishes(&mut w, 4, kind, 1);
        let (four, burned) = (vec![0, 1, 2, 3], kind == Kind::MaskedInput);
        for round in 0..3 {
            assert_eq!(ask(&mut w, round), Ok(four.clone()), "{kind:?}");
        }
        assert_eq!(belongs(&w, &four), four);
        let undone: Vec<_> = if burned { four.iter().map(|s| (*s, (0, 0))).collect() } else { Vec::new() };
        assert_eq!(w.undone, undone, "{kind:?}");
        assert_eq!(w.site_errors, []);
    }
}

/// [REL-4]: once a total is out, the others wait for the one that is lost, and the run says for whom.
#[test]
fn rel_4_a_loss_in_a_later_round_ends_the_run_with_what_is_out() {
    for kind in [Kind::MaskedInput, Kind::Unmask] {
        let mut w = world(5, 0, 2, |_| {});
        vanishes(&mut w, 2, kind, 3);
        let all = vec![0, 1, 2, 3, 4];
        assert_eq!(ask(&mut w, 0), Ok(all.clone()));
        assert_eq!(ask(&mut w, 1), Ok(all.clone()));
        if kind == Kind::Unmask {
            // Shares of the others are enough for this round; not for the next.
            assert_eq!(ask(&mut w, 2), Ok(all.clone()));
        }
        let error = ask(&mut w, 3).unwrap_err();
        let told = error.to_string();
        assert!(matches!(&error, Error::Quorum { alive: 0, rule: Rule::Rel4, .. }), "{told}");
        assert!(told.contains("missing: site-2;") && told.contains("site-0, site-1, site-3, site-4)"), "{told}");
        assert_eq!(belongs(&w, &all), all, "the data belong to the block for good");
        assert_eq!(w.site_errors, []);
    }
}

/// A process that comes back from its journal within the deadline heals the round.
#[test]
fn who_comes_back_in_time_heals_the_block() {
    for boundary in 0..30 {
        let mut w = world(4, 0, 3, |_| {});
        w.crashes = vec![Crash { site: 1, boundary, away: Some(1_500) }];
        for round in 0..3 {
            assert_eq!(ask(&mut w, round), Ok(vec![0, 1, 2, 3]), "boundary {boundary}");
        }
        assert!(w.undone.is_empty() && w.site_errors.is_empty(), "{:?}", w.site_errors);
    }
}

/// [REL-4]: a plan with three blocks goes on without one of them.
#[test]
fn rel_4_of_three_blocks_one_may_be_lost() {
    let mut w = world(9, 3, 4, |t| t.colluders = 1);
    let blocks = [[0, 1, 2], [3, 4, 5], [6, 7, 8]];
    vanishes(&mut w, 4, Kind::MaskedInput, 2);
    assert_eq!(ask(&mut w, 0).unwrap().len(), 9);
    // Six are fewer than the threshold of seven that nine have by default.
    let error = ask(&mut w, 1).unwrap_err();
    assert_eq!(error.rule().unwrap(), Rule::Rel4, "{error}");
    let mut w = world(9, 3, 4, |t| (t.colluders, t.threshold) = (1, 6));
    vanishes(&mut w, 4, Kind::MaskedInput, 2);
    assert_eq!(ask(&mut w, 0).unwrap().len(), 9);
    for round in 1..12 {
        assert_eq!(ask(&mut w, round), Ok(vec![0, 1, 2, 6, 7, 8]), "also in a new deck");
    }
    assert_eq!(loss(&w, 3), Some(&Loss::BlockIncomplete(vec!["site-4".into()])));
    assert!(loss(&w, 5).unwrap().to_string().contains("site-4 is missing"));
    // What the others of the block sent in the round of the loss is in no total, and they know it; the total before is out.
    assert_eq!(w.undone, [(3, (0, 1)), (5, (0, 1))]);
    for sites in &blocks {
        assert_eq!(belongs(&w, sites), sites);
    }
    assert_eq!(w.site_errors, []);
}

/// [REL-6]: left out of the first total, a block is fixed no longer.
#[test]
fn rel_6_a_block_that_is_left_out_of_the_first_total_is_free_again() {
    let mut w = world(9, 3, 5, |t| (t.colluders, t.threshold) = (1, 6));
    vanishes(&mut w, 8, Kind::MaskedInput, 1);
    assert_eq!(ask(&mut w, 0), Ok(vec![0, 1, 2, 3, 4, 5]));
    w.close();
    assert_eq!(w.undone, [(6, (0, 0)), (7, (0, 0))]);
    assert!(w.fixed[6].is_none() && w.fixed[7].is_none());
}

/// [REL-3]: a joiner by itself waits; as many as a block needs are one.
#[test]
fn rel_3_joiners_come_in_blocks() {
    let (old, all): (Vec<u16>, Vec<u16>) = ((0..5).collect(), (0..8).collect());
    let mut w = world(6, 0, 6, |_| {});
    released_before(&mut w, &old);
    assert_eq!(ask(&mut w, 0), Ok(old.clone()));
    // It is told why, and not that it is late.
    let told: Vec<&Event> = w.events.iter().filter(|e| matches!(e, Event::TooLate(_) | Event::Lost { .. })).collect();
    assert_eq!(told, [&Event::Lost { site: 5, why: Loss::BlockTooSmall(3) }]);
    let mut w = world(8, 0, 7, |t| t.colluders = 1);
    released_before(&mut w, &old);
    assert_eq!(ask(&mut w, 0), Ok(all));
    assert_eq!((belongs(&w, &old), belongs(&w, &[5, 6, 7])), (old, vec![5, 6, 7]));
}

/// [REL-2], [REL-4]: without one of its members a block takes no part, and the run says who waits.
#[test]
fn a_block_of_an_earlier_run_waits_for_all_of_its_members() {
    let all: Vec<u16> = (0..5).collect();
    let mut w = world(5, 0, 8, |_| {});
    released_before(&mut w, &all);
    vanishes(&mut w, 3, Kind::AdvertiseKeys, 1);
    let error = ask(&mut w, 0).unwrap_err();
    assert_eq!(error.rule().unwrap(), Rule::Rel4);
    assert!(error.to_string().contains("site-0, site-1, site-2, site-4 wait"), "{error}");
    // Lost in a round that follows, before any total of this run: the old block stays, nothing is asked anew.
    let mut w = world(5, 0, 9, |_| {});
    released_before(&mut w, &all);
    vanishes(&mut w, 3, Kind::MaskedInput, 1);
    assert_eq!(ask(&mut w, 0).unwrap_err().rule().unwrap(), Rule::Rel4);
    w.close();
    assert_eq!(belongs(&w, &all), all);
}

/// [REL-8]: the intermediary certifies survivors also where nobody is missing, over lost frames and crashes too.
#[test]
fn rel_8_the_intermediary_shows_a_certificate_in_every_round() {
    for boundary in 0..14 {
        let mut w = World::new(Kit { role: PartyId::Intermediary, ..Kit::with_blocks(4, 0, |_| {}) }, 15);
        w.answer = Box::new(|site, asked| vec![u64::from(site) + 1; asked.words]);
        w.network.loss = 20;
        (w.crashes, w.hub_crashes) = (vec![Crash { site: 2, boundary, away: Some(1_000) }], vec![boundary]);
        for round in 0..3 {
            assert_eq!(ask(&mut w, round), Ok(vec![0, 1, 2, 3]), "boundary {boundary}");
        }
        let sent = |kind: Kind| w.sent_by_sites.iter().filter(|(_, k, _)| *k == kind).count();
        assert!(sent(Kind::ConsistencyCheck) >= 12 && sent(Kind::Unmask) >= 9 && w.opened.is_empty());
    }
}

/// Wherever a site's process or the aggregator's dies on the way through a burned slot, the run ends as without.
#[test]
fn crashes_on_the_way_through_a_burned_slot_change_nothing() {
    use veilsum_proto::journal::RecordKind;
    let play = |crashes: Vec<Crash>, hub: Vec<usize>| {
        let mut w = world(5, 0, 14, |_| {});
        vanishes(&mut w, 4, Kind::MaskedInput, 1);
        (w.crashes, w.hub_crashes) = (crashes.clone(), hub.clone());
        for round in 0..2 {
            let found = ask(&mut w, round);
            assert_eq!(found, Ok(vec![0, 1, 2, 3]), "{crashes:?} {hub:?} {:?} {:?}", w.events, w.site_errors);
        }
        w
    };
    let calm = play(Vec::new(), Vec::new());
    assert!(calm.journals[1].iter().all(|r| r.kind() != RecordKind::Burned), "the deck of the burned slot is gone");
    for boundary in 0..calm.boundaries[1] {
        for away in [1, 1_500] {
            play(vec![Crash { site: 1, boundary, away: Some(away) }], Vec::new());
        }
    }
    for boundary in 0..calm.hub_boundaries {
        play(Vec::new(), vec![boundary]);
    }
}

/// What every attack on exact totals rests on: totals over S and over S without one site, at whatever questions; a site lost
/// between two rounds, a late joiner under another plan, another draw. Nine sites hold the same data over three plans, and
/// sites are lost and late at many places: the fewest sites by which two totals' cohorts ever differ.
fn smallest_difference(size: u16, seeds: u64) -> usize {
    let mut smallest = usize::MAX;
    for seed in 0..seeds {
        let mut cohorts: Vec<Vec<u16>> = Vec::new();
        let mut fixed: Vec<Option<Fixed>> = vec![None; 9];
        for run in 0..3u64 {
            let terms = |t: &mut Terms| (t.colluders, t.threshold, t.slots) = (1, 6, 2);
            let kit = if size == 1 { Kit::new(9, terms) } else { Kit::with_blocks(9, size, terms) };
            let mut w = World::new(kit, 100 * seed + run);
            w.answer = Box::new(|site, asked| vec![u64::from(site) + 1; asked.words]);
            for (site, of) in (0..9).zip(&fixed) {
                w.has_fixed(site, of.clone());
            }
            let late = run == 0 && seed % 3 == 0;
            let kind = if late { Kind::AdvertiseKeys } else { Kind::MaskedInput };
            vanishes(&mut w, (seed % 6) as u16, kind, 1 + (seed + run) as usize % 4);
            for round in 0..4 {
                match ask(&mut w, round) {
                    Ok(cohort) => cohorts.push(cohort),
                    Err(e) => {
                        assert!(matches!(e, Error::Quorum { .. }), "{e}");
                        break;
                    }
                }
            }
            w.close();
            fixed.clone_from(&w.fixed);
        }
        for (a, b) in cohorts.iter().flat_map(|a| cohorts.iter().map(move |b| (a, b))) {
            let differ = a.iter().filter(|s| !b.contains(s)).count();
            smallest = smallest.min(if differ == 0 { usize::MAX } else { differ });
        }
    }
    smallest
}

/// [REL-4], [REL-5]: an aggregator never gets totals over S and over S without one site of one data set.
#[test]
fn no_two_totals_differ_by_less_than_a_block() {
    assert!(smallest_difference(0, 6) >= 3);
    assert_eq!(smallest_difference(3, 6), 3);
    // Where every site is a block by itself they do: the play is one that finds it.
    assert_eq!(smallest_difference(1, 3), 1);
}
