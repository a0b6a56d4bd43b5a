//! Tests that a seed draws: chance, and the seeds that are played.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::prelude::*;

/// Chance from a seed.
pub struct Dice(ChaCha20Rng);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(ChaCha20Rng::seed_from_u64(seed))
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.0.next_u64() % n
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn of<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize].clone()
    }

    /// From 0 to 1.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// What a variable of the environment says.
pub fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|value| value.parse().expect("a number"))
}

/// Plays so many seeds, or `VEILSUM_SEEDS` of them, or the one of `VEILSUM_SEED`; how many. Those that fail are named, with the test to
/// replay them.
pub fn play(usual: u64, test: &str, mut each: impl FnMut(u64)) -> u64 {
    let seeds = match number("VEILSUM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("VEILSUM_SEEDS").unwrap_or(usual),
    };
    println!("seeds {seeds:?}");
    let mut failed = Vec::new();
    for seed in seeds.clone() {
        if catch_unwind(AssertUnwindSafe(|| each(seed))).is_err() {
            println!("replay: VEILSUM_SEED={seed} cargo test {test} -- --nocapture");
            failed.push(seed);
        }
    }
    assert!(failed.is_empty(), "{} of {} seeds failed: {failed:?}", failed.len(), seeds.end - seeds.start);
    seeds.end - seeds.start
}
