//! The search for cells on rows made for the purpose, and on counts that no rows have.

use super::*;
use crate::{OutOfBox, Prepared, Rows, Scaling, pooled};
use proptest::prelude::*;

fn params(levels: u32) -> TreeSeeding {
    TreeSeeding { seed: 3, levels, tries: 5 }
}

fn domain(d: usize) -> Domain {
    Domain::new(vec![0.0; d], vec![1.0; d], Scaling::Box).unwrap()
}

fn site(values: Vec<f64>, d: usize) -> Prepared {
    Prepared::new(&Rows::new(values, d).unwrap(), &domain(d), OutOfBox::Refuse).unwrap()
}

/// The cells, and how many questions were asked.
fn search(params: TreeSeeding, d: usize, sites: &[Prepared]) -> (SeedCells, u32) {
    let mut search = TreeSearch::new(&params, 0.0, &domain(d)).unwrap();
    let mut last = None;
    for questions in 1.. {
        let query = search.ask();
        assert_eq!(query.check(&domain(d)), Ok(()));
        assert_ne!(last.as_ref(), Some(&query), "asked twice");
        let Query::Cells(cells) = &query else { panic!("cells") };
        assert!(questions <= params.questions() && cells.nodes.len() as u64 <= params.most_words());
        assert_eq!(cells.most_on_a_path(), 1);
        let totals = pooled::totals(&query.clone().into(), sites).unwrap();
        last = Some(query);
        if let Some(cells) = search.take(&totals.values).unwrap() {
            return (cells, questions);
        }
    }
    unreachable!()
}

const TRUTH: [[f64; 2]; 5] = [[0.1, 0.1], [0.9, 0.1], [0.1, 0.9], [0.9, 0.9], [0.5, 0.5]];

/// Clumps of 20 rows each around the corners and the middle of the box.
fn clumps(sites: usize) -> Vec<Prepared> {
    let mut stream = Stream::new(11, b"veilsum test stream     ");
    let mut values = vec![Vec::new(); sites];
    for (c, centre) in TRUTH.iter().enumerate() {
        for _ in 0..20 {
            values[c % sites].extend(centre.iter().map(|x| x + 0.1 * (stream.unit() - 0.5)));
        }
    }
    values.into_iter().map(|values| site(values, 2)).collect()
}

#[test]
fn clumps_are_found_and_no_row_is_lost() {
    for levels in [6, 10] {
        let (cells, questions) = search(params(levels), 2, &clumps(3));
        assert_eq!((cells.weights.iter().sum::<f64>(), questions), (100.0, levels.div_ceil(8)));
        let start = cells.start(5, 1, 10, &domain(2)).unwrap();
        assert!(crate::metrics::matched_distance(&start, &Centres::known(TRUTH.to_vec())).unwrap().max_abs < 0.1);
        assert_eq!(cells.start(0, 1, 1, &domain(2)), Err(MethodError::NoClusters));
        // More clusters than cells: all of these, and the rest anywhere in the box.
        let all = cells.count();
        let more = cells.start(all + 3, 1, 1, &domain(2)).unwrap();
        let drawn = Start::Uniform { seed: 1 }.centres(&domain(2), 3).unwrap();
        assert_eq!(more.as_slice()[..2 * all], *cells.middles.as_slice());
        assert_eq!(more.as_slice()[2 * all..], *drawn.as_slice());
    }
}

/// Twelve columns are halved once each in two questions; the groups differ in the last one only.
#[test]
fn every_column_is_looked_at() {
    let rows: Vec<f64> = (0..40)
        .flat_map(|i| {
            let mut row = [0.3; 12];
            row[11] = if i % 2 == 0 { 0.1 } else { 0.9 };
            row
        })
        .collect();
    let params = TreeSeeding::usual(1, 2, 12);
    let (cells, questions) = search(params, 12, &[site(rows, 12)]);
    assert_eq!((params.levels, questions, cells.weights), (12, 2, vec![20.0, 20.0]));
    assert_eq!((cells.middles.row(0)[11], cells.middles.row(1)[11]), (0.25, 0.75));
    assert!((cells.deviations[11] - (0.0625f64 + 0.25 / 12.0).sqrt()).abs() < 1e-12);
}

