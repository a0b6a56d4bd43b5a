//! How far a whole run ends from where it ends on rows in double precision.

use veilsum_cluster::pooled;
use veilsum_cluster::random::Stream;
use veilsum_cluster::{Centres, Domain, OutOfBox, Outcome, Precision, Prepared, Rows, Scaling};
use veilsum_testkit::data::{DataSet, max_difference};

use crate::plain_fcm;

/// What rounding moves a number of the unit box by at most.
const MOVED: f64 = 1.0 / (1u64 << 25) as f64;

fn run(rows: &Prepared, start: &Centres, m: f64) -> Outcome {
    pooled::run(&mut plain_fcm(start.k(), m, 1e-12, 2_000, start).unwrap(), rows).unwrap()
}

/// The greatest difference of a coordinate of the centres, units of the box.
///
/// Both runs go to rest (1e-12), so that what is compared is where they rest. A step of fuzzy c-means moves a centre by no more than the rows move, as it is
/// their mean, and by what their weights change: near the rest together by a small multiple of what the rows moved. Later steps carry the
/// rest's own rate r of it on, 1 + r + r^2 + ... = 1 / (1 - r) in all. r is measured: it is that by which the last moves of the run shrank.
fn differs(rows: &Prepared, start: &Centres, m: f64, name: &str) {
    let double = run(rows, start, m);
    let single = run(&rows.clone().held_in(Precision::Single).unwrap(), start, m);
    assert!(double.converged && single.converged, "{name}");
    let moves: Vec<f64> = double.history.iter().map(|round| round.shift).collect();
    let [.., before, _, _, _, after, _, _] = moves[..] else { panic!("too few rounds") };
    let rate = (after / before).powf(0.25);
    let found = max_difference(&single.centres, &double.centres);
    let most = 4.0 * MOVED / (1.0 - rate);
    println!(
        "{name}, m = {m}: {found:.1e} of the box's width; a row moved by at most {MOVED:.1e}, rate {rate:.3}, bound {most:.1e}"
    );
    assert!(found > 0.0 && found <= most, "{name}: {found:.1e}, bound {most:.1e}");
}

#[test]
fn a_run_ends_within_the_rounding_of_its_rows() {
    let seed = 17;
    println!("seed {seed}");
    let mut stream = Stream::new(seed, b"veilsum single precision");
    let (n, d, k) = (100_000, 8, 5);
    let domain = Domain::new(vec![-3.0; d], vec![7.0; d], Scaling::Box).unwrap();
    let places: Vec<f64> = (0..k * d).map(|_| 8.0 * stream.unit() - 2.0).collect();
    let noise = |stream: &mut Stream| (0..6).map(|_| stream.unit() - 0.5).sum::<f64>();
    let values = (0..n * d).map(|i| (places[(i / d) % k * d + i % d] + noise(&mut stream)).clamp(-3.0, 7.0)).collect();
    let rows = Prepared::new(&Rows::new(values, d).unwrap(), &domain, OutOfBox::Refuse).unwrap();
    for m in [2.0, 1.5] {
        // From near the places, so that both runs go to the same rest.
        let start = Centres::new(k, d, places.iter().map(|x| (x + 3.1) / 10.0).collect()).unwrap();
        differs(&rows, &start, m, "100,000 rows around 5 places");
    }
}

fn a_run_over_iris_does_so_too() {
    let iris = DataSet::read("iris");
    let domain = iris.boxed();
    let rows = Prepared::new(&iris.rows, &domain, OutOfBox::Refuse).unwrap();
    for m in [2.0, 1.5] {
        differs(&rows, &Centres::uniform(&domain, 3, 2).unwrap(), m, "iris");
    }
}

veilsum_testkit::with_data!(a_run_over_iris_does_so_too);
