//! Noisy validation totals as rows could have given them ([NOI-7]).

use crate::{Domain, Query};

/// Rows of a group that noise has left none of: below half a row its mean is its centre.
const LEAST: f64 = 1e-6;
/// No total of a plan comes near; sums and products of larger ones would be no numbers.
const MOST: f64 = 1e200;

/// The totals of a validation question over this box, moved to what rows could have given: nothing is below 0, every cluster has the
/// membership of one row at least, groups add up to as many rows as memberships do, and their means lie in the box.
pub(crate) fn settled(query: &Query, values: &[f64], domain: &Domain) -> Vec<f64> {
    let k = query.points().first().map_or(0, |points| points.k());
    let mut values = values.to_vec();
    let Query::Validation(asked) = query else {
        let least = |(i, value): (usize, &mut f64)| {
            *value = value.max(if (k..2 * k).contains(&i) { 1.0 } else { f64::MIN_POSITIVE });
        };
        values.iter_mut().enumerate().for_each(least);
        return values;
    };
    // The blocks stand in the order of [`Validation`](crate::query::Validation).
    let of_clusters = (7 * k).min(values.len());
    let (clusters, rest) = values.split_at_mut(of_clusters);
    clusters.iter_mut().for_each(|sum| *sum = sum.clamp(f64::MIN_POSITIVE, MOST));
    clusters[..k].iter_mut().for_each(|own| *own = own.max(LEAST));
    clusters[4 * k..5 * k].iter_mut().for_each(|mass| *mass = mass.max(1.0));
    let rows = clusters[4 * k..5 * k].iter().sum::<f64>().round();
    let grouped: f64 = clusters[..k].iter().sum();
    clusters[..k].iter_mut().for_each(|own| *own *= rows / grouped);
    let sizes = clusters[..k].to_vec();
    let (over_all, vectors) = rest.split_at_mut(4.min(rest.len()));
    let most = [rows, rows * (k as f64).ln(), f64::MAX, f64::MAX];
    over_all.iter_mut().zip(most).for_each(|(sum, most)| *sum = sum.clamp(0.0, most));
    if asked.vectors {
        let d = domain.columns();
        let (sums, squares) = vectors.split_at_mut((k * d).min(vectors.len()));
        for (i, sum) in sums.iter_mut().enumerate() {
            let ((low, high), size) = (domain.working_interval(i % d), sizes[i / d]);
            *sum = sum.clamp(size * low, size * high);
        }
        squares.iter_mut().for_each(|square| *square = square.max(0.0));
    }
    values
}
