//! Finishing a run from the totals that are out: how near it comes to the undisturbed end, and where it is refused.

use std::time::Instant;

use veilsum_cluster::finish::{GATE, Released, Rounding, finish};
use veilsum_cluster::method::{Clusters, Seeding};
use veilsum_cluster::query::LocalSteps;
use veilsum_cluster::random::Stream;
use veilsum_cluster::{
    Algorithm, Batch, Domain, Error, Method, OutOfBox, Outcome, Prepared, Recipe, Rows, Run, Scaling, Step, Totals,
    answer, synthetic,
};
use veilsum_testkit::data::{DataSet, max_difference, prepare_all, split};

const SITES: usize = 10;

/// Totals whose parts every site rounds to steps of 2^-`bits` of the block's bound.
fn released(batch: &Batch, sites: &[Prepared], bits: i32) -> Released {
    let layout = batch.layout(sites[0].domain()).unwrap();
    let steps: Vec<f64> = layout.iter().map(|block| block.bound * 2f64.powi(-bits)).collect();
    let of = |(block, step): (&veilsum_cluster::Block, &f64)| vec![*step; block.len];
    let units: Vec<f64> = layout.iter().zip(&steps).flat_map(of).collect();
    let mut values = vec![0.0; units.len()];
    for site in sites {
        let part = answer(batch, site).unwrap().values;
        for ((total, x), step) in values.iter_mut().zip(part).zip(&units) {
            *total += (x / step).round_ties_even() * step;
        }
    }
    let steps = steps.into_iter().map(|site| Rounding { row: 0.0, site }).collect();
    Released { batch: batch.clone(), totals: Totals { values, rows: None }, steps }
}

/// Asks until the run is done, or so many questions are answered.
fn ask(run: &mut Run, sites: &[Prepared], bits: i32, questions: usize) -> (Vec<Released>, Option<Outcome>) {
    let mut out = Vec::new();
    let mut step = run.next(None).unwrap();
    loop {
        match step {
            Step::Done(outcome) => return (out, Some(*outcome)),
            Step::Ask(_) if out.len() == questions => return (out, None),
            Step::Ask(batch) => {
                out.push(released(&batch, sites, bits));
                step = run.next(Some(&out.last().unwrap().totals)).unwrap();
            }
        }
    }
}

/// Why no more of a result was estimated, where it says so.
fn refused(outcome: &Outcome) -> Option<&String> {
    outcome.notes.iter().find(|note| note.contains("were not estimated from what is out"))
}

const INEXACT: &str = "do not tell the next ones";

struct Measured {
    /// Largest difference to the undisturbed end, of the last opened centres and of the finished ones.
    stopped: f64,
    finished: f64,
    /// Rounds of the undisturbed run.
    rounds: usize,
    seconds: f64,
    result: Outcome,
}

impl std::fmt::Display for Measured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { stopped, finished, seconds, result, .. } = self;
        write!(f, "stopped {stopped:.1e}, finished {finished:.1e}, {seconds:.2} s, ")?;
        match (&result.extrapolated, refused(result)) {
            (Some(found), why) => {
                write!(f, "{} rounds, stated {:.1e}, indices: {why:?}", found.rounds, found.held_out_error)
            }
            (None, why) => write!(f, "refused: {why:?}"),
        }
    }
}

/// Loses a site after so many rounds.
fn lose(recipe: &Recipe, domain: &Domain, sites: &[Prepared], bits: i32, rounds: usize) -> Measured {
    let run = || recipe.run(domain, sites.len() as u32).unwrap().coarse(2f64.powi(-bits));
    let undisturbed = ask(&mut run(), sites, bits, usize::MAX).1.unwrap();
    let mut disturbed = run();
    let (out, done) = ask(&mut disturbed, sites, bits, rounds);
    assert!(done.is_none(), "it was over before the loss");
    let stopped = disturbed.stop_here().unwrap();
    let began = Instant::now();
    let result = finish(&disturbed, &out).unwrap();
    let seconds = began.elapsed().as_secs_f64();
    let rounds = undisturbed.rounds as usize;
    let off = |centres| max_difference(centres, &undisturbed.centres);
    Measured { stopped: off(&stopped.centres), finished: off(&result.centres), rounds, seconds, result }
}

fn fcm(k: u32, seed: u64, epsilon: f64) -> Recipe {
    Recipe::plain(Algorithm::Fcm { m: 2.0, epsilon, max_rounds: 400 }, k, Seeding::Uniform { seed })
}

fn data(name: &str) -> (Domain, Vec<Prepared>) {
    let data = DataSet::read(name);
    let domain = data.boxed();
    let sites = prepare_all(&split(&data.rows, SITES), &domain);
    (domain, sites)
}

