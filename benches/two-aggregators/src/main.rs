//! What it would cost to have every site prove that its entries are within bounds: Prio3 with L1BoundSum
//! (draft-ietf-ppm-l1-bound-sum-01), which bounds their sum, and with SumVec, which bounds each of them; coordinator and intermediary
//! as the two aggregators that must not collude.
//!
//! `cargo run --release --manifest-path benches/two-aggregators/Cargo.toml [-- [--json] NUMBERS ...]`, of Unix. One thread; milliseconds of the
//! processor, as median and range of the repetitions, or with `--json` each of them, a line of JSON for every proof. It ends with an error where
//! an honest site is refused or a site over the bound is not.

use prio::{
    codec::Encode,
    vdaf::{
        Aggregator, Client, VdafError, VerifyTransition,
        prio3::{Prio3L1BoundSum, Prio3SumVec},
    },
};
use rustix::time::{ClockId, clock_gettime};

const CONTEXT: &[u8] = b"veilsum two aggregators";
/// Keys and nonces decide nothing about time or size.
const KEY: [u8; 32] = [7; 32];
const NONCE: [u8; 16] = [9; 16];

fn main() -> Result<(), VdafError> {
    let (options, lengths): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|word| word == "--json");
    let json = !options.is_empty();
    let mut lengths: Vec<usize> = lengths.iter().map(|word| word.parse().expect("a number")).collect();
    if lengths.is_empty() {
        lengths = vec![100, 1_000, 10_000];
    }
    if !json {
        println!(
            "{:>8} {:>8} {:>5} {:>22} {:>28} {:>14} {:>14}",
            "proof", "numbers", "bits", "a site, ms", "an aggregator a site, ms", "a site sends", "masked here"
        );
    }
    for bits in [16u32, 32] {
        for &length in &lengths {
            let most = (1u128 << bits) - 1;
            // The square root of all bits balances proof size against verification.
            let chunk = |entries: usize| ((bits as usize * entries) as f64).sqrt().ceil() as usize;
            let bound = Prio3L1BoundSum::new_l1_bound_sum(2, most, length, chunk(length + 1))?;
            measure("L1Bound", &bound, bits, length, most, json)?;
            let each = Prio3SumVec::new_sum_vec(2, most, length, chunk(length))?;
            measure("SumVec", &each, bits, length, most + 1, json)?;
        }
    }
    Ok(())
}

/// `over`: an entry that must be refused beside the others.
fn measure<V>(proof: &str, vdaf: &V, bits: u32, length: usize, over: u128, json: bool) -> Result<(), VdafError>
where
    V: Client<16, Measurement = Vec<u128>> + Aggregator<32, 16, AggregationParam = ()>,
{
    // As much as the bound allows on the sum, spread evenly.
    let measurement = vec![((1u128 << bits) - 1) / length as u128; length];
    let times = if length > 1_000 { 5 } else { 15 };
    let (mut site, mut aggregator, mut bytes) = (Vec::new(), Vec::new(), 0);
    for _ in 0..times {
        let begun = spent();
        let (public, shares) = vdaf.shard(CONTEXT, &measurement, &NONCE)?;
        site.push(spent() - begun);
        bytes = [public.get_encoded(), shares[0].get_encoded(), shares[1].get_encoded()]
            .into_iter()
            .map(|part| part.map_or(0, |part| part.len()))
            .sum();
        let begun = spent();
        let (leader, first) = vdaf.verify_init(&KEY, CONTEXT, 0, &(), &NONCE, &public, &shares[0])?;
        let (_, second) = vdaf.verify_init(&KEY, CONTEXT, 1, &(), &NONCE, &public, &shares[1])?;
        // Each of the two does one of these; the rest is small.
        aggregator.push((spent() - begun) / 2.0);
        let message = vdaf.verifier_shares_to_message(CONTEXT, &(), [first, second])?;
        assert!(
            matches!(vdaf.verify_next(CONTEXT, leader, message)?, VerifyTransition::Finish(_)),
            "an honest site is refused"
        );
    }
    let mut larger = measurement;
    larger[0] = over;
    assert!(vdaf.shard(CONTEXT, &larger, &NONCE).is_err(), "a vector over the bound can be proved");
    let masked = 8 * length + 136;
    if json {
        println!(
            r#"{{"proof": "{proof}", "numbers": {length}, "bits": {bits}, "site_ms": {site:?}, "aggregator_ms": {aggregator:?}, "bytes": {bytes}, "masked": {masked}}}"#
        );
        return Ok(());
    }
    println!(
        "{proof:>8} {length:>8} {bits:>5} {:>22} {:>28} {bytes:>12} B {:>12} B",
        spread(&mut site),
        spread(&mut aggregator),
        masked
    );
    Ok(())
}

/// Milliseconds of the processor that this process took so far.
fn spent() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    1e3 * time.tv_sec as f64 + time.tv_nsec as f64 / 1e6
}

/// Median and range.
fn spread(times: &mut [f64]) -> String {
    times.sort_by(f64::total_cmp);
    format!("{:.1} ({:.1} to {:.1})", times[times.len() / 2], times[0], times[times.len() - 1])
}
