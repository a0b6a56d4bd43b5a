//! How fast are a site's sums? Everything runs in this process, on one thread, and what is compared is on the same rows, in turns.
//!
//! For fuzzy c-means with m = 2: the kernel in whole steps against its operations alone, of the quickest turns; and a sweep over K in one
//! pass against one question for each K, where what has a range behind it is a median.
//!
//! `cargo run --release -p veilsum-cluster --example kernel_speed [rows] [columns] [clusters]`, about a minute. A fourth number, of threads,
//! measures the kernel alone and prints milliseconds, one line a turn.

use std::time::{Duration, Instant};

use fearless_simd::{Level, Simd, dispatch, prelude::*};
use veilsum_cluster::{
    Batch, Centres, Domain, OutOfBox, Packed, Prepared, Query, Rows, Scaling, SumStep, kernel, words,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>());
    let mut next = |default| arguments.next().unwrap_or(Ok(default));
    let (n, d, k) = (next(1_000_000)?, next(16)?, next(10)?);

    let domain = Domain::new(vec![0.0; d], vec![1.0; d], Scaling::Box)?;
    // Rows drawn like a start: uniform in the box.
    let rows = Rows::new(Centres::uniform(&domain, n, 1)?.as_slice().to_vec(), d)?;
    let centres = Centres::uniform(&domain, k, 2)?;
    if let Some(threads) = arguments.next() {
        return alone(&Packed::new(&rows), &centres, threads?);
    }
    let site = Prepared::new(&rows, &domain, OutOfBox::Refuse)?;
    let question = Batch::from(Query::fuzzy_sums(centres, 2.0));
    let steps = [k * d, k].map(|len| SumStep { len, fraction_bits: 38 });
    let turn = |_| {
        let start = Instant::now();
        std::hint::black_box(words(&question, &site, &steps)).expect("words");
        start.elapsed()
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    let whole = pool.install(|| (0..45).map(turn).min()).unwrap_or_default();
    println!("N = {n}, d = {d}, K = {k}, m = 2: in whole steps {:.1} ms", whole.as_secs_f64() * 1e3);
    roofline(n, d, k, whole);
    sweep(&site, d)
}

/// Median, smallest and largest of an odd number of values.
fn spread(values: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    [values[values.len() / 2], values[0], values[values.len() - 1]]
}

/// Turns of the kernel for m = 2, of which the first warms up. Each lasts long enough for the clock.
fn alone(packed: &Packed, centres: &Centres, threads: usize) -> Result<(), Box<dyn std::error::Error>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let repeats = (10_000_000 / (packed.len() * packed.columns() * centres.k()).max(1)).max(1);
    for turn in 0..10 {
        let start = Instant::now();
        pool.install(|| {
            (0..repeats).for_each(|_| drop(std::hint::black_box(kernel::fuzzy_sums(packed, centres, 2.0))));
        });
        if turn > 0 {
            println!("{}", start.elapsed().as_secs_f64() * 1e3 / repeats as f64);
        }
    }
    Ok(())
}

/// The time in which this processor does nothing but the operations of one pass, with vectors as the kernel's, none of them fused with
/// another ([SUM-2]), and no memory: by row, centre and column `x - c`, its square, a sum; a product, a sum that rounds it, a sum of
/// integers; and by row K + 1 quotients.
#[inline(always)]
fn operations<S: Simd>(simd: S, n: usize, d: usize, k: usize) -> [Duration; 3] {
    let constant = |x: f64| S::f64s::splat(simd, std::hint::black_box(x));
    let (a, b, c) = (constant(0.25), constant(1.0), constant(0.25));
    let vectors = n / S::f64s::LEN;
    let start = Instant::now();
    let mut sums = [constant(0.5); CHAINS];
    for _ in 0..vectors * k * d / CHAINS {
        for sum in &mut sums {
            *sum = (*sum - a) * b + c;
        }
    }
    std::hint::black_box(sums.map(|sum| sum.as_slice()[0]));
    let distances = start.elapsed();
    let start = Instant::now();
    let mut products = [constant(0.5); CHAINS / 2];
    let mut words = products.map(|_| constant(0.0).to_bits());
    for _ in 0..vectors * k * d / (CHAINS / 2) {
        for (product, word) in products.iter_mut().zip(&mut words) {
            *product *= b;
            *word += (*product + c).to_bits();
        }
    }
    std::hint::black_box((products.map(|x| x.as_slice()[0]), words.map(|x| x.as_slice()[0])));
    let sums = start.elapsed();
    let start = Instant::now();
    let mut quotients = [constant(0.5); CHAINS];
    for _ in 0..vectors * (k + 1) / CHAINS {
        for quotient in &mut quotients {
            *quotient = b / *quotient;
        }
    }
    std::hint::black_box(quotients.map(|x| x.as_slice()[0]));
    [distances, sums, start.elapsed()]
}

/// Chains of operations side by side: enough that none waits for another, and few enough for 16 registers.
const CHAINS: usize = 12;

/// What a pass in whole steps takes of the limit of [`operations`].
fn roofline(n: usize, d: usize, k: usize, whole: Duration) {
    let level = Level::new();
    let tries: Vec<[Duration; 3]> = (0..5).map(|_| dispatch!(level, simd => operations(simd, n, d, k))).collect();
    let least = [0, 1, 2].map(|i| tries.iter().map(|times| times[i]).min().unwrap_or_default().as_secs_f64() * 1e3);
    let limit: f64 = least.iter().sum();
    println!(
        "operations alone, unfused: distances {:.1} ms, sums {:.1} ms, quotients {:.1} ms; the kernel reaches {:.0} % of that",
        least[0],
        least[1],
        least[2],
        100.0 * limit / (whole.as_secs_f64() * 1e3),
    );
}

/// K = 2 to 9: a batch, which is one pass over the rows, against eight questions one after the other, in turns.
fn sweep(site: &Prepared, d: usize) -> Result<(), Box<dyn std::error::Error>> {
    let steps = |k: usize| [k * d, k].map(|len| SumStep { len, fraction_bits: 38 });
    let (mut queries, mut alone, mut all_steps) = (Vec::new(), Vec::new(), Vec::new());
    for k in 2..=9 {
        let query = Query::fuzzy_sums(Centres::uniform(site.domain(), k, k as u64)?, 2.0);
        alone.push((Batch::from(query.clone()), steps(k).to_vec()));
        queries.push(query);
        all_steps.extend(steps(k));
    }
    let (batch, all) = (Batch { transform: None, queries }, all_steps);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    let times: Vec<[f64; 2]> = pool.install(|| {
        let turn = |_| {
            let start = Instant::now();
            alone.iter().for_each(|(question, steps)| {
                std::hint::black_box(words(question, site, steps)).expect("words");
            });
            let each = start.elapsed();
            let start = Instant::now();
            std::hint::black_box(words(&batch, site, &all)).expect("words");
            [each, start.elapsed()].map(|time| time.as_secs_f64() * 1e3)
        };
        (0..16).map(turn).skip(1).collect()
    });
    let quickest = [0, 1].map(|i| times.iter().map(|turn| turn[i]).fold(f64::INFINITY, f64::min));
    let [ratio, least, most] = spread(times.iter().map(|turn| turn[1] / turn[0]));
    println!(
        "K = 2 to 9 in whole steps, 1 thread: eight passes {:.1} ms, one pass {:.1} ms; ratio {ratio:.2} (of 15 turns {least:.2} to {most:.2})",
        quickest[0], quickest[1],
    );
    Ok(())
}
