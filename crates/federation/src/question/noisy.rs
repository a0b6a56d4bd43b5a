//! The noise of a whole answer: what it costs, and how a site adds its own (spec section 17).

use veilsum_cluster::{
    Block,
    privacy::{HONEST, Level, Levels},
};
use veilsum_door::guard::{Priced, WHOLE};
use veilsum_proto::{Error, Rule};

use super::{Layout, Scaled, ScaledBlock, SumBounds};

/// Where an entry of 1 is so much at least, it is a whole number: what adds one for each row is then counted exactly.
const FINE: f64 = (1u64 << 20) as f64;

impl Layout {
    /// One vector with one price: its blocks are stretched so that the same noise in every entry is that of each block's share.
    pub(super) fn noisy(blocks: Vec<Block>, form: &SumBounds, all: &Levels, levels: &[Level]) -> Result<Layout, Error> {
        if levels.len() != blocks.len() {
            let why = "the plan has noise, and not every block is accounted for".into();
            return Err(Error::Invalid { document: "question", why, rule: Rule::Noi5 });
        }
        let rows = all.noise().unit.rows();
        let rho: f64 = levels.iter().map(Level::rho).sum();
        let scaled = |(block, level): (Block, &Level)| {
            let whole = (level.rho() / rho).sqrt() * rows as f64 / level.sensitivity * f64::from(WHOLE);
            // Half a step lies between the factor and where the cut would fall.
            let (times, one) = if whole >= FINE { (whole.floor() - 0.5, whole.floor() - 1.0) } else { (whole, whole) };
            ScaledBlock { block, scale: Scaled::Noisy { factor: times / f64::from(WHOLE), one } }
        };
        let blocks = blocks.into_iter().zip(levels).map(scaled).collect();
        let nano_rho = (rho * HONEST as f64 * 1e9).floor() as u64;
        let noise = Priced::of(nano_rho, rows, (form.sites, form.max_rows))?;
        Ok(Layout { blocks, noise: Some(noise) })
    }

    /// The price of an answer of this layout, in 10^-9 of rho ([NOI-6]); `None` without noise.
    pub fn nano_rho(&self) -> Option<u64> {
        self.noise.map(|priced| priced.nano_rho)
    }
}
