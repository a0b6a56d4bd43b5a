//! What a site's checks of questions stop, and what they must let through: every question of every honest run ([QRY-10]).

use veilsum_cluster::{
    Algorithm, Batch, Centres, Clusters, Domain, Method, OutOfBox, Prepared, Query, Recipe, Rows, Scaling, Step,
    Transform, answer,
    method::{CandidateSearch, Candidates, LocalRange, Preparation, Scale, Seeding, Stage, Validity, Winsor},
    pooled,
    privacy::Noise,
    query::{Bracket, FeatureParams, Histogram, LocalMeans, LocalSteps, Margins, Moments, Shifts},
    random::Stream,
};

const SITES: u32 = 5;

fn domain() -> Domain {
    Domain::new(vec![0.0, -4.0], vec![1.0, 4.0], Scaling::Box).unwrap()
}

/// Three groups at five sites.
fn sites() -> Vec<Prepared> {
    let mut stream = Stream::new(11, b"veilsum hostile question");
    (0..SITES)
        .map(|_| {
            let mut values = Vec::new();
            for i in 0..60 {
                let centre = [[0.2, -2.0], [0.8, -1.0], [0.5, 2.5]][i % 3];
                values.extend([centre[0] + 0.2 * (stream.unit() - 0.5), centre[1] + 1.6 * (stream.unit() - 0.5)]);
            }
            let rows = Rows::new(values, 2).unwrap();
            Prepared::new(&rows, &domain(), OutOfBox::Refuse).unwrap()
        })
        .collect()
}

fn from_totals() -> Seeding {
    Seeding::Candidates(Candidates { tries: 5, ..Candidates::usual(3) })
}

fn algorithms() -> Vec<Algorithm> {
    let local = LocalSteps { most: 20, epsilon: 1e-4 };
    vec![
        Algorithm::Fcm { m: 2.0, epsilon: 1e-4, max_rounds: 20 },
        Algorithm::FfcmAvg1 { m: 2.0, epsilon: 1e-4, max_rounds: 6, local, powers: true },
        Algorithm::FfcmAvg2 { m: 2.0, epsilon: 1e-4, max_rounds: 6, local },
        Algorithm::Fkm { epsilon: 0.0, max_rounds: 6, min_rows: 2, local_steps: 2, finish: 6 },
        Algorithm::Kmeans { epsilon: 0.0, max_rounds: 20 },
        Algorithm::Ffcf {
            m: 2.0,
            features: FeatureParams { min: 3, max: 12, tau: 1.0, m: 2.0 },
            anchors: 12,
            merge: false,
        },
        Algorithm::FcmNoise { m: 2.0, epsilon: 1e-4, max_rounds: 20, distance: 0.2 },
        Algorithm::Pcm { m: 2.0, epsilon: 1e-4, max_rounds: 20, distance: 0.2 },
        Algorithm::Gmm { epsilon: 1e-4, max_rounds: 20, regularisation: 1e-6 },
        Algorithm::Gk { m: 2.0, epsilon: 1e-4, max_rounds: 20, regularisation: 1e-6 },
    ]
}

fn recipe(algorithm: Algorithm) -> Recipe {
    Recipe { validity: Validity::everything(), ..Recipe::plain(algorithm, 3, from_totals()) }
}

/// Every question of an honest run, in order.
fn honest(recipe: &Recipe) -> Vec<Batch> {
    let (domain, sites) = (domain(), sites());
    recipe.check(&domain).unwrap();
    let mut run = recipe.run(&domain, SITES).unwrap();
    let mut step = run.next(None).unwrap();
    let mut asked = Vec::new();
    loop {
        match step {
            Step::Done(_) => return asked,
            Step::Ask(batch) => {
                let mut totals = pooled::totals(&batch, &sites).unwrap();
                totals.rows = None;
                asked.push(batch);
                step = run.next(Some(&totals)).unwrap();
            }
        }
    }
}

/// What a site says to a whole run: the first refusal.
fn judged(recipe: &Recipe, asked: &[Batch]) -> Result<(), String> {
    let domain = domain();
    let (mut before, mut often): (Option<(Stage, &Batch)>, u32) = (None, 0);
    for batch in asked {
        let stage = recipe.admits(batch, &domain).map_err(|why| format!("{}: {why}", batch.kind()))?;
        if let Some((_, before)) = before {
            recipe.follows(before, batch, &domain)?;
        }
        often = if before.is_some_and(|(was, _)| was == stage) { often + 1 } else { 1 };
        if often > recipe.most_in(stage) {
            return Err(format!("{stage:?} has {often} questions"));
        }
        before = Some((stage, batch));
    }
    Ok(())
}

