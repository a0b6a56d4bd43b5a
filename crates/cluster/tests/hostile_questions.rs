//! Whatever is asked of whatever rows, answers are finite and inside their bounds.

use veilsum_cluster::{
    Batch, Centres, Domain, Per, Prepared, Query, Rows, Scaling, Transform, answer,
    query::{FeatureParams, Features, LocalFuzzy, LocalMeans, LocalSteps, Margins, Moments, Pull, Shifts, Validation},
    random::Stream,
};
use veilsum_testkit::data::prepare;

fn domain() -> Domain {
    Domain::new(vec![0.0, -4.0], vec![1.0, 4.0], Scaling::Box).unwrap()
}

/// Rows anywhere in the box, on a coarse grid now and then, where they coincide and lie in corners.
fn site(rows: usize, stream: &mut Stream) -> Prepared {
    let mut unit = || if stream.below(3) == 0 { stream.below(5) as f64 / 4.0 } else { stream.unit() };
    let values = (0..rows).flat_map(|_| [unit(), 8.0 * unit() - 4.0]).collect();
    prepare(&Rows::new(values, 2).unwrap(), &domain())
}

/// Factors and cuts that no totals give.
fn units(stream: &mut Stream) -> Transform {
    let mut transform = Transform::identity(&domain());
    for column in 0..2 {
        let power = [-320.0, -200.0, -150.0, -20.0, -3.0, 0.0, 3.0, 9.0, 12.0][stream.below(9) as usize];
        transform.factor[column] = 10f64.powf(power);
        transform.shift[column] = stream.unit();
        if stream.below(3) == 0 {
            let low = stream.unit();
            (transform.lower[column], transform.upper[column]) = (low, low + (1.0 - low) * stream.unit().powi(20));
        }
    }
    transform
}

fn queries(centres: &Centres, around: Vec<f64>, stream: &mut Stream) -> Vec<Query> {
    let m = [1.05, 1.1, 2.0, 4.0][stream.below(4) as usize];
    let local = LocalSteps { most: 1 + stream.below(6) as u32, epsilon: 0.0 };
    let (min_rows, nearest) = (1 + stream.below(3), stream.below(2) == 0);
    let fuzzy = |pull| LocalFuzzy { centres: centres.clone(), m, local, pull }.into();
    vec![
        Query::fuzzy_sums(centres.clone(), m),
        Query::fuzzy_validation(centres.clone(), m),
        fuzzy(Pull::Nearest),
        fuzzy(Pull::Memberships),
        fuzzy(Pull::Powers),
        LocalMeans { centres: centres.clone(), local, min_rows, nearest }.into(),
        Features { anchors: centres.clone(), params: FeatureParams { min: 2, max: 5, tau: 1.0, m } }.into(),
        Validation { centres: centres.clone(), m, vectors: stream.below(2) == 0 }.into(),
        Moments { around: None }.into(),
        Moments { around: Some(around) }.into(),
        Margins { bins: 7 }.into(),
        Shifts { centres: centres.clone(), m: Some(m), middle: false, clip: 0.01, round: 0 }.into(),
        Shifts { centres: centres.clone(), m: None, middle: true, clip: 0.01, round: 0 }.into(),
    ]
}

#[test]
fn whatever_units_a_coordinator_invents_answers_are_finite_and_inside_their_bounds() {
    let domain = domain();
    // Squares of what is smaller vanish, in bounds before they do in sums.
    const UNDERFLOW: f64 = 1e-150;
    let mut seen = 0;
    let mut stream = Stream::new(5, b"veilsum hostile question");
    for round in 0..600 {
        let n = [0, 1, 2, 60][stream.below(4) as usize];
        let site = site(n, &mut stream);
        let transform = if round % 2 == 0 { units(&mut stream) } else { Transform::identity(&domain) };
        let Ok(inner) = transform.domain(&domain) else { continue };
        // Centres may lie outside the box, by half a side.
        let place = |part: f64, column: usize| {
            let (low, high) = inner.working_interval(column);
            (low + part * (high - low), (low + part * (high - low)).clamp(low, high))
        };
        let k = 1 + stream.below(5) as usize;
        let centres = (0..2 * k).map(|at| place(2.0 * stream.unit() - 0.5, at % 2).0).collect();
        let centres = Centres::new(k, 2, centres).unwrap();
        let around = (0..2).map(|column| place(stream.unit(), column).1).collect();
        for query in queries(&centres, around, &mut stream) {
            let batch = Batch { transform: Some(transform.clone()), queries: vec![query] };
            let kind = batch.kind();
            let values = answer(&batch, &site).unwrap_or_else(|e| panic!("{kind} {transform:?}: {e}")).values;
            assert!(n > 0 || values.iter().all(|x| *x == 0.0), "{kind}: {values:?} of no rows");
            let mut rest = values.as_slice();
            for block in batch.layout(&domain).unwrap() {
                let (head, tail) = rest.split_at(block.len);
                let most = block.bound * if block.per == Per::Row { n as f64 } else { 1.0 };
                let worst = head.iter().fold(0.0f64, |a, x| a.max(x.abs()));
                assert!(
                    worst <= most * (1.0 + 1e-9) + UNDERFLOW,
                    "{kind} {}: {worst:e} over {most:e}, {transform:?} {centres:?}",
                    block.name
                );
                rest = tail;
            }
            // Groups of any size are sent, and features lose nothing: every row is counted.
            let counted = match &batch.queries[0] {
                Query::LocalMeans(of) if of.min_rows == 1 => &values[..k],
                Query::Features(_) => &values[2 * k..3 * k],
                _ => &[n as f64],
            };
            assert!((counted.iter().sum::<f64>() - n as f64).abs() <= 1e-9 * n as f64, "{kind}: {counted:?} of {n}");
            seen += 1;
        }
    }
    assert!(seen > 3_000, "{seen}");
}
