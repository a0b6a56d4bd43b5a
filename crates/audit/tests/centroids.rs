//! Reconstruction from disclosed centroids (TAR: Yang, Luo & Li 2025, arXiv 2511.07073) on the paper's kinds of rows: iris, and few pictures of
//! many people. The pictures are made up: 64 numbers, four of each of 40 people, where Olivetti's have 4,096, ten of each. Exact rounds give rows
//! away; with noise nothing is better than the account allows. First centres were searched for at which rows move alone: the attack can
//! succeed, and how often it does is not asked.

use veilsum_audit::own::{Answer, Site};
use veilsum_cluster::{Centres, method::Seeding, privacy::Noise, random::Stream};
use veilsum_node::plan::{Column, PlanSpec};
use veilsum_testkit::data::DataSet;

use crate::made::{LABEL, SEED, answer, audited, kmeans, noisy, plan_of};

/// Deals rows to three sites in turn.
fn dealt(rows: &[Vec<f64>]) -> Vec<Site> {
    let of = |site| Site { values: rows.iter().skip(site).step_by(3).cloned().collect() };
    (0..3).map(of).collect()
}

/// The same plan exactly and with noise.
fn succeeds_exactly_alone(work: &PlanSpec, rows: &[Vec<f64>]) {
    println!("seed {SEED}");
    let exact = audited(work.clone(), dealt(rows));
    assert_eq!(answer(&exact, "moving rows", None), Answer::Yes);
    assert!(exact.at_risk);
    let noise = Some(Noise::usual(0.25, rows.len() as u64).from_anywhere());
    let found = audited(noisy(work.clone(), noise), dealt(rows));
    assert_eq!(answer(&found, "moving rows", None), Answer::No);
    assert!(!found.at_risk, "{:?}", found.tried);
}

fn columns(count: usize, upper: f64) -> Vec<Column> {
    (0..count).map(|at| Column { name: format!("f{at}"), lower: 0.0, upper }).collect()
}

/// A run of hard groups from these first centres.
fn from(centres: &[Vec<f64>], columns: Vec<Column>, rounds: u32) -> PlanSpec {
    let mut work = plan_of(columns, kmeans(rounds), centres.len() as u32, None);
    work.recipe.seeding = Seeding::Given { centres: Centres::from_rows(centres).unwrap() };
    work
}

#[test]
fn rows_that_move_come_out_of_pictures() {
    let mut stream = Stream::new(SEED, LABEL);
    let people: Vec<Vec<f64>> = (0..40).map(|_| (0..64).map(|_| 0.2 + 0.6 * stream.unit()).collect()).collect();
    let mut picture = |of: &Vec<f64>| -> Vec<f64> {
        of.iter().map(|x| (x + 0.2 * stream.normal_pair()[0]).clamp(0.0, 1.0)).collect()
    };
    let rows: Vec<Vec<f64>> = (0..160).map(|at| picture(&people[at % 40])).collect();
    // The server begins with pictures of others.
    let centres: Vec<Vec<f64>> = people.iter().step_by(3).map(picture).collect();
    succeeds_exactly_alone(&from(&centres, columns(64, 1.0), 5), &rows);
}

veilsum_testkit::with_data!(rows_that_move_come_out_of_iris);

fn rows_that_move_come_out_of_iris() {
    let data = DataSet::read("iris");
    let rows: Vec<Vec<f64>> = (0..data.rows.len()).map(|at| data.rows.row(at).to_vec()).collect();
    let boxed = |at: usize| rows[(7 + 3 * at) % rows.len()].iter().map(|x| x / 8.0).collect();
    let centres: Vec<Vec<f64>> = (0..8).map(boxed).collect();
    succeeds_exactly_alone(&from(&centres, columns(4, 8.0), 15), &rows);
}
