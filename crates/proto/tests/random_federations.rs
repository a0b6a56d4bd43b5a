//! Whole federations from a seed: loss, delay, reordering, duplication, slow sites, processes of sites that die anywhere and come
//! back at once, late or never, processes of the aggregator that die and are followed by others, sites that vanish. No total is ever wrong, nothing leaves that may not, nothing hangs.
//!
//! By default 60 seeds, in `.ci/long` 400. `VEILSUM_SEEDS=10000 cargo test --release -p veilsum-proto --test protocol random_federations` runs more;
//! `VEILSUM_SEED=4711` replays one, and a failure names its own.

use veilsum_testkit::{
    prelude::*,
    seeds::{self, Dice},
};

/// Words of the vectors are those of the kit; rounds are few, so that many federations fit into a test.
const ROUNDS: u8 = 4;

/// What came of some federations.
#[derive(Default, Debug)]
struct Tally {
    totals: usize,
    without_everybody: usize,
    given_up: usize,
    crashes: usize,
    frames: usize,
}

fn federation(seed: u64, tally: &mut Tally) {
    let mut dice = Dice::new(seed);
    let n = 3 + dice.below(7) as usize;
    let slots = 1 + dice.below(6) as u16;
    let mut w = World::new(Kit::new(n, |t| t.slots = slots), dice.below(u64::MAX));
    let rough = dice.below(3);
    w.network = Network { delay: dice.below(80), loss: rough * dice.below(60), duplicates: rough * dice.below(150) };
    for s in 0..n {
        if dice.one_in(8) {
            // Up to a third of the time in which an answer is awaited.
            w.slow[s] = dice.below(6_000);
        }
    }
    for site in 0..n as u16 {
        while dice.one_in(4) {
            let away = [Some(1), Some(1), Some(1 + dice.below(1_900)), Some(2_000 + dice.below(20_000)), None];
            let away = away[dice.below(5) as usize];
            w.crashes.push(Crash { site, boundary: dice.below(70) as usize, away });
        }
    }
    while dice.one_in(4) {
        w.hub_crashes.push(dice.below(150) as usize);
    }
    let mut vanishing: Vec<(u16, usize)> = Vec::new();
    while vanishing.len() < n / 3 && dice.one_in(4) {
        vanishing.push((dice.below(n as u64) as u16, dice.below(60) as usize));
    }
    w.watch();
    let mut frames = vec![0; n];
    w.hook = Box::new(move |wire| {
        let number = &mut frames[usize::from(wire.site)];
        *number += 1;
        if vanishing.contains(&(wire.site, *number)) { Verdict::Vanish } else { Verdict::Pass }
    });
    for r in 0..ROUNDS {
        match w.ask(&[r], WORDS) {
            Ok((values, cohort, missing)) => {
                assert_eq!(values, sum(&cohort, &[r]), "a wrong total in round {r}");
                let needed = w.kit.terms.threshold_of(cohort.len(), n).expect("a threshold");
                assert!(cohort.len() >= needed.max(3), "a total over {} of {n}", cohort.len());
                tally.totals += 1;
                tally.without_everybody += usize::from(cohort.len() < n);
                assert!(missing.iter().all(|m| !cohort.contains(m)));
            }
            Err(Error::Quorum { .. }) => {
                tally.given_up += 1;
                break;
            }
            Err(e) => panic!("round {r}: {e}; sites: {:?}", w.site_errors),
        }
    }
    assert_eq!(w.broken(), [""; 0]);
    let bad = w.site_errors.iter().find(|(_, e)| matches!(e, Error::Journal(_) | Error::ApiMisuse(_)));
    assert!(bad.is_none(), "{bad:?}");
    let passed = |c: &&Crash| w.boundaries[usize::from(c.site)] > c.boundary;
    tally.crashes += w.crashes.iter().filter(passed).count();
    tally.frames += w.sent_by_sites.len();
}

#[test]
fn from_many_seeds() {
    let mut tally = Tally::default();
    let played =
        seeds::play(60, "-p veilsum-proto --test protocol random_federations", |seed| federation(seed, &mut tally));
    println!("{tally:?}");
    if played >= 200 {
        // The dice must reach what they are thrown for.
        assert!(tally.crashes > 100 && tally.without_everybody > 50 && tally.given_up > 5, "{tally:?}");
    }
}
