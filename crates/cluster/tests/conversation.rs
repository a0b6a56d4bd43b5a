//! The conversation of federated FCM: what it asks, what it refuses, when it stops.

use veilsum_cluster::method::{Scale, Seeding, Stage, Validity};
use veilsum_cluster::{
    Algorithm, Centres, Domain, Error, OutOfBox, Outcome, Prepared, Query, Recipe, Rows, Run, Scaling, Step, Totals,
    pooled, synthetic,
};
use veilsum_testkit::data::prepare;

use crate::plain_fcm;

fn start() -> Centres {
    Centres::from_rows(&[vec![0.2], vec![0.8]]).unwrap()
}

/// Two clusters from [`start`], so many rounds.
fn rounds(most: u32) -> Run {
    plain_fcm(2, 2.0, 0.0, most, &start()).unwrap()
}

fn domain() -> Domain {
    Domain::new(vec![0.0], vec![1.0], Scaling::Box).unwrap()
}

fn asked(step: Result<Step, Error>) -> Query {
    match step.unwrap() {
        Step::Ask(batch) => {
            let [query] = batch.queries.try_into().unwrap();
            query
        }
        Step::Done(_) => panic!("done too early"),
    }
}

fn totals(values: &[f64], rows: Option<u64>) -> Totals {
    Totals { values: values.to_vec(), rows }
}

#[test]
fn the_open_question_is_repeated_until_it_is_answered() {
    let mut fcm = rounds(3);
    assert_eq!(fcm.next(Some(&totals(&[0.3, 0.7, 1.0, 1.0], None))), Err(Error::NotAsked));
    let first = asked(fcm.next(None));
    assert_eq!(first, Query::fuzzy_sums(start(), 2.0));
    assert_eq!(asked(fcm.next(None)), first);
    let second = asked(fcm.next(Some(&totals(&[0.3, 0.7, 1.0, 1.0], None))));
    assert_eq!(second, Query::fuzzy_sums(Centres::from_rows(&[vec![0.3], vec![0.7]]).unwrap(), 2.0));
    assert_eq!(asked(fcm.next(None)), second);
}

#[test]
fn implausible_totals_are_refused_and_change_nothing() {
    let bad: [(&[f64], Option<u64>, &str); 6] = [
        (&[0.3, 0.7, 1.0], None, "expected 4 entries, found 3"),
        (&[0.3, 0.7, 1.0, f64::NAN], None, "entry 3 is not a finite number"),
        (&[0.3, f64::INFINITY, 1.0, 1.0], None, "entry 1 is not a finite number"),
        (&[0.3, 0.7, 1.0, -1e-3], None, "U of cluster 1 is negative"),
        (&[0.3, 0.7, 1.5, 1.0], Some(2), "the sum of U exceeds the number of rows"),
        (&[1e300, 0.7, 1e-3, 1.0], None, "lies outside the box"),
    ];
    let mut fcm = rounds(3);
    let question = asked(fcm.next(None));
    for (values, rows, why) in bad {
        let error = fcm.next(Some(&totals(values, rows))).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("totals are not plausible: ") && text.contains(why), "{text}");
        assert_eq!(asked(fcm.next(None)), question);
        assert!(fcm.fits()[0].history.is_empty());
    }
    let few = fcm.next(Some(&totals(&[0.3, 0.7, 0.5, 0.5], Some(1))));
    assert_eq!(few, Err(Error::TooFewRows(2)));
}

fn to_validation() -> Run {
    let mut fcm = rounds(1);
    asked(fcm.next(None));
    let last = asked(fcm.next(Some(&totals(&[0.5, 1.5, 2.0, 2.0], None))));
    assert_eq!(last.kind(), "fuzzy_validation");
    fcm
}

