//! The noise of a whole answer: what it costs, and how a site adds its own (spec section 17).

use veilsum_cluster::{
    Block, REACH, WHOLE,
    privacy::{HONEST, Level, Levels},
};
use veilsum_proto::{Error, Rule, noise};

use super::{Layout, Scaled, ScaledBlock, SumBounds};

/// The price of a vector, and what follows from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Priced {
    /// What its site's own noise leaves to be said, whatever all others do, in 10^-9 of rho.
    pub nano_rho: u64,
    /// The deviation of that noise, a whole number ([NOI-3]).
    pub deviation: u64,
    /// The largest entry of a site: all its rows, and forty deviations, which are never exceeded ([NOI-4]).
    pub limit: u64,
}

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
        let noise = Priced::of(rho * HONEST as f64, rows, form)?;
        Ok(Layout { blocks, noise: Some(noise) })
    }

    /// The price of an answer of this layout, in 10^-9 of rho ([NOI-6]); `None` without noise.
    pub fn nano_rho(&self) -> Option<u64> {
        self.noise.map(|priced| priced.nano_rho)
    }

    /// This site's noise, one for each word; zeros without noise.
    pub(super) fn noise(&self, key: Option<&noise::Key>) -> Result<Vec<u64>, Error> {
        let mut words = vec![0; self.words()];
        if let Some(priced) = self.noise {
            // Without a key nothing leaves.
            let key = key.ok_or(Error::ApiMisuse("a plan with noise, and no key to draw it"))?;
            noise::add(&mut words, priced.deviation, &mut noise::Stream::new(key))?;
        }
        Ok(words)
    }
}

impl Priced {
    /// [NOI-3]: the least whole deviation whose noise costs no more than `rho`, if a unit has so many rows.
    fn of(rho: f64, rows: u64, form: &SumBounds) -> Result<Self, Error> {
        let invalid = |why: &str| Error::Invalid { document: "plan", why: why.into(), rule: Rule::Noi3 };
        let nano_rho = (rho * 1e9).floor() as u64;
        // A unit moves the vector by this much at most.
        let moved = u128::from(REACH) * u128::from(rows);
        let square = (moved * moved * 500_000_000).checked_div(u128::from(nano_rho));
        let deviation = square.and_then(|square| u64::try_from(square.isqrt() + 1).ok());
        let deviation = deviation.filter(|deviation| *deviation <= noise::MAX_SIGMA).ok_or_else(|| {
            invalid("a question has so little of rho that its noise is more than 2^40: a larger rho, or fewer rounds")
        })?;
        let limit = u128::from(form.max_rows) * u128::from(REACH) + 40 * u128::from(deviation);
        if limit.saturating_mul(form.sites as u128) >= 1 << 63 {
            return Err(invalid("so many rows and so much noise do not fit into 64 bits: fewer rows, or a larger rho"));
        }
        Ok(Self { nano_rho, deviation, limit: limit as u64 })
    }
}
