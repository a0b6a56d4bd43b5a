//! What it would cost to have every site prove that its entries are within bounds: Prio3 with L1BoundSum
//! (draft-ietf-ppm-l1-bound-sum-01), coordinator and intermediary as the two aggregators that must not collude.
//!
//! `cargo run --release --manifest-path benches/two-aggregators/Cargo.toml`. One thread; the median and the range of the
//! repetitions. It ends with an error where an honest site is refused or a site over the bound is not.

use std::time::Instant;

use prio::{
    codec::Encode,
    vdaf::{Aggregator, Client, VdafError, VerifyTransition, prio3::Prio3L1BoundSum},
};

const CONTEXT: &[u8] = b"veilsum two aggregators";
/// Keys and nonces decide nothing about time or size.
const KEY: [u8; 32] = [7; 32];
const NONCE: [u8; 16] = [9; 16];

fn main() -> Result<(), VdafError> {
    println!(
        "{:>8} {:>5} {:>22} {:>28} {:>14} {:>14}",
        "numbers", "bits", "a site, ms", "an aggregator a site, ms", "a site sends", "masked here"
    );
    for bits in [16u32, 32] {
        for length in [100, 1_000, 10_000] {
            measure(bits, length)?;
        }
    }
    Ok(())
}

fn measure(bits: u32, length: usize) -> Result<(), VdafError> {
    let most = (1u128 << bits) - 1;
    // The square root of all bits balances proof size against verification.
    let chunk = ((bits as usize * (length + 1)) as f64).sqrt().ceil() as usize;
    let vdaf = Prio3L1BoundSum::new_l1_bound_sum(2, most, length, chunk)?;
    // As much as the bound allows, spread evenly.
    let measurement = vec![most / length as u128; length];
    let times = if length > 1_000 { 5 } else { 15 };
    let (mut site, mut aggregator, mut bytes) = (Vec::new(), Vec::new(), 0);
    for _ in 0..times {
        let begun = Instant::now();
        let (public, shares) = vdaf.shard(CONTEXT, &measurement, &NONCE)?;
        site.push(1e3 * begun.elapsed().as_secs_f64());
        bytes = [public.get_encoded(), shares[0].get_encoded(), shares[1].get_encoded()]
            .into_iter()
            .map(|part| part.map_or(0, |part| part.len()))
            .sum();
        let begun = Instant::now();
        let (leader, first) = vdaf.verify_init(&KEY, CONTEXT, 0, &(), &NONCE, &public, &shares[0])?;
        let (_, second) = vdaf.verify_init(&KEY, CONTEXT, 1, &(), &NONCE, &public, &shares[1])?;
        // Each of the two does one of these; the rest is small.
        aggregator.push(1e3 * begun.elapsed().as_secs_f64() / 2.0);
        let message = vdaf.verifier_shares_to_message(CONTEXT, &(), [first, second])?;
        assert!(
            matches!(vdaf.verify_next(CONTEXT, leader, message)?, VerifyTransition::Finish(_)),
            "an honest site is refused"
        );
    }
    let mut over = measurement;
    over[0] = most;
    assert!(vdaf.shard(CONTEXT, &over, &NONCE).is_err(), "a vector over the bound can be proved");
    println!(
        "{length:>8} {bits:>5} {:>22} {:>28} {bytes:>12} B {:>12} B",
        spread(&mut site),
        spread(&mut aggregator),
        8 * length + 136
    );
    Ok(())
}

/// Median and range.
fn spread(times: &mut [f64]) -> String {
    times.sort_by(f64::total_cmp);
    format!("{:.1} ({:.1} to {:.1})", times[times.len() / 2], times[0], times[times.len() - 1])
}
