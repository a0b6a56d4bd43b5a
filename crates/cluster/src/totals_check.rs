//! What everybody asks of totals before believing them: their number, and bounds that no rows can break.

use crate::{Domain, Error, refuse};

/// The right number of entries, all finite.
pub(crate) fn check_values(values: &[f64], expected: usize) -> Result<(), Error> {
    let found = values.len();
    refuse(found != expected, || Error::implausible(format!("expected {expected} entries, found {found}")))?;
    if let Some(at) = values.iter().position(|value| !value.is_finite()) {
        return Err(Error::implausible(format!("entry {at} is not a finite number")));
    }
    Ok(())
}

/// Totals of a masked run carry the rounding of their fixed-point numbers; a bound on a total is stretched by this.
pub(crate) const SLACK: f64 = 1e-5;

/// A number that totals gave, to 2^-36 (1.5e-11) of `unit`, counted from `from`. The last bits of a total depend on the order in
/// which it was added up, so nothing that is drawn, counted or compared later may depend on them.
pub(crate) fn steady(value: f64, from: f64, unit: f64) -> f64 {
    let step = unit.log2().ceil().exp2() * 2f64.powi(-36);
    let steady = from + ((value - from) / step).round() * step;
    if steady.is_finite() { steady } else { value }
}

/// Weights of clusters are never negative, and those of one row add up to at most 1.
pub(crate) fn check_weights(weights: &[f64], rows: Option<u64>, name: &str) -> Result<(), Error> {
    if let Some(k) = weights.iter().position(|weight| *weight < 0.0) {
        return Err(Error::implausible(format!("{name} of cluster {k} is negative")));
    }
    let all = weights.iter().sum::<f64>();
    let exceeds = rows.is_some_and(|rows| all > rows as f64 * (1.0 + SLACK));
    refuse(exceeds, || Error::implausible(format!("the sum of {name} exceeds the number of rows")))
}

/// Noisy sums of columns, or of squares around a point in their box, as the rows that they begin with could have given them: one row
/// at least, and means between the ends of each column, variances between 0 and a quarter of its square.
pub(crate) fn plausible_moments(values: &[f64], domain: &Domain, squares: bool) -> Vec<f64> {
    let mut values = values.to_vec();
    let rows = values[0].round().max(1.0);
    values[0] = rows;
    for (column, value) in values[1..].iter_mut().enumerate() {
        let (low, high) = domain.working_interval(column);
        let ends = if squares { (0.0, (high - low) * (high - low) / 4.0) } else { (low, high) };
        *value = value.clamp(rows * ends.0, rows * ends.1);
    }
    values
}

#[cfg(test)]
mod tests {
    use super::steady;

    #[test]
    fn a_steady_number_forgets_its_last_bits_and_nothing_else() {
        for (value, from, unit) in
            [(0.3, 0.0, 1.0), (0.1 + 0.2, 0.0, 0.3), (1e9 + 0.7, 1e9, 3.0), (-7e-13, -1e-12, 1e-12)]
        {
            let found = steady(value, from, unit);
            assert!((found - value).abs() <= unit * 1.5e-11, "{value} became {found}");
            let nudge = unit * 4e-16;
            assert_eq!([value - nudge, value + nudge].map(|value| steady(value, from, unit)), [found; 2]);
        }
        // Nothing to count in.
        assert_eq!([steady(0.3, 0.0, 0.0), steady(0.3, 0.0, f64::INFINITY), steady(0.0, 0.0, 1.0)], [0.3, 0.3, 0.0]);
    }
}
