//! What all methods ask of totals before they believe them, and the one update that they share.

use crate::{Centres, MethodError};

/// The right number of entries, all finite.
pub(crate) fn check_values(values: &[f64], expected: usize) -> Result<(), MethodError> {
    let found = values.len();
    if found != expected {
        return Err(MethodError::implausible(format!("expected {expected} entries, found {found}")));
    }
    if let Some(at) = values.iter().position(|value| !value.is_finite()) {
        return Err(MethodError::implausible(format!("entry {at} is not a finite number")));
    }
    Ok(())
}

/// Totals of a masked run carry the rounding of their fixed-point numbers; a bound on a total is stretched by this.
pub(crate) const SLACK: f64 = 1e-5;

/// Weights of clusters are never negative, and those of one row add up to at most 1.
pub(crate) fn check_weights(weights: &[f64], rows: Option<u64>, name: &str) -> Result<(), MethodError> {
    if let Some(k) = weights.iter().position(|weight| *weight < 0.0) {
        return Err(MethodError::implausible(format!("{name} of cluster {k} is negative")));
    }
    let all = weights.iter().sum::<f64>();
    if rows.is_some_and(|rows| all > rows as f64 * (1.0 + SLACK)) {
        return Err(MethodError::implausible(format!("the sum of {name} exceeds the number of rows")));
    }
    Ok(())
}

/// The parameters that most iterations share.
pub(crate) fn check_rounds(epsilon: f64, max_rounds: u32) -> Result<(), MethodError> {
    if !(epsilon.is_finite() && epsilon >= 0.0) {
        return Err(MethodError::Epsilon);
    }
    if max_rounds == 0 {
        return Err(MethodError::NoRounds);
    }
    if max_rounds > super::recipe::MAX_ROUNDS {
        return Err(MethodError::TooManyRounds { most: super::recipe::MAX_ROUNDS });
    }
    Ok(())
}

/// Moves every centre to `sums / weights`; one without weight stays. With the Frobenius norm of the move.
pub(crate) fn moved(centres: &Centres, sums: &[f64], weights: &[f64]) -> Result<(Centres, f64), MethodError> {
    let (k, columns) = (centres.k(), centres.columns());
    let mut values = centres.as_slice().to_vec();
    for ((centre, sum), weight) in values.chunks_exact_mut(columns).zip(sums.chunks_exact(columns)).zip(weights) {
        if *weight > 0.0 {
            for (coordinate, total) in centre.iter_mut().zip(sum) {
                *coordinate = total / weight;
            }
        }
    }
    let moved = Centres::new(k, columns, values).map_err(|error| MethodError::implausible(error.to_string()))?;
    let shift = moved
        .frobenius_distance(centres)
        .ok()
        .filter(|shift| shift.is_finite())
        .ok_or_else(|| MethodError::implausible("the centres' shift is not a finite number"))?;
    Ok((moved, shift))
}
