//! Sums in whole steps (specification, SUM-1 and SUM-2): they depend on the rows alone, and plain loops give the same.

use proptest::prelude::*;
use veilsum_cluster::answer;
use veilsum_cluster::query::*;
use veilsum_cluster::random::Stream;
use veilsum_cluster::{Batch, Centres, Domain, Error, OutOfBox, Prepared, Query, Rows, Scaling, SumStep, words};

const D: usize = 3;

fn domain() -> Domain {
    Domain::new(vec![0.0; D], vec![1.0; D], Scaling::Box).unwrap()
}

/// Coordinates, every fourth of them on a coarse grid, where roundings tie and rows coincide with centres.
fn draw(stream: &mut Stream, n: usize) -> Vec<f64> {
    let on_grid = |i: usize, x: f64| if i.is_multiple_of(4) { (x * 4.0).floor() / 4.0 } else { x };
    (0..n * D).map(|i| on_grid(i / D, stream.unit())).collect()
}

fn centres(stream: &mut Stream, k: usize) -> Centres {
    Centres::new(k, D, draw(stream, k)).unwrap()
}

/// Every family whose answer adds up over rows.
fn additive(stream: &mut Stream, m: f64) -> Batch {
    let c = centres(stream, 4);
    let bracket = |column, lower, upper| Bracket { column, lower, upper };
    let queries: Vec<Query> = vec![
        Query::fuzzy_sums(c.clone(), m),
        Query::fuzzy_validation(c.clone(), m),
        Validation { centres: c.clone(), m, vectors: true }.into(),
        LocalMeans { centres: c.clone(), local: LocalSteps::ONE, min_rows: 1, nearest: false }.into(),
        Moments { around: None }.into(),
        Moments { around: Some(vec![0.3; D]) }.into(),
        Histogram { brackets: vec![bracket(0, 0.0, 1.0), bracket(2, 0.25, 0.5)], bins: 7 }.into(),
        Margins { bins: 5 }.into(),
    ];
    Batch { transform: None, queries }
}

/// Families whose missing sites nobody estimates, but whose words come in parts as well.
fn others(stream: &mut Stream, m: f64) -> Batch {
    let c = centres(stream, 3);
    let shifts = |m| Query::from(Shifts { centres: c.clone(), m, clip: 0.3, middle: false, round: 0 });
    Batch { transform: None, queries: vec![shifts(Some(m)), shifts(None)] }
}

fn steps(batch: &Batch, fraction_bits: i32) -> Vec<SumStep> {
    let blocks = batch.layout(&domain()).unwrap();
    let one = |block: &veilsum_cluster::Block| {
        let bound_exp = block.bound.log2().ceil() as i32;
        SumStep { len: block.len, fraction_bits: fraction_bits - bound_exp }
    };
    blocks.iter().map(one).collect()
}

fn prepared(values: Vec<f64>) -> Prepared {
    Prepared::new(&Rows::new(values, D).unwrap(), &domain(), OutOfBox::Refuse).unwrap()
}