fn iris_and_xclara_end_where_they_would_have() {
    for (name, rounds) in [("iris", 11), ("xclara", 11), ("xclara", 6)] {
        let (domain, sites) = data(name);
        for bits in [40, 20] {
            for seed in 0..4 {
                let found = lose(&fcm(3, seed, 1e-9), &domain, &sites, bits, rounds);
                println!("{name}, {rounds} rounds, 2^-{bits}, seed {seed}: {found}");
                let Some(extrapolated) = found.result.extrapolated else {
                    assert!(rounds == 6, "refused: {:?}", refused(&found.result));
                    continue;
                };
                assert!(extrapolated.rounds > 0 && extrapolated.held_out_error < GATE && extrapolated.at_rest);
                assert!(!found.result.converged);
                let most = if rounds == 11 { 1e-6 } else { 1e-5 };
                assert!(found.finished < most, "{name} 2^-{bits} seed {seed}: {:.1e}", found.finished);
            }
        }
    }
}

/// The stop rule of the plan holds in the same round as it would have.
fn the_stop_rule_is_the_methods_own() {
    let (domain, sites) = data("iris");
    let found = lose(&fcm(3, 2, 1e-4), &domain, &sites, 40, 11);
    assert!(found.finished < 1e-6 && found.stopped > 1e-5, "{found}");
    let outcome = found.result;
    let (rounds, history) = (outcome.rounds as usize, outcome.history.len());
    assert_eq!((rounds, history), (found.rounds, found.rounds));
    assert_eq!(outcome.extrapolated.unwrap().rounds as usize, rounds - 11);
    assert_eq!(outcome.questions, 11, "nothing was asked that was not");
}

fn many_clusters_and_many_columns_are_refused() {
    for (name, k) in [("s-set1", 15), ("pendigits", 10)] {
        let (domain, sites) = data(name);
        for bits in [40, 20] {
            let mut run = fcm(k, 0, 1e-9).run(&domain, SITES as u32).unwrap();
            let (out, _) = ask(&mut run, &sites, bits, 11);
            let began = Instant::now();
            let found = finish(&run, &out).unwrap();
            println!("{name} 2^-{bits}: {:.1} s, {:?}", began.elapsed().as_secs_f64(), refused(&found));
            assert!(refused(&found).is_some_and(|why| why.contains(INEXACT)), "{:?}", refused(&found));
            assert_eq!(found.centres, run.fits()[0].centres, "the last opened centres");
            assert!(!found.converged && found.extrapolated.is_none() && found.rounds == 11);
        }
    }
}

/// Generated data and a loss.
struct Blobs {
    domain: Domain,
    sites: Vec<Prepared>,
    k: u32,
    bits: i32,
    rounds: usize,
}

fn blobs(seed: u64) -> Blobs {
    let mut stream = Stream::new(seed, b"veilsum test stream     ");
    let (d, k) = (1 + stream.below(3) as usize, 2 + stream.below(2) as u32);
    let middles: Vec<f64> = (0..k as usize * d).map(|_| 0.15 + 0.7 * stream.unit()).collect();
    let row = |stream: &mut Stream| -> Vec<f64> {
        let middle = stream.below(u64::from(k)) as usize;
        (0..d).map(|j| (middles[middle * d + j] + 0.08 * stream.normal_pair()[0]).clamp(0.0, 1.0)).collect()
    };
    let rows = (0..600).flat_map(|_| row(&mut stream)).collect();
    let domain = Domain::new(vec![0.0; d], vec![1.0; d], Scaling::Box).unwrap();
    let sites = prepare_all(&split(&Rows::new(rows, d).unwrap(), 6), &domain);
    let (bits, rounds) = ([40, 20][seed as usize % 2], 5 + stream.below(8) as usize);
    Blobs { domain, sites, k, bits, rounds }
}

/// Whatever passes the gate is as good as it says.
#[test]
fn generated_data_end_within_the_error_that_is_stated() {
    let (mut accepted, seeds) = (0, 0..10);
    println!("seeds {seeds:?}");
    for seed in seeds {
        let Blobs { domain, sites, k, bits, rounds } = blobs(seed);
        let d = domain.columns();
        let recipe = fcm(k, seed, 1e-9);
        if ask(&mut recipe.run(&domain, 6).unwrap(), &sites, bits, rounds).1.is_some() {
            continue;
        }
        let found = lose(&recipe, &domain, &sites, bits, rounds);
        println!("seed {seed}: d = {d}, K = {k}, 2^-{bits}, {rounds} rounds: {found}");
        if let Some(extrapolated) = found.result.extrapolated {
            accepted += 1;
            assert!(found.finished <= 10.0 * extrapolated.held_out_error + 1e-8, "seed {seed}: {found}");
        }
    }
    assert!(accepted >= 4, "only {accepted} passed the gate: the test shows little");
}

