//! Finishing a run from the totals that are out: how near it comes to the undisturbed end, and where it is refused.

mod common;

use std::time::Instant;

use common::{DataSet, max_difference, prepare_all, split};
use veilsum_cluster::finish::{Finished, GATE, Refusal, Released, finish};
use veilsum_cluster::method::{Clusters, LocalRange, Rule, Seeding, Validity};
use veilsum_cluster::query::LocalSteps;
use veilsum_cluster::{
    Algorithm, Batch, Domain, Method, MethodError, OutOfBox, Outcome, Prepared, Recipe, Run, Step, Totals, answer,
    synthetic,
};

const SITES: usize = 10;

/// Totals whose parts every site rounds to steps of 2^-`bits` of the block's bound.
fn released(batch: &Batch, sites: &[Prepared], bits: i32) -> Released {
    let layout = batch.layout(sites[0].domain()).unwrap();
    let steps: Vec<f64> = layout.iter().map(|block| block.bound * 2f64.powi(-bits)).collect();
    let of = |(block, step): (&veilsum_cluster::Block, &f64)| vec![*step; block.len];
    let units: Vec<f64> = layout.iter().zip(&steps).flat_map(of).collect();
    let mut values = vec![0.0; units.len()];
    for site in sites {
        let part = answer(batch, site).unwrap().values;
        for ((total, x), step) in values.iter_mut().zip(part).zip(&units) {
            *total += (x / step).round_ties_even() * step;
        }
    }
    Released { batch: batch.clone(), totals: Totals { values, rows: None }, steps }
}

/// Asks until the run is done, or so many questions are answered.
fn ask(run: &mut Run, sites: &[Prepared], bits: i32, questions: usize) -> (Vec<Released>, Option<Outcome>) {
    let mut out = Vec::new();
    let mut step = run.next(None).unwrap();
    loop {
        match step {
            Step::Done(outcome) => return (out, Some(*outcome)),
            Step::Ask(_) if out.len() == questions => return (out, None),
            Step::Ask(batch) => {
                out.push(released(&batch, sites, bits));
                step = run.next(Some(&out.last().unwrap().totals)).unwrap();
            }
        }
    }
}

struct Measured {
    /// Largest difference to the undisturbed end, of the last opened centres and of the finished ones.
    stopped: f64,
    finished: f64,
    result: Finished,
}

/// Loses a site after so many rounds.
fn lose(recipe: &Recipe, domain: &Domain, sites: &[Prepared], bits: i32, rounds: usize) -> Measured {
    let run = || recipe.run(domain, sites.len() as u32).unwrap().coarse(2f64.powi(-bits));
    let undisturbed = ask(&mut run(), sites, bits, usize::MAX).1.unwrap();
    let mut disturbed = run();
    let (out, done) = ask(&mut disturbed, sites, bits, rounds);
    assert!(done.is_none(), "it was over before the loss");
    let stopped = disturbed.stop_here().unwrap();
    let began = Instant::now();
    let result = finish(&disturbed, &out).unwrap();
    println!("{:.0} ms, {result:?}", began.elapsed().as_secs_f64() * 1e3);
    let off = |centres| max_difference(centres, &undisturbed.centres);
    Measured { stopped: off(&stopped.centres), finished: off(&result.outcome.centres), result }
}

fn fcm(k: u32, seed: u64) -> Recipe {
    Recipe::plain(Algorithm::Fcm { m: 2.0, epsilon: 1e-9, max_rounds: 400 }, k, Seeding::Uniform { seed })
}

fn data(name: &str) -> Option<(Domain, Vec<Prepared>)> {
    let data = DataSet::read(name)?;
    let domain = data.boxed();
    let sites = prepare_all(&split(&data.rows, SITES), &domain);
    Some((domain, sites))
}

#[test]
fn iris_and_xclara_end_where_they_would_have() {
    for (name, rounds) in [("iris", 11), ("xclara", 11), ("xclara", 6)] {
        let Some((domain, sites)) = data(name) else { return };
        for bits in [40, 20] {
            for seed in 0..4 {
                let Measured { stopped, finished, result } = lose(&fcm(3, seed), &domain, &sites, bits, rounds);
                println!("{name}, {rounds} rounds, 2^-{bits}, seed {seed}: stopped {stopped:.1e}, finished {finished:.1e}");
                let found = result.outcome.extrapolated.expect("passes the gate");
                assert!(found.rounds > 0 && found.held_out_error < GATE && found.at_rest);
                assert!(!result.outcome.converged);
                if rounds == 11 {
                    assert!(finished < 1e-6, "{name} 2^-{bits} seed {seed}: {finished:.1e}");
                }
            }
        }
    }
}

#[test]
fn many_clusters_and_many_columns_are_refused() {
    for (name, k) in [("s-set1", 15), ("pendigits", 10)] {
        let Some((domain, sites)) = data(name) else { return };
        for (bits, seed) in [(40, 0), (20, 0), (40, 1)] {
            let mut run = fcm(k, seed).run(&domain, SITES as u32).unwrap();
            let (out, _) = ask(&mut run, &sites, bits, 11);
            let began = Instant::now();
            let found = finish(&run, &out).unwrap();
            println!("{name} 2^-{bits} seed {seed}: {:.1} s, {:?}", began.elapsed().as_secs_f64(), found.refused);
            assert!(matches!(found.refused, Some(Refusal::Inexact { .. })), "{:?}", found.refused);
            assert_eq!(found.outcome.centres, run.fits()[0].centres, "the last opened centres");
            assert!(!found.outcome.converged && found.outcome.extrapolated.is_none() && found.outcome.rounds == 11);
        }
    }
}
