//! Distances of Mahalanobis and of cosine against plain loops over the pooled rows, and what a site does not do under them.

use veilsum_cluster::{
    Algorithm, Centres, Domain, Error, Method, OutOfBox, Outcome, Prepared, Recipe, Rows, Scaling, Step,
    method::{Preparation, Scale, Seeding},
    pooled,
    random::Stream,
};

/// Two long clusters side by side: along their length rows of one are farther from each other than from the other cluster.
fn rows() -> Vec<Rows> {
    let mut stream = Stream::new(5, b"veilsum rows for metrics");
    let mut site = |rows: usize| {
        let mut values = Vec::new();
        for row in 0..rows {
            let ([a, b], side) = (stream.normal_pair(), if row % 3 == 0 { 1.0 } else { -1.0 });
            let (long, wide) = (0.12 * a, 0.015 * b + 0.06 * side);
            values.extend([5.0 + 10.0 * (long + wide), 0.5 + long - wide].map(|x: f64| x));
        }
        Rows::new(values, 2).unwrap()
    };
    [50, 31, 80].map(&mut site).to_vec()
}

fn prepared(domain: &Domain, rows: &[Rows]) -> Vec<Prepared> {
    rows.iter().map(|rows| Prepared::new(rows, domain, OutOfBox::Clip).unwrap()).collect()
}

fn whiten(recipe: Recipe) -> Recipe {
    Recipe { preparation: Preparation { scale: Scale::Whiten, ..Preparation::none() }, ..recipe }
}

fn run(recipe: &Recipe, domain: &Domain, sites: &[Prepared]) -> Outcome {
    let mut run = recipe.run(domain, sites.len() as u32).unwrap();
    let mut step = run.next(None).unwrap();
    loop {
        match step {
            Step::Done(outcome) => return *outcome,
            Step::Ask(batch) => {
                step = run.next(Some(&pooled::totals(&batch, sites).unwrap())).unwrap();
            }
        }
    }
}

/// Fuzzy c-means with m = 2 in plain loops, and a squared distance of its own.
fn plain(rows: &Rows, start: &[[f64; 2]], rounds: u32, square: impl Fn([f64; 2]) -> f64) -> Vec<[f64; 2]> {
    let mut centres = start.to_vec();
    for _ in 0..rounds {
        let mut sums = vec![[0.0; 3]; centres.len()];
        for row in rows {
            let of = |c: &[f64; 2]| square([row[0] - c[0], row[1] - c[1]]);
            let inverse: Vec<f64> = centres.iter().map(|c| 1.0 / of(c)).collect();
            let all: f64 = inverse.iter().sum();
            for (sum, one) in sums.iter_mut().zip(&inverse) {
                let weight = (one / all) * (one / all);
                *sum = [sum[0] + weight * row[0], sum[1] + weight * row[1], sum[2] + weight];
            }
        }
        centres = sums.iter().map(|[x, y, weight]| [x / weight, y / weight]).collect();
    }
    centres
}

fn close(found: &Centres, known: &[[f64; 2]]) {
    let off = found.rows().zip(known).flat_map(|(a, b)| [(a[0] - b[0]).abs(), (a[1] - b[1]).abs()]).fold(0.0, f64::max);
    assert!(off < 1e-9, "{off:e}: {found:?} {known:?}");
}

#[test]
fn whitened_columns_give_the_distances_of_mahalanobis() {
    for scaling in [Scaling::None, Scaling::Box] {
        let domain = Domain::new(vec![-5.0, -0.5], vec![15.0, 1.5], scaling).unwrap();
        let sites = prepared(&domain, &rows());
        let all = Prepared::pooled(&sites).unwrap().packed().to_rows();
        let n = all.len() as f64;
        let mean = [0, 1].map(|c| all.iter().map(|row| row[c]).sum::<f64>() / n);
        let product =
            |i: usize, j: usize| all.iter().map(|row| (row[i] - mean[i]) * (row[j] - mean[j])).sum::<f64>() / n;
        let (xx, xy, yy) = (product(0, 0), product(0, 1), product(1, 1));
        let det = xx * yy - xy * xy;
        let mahalanobis = |[a, b]: [f64; 2]| (yy * a * a - 2.0 * xy * a * b + xx * b * b) / det;
        let start = [[mean[0] * 1.02, mean[1]], [mean[0], mean[1] * 1.02]];
        let centres = Centres::from_rows(&start.map(|c| c.to_vec())).unwrap();
        let fcm = Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: 12 };
        let recipe = whiten(Recipe::plain(fcm, 2, Seeding::Given { centres }));
        let outcome = run(&recipe, &domain, &sites);
        close(&outcome.centres, &plain(&all, &start, 12, mahalanobis));
        assert_eq!(outcome.questions, 2 + 12 + 1);
        let transform = outcome.transform.unwrap();
        assert!(transform.mixes());
        // Whitened rows have the unit matrix as their covariance.
        let white = transform.rows(&all).unwrap();
        for (i, j) in [(0, 0), (0, 1), (1, 1)] {
            let covariance = white.iter().map(|row| row[i] * row[j]).sum::<f64>() / n;
            assert!((covariance - f64::from(u8::from(i == j))).abs() < 1e-9, "{i} {j} {covariance}");
        }
        // Euclidean distances find something else in these rows.
        let euclidean = plain(&all, &start, 12, |[a, b]| a * a + b * b);
        assert!((euclidean[0][1] - outcome.centres.row(0)[1]).abs() > 1e-3);
    }
}

