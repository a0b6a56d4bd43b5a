//! What a site's checks of questions stop, and what they must let through: every question of every honest run ([QRY-10]).

use veilsum_cluster::{
    Algorithm, Batch, Centres, Clusters, Domain, Method, OutOfBox, Prepared, Query, Recipe, Rows, Scaling, Step,
    Transform, answer,
    method::{GroupThreshold, LocalRange, Preparation, Scale, Seeding, Stage, TreeSeeding, Validity, Winsor},
    pooled,
    query::{Bracket, Cells, FeatureParams, Histogram, LocalMeans, LocalSteps, Moments, RoundHalf, Split},
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
            let labels = (0..60).map(|i| i % 3).collect();
            let rows = Rows::new(values, 2).unwrap();
            Prepared::new(&rows, &domain(), OutOfBox::Refuse).unwrap().with_labels(labels).unwrap()
        })
        .collect()
}

fn tree(blur: f64) -> Seeding {
    Seeding::Tree(TreeSeeding { seed: 3, cells_per_cluster: 4, tries: 5, min_rows: 8, blur })
}

const COUNTS_FIRST: GroupThreshold = GroupThreshold { min_rows: 8, min_sites: 2, ask_first: true };
const TOGETHER: GroupThreshold = GroupThreshold { min_rows: 8, min_sites: 2, ask_first: false };

fn algorithms() -> Vec<Algorithm> {
    let local = LocalSteps { most: 20, epsilon: 1e-4 };
    vec![
        Algorithm::Fcm { m: 2.0, epsilon: 1e-4, max_rounds: 20 },
        Algorithm::FcmAnderson { m: 2.0, epsilon: 1e-4, max_rounds: 20 },
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
        Algorithm::Kumar { epsilon: 1e-4, max_rounds: 6, local },
        Algorithm::FcmNoise { m: 2.0, epsilon: 1e-4, max_rounds: 20, distance: 0.2 },
        Algorithm::Pcm { m: 2.0, epsilon: 1e-4, max_rounds: 20, distance: 0.2 },
        Algorithm::Gmm { epsilon: 1e-4, max_rounds: 20, regularisation: 1e-6 },
        Algorithm::Gk { m: 2.0, epsilon: 1e-4, max_rounds: 20, regularisation: 1e-6 },
    ]
}

