//! Centres that the product's noisy plan finds on one table, for `benches/dp`: `dp TABLE METHODS K RHOS SEEDS`.
//!
//! TABLE is a CSV file of numbers without a header. Its columns are in the public range from -1 to 1. METHODS and RHOS are lists with
//! commas. One line of JSON is printed for each run: what was asked, the centres, and whether `plan check` calls such a plan useful.

use std::{env, error::Error, fs};

use serde_json::json;
use veilsum_cluster::{Domain, OutOfBox, Prepared, Rows, Scaling};
use veilsum_lab::experiments::{dp, noisy_defaults};

/// Sites that the rows are dealt to, of which one may collude with the coordinator.
const SITES: usize = 3;

fn list(text: &str) -> Result<Vec<f64>, std::num::ParseFloatError> {
    text.split(',').map(str::parse).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [table, methods, k, rhos, seeds] => run(table, methods, k.parse()?, &list(rhos)?, seeds.parse()?),
        _ => Err("usage: dp TABLE METHODS K RHOS SEEDS".into()),
    }
}

fn run(table: &str, methods: &str, k: u32, rhos: &[f64], seeds: u64) -> Result<(), Box<dyn Error>> {
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
        for rho in rhos {
            let recipe = |seed| noisy_defaults::recipe(method == "kmeans", *rho, k, rows as u64, 100 * seed);
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
                    json!({ "method": method, "rho": rho, "seed": seed, "useful": useful, "centres": centres,
                        "failure": failure })
                );
            }
        }
    }
    Ok(())
}