#[test]
fn rows_that_coincide_are_one_cell() {
    assert_eq!(search(params(8), 2, &[site([0.1, 0.7].repeat(30), 2)]).0.weights, [30.0]);
}

/// [NOI-7]: what could be noise is forgotten, and no count is an error.
#[test]
fn counts_that_could_be_noise_hold_no_rows() {
    let mut search = TreeSearch::new(&params(3), 10.0, &domain(2)).unwrap();
    let before = search.ask();
    for bad in [&[0.0; 5][..], &[f64::NAN; 8][..]] {
        assert!(matches!(search.take(bad), Err(MethodError::Implausible { .. })));
        assert_eq!(search.ask(), before);
    }
    let found = search.clone().take(&[100.0, -9.0, 15.0, 0.0, 400.0, 3.0, -30.0, 9.0]).unwrap().unwrap();
    assert_eq!(found.weights, [100.0, 400.0]);
    // Nothing is clear of the noise: then whatever there is; and if there is nothing, the box.
    let found = search.clone().take(&[1.0, -9.0, 5.0, 0.0, 4.0, 3.0, -30.0, 9.0]).unwrap().unwrap();
    assert_eq!(found.weights, [1.0, 5.0, 4.0, 3.0, 9.0]);
    let found = search.take(&[-1.0; 8]).unwrap().unwrap();
    assert_eq!((found.weights, found.middles), (vec![1.0], Centres::known(vec![[0.5, 0.5]])));
}

#[test]
fn unusable_parameters() {
    for bad in [TreeSeeding { levels: 0, ..params(1) }, params(33), TreeSeeding { tries: 0, ..params(1) }] {
        assert!(matches!(TreeSearch::new(&bad, 0.0, &domain(1)), Err(MethodError::Parameter { .. })));
    }
    assert_eq!(
        [(1, 2), (3, 2), (15, 2), (10, 16), (2, 500)].map(|(k, d)| TreeSeeding::usual(1, k, d).levels),
        [7, 7, 9, 16, 32]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn rows_split_any_way_give_the_same_cells(
        rows in prop::collection::vec(prop::array::uniform2(prop_oneof![0.0f64..=1.0, Just(0.25)]), 1..60),
        levels in 1u32..20,
    ) {
        let pooled = site(rows.concat(), 2);
        let deal = |hand: usize| site(rows.iter().skip(hand).step_by(3).flatten().copied().collect(), 2);
        let dealt: Vec<Prepared> = (0..3).map(deal).collect();
        let (one, _) = search(params(levels), 2, &[pooled]);
        prop_assert_eq!(one.weights.iter().sum::<f64>(), rows.len() as f64);
        prop_assert_eq!(&one, &search(params(levels), 2, &dealt).0);
    }

    #[test]
    fn no_totals_make_it_panic(
        answers in prop::collection::vec(prop::collection::vec(prop_oneof![
            -2.0f64..20.0, Just(0.0), Just(1e300), Just(-1e308), Just(f64::NAN), Just(f64::INFINITY)
        ], 64), 1..12),
        levels in 1u32..32,
        noise in prop_oneof![Just(0.0), Just(3.0)],
    ) {
        let mut search = TreeSearch::new(&params(levels), noise, &domain(3)).unwrap();
        for values in answers {
            let Query::Cells(cells) = search.ask() else { unreachable!() };
            let values: Vec<f64> = values.iter().cycle().take(cells.nodes.len()).copied().collect();
            prop_assert_eq!(Query::Cells(cells).check(&domain(3)), Ok(()));
            if let Ok(Some(cells)) = search.take(&values) {
                prop_assert!(cells.weights.iter().all(|weight| weight.is_finite() && *weight > 0.0));
                break;
            }
        }
    }
}
