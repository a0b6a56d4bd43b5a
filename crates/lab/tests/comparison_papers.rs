//! The papers' printed numbers from the plain forms (FFCM Table 4, FFCF Table 1 on fresh draws), and the
//! totals-only forms beside them. Data are fresh draws, few each. Tolerances for FFCM are about three standard errors of the
//! known reproductions; for FFCF, where draws of the data matter more, they are set by hand. FKM on the grid and the motivational example
//! are `experiments.rs`'s.

use veilsum_cluster::method::{Candidates, Seeding};
use veilsum_cluster::query::{FeatureParams, LocalSteps};
use veilsum_cluster::random::Stream;
use veilsum_cluster::synthetic::Example;
use veilsum_cluster::{Algorithm, Centres, Domain, Outcome, Recipe, Rows, pooled};
use veilsum_lab::comparison::{ffcf, ffcm};
use veilsum_testkit::data::prepare_all;

const LOCAL: LocalSteps = LocalSteps { most: 1000, epsilon: 1e-4 };

fn stream(seed: u64) -> Stream {
    Stream::new(seed, b"veilsum test stream     ")
}

fn rows(example: &Example) -> Vec<Rows> {
    example.sites.iter().map(|site| site.rows.clone()).collect()
}

/// From first centres of totals, as the product runs.
fn on_totals(algorithm: Algorithm, k: u32, example: &Example, domain: &Domain) -> Outcome {
    let recipe = Recipe::plain(algorithm, k, Seeding::Candidates(Candidates::usual(1)));
    let sites = prepare_all(&rows(example), domain);
    pooled::plain_federated(&mut recipe.run(domain, sites.len() as u32).expect("a run"), &sites).expect("an outcome")
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[track_caller]
fn about(values: &[f64], known: f64, tolerance: f64) {
    let found = mean(values);
    assert!((found - known).abs() < tolerance, "{found}, known {known}: {values:?}");
}

/// Table 4, 1000-1000-1000: avg2 reaches the truth, avg1 cannot.
#[test]
fn ffcm_on_the_square() {
    let domain = veilsum_lab::synthetic::ffcm::wide_domain();
    let (mut avg1, mut avg2, mut within, mut totals) = (vec![], vec![], vec![], vec![]);
    for seed in 0..6 {
        let example = veilsum_lab::synthetic::ffcm::square([1000; 3], seed);
        let sites = rows(&example);
        let gap =
            |centres: &Centres| veilsum_lab::gap::gap_to_nearest_standardised(centres, &example.truth).expect("a gap");
        let mut draws = stream(seed);
        let start = Centres::new(4, 2, (0..8).map(|_| draws.unit()).collect()).expect("a start");
        let params = ffcm::Params {
            start: start.clone(),
            m: 2.0,
            local: LOCAL,
            average: ffcm::Average::Kmeans,
            epsilon: 1e-4,
            max_rounds: 100,
        };
        let two = ffcm::ffcm(&sites, &params, &mut stream(seed)).expect("a fit");
        assert!(two.converged && two.rounds <= 5, "{}", two.rounds);
        avg2.push(gap(&two.centres));
        within.push(
            veilsum_lab::spread::Spread::mean(sites.iter().map(|rows| (rows, &two.centres))).expect("spread").within,
        );
        // avg1 has totals in any case; these are its sums.
        let algorithm = Algorithm::FfcmAvg1 { m: 2.0, epsilon: 1e-4, max_rounds: 60, local: LOCAL, powers: false };
        let prepared = prepare_all(&sites, &domain);
        let recipe = Recipe::plain(algorithm, 4, Seeding::Given { centres: start });
        let one = pooled::plain_federated(&mut recipe.run(&domain, 3).expect("a run"), &prepared).expect("an outcome");
        avg1.push(gap(&one.centres));
        let algorithm = Algorithm::FfcmAvg2 { m: 2.0, epsilon: 1e-4, max_rounds: 50, local: LOCAL };
        let found = on_totals(algorithm, 4, &example, &domain);
        assert!(found.converged && found.rounds <= 5);
        totals.push(gap(&found.centres));
    }
    about(&avg2, 0.037, 0.013);
    about(&within, 0.625, 0.007);
    about(&avg1, 3.65, 0.45);
    about(&totals, mean(&avg2), 1e-3);
}

/// B.8.1 and C.3: FFCF by our rules, plain and on anchors.
#[test]
fn ffcf_on_the_square() {
    let domain = veilsum_lab::synthetic::ffcm::wide_domain();
    let params = FeatureParams { min: 5, max: 30, tau: 1.0, m: 2.0 };
    let (mut plain, mut within, mut totals) = (vec![], vec![], vec![]);
    for seed in 0..5 {
        let example = veilsum_lab::synthetic::ffcm::square([1000; 3], seed);
        let sites = rows(&example);
        let gap = |centres: &Centres| veilsum_lab::gap::gap_to_nearest(centres, &example.truth).expect("a gap");
        let spread =
            |centres: &Centres| veilsum_lab::spread::Spread::new(&example.pooled(), centres).expect("spread").within;
        let fit = ffcf::ffcf(&sites, 4, 2.0, &params, &mut stream(seed)).expect("a fit");
        plain.push(gap(&fit));
        within.push(spread(&fit));
        let algorithm = Algorithm::Ffcf { m: 2.0, features: params, anchors: 8, merge: false };
        let found = on_totals(algorithm, 4, &example, &domain);
        totals.push(gap(&found.centres));
        assert!((spread(&found.centres) - spread(&fit)).abs() < 1e-3);
    }
    about(&plain, 0.21, 0.08);
    about(&within, 0.627, 0.006);
    about(&totals, 0.21, 0.08);
}
