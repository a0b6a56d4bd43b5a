//! What noise does to results (specification, section 17).

use veilsum_cluster::method::{Candidates, Choice, Pick, Scale, Seeding, Validity};
use veilsum_cluster::privacy::Noise;
use veilsum_cluster::random::Stream;
use veilsum_cluster::{
    Algorithm, Clusters, Domain, OutOfBox, Outcome, Prepared, Recipe, Rows, Scaling, Totals, pooled,
};

/// A whole run with normal noise of the planned deviations on exact totals.
pub(crate) fn run(recipe: &Recipe, rows: &Prepared, stream: &mut Stream) -> Outcome {
    let domain = rows.domain();
    let levels = recipe.levels(domain).unwrap().expect("noise");
    crate::drive(&mut recipe.run(domain, 5).unwrap(), |_, batch| {
        let inner = batch.domain(domain).unwrap();
        let mut values = pooled::totals(batch, std::slice::from_ref(rows)).unwrap().values;
        let mut rest = values.as_mut_slice();
        for query in &batch.queries {
            for (block, level) in query.layout(&inner).iter().zip(levels.of(query, &inner).expect("accounted for")) {
                let (own, next) = rest.split_at_mut(block.len);
                own.iter_mut().for_each(|x| *x += level.deviation * stream.normal_pair()[0]);
                rest = next;
            }
        }
        Totals { values, rows: None }
    })
}

/// Two thousand rows of three clusters in the unit square.
fn made_up() -> (Prepared, Domain) {
    let mut stream = Stream::new(3, b"veilsum test stream     ");
    let mut values = Vec::new();
    for i in 0..2000u32 {
        let centre = [[20.0, 0.3], [60.0, 0.4], [80.0, 0.7]][i as usize % 3];
        let [a, b] = stream.normal_pair();
        values.extend([centre[0] + 3.0 * a, centre[1] + 0.03 * b]);
    }
    let domain = Domain::new(vec![0.0, 0.0], vec![100.0, 1.0], Scaling::Box).unwrap();
    let rows = Rows::new(values, 2).unwrap();
    let prepared = Prepared::new(&rows, &domain, OutOfBox::Clip).unwrap();
    (prepared, domain)
}

/// Recipes of every family that runs under noise.
fn families() -> Vec<(&'static str, Recipe)> {
    let seeding = || Seeding::Candidates(Candidates::usual(1));
    let fcm = Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: 6 };
    let plain = |algorithm| Recipe::plain(algorithm, 3, seeding());
    let describe = Algorithm::Describe { bins: 16 };
    vec![
        ("fcm", plain(fcm.clone())),
        ("kmeans", plain(Algorithm::Kmeans { epsilon: 0.0, max_rounds: 6 })),
        ("describe", Recipe::plain(describe, 1, Seeding::Uniform { seed: 1 })),
        ("standard", Recipe { preparation: Scale::Standard, ..plain(fcm.clone()) }),
        ("everything", Recipe { validity: Validity::everything(), ..plain(fcm.clone()) }),
        (
            "choice",
            Recipe {
                clusters: Clusters { min: 2, max: 4 },
                validity: Validity { full: true, ..Validity::basic() },
                choice: Choice { by: Pick::Gap, elbow: false },
                ..Recipe::plain(fcm, 4, seeding())
            },
        ),
    ]
}

fn noise_of(recipe: &Recipe, rho: f64) -> Option<Noise> {
    let usual = Noise { tau: 0.5, ..Noise::usual(rho, 2000) };
    Some(if matches!(recipe.seeding, Seeding::Uniform { .. }) { usual.from_anywhere() } else { usual })
}

/// [NOI-7]: hardly any noise changes nothing, and no noise is so much that a run breaks off.
#[test]
fn every_family_runs_under_little_and_under_much_noise() {
    let (rows, domain) = made_up();
    for (name, mut recipe) in families() {
        let plain = pooled::run(&mut recipe.run(&domain, 1).unwrap(), &rows).unwrap();
        for (rho, seed) in [(900.0, 1), (1e-4, 2), (1e-4, 3), (1e-4, 4), (0.01, 5)] {
            recipe.noise = noise_of(&recipe, rho);
            if let (true, Some(noise)) = (name == "everything", &mut recipe.noise) {
                // Its many numbers share what validation has.
                noise.validation_share = 0.6;
            }
            let outcome = run(&recipe, &rows, &mut Stream::new(seed, b"veilsum test stream     "));
            let inside = |x: &f64| (-1e-9..=1.0 + 1e-9).contains(x);
            assert!(outcome.centres.as_slice().iter().all(inside), "{name}, rho {rho}: {:?}", outcome.centres);
            if rho < 1.0 {
                continue;
            }
            let off = veilsum_cluster::metrics::matched_distance(&outcome.centres, &plain.centres).unwrap().max_abs;
            // Six rounds leave a little; how far a row may pull has grown until none is clipped.
            assert!(outcome.centres.k() == plain.centres.k() && off < 0.001, "{name}: off by {off}");
            if let (Some(found), Some(plain)) = (&outcome.description, &plain.description) {
                assert!(found.rows.abs_diff(plain.rows) < 5 && found.histograms[0].len() == 16);
                for (found, plain) in found.variances.iter().zip(&plain.variances) {
                    assert!((found / plain - 1.0).abs() < 0.02, "{found} {plain}");
                }
            }
            if name == "everything" {
                let of = |o: &Outcome| {
                    let i = &o.indices;
                    [i.davies_bouldin, i.xie_beni, i.calinski_harabasz].map(Option::unwrap)
                };
                for (found, plain) in of(&outcome).into_iter().zip(of(&plain)) {
                    // What rows scatter within clusters is little beside its noise.
                    assert!((found / plain - 1.0).abs() < 0.4, "{:?}, {plain}", of(&outcome));
                }
            }
        }
    }
}

/// [NOI-6]: the levels of all questions of a run add up to its rho, in every family.
#[test]
fn every_family_spends_what_its_plan_says() {
    let (rows, domain) = made_up();
    for (name, mut recipe) in families() {
        recipe.noise = noise_of(&recipe, 1.0);
        let levels = recipe.levels(&domain).unwrap().unwrap();
        let (mut spent, mut questions) = (levels.of_count().rho(), 0);
        let again = (1.0 - levels.rho()) / f64::from(recipe.noise.expect("noise").retries);
        crate::drive(&mut recipe.run(&domain, 5).unwrap(), |_, batch| {
            let inner = batch.domain(&domain).unwrap();
            let own = batch.queries.iter().flat_map(|query| levels.of(query, &inner).expect("accounted for"));
            let cost: f64 = own.map(|level| level.rho()).sum();
            assert!(cost <= again, "{name}: {} costs {cost}", batch.kind());
            (spent, questions) = (spent + cost, questions + 1);
            Totals { rows: None, ..pooled::totals(batch, std::slice::from_ref(&rows)).unwrap() }
        });
        assert!(questions <= recipe.max_questions(), "{name}: {questions}");
        let all = levels.rho();
        assert!(spent <= all * (1.0 + 1e-9) && spent > 0.9 * all, "{name}: {spent} of {all}");
    }
}
