//! A site's process dies at every boundary of its life, before and after each entry it makes durable and each frame it
//! sends, and comes back from exactly what was durable: at once the run ends with the totals of a run without a crash; too
//! late or never, it goes on without that site. Nothing ever leaves a site twice in two forms (see `crates/testkit/src/secrets.rs`).
//!
//! By default two sites of every federation crash, one at each of its boundaries and one at every fifth.
//! `VEILSUM_CRASHES=all cargo test -p veilsum-proto --test protocol crashed_sites` takes every site and every boundary. Several crashes in a
//! run are drawn in `random_federations.rs`.

use veilsum_testkit::{crashes::*, prelude::*};

const AT_ONCE: Option<u64> = Some(1);
/// Longer than the aggregator waits for a broken connection.
const TOO_LATE: Option<u64> = Some(10_000);

/// Crashes at the boundaries that each site passes where nobody crashes.
fn boundaries(calm: &Lived, away: Option<u64>, every: usize) -> Vec<Crash> {
    let of = |s: usize, step: usize| {
        (0..calm.boundaries[s]).step_by(step).map(move |boundary| Crash { site: s as u16, boundary, away })
    };
    if all() {
        return (0..calm.boundaries.len()).flat_map(|s| of(s, 1)).collect();
    }
    of(1, every).chain(of(3, 5 * every)).collect()
}

fn calm(ordeal: &Ordeal) -> Lived {
    let calm = ordeal.live(&[]);
    assert_eq!((calm.totals.len(), &calm.failed), (ordeal.rounds, &None), "{}", ordeal.name);
    assert!(calm.errors.is_empty(), "{calm:?}");
    calm
}

#[test]
fn back_at_once_the_run_ends_as_if_nothing_had_been() {
    for ordeal in &ORDEALS {
        let calm = calm(ordeal);
        for crash in boundaries(&calm, AT_ONCE, 1) {
            let lived = ordeal.live(&[crash]);
            lived.fits(&calm);
            // A frame that was under way to the process before is all that a site may stumble over.
            assert!(lived.errors.iter().all(|(_, e)| e.rule().is_some_and(|r| r == Rule::Frm7)), "{lived:?}");
        }
    }
}

#[test]
fn too_late_or_never_back_the_run_goes_on_without_it() {
    for ordeal in &ORDEALS {
        let calm = calm(ordeal);
        for away in [TOO_LATE, None] {
            for crash in boundaries(&calm, away, 5) {
                let lived = ordeal.live(&[crash]);
                if ordeal.sites - ordeal.vanish.len() > 2 * ordeal.sites / 3 + 1 {
                    assert_eq!((lived.totals.len(), &lived.failed), (ordeal.rounds, &None), "{lived:?}");
                } else {
                    lived.ended_well();
                }
                // It takes nobody with it.
                let others = lived.totals.iter().flat_map(|(_, _, missing)| missing).filter(|s| **s != crash.site);
                assert!(others.clone().all(|s| ordeal.vanish.iter().any(|(_, v, _)| v == s)), "{lived:?}");
            }
        }
    }
}

/// A journal that was set back to an older copy, as from a backup: what of it is noticed, and what is not. Every frame with
/// a masked vector is lost once, so that the site is asked again.
#[test]
fn a_journal_that_was_set_back() {
    let ordeal = &ORDEALS[0];
    let calm = calm(ordeal);
    let (mut refused, mut unnoticed) = (0, 0);
    for forgets in 1..6 {
        for crash in boundaries(&calm, AT_ONCE, 2) {
            let (lived, broken) = ordeal.play(&[crash], &[], forgets);
            lived.ended_well();
            // The rounds are a chain: a copy from before the last round does not fit what the coordinator asks next.
            let noticed = |e: &Error| e.rule().is_some_and(|r| [Rule::Rnd6, Rule::Kex1, Rule::Frm7].contains(&r));
            refused += usize::from(lived.errors.iter().any(|(s, e)| *s == crash.site && noticed(e)));
            // A copy that knows the round before fits, and nothing in it tells that a vector had left since.
            unnoticed += usize::from(!broken.is_empty());
            assert!(broken.is_empty() || forgets <= 2, "{forgets} entries lost, and two vectors left: {lived:?}");
        }
    }
    assert!(refused > 0 && unnoticed > 0, "{refused} set back and noticed, {unnoticed} not");
}
