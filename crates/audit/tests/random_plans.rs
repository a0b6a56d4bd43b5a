//! Random plans over made-up and real rows: with noise no attack is better than the account allows, and an exact plan by which a row comes
//! out is one at risk. `VEILSUM_PLANS` is how many of each are tried on each set of rows.

use veilsum_audit::own::{Answer, Audited, Site};
use veilsum_cluster::{
    Algorithm, Centres, Recipe,
    method::{Scale, Seeding},
    privacy::Noise,
    random::Stream,
};
use veilsum_node::plan::{Categorical, Column, PlanSpec};
use veilsum_testkit::data::DataSet;

use crate::made::{LABEL, SEED, audited, fcm, kmeans, noisy, plan_of, sites, units};

/// Rows of three sites, and what a plan says of their columns.
struct Set {
    columns: Vec<Column>,
    categorical: Vec<Categorical>,
    sites: fn(usize, u64) -> Vec<Site>,
}

fn made_up() -> Set {
    Set { columns: units(&["x", "y"]), categorical: Vec::new(), sites }
}

/// Rows of a data set, drawn without putting back, for three sites.
fn drawn(name: &str, rows: usize, seed: u64, of: impl Fn(&[f64]) -> Vec<f64>) -> Vec<Site> {
    let data = DataSet::read(name);
    let mut order: Vec<usize> = (0..data.rows.len()).collect();
    Stream::new(seed, LABEL).shuffle(&mut order);
    let each = order.chunks(rows.min(order.len() / 3)).take(3);
    each.map(|part| Site { values: part.iter().map(|at| of(data.rows.row(*at))).collect() }).collect()
}

/// Whole years, an amount, and one of three kinds of education.
fn bank() -> Set {
    let column = |name: &str, lower, upper| Column { name: name.into(), lower, upper };
    let education = Categorical {
        column: "education".into(),
        categories: ["1", "2", "3"].map(str::to_owned).to_vec(),
        weight: 1.0,
    };
    let sites = |rows, seed| {
        let kind = |x: f64, of: f64| f64::from(u8::from(x == of));
        drawn("bank-by-job", rows, seed, |row| {
            vec![row[0], row[1], kind(row[2], 1.0), kind(row[2], 2.0), kind(row[2], 3.0)]
        })
    };
    Set {
        columns: vec![column("age", 15.0, 100.0), column("balance", -10_000.0, 120_000.0)],
        categorical: vec![education],
        sites,
    }
}

/// Four whole numbers from 0 to 100.
fn digits() -> Set {
    let column = |name: &str| Column { name: name.into(), lower: 0.0, upper: 100.0 };
    let sites = |rows, seed| drawn("pendigits", rows, seed, |row| row[..4].to_vec());
    Set { columns: ["a", "b", "c", "d"].map(column).to_vec(), categorical: Vec::new(), sites }
}

fn plans() -> u64 {
    std::env::var("VEILSUM_PLANS").ok().and_then(|n| n.parse().ok()).unwrap_or(4)
}

/// A plan, and how many rows a site has.
fn random(set: &Set, stream: &mut Stream) -> (PlanSpec, usize) {
    let (rounds, k, rows) = (2 + stream.below(8) as u32, 2 + stream.below(4) as u32, 20 + stream.below(150) as usize);
    let m = 1.2 + 2.0 * stream.unit();
    let algorithm = match stream.below(4) {
        0 | 1 => fcm(m, rounds),
        2 => kmeans(rounds),
        _ => Algorithm::Describe { bins: 2 + stream.below(20) as u32 },
    };
    let mut work =
        PlanSpec { categorical: set.categorical.clone(), ..plan_of(set.columns.clone(), algorithm, k, None) };
    if stream.below(4) == 0 && work.recipe.algorithm.traits().describes.is_none() {
        work.recipe.preparation = Scale::Standard;
    }
    if work.recipe.algorithm.traits().describes.is_some() {
        work.recipe = Recipe::plain(work.recipe.algorithm, 1, Seeding::Uniform { seed: 1 });
    }
    if stream.below(3) == 0 && work.recipe.algorithm.traits().describes.is_none() {
        let row = || (0..work.names().len()).map(|_| 0.9);
        let centres: Vec<Vec<f64>> = (0..k).map(|_| row().map(|most| most * stream.unit()).collect()).collect();
        work.recipe.seeding = Seeding::Given { centres: Centres::from_rows(&centres).unwrap() };
    }
    (work, rows)
}

