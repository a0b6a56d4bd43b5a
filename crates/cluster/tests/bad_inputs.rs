//! Bad and odd rows through whole runs of every algorithm: the run ends with an outcome that holds no NaN, or with an error
//! that says what to do. On the way no question is put twice, a site that follows the plan answers every one, none is
//! larger than the plan said, and the number of questions keeps to the plan's bound.
//!
//! Every run is driven with plain sums, and with sums of parts that each site has rounded to a multiple of 2^-40, as a
//! masked sum would be, without a number of rows.

use std::collections::HashSet;

use proptest::prelude::*;
use serde_json::Value;
use veilsum_cluster::method::{
    Candidates, Choice, DaviesBouldin, LocalRange, Pick, Scale, Seeding, Stop, Validity, inside,
};
use veilsum_cluster::privacy::Noise;
use veilsum_cluster::query::{FeatureParams, LocalSteps};
use veilsum_cluster::random::Stream;
use veilsum_cluster::{
    Algorithm, Batch, Clusters, Domain, Error, Outcome, Prepared, Recipe, Rows, Scaling, Step, Totals, answer, metrics,
    pooled,
};
use veilsum_testkit::data::{max_difference, prepare_all};

/// One unit of the last place of a masked sum.
const UNIT: f64 = 1.0 / (1u64 << 40) as f64;
const LIMIT: f64 = 4.0;

/// How sums come back.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Sums {
    Plain,
    FixedPoint,
}

fn totals(batch: &Batch, sites: &[Prepared], sums: Sums) -> Totals {
    if sums == Sums::Plain {
        return pooled::totals(batch, sites).expect("every site answers");
    }
    let round = |value: f64| (value / UNIT).round() * UNIT;
    let parts = sites.iter().map(|site| answer(batch, site).expect("every site answers").values);
    let add = |all: Vec<f64>, part: Vec<f64>| all.iter().zip(part).map(|(all, part)| all + round(part)).collect();
    let empty = vec![0.0; batch.layout(sites[0].domain()).expect("layout").iter().map(|block| block.len).sum()];
    Totals { values: parts.fold(empty, add), rows: None }
}

/// Drives a run to its end, and looks at every question on the way.
fn drive(recipe: &Recipe, domain: &Domain, sites: &[Prepared], sums: Sums) -> Result<Outcome, Error> {
    let cohort = sites.len() as u32;
    let mut run = recipe.run(domain, cohort)?;
    let most_words = recipe.most_words(domain.columns());
    let words = |batch: &Batch| batch.layout(domain).expect("layout").iter().map(|block| block.len as u64).sum::<u64>();
    for batch in recipe.sample(domain)? {
        assert!(words(&batch) <= most_words, "a sample of {} words, said were {most_words}", words(&batch));
    }
    let (mut asked, mut last, mut questions) = (HashSet::new(), None, 0);
    let mut step = run.next(None)?;
    loop {
        match step {
            Step::Done(outcome) => {
                assert_eq!(outcome.questions, questions);
                return Ok(*outcome);
            }
            Step::Ask(batch) => {
                questions += 1;
                assert!(questions <= recipe.max_questions(), "more than {} questions", recipe.max_questions());
                let name = batch.queries[0].kind();
                let text = serde_json::to_string(&batch).expect("JSON");
                assert!(asked.insert(text.clone()), "question {questions} ({name}) was put before: {text}");
                batch.check(domain).unwrap_or_else(|why| panic!("{name}: {why}"));
                let stage = run.stage();
                assert!(last <= stage, "from {last:?} back to {stage:?}");
                last = stage;
                assert!(words(&batch) <= most_words, "{name}: {} words, said were {most_words}", words(&batch));
                step = run.next(Some(&totals(&batch, sites, sums)))?;
            }
        }
    }
}