#[test]
fn hard_clusters_of_whitened_columns_show_no_deviations() {
    let domain = Domain::new(vec![-5.0, -0.5], vec![15.0, 1.5], Scaling::Box).unwrap();
    let sites = prepared(&domain, &rows());
    let kmeans = Algorithm::Kmeans { epsilon: 0.0, max_rounds: 50 };
    let mut recipe = whiten(Recipe::plain(kmeans, 2, Seeding::Uniform { seed: 2 }));
    recipe.validity.vectors = true;
    let outcome = run(&recipe, &domain, &sites);
    let sizes: Vec<u64> = outcome.clusters.sizes.iter().flatten().copied().collect();
    assert_eq!(sizes.iter().sum::<u64>(), 161);
    assert!(outcome.clusters.deviations.iter().all(Option::is_none), "{:?}", outcome.clusters);
    assert!(outcome.clusters.not_shown.iter().any(|why| why.contains("whitened")));
}

#[test]
fn columns_that_follow_from_each_other_are_named_as_such() {
    let domain = Domain::new(vec![0.0, 0.0], vec![1.0, 2.0], Scaling::Box).unwrap();
    let values = (0..40).flat_map(|i| [f64::from(i) / 40.0, f64::from(i) / 20.0]).collect();
    let sites = prepared(&domain, &[Rows::new(values, 2).unwrap()]);
    let fcm = Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: 3 };
    let mut run = whiten(Recipe::plain(fcm, 2, Seeding::Uniform { seed: 2 })).run(&domain, 1).unwrap();
    let mut step = run.next(None);
    while let Ok(Step::Ask(batch)) = step {
        step = run.next(Some(&pooled::totals(&batch, &sites).unwrap()));
    }
    let error = step.unwrap_err();
    assert!(matches!(&error, Error::Parameter { .. }) && error.to_string().contains("leave it out"), "{error}");
}

#[test]
fn directions_give_the_distances_of_cosine() {
    let domain = Domain::new(vec![0.0, -1.5], vec![15.0, 1.5], Scaling::Direction).unwrap();
    assert_eq!([domain.working_interval(0), domain.working_interval(1)], [(0.0, 1.0), (-1.0, 1.0)]);
    let raw: Vec<Rows> = rows();
    let sites = prepared(&domain, &raw);
    let all = Prepared::pooled(&sites).unwrap().packed().to_rows();
    for (row, from) in all.iter().zip(raw.iter().flat_map(Rows::iter)) {
        let length = (from[0] * from[0] + from[1] * from[1]).sqrt();
        assert!((row[0] - from[0] / length).abs() < 1e-14 && (row[1] - from[1] / length).abs() < 1e-14);
    }
    let start = [[0.9, 0.1], [0.99, -0.1]];
    let fcm = Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: 10 };
    let recipe =
        Recipe::plain(fcm, 2, Seeding::Given { centres: Centres::from_rows(&start.map(|c| c.to_vec())).unwrap() });
    let outcome = run(&recipe, &domain, &sites);
    close(&outcome.centres, &plain(&all, &start, 10, |[a, b]| a * a + b * b));
    for centre in domain.reported(&outcome.centres).unwrap().rows() {
        assert!((centre.iter().map(|x| x * x).sum::<f64>() - 1.0).abs() < 1e-12);
    }
}

#[test]
fn a_row_of_zeros_has_no_direction_and_is_named_without_values() {
    let domain = Domain::new(vec![-1.0; 2], vec![1.0; 2], Scaling::Direction).unwrap();
    let rows = Rows::new(vec![0.5, 0.5, 0.0, 0.0, 1e-300, 0.0], 2).unwrap();
    let error = Prepared::new(&rows, &domain, OutOfBox::Refuse).unwrap_err();
    assert_eq!(error, Error::NoDirection { row: 1 });
    assert!(error.to_string().contains("row 1"));
    // However short a row is.
    let short = Rows::new(vec![1e-300, 0.0, 1e-310, -1e-310], 2).unwrap();
    let site = Prepared::new(&short, &domain, OutOfBox::Refuse).unwrap();
    let half = 0.5f64.sqrt();
    let known = [1.0, 0.0, half, -half];
    assert!(site.packed().to_rows().as_slice().iter().zip(known).all(|(a, b)| (a - b).abs() < 1e-6));
}
