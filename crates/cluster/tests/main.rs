//! The mathematics: known answers, properties, hostile questions. One file for each behaviour, one program for all of them.

mod bad_inputs;
mod conversation;
mod describe;
mod exact_sums;
mod findings;
mod five_gaussians;
mod forecast;
mod held;
mod hostile_questions;
mod k_under_noise;
mod kernel;
mod near_one;
mod noisy;
mod papers;
mod properties;
mod spread;
mod vectors_indices;

use veilsum_cluster::{
    Algorithm, Batch, Centres, Domain, Error, Outcome, Recipe, Run, Scaling, Step, Totals, method::Seeding,
};

/// Drives a run to its end with what is made of each question.
fn drive(run: &mut Run, mut totals: impl FnMut(&mut Run, &Batch) -> Totals) -> Outcome {
    let mut step = run.next(None).unwrap();
    while let Step::Ask(batch) = &step {
        let found = totals(run, batch);
        step = run.next(Some(&found)).unwrap_or_else(|e| panic!("{e} after {batch:?}"));
    }
    let Step::Done(outcome) = step else { panic!("not done") };
    *outcome
}

/// Fuzzy c-means for `k` centres from given ones, in working units and without a box: no bound is as good as one that nothing reaches.
fn plain_fcm(k: usize, m: f64, epsilon: f64, max_rounds: u32, start: &Centres) -> Result<Run, Error> {
    let d = start.columns();
    let domain = Domain::new(vec![-1e150; d], vec![1e150; d], Scaling::None).expect("a box");
    let seeding = Seeding::Given { centres: start.clone() };
    Recipe::plain(Algorithm::Fcm { m, epsilon, max_rounds }, k as u32, seeding).run(&domain, 1)
}
