//! What must not change the result of a run: where the origin is. The order of rows and how they are spread over sites change no word of a
//! total (`exact_sums.rs`, `bad_inputs.rs`).

use proptest::prelude::*;
use veilsum_cluster::{Centres, Domain, Outcome, Prepared, Rows, Scaling, pooled};
use veilsum_testkit::data::{max_difference, prepare};

const ROUNDS: u32 = 6;

fn run(sites: &[Prepared], start: &Centres, m: f64) -> Outcome {
    pooled::plain_federated(&mut crate::plain_fcm(start.k(), m, 0.0, ROUNDS, start).unwrap(), sites).unwrap()
}

fn unit_box(d: usize) -> Domain {
    Domain::new(vec![0.0; d], vec![1.0; d], Scaling::Box).unwrap()
}

/// Rows in the unit box, with a start and an m.
fn case() -> impl Strategy<Value = (Vec<Vec<f64>>, Centres, f64)> {
    let m = prop::sample::select(vec![1.5, 2.0, 3.0]);
    (1usize..6, 1usize..5, m, any::<u64>()).prop_flat_map(|(d, k, m, seed)| {
        let rows = prop::collection::vec(prop::collection::vec(0.0..1.0f64, d), 20..120);
        rows.prop_map(move |rows| {
            let start = Centres::uniform(&unit_box(d), k, seed).unwrap();
            (rows, start, m)
        })
    })
}

fn flat(rows: &[Vec<f64>]) -> Rows {
    Rows::new(rows.concat(), rows[0].len()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_translation((rows, start, m) in case(), shift in -5.0..5.0f64) {
        let d = start.columns();
        let raw = |low: f64| Domain::new(vec![low - 1.0; d], vec![low + 2.0; d], Scaling::None).unwrap();
        let move_all = |values: &[f64]| values.iter().map(|value| value + shift).collect::<Vec<_>>();
        let here = run(&[prepare(&flat(&rows), &raw(0.0))], &start, m);
        let moved = Rows::new(move_all(flat(&rows).as_slice()), d).unwrap();
        let moved_start = Centres::new(start.k(), d, move_all(start.as_slice())).unwrap();
        let there = run(&[prepare(&moved, &raw(shift))], &moved_start, m);
        let back = Centres::new(start.k(), d, there.centres.as_slice().iter().map(|x| x - shift).collect()).unwrap();
        prop_assert!(max_difference(&here.centres, &back) < 1e-8);
    }
}
