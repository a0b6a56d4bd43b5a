//! How near two questions are to each other that asked about different sites ([POL-7]): in the columns' own units, whatever box
//! each stands in.

use std::cmp::Ordering;

use veilsum_proto::ledger::{self, Answer, Frame, Places};

/// How far `new` is from `old`, in millionths of the half-width of the box of `new`: the largest way from a centre to the
/// nearest of the other set, in either direction; from the smaller set to the larger where they are of different sizes, as one
/// centre more may have no rows. Whatever order the centres stand in, and in the columns that both have. `None` where there
/// is nothing to compare: each has a column that the other has not, or no centres.
pub(super) fn distance(new: &Answer, old: &Answer) -> Option<u64> {
    let at = |name: &String| old.frame.columns.iter().position(|other| other == name);
    let common: Vec<(usize, usize)> =
        new.frame.columns.iter().enumerate().filter_map(|(i, name)| Some((i, at(name)?))).collect();
    let fewer = new.frame.columns.len().min(old.frame.columns.len());
    if common.is_empty() || common.len() < fewer {
        return None;
    }
    let of_new = |point: &[i32]| common.iter().map(|(i, _)| f64::from(point[*i])).collect();
    let of_old =
        |point: &[i32]| common.iter().map(|(i, at)| moved_to(&old.frame, (*at, point[*at]), &new.frame, *i)).collect();
    let sets = |places: &[Places], of: &dyn Fn(&[i32]) -> Vec<f64>| -> Vec<Vec<Vec<f64>>> {
        places.iter().map(|places| ledger::points(places).map(of).collect()).collect()
    };
    let (new, old) = (sets(&new.centres, &of_new), sets(&old.centres, &of_old));
    let ways = new.iter().flat_map(|new| old.iter().map(move |old| moved(new, old)));
    // Rounded down, and what is no number is no way at all: what is nearer is refused sooner.
    ways.map(|way| way.floor() as u64).min()
}

fn moved(new: &[Vec<f64>], old: &[Vec<f64>]) -> f64 {
    let apart = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    let farthest = |from: &[Vec<f64>], to: &[Vec<f64>]| {
        let nearest = |point: &Vec<f64>| to.iter().map(|other| apart(point, other)).fold(f64::INFINITY, f64::min);
        from.iter().map(nearest).fold(0.0, f64::max)
    };
    match new.len().cmp(&old.len()) {
        Ordering::Less => farthest(new, old),
        Ordering::Equal => farthest(new, old).max(farthest(old, new)),
        Ordering::Greater => farthest(old, new),
    }
}

/// A coordinate that was written in the box `old`, as one of `new`'s.
fn moved_to(old: &Frame, (at, part): (usize, i32), new: &Frame, new_at: usize) -> f64 {
    let ends = |frame: &Frame, at: usize| (frame.lower[at], frame.upper[at]);
    if ends(old, at) == ends(new, new_at) {
        return f64::from(part);
    }
    // Halves before the difference, which could leave the numbers there are.
    let halves = |(low, high): (u64, u64)| {
        let (low, high) = (f64::from_bits(low) / 2.0, f64::from_bits(high) / 2.0);
        (low + high, high - low)
    };
    let ((middle, half), (new_middle, new_half)) = (halves(ends(old, at)), halves(ends(new, new_at)));
    (middle + half * (f64::from(part) / 1e6) - new_middle) / new_half * 1e6
}

#[cfg(test)]
mod tests {
    use veilsum_proto::{policy::Cost, suite::Hash};

    use super::*;

    fn frame(columns: &[&str], lower: f64, upper: f64) -> Frame {
        let d = columns.len();
        let columns = columns.iter().map(|name| (*name).to_owned()).collect();
        Frame { columns, lower: vec![lower.to_bits(); d], upper: vec![upper.to_bits(); d] }
    }

    fn answer(centres: Vec<Places>) -> Answer {
        let frame = if centres.is_empty() { Frame::default() } else { frame(&["x", "y"], 0.0, 2.0) };
        Answer {
            kind: "fuzzy_sums".into(),
            question: Hash::default(),
            cost: Cost::default(),
            drawn: None,
            frame,
            centres,
        }
    }

    fn places(at: &[i32]) -> Vec<Places> {
        vec![Places { columns: 2, at: at.to_vec() }]
    }

    #[test]
    fn centres_are_compared_in_any_order() {
        let old = places(&[0, 0, 500, 500, -900, 100]);
        let far = |new: Vec<Places>, old: &[Places]| distance(&answer(new), &answer(old.to_vec()));
        assert_eq!(far(places(&[500, 500, -900, 100, 0, 0]), &old), Some(0));
        assert_eq!(far(places(&[500, 507, -900, 100, 0, 3]), &old), Some(7));
        // Two centres on one place: the third is far from what it was.
        assert_eq!(far(places(&[0, 0, 0, 0, -900, 100]), &old), Some(500));
        // Fewer centres are near if each of them is; the one more may lie where no row is.
        assert_eq!((far(places(&[0, 4]), &old), far(old.clone(), &places(&[0, 4, 500, 501]))), (Some(4), Some(4)));
        assert_eq!((far(Vec::new(), &[]), far(Vec::new(), &old)), (None, None));
        let both = [places(&[1, 1]), places(&[500, 500, 0, 0, -900, 103])].concat();
        assert_eq!(far(both, &old), Some(1));
    }

    /// [POL-7]: neither another box nor a column more makes the same centres other ones.
    #[test]
    fn centres_are_compared_where_they_lie() {
        let old = answer(places(&[0, 0, 500_000, 500_000]));
        // The same points, (1, 1) and (1.5, 1.5), in a box from -1 to 3.
        let wide = Answer { frame: frame(&["x", "y"], -1.0, 3.0), ..answer(places(&[0, 0, 250_000, 250_000])) };
        assert_eq!((distance(&wide, &old), distance(&old, &wide)), (Some(0), Some(0)));
        let near = Answer { centres: places(&[0, 0, 250_000, 250_100]), ..wide.clone() };
        assert_eq!((distance(&near, &old), distance(&old, &near)), (Some(100), Some(200)));
        let third = Answer {
            frame: frame(&["z", "y", "x"], 0.0, 2.0),
            centres: vec![Places { columns: 3, at: vec![7, 0, 0, 9, 500_000, 500_002] }],
            ..old.clone()
        };
        assert_eq!((distance(&third, &old), distance(&old, &third)), (Some(2), Some(2)));
        let other = Answer { frame: frame(&["x", "w"], 0.0, 2.0), ..old.clone() };
        assert_eq!(distance(&other, &old), None);
        let vast = Answer { frame: frame(&["x", "y"], f64::MIN, f64::MAX), ..old.clone() };
        assert!(distance(&vast, &old).is_some_and(|far| far > 0) && distance(&old, &vast) == Some(u64::MAX));
    }
}
