//! How many rounds does Anderson acceleration save? Both methods from the same first centres, on rows in one place.
//!
//! `cargo run --release -p veilsum-cluster --example rounds [folder]`: a folder of CSV files whose last column is a label,
//! `../shared/data` where none is named. Prints a table in Markdown.

use std::path::Path;

use veilsum_cluster::method::Seeding;
use veilsum_cluster::{Algorithm, Domain, OutOfBox, Outcome, Prepared, Recipe, Rows, Scaling, pooled};

const FILES: [&str; 8] =
    ["iris", "xclara", "s-set1", "pendigits", "waveform-v1", "g2/g2-2-60", "g2/g2-8-50", "bank-by-job"];
const MOST: u32 = 5_000;
const SEEDS: u64 = 3;

type Failed = Box<dyn std::error::Error>;

fn read(path: &Path) -> Result<(Domain, Prepared), Failed> {
    let text = std::fs::read_to_string(path)?;
    let (mut values, mut columns) = (Vec::new(), 0);
    for line in text.lines().skip(1).filter(|line| !line.trim().is_empty()) {
        let cells: Vec<&str> = line.split(',').collect();
        columns = cells.len() - 1;
        for cell in &cells[..columns] {
            values.push(cell.trim().parse::<f64>()?);
        }
    }
    let end = |column: usize, pick: fn(f64, f64) -> f64| {
        values.iter().skip(column).step_by(columns).copied().reduce(pick).unwrap_or_default()
    };
    let (lower, upper) = (0..columns).map(|column| (end(column, f64::min), end(column, f64::max))).unzip();
    let domain = Domain::new(lower, upper, Scaling::Box)?;
    let rows = Prepared::new(&Rows::new(values, columns)?, &domain, OutOfBox::Refuse)?;
    Ok((domain, rows))
}

fn run(algorithm: Algorithm, k: u32, seed: u64, (domain, rows): &(Domain, Prepared)) -> Result<Outcome, Failed> {
    let recipe = Recipe::plain(algorithm, k, Seeding::Uniform { seed });
    Ok(pooled::run(&mut recipe.run(domain, 1)?, rows)?)
}

fn main() -> Result<(), Failed> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "../shared/data".into());
    println!(
        "K = 3 to 10, {SEEDS} starts each: mean rounds of `fcm` and of `fcm-anderson`, most rounds more; ends with an objective"
    );
    println!("more than 0.1 % lower and higher than that of `fcm`.\n");
    println!("| data set | rows × columns | m | epsilon | fcm | fcm-anderson | ratio | most more | lower | higher |");
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let mut sums = [[0u32; 2]; 4];
    for name in FILES {
        let data = read(&Path::new(&folder).join(format!("{name}.csv")))?;
        for (at, (m, epsilon)) in [(2.0, 1e-5), (2.0, 5e-3), (1.5, 1e-5), (1.5, 5e-3)].into_iter().enumerate() {
            let (mut rounds, mut more, mut lower, mut higher, mut runs) = ([0; 2], i64::MIN, 0, 0, 0);
            for k in 3..=10 {
                for seed in 0..SEEDS {
                    let slow = run(Algorithm::Fcm { m, epsilon, max_rounds: MOST }, k, seed, &data)?;
                    let fast = run(Algorithm::FcmAnderson { m, epsilon, max_rounds: MOST }, k, seed, &data)?;
                    rounds = [rounds[0] + slow.rounds, rounds[1] + fast.rounds];
                    more = more.max(i64::from(fast.rounds) - i64::from(slow.rounds));
                    lower += u32::from(fast.objective < 0.999 * slow.objective);
                    higher += u32::from(fast.objective > 1.001 * slow.objective);
                    runs += 1;
                }
            }
            sums[at] = [sums[at][0] + rounds[0], sums[at][1] + rounds[1]];
            let mean = |rounds: u32| f64::from(rounds) / f64::from(runs);
            println!(
                "| {name} | {} × {} | {m} | {epsilon} | {:.1} | {:.1} | {:.2} | {more} | {lower} | {higher} |",
                data.1.len(),
                data.0.columns(),
                mean(rounds[0]),
                mean(rounds[1]),
                f64::from(rounds[1]) / f64::from(rounds[0]),
            );
        }
    }
    for (at, what) in ["m = 2, 1e-5", "m = 2, 5e-3", "m = 1.5, 1e-5", "m = 1.5, 5e-3"].into_iter().enumerate() {
        println!("all, {what}: {:.2}", f64::from(sums[at][1]) / f64::from(sums[at][0]));
    }
    Ok(())
}
