//! Sums of local centres and groups keep their bounds; what they are, `protocol/vectors` say (`tests/question_vectors.rs`).

use proptest::prelude::*;

use super::*;
use crate::{Batch, Query, Scaling, answer};

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

proptest! {
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
