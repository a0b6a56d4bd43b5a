//! Sums of local centres and groups against plain loops, and what a lying coordinator may not ask.

use proptest::prelude::*;

use super::*;
use crate::{Batch, Query, Rows, Scaling, answer};

fn domain() -> Domain {
    Domain::new(vec![-1.0, 0.0], vec![1.0, 4.0], Scaling::None).unwrap()
}

fn site(rows: &[f64]) -> Prepared {
    Prepared::known(rows, &domain())
}

fn centres(rows: &[[f64; 2]]) -> Centres {
    Centres::known(rows.to_vec())
}

fn steps(most: u32, epsilon: f64) -> LocalSteps {
    LocalSteps { most, epsilon }
}

fn fuzzy(pull: Pull, local: LocalSteps) -> LocalFuzzy {
    LocalFuzzy { centres: centres(&[[-0.5, 1.0], [0.5, 3.0], [0.9, 0.1]]), m: 2.0, local, pull }
}

fn means(nearest: bool, local: LocalSteps, min_rows: u64) -> LocalMeans {
    let centres = centres(&[[-0.5, 1.0], [0.5, 3.0], [0.9, 0.1]]);
    LocalMeans { centres, local, min_rows, nearest }
}

fn ask(query: Query, rows: &[f64]) -> Vec<f64> {
    answer(&Batch::from(query), &site(rows)).unwrap().values
}

const ROWS: [f64; 16] = [-0.9, 0.5, -0.2, 1.5, 0.1, 2.0, 0.4, 3.2, 0.6, 3.9, 1.0, 0.0, -0.4, 1.1, 0.7, 2.8];

/// Its own clusters would be its rows, and rounding would say where the third centre goes. One step is the same for any number of rows.
#[test]
fn a_site_with_fewer_rows_than_clusters_abstains() {
    for pull in [Pull::Memberships, Pull::Powers, Pull::Nearest] {
        let of = |most, rows: usize| ask(Query::LocalFuzzy(fuzzy(pull, steps(most, 1e-6))), &ROWS[..2 * rows]);
        assert!(of(50, 2).iter().all(|total| *total == 0.0), "{pull:?}");
        assert!(of(50, 3)[..3].iter().sum::<f64>() > 0.5 && of(1, 2)[..3].iter().sum::<f64>() > 0.5, "{pull:?}");
    }
}

fn values() -> impl Strategy<Value = Vec<f64>> {
    let coarse = (0..=8u8, 0..=8u8).prop_map(|(x, y)| [f64::from(x) / 4.0 - 1.0, f64::from(y) / 2.0]);
    let fine = (-1.0f64..=1.0, 0.0f64..=4.0).prop_map(|(x, y)| [x, y]);
    prop::collection::vec(prop_oneof![coarse, fine], 0..60).prop_map(|rows| rows.concat())
}

/// Inside the box or not.
fn some_centres() -> impl Strategy<Value = Centres> {
    prop::collection::vec((-2.0f64..2.0, -1.0f64..5.0).prop_map(|(x, y)| [x, y]), 1..6).prop_map(Centres::known)
}

/// Every entry within its block's bound.
fn within(blocks: Vec<Block>, found: &[f64], n: usize) -> Result<(), TestCaseError> {
    let mut rest = found;
    for block in blocks {
        let (head, tail) = rest.split_at(block.len);
        let most = block.bound * if block.per == crate::Per::Row { n as f64 } else { 1.0 };
        prop_assert!(head.iter().all(|x| x.abs() <= most * (1.0 + 1e-12)), "{} {head:?} {most}", block.name);
        rest = tail;
    }
    prop_assert!(rest.is_empty());
    Ok(())
}

#[test]
fn one_step_with_powers_is_the_sum_of_federated_fcm() {
    for m in [2.0, 1.3] {
        let question = LocalFuzzy { m, ..fuzzy(Pull::Powers, steps(1, 0.0)) };
        let exact = ask(Query::fuzzy_sums(question.centres.clone(), m), &ROWS);
        let found = ask(Query::LocalFuzzy(question), &ROWS);
        assert_eq!([&found[3..], &found[..3]].concat(), exact);
    }
}

