//! What noise does to results: objectives of noisy runs over the best of pooled ones (specification, section 17).

use veilsum_cluster::method::{Seeding, TreeSeeding, Validity};
use veilsum_cluster::privacy::Noise;
use veilsum_cluster::random::Stream;
use veilsum_cluster::{
    Algorithm, Domain, Method, OutOfBox, Outcome, Prepared, Recipe, Rows, Scaling, Step, Totals, pooled,
};
use veilsum_testkit::data::DataSet;

/// A whole run with normal noise of the planned deviations on exact totals.
pub(crate) fn run(recipe: &Recipe, rows: &Prepared, stream: &mut Stream) -> Outcome {
    let domain = rows.domain();
    let levels = recipe.levels(domain).unwrap().expect("noise");
    let mut run = recipe.run(domain, 5).unwrap();
    let mut step = run.next(None).unwrap();
    loop {
        let batch = match step {
            Step::Done(outcome) => return *outcome,
            Step::Ask(batch) => batch,
        };
        let inner = batch.domain(domain).unwrap();
        let mut values = pooled::totals(&batch, std::slice::from_ref(rows)).unwrap().values;
        let mut rest = values.as_mut_slice();
        for query in &batch.queries {
            for (block, level) in query.layout(&inner).iter().zip(levels.of(query, &inner).expect("accounted for")) {
                let (own, next) = rest.split_at_mut(block.len);
                own.iter_mut().for_each(|x| *x += level.deviation * stream.normal_pair()[0]);
                rest = next;
            }
        }
        step = run.next(Some(&Totals { values, rows: None })).unwrap();
    }
}

/// The objective at the centres of a run, over all rows.
fn objective(algorithm: &Algorithm, outcome: &Outcome, rows: &Prepared) -> f64 {
    let packed = rows.packed();
    match algorithm.fuzzifier() {
        Some(m) => veilsum_cluster::kernel::fuzzy_sums(packed, &outcome.centres, m).unwrap().objective,
        None => packed.to_rows().iter().map(|x| veilsum_cluster::distance::nearest(x, outcome.centres.rows()).1).sum(),
    }
}

fn best(algorithm: &Algorithm, k: u32, rows: &Prepared) -> f64 {
    let algorithm = match algorithm {
        Algorithm::Fcm { m, .. } => Algorithm::Fcm { m: *m, epsilon: 1e-6, max_rounds: 300 },
        _ => Algorithm::Kmeans { epsilon: 0.0, max_rounds: 300 },
    };
    let tree = |seed| Seeding::Tree(TreeSeeding { levels: 10, ..TreeSeeding::usual(seed, k, rows.domain().columns()) });
    let starts = (0..6).map(|seed| if seed % 3 == 2 { Seeding::Uniform { seed } } else { tree(seed) });
    let outcomes = starts.map(|seeding| {
        let recipe = Recipe {
            validity: Validity { full: true, ..Validity::basic() },
            ..Recipe::plain(algorithm.clone(), k, seeding)
        };
        pooled::run(&mut recipe.run(rows.domain(), 1).unwrap(), rows)
            .map_or(f64::INFINITY, |o| objective(&algorithm, &o, rows))
    });
    outcomes.fold(f64::INFINITY, f64::min)
}

fn boxed(rows: &Rows) -> Prepared {
    let domain = Domain::around(rows, Scaling::Box).unwrap();
    Prepared::new(rows, &domain, OutOfBox::Clip).unwrap()
}

/// `VEILSUM_NOISE_TABLE=1` prints what every data set, budget and number of rounds gives.
#[test]
fn a_table_of_budgets() {
    if std::env::var_os("VEILSUM_NOISE_TABLE").is_none() {
        return;
    }
    for (name, k) in [
        ("xclara", 3),
        ("s-set1", 15),
        ("iris", 3),
        ("g2/g2-2-40", 2),
        ("g2/g2-8-40", 2),
        ("g2/g2-64-40", 2),
        ("pendigits", 10),
        ("waveform-v1", 3),
    ] {
        let Some(set) = DataSet::read(name) else {
            println!("{name} is missing");
            continue;
        };
        let rows = boxed(&set.rows);
        for hard in [false, true] {
            let algorithm = |max_rounds| match hard {
                true => Algorithm::Kmeans { epsilon: 0.0, max_rounds },
                false => Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds },
            };
            let best = best(&algorithm(10), k, &rows);
            for rho in [1.0, 0.5, 0.25] {
                for rounds in [4, 6, 8, 10] {
                    let mut ratios: Vec<f64> = (0..9)
                        .map(|seed| {
                            let tree = TreeSeeding::usual(seed, k, rows.domain().columns());
                            let mut recipe = Recipe::plain(algorithm(rounds), k, Seeding::Tree(tree));
                            recipe.noise = Some(Noise::usual(rho, rows.len() as u64));
                            let outcome = run(&recipe, &rows, &mut Stream::new(seed, b"veilsum test stream     "));
                            objective(&algorithm(rounds), &outcome, &rows) / best
                        })
                        .collect();
                    ratios.sort_by(f64::total_cmp);
                    println!(
                        "{name} {} rho {rho} rounds {rounds}: median {:.4} worst {:.3}",
                        if hard { "kmeans" } else { "fcm" },
                        ratios[4],
                        ratios[8]
                    );
                }
            }
        }
    }
}
