//! Fuzzy c-means in fewer rounds against fuzzy c-means: fixed points, rounds, and the same bits wherever the rows are.

use veilsum_cluster::method::{Choice, Method, Pick, Seeding, Step};
use veilsum_cluster::privacy::Noise;
use veilsum_cluster::random::Stream;
use veilsum_cluster::{
    Algorithm, Clusters, Domain, OutOfBox, Outcome, Prepared, Recipe, Rows, Scaling, SumStep, Totals, pooled, words,
};

const SEED: u64 = 17;
const D: usize = 3;

fn domain() -> Domain {
    Domain::new(vec![0.0; D], vec![1.0; D], Scaling::Box).unwrap()
}

/// `groups` groups of 90 rows that overlap a little.
fn rows(groups: usize, seed: u64) -> Vec<f64> {
    let mut stream = Stream::new(seed, b"veilsum tests of rounds ");
    let means: Vec<[f64; D]> = (0..groups).map(|_| std::array::from_fn(|_| 0.15 + 0.7 * stream.unit())).collect();
    let mut values = Vec::new();
    for _ in 0..90 {
        for mean in &means {
            let noise = [stream.normal_pair(), stream.normal_pair()].concat();
            values.extend(mean.iter().zip(noise).map(|(mean, noise)| (mean + 0.1 * noise).clamp(0.0, 1.0)));
        }
    }
    values
}

fn prepared(values: &[f64]) -> Prepared {
    Prepared::new(&Rows::new(values.to_vec(), D).unwrap(), &domain(), OutOfBox::Refuse).unwrap()
}

fn plain(m: f64, epsilon: f64) -> Algorithm {
    Algorithm::Fcm { m, epsilon, max_rounds: 5_000 }
}

fn fast(m: f64, epsilon: f64) -> Algorithm {
    Algorithm::FcmAnderson { m, epsilon, max_rounds: 5_000 }
}

fn run(algorithm: Algorithm, k: u32, seed: u64, rows: &Prepared) -> Outcome {
    let recipe = Recipe::plain(algorithm, k, Seeding::Uniform { seed });
    pooled::run(&mut recipe.run(&domain(), 1).unwrap(), rows).unwrap()
}

fn apart(a: &Outcome, b: &Outcome) -> f64 {
    a.centres.as_slice().iter().zip(b.centres.as_slice()).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max)
}

#[test]
fn it_ends_where_fcm_does_in_fewer_rounds() {
    let (mut slow, mut quick, mut same, mut runs) = (0, 0, 0, 0);
    for seed in SEED..SEED + 6 {
        let rows = prepared(&rows(4, seed));
        for (k, m) in [(3, 2.0), (4, 2.0), (5, 2.0), (4, 1.5), (6, 1.5)] {
            let what = format!("seed {seed}, K = {k}, m = {m}");
            let (a, b) = (run(plain(m, 1e-8), k, seed, &rows), run(fast(m, 1e-8), k, seed, &rows));
            assert!(a.converged && b.converged, "{what}");
            // A step of fcm from there moves nothing: it is one of fcm's own fixed points.
            let domain = domain();
            let start = Seeding::Given { centres: b.centres.clone() };
            let recipe = Recipe::plain(Algorithm::Fcm { m, epsilon: 0.0, max_rounds: 1 }, k, start);
            let again = pooled::run(&mut recipe.run(&domain, 1).unwrap(), &rows).unwrap();
            assert!(again.history[0].shift < 1e-8, "{what}: {:?}", again.history);
            assert!(b.rounds <= a.rounds + 8, "{what}: {} rounds, {} of fcm", b.rounds, a.rounds);
            assert!(b.objective <= a.objective * 1.05, "{what}: {} and {}", b.objective, a.objective);
            if apart(&a, &b) < 1e-5 {
                same += 1;
            }
            (slow, quick, runs) = (slow + a.rounds, quick + b.rounds, runs + 1);
        }
    }
    println!("{slow} rounds of fcm, {quick} here; {same} of {runs} in the same optimum");
    assert!(10 * same >= 9 * runs, "{same} of {runs} in the optimum of fcm");
    assert!(2 * quick <= slow, "{quick} rounds, {slow} of fcm");
}

/// Totals of several sites in whole steps, added up as masks leave them.
fn in_steps(recipe: &Recipe, sites: &[Prepared], fraction_bits: i32) -> Outcome {
    let domain = domain();
    let mut run = recipe.run(&domain, sites.len() as u32).unwrap();
    let mut step = run.next(None).unwrap();
    loop {
        let batch = match step {
            Step::Done(outcome) => return *outcome,
            Step::Ask(batch) => batch,
        };
        let steps: Vec<SumStep> =
            batch.layout(&domain).unwrap().iter().map(|b| SumStep { len: b.len, fraction_bits }).collect();
        let mut total = vec![0i64; steps.iter().map(|step| step.len).sum()];
        for site in sites {
            let own = words(&batch, site, &steps).unwrap();
            total.iter_mut().zip(own).for_each(|(total, own)| *total += own);
        }
        let values = total.iter().map(|steps| *steps as f64 / 2f64.powi(fraction_bits)).collect();
        step = run.next(Some(&Totals { values, rows: None })).unwrap();
    }
}

