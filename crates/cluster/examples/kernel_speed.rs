//! How much faster is the kernel than plain ndarray code? Both run in this process, on the same rows, in turns.
//!
//! `cargo run --release -p veilsum-cluster --example kernel_speed [rows] [columns] [clusters]`

use std::time::{Duration, Instant};

use ndarray::{Array1, Array2, ArrayView2};
use veilsum_cluster::{
    Batch, Centres, Domain, OutOfBox, Packed, Prepared, Query, Rows, Scaling, Start, SumStep, kernel, words,
};

/// The sums of fuzzy c-means for m = 2 as one writes them with ndarray, row by row: `WS` (K x d) and `U` (K).
fn naive(rows: ArrayView2<'_, f64>, centres: ArrayView2<'_, f64>) -> (Array2<f64>, Array1<f64>) {
    let mut sums = Array2::zeros(centres.dim());
    let mut weights = Array1::zeros(centres.nrows());
    for row in rows.outer_iter() {
        let inverse: Array1<f64> = centres
            .outer_iter()
            .map(|centre| {
                let difference = &row - &centre;
                1.0 / difference.dot(&difference)
            })
            .collect();
        let total = inverse.sum();
        for (k, inverse) in inverse.iter().enumerate() {
            let u = inverse / total;
            sums.row_mut(k).scaled_add(u * u, &row);
            weights[k] += u * u;
        }
    }
    (sums, weights)
}

fn naive_parallel(rows: ArrayView2<'_, f64>, centres: ArrayView2<'_, f64>) -> (Array2<f64>, Array1<f64>) {
    let half = rows.nrows() / 2;
    let (left, right) = rows.split_at(ndarray::Axis(0), half);
    let (a, b) = rayon::join(|| naive(left, centres), || naive(right, centres));
    (a.0 + b.0, a.1 + b.1)
}

/// The quickest of several calls, after one that warms up.
fn best<T>(repeats: usize, mut call: impl FnMut() -> T) -> Duration {
    std::hint::black_box(call());
    let timed = (0..repeats).map(|_| {
        let start = Instant::now();
        std::hint::black_box(call());
        start.elapsed()
    });
    timed.min().unwrap_or_default()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>());
    let mut next = |default| arguments.next().unwrap_or(Ok(default));
    let (n, d, k) = (next(1_000_000)?, next(16)?, next(10)?);

    let domain = Domain::new(vec![0.0; d], vec![1.0; d], Scaling::Box)?;
    // Rows drawn like a start: uniform in the box.
    let drawn: Centres = Start::Uniform { seed: 1 }.centres(&domain, n)?;
    let rows = Rows::new(drawn.as_slice().to_vec(), d)?;
    let centres = Start::Uniform { seed: 2 }.centres(&domain, k)?;
    let view = drawn.as_array();

    let start = Instant::now();
    let packed = Packed::new(&rows);
    println!("N = {n}, d = {d}, K = {k}, m = 2; packing once: {:.1} ms", start.elapsed().as_secs_f64() * 1e3);

    let sums = kernel::fuzzy_sums(&packed, &centres, 2.0)?;
    let (expected, _) = naive(view, centres.as_array());
    let error = expected.iter().zip(&sums.weighted_sums).map(|(a, b)| (a - b).abs() / a.abs()).fold(0.0, f64::max);
    println!("largest relative difference of a weighted sum: {error:.1e}");

    let site = Prepared::new(&rows, &domain, OutOfBox::Refuse)?;
    let question = Batch::from(Query::fuzzy_sums(centres.clone(), 2.0));
    let steps = [k * d, k].map(|len| SumStep { len, fraction_bits: 38 });
    for threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
        let (slow, fast, whole, other) = pool.install(|| {
            let naive_run = || {
                if threads == 1 { naive(view, centres.as_array()) } else { naive_parallel(view, centres.as_array()) }
            };
            let slow = best(3, naive_run);
            let (mut fast, mut whole) = (Duration::MAX, Duration::MAX);
            for _ in 0..15 {
                fast = fast.min(best(2, || kernel::fuzzy_sums(&packed, &centres, 2.0)));
                whole = whole.min(best(2, || words(&question, &site, &steps, None)));
            }
            let slow = slow.min(best(2, naive_run));
            (slow, fast, whole, best(3, || kernel::fuzzy_sums(&packed, &centres, 1.5)))
        });
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        println!(
            "{threads} thread(s): naive ndarray {:.1} ms, kernel {:.1} ms, ratio {:.1}; in whole steps {:.1} ms, {:+.1} %; \
             kernel with m = 1.5: {:.1} ms",
            ms(slow),
            ms(fast),
            ms(slow) / ms(fast),
            ms(whole),
            100.0 * (ms(whole) / ms(fast) - 1.0),
            ms(other),
        );
    }
    Ok(())
}
