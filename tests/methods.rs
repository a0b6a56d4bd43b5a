//! Every method that a plan can name, run three ways: by plain sums over the sites, masked in virtual time, and masked over
//! QUIC. The iterates agree to 1e-9 of a column's range. What does not depend on how rows are spread agrees with pooled rows too.

use veilsum_cluster::{
    Algorithm, Clusters, Indices, Outcome, Prepared, Recipe, Rows, assign,
    method::{Candidates, Choice, DaviesBouldin, LocalRange, Pick, Scale, Seeding, Stop, Validity},
    metrics, pooled,
    query::LocalSteps,
    random::Stream,
    sampling::Sampling,
};
use veilsum_node::plan::{Judge, PlanSpec};
use veilsum_testkit::{
    in_process::{self, apart, fcm, federate, unit_square},
    methods,
};

const SITES: usize = 5;
const K: u32 = 4;
const SEED: u64 = 20;

/// Four groups in the unit square at five sites that see them in different shares, 60 to 100 rows each, with labels.
fn sites() -> Vec<(Rows, Vec<usize>)> {
    let mut stream = Stream::new(SEED, b"veilsum tests of methods");
    let means = [[0.2, 0.2], [0.8, 0.25], [0.25, 0.8], [0.75, 0.75]];
    (0..SITES)
        .map(|site| {
            let (mut values, mut labels) = (Vec::new(), Vec::new());
            for _ in 0..60 + 10 * site {
                let label = if stream.unit() < 0.4 { site % 4 } else { stream.below(4) as usize };
                let noise = stream.normal_pair();
                values.extend((0..2).map(|c| (means[label][c] + 0.06 * noise[c]).clamp(0.0, 1.0)));
                labels.push(label);
            }
            (Rows::new(values, 2).unwrap(), labels)
        })
        .collect()
}

fn prepared(work: &PlanSpec) -> Vec<Prepared> {
    let domain = work.domain().unwrap();
    sites().iter().map(|(rows, _)| Prepared::new(rows, &domain, work.out_of_box).unwrap()).collect()
}

fn tree() -> Seeding {
    Seeding::Candidates(Candidates::usual(3))
}

fn work(algorithm: Algorithm) -> PlanSpec {
    let work = PlanSpec::plain(unit_square(), algorithm, K, tree());
    PlanSpec { recipe: Recipe { validity: Validity::everything(), ..work.recipe }, ..work }
}

fn plain(work: &PlanSpec, sites: &[Prepared]) -> Outcome {
    pooled::plain_federated(&mut work.run(sites.len()).unwrap(), sites).unwrap()
}

fn masked(work: &PlanSpec, sites: &[Prepared]) -> Outcome {
    in_process::masked(&work.recipe, &work.domain().unwrap(), sites, work.sampling).unwrap()
}

fn relative(a: f64, b: f64) -> f64 {
    if a == b { 0.0 } else { (a - b).abs() / a.abs().max(b.abs()) }
}

fn same_indices(what: &str, a: &Indices, b: &Indices) {
    let (a, b) = (serde_json::to_value(a).unwrap(), serde_json::to_value(b).unwrap());
    let (a, b) = (a.as_object().unwrap(), b.as_object().unwrap());
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>(), "{what}");
    for (name, value) in a {
        let (x, y) = (value.as_f64().unwrap_or(f64::MAX), b[name].as_f64().unwrap_or(f64::MAX));
        assert!(relative(x, y) <= 1e-9, "{what}: {name} {x} and {y}");
    }
}

fn same(what: &str, a: &Outcome, b: &Outcome) {
    assert_eq!((a.rounds, a.converged, a.questions), (b.rounds, b.converged, b.questions), "{what}");
    let off = a.centres.as_slice().iter().zip(b.centres.as_slice()).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
    assert!(off <= 1e-9, "{what}: centres differ by {off:e}");
    for (x, y) in a.history.iter().zip(&b.history) {
        assert!((x.shift - y.shift).abs() <= 1e-9, "{what}: round {} {} {}", x.round, x.shift, y.shift);
    }
    assert!(relative(a.objective, b.objective) <= 1e-9, "{what}: {} {}", a.objective, b.objective);
    assert_eq!(a.n_total, b.n_total, "{what}");
    same_indices(what, &a.indices, &b.indices);
}

/// The same with the sum of shifts as a stop, and other exponents of Davies-Bouldin.
#[test]
fn masked_is_plain_by_the_sum_and_with_other_exponents() {
    for algorithm in methods::all().into_iter().filter(|algorithm| algorithm.traits().epsilon.is_some()) {
        let what = format!("{algorithm:?}");
        let mut work = work(algorithm);
        (work.recipe.stop, work.recipe.validity.davies_bouldin) = (Stop::Sum, DaviesBouldin { p: 1.5, q: 2.0 });
        work.check().unwrap_or_else(|e| panic!("{what}: {e}"));
        let sites = prepared(&work);
        let (plain, masked) = (plain(&work, &sites), masked(&work, &sites));
        same(&what, &plain, &masked);
        assert!(masked.notes.iter().any(|note| note.contains("p = 1.5 and q = 2")), "{what}: {:?}", masked.notes);
    }
}