#[test]
fn every_question_of_every_honest_run_is_admitted() {
    for algorithm in algorithms() {
        for (scale, restarts) in [(Scale::None, 1), (Scale::Standard, 2), (Scale::Robust, 2)] {
            let mut recipe = recipe(algorithm.clone());
            recipe.seeding = from_totals();
            recipe.restarts = restarts;
            if restarts > 1 {
                recipe.clusters = Clusters { min: 2, max: 4 };
                recipe.range = Some(LocalRange { most: 3, starts: 1, seed: 1 });
                recipe.preparation.winsorise = vec![Winsor { column: 1, lower: 0.0, upper: 0.9 }];
            }
            recipe.preparation.scale = scale;
            judged(&recipe, &honest(&recipe)).unwrap_or_else(|why| panic!("{recipe:?}: {why}"));
        }
    }
}

#[test]
fn a_plan_that_clips_at_the_ends_of_the_box_prepares_nothing_and_runs() {
    let mut recipe = recipe(Algorithm::Kmeans { epsilon: 0.0, max_rounds: 5 });
    recipe.preparation.winsorise = vec![Winsor { column: 0, lower: 0.0, upper: 1.0 }];
    judged(&recipe, &honest(&recipe)).unwrap();
}

#[test]
fn clipping_works_in_raw_units_far_from_zero() {
    let domain = Domain::new(vec![10.0], vec![20.0], Scaling::None).unwrap();
    let rows = Rows::new((0..100).map(|i| 10.0 + 0.1 * f64::from(i)).collect(), 1).unwrap();
    let site = Prepared::new(&rows, &domain, OutOfBox::Refuse).unwrap();
    let mut recipe = Recipe::plain(Algorithm::Kmeans { epsilon: 0.0, max_rounds: 5 }, 2, Seeding::Uniform { seed: 1 });
    recipe.preparation =
        Preparation { winsorise: vec![Winsor { column: 0, lower: 0.0, upper: 0.9 }], ..Preparation::none() };
    let outcome = pooled::run(&mut recipe.run(&domain, 1).unwrap(), &site).unwrap();
    assert!(outcome.transform.unwrap().upper[0] < 20.0);
}

fn kmeans(centres: &[[f64; 2]]) -> Query {
    let centres = Centres::from_rows(&centres.iter().map(|c| c.to_vec()).collect::<Vec<_>>()).unwrap();
    Query::LocalMeans(LocalMeans { centres, local: LocalSteps::ONE, min_rows: 1, nearest: false })
}

fn batch(queries: &[Query]) -> Batch {
    Batch { transform: None, queries: queries.to_vec() }
}

const HERE: [[f64; 2]; 3] = [[0.2, 0.2], [0.8, 0.3], [0.5, 0.8]];
const THERE: [[f64; 2]; 3] = [[0.2, 0.2], [0.8, 0.3], [0.5, 0.8 + 1e-9]];

#[test]
fn one_k_is_not_asked_twice_in_a_batch_with_centres_that_differ_by_a_hair() {
    let mut recipe = recipe(Algorithm::Kmeans { epsilon: 0.0, max_rounds: 5 });
    recipe.clusters = Clusters { min: 2, max: 4 };
    let twice = batch(&[kmeans(&HERE), kmeans(&THERE)]);
    assert!(recipe.admits(&twice, &domain()).unwrap_err().contains("one K"));
    recipe.restarts = 2;
    assert_eq!(recipe.admits(&twice, &domain()), Ok(Stage::Iterating));
}

#[test]
fn quantiles_are_searched_only_in_the_plans_columns_and_inside_the_bins_of_the_search_before() {
    let mut recipe = recipe(Algorithm::Kmeans { epsilon: 0.0, max_rounds: 5 });
    recipe.preparation.winsorise = vec![Winsor { column: 0, lower: 0.0, upper: 0.9 }];
    let domain = domain();
    let search = |column, lower, upper| {
        let brackets = vec![Bracket { column, lower, upper }];
        batch(&[Query::Histogram(Histogram { brackets, bins: 64 })])
    };
    let whole = search(0, 0.0, 1.0);
    assert_eq!(recipe.admits(&whole, &domain), Ok(Stage::Preparing));
    assert!(recipe.admits(&search(1, 0.0, 1.0), &domain).is_err(), "a column that the plan does not clip");
    let mut double = whole.clone();
    let Query::Histogram(q) = &mut double.queries[0] else { unreachable!() };
    q.brackets.push(q.brackets[0]);
    assert!(recipe.admits(&double, &domain).is_err(), "one quantile has one bracket");
    let mut clipped = whole.clone();
    clipped.transform = Some(Transform { upper: vec![0.5, 1.0], ..Transform::identity(&domain) });
    assert!(recipe.follows(&whole, &search(0, 0.25, 0.25 + 1.0 / 64.0), &domain).is_ok());
    for (lower, upper) in [(0.25, 0.25 + 1e-9), (0.25, 0.5), (0.26, 0.26 + 1.0 / 64.0), (0.0, 1.0)] {
        let next = search(0, lower, upper);
        let again = (lower, upper) == (0.0, 1.0);
        assert!(again || recipe.follows(&whole, &next, &domain).is_err(), "{lower} {upper}");
    }
    // Only the clipped end may clip.
    let around = |lower: f64, upper: f64| Batch {
        transform: Some(Transform { lower: vec![lower, 0.0], upper: vec![upper, 1.0], ..Transform::identity(&domain) }),
        queries: vec![kmeans(&HERE)],
    };
    assert!(recipe.admits(&around(0.0, 0.9), &domain).is_ok());
    assert!(recipe.admits(&around(0.1, 0.9), &domain).is_err());
    assert!(recipe.admits(&clipped, &domain).is_err(), "a search is never clipped");
}

