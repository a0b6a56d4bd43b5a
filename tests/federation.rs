//! Whole federations in one process, on QUIC: a run comes to the very centres that plain sums give. While sites vanish, one over any
//! sites goes on with those that are left, or it ends where too few are left, and nothing was opened.

use veilsum_cluster::{Algorithm, method::Seeding};
use veilsum_node::{error::Code, plan::PlanSpec};
use veilsum_proto::{
    message::{Kind, kind_of},
    plan::{Sites, Terms},
    roster::PartyId,
};
use veilsum_testkit::{
    in_process::{Lost, apart, fcm, federate_under, made_up, prepared, replay, unit_square},
    memory::Point,
};

const SIZES: [usize; 7] = [31, 44, 58, 37, 92, 63, 49];
const THRESHOLD: usize = 5;
const ROUNDS: u32 = 8;
const K: usize = 3;
const COLUMNS: usize = 2;

fn work() -> PlanSpec {
    fcm(unit_square(), K as u32, 0.0, ROUNDS, Seeding::Uniform { seed: 11 })
}

/// Who is in the total of each question, from 1.
fn cohorts(drops: &[Lost]) -> Vec<Vec<usize>> {
    let mut asked: Vec<usize> = (0..SIZES.len()).collect();
    (1..=ROUNDS + 1)
        .map(|question| {
            let leaves = |site: usize, point: Point| {
                let by_now = |at: &Point, round: u32| round < question || round == question && *at == point;
                drops.iter().any(|(s, at, round)| *s == site && by_now(at, *round))
            };
            let mut alive: Vec<usize> = asked.iter().copied().filter(|s| !leaves(*s, Point::BeforeInput)).collect();
            if alive.len() < asked.len() {
                // Somebody is missing, so the survivors sign, and who left after its input is not there to do it.
                alive.retain(|s| !leaves(*s, Point::AfterInput));
            }
            // Who leaves now without being missed is asked the next question, and missed then.
            asked = alive.clone();
            alive
        })
        .collect()
}

fn name(site: usize) -> String {
    format!("site-{}", site + 1)
}

/// Runs over any sites, with noise, while these vanish: who is in which total, and what everybody is told.
fn over_any(drops: &[Lost]) {
    let mut work = crate::noise::work(19.0);
    work.recipe.algorithm = Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: ROUNDS };
    let expected = cohorts(drops);
    let any = |terms: &mut Terms| (terms.sites, terms.min_cohort) = (Sites::Any, THRESHOLD as u16);
    let (run, sizes) = federate_under(made_up(&SIZES, 0.2, 5), &work, drops, any);
    let result = run.result.as_ref().expect("a result").clone();
    assert_eq!(sizes, expected.iter().map(Vec::len).collect::<Vec<_>>(), "sizes of the totals with {drops:?}");
    let last = expected.last().expect("a last question");
    // The last question is about the indices; the one before it moved the centres.
    let names = |sites: &[usize]| sites.iter().map(|s| name(*s)).collect::<Vec<_>>();
    let moved = &expected[ROUNDS as usize - 1];
    assert_eq!((&result.cohort, &result.indices_cohort), (&names(moved), &(moved != last).then(|| names(last))));
    let missing: Vec<String> = (0..SIZES.len()).filter(|s| !last.contains(s)).map(name).collect();
    assert_eq!(result.missing, missing, "{drops:?}");
    // What two totals differ by is what those that left added.
    let warned = result.warnings.iter().any(|warning| warning.contains("computed, up to noise"));
    assert_eq!(warned, expected[0].len() > last.len(), "{drops:?}: {:?}", result.warnings);
    // The rows are counted before anybody leaves, and the count is handed over only where everybody is there to the end.
    let counted = run.counted.as_ref().expect("a count");
    assert_eq!(counted.cohort, (0..SIZES.len()).map(name).collect::<Vec<_>>(), "{drops:?}");
    assert_eq!(counted.handed_over, last.len() == SIZES.len(), "{drops:?}");
    for (site, report) in run.sites.iter().enumerate() {
        let left = drops.iter().any(|(s, ..)| *s == site);
        match report {
            Ok(report) => {
                // Enough shares open the last total: the end may come to a site that was about to leave before its own.
                let late =
                    drops.iter().any(|(s, at, round)| (*s, *at, *round) == (site, Point::BeforeUnmask, ROUNDS + 1));
                assert!((!left || late) && report.model == result.model, "{drops:?}: {}", name(site));
                // Each number names the cohort that it is over, and so does a site's own copy.
                let own = report.result.as_ref().expect("its own result");
                assert_eq!((&own.cohort, &own.indices_cohort), (&result.cohort, &result.indices_cohort));
            }
            Err(failure) => assert!(left && failure.code == Code::Denied, "{}: {failure}", name(site)),
        }
    }
}