/// Nothing that is not a number, and centres where rows can be.
fn sensible(outcome: &Outcome, domain: &Domain) {
    let finite = |values: &[f64]| values.iter().all(|value| value.is_finite());
    assert!(finite(outcome.centres.as_slice()));
    assert!(outcome.clusters.mass.iter().flatten().all(|mass| mass.is_finite()));
    assert!(outcome.objective >= 0.0 && outcome.objective_per_row >= 0.0);
    assert!(outcome.indices.fuzzy_davies_bouldin.is_none_or(f64::is_finite));
    assert!(outcome.curve.iter().all(|point| point.indices.fuzzy_davies_bouldin.is_none_or(f64::is_finite)));
    assert_eq!(outcome.history.len(), outcome.rounds as usize);
    let clusters = &outcome.clusters;
    let k = outcome.centres.k();
    assert_eq!([clusters.sizes.len(), clusters.mass.len(), clusters.weight.len()], [k; 3]);
    let whole = [&clusters.mass, &clusters.weight].iter().all(|list| list.iter().all(Option::is_some));
    let deviations = clusters.deviations.iter().flatten().flatten().all(|of| of.is_finite() && *of >= 0.0);
    assert!(deviations && clusters.deviations.len() == k, "{clusters:?}");
    let whole = whole && clusters.deviations.iter().all(Option::is_some);
    let whole = whole && clusters.sizes.iter().all(Option::is_some);
    assert_eq!(whole, clusters.not_shown.is_empty(), "{clusters:?}");
    inside(&outcome.centres, domain).expect("centres in the box");
    walk("", &serde_json::to_value(outcome).expect("JSON"));
}

/// A number that is none is written as null; these fields may be null because they may be missing (or `+inf`).
fn walk(name: &str, value: &Value) {
    match value {
        Value::Null => {
            let may_be =
                ["fuzzy_davies_bouldin", "transform", "sizes", "mass", "weight", "factor", "deviations", "worst"];
            assert!(may_be.contains(&name), "{name} is not a number");
        }
        Value::Array(list) => list.iter().for_each(|value| walk(name, value)),
        Value::Object(fields) => fields.iter().for_each(|(name, value)| walk(name, value)),
        _ => {}
    }
}

/// Whether there is an outcome. What ends a run without one is only what the text explains.
fn ends_well(found: Result<Outcome, Error>, domain: &Domain) -> bool {
    match &found {
        Ok(outcome) => sensible(outcome, domain),
        Err(error) => {
            let known = matches!(error, Error::TooFewRows(_) | Error::TooFewAnchors { .. } | Error::Parameter(_));
            assert!(known && !error.to_string().contains("NaN"), "{error}");
        }
    }
    found.is_ok()
}

fn algorithms(m: f64) -> Vec<Algorithm> {
    let (epsilon, max_rounds, local) = (1e-4, 12, LocalSteps { most: 20, epsilon: 1e-4 });
    let features = FeatureParams { min: 2, max: 10, tau: 1.0, m };
    vec![
        Algorithm::Fcm { m, epsilon, max_rounds },
        Algorithm::Fcm { m, epsilon: 0.0, max_rounds },
        Algorithm::FfcmAvg1 { m, epsilon, max_rounds, local, powers: false },
        Algorithm::FfcmAvg1 { m, epsilon, max_rounds, local: LocalSteps::ONE, powers: true },
        Algorithm::FfcmAvg2 { m, epsilon, max_rounds, local },
        Algorithm::Fkm { epsilon, max_rounds, min_rows: 2, local_steps: 2, finish: 5 },
        Algorithm::Fkm { epsilon: 0.0, max_rounds, min_rows: 1, local_steps: 1, finish: 5 },
        Algorithm::Kmeans { epsilon: 0.0, max_rounds },
        Algorithm::Ffcf { m, features, anchors: 0, merge: true },
        Algorithm::Ffcf { m, features, anchors: 6, merge: false },
    ]
}

/// K = 1, 2, more than any set of these has distinct rows in places, and a sweep with restarts.
fn ranges() -> [(Clusters, u32); 4] {
    [(Clusters::exactly(1), 1), (Clusters::exactly(2), 1), (Clusters::exactly(9), 1), (Clusters { min: 2, max: 6 }, 2)]
}

