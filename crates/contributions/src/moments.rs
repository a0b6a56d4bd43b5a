//! The row itself and its values, or how far they lie from a point.

pub(crate) fn add(around: Option<&[f64]>, row: &[f64], out: &mut [f64]) {
    out[0] += 1.0;
    match around {
        None => out[1..].iter_mut().zip(row).for_each(|(out, x)| *out += x),
        Some(around) => {
            for ((out, x), around) in out[1..].iter_mut().zip(row).zip(around) {
                *out += (x - around) * (x - around);
            }
        }
    }
}