/// However rows are spread, and in a sweep as alone.
#[test]
fn rounds_are_the_same_bits_wherever_the_rows_are() {
    let values = rows(4, SEED);
    let all = prepared(&values);
    let parts: Vec<Prepared> = [0..200, 200..207, 207..values.len() / D]
        .into_iter()
        .map(|part| prepared(&values[part.start * D..part.end * D]))
        .collect();
    let sweep = Recipe {
        clusters: Clusters { min: 2, max: 6 },
        choice: Choice { by: Pick::FuzzyDaviesBouldin, elbow: false },
        ..Recipe::plain(fast(2.0, 1e-6), 2, Seeding::Uniform { seed: SEED })
    };
    let (together, apart) = (in_steps(&sweep, std::slice::from_ref(&all), 38), in_steps(&sweep, &parts, 38));
    assert_eq!(together, apart);
    let k = together.centres.k() as u32;
    let alone = Recipe { clusters: Clusters::exactly(k), ..sweep };
    let alone = in_steps(&alone, &parts, 38);
    assert_eq!((alone.centres, alone.history), (together.centres, together.history));
    assert!(alone.rounds > 8, "{} rounds hold no step of their own", alone.rounds);
}

/// With steps as coarse as `plan make` has them, what rounds tell of each other is blurred, and it pays all the same.
#[test]
fn coarse_totals_save_rounds_too() {
    let sites = [prepared(&rows(4, SEED)), prepared(&rows(4, SEED))];
    let with = |algorithm| in_steps(&Recipe::plain(algorithm, 5, Seeding::Uniform { seed: SEED }), &sites, 20);
    let (slow, quick) = (with(plain(2.0, 1e-6)), with(fast(2.0, 1e-6)));
    assert!(slow.converged && quick.converged, "{} and {} rounds", slow.rounds, quick.rounds);
    assert!(2 * quick.rounds <= slow.rounds, "{} rounds, {} of fcm", quick.rounds, slow.rounds);
    assert!(apart(&slow, &quick) < 1e-3, "{}", apart(&slow, &quick));
}

#[test]
fn noise_is_not_extrapolated() {
    let noise = Some(Noise::usual(veilsum_cluster::privacy::rho(1.0, 1e-6), 1000).from_anywhere());
    let with = |algorithm| Recipe { noise, ..Recipe::plain(algorithm, 3, Seeding::Uniform { seed: 1 }) };
    let why = with(fast(2.0, 0.0)).check(&domain()).unwrap_err().to_string();
    assert!(why.contains("follow the noise") && why.contains("--method fcm"), "{why}");
}

/// Sites leave with their block in mid-run: what totals over others said is forgotten, and the result is over those that stayed.
#[test]
fn rounds_over_other_rows_are_forgotten() {
    for seed in SEED..SEED + 4 {
        let sites: Vec<Prepared> = (0..3).map(|i| prepared(&rows(3 + i, seed + 40 + i as u64))).collect();
        let done = |algorithm: Algorithm, lost_after: u32| {
            let mut run = Recipe::plain(algorithm, 4, Seeding::Uniform { seed }).run(&domain(), 3).unwrap();
            let (mut totals, mut asked) = (None, 0);
            loop {
                match run.next(totals.as_ref()).unwrap() {
                    Step::Done(outcome) => return (*outcome, asked),
                    Step::Ask(batch) => {
                        asked += 1;
                        let lost = asked > lost_after;
                        run.over(u32::from(lost));
                        totals = Some(pooled::totals(&batch, if lost { &sites[..2] } else { &sites }).unwrap());
                    }
                }
            }
        };
        for lost_after in [6, 9, 14] {
            let (plain, _) = done(plain(2.0, 1e-8), lost_after);
            let (fast, _) = done(fast(2.0, 1e-8), lost_after);
            assert!(fast.converged && fast.centres_over == 1, "seed {seed}, lost after {lost_after}");
            // Most of them end in the same optimum; all of them at rest over the rows that stayed.
            let rest = Recipe::plain(
                Algorithm::Fcm { m: 2.0, epsilon: 1e-6, max_rounds: 1 },
                4,
                Seeding::Given { centres: fast.centres.clone() },
            );
            let one =
                pooled::run(&mut rest.run(&domain(), 1).unwrap(), &Prepared::pooled(&sites[..2]).unwrap()).unwrap();
            assert!(apart(&one, &fast) < 1e-7, "seed {seed}, lost after {lost_after}: {}", apart(&one, &fast));
            assert!(plain.converged);
        }
    }
}
