//! The audit of one's own plan: it says yes where a row is at risk, and no attack does better than the account allows.

use std::sync::Arc;

use veilsum_audit::own::{self, Answer, Audited, Knows, Scene, Site};
use veilsum_cluster::{Algorithm, Centres, Recipe, Rows, method::Seeding, privacy::Noise, random::Stream};
use veilsum_node::{
    documents::{self, RowsFrom},
    loopback::{LoopbackSite, default_terms, fresh, roster_of},
    plan::{Column, OutOfBox, PlanSpec},
};
use veilsum_proto::plan::Terms;

const SEED: u64 = 5;
const LABEL: &[u8; 24] = b"veilsum audit own tests ";

/// Three sites in two clumps of a corner, and at the first site an outlier.
fn sites(rows: usize, seed: u64) -> Vec<Site> {
    let mut stream = Stream::new(seed, LABEL);
    let mut row = || {
        let [x, y] = stream.normal_pair();
        let (at, spread) = if stream.unit() < 0.5 { (0.05, 0.01) } else { (0.15, 0.02) };
        vec![at + spread * x, at + spread * y]
    };
    let mut all: Vec<Site> =
        (0..3).map(|_| Site { values: (0..rows).map(|_| row()).collect(), labels: None }).collect();
    all[0].values[0] = vec![0.7, 0.5];
    all
}

fn plan(algorithm: Algorithm, k: u32, noise: Option<Noise>) -> PlanSpec {
    let column = |name: &str| Column { name: name.into(), lower: 0.0, upper: 1.0 };
    let work = PlanSpec::plain(vec![column("x"), column("y")], algorithm, k, Seeding::Uniform { seed: 1 });
    let recipe = Recipe { noise, ..work.recipe.clone() };
    let step_bits = noise.map(|_| 20);
    PlanSpec { recipe, step_bits, out_of_box: OutOfBox::Clip, ..work }
}

fn scene(work: PlanSpec, sites: Vec<Site>) -> Scene {
    let loopback = |site: &Site| {
        let columns = site.values[0].len();
        LoopbackSite::new("site", Rows::new(site.values.concat(), columns).unwrap())
    };
    let terms = default_terms(&sites.iter().map(loopback).collect::<Vec<_>>(), &work);
    Scene::over(work, Arc::new(terms), sites, true, SEED)
}

fn audited(work: PlanSpec, sites: Vec<Site>) -> Audited {
    let found = own::audit(&scene(work, sites), SEED, |_| ()).unwrap();
    found.print(&mut std::io::stdout()).unwrap();
    found
}

fn answer(found: &Audited, attack: &str, knows: Option<Knows>) -> Answer {
    found
        .tried
        .iter()
        .find(|tried| tried.attack == attack && tried.knows == knows)
        .unwrap_or_else(|| panic!("{attack}"))
        .answer
}

fn fcm(m: f64) -> Algorithm {
    Algorithm::Fcm { m, epsilon: 0.0, max_rounds: 12 }
}

#[test]
fn an_exact_plan_that_publishes_a_record_is_refused() {
    println!("seed {SEED}");
    let mut work = plan(fcm(1.5), 3, None);
    let centres = Centres::from_rows(&[vec![0.05, 0.05], vec![0.15, 0.15], vec![0.6, 0.6]]).unwrap();
    work.recipe.seeding = Seeding::Given { centres };
    let found = audited(work, sites(60, SEED));
    assert!(found.at_risk);
    assert_eq!(answer(&found, "published record", None), Answer::Yes);
    assert_eq!(answer(&found, "presence", Some(Knows::NoRow)), Answer::Yes);
    assert_eq!(answer(&found, "presence", Some(Knows::AllOthers)), Answer::Yes);
    assert_eq!(answer(&found, "value", Some(Knows::AllOthers)), Answer::Yes);
    assert!(found.page().contains("Rows are at risk"));
}

#[test]
fn chosen_first_centres_are_found_out() {
    println!("seed {SEED}");
    let found = audited(plan(fcm(2.0), 3, None), sites(60, SEED));
    assert_eq!(answer(&found, "chosen start", Some(Knows::NoRow)), Answer::Yes);
}