/// The framework paper's choice: FedFCM for each K, and the K with the smallest fuzzy Davies-Bouldin index.
#[test]
fn fedfcm_chooses_k_masked_as_plain() {
    let local = LocalSteps { most: 100, epsilon: 1e-5 };
    let mut work = work(Algorithm::FfcmAvg2 { m: 2.0, epsilon: 1e-5, max_rounds: 50, local });
    work.recipe.clusters = Clusters { min: 2, max: 6 };
    work.recipe.choice = Choice { by: Pick::FuzzyDaviesBouldin, elbow: false };
    let sites = prepared(&work);
    let (plain, masked) = (plain(&work, &sites), masked(&work, &sites));
    same("FedFCM", &plain, &masked);
    assert_eq!((plain.centres.k(), plain.curve.len(), masked.curve.len()), (4, 5, 5), "the groups that were drawn");
    for (plain, masked) in plain.curve.iter().zip(&masked.curve) {
        assert_eq!((plain.k, plain.rounds), (masked.k, masked.rounds));
        same_indices(&format!("K = {}", plain.k), &plain.indices, &masked.indices);
    }
}

#[test]
fn preparation_and_the_range_of_k() {
    let local = LocalSteps { most: 1000, epsilon: 1e-4 };
    let mut work = work(Algorithm::FfcmAvg2 { m: 2.0, epsilon: 1e-4, max_rounds: 20, local });
    work.recipe.preparation = Scale::Standard;
    work.recipe.clusters = Clusters { min: 2, max: 9 };
    work.recipe.range = Some(LocalRange { most: 5, starts: 3, seed: 1 });
    work.recipe.choice = Choice { by: Pick::XieBeni, elbow: false };
    work.check().unwrap();
    let sites = prepared(&work);
    let (plain, masked) = (plain(&work, &sites), masked(&work, &sites));
    same("standardised", &plain, &masked);
    assert!(masked.curve.last().unwrap().k <= 7, "K ends at 2 plus what a site found alone");
    // Centres come back in the units of the box.
    assert!(masked.centres.as_slice().iter().all(|x| (0.0..=1.0).contains(x)), "{:?}", masked.centres);
    let x: Vec<f64> = Prepared::pooled(&sites).unwrap().packed().to_rows().iter().map(|row| row[0]).collect();
    let (mean, shift) = (x.iter().sum::<f64>() / x.len() as f64, masked.transform.as_ref().unwrap().shift[0]);
    assert!((shift - mean).abs() < 1e-9, "{shift} {mean}");
}

/// [APP-6], [QRY-8].
#[test]
fn sampled_sites_are_those_that_everybody_can_compute() {
    let sampling = Sampling { share: 0.6, seed: 9 };
    let mut work = fcm(unit_square(), K, 0.0, 12, Seeding::Uniform { seed: 2 });
    work.sampling = Some(sampling);
    let sites = prepared(&work);
    let plain = pooled::beside(&mut work.run(SITES).unwrap(), &sites, None, Some(sampling)).unwrap();
    same("sampled", &plain, &masked(&work, &sites));
    let (run, sizes) = federate(named(), &work, &[]);
    let result = run.result.unwrap();
    assert_eq!(sizes, vec![SITES; 13], "nobody sees who was drawn");
    assert!(apart(&result.centres_box, &plain.centres) <= 1e-9);
}

fn named() -> Vec<(String, Rows)> {
    sites().into_iter().enumerate().map(|(i, (rows, _))| (format!("site-{i}"), rows)).collect()
}

#[test]
fn every_method_over_quic() {
    for algorithm in methods::all() {
        let what = format!("{algorithm:?}");
        let work = work(algorithm);
        work.check().unwrap_or_else(|e| panic!("{what}: {e}"));
        let sites = prepared(&work);
        let plain = plain(&work, &sites);
        assert!(plain.questions <= work.recipe.max_questions(), "{what}: {} questions", plain.questions);
        if !matches!(work.recipe.algorithm, Algorithm::FfcmAvg1 { .. }) {
            let drawn: Vec<usize> = self::sites().into_iter().flat_map(|(_, labels)| labels).collect();
            let rows = Prepared::pooled(&sites).unwrap().packed().to_rows();
            let found = assign::hard_labels(&assign::memberships(&rows, &plain.centres, 2.0).unwrap());
            let ari = metrics::adjusted_rand_index(&found, &drawn).unwrap();
            assert!(ari > 0.9, "{what}: ARI {ari}");
        }
        let (run, _) = federate(named(), &work, &[]);
        let result = run.result.unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!((result.rounds, result.questions), (plain.rounds, plain.questions), "{what}");
        assert_eq!(result.converged, Some(plain.converged), "{what}");
        let off = apart(&result.centres_box, &plain.centres);
        assert!(off <= 1e-9, "{what}: {off:e}");
        same_indices(&what, &plain.indices, &result.indices);
        for site in run.sites {
            let model = site.expect("a site's report").model.expect("a model");
            assert_eq!(model.centres, result.centres, "{what}");
        }
    }
}