#[test]
fn local_steps_go_on_until_the_memberships_rest() {
    let rested = ask(Query::LocalFuzzy(fuzzy(Pull::Nearest, steps(1000, 1e-12))), &ROWS);
    // The local centres are a fixed point: one more step from them changes nothing.
    let packed = Packed::new(&Rows::new(ROWS.to_vec(), 2).unwrap());
    let local = fuzzy(Pull::Nearest, steps(1000, 1e-12)).iterate(&packed).unwrap();
    let sums = kernel::fuzzy_sums(&packed, &local.centres, 2.0).unwrap();
    for (i, x) in local.centres.as_slice().iter().enumerate() {
        assert!((sums.weighted_sums[i] / sums.weights[i / 2] - x).abs() < 1e-10);
    }
    assert_eq!(rested[..3].iter().sum::<f64>(), 3.0);
    let mass = ask(Query::LocalFuzzy(fuzzy(Pull::Memberships, steps(1000, 1e-12))), &ROWS);
    assert!((mass[..3].iter().sum::<f64>() - 8.0).abs() < 1e-12);
    assert!((mass[3] / mass[0] - local.centres.row(0)[0]).abs() < 1e-14);
}

#[test]
fn a_local_centre_that_no_row_weighs_counts_nowhere() {
    // At m = 1.001 the far centre's memberships vanish in f64.
    let far = centres(&[[0.0, 1.0], [1e6, 1e6]]);
    for pull in [Pull::Memberships, Pull::Powers, Pull::Nearest] {
        let question = LocalFuzzy { centres: far.clone(), m: 1.001, ..fuzzy(pull, steps(5, 0.0)) };
        let found = ask(Query::LocalFuzzy(question), &ROWS);
        assert_eq!((found[1], &found[4..6]), (0.0, [0.0, 0.0].as_slice()), "{pull:?}");
        assert!(found[0] > 0.0);
    }
}

#[test]
fn aligned_groups_by_hand() {
    // Two groups of at least 2 rows; the single row near the third centre is left out.
    let rows = [-0.9, 0.5, -0.2, 1.5, 0.4, 3.2, 0.6, 3.9, 1.0, 0.0];
    let found = ask(Query::LocalMeans(means(true, steps(1, 0.0), 2)), &rows);
    assert_eq!(found[..3], [2.0, 2.0, 0.0]);
    let near = |a: f64, b: f64| (a - b).abs() < 1e-14;
    assert!(near(found[3], -1.1) && near(found[4], 2.0) && near(found[5], 1.0) && near(found[6], 7.1));
    // Two local groups may count at one global centre: the second step splits what the first found.
    let crowd =
        LocalMeans { centres: centres(&[[-1.0, 0.0], [-0.9, 0.0], [1.0, 4.0]]), ..means(true, steps(1, 0.0), 1) };
    let found = ask(Query::LocalMeans(crowd), &[-1.0, 0.0, -0.96, 0.0, 0.4, 0.0]);
    assert_eq!(found[..3], [2.0, 1.0, 0.0]);
}

proptest! {
    #[test]
    fn one_lloyd_step_is_a_plain_loop(values in values(), centres in some_centres()) {
        let (n, k) = (values.len() / 2, centres.k());
        let question = LocalMeans { centres: centres.clone(), ..means(false, steps(1, 0.0), 1) };
        let found = ask(Query::LocalMeans(question.clone()), &values);
        let mut expected = vec![0.0; k * 3 + 1];
        for row in values.chunks_exact(2) {
            let (own, square) = distance::nearest(row, centres.rows());
            expected[own] += 1.0;
            expected[k + 2 * own] += row[0];
            expected[k + 2 * own + 1] += row[1];
            expected[3 * k] += square;
        }
        prop_assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= 1e-12 * (1.0 + b.abs())));
        within(question.layout(&domain()), &found, n)?;
    }

    #[test]
    fn groups_keep_their_rows_and_bounds(
        values in values(),
        centres in some_centres(),
        nearest in any::<bool>(),
        most in 1u32..6,
        min_rows in 1u64..4,
    ) {
        let n = values.len() / 2;
        let question = LocalMeans { centres, ..means(nearest, steps(most, 0.0), min_rows) };
        let found = ask(Query::LocalMeans(question.clone()), &values);
        within(question.layout(&domain()), &found, n)?;
        let k = question.centres.k();
        let rows = found[..k].iter().sum::<f64>();
        prop_assert!(rows <= n as f64 && rows.fract() == 0.0);
        if min_rows == 1 {
            prop_assert_eq!(rows, n as f64);
        }
    }

    #[test]
    fn local_fuzzy_sums_keep_their_bounds(
        values in values(),
        centres in some_centres(),
        m in prop::sample::select(vec![1.05, 1.5, 2.0, 4.0]),
        pull in prop::sample::select(vec![Pull::Memberships, Pull::Powers, Pull::Nearest]),
        most in 1u32..20,
    ) {
        let n = values.len() / 2;
        let question = LocalFuzzy { centres, m, ..fuzzy(pull, steps(most, 1e-4)) };
        let found = ask(Query::LocalFuzzy(question.clone()), &values);
        prop_assert!(n > 0 || found.iter().all(|x| *x == 0.0));
        within(question.layout(&domain()), &found, n)?;
    }
}