fn five() -> (Domain, Vec<Prepared>) {
    let domain = synthetic::five_gaussians_domain();
    let prepare = |site: &synthetic::Site| Prepared::new(&site.rows, &domain, OutOfBox::Refuse).unwrap();
    (domain.clone(), synthetic::five_gaussians(1).sites.iter().map(prepare).collect())
}

#[test]
fn hard_and_local_methods_are_refused() {
    let (domain, sites) = five();
    let local = LocalSteps { most: 3, epsilon: 0.0 };
    let methods = [
        Algorithm::Kmeans { epsilon: 0.0, max_rounds: 50 },
        Algorithm::Fkm { epsilon: 0.0, max_rounds: 50, min_rows: 2, local_steps: 1, finish: 0 },
        Algorithm::FfcmAvg1 { m: 2.0, epsilon: 1e-9, max_rounds: 50, local, powers: true },
        Algorithm::FfcmAvg2 { m: 2.0, epsilon: 1e-9, max_rounds: 50, local },
    ];
    for algorithm in methods {
        let name = algorithm.name();
        let mut run = Recipe::plain(algorithm, 4, Seeding::Uniform { seed: 5 }).run(&domain, 3).unwrap();
        let (out, done) = ask(&mut run, &sites, 40, 2);
        assert!(done.is_none(), "{name}");
        let found = finish(&run, &out).unwrap();
        println!("{name}: {:?}", refused(&found));
        let inexact = refused(&found).is_some_and(|why| why.contains(INEXACT)) && name == "kmeans";
        let refused = refused(&found).is_some_and(|why| why.contains("sum over rows"));
        assert!(refused || inexact, "{name}: {found:?}");
        assert_eq!(found.centres, run.fits()[0].centres, "{name}");
        assert!(!found.converged && found.extrapolated.is_none() && found.rounds == 2, "{name}");
        assert!(found.notes.iter().any(|note| note.contains("were not estimated")), "{name}");
    }
}

/// A replay on another machine has the questions and the totals as text, and no row.
#[test]
fn totals_alone_decide_to_the_bit() {
    let Blobs { domain, sites, k, bits, rounds } = blobs(4);
    let recipe = fcm(k, 4, 1e-9);
    let mut run = recipe.run(&domain, 6).unwrap();
    let (out, done) = ask(&mut run, &sites, bits, rounds);
    assert!(done.is_none());
    let here = finish(&run, &out).unwrap();
    assert!(here.extrapolated.is_some(), "{:?}", refused(&here));
    drop(sites);
    let mut replay = recipe.run(&domain, 6).unwrap();
    let copy: Vec<Released> = out
        .iter()
        .map(|one| {
            let text = serde_json::to_string(&(&one.batch, &one.totals.values, &one.steps)).unwrap();
            let (batch, values, steps) = serde_json::from_str(&text).unwrap();
            replay.next(None).unwrap();
            replay.next(Some(&Totals { values, rows: None })).unwrap();
            Released { batch, totals: one.totals.clone(), steps }
        })
        .collect();
    assert_eq!(finish(&replay, &copy).unwrap(), here);
    // Other totals, other centres: nothing else is there to tell them.
    let weights = k as usize * domain.columns();
    let mut other = out;
    other.iter_mut().for_each(|one| one.totals.values.iter_mut().skip(weights).for_each(|u| *u *= 1.001));
    let other = finish(&run, &other).unwrap();
    assert!(other.extrapolated.is_some() && other.centres != here.centres);
}

