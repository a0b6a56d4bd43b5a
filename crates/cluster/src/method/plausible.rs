//! What all methods ask of totals before they believe them, and the one update that they share.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::totals_check::SLACK;
use crate::{Centres, Domain, MethodError};

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

/// Where centres are kept, and how coarse the totals are that move them.
#[derive(Debug, Clone)]
pub struct Walls {
    /// The box, in the units of the questions.
    pub domain: Domain,
    /// Part of a row's largest value by which the rounding of all sites together changes a sum at most.
    pub rounding: f64,
}

impl Walls {
    /// Around totals whose rounding hardly shows.
    pub fn fine(domain: &Domain) -> Self {
        Self { domain: domain.clone(), rounding: 1e-6 }
    }
}
/// Of the weight of all clusters: below this share a cluster's weight drowns in the rounding of fixed-point totals.
const CLEAR_SHARE: f64 = 1e-9;

/// The weights that a sum can be divided by; 0 for those that cannot be told from the rounding of totals.
pub(crate) fn clear(weights: &[f64]) -> Vec<f64> {
    let least = CLEAR_SHARE * weights.iter().sum::<f64>();
    weights.iter().map(|weight| if *weight > least { *weight } else { 0.0 }).collect()
}

/// Centres with every coordinate moved into the box.
pub(crate) fn confined(centres: &Centres, domain: &Domain) -> Centres {
    let d = centres.columns();
    let into = |(i, value): (usize, &f64)| {
        let (low, high) = domain.working_interval(i % d);
        value.clamp(low, high)
    };
    let values: Vec<f64> = centres.as_slice().iter().enumerate().map(into).collect();
    Centres::finite(d, &values)
}

/// Means that were made from a weight lie in the box, but for the rounding of their sums.
fn check_means(means: &Centres, weights: &[f64], Walls { domain, rounding }: &Walls) -> Result<(), MethodError> {
    let largest = (0..domain.columns()).map(|column| domain.max_abs(column)).fold(0.0, f64::max);
    for (cluster, (mean, weight)) in means.rows().zip(weights).enumerate().filter(|(_, (_, weight))| **weight > 0.0) {
        for (column, value) in mean.iter().enumerate() {
            let (low, high) = domain.working_interval(column);
            let slack = SLACK * (high - low) + rounding * (largest + low.abs().max(high.abs())) / weight;
            if *value < low - slack || *value > high + slack {
                return Err(MethodError::implausible(format!("the mean of cluster {cluster} lies outside the box")));
            }
        }
    }
    Ok(())
}

/// A name for centres, to know them again.
pub(crate) fn hash(centres: &Centres) -> u64 {
    let mut hasher = DefaultHasher::new();
    centres.as_slice().iter().for_each(|x| x.to_bits().hash(&mut hasher));
    hasher.finish()
}

/// Moves every centre to `sums / weights`; one without weight stays. A mean of rows lies in their box, so what rounding
/// leaves outside goes back to its edge (sites refuse centres outside), and what is farther off is no mean of rows. With
/// the Frobenius norm of the move.
pub(crate) fn moved(
    centres: &Centres,
    sums: &[f64],
    weights: &[f64],
    walls: Option<&Walls>,
) -> Result<(Centres, f64), MethodError> {
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
    let moved = match walls {
        Some(walls) => {
            check_means(&moved, weights, walls)?;
            confined(&moved, &walls.domain)
        }
        None => moved,
    };
    let shift = moved
        .frobenius_distance(centres)
        .ok()
        .filter(|shift| shift.is_finite())
        .ok_or_else(|| MethodError::implausible("the centres' shift is not a finite number"))?;
    Ok((moved, shift))
}