#[test]
fn the_outcome_without_a_known_number_of_rows() {
    let mut fcm = to_validation();
    for (values, why) in [
        (vec![1.0, 1.0, 2.0, 2.0], "expected 5 entries"),
        (vec![-1.0, 1.0, 2.0, 2.0, 0.5], "distances is negative"),
        (vec![1.0, 1.0, 2.0, -2.0, 0.5], "A of cluster 1 is negative"),
        (vec![1.0, 1.0, 2.0, 2.0, -0.5], "distances is negative"),
        (vec![0.0, 0.0, 0.0, 0.0, 0.0], "there are no rows"),
    ] {
        let text = fcm.next(Some(&totals(&values, None))).unwrap_err().to_string();
        assert!(text.contains(why), "{text}");
    }
    let text = fcm.next(Some(&totals(&[1.0, 1.0, 2.0, 2.0, 0.5], Some(9)))).unwrap_err().to_string();
    assert!(text.contains("do not add up"), "{text}");

    let step = fcm.next(Some(&totals(&[1.0, 1.0, 2.0 + 1e-7, 2.0, 0.5], None))).unwrap();
    let Step::Done(outcome) = step else { panic!("not done") };
    let outcome = *outcome;
    assert_eq!((outcome.n_total, outcome.rounds, outcome.converged), (Some(4), 1, false));
    assert_eq!((outcome.objective, outcome.objective_per_row), (0.5, 0.125));
    assert_eq!(outcome.clusters.mass, [Some(2.0 + 1e-7), Some(2.0)], "of the reported centres");
    assert_eq!(outcome.clusters.weight, [None; 2]);
    // S = 1/4 * 1/2 each, centres 0.25 and 0.75.
    assert!((outcome.indices.fuzzy_davies_bouldin.unwrap() - 0.5).abs() < 1e-6);
    let text = serde_json::to_string(&outcome).unwrap();
    assert_eq!(serde_json::from_str::<Outcome>(&text).unwrap(), outcome);

    assert_eq!(fcm.next(None), Err(Error::Finished));
    assert_eq!(fcm.next(Some(&totals(&[], None))), Err(Error::Finished));
}

#[test]
fn epsilon_stops_and_zero_runs_all_rounds() {
    let site = prepare(&Rows::new(vec![0.0, 0.1, 0.15, 0.8, 0.9, 1.0], 1).unwrap(), &domain());
    let run = |epsilon: f64| pooled::run(&mut plain_fcm(2, 2.0, epsilon, 200, &start()).unwrap(), &site).unwrap();
    let outcome = run(1e-6);
    assert!(outcome.converged && outcome.rounds < 200);
    assert_eq!(outcome.rounds as usize, outcome.history.len());
    assert!(outcome.history.last().unwrap().shift < 1e-6);
    assert!(outcome.history.iter().rev().skip(1).all(|round| round.shift >= 1e-6));
    let all = run(0.0);
    assert_eq!((all.rounds, all.converged), (200, false));
}

#[test]
fn more_clusters_than_rows_and_no_sites_are_errors() {
    let site = prepare(&Rows::new(vec![0.5], 1).unwrap(), &domain());
    let error = pooled::run(&mut rounds(3), &site).unwrap_err();
    assert_eq!(error, Error::TooFewRows(2));
    assert_eq!(pooled::plain_federated(&mut rounds(3), &[]), Err(Error::NoSites));
    let wide = Centres::from_rows(&[vec![0.2, 0.1], vec![0.8, 0.1]]).unwrap();
    let mut fcm = plain_fcm(2, 2.0, 0.0, 3, &wide).unwrap();
    assert!(matches!(pooled::run(&mut fcm, &site), Err(Error::ColumnMismatch { .. })));
}

#[test]
fn centres_that_rest_exactly_are_not_asked_about_again() {
    let mut fcm = rounds(10);
    asked(fcm.next(None));
    // WS / U gives the very centres that were asked about.
    let same = totals(&[0.2, 0.8, 1.0, 1.0], None);
    let next = asked(fcm.next(Some(&same)));
    assert_eq!(next, Query::fuzzy_validation(start(), 2.0));
    assert_eq!(fcm.fits()[0].history.len(), 10);
    assert!(fcm.fits()[0].history.iter().enumerate().all(|(i, r)| r.round as usize == i + 1 && r.shift == 0.0));
    assert!(plain_fcm(2, 2.0, 0.0, u32::MAX, &start()).is_err());
}

