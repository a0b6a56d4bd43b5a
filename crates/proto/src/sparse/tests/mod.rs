//! Whole federations on the sparse graph, honest and not, with sizes forced so small that a test can afford them.

mod attacks;
mod federation;
mod lies;
mod restarts;

use super::{Params, Shape, Sizes, testing::World};
use crate::testing::Kit;

/// Few neighbours, a small committee: as unsafe as they are small.
fn forced(n: usize) -> Sizes {
    Sizes { degree: 12, nearby: 7, committee: 9, quorum: 7, floor: n - n / 5 }
}

/// `n` sites, each of which answers with its number plus 100 times the place.
fn world(n: usize, sizes: Sizes, slots: u16, seed: u64) -> World {
    println!("{n} sites, seed {seed}");
    let mut world = World::new(Kit::new(n, |t| t.slots = slots), Shape::Forced(sizes), seed);
    world.answer = Box::new(|site, asked| (0..asked.words as u64).map(|p| value(site, p)).collect());
    world
}

fn value(site: u16, place: u64) -> u64 {
    u64::from(site).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(100 * place)
}

fn sum(cohort: &[u16], words: u64) -> Vec<u64> {
    (0..words).map(|p| cohort.iter().fold(0, |sum: u64, s| sum.wrapping_add(value(*s, p)))).collect()
}

/// Bounds that a test can afford with sizes that are proved all the same.
fn weak() -> Params {
    Params { corrupt: 50, missing: 30, secrecy_bits: 4, liveness_bits: 6 }
}