fn seedings() -> [Seeding; 2] {
    let from_totals = Candidates { tries: 3, ..Candidates::usual(3) };
    [Seeding::Uniform { seed: 3 }, Seeding::Candidates(from_totals)]
}

/// Rows by a function of site and row.
fn sites(counts: &[usize], d: usize, mut value: impl FnMut(usize, usize, usize) -> f64) -> Vec<Rows> {
    let mut site = |at: usize| {
        let values = (0..counts[at]).flat_map(|row| (0..d).map(move |column| (row, column)));
        Rows::new(values.map(|(row, column)| value(at, row, column)).collect(), d).expect("rows")
    };
    (0..counts.len()).map(&mut site).collect()
}

fn noise(mut stream: Stream) -> impl FnMut() -> f64 {
    move || stream.normal_pair()[0].clamp(-2.9, 2.9)
}

/// The sets of damaged numbers.
fn data_sets() -> Vec<Set> {
    let mut x = noise(Stream::new(5, b"veilsum bad inputs rows1"));
    let mut set = |name, counts: &[usize], d: usize, value: &dyn Fn(usize, usize, usize, f64) -> f64| {
        (name, d, sites(counts, d, |site, row, column| value(site, row, column, x())))
    };
    let three = [12, 9, 15];
    vec![
        set("all rows identical", &three, 2, &|_, _, _, _| 0.7),
        set("all rows identical, on a corner", &three, 2, &|_, _, _, _| -LIMIT),
        set("two distinct rows", &three, 2, &|_, row, _, _| if row % 2 == 0 { -1.3 } else { 2.1 }),
        set("two distinct rows, one at one site", &three, 2, &|site, _, _, _| if site == 0 { -1.3 } else { 2.1 }),
        set("a constant column", &three, 3, &|_, _, column, x| if column == 1 { 0.1 } else { x }),
        set("a column constant at one site", &three, 2, &|site, _, c, x| if c == 1 && site == 2 { 1.1 } else { x }),
        set("a site without rows", &[12, 0, 15], 2, &|_, _, _, x| x),
        set("a site with one row", &[12, 1, 15], 2, &|_, _, _, x| x),
        set("all rows at one site", &[0, 31, 0], 2, &|_, _, _, x| x),
        set("an outlier on the edge", &three, 2, &|site, row, _, x| if site + row == 0 { LIMIT } else { 0.01 * x }),
        set("rows on the corners", &three, 2, &|_, row, c, _| if row >> c & 1 == 0 { -LIMIT } else { LIMIT }),
        set("one column", &three, 1, &|_, _, _, x| x),
        set("forty columns", &[5, 3, 4], 40, &|_, _, _, x| x),
        set("one row", &[0, 1, 0], 2, &|_, _, _, x| x),
        set("heavy ties", &three, 2, &|_, _, _, x| x.round()),
    ]
}

fn domain(d: usize, scaling: Scaling) -> Domain {
    Domain::new(vec![-LIMIT; d], vec![LIMIT; d], scaling).expect("box")
}