/// [NOI-3] [NOI-6]: with noise no attack is better than the account allows, whatever it knows.
fn with_noise(set: &Set) {
    let mut stream = Stream::new(SEED, LABEL);
    let (mut played, mut at_risk) = (0, 0);
    for number in 0..plans() {
        let seed = SEED + number;
        let rho = 10f64.powf(2.0 * stream.unit() - 1.5);
        let (work, rows) = random(set, &mut stream);
        let work = noisy(work, Some(Noise::usual(rho, 3 * rows as u64).from_anywhere()));
        println!("seed {seed}: rho {rho}, {rows} rows, {:?}", work.recipe.algorithm);
        if let Err(why) = work.check() {
            println!("no plan: {why:?}");
            continue;
        }
        played += 1;
        let found = audited(work, (set.sites)(rows, seed));
        at_risk += u32::from(found.at_risk);
        assert!(found.tried.iter().all(|tried| tried.answer != Answer::Defect), "seed {seed}");
        if rho < 0.3 {
            assert!(!found.at_risk, "seed {seed}: rho {rho}");
        }
    }
    println!("with noise: {played} of {} plans played, {at_risk} at risk, of which none has rho < 0.3", plans());
    assert!(2 * played >= plans(), "{played} of {}", plans());
}

/// Memberships to the power of m, or 1 for the nearest centre: written down anew.
fn weights(x: &[f64], centres: &[Vec<f64>], m: Option<f64>) -> Vec<f64> {
    let far: Vec<f64> = centres.iter().map(|c| c.iter().zip(x).map(|(c, x)| (c - x) * (c - x)).sum::<f64>()).collect();
    let least = far.iter().copied().fold(f64::INFINITY, f64::min);
    let Some(m) = m else {
        let nearest = far.iter().position(|d| *d == least);
        return (0..far.len()).map(|k| f64::from(u8::from(Some(k) == nearest))).collect();
    };
    let pull: Vec<f64> = far.iter().map(|d| (least.max(1e-300) / d.max(1e-300)).powf(1.0 / (m - 1.0))).collect();
    let all: f64 = pull.iter().sum();
    pull.iter().map(|u| (u / all).powf(m)).collect()
}

/// By row of the first site, whether some combination of the totals of all rounds is that row: one weight, all others none.
fn comes_out(rows: &[Vec<f64>], own: usize, centres: &[Vec<f64>], m: Option<f64>, rounds: u32) -> usize {
    let (k, d) = (centres.len(), rows[0].len());
    let (mut centres, mut all) = (centres.to_vec(), vec![Vec::new(); rows.len()]);
    for _ in 0..rounds {
        let each: Vec<Vec<f64>> = rows.iter().map(|x| weights(x, &centres, m)).collect();
        for (kept, row) in all.iter_mut().zip(&each) {
            kept.extend(row);
        }
        for group in 0..k {
            let whole: f64 = each.iter().map(|w| w[group]).sum();
            if whole > 1e-9 {
                centres[group] =
                    (0..d).map(|f| each.iter().zip(rows).map(|(w, x)| w[group] * x[f]).sum::<f64>() / whole).collect();
            }
        }
    }
    // The totals' weights as an orthonormal basis over the rows (Gram and Schmidt), and how a basis comes of totals.
    let totals = all[0].len();
    let column = |e: usize| all.iter().map(|row| row[e]).collect::<Vec<f64>>();
    let mut basis: Vec<(Vec<f64>, Vec<f64>)> = Vec::new();
    for e in 0..totals {
        let mut own = column(e);
        let mut sums: Vec<f64> = (0..d).map(|f| own.iter().zip(rows).map(|(w, x)| w * x[f]).sum()).collect();
        let before = own.iter().map(|x| x * x).sum::<f64>().sqrt();
        for _ in 0..2 {
            for (other, of) in &basis {
                let part: f64 = own.iter().zip(other).map(|(a, b)| a * b).sum();
                own.iter_mut().zip(other).for_each(|(x, o)| *x -= part * o);
                sums.iter_mut().zip(of).for_each(|(x, o)| *x -= part * o);
            }
        }
        let norm = own.iter().map(|x| x * x).sum::<f64>().sqrt();
        if norm > 1e-6 * before {
            own.iter_mut().for_each(|x| *x /= norm);
            sums.iter_mut().for_each(|x| *x /= norm);
            basis.push((own, sums));
        }
    }
    let out = |at: &usize| {
        let share: f64 = basis.iter().map(|(own, _)| own[*at] * own[*at]).sum();
        let told = |f: usize| basis.iter().map(|(own, sums)| own[*at] * sums[f]).sum::<f64>() / share;
        share > 0.999 && (0..d).all(|f| (told(f) - rows[*at][f]).abs() < 0.01)
    };
    (0..own).filter(out).count()
}

