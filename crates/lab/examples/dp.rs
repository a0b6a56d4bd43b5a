//! Centres that the product's noisy plan finds on one table, for `benches/dp`: `dp TABLE METHODS K EPSILONS SEEDS`.
//!
//! TABLE is a CSV file of numbers without a header. Its columns are in the public range from -1 to 1. METHODS and EPSILONS are lists with
//! commas. One line of JSON is printed for each run: what was asked, the centres, and whether `plan check` calls such a plan useful.
//! `dp rho EPSILONS` prints what the accountant makes of them at [`DELTA`].

use std::{env, error::Error, fs};

use serde_json::json;
use veilsum_cluster::{Domain, OutOfBox, Prepared, Rows, Scaling, privacy};
use veilsum_lab::experiments::{dp, noisy_defaults};

/// Epsilon is taken at this delta for every estimator of the bench.
const DELTA: f64 = 1e-6;
/// Sites that the rows are dealt to, of which one may collude with the coordinator.
const SITES: usize = 3;

fn list(text: &str) -> Result<Vec<f64>, std::num::ParseFloatError> {
    text.split(',').map(str::parse).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["rho", epsilons] => {
            for epsilon in list(epsilons)? {
                println!("{}", json!({ "epsilon": epsilon, "rho": privacy::rho(epsilon, DELTA) }));
            }
            Ok(())
        }
        [table, methods, k, epsilons, seeds] => run(table, methods, k.parse()?, &list(epsilons)?, seeds.parse()?),
        _ => Err("usage: dp TABLE METHODS K EPSILONS SEEDS, or dp rho EPSILONS".into()),
    }
}

fn run(table: &str, methods: &str, k: u32, epsilons: &[f64], seeds: u64) -> Result<(), Box<dyn Error>> {
    let text = fs::read_to_string(table)?;
    let (mut sites, mut columns, mut rows) = (vec![Vec::new(); SITES], 0, 0);
    for line in text.lines() {
        let row = list(line)?;
        columns = row.len();
        sites[rows % SITES].extend(row);
        rows += 1;
    }
    let domain = Domain::new(vec![-1.0; columns], vec![1.0; columns], Scaling::Box)?;
    let prepared = |values| Ok(Prepared::new(&Rows::new(values, columns)?, &domain, OutOfBox::Clip)?);
    let sites = sites.into_iter().map(prepared).collect::<Result<Vec<_>, Box<dyn Error>>>()?;
    for method in methods.split(',') {
        for epsilon in epsilons {
            let rho = privacy::rho(*epsilon, DELTA);
            let recipe = |seed| noisy_defaults::recipe(method == "kmeans", rho, k, rows as u64, 100 * seed);
            let useful = noisy_defaults::useful(&recipe(1), &domain, SITES)?;
            for seed in 1..=seeds {
                let found = dp::noisy(&recipe(seed), &domain, &sites, seed).map(|outcome| {
                    let centres = domain.centres_to_original(&outcome.centres);
                    centres.map(|centres| centres.rows().map(<[f64]>::to_vec).collect::<Vec<_>>())
                });
                let (centres, failure) = match found {
                    Ok(centres) => (Some(centres?), None),
                    Err(failure) => (None, Some(failure.to_string())),
                };
                println!(
                    "{}",
                    json!({ "method": method, "epsilon": epsilon, "rho": rho, "seed": seed, "useful": useful, "centres": centres,
                        "failure": failure })
                );
            }
        }
    }
    Ok(())
}
