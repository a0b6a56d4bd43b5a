//! The search for cells on rows made for the purpose, and on totals that no rows have.

use super::*;
use crate::{OutOfBox, Prepared, Rows, Scaling, pooled};
use proptest::prelude::*;

fn params(min_rows: u64, blur: f64) -> TreeSeeding {
    TreeSeeding { seed: 3, cells_per_cluster: 4, tries: 5, min_rows, blur }
}

fn rule(min_sites: u32, ask_first: bool) -> GroupThreshold {
    GroupThreshold { min_rows: 1, min_sites, ask_first }
}

fn domain() -> Domain {
    Domain::new(vec![0.0, 0.0], vec![1.0, 1.0], Scaling::Box).unwrap()
}

fn site(values: Vec<f64>) -> Prepared {
    Prepared::new(&Rows::new(values, 2).unwrap(), &domain(), OutOfBox::Refuse).unwrap()
}

/// The cells and the kinds of parts asked.
fn search(params: TreeSeeding, leaves: usize, rule: GroupThreshold, sites: &[Prepared]) -> (SeedCells, u32) {
    let mut search = TreeSearch::new(&params, leaves, rule, &domain(), sites.len() as u32).unwrap();
    let mut last = None;
    for questions in 1.. {
        let query = search.ask();
        assert_ne!(last.as_ref(), Some(&query), "asked twice");
        assert!(questions <= TreeSearch::max_questions(leaves, rule));
        let totals = pooled::totals(&query.clone().into(), sites).unwrap();
        last = Some(query);
        if let Some(cells) = search.take(&totals.values, totals.rows).unwrap() {
            return (cells, questions);
        }
    }
    unreachable!()
}

/// Clumps of 20 rows each around the corners and the middle of the box; clump c lives at site c % sites.
fn clumps(sites: usize) -> Vec<Prepared> {
    let mut stream = Stream::new(11, b"veilsum test stream     ");
    let mut values = vec![Vec::new(); sites];
    for (c, centre) in [[0.1, 0.1], [0.9, 0.1], [0.1, 0.9], [0.9, 0.9], [0.5, 0.5]].iter().enumerate() {
        for _ in 0..20 {
            values[c % sites].extend(centre.iter().map(|x| x + 0.1 * (stream.unit() - 0.5)));
        }
    }
    values.into_iter().map(site).collect()
}

#[test]
fn clumps_are_found_and_no_row_is_lost() {
    for ask_first in [false, true] {
        let (cells, questions) = search(params(5, 0.0), 20, rule(1, ask_first), &clumps(3));
        assert_eq!(cells.weights.iter().sum::<f64>().round(), 100.0);
        assert!(cells.weights.iter().all(|weight| *weight > 4.5));
        assert!(questions <= if ask_first { 19 } else { 10 }, "{questions}");
        let start = cells.start(5, 1, 10, &domain()).unwrap();
        let truth = Centres::known(vec![[0.1, 0.1], [0.9, 0.1], [0.1, 0.9], [0.9, 0.9], [0.5, 0.5]]);
        assert!(crate::metrics::matched_distance(&start, &truth).unwrap().max_abs < 0.1);
        assert_eq!(cells.start(0, 1, 1, &domain()), Err(MethodError::NoClusters));
        // More clusters than cells: all of these, and the rest anywhere in the box.
        let (more, all) = (cells.start(23, 1, 1, &domain()).unwrap(), cells.count());
        let drawn = Start::Uniform { seed: 1 }.centres(&domain(), 23 - all).unwrap();
        assert!(all <= 20 && more.as_slice()[..2 * all] == *cells.means.as_slice());
        assert_eq!(more.as_slice()[2 * all..], *drawn.as_slice());
        assert_eq!(cells.start(23, 1, 1, &domain()).unwrap(), more);
    }
}

#[test]
fn a_split_without_enough_sites_is_undone() {
    // Every clump lives at one site alone, so a cell of two sites holds rows of at least two clumps: a corner's and
    // some of the middle's.
    let one = |ask_first| search(params(5, 0.0), 20, rule(2, ask_first), &clumps(5)).0;
    let (cells, other) = (one(true), one(false));
    assert_eq!(cells.weights, other.weights);
    assert!(cells.means.frobenius_distance(&other.means).unwrap() < 1e-12);
    assert!(cells.weights.len() == 4 && cells.weights.iter().all(|weight| *weight > 20.5), "{:?}", cells.weights);
    assert_eq!(cells.weights.iter().sum::<f64>(), 100.0);
}

#[test]
fn rows_that_coincide_are_one_cell() {
    for ask_first in [false, true] {
        let same = site([0.1, 0.7].repeat(30));
        let (cells, _) = search(params(1, 0.0), 8, rule(1, ask_first), &[same]);
        assert_eq!(cells.weights, [30.0]);
        let two = site([[0.1, 0.7], [0.3, 0.7]].concat().repeat(7));
        assert_eq!(search(params(1, 0.0), 8, rule(1, ask_first), &[two]).0.weights.len(), 2);
        let (single, questions) = search(params(10, 0.0), 8, rule(1, ask_first), &[site(vec![0.2, 0.2])]);
        assert_eq!((single.weights, questions), (vec![1.0], 1));
    }
}