fn recipe(algorithm: Algorithm) -> Recipe {
    let validity = Validity { classes: 3, ..Validity::everything() };
    Recipe { rule: COUNTS_FIRST, validity, ..Recipe::plain(algorithm, 3, tree(0.0)) }
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
        let stage = recipe.admits(batch, &domain, SITES).map_err(|why| format!("{}: {why}", batch.kind()))?;
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
        for rule in [GroupThreshold::NONE, COUNTS_FIRST, TOGETHER, GroupThreshold { min_sites: 1, ..COUNTS_FIRST }] {
            for (scale, blur, restarts) in [(Scale::None, 0.0, 1), (Scale::Standard, 0.5, 2), (Scale::Robust, 0.0, 2)] {
                let mut recipe = recipe(algorithm.clone());
                recipe.rule = rule;
                recipe.seeding = tree(blur);
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

fn kmeans(centres: &[[f64; 2]], part: RoundHalf) -> Query {
    let centres = Centres::from_rows(&centres.iter().map(|c| c.to_vec()).collect::<Vec<_>>()).unwrap();
    Query::LocalMeans(LocalMeans { centres, local: LocalSteps::ONE, min_rows: 1, nearest: false, part })
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
    let twice = batch(&[kmeans(&HERE, RoundHalf::Counts), kmeans(&THERE, RoundHalf::Counts)]);
    assert!(recipe.admits(&twice, &domain(), SITES).unwrap_err().contains("one K"));
    recipe.restarts = 2;
    assert_eq!(recipe.admits(&twice, &domain(), SITES), Ok(Stage::Iterating));
}

#[test]
fn sums_are_asked_only_of_centres_whose_counts_were_just_asked() {
    let recipe = recipe(Algorithm::Kmeans { epsilon: 0.0, max_rounds: 5 });
    let domain = domain();
    let counts = batch(&[kmeans(&HERE, RoundHalf::Counts)]);
    let sums = |centres: &[[f64; 2]]| batch(&[kmeans(centres, RoundHalf::Sums(vec![1]))]);
    assert_eq!(recipe.follows(&counts, &sums(&HERE), &domain), Ok(()));
    assert!(recipe.follows(&counts, &sums(&THERE), &domain).is_err());
    assert!(recipe.follows(&sums(&HERE), &sums(&THERE), &domain).is_err());
    assert!(recipe.follows(&counts, &batch(&[kmeans(&THERE, RoundHalf::Counts)]), &domain).is_err());
    assert_eq!(recipe.follows(&sums(&HERE), &batch(&[kmeans(&THERE, RoundHalf::Counts)]), &domain), Ok(()));
    let mut two = recipe.clone();
    two.restarts = 2;
    let mixed = batch(&[kmeans(&HERE, RoundHalf::Counts), kmeans(&THERE, RoundHalf::Sums(vec![0]))]);
    assert!(two.admits(&mixed, &domain, SITES).unwrap_err().contains("mixes"));
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
    assert_eq!(recipe.admits(&whole, &domain, SITES), Ok(Stage::Preparing));
    assert!(recipe.admits(&search(1, 0.0, 1.0), &domain, SITES).is_err(), "a column that the plan does not clip");
    let mut double = whole.clone();
    let Query::Histogram(q) = &mut double.queries[0] else { unreachable!() };
    q.brackets.push(q.brackets[0]);
    assert!(recipe.admits(&double, &domain, SITES).is_err(), "one quantile has one bracket");
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
        queries: vec![kmeans(&HERE, RoundHalf::Counts)],
    };
    assert!(recipe.admits(&around(0.0, 0.9), &domain, SITES).is_ok());
    assert!(recipe.admits(&around(0.1, 0.9), &domain, SITES).is_err());
    assert!(recipe.admits(&clipped, &domain, SITES).is_err(), "a search is never clipped");
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
        queries: vec![kmeans(&[[0.0, 0.0]; 3], RoundHalf::Counts)],
    };
    assert_eq!(recipe.admits(&scaled(4.0, 0.5), &domain, SITES), Ok(Stage::Iterating));
    for factor in [1e-300, 1e-3, 1e10, 1e12] {
        assert!(recipe.admits(&scaled(factor, 0.5), &domain, SITES).is_err(), "{factor}");
    }
    let mut sums = scaled(4.0, 0.5);
    sums.queries = vec![kmeans(&[[0.0, 0.0]; 3], RoundHalf::Sums(vec![0]))];
    assert_eq!(recipe.follows(&scaled(4.0, 0.5), &sums, &domain), Ok(()));
    assert!(recipe.follows(&scaled(5.0, 0.5), &sums, &domain).unwrap_err().contains("standardised otherwise"));
    assert!(recipe.follows(&scaled(4.0, 0.4), &sums, &domain).is_err());
    let moments = |around| batch(&[Query::Moments(Moments { around })]);
    assert!(recipe.follows(&moments(None), &moments(Some(vec![0.5, 0.5])), &domain).is_ok());
    assert!(recipe.follows(&moments(Some(vec![0.5, 0.5])), &moments(Some(vec![0.1, 0.5])), &domain).is_err());
}

fn cells(of: &[u32], at: &[f64], nodes: &[u32], part: RoundHalf) -> Query {
    let splits = at.iter().map(|at| Split { column: 0, at: *at }).collect();
    let tree = veilsum_cluster::query::Tree { of: of.to_vec(), splits };
    Query::Cells(Cells { tree, nodes: nodes.to_vec(), part, blur: None })
}

#[test]
fn seeding_asks_only_about_children_of_leaves_that_are_divided_now() {
    let recipe = recipe(Algorithm::Kmeans { epsilon: 0.0, max_rounds: 5 });
    let domain = domain();
    let admits = |q: Query| recipe.admits(&batch(&[q]), &domain, SITES);
    assert!(admits(cells(&[], &[], &[0], RoundHalf::Sums(vec![]))).is_ok());
    assert!(admits(cells(&[0], &[0.5], &[1, 2], RoundHalf::Counts)).is_ok());
    assert!(admits(cells(&[0], &[0.5], &[1], RoundHalf::Sums(vec![]))).is_ok());
    assert!(admits(cells(&[0], &[0.5], &[1, 2], RoundHalf::Both)).is_err(), "counts come first");
    assert!(admits(cells(&[0], &[0.5], &[0, 1, 2], RoundHalf::Counts)).is_err(), "the cohort again");
    assert!(admits(cells(&[0], &[0.5], &[2], RoundHalf::Sums(vec![]))).is_err(), "the upper child");
    // A chain of slivers: the same rows again and again, under fresh noise each time.
    let chain = cells(&[0, 2, 4], &[1e-9, 2e-9, 3e-9], &[1, 2, 3, 4, 5, 6], RoundHalf::Counts);
    assert!(admits(chain).is_err());
    let many: Vec<f64> = (1..=12).map(|i| f64::from(i) / 20.0).collect();
    let of: Vec<u32> = (0..12).map(|i| 2 * i).collect();
    assert!(admits(cells(&of[..11], &many[..11], &[21, 22], RoundHalf::Counts)).is_ok());
    assert!(admits(cells(&of, &many, &[23, 24], RoundHalf::Counts)).is_err(), "more leaves than the plan has");
}

#[test]
fn a_tree_only_grows_and_sums_belong_to_what_was_counted() {
    let recipe = recipe(Algorithm::Kmeans { epsilon: 0.0, max_rounds: 5 });
    let domain = domain();
    let counts = batch(&[cells(&[0, 1, 2], &[0.5, 0.2, 0.7], &[3, 4, 5, 6], RoundHalf::Counts)]);
    let sums = |of: &[u32], at: &[f64], nodes: &[u32]| batch(&[cells(of, at, nodes, RoundHalf::Sums(vec![]))]);
    let fits = |next: &Batch| {
        recipe.admits(next, &domain, SITES).unwrap();
        recipe.follows(&counts, next, &domain).is_ok()
    };
    assert!(fits(&sums(&[0, 1, 2], &[0.5, 0.2, 0.7], &[3, 5])));
    assert!(fits(&sums(&[0, 2], &[0.5, 0.7], &[3])), "one split passed");
    assert!(!fits(&sums(&[0, 2], &[0.5, 0.71], &[3])), "another threshold");
    assert!(!fits(&sums(&[0, 1, 2], &[0.4, 0.2, 0.7], &[3, 5])), "another tree");
    assert!(!fits(&sums(&[], &[], &[0])), "the cohort again");
    let grown = sums(&[0, 2], &[0.5, 0.7], &[3]);
    let next = |of: &[u32], at: &[f64], nodes: &[u32]| {
        let next = batch(&[cells(of, at, nodes, RoundHalf::Counts)]);
        recipe.admits(&next, &domain, SITES).unwrap();
        recipe.follows(&grown, &next, &domain).is_ok()
    };
    assert!(next(&[0, 2, 3], &[0.5, 0.7, 0.6], &[5, 6]));
    assert!(!next(&[0, 2, 1], &[0.5, 0.71, 0.1], &[5, 6]), "a split that was made has moved");
    assert!(!next(&[0, 2], &[0.5, 0.8], &[3, 4]), "one that was made is open again");
}

#[test]
fn silhouettes_and_labels_belong_to_centres_that_were_judged() {
    let recipe = recipe(Algorithm::Kmeans { epsilon: 0.0, max_rounds: 20 });
    let asked = honest(&recipe);
    let domain = domain();
    let (judged, last) = asked.split_at(asked.len() - 2);
    let validation = judged.last().unwrap();
    assert_eq!((validation.kind(), last[0].kind(), last[1].kind()), ("validation", "silhouette", "contingency"));
    for honest in last {
        let mut moved = honest.clone();
        match &mut moved.queries[0] {
            Query::Silhouette(q) => q.centres = Centres::from_rows(&HERE.map(|c| c.to_vec())).unwrap(),
            Query::Contingency(q) => q.centres = Centres::from_rows(&HERE.map(|c| c.to_vec())).unwrap(),
            _ => unreachable!(),
        }
        assert!(recipe.follows(validation, honest, &domain).is_ok());
        assert!(recipe.follows(validation, &moved, &domain).is_err());
        assert!(recipe.follows(&judged[judged.len() - 2], honest, &domain).is_err(), "nothing was judged yet");
    }
    let mut broken = last[0].clone();
    let Query::Silhouette(q) = &mut broken.queries[0] else { unreachable!() };
    q.rows[0] = 1.4;
    assert!(recipe.admits(&broken, &domain, SITES).is_err(), "rows are whole");
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
        use veilsum_cluster::query::{Features, LocalFuzzy, Pull, Silhouette, Validation};
        let fuzzy = |pull| LocalFuzzy { centres: centres.clone(), m: 2.0, local, pull, part: RoundHalf::Both };
        let queries = vec![
            Query::fuzzy_sums(centres.clone(), 1.1),
            Query::fuzzy_validation(centres.clone(), 2.0),
            Query::LocalFuzzy(fuzzy(Pull::Nearest)),
            Query::LocalFuzzy(fuzzy(Pull::Memberships)),
            Query::LocalMeans(LocalMeans {
                centres: centres.clone(),
                local,
                min_rows: 1,
                nearest: true,
                part: RoundHalf::Both,
            }),
            Query::Features(Features { anchors: centres.clone(), params: features, part: RoundHalf::Both }),
            Query::Validation(Validation { centres: centres.clone(), m: 2.0, vectors: true }),
            Query::Silhouette(Silhouette {
                centres: centres.clone(),
                means: centres.clone(),
                rows: vec![0.0, 2.0, 1e300],
                scatter: vec![1e300, 0.0, 1.0],
            }),
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
