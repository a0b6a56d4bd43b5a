//! Whatever is asked, answers are finite and inside their bounds.

use veilsum_cluster::{
    Batch, Centres, Domain, Prepared, Query, Rows, Scaling, Transform, answer,
    query::{FeatureParams, LocalMeans, LocalSteps},
    random::Stream,
};
use veilsum_testkit::data::prepare;

fn domain() -> Domain {
    Domain::new(vec![0.0, -4.0], vec![1.0, 4.0], Scaling::Box).unwrap()
}

/// Three groups of 20 rows.
fn site() -> Prepared {
    let mut stream = Stream::new(11, b"veilsum hostile question");
    let mut near = |[x, y]: [f64; 2]| [x + 0.2 * (stream.unit() - 0.5), y + 1.6 * (stream.unit() - 0.5)];
    let centres = [[0.2, -2.0], [0.8, -1.0], [0.5, 2.5]];
    let rows = Rows::new((0..60).flat_map(|i| near(centres[i % 3])).collect(), 2).unwrap();
    prepare(&rows, &domain())
}

#[test]
fn whatever_units_a_coordinator_invents_answers_are_finite_and_inside_their_bounds() {
    let domain = domain();
    let site = &site();
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
        let centres = Centres::new(3, 2, (0..6).map(|at| place(stream.unit(), at % 2)).collect()).unwrap();
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