#[test]
fn impossible_totals_change_nothing() {
    let mut search = TreeSearch::new(&params(2, 0.0), 4, rule(2, false), &domain(), 3).unwrap();
    let bad = |search: &mut TreeSearch, values: &[f64], rows: Option<u64>| {
        let before = search.ask();
        assert!(matches!(search.take(values, rows), Err(MethodError::Implausible { .. })), "{values:?}");
        assert_eq!(search.ask(), before);
    };
    bad(&mut search, &[0.0; 5], None);
    bad(&mut search, &[f64::NAN; 5], None);
    bad(&mut search, &[1.0; 4], None);
    bad(&mut search, &[-1.0, 0.0, 0.0, 0.0, 0.0], None);
    bad(&mut search, &[9.0, 4.0, 4.0, 3.0, 2.0], Some(5));
    assert_eq!(search.take(&[9.0, 4.0, 4.0, 3.0, 2.0], Some(9)), Ok(None));
    let children = |rows: f64, sites: f64| [rows, 4.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, sites, 2.0];
    bad(&mut search, &children(10.0, 2.0), None);
    bad(&mut search, &children(-1.0, 2.0), None);
    bad(&mut search, &children(5.0, 4.0), None);
    assert!(search.take(&children(5.0, 2.0), None).is_ok());
}

#[test]
fn unusable_parameters() {
    let new = |leaves, blur, sites| TreeSearch::new(&params(1, blur), leaves, GroupThreshold::NONE, &domain(), sites);
    assert!(new(1, 0.5, 1).is_ok());
    for bad in [new(0, 0.0, 1), new(65_538, 0.0, 1), new(4, f64::NAN, 1), new(4, -1.0, 1), new(4, 0.0, 0)] {
        assert!(matches!(bad, Err(MethodError::Parameter { .. })));
    }
}

#[test]
fn half_a_row_of_blur_costs_nothing() {
    for ask_first in [false, true] {
        let (cells, _) = search(params(5, 0.5), 20, rule(1, ask_first), &clumps(3));
        let start = cells.start(5, 1, 20, &domain()).unwrap();
        let truth = Centres::known(vec![[0.1, 0.1], [0.9, 0.1], [0.1, 0.9], [0.9, 0.9], [0.5, 0.5]]);
        assert!(crate::metrics::matched_distance(&start, &truth).unwrap().max_abs < 0.15);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_rows_split_any_way_give_the_same_cells(
        rows in prop::collection::vec(prop::array::uniform2(prop_oneof![0.0f64..=1.0, Just(0.25)]), 1..60),
        leaves in 1usize..12,
        min_rows in 1u64..6,
        min_sites in 1u32..3,
        ask_first: bool,
    ) {
        let pooled = site(rows.concat());
        let deal = |hand: usize| site(rows.iter().skip(hand).step_by(3).flatten().copied().collect());
        let dealt: Vec<Prepared> = (0..3).map(deal).collect();
        let (one, _) = search(params(min_rows, 0.0), leaves, rule(1, ask_first), &[pooled]);
        let (many, _) = search(params(min_rows, 0.0), leaves, rule(1, ask_first), &dealt);
        prop_assert_eq!(one.weights.iter().map(|w| w.round()).sum::<f64>(), rows.len() as f64);
        prop_assert!(one.weights.len() <= leaves);
        prop_assert_eq!(one.weights.len(), many.weights.len());
        for (a, b) in one.means.as_slice().iter().zip(many.means.as_slice()) {
            prop_assert!((a - b).abs() < 1e-9);
        }
        let (strict, _) = search(params(min_rows, 0.0), leaves, rule(min_sites, ask_first), &dealt);
        prop_assert!(strict.weights.iter().all(|w| *w > min_rows as f64 - 0.5) || strict.weights.len() == 1);
    }

    #[test]
    fn no_totals_make_it_panic(
        answers in prop::collection::vec(prop::collection::vec(prop_oneof![
            -2.0f64..20.0, Just(0.0), Just(1e300), Just(-1e308), Just(f64::NAN), Just(f64::INFINITY)
        ], 60), 1..12),
        min_sites in 1u32..3,
        ask_first: bool,
        blur in prop_oneof![Just(0.0), Just(0.5)],
    ) {
        let mut search = TreeSearch::new(&params(1, blur), 5, rule(min_sites, ask_first), &domain(), 3).unwrap();
        for values in answers {
            let Query::Cells(cells) = search.ask() else { unreachable!() };
            prop_assert_eq!(crate::query::Query::Cells(cells.clone()).check(&domain()), Ok(()));
            let words: usize = Query::Cells(cells).layout(&domain()).iter().map(|block| block.len).sum();
            if let Ok(Some(cells)) = search.take(&values[..words.min(60)], None) {
                prop_assert!(cells.weights.iter().all(|weight| weight.is_finite()));
                break;
            }
        }
    }
}
