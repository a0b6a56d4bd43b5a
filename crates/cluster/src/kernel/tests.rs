//! What only the inside can see: the same bits at every level of vector instructions, and rows at the edge of `f64`.

use fearless_simd::Level;
use proptest::prelude::*;

use super::*;
#[path = "../../tests/reference.rs"]
mod reference;

use crate::{Rows, distance};

/// The levels of this processor that promise equal bits; one is enough for the tiles.
fn wide_levels() -> Vec<Level> {
    let wide: Vec<Level> = [Vectors::Avx2, Vectors::Avx512].into_iter().filter_map(Vectors::level).collect();
    if wide.is_empty() { vec![narrow_level()] } else { wide }
}

/// The narrow level has no fused multiply-add, so its last bits differ.
fn narrow_level() -> Level {
    Vectors::Narrow.level().unwrap_or_else(Level::new)
}

fn bits(sums: &FuzzySums) -> Vec<u64> {
    let values = sums.weighted_sums.iter().chain(&sums.weights).chain(std::iter::once(&sums.objective));
    values.map(|value| value.to_bits()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn equal_bits_at_every_wide_level(
        n in 0usize..400,
        d in 1usize..=40,
        k in 1usize..=23,
        m in prop::sample::select(vec![2.0, 1.1, 1.7, 3.0]),
        seed in any::<u64>(),
    ) {
        let mut stream = crate::random::Stream::new(seed, b"veilsum kernel test v1  ");
        let rows = Rows::new((0..n * d).map(|_| stream.unit()).collect(), d).unwrap();
        let centres = Centres::new(k, d, (0..k * d).map(|_| stream.unit()).collect()).unwrap();
        let packed = Packed::new(&rows);
        let results: Vec<FuzzySums> =
            wide_levels().into_iter().map(|level| fuzzy_sums_at(level, &packed, &centres, m).unwrap()).collect();
        for pair in results.windows(2) {
            prop_assert_eq!(bits(&pair[0]), bits(&pair[1]));
        }
        // The tiles of 512-bit vectors, at every level.
        for (level, plain) in wide_levels().into_iter().zip(&results) {
            let mut plan = Plan::new(&packed, &centres, m).unwrap();
            plan.wide_tiles = true;
            prop_assert_eq!(bits(&all_sums(level, &plan, &packed)[0]), bits(plain));
        }
        // [SUM-1]: whole steps are the same at the narrow level too.
        let plan = Plan::new(&packed, &centres, m).unwrap();
        let steps = [2f64.powi(40), 2f64.powi(50)];
        let words = words_of(narrow_level(), &plan, &packed, steps);
        for level in wide_levels() {
            prop_assert_eq!(&words_of(level, &plan, &packed, steps), &words);
            let mut wide = Plan::new(&packed, &centres, m).unwrap();
            wide.wide_tiles = true;
            prop_assert_eq!(&words_of(level, &wide, &packed, steps), &words);
        }
        let narrow = fuzzy_sums_at(narrow_level(), &packed, &centres, m).unwrap();
        let best = fuzzy_sums(&packed, &centres, m).unwrap();
        for (a, b) in narrow.weighted_sums.iter().zip(&best.weighted_sums) {
            prop_assert!((a - b).abs() <= 1e-12 * b.abs(), "{} {}", a, b);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    /// Also of rows that coincide with a centre of some sets and not of others.
    #[test]
    fn one_pass_for_several_sets_of_centres_has_the_bits_of_a_pass_for_each(
        n in 0usize..400,
        d in 1usize..=12,
        ks in prop::collection::vec(1usize..=11, 1..6),
        m in prop::sample::select(vec![2.0, 1.1, 1.7, 3.0]),
        seed in any::<u64>(),
    ) {
        let mut stream = crate::random::Stream::new(seed, b"veilsum kernel test v1  ");
        let mut draw = |n: usize| -> Vec<f64> {
            (0..n * d).map(|i| if (i / d) % 3 == 0 { stream.below(3) as f64 / 2.0 } else { stream.unit() }).collect()
        };
        let packed = Packed::new(&Rows::new(draw(n), d).unwrap());
        let sets: Vec<Centres> = ks.iter().map(|k| Centres::new(*k, d, draw(*k)).unwrap()).collect();
        let steps = [2f64.powi(40), 2f64.powi(50)];
        for (level, wide_tiles) in
            wide_levels().into_iter().chain([narrow_level()]).flat_map(|level| [(level, false), (level, true)])
        {
            let mut plan = Plan::together(&packed, &sets[0], sets[1..].iter(), m).unwrap();
            plan.wide_tiles = wide_tiles;
            let together = all_sums(level, &plan, &packed);
            let words = words_of(level, &plan, &packed, steps);
            let (mut sums, mut weights) = (Vec::new(), Vec::new());
            for (set, found) in sets.iter().zip(&together) {
                prop_assert_eq!(bits(found), bits(&fuzzy_sums_at(level, &packed, set, m).unwrap()));
                let alone = words_of(level, &Plan::new(&packed, set, m).unwrap(), &packed, steps);
                sums.extend_from_slice(&alone[..set.as_slice().len()]);
                weights.extend_from_slice(&alone[set.as_slice().len()..]);
            }
            prop_assert_eq!(words, [sums, weights].concat());
        }
    }
}

/// Rows whose squared distances under- or overflow take the safe path and keep their memberships.
#[test]
fn rows_at_the_edge_of_the_range() {
    for scale in [5e-324, 1e-310, 1e-200, 1e-146, 1.0, 1e146, 1e160, 1e300] {
        for m in [1.1, 2.0, 2.5, 5.0] {
            let centres = Centres::from_rows(&[vec![scale, 0.0], vec![0.0, -2.0 * scale]]).unwrap();
            let rows = Rows::new(vec![0.0; 2 * 3], 2).unwrap();
            let packed = Packed::new(&rows);
            let sums = fuzzy_sums(&packed, &centres, m).unwrap();
            let validation = fuzzy_validation(&packed, &centres, m).unwrap();
            let close = |found: f64, exact: f64| (found / exact - 1.0).abs() < 1e-12;
            let ratio = 2f64.powf(-2.0 / (m - 1.0));
            for (k, u) in [1.0 / (1.0 + ratio), ratio / (1.0 + ratio)].into_iter().enumerate() {
                assert!(close(sums.weights[k], 3.0 * u.powf(m)), "{scale} {m} {:?}", sums.weights);
                assert!(close(validation.memberships[k], 3.0 * u), "{scale} {m} {:?}", validation.memberships);
            }
            assert!(close(validation.distances[0], 3.0 * scale), "{scale} {m} {:?}", validation.distances);
            // Both 0 or both infinite at the ends.
            let (a, b) = (sums.objective, validation.objective);
            assert!(a == b || close(a, b), "{scale} {m}: {a} {b}");
        }
    }
}

#[test]
fn a_near_miss_is_no_coincidence() {
    // 1e-170 away: the squared distance underflows to 0, yet the row is nearer to one centre than to the other.
    let centres = Centres::from_rows(&[vec![1e-170], vec![-2e-170], vec![1.0]]).unwrap();
    let packed = Packed::new(&Rows::new(vec![0.0], 1).unwrap());
    let sums = fuzzy_sums(&packed, &centres, 2.0).unwrap();
    assert!((sums.weights[0] - 0.64).abs() < 1e-14 && (sums.weights[1] - 0.04).abs() < 1e-14, "{sums:?}");
    assert_eq!(sums.weights[2], 0.0);
    assert_eq!(distance::squared(&[0.0], &[1e-170]), 0.0);
}

#[test]
fn many_chunks_add_up_in_order() {
    let n = 3 * plan::CHUNK_ROWS + 13;
    let mut stream = crate::random::Stream::new(5, b"veilsum kernel test v1  ");
    let rows = Rows::new((0..n * 2).map(|_| stream.unit()).collect(), 2).unwrap();
    let centres = Centres::from_rows(&[vec![0.2, 0.2], vec![0.8, 0.5], vec![0.1, 0.9]]).unwrap();
    let packed = Packed::new(&rows);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| bits(&fuzzy_sums(&packed, &centres, 2.0).unwrap()))
    };
    let one = run(1);
    assert!([2, 3, 8].into_iter().all(|threads| run(threads) == one));
    let plain = reference::fuzzy_sums(&rows, &centres, 2.0);
    for (a, b) in fuzzy_sums(&packed, &centres, 2.0).unwrap().weighted_sums.iter().zip(&plain.weighted_sums) {
        assert!((a / b - 1.0).abs() < 1e-12);
    }
    let (fast, plain) = (fuzzy_validation(&packed, &centres, 2.0), reference::fuzzy_validation(&rows, &centres, 2.0));
    assert!((fast.unwrap().objective / plain.objective - 1.0).abs() < 1e-12);
}
