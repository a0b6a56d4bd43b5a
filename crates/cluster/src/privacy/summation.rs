//! What summing in doubles adds to a sensitivity (Casacuberta, Shoemate, Vadhan & Wagaman 2022). One row more or fewer
//! moves the boundaries of all chunks after it, so that every partial sum is rounded anew ([NOI-3]).

use crate::kernel::CHUNK_ROWS;

/// Half the distance from 1 to the next double.
const HALF_ULP: f64 = f64::EPSILON / 2.0;

/// For what one row itself adds, which is rounded as well: memberships of up to 2^20 clusters add up to 1 within 2^-32.
const OF_A_ROW: f64 = 1.0 / (1u64 << 30) as f64;

/// By which share of its bound the difference of two sums, over at most `max_rows` rows and over one unit fewer, may exceed
/// that bound because both are rounded.
///
/// The sums to which noise is added are computed row after row in chunks of 8,192, and then chunk after chunk. With D a
/// bound on what one row adds to a block, in the Euclidean norm, a partial sum of j rows is at most jD long, and the
/// addition that gives it errs by at most 2^-53 of that: at most 2^-53 · 8,192 D in each of n additions of rows (half
/// of it in the mean, which leaves room for what rounding makes partial sums grow), and at most 2^-53 nD in each of
/// ceil(n / 8,192) additions of chunks. Both sums err so, and D is at most the sensitivity.
pub fn slack(max_rows: u64) -> f64 {
    let (n, chunk) = (max_rows as f64, CHUNK_ROWS as f64);
    2.0 * HALF_ULP * n * (chunk + (n / chunk).ceil()) + OF_A_ROW
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Batch, Centres, Domain, OutOfBox, Prepared, Query, Rows, Scaling, answer, query::Shifts, random::Stream,
    };

    #[test]
    fn what_it_comes_to() {
        assert!((slack(100_000) / 1.82e-7 - 1.0).abs() < 0.02, "{}", slack(100_000));
        assert!(slack(1) < 1.1 * OF_A_ROW && slack(1_000_000_000) > 0.02);
    }

    /// [NOI-3]: taking the first row away moves all chunks by one row, and then the weights by more than that row's 1, but
    /// never by more than the slack.
    #[test]
    fn sums_in_doubles_move_by_more_than_a_row() {
        let n = 3 * CHUNK_ROWS + 5;
        let domain = Domain::new(vec![-1.0], vec![1.0], Scaling::None).unwrap();
        let mut stream = Stream::new(41, b"veilsum test stream     ");
        let mut farthest = 0.0f64;
        for _ in 0..12 {
            // The first row lies on a centre: its weights are 1 and 0 exactly.
            let mut rows = vec![-0.5];
            rows.extend((1..n).map(|_| 2.0 * stream.unit() - 1.0));
            let centres = Centres::from_rows(&[vec![-0.5], vec![0.5]]).unwrap();
            let query = Query::Shifts(Shifts { centres, m: Some(2.0), middle: true, clip: 1.0, round: 0 });
            let sums = |rows: &[f64]| {
                let prepared = Prepared::new(&Rows::new(rows.to_vec(), 1).unwrap(), &domain, OutOfBox::Clip).unwrap();
                answer(&Batch::from(query.clone()), &prepared).unwrap().values
            };
            let (with, without) = (sums(&rows), sums(&rows[1..]));
            let moved: f64 = with[..2].iter().zip(&without).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
            farthest = farthest.max(moved - 1.0);
        }
        assert!(farthest > 1e-13, "{farthest:e}: sums are exact, and the slack is for nothing");
        assert!(farthest < slack(n as u64), "{farthest:e} and not {:e}", slack(n as u64));
    }
}