#[test]
fn a_count_of_one_row_is_found_out() {
    println!("seed {SEED}");
    let mut work = plan(Algorithm::Kmeans { epsilon: 0.0, max_rounds: 12 }, 3, None);
    let centres = Centres::from_rows(&[vec![0.05, 0.05], vec![0.15, 0.15], vec![0.6, 0.6]]).unwrap();
    work.recipe.seeding = Seeding::Given { centres };
    let found = audited(work, sites(60, SEED));
    assert_eq!(answer(&found, "few in a cell", None), Answer::Yes);
}

/// [NOI-3] [NOI-6]: with noise no attack is better than the account allows, whatever it knows.
#[test]
fn with_noise_nothing_beats_the_account() {
    let plans: u64 = std::env::var("VEILSUM_PLANS").ok().and_then(|n| n.parse().ok()).unwrap_or(6);
    let mut stream = Stream::new(SEED, LABEL);
    let mut played = 0;
    for number in 0..plans {
        let seed = SEED + number;
        let rho = 10f64.powf(2.0 * stream.unit() - 1.5);
        let (k, m, rows) = (2 + stream.below(4) as u32, 1.2 + 2.0 * stream.unit(), 20 + stream.below(200) as usize);
        let rounds = 2 + stream.below(8) as u32;
        let algorithm = match stream.below(2) {
            0 => Algorithm::Fcm { m, epsilon: 0.0, max_rounds: rounds },
            _ => Algorithm::Kmeans { epsilon: 0.0, max_rounds: rounds },
        };
        let noise = Noise::usual(rho, 3 * rows as u64);
        let noise = if stream.below(2) == 0 { noise } else { noise.from_anywhere() };
        let work = plan(algorithm, k, Some(noise));
        println!("seed {seed}: rho {rho}, K {k}, m {m}, {rows} rows, {rounds} rounds");
        if work.check().is_err() {
            continue;
        }
        played += 1;
        let found = audited(work, sites(rows, seed));
        assert!(found.tried.iter().all(|tried| tried.answer != Answer::Defect), "seed {seed}");
        if rho < 0.3 {
            assert!(!found.at_risk, "seed {seed}: rho {rho}");
        }
    }
    assert!(2 * played >= plans, "{played} of {plans}");
}

/// The command's way: a roster, a plan and rows as files.
#[test]
fn a_plan_is_audited_from_files() {
    println!("seed {SEED}");
    let folder = std::env::temp_dir().join(format!("veilsum-own-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let sites = sites(60, SEED);
    let work = plan(fcm(2.0), 3, Some(Noise::usual(0.25, 180).from_anywhere()));
    let loopback = |site: &Site| LoopbackSite::new("site", Rows::new(site.values.concat(), 2).unwrap());
    let terms = default_terms(&sites.iter().map(loopback).collect::<Vec<_>>(), &work);
    let keys = fresh(3);
    let roster = roster_of(&keys, &["a", "b", "c"]);
    let terms = Terms { roster: roster.hash(), ..terms };
    documents::write_roster(folder.join("roster.toml"), &roster.clone().sign(&keys[0]).unwrap()).unwrap();
    documents::write_plan(folder.join("plan.toml"), &terms.sign(&roster, &keys[0]).unwrap()).unwrap();
    let own = folder.join("rows.csv");
    let lines: Vec<String> = sites[0].values.iter().map(|row| format!("{},{}", row[0], row[1])).collect();
    std::fs::write(&own, format!("x,y\n{}\n", lines.join("\n"))).unwrap();
    let federation = own::federation(&folder.join("plan.toml"), None).unwrap();
    let scene = Scene::new(&federation, &RowsFrom::from(&own), &[], SEED).unwrap();
    let found = own::audit(&scene, SEED, |_| ()).unwrap();
    assert_eq!((found.own_rows, found.sites, found.drawn, found.at_risk), (60, 3, true, false));
    let one = Scene::new(&federation, &RowsFrom::from(&own), std::slice::from_ref(&own), SEED);
    assert!(one.is_err_and(|why| why.to_string().contains("1 files for the 2 other sites")));
    std::fs::remove_dir_all(&folder).unwrap();
}
