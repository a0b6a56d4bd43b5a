//! What only the inside can see: that bounds spare rows, and that none is spared by mistake where distances differ in their last bits.

use proptest::prelude::*;

use super::*;
use crate::Rows;
use crate::random::Stream;

fn draw(stream: &mut Stream, n: usize, d: usize) -> Vec<f64> {
    (0..n * d).map(|_| stream.unit()).collect()
}

/// Rows that have to be measured at the drift at hand.
fn open(bounds: &Bounds) -> usize {
    bounds.rows.iter().filter(|held| f64::from(held.until) <= bounds.drift[held.own as usize]).count()
}

#[test]
fn rows_far_from_a_bisector_are_spared() {
    let mut stream = Stream::new(5, b"veilsum bounds rows 24..");
    let (n, d, k) = (20_000, 4, 6);
    let rows = Packed::new(&Rows::new(draw(&mut stream, n, d), d).unwrap());
    let centres = Centres::new(k, d, draw(&mut stream, k, d)).unwrap();
    let mut bounds = Bounds::new(&rows, &centres).unwrap();
    assert_eq!(open(&bounds), 0);
    let moved = |by: f64| Centres::new(k, d, centres.as_slice().iter().map(|x| x + by).collect()).unwrap();
    let drift = |by: f64| {
        let mut drift = bounds.drift.clone();
        Margin::new(d).moved(&mut drift, &centres, &moved(by));
        bounds.rows.iter().filter(|held| f64::from(held.until) <= drift[held.own as usize]).count()
    };
    let (little, more, far) = (drift(1e-4), drift(1e-2), drift(1.0));
    assert!(little < n / 100 && little < more && more < n / 2 && far == n, "{little} {more} {far}");
    // Whoever is measured again has a new bound.
    bounds.move_to(&rows, &moved(1e-2)).unwrap();
    assert_eq!(open(&bounds), 0);
    let one = Centres::new(1, d, draw(&mut stream, 1, d)).unwrap();
    assert!(Bounds::new(&rows, &one).unwrap().rows.iter().all(|held| held.until == f32::INFINITY));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    /// Two centres that a few last bits lead around the bisectors of all rows; single precision alone would hide a margin that is missing,
    /// so the slack is looked at as it is computed.
    #[test]
    fn slack_is_never_more_than_the_squares_as_computed_allow(
        d in 1usize..=6,
        bits in 0u64..4,
        seed: u64,
    ) {
        let mut stream = Stream::new(seed, b"veilsum bounds rows 24..");
        let (a, x) = (draw(&mut stream, 1, d), draw(&mut stream, 1, d));
        let step = |x: f64, times: u64| (0..times).fold(x, |x, _| x.next_up());
        // The mirror image of a centre, a few bits beside it.
        let b: Vec<f64> = a.iter().zip(&x).map(|(a, x)| step(2.0 * x - a, bits)).collect();
        let square = |c: &[f64]| x.iter().zip(c).fold(0.0, |sum, (x, c)| (x - c) * (x - c) + sum);
        let margin = Margin::new(d);
        let slack = |best: f64, second: f64| margin.slack(&[best; LANES], &[second; LANES])[0];
        let (near, far) = (square(&a).min(square(&b)), square(&a).max(square(&b)));
        // So close to each other, the order of the squares says nothing of that of the distances; those of less than a tenth would be told
        // apart by one bit of a centre.
        if near > 0.01 {
            prop_assert!(slack(near, far) < 0.0, "{near:e} {far:e}");
        }
        // One centre moves by what the slack allows, straight towards the row; the squares stay in order.
        let other: Vec<f64> = b.iter().zip(&x).map(|(b, x)| x + (b - x) * (1.0 + 1e-3 * stream.unit())).collect();
        let slack = slack(square(&a), square(&other));
        prop_assume!(slack > 0.0);
        let way = square(&other).sqrt();
        let closer: Vec<f64> = other.iter().zip(&x).map(|(o, x)| o + (x - o) * (slack / way)).collect();
        let mut drift = [0.0; 2];
        let centres = |b: &[f64]| Centres::new(2, d, [&a[..], b].concat()).unwrap();
        margin.moved(&mut drift, &centres(&other), &centres(&closer));
        prop_assert!(margin.until(slack, 0.0) as f64 <= drift[0] || square(&closer) > square(&a));
        prop_assert!(f64::from(margin.until(slack, 0.0)) <= slack);
    }
}