/// [APP-5].
#[test]
fn app_5_the_intermediary_judges_and_the_coordinator_chooses() {
    let (kmeans, fcm) =
        (Algorithm::Kmeans { epsilon: 0.0, max_rounds: 50 }, Algorithm::Fcm { m: 2.0, epsilon: 1e-5, max_rounds: 60 });
    for (algorithm, standardised) in [(kmeans.clone(), false), (kmeans, true), (fcm, false)] {
        let mut work = work(algorithm);
        work.recipe.validity = Validity { full: true, ..Validity::basic() };
        work.recipe.clusters = Clusters { min: 2, max: 6 };
        work.recipe.choice = Choice { by: Pick::DaviesBouldin, elbow: false };
        if standardised {
            work.recipe.preparation = Scale::Standard;
        }
        let sites = prepared(&work);
        let plain = plain(&work, &sites);
        work.judge = Judge::Intermediary;
        work.check().unwrap();
        let (run, _) = federate(named(), &work, &[]);
        let result = run.result.unwrap();
        assert_eq!((result.k, result.questions), (4, plain.questions));
        same_indices("judged", &plain.indices, &result.indices);
        for (a, b) in plain.curve.iter().zip(&result.curve) {
            same_indices(&format!("judged, K = {}", a.k), &a.indices, &b.indices);
        }
        assert!(apart(&result.centres_box, &plain.centres) <= 1e-9);
        // Nothing that reached the intermediary holds a coordinate of a centre.
        let view = run.intermediary_view.lock().unwrap();
        let working: Vec<u64> =
            plain.centres.as_slice().iter().chain(result.centres_box.iter().flatten()).map(|x| x.to_bits()).collect();
        for (_, frame) in view.iter() {
            for at in 0..frame.len().saturating_sub(7) {
                let word = u64::from_le_bytes(frame[at..at + 8].try_into().unwrap());
                assert!(!working.contains(&word), "a frame to the intermediary holds a coordinate of a centre");
            }
        }
    }
}

/// What `veilsum demo` says of pooled rows: whatever the method, the preparation and the start, an exact plan comes to the centres of
/// the same code in the clear. The rows are whole numbers on the edges of bins and halfway between others, so that whatever hangs
/// on the last bit of a total would show.
#[test]
fn every_method_after_every_preparation_from_every_start_is_the_same_code_in_the_clear() {
    let mut stream = Stream::new(SEED, b"veilsum tests of methods");
    let means = [[6.0, 8.0, 30.0], [27.0, 9.0, 11.0], [9.0, 26.0, 4.0], [25.0, 25.0, 22.0]];
    let site = |site: usize| {
        let mut row = |at: usize| {
            let noise = [stream.normal_pair(), stream.normal_pair()].concat();
            (0..3).map(|c| (means[at % 4][c] + 3.0 * noise[c]).round().clamp(0.0, 34.0)).collect::<Vec<_>>()
        };
        Rows::new((0..24 + 8 * site).flat_map(|at| row(at + site)).collect(), 3).unwrap()
    };
    let rows: Vec<Rows> = (0..3).map(site).collect();
    let column = |name: &str| veilsum_node::plan::Column { name: name.into(), lower: 0.0, upper: 34.0 };
    let starts = [5, 6, 7, 8].map(|seed| Seeding::Candidates(Candidates::usual(seed)));
    let starts: Vec<Seeding> = starts.into_iter().chain([5, 6].map(|seed| Seeding::Uniform { seed })).collect();
    let mut compared = 0;
    for algorithm in methods::all() {
        for (seeding, preparation) in starts.iter().flat_map(|start| [(start, Scale::None), (start, Scale::Standard)]) {
            let mut work = PlanSpec::plain(["x", "y", "z"].map(column).to_vec(), algorithm.clone(), K, seeding.clone());
            work.recipe.preparation = preparation;
            if work.check().is_err() {
                continue;
            }
            let what = format!("{algorithm:?} {preparation:?} {seeding:?}");
            let domain = work.domain().unwrap();
            let sites: Vec<Prepared> =
                rows.iter().map(|rows| Prepared::new(rows, &domain, work.out_of_box).unwrap()).collect();
            let whole = algorithm.traits().is_exact.then(|| Prepared::pooled(&sites).unwrap());
            let clear = pooled::beside(&mut work.run(3).unwrap(), &sites, whole.as_ref(), None).unwrap();
            let hidden = masked(&work, &sites);
            let far = metrics::matched_distance(&clear.centres, &hidden.centres).unwrap().max_abs;
            assert!(far <= 1e-9, "{what}: {far:e}");
            compared += 1;
        }
    }
    assert!(compared >= 100, "{compared}");
}
