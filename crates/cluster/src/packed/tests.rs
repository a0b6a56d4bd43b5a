//! Single precision: which number it is, how parts become one, and which boxes it is too coarse for.

use proptest::prelude::*;

use super::*;

proptest! {
    /// The nearest of the three numbers around it that are inside.
    #[test]
    fn a_number_in_single_precision_is_the_nearest_inside_the_box(
        low in prop::sample::select(vec![0.0, -1.0, 0.1, -0.3, 1e-9]),
        width in prop::sample::select(vec![1.0, 0.1, 1.0 / 3.0, 7.7e20]),
        at in prop_oneof![Just(0.0), Just(1.0), 0.0..=1.0],
    ) {
        let (low, high): (f64, f64) = (low, low + width);
        let x = (low + at * width).clamp(low, high);
        let found = single(x, (low, high));
        let near = x as f32;
        let inside = [near.next_down(), near, near.next_up()].map(f64::from).into_iter().filter(|y| (low..=high).contains(y));
        let best = inside.map(|y| (y - x).abs()).fold(f64::INFINITY, f64::min);
        prop_assert!((low..=high).contains(&f64::from(found)), "{} {}", x, found);
        prop_assert_eq!((f64::from(found) - x).abs(), best);
    }
}

#[test]
fn rows_that_come_in_parts_are_packed_as_those_that_come_together() {
    let domain = Domain::new(vec![0.0; 3], vec![1.0; 3], Scaling::Box).unwrap();
    let rows = Rows::new((0..3 * 100).map(|i| f64::from(i) / 300.0).collect(), 3).unwrap();
    let mut whole = Packed::room(3, 100, Precision::Single);
    whole.append(&rows, &domain);
    for cut in [0, 1, 5, 8, 16, 99, 100] {
        for precision in [Precision::Double, Precision::Single] {
            let mut packed = Packed::room(3, 0, precision);
            let (first, last) = rows.as_slice().split_at(3 * cut);
            for part in [first, &[], last] {
                packed.append(&Rows::known(part.to_vec(), 3), &domain);
            }
            let known = if precision == Precision::Single { &whole } else { &Packed::new(&rows) };
            let vectors =
                |packed: &Packed| (0..packed.lanes().len()).map(|at| packed.lanes().vector(at).0).collect::<Vec<_>>();
            assert_eq!((packed.len(), vectors(&packed)), (100, vectors(known)), "{cut} {precision:?}");
        }
    }
}

#[test]
fn a_box_that_single_precision_cannot_tell_apart_is_refused() {
    let fits = |low: f64, high: f64, scaling, one: f64| {
        Domain::mixed(vec![0.0, low], vec![1.0, high], scaling, &[vec![one]]).unwrap().fits_singles()
    };
    assert_eq!(fits(1900.0, 2026.0, Scaling::Box, 0.7), Ok(()));
    assert_eq!(fits(120.0, 200.0, Scaling::None, 1.0), Ok(()));
    assert_eq!(fits(-1.0, 2026.0, Scaling::Direction, 1.0), Ok(()));
    for (low, high) in [(1900.0, 2000.0), (0.0, 1e140), (0.0, 1e-40), (1.0, 1.0 + 1e-12)] {
        assert_eq!(fits(low, high, Scaling::None, 1.0), Err(Error::TooCoarse { column: 1 }), "{low} {high}");
    }
    assert_eq!(fits(0.0, 1.0, Scaling::None, 1e140), Err(Error::TooCoarse { column: 2 }));
}
