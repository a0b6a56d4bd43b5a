//! The noise of an answer: a site's share of it, and what that costs alone (spec section 17).

use veilsum_cluster::{
    Block,
    privacy::{self, HONEST, Level, Noise},
};
use veilsum_proto::{Error, Rule, fixed::Scale, noise::MAX_SIGMA};

/// One site's share of the noise of a block, in steps of the total.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Share {
    /// Standard deviation, a whole number ([NOI-3]).
    pub deviation: u64,
    /// How far one unit moves the block at most, rounding in doubles and to steps included.
    pub sensitivity: f64,
}

/// A power of two.
pub(super) fn power(e: i32) -> f64 {
    2f64.powi(e)
}

/// Rows' worth of room that the noise of one site takes: forty deviations, which are never exceeded ([NOI-4]).
pub(super) fn head_room(level: &Level, bound: f64) -> u64 {
    // A hundredth more for the rounding to steps.
    (40.0 * 1.01 * level.deviation / (HONEST as f64).sqrt() / bound).ceil() as u64
}

/// Shares below this many steps would not add up to a discrete Gaussian.
const LEAST_SHARE: f64 = 4.0;

/// [NOI-3]: the planned deviation, widened by what summing in doubles and rounding the rows of a unit to steps add to the sensitivity,
/// over the root of the [`HONEST`] sites that make it, rounded up.
pub(super) fn share_of(
    level: &Level,
    block: &Block,
    scale: &Scale,
    noise: &Noise,
    max_rows: u64,
) -> Result<Share, Error> {
    let step = power(-scale.fraction_bits);
    let exact = level.sensitivity / step;
    let sensitivity =
        exact * (1.0 + privacy::slack(max_rows)) + (block.len as f64).sqrt() * (noise.rows_of_unit() / 2.0).max(1.0);
    let deviation = (level.deviation / step * (sensitivity / exact) / (HONEST as f64).sqrt()).ceil();
    if !(LEAST_SHARE..=MAX_SIGMA as f64).contains(&deviation) {
        let why = format!("a site's share of the noise of {:?} is {deviation:.0} steps", block.name);
        let why = format!("{why}; 4 to 2^40 are possible: another step_bits");
        return Err(Error::Invalid { document: "plan", why, rule: Rule::Noi3 });
    }
    Ok(Share { deviation: deviation as u64, sensitivity })
}

impl Share {
    /// What it leaves to be said to somebody who knows everybody else's share (Canonne, Kamath & Steinke 2020, Theorem 14).
    pub(super) fn rho(&self) -> f64 {
        (self.sensitivity / self.deviation as f64).powi(2) / 2.0
    }
}