/// A sweep asks for the rounds of every K side by side: each K counts its own.
#[test]
fn in_a_sweep_the_rounds_of_the_reported_k_are_counted() {
    let domain = Domain::new(vec![0.0], vec![1.0], Scaling::Box).unwrap();
    let part = |i: u32| (f64::from(i) * 0.618_033_988_749_895).fract();
    let row = |i: u32| if i.is_multiple_of(2) { 0.1 + 0.3 * part(i) } else { 0.9 - 0.4 * part(i) };
    let rows = Rows::new((0..300).map(row).collect(), 1).unwrap();
    let sites = prepare_all(&split(&rows, SITES), &domain);
    // K = 2 is at rest long before K = 3 is.
    let recipe = Recipe { clusters: Clusters { min: 2, max: 3 }, ..fcm(2, 3, 1e-7) };
    let run = || recipe.run(&domain, SITES as u32).unwrap();
    let whole = ask(&mut run(), &sites, 40, usize::MAX).1.unwrap();
    let rounds: Vec<u32> = whole.curve.iter().map(|point| point.rounds).collect();
    let longest = whole.questions - 1;
    println!("{rounds:?}, K = {} is chosen, {longest} rounds in all", whole.centres.k());
    assert!(rounds[0] + 4 < rounds[1] && rounds[1] == longest);
    for after in [rounds[0] - 2, rounds[0] + 2] {
        let mut run = run();
        let (out, _) = ask(&mut run, &sites, 40, after as usize);
        let found = finish(&run, &out).unwrap();
        let extrapolated = found.extrapolated.unwrap_or_else(|| panic!("{:?}", refused(&found)));
        // Of the reported K so many rounds were asked.
        let asked = rounds[found.centres.k() - 2].min(after);
        assert_eq!(found.rounds - extrapolated.rounds, asked, "after {after}: {extrapolated:?}");
        println!("after {after}: K = {}, {extrapolated:?}, {:?}", found.centres.k(), refused(&found));
    }
}

#[test]
fn a_run_stops_where_it_stands() {
    let (domain, sites) = five();
    let start = |recipe: &Recipe, questions| {
        let mut run = recipe.run(&domain, 3).unwrap();
        let (out, done) = ask(&mut run, &sites, 40, questions);
        assert!(done.is_none());
        (run, out)
    };
    let (run, out) = start(&fcm(3, 5, 1e-8), 0);
    assert_eq!(run.stop_here(), Err(Error::NoCentresYet));
    assert_eq!(finish(&run, &out), Err(Error::NoCentresYet));

    let (run, _) = start(&fcm(3, 5, 1e-8), 2);
    let outcome = run.stop_here().unwrap();
    assert_eq!((outcome.rounds, outcome.converged, outcome.n_total, outcome.questions), (2, false, None, 2));
    assert_eq!(outcome.centres, run.fits()[0].centres);
    assert!(outcome.objective == f64::INFINITY && outcome.indices.fuzzy_davies_bouldin == f64::INFINITY);
    let json = serde_json::to_value(&outcome).unwrap();
    assert!(json["objective"].is_null() && json.get("extrapolated").is_none(), "{json}");

    // A site that is lost at the validity question: the centres are what they would have been.
    let loose = fcm(3, 5, 1e-3);
    let whole = ask(&mut loose.run(&domain, 3).unwrap(), &sites, 40, usize::MAX).1.unwrap();
    let (run, out) = start(&loose, whole.questions as usize - 1);
    let outcome = run.stop_here().unwrap();
    assert_eq!((&outcome.centres, outcome.converged, outcome.n_total), (&whole.centres, true, None));
    let found = finish(&run, &out).unwrap();
    println!("validity: {:?} {:?}", refused(&found), found.extrapolated);
    assert!(found.converged && found.centres == whole.centres);
    match found.extrapolated {
        Some(extrapolated) => assert!(extrapolated.rounds == 0 && extrapolated.index_error.unwrap() < GATE),
        None => assert!(refused(&found).is_some() && found.n_total.is_none()),
    }

    // With another run over the same cohort, which asked about nearly the same centres, the indices follow too. The sum of
    // estimated memberships is no count of rows.
    let (near, _) = ask(&mut fcm(3, 5, 1.1e-3).run(&domain, 3).unwrap(), &sites, 40, usize::MAX);
    let found = finish(&run, &[near, out].concat()).unwrap();
    let extrapolated = found.extrapolated.unwrap_or_else(|| panic!("{:?}", refused(&found)));
    println!("{extrapolated:?}, {} rows, {}", whole.n_total.unwrap(), found.objective / whole.objective - 1.0);
    assert!(extrapolated.index_error.unwrap() < GATE && found.n_total.is_none());
    assert!((found.objective / whole.objective - 1.0).abs() < GATE);
    assert!((found.objective_per_row / whole.objective_per_row - 1.0).abs() < GATE);

    // A sweep of which nothing was judged says that nothing chose.
    let sweep = Recipe { clusters: Clusters { min: 2, max: 4 }, restarts: 2, ..fcm(2, 5, 1e-8) };
    let (run, _) = start(&sweep, 3);
    let outcome = run.stop_here().unwrap();
    assert!(outcome.centres.k() == 2 && outcome.curve.is_empty());
    assert!(outcome.notes.iter().any(|note| note.contains("nothing chose")), "{:?}", outcome.notes);
}

veilsum_testkit::with_data!(
    iris_and_xclara_end_where_they_would_have,
    the_stop_rule_is_the_methods_own,
    many_clusters_and_many_columns_are_refused
);