/// Sites may be lost between any two questions: what would mix two cohorts is left out, the rest says which one it is over.
#[test]
fn an_outcome_says_over_which_cohort_its_numbers_are() {
    let site = |offset: f64| {
        let values = (0..30).map(|i| f64::from(i % 3) * 0.35 + f64::from(i) * 0.005 + offset).collect();
        prepare(&Rows::new(values, 1).unwrap(), &domain())
    };
    let sites = [site(0.0), site(0.01), site(0.02)];
    let kmeans = Algorithm::Kmeans { epsilon: 0.0, max_rounds: 20 };
    let mut recipe = Recipe::plain(kmeans, 3, Seeding::Uniform { seed: 4 });
    recipe.validity = Validity::everything();
    recipe.preparation = Scale::Standard;
    // In which stage the third site is lost.
    let lost_in = |stage: Stage| {
        crate::drive(&mut recipe.run(&domain(), 3).unwrap(), |run, batch| {
            let lost = run.stage() >= Some(stage);
            if lost {
                run.over(7);
            }
            Totals { rows: None, ..pooled::totals(batch, &sites[..if lost { 2 } else { 3 }]).unwrap() }
        })
    };
    let says = |outcome: &Outcome, what: &str| outcome.notes.iter().any(|note| note.contains(what));
    for (stage, centres) in [(Stage::Preparing, 7), (Stage::Iterating, 7), (Stage::Validating, 0)] {
        let outcome = lost_in(stage);
        assert_eq!((outcome.centres_over, outcome.judged_over, outcome.n_total), (centres, Some(7), Some(60)));
        assert!(outcome.indices.davies_bouldin.is_some());
        assert_eq!(says(&outcome, "the standardisation is over"), stage == Stage::Iterating, "{stage:?}");
    }
}

#[test]
fn a_run_stops_where_it_stands() {
    let domain = synthetic::five_gaussians_domain();
    let prepare = |site: &synthetic::Site| Prepared::new(&site.rows, &domain, OutOfBox::Refuse).unwrap();
    let sites: Vec<Prepared> = synthetic::five_gaussians(1).sites.iter().map(prepare).collect();
    let fcm = |k, epsilon| {
        Recipe::plain(Algorithm::Fcm { m: 2.0, epsilon, max_rounds: 400 }, k, Seeding::Uniform { seed: 5 })
    };
    let start = |recipe: &Recipe, questions: u32| {
        let mut run = recipe.run(&domain, 3).unwrap();
        let mut step = run.next(None).unwrap();
        for _ in 0..questions {
            let Step::Ask(batch) = step else { panic!("done too early") };
            step = run.next(Some(&pooled::totals(&batch, &sites).unwrap())).unwrap();
        }
        run
    };
    let run = start(&fcm(3, 1e-8), 0);
    assert_eq!(run.stop_here(), Err(Error::NoCentresYet));

    let run = start(&fcm(3, 1e-8), 2);
    let outcome = run.stop_here().unwrap();
    assert_eq!((outcome.rounds, outcome.converged, outcome.n_total, outcome.questions), (2, false, None, 2));
    assert_eq!(outcome.centres, run.fits()[0].centres);
    assert!(outcome.objective == f64::INFINITY && outcome.indices.fuzzy_davies_bouldin.is_none());
    let json = serde_json::to_value(&outcome).unwrap();
    assert!(json["objective"].is_null(), "{json}");

    // A site that is lost at the validity question: the centres are what they would have been.
    let loose = fcm(3, 1e-3);
    let whole = pooled::plain_federated(&mut loose.run(&domain, 3).unwrap(), &sites).unwrap();
    let run = start(&loose, whole.questions - 1);
    let outcome = run.stop_here().unwrap();
    assert_eq!((&outcome.centres, outcome.converged, outcome.n_total), (&whole.centres, true, None));

    // A sweep of which nothing was judged says that nothing chose.
    let sweep = Recipe { clusters: veilsum_cluster::Clusters { min: 2, max: 4 }, restarts: 2, ..fcm(2, 1e-8) };
    let run = start(&sweep, 3);
    let outcome = run.stop_here().unwrap();
    assert!(outcome.centres.k() == 2 && outcome.curve.is_empty());
    assert!(outcome.notes.iter().any(|note| note.contains("nothing chose")), "{:?}", outcome.notes);
}
