//! The kernel against its slow twin: ragged numbers of rows, many shapes, many m, duplicates and coincidences.

use proptest::prelude::*;
use veilsum_cluster::kernel::{FuzzySums, FuzzyValidation};
use veilsum_cluster::{Centres, Packed, Rows, kernel};

#[path = "reference.rs"]
mod reference;

/// Values on a coarse grid, so that rows often repeat and often coincide with centres.
fn grid() -> impl Strategy<Value = f64> {
    (-8i32..=8).prop_map(|step| f64::from(step) / 4.0)
}

fn smooth() -> impl Strategy<Value = f64> {
    -3.0..3.0f64
}

/// Any finite magnitude, from the smallest to one whose sums cannot overflow.
fn extreme() -> impl Strategy<Value = f64> {
    let exponent = prop::sample::select(vec![-323, -310, -200, -160, -150, -10, 0, 10, 140, 150, 160, 300]);
    (exponent, -9.0..9.0f64).prop_map(|(exponent, value)| value * 10f64.powi(exponent))
}

fn case(value: BoxedStrategy<f64>) -> impl Strategy<Value = (Rows, Centres, f64)> {
    let m = prop::sample::select(vec![2.0, 1.1, 1.3, 1.5, 2.5, 3.0, 8.0]);
    (0usize..150, 1usize..=40, 1usize..=23, m, any::<u64>()).prop_flat_map(move |(n, d, k, m, pick)| {
        let rows = prop::collection::vec(value.clone(), n * d);
        let centres = prop::collection::vec(value.clone(), k * d);
        (rows, centres).prop_map(move |(rows, mut centres)| {
            // Every other case puts one centre (or two) onto a row.
            if n > 0 && pick % 2 == 0 {
                let row = (pick / 2) as usize % n * d;
                let to = (pick / 7) as usize % k * d;
                centres[to..to + d].copy_from_slice(&rows[row..row + d]);
                if pick % 3 == 0 {
                    centres[..d].copy_from_slice(&rows[row..row + d]);
                }
            }
            (Rows::new(rows, d).unwrap(), Centres::new(k, d, centres).unwrap(), m)
        })
    })
}

/// |a - b| relative to the sum of the absolute terms, which for `WS` is `scale * U`.
fn close(found: &[f64], expected: &[f64], scale: f64, what: &str) -> Result<(), TestCaseError> {
    prop_assert_eq!(found.len(), expected.len());
    for (a, b) in found.iter().zip(expected) {
        prop_assert!((a - b).abs() <= 1e-12 * (b.abs() + scale), "{}: {:e} and {:e}", what, a, b);
    }
    Ok(())
}

fn equal_to_reference(rows: &Rows, centres: &Centres, m: f64) -> Result<(), TestCaseError> {
    let packed = Packed::new(rows);
    let (fast, plain) = (kernel::fuzzy_sums(&packed, centres, m).unwrap(), reference::fuzzy_sums(rows, centres, m));
    let n = rows.len() as f64;
    close(&fast.weights, &plain.weights, 1e-3, "U")?;
    close(&fast.weighted_sums, &plain.weighted_sums, 3.0 * n, "WS")?;
    close(&[fast.objective], &[plain.objective], 0.0, "J")?;
    let (fast, plain) =
        (kernel::fuzzy_validation(&packed, centres, m).unwrap(), reference::fuzzy_validation(rows, centres, m));
    close(&fast.distances, &plain.distances, 0.0, "D")?;
    close(&fast.memberships, &plain.memberships, 1e-3, "A")?;
    close(&[fast.objective], &[plain.objective], 0.0, "J")?;
    prop_assert!((fast.memberships.iter().sum::<f64>() - n).abs() <= 1e-12 * n);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn smooth_values((rows, centres, m) in case(smooth().boxed())) {
        equal_to_reference(&rows, &centres, m)?;
    }

    #[test]
    fn duplicates_and_coincidences((rows, centres, m) in case(grid().boxed())) {
        equal_to_reference(&rows, &centres, m)?;
    }

    #[test]
    fn never_nan((rows, centres, m) in case(extreme().boxed()), odd in prop::option::of(prop::sample::select(vec![
        1.0 + f64::EPSILON, 1.0001, 50.0, 1e6, 1e300, f64::MAX,
    ]))) {
        let m = odd.unwrap_or(m);
        let packed = Packed::new(&rows);
        let sums = kernel::fuzzy_sums(&packed, &centres, m).unwrap();
        prop_assert!(sums.weighted_sums.iter().all(|value| value.is_finite()));
        prop_assert!(sums.weights.iter().all(|value| (0.0..=rows.len() as f64 * 1.000001).contains(value)));
        prop_assert!(!sums.objective.is_nan());
        let validation = kernel::fuzzy_validation(&packed, &centres, m).unwrap();
        prop_assert!(validation.distances.iter().all(|value| *value >= 0.0));
        prop_assert!(!validation.objective.is_nan());
        let all = validation.memberships.iter().sum::<f64>();
        prop_assert!((all - rows.len() as f64).abs() <= 1e-12 * rows.len() as f64, "{} {}", all, rows.len());
    }
}

#[test]
fn bad_arguments_are_errors() {
    let packed = Packed::new(&Rows::new(vec![0.0, 1.0], 2).unwrap());
    let centres = Centres::from_rows(&[vec![0.0]]).unwrap();
    assert!(kernel::fuzzy_sums(&packed, &centres, 2.0).is_err());
    let centres = Centres::from_rows(&[vec![0.0, 0.0]]).unwrap();
    for m in [1.0, 0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(kernel::fuzzy_sums(&packed, &centres, m).is_err());
        assert!(kernel::fuzzy_validation(&packed, &centres, m).is_err());
    }
}