/// Every combination for one fuzzifier. Preparations, sums and what is asked at the end are drawn, so that each meets each
/// of the others somewhere.
fn everything(m: f64, seed: u64) {
    let (mut number, mut done, mut failures) = (0, 0, Vec::new());
    let mut turns = Stream::new(seed, b"veilsum bad inputs turns");
    for ((name, d, rows), algorithm, seeding, (clusters, restarts)) in combinations(m) {
        number += 1;
        let preparation = if turns.below(2) == 0 { Scale::None } else { Scale::Standard };
        let sums = if turns.below(2) == 0 { Sums::Plain } else { Sums::FixedPoint };
        let validity = if turns.below(3) == 0 { Validity::basic() } else { Validity::everything() };
        let scaling = if turns.below(2) == 0 { Scaling::Box } else { Scaling::None };
        let plain = Recipe::plain(algorithm, clusters.max, seeding);
        let recipe = Recipe { clusters, restarts, preparation, validity, ..plain };
        let domain = domain(d, scaling);
        let run = || ends_well(drive(&recipe, &domain, &prepare_all(&rows, &domain), sums), &domain);
        match std::panic::catch_unwind(run) {
            Ok(outcome) => done += u32::from(outcome),
            Err(why) => {
                let why = why.downcast_ref::<String>().cloned().unwrap_or_default();
                failures.push(format!("{name}, {sums:?}, {scaling:?}, m = {m}: {recipe:?}\n  {why}"));
            }
        }
    }
    assert!(failures.is_empty(), "{} of {number}: {:#?}", failures.len(), &failures[..failures.len().min(9)]);
    println!("m = {m}, seed {seed}: {done} of {number} runs with an outcome");
    assert!(2 * done > number);
}