#[test]
fn units_stay_what_they_were_found_to_be_and_no_column_vanishes_or_explodes() {
    let mut recipe = recipe(Algorithm::Kmeans { epsilon: 0.0, max_rounds: 5 });
    recipe.preparation.scale = Scale::Standard;
    let domain = domain();
    let scaled = |factor: f64, shift: f64| Batch {
        transform: Some(Transform {
            factor: vec![factor, 4.0],
            shift: vec![shift, 0.5],
            ..Transform::identity(&domain)
        }),
        queries: vec![kmeans(&[[0.0, 0.0]; 3])],
    };
    assert_eq!(recipe.admits(&scaled(4.0, 0.5), &domain), Ok(Stage::Iterating));
    for factor in [1e-300, 1e-3, 1e10, 1e12] {
        assert!(recipe.admits(&scaled(factor, 0.5), &domain).is_err(), "{factor}");
    }
    let mut sums = scaled(4.0, 0.5);
    sums.queries = vec![kmeans(&[[0.1, 0.0]; 3])];
    assert_eq!(recipe.follows(&scaled(4.0, 0.5), &sums, &domain), Ok(()));
    assert!(recipe.follows(&scaled(5.0, 0.5), &sums, &domain).unwrap_err().contains("standardised otherwise"));
    assert!(recipe.follows(&scaled(4.0, 0.4), &sums, &domain).is_err());
    let moments = |around| batch(&[Query::Moments(Moments { around })]);
    assert!(recipe.follows(&moments(None), &moments(Some(vec![0.5, 0.5])), &domain).is_ok());
    assert!(recipe.follows(&moments(Some(vec![0.5, 0.5])), &moments(Some(vec![0.1, 0.5])), &domain).is_err());
}

/// Candidates are as many as the plan says and their sums have its parameters, with noise and without; margins come first.
#[test]
fn seeding_asks_about_as_many_candidates_as_the_plan_says() {
    let domain = domain();
    let exact = Recipe::plain(Algorithm::Kmeans { epsilon: 0.0, max_rounds: 5 }, 4, from_totals());
    let noisy = Recipe { noise: Some(Noise::usual(1.0, 1000)), ..exact.clone() };
    for (plan, other) in [(&exact, &noisy), (&noisy, &exact)] {
        let levels = plan.levels(&domain).unwrap();
        let mut search = CandidateSearch::new(&Candidates::usual(3), 4, levels.as_ref(), &domain).unwrap();
        let margins = batch(&[search.ask()]);
        search.take(&[100.0; 36]).unwrap();
        let sums = batch(&[search.ask()]);
        let admits = |plan: &Recipe, asked: &Batch| plan.admits(asked, &domain);
        assert_eq!((admits(plan, &margins), admits(plan, &sums)), (Ok(Stage::Seeding), Ok(Stage::Seeding)));
        assert!(admits(other, &sums).is_err() && admits(other, &margins).is_ok());
        assert_eq!(plan.follows(&margins, &sums, &domain), Ok(()));
        assert!(plan.follows(&sums, &margins, &domain).is_err() && plan.follows(&margins, &margins, &domain).is_err());
        assert!(admits(plan, &batch(&[Margins { bins: 16 }.into()])).is_err());
        // No sums before the margins, whatever came before.
        let prepared = Preparation { scale: Scale::Standard, ..Preparation::none() };
        let prepared = Recipe { preparation: prepared, ..plan.clone() };
        let moments = batch(&[Moments { around: None }.into()]);
        assert_eq!(prepared.follows(&moments, &margins, &domain), Ok(()));
        assert!(prepared.follows(&moments, &sums, &domain).is_err());
        let uniform = Recipe { seeding: Seeding::Uniform { seed: 3 }, ..plan.clone() };
        assert!(admits(&uniform, &margins).is_err() && admits(&uniform, &sums).is_err());
        let centres = sums.queries[0].points()[0];
        let fewer = Centres::new(19, 2, centres.as_slice()[..38].to_vec()).unwrap();
        let forged: Vec<Query> = match &sums.queries[0] {
            Query::LocalMeans(q) => vec![
                LocalMeans { centres: fewer, ..q.clone() }.into(),
                LocalMeans { nearest: true, ..q.clone() }.into(),
                LocalMeans { min_rows: 2, ..q.clone() }.into(),
            ],
            Query::Shifts(q) => vec![
                Shifts { centres: fewer, ..q.clone() }.into(),
                Shifts { clip: 0.9 * q.clip, ..q.clone() }.into(),
                Shifts { clip: 2.0 * q.clip, ..q.clone() }.into(),
                Shifts { middle: true, ..q.clone() }.into(),
                Shifts { m: Some(2.0), ..q.clone() }.into(),
                Shifts { round: 2, ..q.clone() }.into(),
            ],
            other => panic!("{}", other.kind()),
        };
        for query in forged {
            assert!(admits(plan, &batch(std::slice::from_ref(&query))).is_err(), "{query:?}");
        }
    }
}