/// The same as plain sums over the same sites give.
#[test]
fn nobody_is_missing_and_a_round_costs_two_messages() {
    let (work, sites) = (work(), made_up(&SIZES, 0.2, 5));
    let plain = replay(&work, &prepared(&work, &sites), |_| (0..SIZES.len()).collect());
    let (run, sizes) = federate_under(sites, &work, &[], |_| {});
    let result = run.result.as_ref().expect("a result");
    assert_eq!((sizes, result.rounds), (vec![SIZES.len(); ROUNDS as usize + 1], ROUNDS));
    let off = apart(&result.centres_box, &plain.centres);
    assert!(off <= 1e-9, "off by {off:e}");
    assert_eq!(result.clusters.sizes, plain.clusters.sizes);
    for (a, b) in result.clusters.mass.iter().flatten().zip(plain.clusters.mass.iter().flatten()) {
        assert!((a / b - 1.0).abs() <= 1e-9, "mass {a} and {b}");
    }
    assert_eq!(result.n_total, Some(SIZES.iter().sum::<usize>() as u64));
    let questions = u64::from(ROUNDS) + 1;
    for site in 0..SIZES.len() {
        let sent = &result.traffic.0[&name(site)];
        let count = |phase: &str| sent.get(phase).copied().unwrap_or_default();
        assert_eq!(count("masked_input").messages, questions, "{}", name(site));
        // Enough shares open a total; the last ones of the last question may come after the end.
        assert!((questions - 1..=questions).contains(&count("unmask").messages), "{sent:?}");
        assert_eq!(count("deck").messages, 4, "keys, acceptance, shares, acknowledgement");
        assert_eq!(count("control").messages, 1, "its signature on the result");
        let phases: Vec<&str> = sent.keys().map(|phase| &**phase).collect();
        assert_eq!(phases, ["control", "deck", "masked_input", "unmask"], "{}", name(site));

        let bytes = count("masked_input").bytes + count("unmask").bytes;
        let words = u64::from(ROUNDS) * (K * COLUMNS + K) as u64 + (2 * K + 1) as u64;
        let allowed = 8 * words + questions * (300 + 32 * SIZES.len() as u64);
        assert!(bytes <= allowed, "{}: {bytes} bytes for {questions} questions, {allowed} are allowed", name(site));
        // What the site itself counted is what the two aggregators saw of it.
        let own = &run.sites[site].as_ref().unwrap().traffic.0[&name(site)];
        let counted = &run.counted.as_ref().unwrap().traffic.0[&name(site)];
        assert_eq!(own["masked_input"].bytes, count("masked_input").bytes + counted["masked_input"].bytes);
        assert_eq!(counted["masked_input"].messages, 1, "one question of the intermediary");
    }
}

/// Also [APP-3]: the count is handed over where all counted sites are there to the end, and only then.
#[test]
fn app_3_one_site_vanishes() {
    for at in [Point::BeforeInput, Point::AfterInput, Point::BeforeUnmask] {
        for round in [1, 4, ROUNDS, ROUNDS + 1] {
            let site = round as usize % SIZES.len();
            over_any(&[(site, at, round)]);
        }
    }
}

