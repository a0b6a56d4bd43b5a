//! What must not change the result of a run: the order of rows, how they are spread over sites, where the origin is.

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

fn same(a: &Outcome, b: &Outcome, tolerance: f64) -> Result<(), TestCaseError> {
    prop_assert_eq!(a.rounds, b.rounds);
    let off = max_difference(&a.centres, &b.centres);
    prop_assert!(off <= tolerance, "off by {:e}", off);
    let [x, y] = [a, b].map(|outcome| outcome.indices.fuzzy_davies_bouldin.unwrap_or(f64::INFINITY));
    prop_assert!(x == y || (x / y - 1.0).abs() <= 1e-9 || x > 1e6, "index {} and {}", x, y);
    prop_assert!((a.objective - b.objective).abs() <= 1e-9 * (1e-9 + a.objective));
    Ok(())
}

/// Rows in the unit box, with a start and an m.
fn case() -> impl Strategy<Value = (Vec<Vec<f64>>, Centres, f64, u64)> {
    let m = prop::sample::select(vec![1.5, 2.0, 3.0]);
    (1usize..6, 1usize..5, m, any::<u64>()).prop_flat_map(|(d, k, m, seed)| {
        let rows = prop::collection::vec(prop::collection::vec(0.0..1.0f64, d), 20..120);
        rows.prop_map(move |rows| {
            let start = Centres::uniform(&unit_box(d), k, seed).unwrap();
            (rows, start, m, seed)
        })
    })
}

fn flat(rows: &[Vec<f64>]) -> Rows {
    Rows::new(rows.concat(), rows[0].len()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn the_order_of_rows((mut rows, start, m, seed) in case()) {
        let domain = unit_box(start.columns());
        let before = run(&[prepare(&flat(&rows), &domain)], &start, m);
        let (turn, len) = (seed as usize % rows.len(), rows.len());
        rows.rotate_left(turn);
        rows[..len / 2].reverse();
        let after = run(&[prepare(&flat(&rows), &domain)], &start, m);
        same(&before, &after, 1e-10)?;
    }

    #[test]
    fn the_split_into_sites((rows, start, m, seed) in case(), sites in 1usize..7) {
        let domain = unit_box(start.columns());
        let pooled = run(&[prepare(&flat(&rows), &domain)], &start, m);
        let mut hands = vec![Vec::new(); sites];
        for (i, row) in rows.iter().enumerate() {
            // Uneven, and a site may end up with no row at all.
            hands[(seed as usize >> (i % 40)) % sites].extend(row);
        }
        let hands: Vec<Prepared> =
            hands.into_iter().map(|hand| prepare(&Rows::new(hand, start.columns()).unwrap(), &domain)).collect();
        same(&pooled, &run(&hands, &start, m), 1e-10)?;
    }

    #[test]
    fn a_translation((rows, start, m, _) in case(), shift in -5.0..5.0f64) {
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