#[test]
fn whatever_units_a_coordinator_invents_answers_are_finite_and_inside_their_bounds() {
    let domain = domain();
    let site = &sites()[0];
    let n = 60.0;
    // Squares of what is smaller vanish, in bounds before they do in sums.
    const UNDERFLOW: f64 = 1e-150;
    let mut seen = 0;
    let mut stream = Stream::new(5, b"veilsum hostile question");
    for round in 0..300 {
        let mut transform = Transform::identity(&domain);
        for column in 0..2 {
            let power = [-320.0, -200.0, -150.0, -20.0, -3.0, 0.0, 3.0, 9.0, 12.0][stream.below(9) as usize];
            transform.factor[column] = 10f64.powf(power);
            transform.shift[column] = stream.unit();
            let low = stream.unit();
            (transform.lower[column], transform.upper[column]) =
                if round % 3 == 0 { (low, low + (1.0 - low) * stream.unit().powi(20)) } else { (0.0, 1.0) };
        }
        let Ok(inner) = transform.domain(&domain) else { continue };
        let place = |unit: f64, column: usize| {
            let (low, high) = inner.working_interval(column);
            low + unit * (high - low)
        };
        let centres: Vec<Vec<f64>> =
            (0..3).map(|_| (0..2).map(|column| place(stream.unit(), column)).collect()).collect();
        let centres = Centres::from_rows(&centres).unwrap();
        let local = LocalSteps { most: 3, epsilon: 0.0 };
        let features = FeatureParams { min: 2, max: 5, tau: 1.0, m: 2.0 };
        use veilsum_cluster::query::{Features, LocalFuzzy, Pull, Validation};
        let fuzzy = |pull| LocalFuzzy { centres: centres.clone(), m: 2.0, local, pull };
        let queries = vec![
            Query::fuzzy_sums(centres.clone(), 1.1),
            Query::fuzzy_validation(centres.clone(), 2.0),
            Query::LocalFuzzy(fuzzy(Pull::Nearest)),
            Query::LocalFuzzy(fuzzy(Pull::Memberships)),
            Query::LocalMeans(LocalMeans { centres: centres.clone(), local, min_rows: 1, nearest: true }),
            Query::Features(Features { anchors: centres.clone(), params: features }),
            Query::Validation(Validation { centres: centres.clone(), m: 2.0, vectors: true }),
        ];
        for query in queries {
            let batch = Batch { transform: Some(transform.clone()), queries: vec![query] };
            let kind = batch.kind();
            let values = answer(&batch, site).unwrap_or_else(|e| panic!("{kind} {transform:?}: {e}")).values;
            let mut rest = values.as_slice();
            for block in batch.layout(&domain).unwrap() {
                let (head, tail) = rest.split_at(block.len);
                let most = block.bound * if block.per == veilsum_cluster::Per::Row { n + 1.0 } else { 2.0 };
                let worst = head.iter().fold(0.0f64, |a, x| a.max(x.abs()));
                assert!(
                    worst <= most + UNDERFLOW,
                    "{kind} {}: {worst:e} over {most:e}, {transform:?} {centres:?}",
                    block.name
                );
                rest = tail;
            }
            seen += 1;
        }
    }
    assert!(seen > 500, "{seen}");
}