#[test]
fn as_many_vanish_as_may() {
    use Point::{AfterInput, BeforeInput, BeforeUnmask};
    assert_eq!(SIZES.len() - THRESHOLD, 2);
    // In one round, at every pair of steps.
    for (a, b) in [
        (BeforeInput, BeforeInput),
        (BeforeInput, AfterInput),
        (BeforeInput, BeforeUnmask),
        (AfterInput, AfterInput),
        (AfterInput, BeforeUnmask),
        (BeforeUnmask, BeforeUnmask),
    ] {
        over_any(&[(1, a, 3), (6, b, 3)]);
    }
    // In rounds one after the other, and far apart.
    over_any(&[(0, BeforeInput, 2), (3, BeforeInput, 3)]);
    over_any(&[(5, AfterInput, 1), (2, BeforeUnmask, 7)]);
    // The first is missed in the round in which the second leaves, which is not there to sign then.
    over_any(&[(0, AfterInput, 2), (4, AfterInput, 3)]);
    over_any(&[(0, BeforeUnmask, 2), (4, BeforeUnmask, 3)]);
}

/// Three of seven gone: no total over four is opened, whatever the three had sent.
#[test]
fn too_few_are_left() {
    for at in [Point::BeforeInput, Point::AfterInput, Point::BeforeUnmask] {
        let round = 3;
        let lost = [0, 2, 4].map(|site| (site, at, round));
        let (run, sizes) = federate_under(made_up(&SIZES, 0.2, 5), &work(), &lost, |_| {});
        let result = run.result.expect("what is out");
        let early = result.ended_early.clone().expect("it ended early");
        assert_eq!((early.round, early.failure().code), (round - 1, Code::Early), "{at:?}: {early:?}");
        assert!(early.reason.contains("nothing was revealed"), "{early:?}");
        assert_eq!(sizes, vec![SIZES.len(); round as usize - 1], "{at:?}: the totals before");

        // Who is left hears why; who left does not.
        for (site, outcome) in run.sites.iter().enumerate() {
            match outcome {
                Err(failure) if [0, 2, 4].contains(&site) => assert_eq!(failure.code, Code::Denied, "{failure}"),
                Ok(report) => assert_eq!(report.model, result.model, "{}", name(site)),
                Err(f) => panic!("{}: {f}", name(site)),
            }
        }
        assert!(run.counted.expect("a count").handed_over, "over the sites of the last total");

        // What the coordinator holds of the question that failed: fewer shares than open a mask, no seed.
        // Shares have a context of their own, the list of their survivors' inputs.
        let (mut questions, mut lists) = (Vec::<(Vec<u8>, usize)>::new(), Vec::<(Vec<u8>, usize)>::new());
        for (from, frame) in run.coordinator_view.lock().unwrap().iter() {
            let kind = kind_of(frame).expect("a frame");
            let counts = match kind {
                Kind::MaskedInput => &mut questions,
                Kind::Unmask => &mut lists,
                _ => {
                    assert!(!matches!(from, PartyId::Site(_)) || kind != Kind::ConsistencyCheck, "{at:?}");
                    continue;
                }
            };
            match counts.iter_mut().find(|(context, _)| context[..] == frame[8..40]) {
                Some((_, count)) => *count += 1,
                None => counts.push((frame[8..40].to_vec(), 1)),
            }
        }
        assert_eq!(questions.len(), round as usize, "{at:?}: a context for every question");
        assert_eq!(questions[2].1, if at == Point::BeforeInput { 4 } else { 7 }, "{at:?}");
        let shares = lists.get(2).map_or(0, |(_, count)| *count);
        assert!(shares < THRESHOLD && lists.len() <= 3, "{at:?}: {shares}");
        assert_eq!(shares, if at == Point::BeforeInput { 0 } else { 4 }, "{at:?}");
    }
}
