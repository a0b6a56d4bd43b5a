//! The standard errors of noisy results against runs with real integer noise, on rows whose result without noise is known.

use veilsum_cluster::{
    Algorithm, Centres, Domain, Outcome, Prepared, Recipe,
    method::{Seeding, mechanism},
    pooled,
    privacy::Noise,
};
use veilsum_lab::experiments::dp::{Plan, noisy, xclara_like};

/// Runs in the quick form; `VEILSUM_NOISE_RUNS=400` is the long one.
const RUNS: u64 = 40;
const SITES: usize = 20;
const PLAN: Plan = Plan { honest: 14, step_bits: 20 };

/// Every number of an outcome by its kind, in the order of the errors.
fn numbers(outcome: &Outcome) -> Vec<(&'static str, f64)> {
    let centres = outcome.centres.as_slice().iter().map(|x| ("centres", *x));
    let mass = outcome.clusters.mass.iter().map(|x| ("mass", x.expect("a mass")));
    let alone = [
        ("N", outcome.n_total.expect("N") as f64),
        ("objective", outcome.objective),
        ("objective/N", outcome.objective_per_row),
        ("fuzzy Davies-Bouldin", outcome.indices.fuzzy_davies_bouldin),
        ("Xie-Beni", outcome.indices.xie_beni.unwrap_or(f64::INFINITY)),
    ];
    centres.chain(mass).chain(alone).collect()
}

fn errors(found: &mechanism::Errors) -> Vec<f64> {
    let alone = [found.rows, found.objective, found.objective_per_row, found.fuzzy_davies_bouldin, found.xie_beni];
    found.centres.iter().chain(&found.mass).copied().chain(alone).collect()
}

/// For every kind of number how often the value without noise lies within two standard errors.
fn coverage(recipe: &Recipe, data: &[(Domain, Vec<Prepared>)], runs: u64) -> Vec<(&'static str, f64)> {
    let excess = (SITES as f64 / PLAN.honest as f64).sqrt();
    let mut kinds: Vec<(&'static str, f64, f64)> = Vec::new();
    for seed in 0..runs {
        let (domain, sites) = &data[seed as usize % data.len()];
        let truth = pooled::plain_federated(&mut recipe.run(domain, SITES as u32).unwrap(), sites).unwrap();
        let found = noisy(recipe, domain, sites, PLAN, seed).unwrap();
        let errors = errors(&mechanism::errors(recipe, domain, &found, excess).unwrap().expect("noise"));
        for (((kind, truth), (_, found)), error) in numbers(&truth).into_iter().zip(numbers(&found)).zip(errors) {
            let at = kinds.iter().position(|(known, ..)| *known == kind).unwrap_or_else(|| {
                kinds.push((kind, 0.0, 0.0));
                kinds.len() - 1
            });
            kinds[at].1 += f64::from(u8::from((found - truth).abs() <= 2.0 * error));
            kinds[at].2 += 1.0;
        }
    }
    kinds.into_iter().map(|(kind, within, of)| (kind, within / of)).collect()
}

/// In 95 ± 3 % of 400 runs; of few runs chance leaves more room.
#[test]
fn the_value_without_noise_lies_within_two_standard_errors() {
    let runs = std::env::var("VEILSUM_NOISE_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(RUNS);
    let data: Vec<(Domain, Vec<Prepared>)> = (1..=4)
        .map(|seed| {
            let (domain, sites, _) = xclara_like(3000, SITES, seed).unwrap();
            (domain, sites)
        })
        .collect();
    let fcm = Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: 10 };
    let kmeans = Algorithm::Kmeans { epsilon: 0.0, max_rounds: 10 };
    // At epsilon 4 the errors of J/N and Xie-Beni are a little too small: 91 to 92 of 100 were measured there, and methods.md says so.
    for (algorithm, epsilon, within) in [(fcm.clone(), 1.0, 0.03), (kmeans, 1.0, 0.03), (fcm, 4.0, 0.05)] {
        // A start that is public knowledge: into which optimum a run falls is another question (`mechanism::kept`).
        let centres = Centres::from_rows(&[vec![-0.5, -0.5], vec![0.0, 0.5], vec![0.5, -0.5]]).unwrap();
        let mut recipe = Recipe::plain(algorithm, 3, Seeding::Given { centres });
        recipe.noise = Some(Noise::usual(epsilon, 3000));
        let found = coverage(&recipe, &data, runs);
        println!("{} at epsilon {epsilon}, {runs} runs: {found:?}", recipe.algorithm.name());
        for (kind, share) in found {
            let slack = within + if runs < 400 { 3.0 * (0.95f64 * 0.05 / runs as f64).sqrt() } else { 0.0 };
            assert!((share - 0.95).abs() <= slack, "{kind}: {share} of {runs} runs");
        }
    }
}