/// [SUM-1]: the questions of a sweep are answered together, and the words are those of each alone.
#[test]
fn sum_1_a_sweep_in_one_pass_has_the_words_of_each_question_alone() {
    let mut stream = Stream::new(23, b"veilsum exact sums test ");
    let site = prepared(draw(&mut stream, 700));
    let sums = |k, m, stream: &mut Stream| Query::fuzzy_sums(centres(stream, k), m);
    // Two fuzzifiers, another question in between, and more centres than one pass takes.
    let mut queries: Vec<Query> = (2..=9).map(|k| sums(k, 2.0, &mut stream)).collect();
    queries.push(sums(4, 1.5, &mut stream));
    queries.push(Query::fuzzy_validation(centres(&mut stream, 3), 2.0));
    queries.extend([100, 40, 3].map(|k| sums(k, 1.5, &mut stream)));
    let batch = Batch { transform: None, queries: queries.clone() };
    let found = words(&batch, &site, &steps(&batch, 38)).unwrap();
    let values = answer(&batch, &site).unwrap().values;
    let (mut alone, mut values_alone) = (Vec::new(), Vec::new());
    for query in queries {
        let one = Batch::from(query);
        alone.extend(words(&one, &site, &steps(&one, 38)).unwrap());
        values_alone.extend(answer(&one, &site).unwrap().values);
    }
    assert_eq!(found, alone);
    assert_eq!(values, values_alone);
    // Steps of its own for one of them.
    let mut uneven = steps(&batch, 38);
    uneven[3].fraction_bits -= 5;
    let coarse = words(&batch, &site, &uneven).unwrap();
    let at: usize = uneven[..3].iter().map(|step| step.len).sum();
    assert_eq!(coarse[..at], found[..at]);
    assert!((coarse[at] * 32 - found[at]).abs() <= 32 * 700 && coarse[at] != found[at]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    /// [SUM-1]: order, parts and threads change no word; and the words are the answer.
    #[test]
    fn sum_1_words_depend_on_the_rows_alone(
        n in 0usize..300,
        cut in 0usize..300,
        m in prop::sample::select(vec![2.0, 1.3, 2.5]),
        bits in prop::sample::select(vec![12i32, 25, 38, 50]),
        seed in any::<u64>(),
    ) {
        let mut stream = Stream::new(seed, b"veilsum exact sums test ");
        let rows = draw(&mut stream, n);
        let mut order: Vec<usize> = (0..n).collect();
        (1..n).rev().for_each(|i| order.swap(i, stream.below(i as u64 + 1) as usize));
        let shuffled: Vec<f64> = order.iter().flat_map(|i| rows[i * D..(i + 1) * D].to_vec()).collect();
        for batch in [additive(&mut stream, m), others(&mut stream, m)] {
            prop_assert!(batch.comes_in_parts());
            let steps = steps(&batch, bits);
            let of = |values: &[f64]| words(&batch, &prepared(values.to_vec()), &steps).unwrap();
            let whole = of(&rows);
            prop_assert_eq!(&whole, &of(&shuffled));
            let (left, right) = shuffled.split_at(cut.min(n) * D);
            let mut parts = of(right);
            batch.merge(&domain(), &mut parts, &of(left)).unwrap();
            prop_assert_eq!(&whole, &parts);
            // Half a step a row, and what doubles lose.
            let plain = answer(&batch, &prepared(rows.clone())).unwrap().values;
            let entry = steps.iter().flat_map(|step| std::iter::repeat_n(2f64.powi(-step.fraction_bits), step.len));
            for ((word, value), step) in whole.iter().zip(&plain).zip(entry) {
                let most = 0.5 * n as f64 * step + 1e-13 * (1.0 + value.abs());
                prop_assert!((*word as f64 * step - value).abs() <= most, "{} {} {}", word, value, step);
            }
        }
    }

    /// [SUM-2]: what a reader of the specification computes with plain loops. Finer steps than these are refused for some rows and centres.
    #[test]
    fn sum_2_as_plain_loops(n in 1usize..200, seed in any::<u64>(), bits in 20i32..=44) {
        let mut stream = Stream::new(seed, b"veilsum exact sums test ");
        let (rows, c) = (draw(&mut stream, n), centres(&mut stream, 4));
        let factor = 2f64.powi(bits);
        let round = |g: f64| (g * factor).round_ties_even() as i64;
        let (mut fuzzy, mut hard) = (vec![0i64; 4 * (D + 1)], vec![0i64; 4 * (D + 1)]);
        for x in rows.chunks_exact(D) {
            let q: Vec<f64> = c.rows().map(|c| (0..D).map(|j| (x[j] - c[j]) * (x[j] - c[j])).fold(0.0, |s, v| s + v)).collect();
            let inverse: Vec<f64> = q.iter().map(|q| 1.0 / q).collect();
            let total = inverse.iter().fold(0.0, |s, v| s + v);
            let zeros = q.iter().filter(|q| **q == 0.0).count() as f64;
            let u = |k: usize| match zeros > 0.0 {
                true => if q[k] == 0.0 { 1.0 / zeros } else { 0.0 },
                false => inverse[k] * (1.0 / total),
            };
            let own = (0..4).fold(0, |best, k| if q[k] < q[best] { k } else { best });
            for k in 0..4 {
                let w = u(k) * u(k);
                (0..D).for_each(|j| fuzzy[k * D + j] += round(w * x[j]));
                fuzzy[4 * D + k] += round(w);
            }
            hard[own] += 1 << bits;
            (0..D).for_each(|j| hard[4 + own * D + j] += round(x[j]));
        }
        let rows = prepared(rows);
        let ask = |query: Query, lens: &[usize]| {
            let steps: Vec<SumStep> = lens.iter().map(|len| SumStep { len: *len, fraction_bits: bits }).collect();
            words(&query.into(), &rows, &steps).unwrap()
        };
        prop_assert_eq!(ask(Query::fuzzy_sums(c.clone(), 2.0), &[4 * D, 4]), fuzzy);
        let means = LocalMeans { centres: c, local: LocalSteps::ONE, min_rows: 1, nearest: false };
        let found = ask(means.into(), &[4, 4 * D, 1]);
        prop_assert_eq!(&found[..4 * (D + 1)], &hard[..]);
    }
}

/// [SUM-1]: many chunks, on one, two and four threads.
#[test]
fn sum_1_threads_change_no_word() {
    let mut stream = Stream::new(7, b"veilsum exact sums test ");
    let rows = prepared(draw(&mut stream, 3 * 8192 + 77));
    let batch = additive(&mut stream, 2.0);
    let steps = steps(&batch, 38);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| words(&batch, &rows, &steps).unwrap())
    };
    let one = run(1);
    assert!([2, 4].into_iter().all(|threads| run(threads) == one));
}

#[test]
fn steps_of_another_question_are_refused() {
    let batch = Batch::from(Query::fuzzy_sums(centres(&mut Stream::new(1, b"veilsum exact sums test "), 2), 2.0));
    let rows = prepared(vec![0.5; D]);
    let one = |len| SumStep { len, fraction_bits: 20 };
    for steps in [vec![], vec![one(6)], vec![one(6), one(3)], vec![one(6), one(2), one(1)]] {
        assert_eq!(words(&batch, &rows, &steps), Err(Error::Steps));
    }
    // Rounded contributions would not be exact beyond this, and could wrap.
    for (fraction_bits, rows) in [(54, &rows), (52, &rows), (50, &prepared(vec![0.5; D << 14])), (2000, &rows)] {
        let too_fine = [one(6), SumStep { len: 2, fraction_bits }];
        assert_eq!(words(&batch, rows, &too_fine), Err(Error::TooFine("weights")));
    }
    assert!(words(&batch, &rows, &[one(6), SumStep { len: 2, fraction_bits: 51 }]).is_ok());
}
