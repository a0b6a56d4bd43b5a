//! The noise of an answer: a site's share of it, what a total with it costs, and how it is added (spec section 17).

use veilsum_cluster::{
    Block,
    privacy::{self, Level, Levels},
};
use veilsum_proto::{Error, Rule, fixed::Scale, noise};

/// The noise of a plan, shared among the sites ([NOI-3]).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Shared {
    /// What every total may say.
    pub levels: Levels,
    /// Sites whose shares alone make the planned noise: [`HONEST`](privacy::HONEST), or fewer if a total covers fewer that do not collude.
    pub honest: usize,
}

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
pub(super) fn head_room(level: &Level, honest: usize, bound: f64) -> u64 {
    // A hundredth more for the rounding to steps.
    (40.0 * 1.01 * level.deviation / (honest.max(1) as f64).sqrt() / bound).ceil() as u64
}

/// Shares below this many steps would not add up to a discrete Gaussian.
const LEAST_SHARE: f64 = 4.0;

/// [NOI-3]: the planned deviation, widened by what summing in doubles and rounding the rows of a unit to steps add to the sensitivity,
/// over the root of the sites that make it, rounded up.
pub(super) fn share_of(
    level: &Level,
    block: &Block,
    scale: &Scale,
    shared: &Shared,
    max_rows: u64,
) -> Result<Share, Error> {
    let (honest, rows) = (shared.honest, shared.levels.noise().rows_of_unit());
    let step = power(-scale.fraction_bits);
    let exact = level.sensitivity / step;
    let sensitivity = exact * (1.0 + privacy::slack(max_rows)) + (block.len as f64).sqrt() * (rows / 2.0).max(1.0);
    let deviation = (level.deviation / step * (sensitivity / exact) / (honest.max(1) as f64).sqrt()).ceil();
    if honest == 0 || !(LEAST_SHARE..=noise::MAX_SIGMA as f64).contains(&deviation) {
        let why = format!("a site's share of the noise of {:?} is {deviation:.0} steps", block.name);
        let why = format!("{why}; 4 to 2^40 are possible: another step_bits");
        return Err(Error::Invalid { document: "plan", why, rule: Rule::Noi3 });
    }
    Ok(Share { deviation: deviation as u64, sensitivity })
}

impl Share {
    /// The cost of one total in which `honest` sites add shares (Kairouz, Liu & Steinke 2021, on sums of discrete Gaussians).
    pub(super) fn rho(&self, len: usize, honest: usize) -> f64 {
        let (deviation, len) = (self.deviation as f64, len as f64);
        let gap = |k: usize| (-2.0 * (std::f64::consts::PI * deviation).powi(2) * k as f64 / (k + 1) as f64).exp();
        let tau = 10.0 * (1..honest).map(gap).sum::<f64>();
        let ratio = self.sensitivity / (deviation * (honest as f64).sqrt()) + tau * len.sqrt();
        ratio * ratio / 2.0
    }
}