type Set = (&'static str, usize, Vec<Rows>);

fn combinations(m: f64) -> Vec<(Set, Algorithm, Seeding, (Clusters, u32))> {
    let mut all = Vec::new();
    for set in data_sets() {
        for algorithm in algorithms(m) {
            // Anchors come from totals.
            let from = usize::from(matches!(algorithm, Algorithm::Ffcf { .. }));
            for seeding in &seedings()[from..] {
                all.extend(ranges().map(|range| (set.clone(), algorithm.clone(), seeding.clone(), range)));
            }
        }
    }
    all
}

#[test]
fn odd_rows_with_m_2() {
    (0..2).for_each(|seed| everything(2.0, seed));
}

#[test]
fn odd_rows_with_a_fuzzifier_near_1() {
    (2..4).for_each(|seed| everything(1.05, seed));
}

#[test]
fn odd_rows_with_a_large_fuzzifier() {
    (4..6).for_each(|seed| everything(20.0, seed));
}

/// Rows at random, dealt out at random.
fn random_sites(seed: u64, n: usize, cohort: usize, d: usize) -> Vec<Rows> {
    let mut stream = Stream::new(seed, b"veilsum bad inputs split");
    let mut values = vec![Vec::new(); cohort];
    for row in 0..n {
        let site = stream.below(cohort as u64) as usize;
        let near = (row % 3) as f64 - 1.0;
        values[site].extend((0..d).map(|_| (2.0 * near + 0.4 * stream.normal_pair()[0]).clamp(-LIMIT, LIMIT)));
    }
    values.into_iter().map(|values| Rows::new(values, d).expect("rows")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn random_splits_give_what_pooled_rows_give(
        seed: u64, n in 12usize..60, cohort in 1usize..7, d in 1usize..4, which in 0usize..2, standard: bool, seeded: bool,
    ) {
        let sites = random_sites(seed, n, cohort, d);
        let domain = domain(d, Scaling::Box);
        let algorithm = [Algorithm::Fcm { m: 2.0, epsilon: 1e-6, max_rounds: 25 }, Algorithm::Kmeans { epsilon: 0.0, max_rounds: 25 }];
        let preparation = if standard { Scale::Standard } else { Scale::None };
        let seeding = seedings()[usize::from(seeded)].clone();
        let recipe = Recipe { preparation, validity: Validity::everything(), ..Recipe::plain(algorithm[which].clone(), 3, seeding) };
        let pooled = [Rows::pooled(&sites).unwrap()];
        let one = drive(&recipe, &domain, &prepare_all(&pooled, &domain), Sums::Plain);
        for sums in [Sums::Plain, Sums::FixedPoint] {
            match (&one, drive(&recipe, &domain, &prepare_all(&sites, &domain), sums)) {
                (Ok(one), Ok(many)) => {
                    let off = max_difference(&one.centres, &many.centres);
                    prop_assert!(off < 1e-7, "{sums:?}: off by {off:e}");
                    prop_assert!((one.objective - many.objective).abs() <= 1e-7 * one.objective);
                }
                (one, many) => prop_assert_eq!(one.as_ref().err(), many.as_ref().err()),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    /// Totals that no rows have, at every stage of a run: none makes it panic, and one that is refused has changed nothing. Where a lie is
    /// refused, the truth takes the run on.
    #[test]
    fn no_totals_whatever_make_a_run_panic(
        which in 0usize..11,
        noisy: bool,
        standard: bool,
        finite: bool,
        rows in prop::option::of(0u64..100),
        entries in prop::collection::vec(prop_oneof![
            4 => 0.0f64..20.0,
            1 => -20.0f64..0.0,
            1 => prop::sample::select(vec![0.0, 1e-300, 5e-324, 1e308, -1e308, f64::NAN, f64::INFINITY, f64::MAX]),
        ], 64),
    ) {
        let domain = domain(2, Scaling::Box);
        let sites = prepare_all(&random_sites(9, 36, 3, 2), &domain);
        let algorithm = algorithms(2.0).into_iter().chain([Algorithm::Describe { bins: 7 }]).nth(which).unwrap();
        let (describes, exact) = (algorithm.traits().describes.is_some(), algorithm.traits().tolerance_under_noise);
        let mut recipe = Recipe::plain(algorithm, 3, seedings()[1].clone());
        match describes {
            true => (recipe.clusters, recipe.seeding) = (Clusters::exactly(1), seedings()[0].clone()),
            false => recipe.validity = Validity::everything(),
        }
        if standard && !describes {
            recipe.preparation = Scale::Standard;
        }
        recipe.noise = (noisy && exact == Some(0.0)).then(|| Noise::usual(1.0, 36).from_anywhere());
        let mut run = recipe.run(&domain, 3).unwrap();
        let mut step = run.next(None).unwrap();
        for turn in 0.. {
            let batch = match step {
                Step::Ask(batch) => batch,
                Step::Done(outcome) => {
                    let index = outcome.indices.fuzzy_davies_bouldin;
                    prop_assert!(!outcome.objective.is_nan() && index.is_none_or(f64::is_finite), "{outcome:?}");
                    break;
                }
            };
            let truth = pooled::totals(&batch, &sites).unwrap();
            let tame = |x: &f64| if finite && !x.is_finite() { 1.0 } else { *x };
            let words = truth.values.len() - usize::from(turn % 7 == 6);
            let values: Vec<f64> = entries.iter().cycle().skip(7 * turn).take(words).map(tame).collect();
            // Under noise no total is an error but one of another length, or of numbers beyond all rows.
            let usual = words == truth.values.len() && values.iter().all(|x| x.abs() <= 20.0);
            let before = run.fits();
            let mut taken = run.next(Some(&Totals { values, rows }));
            prop_assert!(taken.is_ok() || recipe.noise.is_none() || !usual, "{taken:?}");
            if taken.is_err() {
                prop_assert!(run.next(None) == Ok(Step::Ask(batch)) && run.fits() == before, "{taken:?}");
                taken = run.next(Some(&truth));
            }
            for fit in run.fits() {
                prop_assert!(fit.centres.as_slice().iter().chain(&fit.weights).all(|x| x.is_finite()), "{fit:?}");
            }
            // A lie that was taken may contradict the truth that follows.
            let Ok(next) = taken else { break };
            step = next;
        }
    }
}

#[test]
fn members_of_a_sweep_end_where_single_runs_do() {
    let domain = domain(2, Scaling::Box);
    let sites = prepare_all(&random_sites(9, 90, 3, 2), &domain);
    for algorithm in algorithms(2.0).into_iter().filter(|algorithm| !matches!(algorithm, Algorithm::Ffcf { .. })) {
        // Candidates depend on the largest K, so that only uniform starts are those of a run of one K.
        let run = |clusters| {
            let plain = Recipe::plain(algorithm.clone(), 1, Seeding::Uniform { seed: 3 });
            let recipe = Recipe { clusters, restarts: 2, validity: Validity::everything(), ..plain };
            drive(&recipe, &domain, &sites, Sums::Plain).unwrap()
        };
        let sweep = run(Clusters { min: 2, max: 5 });
        assert_eq!(sweep.curve.len(), 4);
        let mut longest = 0;
        for point in &sweep.curve {
            let single = run(Clusters::exactly(point.k));
            longest = longest.max(single.questions);
            let own = (&single.indices, Some(single.objective));
            assert_eq!((&point.indices, point.objective), own, "{}", algorithm.name());
            assert_eq!((point.rounds, point.converged), (single.rounds, single.converged));
        }
        assert_eq!(sweep.questions, longest, "the sweep asks no more than its longest member alone");
    }
}

/// With the sentence that says what to change; a plan beside each that means something says nothing.
#[test]
fn plans_that_mean_nothing_are_refused() {
    let (epsilon, max_rounds) = (0.0, 9);
    let fcm = Recipe::plain(Algorithm::Fcm { m: 2.0, epsilon, max_rounds }, 2, Seeding::Uniform { seed: 0 });
    let of = |algorithm: Algorithm| Recipe { algorithm, ..fcm.clone() };
    let fuzzy =
        |m: f64, k: u32| Recipe { clusters: Clusters::exactly(k), ..of(Algorithm::Fcm { m, epsilon, max_rounds }) };
    let by = |p: f64, q: f64, validity: Validity| Recipe {
        validity: Validity { davies_bouldin: DaviesBouldin { p, q }, ..validity },
        ..fcm.clone()
    };
    let sum = |recipe: Recipe| Recipe { stop: Stop::Sum, ..recipe };
    let noisy = |recipe: Recipe| Recipe { noise: Some(Noise::usual(1.0, 100).from_anywhere()), ..recipe };
    let describe = of(Algorithm::Describe { bins: 9 });
    let described = Recipe { clusters: Clusters::exactly(1), ..describe };
    let (basic, all) = (Validity::basic(), Validity::everything());
    let by_gap = |algorithm: Algorithm| Recipe {
        clusters: Clusters { min: 1, max: 8 },
        choice: Choice { by: Pick::Gap, elbow: false },
        ..of(algorithm)
    };
    let kmeans = |max_rounds| Algorithm::Kmeans { epsilon, max_rounds };
    let avg2 = Algorithm::FfcmAvg2 { m: 2.0, epsilon, max_rounds, local: LocalSteps::ONE };
    let elbow = Choice { by: Pick::Gap, elbow: true };
    for (recipe, says) in [
        (sum(fcm.clone()), ""),
        (by(1.5, 1.0, basic), ""),
        (by(1.5, 2.0, all), ""),
        (noisy(by(1.5, 1.0, basic)), ""),
        (described.clone(), ""),
        (sum(described.clone()), "no stop rule about how far"),
        (sum(noisy(fcm.clone())), "the number of rounds is fixed"),
        (by(0.9, 1.0, basic), "a finite p of 1 or above"),
        (by(2.0, 3.0, all), "no site is asked for sums of such powers"),
        (by(2.0, 2.0, basic), "needs sums of coordinates: indices=all"),
        (noisy(by(2.0, 2.0, Validity { full: true, ..basic })), "under noise q of Davies-Bouldin is 1"),
        (Recipe { validity: by(1.0, 1.0, basic).validity, ..described }, "a description has no clusters"),
        // Powers of memberships that leave nothing to add up.
        (fuzzy(2.0, 1000), ""),
        (fuzzy(20.0, 1), ""),
        (fuzzy(20.0, 2), ""),
        (fuzzy(20.0, 9), "smaller fuzzifier m or fewer K"),
        (fuzzy(8.0, 100), "smaller fuzzifier m or fewer K"),
        (by_gap(kmeans(9)), ""),
        (Recipe { validity: all, ..by_gap(avg2) }, "it compares their inertia"),
        (by_gap(kmeans(100_000)), "a smaller range of K, fewer restarts or rounds"),
        (Recipe { choice: elbow, ..by_gap(kmeans(9)) }, "a rule of its own, and no elbow"),
        (Recipe { clusters: Clusters { min: 1, max: 200 }, restarts: 10, ..by_gap(kmeans(99)) }, "fewer restarts"),
        (by_gap(Algorithm::Fcm { m: 2.0, epsilon, max_rounds }), "not among those that are asked"),
    ] {
        let found = recipe.check(&domain(2, Scaling::Box)).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(found.contains(says) && found.is_empty() == says.is_empty(), "{says}: {found}");
    }
}

#[test]
fn first_centres_outside_the_box_are_refused() {
    let domain = domain(1, Scaling::None);
    let values = (0..100).map(|i| if i == 99 { LIMIT } else { f64::from(i) / 100.0 }).collect();
    let sites = prepare_all(&[Rows::new(values, 1).unwrap()], &domain);
    let given = |far: f64| {
        let centres = veilsum_cluster::Centres::from_rows(&[vec![0.2], vec![far]]).unwrap();
        let preparation = Scale::Standard;
        let fcm = Algorithm::Fcm { m: 2.0, epsilon: 1e-6, max_rounds: 40 };
        Recipe { preparation, ..Recipe::plain(fcm, 2, Seeding::Given { centres }) }
    };
    let error = given(4.5).check(&domain).unwrap_err().to_string();
    assert!(error.contains("outside the public box in column 0"), "{error}");
    let outcome = drive(&given(3.5), &domain, &sites, Sums::Plain).unwrap();
    sensible(&outcome, &domain);
}

/// After standardisation all columns have the same variance: which is split first must not depend on the last bit of a sum,
/// or on how rows are spread over sites. Nor may it matter on which side of its own mean a row falls.
#[test]
fn ties_of_seeding_are_not_broken_by_rounding() {
    let domain = domain(2, Scaling::Box);
    let on_a_grid = |sites: Vec<Rows>| -> Vec<Rows> {
        sites.iter().map(|rows| Rows::new(rows.as_slice().iter().map(|x| x.round()).collect(), 2).unwrap()).collect()
    };
    for seed in 0..30 {
        let rows = random_sites(seed, 45, 3, 2);
        for rows in [on_a_grid(rows.clone()), rows] {
            let preparation = Scale::Standard;
            let fcm = Algorithm::Fcm { m: 2.0, epsilon: 1e-6, max_rounds: 1 };
            let seeding = Seeding::Candidates(Candidates::usual(1));
            let recipe = Recipe { preparation, ..Recipe::plain(fcm, 3, seeding) };
            let one =
                drive(&recipe, &domain, &prepare_all(&[Rows::pooled(&rows).unwrap()], &domain), Sums::Plain).unwrap();
            for sums in [Sums::Plain, Sums::FixedPoint] {
                let many = drive(&recipe, &domain, &prepare_all(&rows, &domain), sums).unwrap();
                // Rows on a grid leave ties to k-means++ as well, and with them the order of the centres.
                let off = metrics::matched_distance(&one.centres, &many.centres).unwrap().max_abs;
                assert!(off < 1e-8, "seed {seed}, {sums:?}: off by {off:e}");
            }
        }
    }
}

#[test]
fn the_range_of_k_from_sites() {
    for (_, d, rows) in data_sets() {
        let domain = domain(d, Scaling::Box);
        let sites = prepare_all(&rows, &domain);
        for algorithm in algorithms(2.0) {
            for preparation in [Scale::None, Scale::Standard] {
                let range = Some(LocalRange { most: 4, starts: 2, seed: 1 });
                let validity = Validity::everything();
                let plain = Recipe::plain(algorithm.clone(), 1, seedings()[1].clone());
                let clusters = Clusters { min: 2, max: 6 };
                let recipe = Recipe { clusters, range, validity, preparation, ..plain };
                ends_well(drive(&recipe, &domain, &sites, Sums::FixedPoint), &domain);
            }
        }
    }
}
