//! What a site pays for every survivor's signature in a round: `cargo bench -p veilsum-proto --bench signatures`.
//!
//! All are verified at once when survivors are named ([SUR-5]); beside it, in the same turns, one signature alone.

use std::{hint::black_box, time::Instant};

use veilsum_proto::{identity::Identity, suite, vectors_api::signed_at_once};

const TURNS: usize = 21;

fn main() {
    println!("{:>9}  {:>12}  {:>12}  {:>12}  {:>6}", "sites", "all, ms", "each, us", "alone, us", "ratio");
    for sites in [10, 90, 100, 1_000] {
        let digest = |i: usize| suite::hash("bench", &[&i.to_le_bytes()]);
        let signed: Vec<_> = (0..sites)
            .map(|i| {
                let identity = Identity::from_seed(&digest(i).0);
                (identity.public(), digest(i), identity.sign("bench", &[&i.to_le_bytes()]))
            })
            .collect();
        let check = signed_at_once(signed.iter().map(|(key, ..)| *key));
        let mut turns: Vec<(f64, f64)> = (0..TURNS)
            .map(|turn| {
                let all = seconds(|| assert!(check(black_box(&signed))));
                let (key, _, signature) = &signed[turn % sites];
                let parts = (turn % sites).to_le_bytes();
                (all, seconds(|| assert!(key.verify("bench", &[&parts], black_box(signature)))))
            })
            .collect();
        turns.sort_by(|a, b| a.0.total_cmp(&b.0));
        let all = turns[TURNS / 2].0;
        turns.sort_by(|a, b| a.1.total_cmp(&b.1));
        let (each, alone) = (1e6 * all / sites as f64, 1e6 * turns[TURNS / 2].1);
        println!("{sites:>9}  {:>12.2}  {each:>12.1}  {alone:>12.1}  {:>6.2}", 1e3 * all, each / alone);
    }
}

fn seconds(work: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    work();
    begun.elapsed().as_secs_f64()
}
