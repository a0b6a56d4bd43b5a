//! The search on rows made for the purpose. Totals that no rows have are `tests/bad_inputs.rs`'s.

use super::*;
use crate::{Prepared, Scaling, pooled};

const PARAMS: Candidates = Candidates { seed: 3, each: 5, tries: 5 };

fn domain(d: usize) -> Domain {
    Domain::new(vec![0.0; d], vec![1.0; d], Scaling::Box).unwrap()
}

fn site(values: Vec<f64>, d: usize) -> Prepared {
    Prepared::known(&values, &domain(d))
}

/// The points, and how many questions were asked.
fn search(k: u32, d: usize, sites: &[Prepared]) -> (SeedPoints, u32) {
    let mut search = CandidateSearch::new(&PARAMS, k, None, &domain(d)).unwrap();
    let mut last = None;
    for questions in 1.. {
        let query = search.ask();
        assert_eq!(query.check(&domain(d)), Ok(()));
        assert_ne!(last.as_ref(), Some(&query), "asked twice");
        let words: usize = query.words(&domain(d));
        assert!(questions <= Candidates::questions(None, 2) && words as u64 <= PARAMS.most_words(k, d as u64));
        let totals = pooled::totals(&query.clone().into(), sites).unwrap();
        last = Some(query);
        if let Some(points) = search.take(&totals.values).unwrap() {
            return (points, questions);
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
    let (points, questions) = search(5, 2, &clumps(3));
    assert_eq!((points.weights.iter().sum::<f64>(), questions), (100.0, 3));
    assert!(points.weights.is_sorted_by(|a, b| a >= b));
    let start = points.start(5, 1, 10).unwrap();
    assert!(crate::metrics::matched_distance(&start, &Centres::known(TRUTH.to_vec())).unwrap().max_abs < 0.1);
    assert!(points.start(0, 1, 1).is_err());
    let wanted = (0.128f64 + 0.01 / 12.0).sqrt();
    for deviation in &points.deviations {
        assert!((deviation - wanted).abs() < 0.02, "{deviation} for {wanted}");
    }
}

/// How the rows are dealt to sites changes nothing.
#[test]
fn sites_do_not_matter() {
    assert_eq!(search(5, 2, &clumps(1)), search(5, 2, &clumps(4)));
}

#[test]
fn rows_in_two_places_are_two_points_and_the_rest_holds_none() {
    let rows = site([[0.2, 0.7], [0.6, 0.1]].concat().repeat(10), 2);
    let (points, _) = search(3, 2, &[rows]);
    assert_eq!((points.count(), &points.weights[..3]), (2, &[10.0, 10.0, 0.0][..]));
    let start = points.start(3, 1, 5).unwrap();
    for place in [[0.2, 0.7], [0.6, 0.1]] {
        assert!(crate::distance::nearest(&place, start.rows()).1 < 1e-20, "{start:?}");
    }
}

/// Under noise a candidate that could hold nothing holds nothing, and totals of honest sites may be negative.
#[test]
fn what_noise_drowns_holds_no_rows() {
    let recipe = crate::Recipe {
        noise: Some(crate::privacy::Noise::usual(1.0, 500)),
        ..crate::Recipe::plain(
            crate::Algorithm::Kmeans { epsilon: 0.0, max_rounds: 5 },
            2,
            crate::method::Seeding::Candidates(PARAMS),
        )
    };
    let levels = recipe.levels(&domain(1)).unwrap().unwrap();
    let mut search = CandidateSearch::new(&PARAMS, 2, Some(&levels), &domain(1)).unwrap();
    assert_eq!(search.take(&[-5.0; 18]), Ok(None));
    let Query::Shifts(first) = search.ask() else { panic!("shifts") };
    let noise = levels.of(&search.ask(), &domain(1)).unwrap()[0].deviation;
    let mut totals = vec![0.0; 21];
    (totals[0], totals[1], totals[2]) = (2.1 * noise, 1.9 * noise, -3.0 * noise);
    (totals[10], totals[11], totals[12]) = (0.21 * noise, 5.0, -1e9);
    assert_eq!(search.take(&totals), Ok(None));
    let Query::Shifts(second) = search.ask() else { panic!("shifts") };
    let moved = (first.centres.row(0)[0] + 0.1).min(1.0);
    assert!((second.centres.row(0)[0] - moved).abs() < 0.01 && second.round == 1);
    let points = search.take(&totals).unwrap().unwrap();
    assert_eq!((points.count(), points.weights[0]), (1, 2.1 * noise));
    assert_eq!(points.start(2, 1, 5).unwrap().k(), 2);
    // Twice as many rows stand far enough above it for a third round.
    let questions = |rows| Candidates::questions(Some(&crate::privacy::Noise::usual(1.0, rows)), 2);
    assert_eq!([500, 1000].map(questions), [3, 4]);
}

#[test]
fn parameters_have_limits() {
    for bad in [
        Candidates { each: 1, ..PARAMS },
        Candidates { each: 17, ..PARAMS },
        Candidates { tries: 0, ..PARAMS },
        Candidates { tries: 1001, ..PARAMS },
    ] {
        assert!(bad.check().is_err() && CandidateSearch::new(&bad, 3, None, &domain(2)).is_err(), "{bad:?}");
    }
    // Always more candidates than points: a site tells their questions from rounds by that.
    for points in [1, 2, 100, 204, 1023, 1024, 4096] {
        assert!(PARAMS.count(points) > points, "{points}");
    }
    assert_eq!((PARAMS.count(3), PARAMS.count(1000), PARAMS.count(4096)), (15, 1024, 4097));
}
