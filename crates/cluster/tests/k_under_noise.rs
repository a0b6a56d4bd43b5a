//! The choice of K under noise, over rows with a known number of clusters.

use veilsum_cluster::algorithm::usual_fuzzifier;
use veilsum_cluster::method::{Candidates, Choice, CurvePoint, Pick, Seeding};
use veilsum_cluster::privacy::Noise;
use veilsum_cluster::random::Stream;
use veilsum_cluster::{Algorithm, Clusters, Domain, Indices, OutOfBox, Prepared, Recipe, Rows, Scaling, warnings};

/// So many rows around these centres, of this deviation.
fn around(centres: &[Vec<f64>], deviation: f64, n: usize, stream: &mut Stream) -> Vec<f64> {
    let row = |i: usize, stream: &mut Stream| -> Vec<f64> {
        let x = |x: &f64| (x + deviation * stream.normal_pair()[0]).clamp(0.0, 1.0);
        centres[i % centres.len()].iter().map(x).collect()
    };
    (0..n).flat_map(|i| row(i, stream)).collect()
}

/// Name, clusters, columns, and 1,500 rows.
fn sets(stream: &mut Stream) -> Vec<(&'static str, u32, usize, Vec<f64>)> {
    let n = 1_500;
    let three = [vec![0.2, 0.3], vec![0.8, 0.25], vec![0.5, 0.8]];
    let five = [[0.15, 0.2], [0.85, 0.15], [0.5, 0.5], [0.2, 0.8], [0.8, 0.85]].map(Vec::from);
    let four = [0.2, 0.8].map(|a| [0.25, 0.75].map(|b| vec![a, b, a, 0.5, b, 1.0 - a])).concat();
    let mut uniform = |d: usize| (0..n * d).map(|_| stream.unit()).collect::<Vec<_>>();
    let (square, cube) = (uniform(2), uniform(5));
    let follow = |stream: &mut Stream| {
        let [a, b] = stream.normal_pair();
        [0.5 + 0.1 * a, 0.5 + 0.1 * (0.95 * a + 0.31 * b)].map(|x: f64| x.clamp(0.0, 1.0))
    };
    vec![
        ("three", 3, 2, around(&three, 0.07, n, stream)),
        ("five", 5, 2, around(&five, 0.05, n, stream)),
        ("four in six columns", 4, 6, around(&four, 0.08, n, stream)),
        ("one normal", 1, 2, around(&[vec![0.5; 2]], 0.1, n, stream)),
        ("one normal in eight columns", 1, 8, around(&[vec![0.5; 8]], 0.1, n, stream)),
        ("columns that follow each other", 1, 2, (0..n).flat_map(|_| follow(stream)).collect()),
        ("a square", 1, 2, square),
        ("a cube", 1, 5, cube),
    ]
}

/// Where clusters are clear, K is mostly right; where there are none, none is found in silence; of all sweeps one at most has a wrong K in silence.
#[test]
fn k_under_noise_is_right_or_not_clear() {
    let mut stream = Stream::new(11, b"veilsum test stream     ");
    let (mut right, mut clear, mut of, mut silent) = (0, 0, 0, Vec::new());
    for (name, truth, d, values) in sets(&mut stream) {
        let domain = Domain::new(vec![0.0; d], vec![1.0; d], Scaling::Box).unwrap();
        let rows = Prepared::new(&Rows::new(values, d).unwrap(), &domain, OutOfBox::Clip).unwrap();
        for (hard, seed) in [(true, 1), (true, 2), (true, 3), (false, 4), (false, 5), (false, 6)] {
            let noise = Noise::usual(0.25, 1_500);
            let (epsilon, max_rounds) = (0.0, noise.usual_rounds(8));
            let algorithm = match hard {
                true => Algorithm::Kmeans { epsilon, max_rounds },
                false => Algorithm::Fcm { m: usual_fuzzifier(d, 1_500), epsilon, max_rounds },
            };
            let seeding = Seeding::Candidates(Candidates::usual(seed));
            let recipe = Recipe {
                clusters: Clusters { min: 1, max: 8 },
                choice: Choice { by: Pick::Gap, elbow: false },
                noise: Some(noise),
                ..Recipe::plain(algorithm, 8, seeding)
            };
            let found = crate::noisy::run(&recipe, &rows, &mut stream);
            let names: Vec<String> = (0..d).map(|column| column.to_string()).collect();
            let doubted =
                warnings::of(&recipe, &domain, &names, &found, 1.0).iter().any(|found| found.name == "no-clear-k");
            let k = found.centres.k() as u32;
            println!("{name}, hard {hard}: K = {k}, doubted {doubted}");
            if k != truth && !doubted {
                silent.push((name, hard, k));
            }
            if truth > 1 {
                (right, clear, of) = (right + u32::from(k == truth), clear + u32::from(k == truth && !doubted), of + 1);
            }
        }
    }
    println!("right {right} and clear {clear} of {of}, wrong in silence {silent:?}");
    assert!(silent.len() <= 1 && silent.iter().all(|(name, ..)| ["three", "five"].contains(name)), "{silent:?}");
    assert!(10 * right >= 6 * of && 10 * clear >= 4 * of, "right {right}, clear {clear} of {of}");
}

/// Which K a curve of gaps under noise names, and which cannot be told from it.
#[test]
fn a_curve_of_gaps_names_its_k_or_says_that_it_cannot() {
    let of = |gaps: &[(f64, f64)]| {
        let point = |(at, (gap, error)): (usize, &(f64, f64))| CurvePoint {
            k: at as u32 + 1,
            indices: Indices { gap: Some(*gap), gap_error: Some(*error), ..Indices::default() },
            ..CurvePoint::default()
        };
        let curve: Vec<CurvePoint> = gaps.iter().enumerate().map(point).collect();
        let (at, other) = Choice { by: Pick::Gap, elbow: false }.under_noise(&curve);
        (curve[at].k, other)
    };
    assert_eq!(of(&[(0.2, 0.1), (0.1, 0.1), (0.15, 0.1)]), (1, None), "one cluster");
    assert_eq!(of(&[(0.9, 0.1), (0.8, 0.1), (0.85, 0.1)]), (1, Some(3)), "no single cluster lies so close together");
    assert_eq!(of(&[(0.2, 0.1), (0.4, 0.1), (1.2, 0.1), (1.1, 0.1)]), (3, None), "three");
    assert_eq!(of(&[(0.2, 0.1), (1.0, 0.1), (1.2, 0.1), (1.1, 0.1)]), (3, Some(2)), "two or three");
    assert_eq!(of(&[(0.2, 0.1), (0.4, 0.1), (1.2, 0.3), (1.35, 0.3)]), (3, Some(4)), "four are as good");
    assert_eq!(of(&[(0.2, 0.1), (0.4, 0.1), (0.9, 0.3), (0.9, 0.3)]), (3, Some(1)), "a wide error");
    assert_eq!(of(&[(0.2, 0.1), (0.4, 0.1), (1.2, 0.1), (1.8, 0.1)]), (4, Some(4)), "it still grows");
}