fn says_what_it_gets(found: &Audited, columns: &[Column]) -> bool {
    let values = found.tried.iter().filter(|tried| tried.attack == "value");
    values.clone().count() > 0
        && values.into_iter().all(|tried| columns.iter().any(|c| tried.gets.starts_with(&c.name)))
}

/// Exact plans by which rows come out, as somebody finds who solves for them without this audit, are at risk.
fn exact(set: &Set) {
    let mut stream = Stream::new(SEED, LABEL);
    let (mut out, mut at_risk) = (0, 0);
    for number in 0..plans() {
        let seed = SEED + number;
        let (rounds, k, rows) =
            (1 + stream.below(10) as u32, 2 + stream.below(5) as usize, 12 + stream.below(100) as usize);
        let m = (stream.below(3) > 0).then(|| 1.1 + stream.unit());
        let algorithm = m.map_or(kmeans(rounds), |m| fcm(m, rounds));
        let sites = (set.sites)(rows, seed);
        let mut work = plan_of(set.columns.clone(), algorithm, k as u32, None);
        let width = set.columns.len();
        let boxed = |row: &Vec<f64>| {
            let of = |(x, column): (&f64, &Column)| (x - column.lower) / (column.upper - column.lower);
            row[..width].iter().zip(&set.columns).map(of).collect::<Vec<f64>>()
        };
        let all: Vec<Vec<f64>> = sites.iter().flat_map(|site| &site.values).map(boxed).collect();
        let centres: Vec<Vec<f64>> = (0..k)
            .map(|_| {
                all[stream.below(all.len() as u64) as usize]
                    .iter()
                    .map(|x| (x + 0.02 * stream.unit()).min(1.0))
                    .collect()
            })
            .collect();
        work.recipe.seeding = Seeding::Given { centres: Centres::from_rows(&centres).unwrap() };
        let found_alone = comes_out(&all, sites[0].values.len(), &centres, m, rounds);
        let numbers = |site: Site| Site { values: site.values.into_iter().map(|row| row[..width].to_vec()).collect() };
        println!("seed {seed}: K {k}, m {m:?}, {rounds} rounds, {rows} rows: {found_alone} come out by themselves");
        let found = audited(work, sites.into_iter().map(numbers).collect());
        out += u32::from(found_alone > 0);
        at_risk += u32::from(found.at_risk);
        assert!(found.at_risk || found_alone == 0, "seed {seed}");
        assert!(says_what_it_gets(&found, &set.columns), "seed {seed}: {found:?}");
    }
    println!("exact: {} plans, rows come out by themselves in {out}, {at_risk} at risk", plans());
}

/// Random plans over these rows, with noise and exactly.
fn plans_over(set: &Set) {
    with_noise(set);
    exact(set);
}

#[test]
fn plans_over_made_up_rows() {
    plans_over(&made_up());
}

veilsum_testkit::with_data!(plans_over_bank, plans_over_digits);

fn plans_over_bank() {
    plans_over(&bank());
}

fn plans_over_digits() {
    plans_over(&digits());
}
