//! What each cluster of a result holds, counted a second time from the rows and the reported centres, for every method.

use veilsum_cluster::{
    Algorithm, Centres, Domain, OutOfBox, Outcome, Prepared, Recipe, Rows, Scaling,
    method::{Candidates, Seeding, Validity},
    pooled,
};

const M: f64 = 1.7;

fn domain() -> Domain {
    Domain::new(vec![0.0; 2], vec![1.0; 2], Scaling::None).unwrap()
}

/// Five sites of different sizes around three places, without chance.
fn rows() -> Vec<Vec<[f64; 2]>> {
    let places = [[0.2, 0.25], [0.75, 0.3], [0.5, 0.8]];
    let row = |site: usize, i: usize| {
        let at = places[(i * (site + 1) + i / 3) % 3];
        let turn = (i * 7 + site * 3) as f64;
        [at[0] + 0.09 * turn.sin(), at[1] + 0.09 * (1.7 * turn).cos()]
    };
    (0..5).map(|site| (0..30 + 11 * site).map(|i| row(site, i)).collect()).collect()
}

fn run(algorithm: Algorithm) -> Outcome {
    let prepared = |rows: &Vec<[f64; 2]>| {
        Prepared::new(&Rows::new(rows.concat(), 2).unwrap(), &domain(), OutOfBox::Refuse).unwrap()
    };
    let sites: Vec<Prepared> = rows().iter().map(prepared).collect();
    let seeding = Seeding::Candidates(Candidates::usual(3));
    let validity = Validity { judge_m: M, ..Validity::everything() };
    let recipe = Recipe { validity, ..Recipe::plain(algorithm, 3, seeding) };
    pooled::plain_federated(&mut recipe.run(&domain(), 5).unwrap(), &sites).unwrap()
}

/// Rows, `sum u` and `sum u^m` of every centre.
fn counted(centres: &Centres, m: f64) -> Vec<[f64; 3]> {
    let mut held = vec![[0.0; 3]; centres.k()];
    for row in rows().concat() {
        let squares: Vec<f64> =
            centres.rows().map(|c| c.iter().zip(&row).map(|(a, b)| (a - b) * (a - b)).sum()).collect();
        let shares: Vec<f64> = squares.iter().map(|square: &f64| square.powf(-1.0 / (m - 1.0))).collect();
        let all: f64 = shares.iter().sum();
        let nearest = (0..squares.len()).min_by(|a, b| squares[*a].total_cmp(&squares[*b])).unwrap();
        held[nearest][0] += 1.0;
        for (held, share) in held.iter_mut().zip(shares) {
            held[1] += share / all;
            held[2] += (share / all).powf(m);
        }
    }
    held
}

#[test]
fn sizes_mass_and_weight_mean_the_same_in_every_method() {
    let n = rows().concat().len() as u64;
    for algorithm in veilsum_testkit::methods::all() {
        let outcome = run(algorithm.clone());
        let (held, clusters) = (counted(&outcome.centres, outcome.m), &outcome.clusters);
        let what = format!("{algorithm:?}: {clusters:?}");
        for (c, [rows, mass, weight]) in held.into_iter().enumerate() {
            assert_eq!(clusters.sizes[c], Some(rows as u64), "{what}");
            for (found, known) in [(clusters.mass[c], mass), (clusters.weight[c], weight)] {
                // Nothing is shared among hard groups.
                let right = match algorithm.traits().fuzzifier {
                    Some(_) => found.is_some_and(|found| (found - known).abs() < 1e-6),
                    None => found.is_none(),
                };
                assert!(right, "{what}: {known}");
            }
        }
        assert_eq!(clusters.sizes.iter().flatten().sum::<u64>(), n, "{what}");
    }
}
