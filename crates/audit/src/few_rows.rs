//! A few unknown rows from totals: Levenberg-Marquardt from several starts, as the attacks on a change and on the last unknown row need it.

use veilsum_cluster::{Batch, Centres, Query};

use crate::{
    least_squares::{Patience, descend},
    releases::{Releases, Sums},
    scene::EDGE,
};

/// What a round asks: centres and fuzzifier.
pub type Round = (Vec<Vec<f64>>, f64);

/// The `count` rows behind these totals of weights and sums ([`crate::account::sums`]), one of each round; the best of `tries` from
/// where `start` begins. None where a round has no centres.
pub fn solve(
    rounds: &[Round],
    totals: &[Vec<f64>],
    count: usize,
    tries: usize,
    mut start: impl FnMut() -> Vec<f64>,
) -> Option<Vec<Vec<f64>>> {
    let batch = |(centres, m): &Round| Some(Batch::from(Query::fuzzy_sums(Centres::from_rows(centres).ok()?, *m)));
    let batches: Vec<Batch> = rounds.iter().map(batch).collect::<Option<_>>()?;
    let releases = Releases::of(&batches)?;
    let columns = releases.columns();
    // Sums come before weights in that question.
    let order = |(round, total): (&Round, &Vec<f64>)| {
        let (weights, sums) = total.split_at(round.0.len());
        [sums, weights].concat()
    };
    let observed: Vec<f64> = rounds.iter().zip(totals).flat_map(order).collect();
    let system = Sums { releases: &releases, observed: &observed };
    let mut best: Option<(Vec<f64>, f64)> = None;
    for _ in 0..tries {
        let first: Vec<f64> = (0..count).flat_map(|_| start()).collect();
        let end = descend(&system, first, EDGE, 1e-9, Patience::SHORT);
        if best.as_ref().is_none_or(|b| end.residual < b.1) {
            best = Some((end.x, end.residual));
        }
        if best.as_ref().is_some_and(|b| b.1 < 1e-9) {
            break;
        }
    }
    best.map(|(x, _)| x.chunks_exact(columns).map(<[f64]>::to_vec).collect())
}
