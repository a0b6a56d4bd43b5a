//! How fast masks are added, as a ratio to bare AES-256-CTR in the same run: `cargo bench -p veilsum-proto --bench mask_rate`.
//!
//! The two are measured in turns, so that whatever else the machine does meets both alike; medians of the turns' ratios, and
//! how far the turns are apart.

use std::{hint::black_box, time::Instant};

use aes::Aes256;
use ctr::{
    Ctr64LE,
    cipher::{KeyIvInit, StreamCipher},
};
use veilsum_proto::vectors_api::mask_all;

const TURNS: usize = 41;

fn main() {
    println!("{:>9}  {:>12}  {:>12}  {:>6}  {:>15}", "words", "AES-CTR GB/s", "mask GB/s", "ratio", "ratio, 10-90 %");
    for words in [100, 1_000, 100_000, 1_000_000] {
        let repeats = (8_000_000 / words).max(1);
        let (mut bytes, mut vector) = (vec![0u8; 8 * words], vec![0u64; words]);
        let mut turns: Vec<(f64, f64)> = (0..TURNS)
            .map(|turn| {
                let keys: Vec<[u8; 32]> = (0..repeats).map(|i| [(turn + i) as u8; 32]).collect();
                let plain = seconds(|| {
                    for key in &keys {
                        Ctr64LE::<Aes256>::new(key.into(), &[0u8; 16].into()).apply_keystream(black_box(&mut bytes));
                    }
                });
                let masked = seconds(|| mask_all(black_box(&mut vector), &keys));
                (plain, masked)
            })
            .collect();
        turns.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
        let ratio = |at: usize| turns[at].0 / turns[at].1;
        let rate = |seconds: f64| (8 * words * repeats) as f64 / seconds / 1e9;
        let (plain, masked) = turns[TURNS / 2];
        println!(
            "{words:>9}  {:>12.2}  {:>12.2}  {:>6.2}  {:>6.2} to {:>5.2}",
            rate(plain),
            rate(masked),
            ratio(TURNS / 2),
            ratio(TURNS / 10),
            ratio(TURNS - 1 - TURNS / 10)
        );
    }
}

fn seconds(work: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    work();
    begun.elapsed().as_secs_f64()
}
