//! The one place where clustering and protocol meet: query out, statistic, fixed point, masked, total, back.
//!
//! The scale of every block is computed from the plan and the size of the cohort alone, by both ends, before a row is
//! touched; an entry that does not fit is an error of the site that has it, never a silent clip (spec section 7).

use serde::{Deserialize, Serialize};
use veilsum_cluster::{Block, Domain, Prepared, Query, Statistic, Totals, answer};
use veilsum_proto::{
    Error, codec,
    fixed::{self, Scale},
    limits::MAX_QUERY,
};

/// What an aggregator may ask a site ([APP-4]).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Question {
    /// The intermediary's only question: how many rows.
    CountRows,
    /// A question of the plan's method.
    Cluster(Query),
}

/// Why a question has no answer, or a total no meaning.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RoundError {
    /// The bytes or numbers of the protocol.
    #[error(transparent)]
    Protocol(#[from] Error),
    /// The clustering side refuses.
    #[error(transparent)]
    Answer(#[from] veilsum_cluster::AnswerError),
    /// A site holds more rows than the plan allows any one site.
    #[error("this site has more rows than the plan's max_rows ({max_rows}): ask for a plan with a larger one")]
    TooManyRows {
        /// The plan's number.
        max_rows: u64,
    },
    /// An entry is larger than its proved bound. With rows inside the box this cannot happen.
    #[error("an entry of {block:?} exceeds the bound that the plan proves for it: this is a defect, please report it")]
    OverBound {
        /// Block of the layout.
        block: &'static str,
    },
    /// A total that lies outside what the cohort can have sent.
    #[error(
        "the total of {block:?} exceeds what this cohort can add up to: a site sent something else than it was asked"
    )]
    Implausible {
        /// Block of the layout.
        block: &'static str,
    },
}

/// One block with its scale.
#[derive(Clone, Debug)]
pub struct ScaledBlock {
    /// The meaning and length of the entries.
    pub block: Block,
    /// How they travel.
    pub scale: Scale,
}

/// The layout of an answer: what each word means and how it is scaled.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The blocks in order.
    pub blocks: Vec<ScaledBlock>,
}

impl Question {
    /// The bytes to broadcast.
    pub fn to_bytes(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// Reads a broadcast.
    ///
    /// # Errors
    /// `Error::Malformed`.
    pub fn from_bytes(bytes: &[u8]) -> Result<Question, Error> {
        codec::decode("question", bytes, MAX_QUERY)
    }

    /// A short name for logs and reports.
    pub fn name(&self) -> &'static str {
        match self {
            Question::CountRows => "count_rows",
            Question::Cluster(q) => q.kind(),
        }
    }

    /// The layout for a cohort of at most `sites` sites with at most `max_rows` rows each.
    ///
    /// # Errors
    /// `Error::Invalid` where the sum could overflow or the vector is too long.
    pub fn layout(&self, domain: &Domain, sites: usize, max_rows: u64) -> Result<Layout, Error> {
        let blocks = match self {
            // One row adds one; a count needs no fraction, but keeps the same proof.
            Question::CountRows => vec![Block { name: "rows", len: 1, bound: 1.0 }],
            Question::Cluster(q) => q.layout(domain),
        };
        let blocks: Vec<ScaledBlock> = blocks
            .into_iter()
            .map(|block| Ok(ScaledBlock { scale: fixed::scale(sites, max_rows, exponent(block.bound))?, block }))
            .collect::<Result<_, Error>>()?;
        let lengths: Vec<fixed::Block> = blocks
            .iter()
            .map(|b| fixed::Block {
                len: u32::try_from(b.block.len).unwrap_or(u32::MAX),
                bound_exp: exponent(b.block.bound),
            })
            .collect();
        fixed::words(&lengths)?;
        Ok(Layout { blocks })
    }
}

/// Smallest e with `bound` ≤ 2^e, kept in a range where 2^e is an ordinary double.
fn exponent(bound: f64) -> i16 {
    if bound <= 0.0 {
        return -512;
    }
    if !bound.is_finite() {
        return 1000;
    }
    let mut e = bound.log2().ceil() as i32;
    // log2 may be off by one at powers of two.
    while power(e) < bound {
        e += 1;
    }
    while e > -512 && power(e - 1) >= bound {
        e -= 1;
    }
    e.clamp(-512, 1000) as i16
}

fn power(e: i32) -> f64 {
    2f64.powi(e)
}

impl Layout {
    /// Words of the vector.
    pub fn words(&self) -> usize {
        self.blocks.iter().map(|b| b.block.len).sum()
    }

    /// A statistic in fixed point.
    ///
    /// # Errors
    /// [`RoundError::OverBound`] where an entry is larger than its bound.
    pub fn encode(&self, statistic: &Statistic) -> Result<Vec<u64>, RoundError> {
        let mut entries = statistic.values.iter();
        let mut out = Vec::with_capacity(self.words());
        for b in &self.blocks {
            let factor = power(b.scale.fraction_bits);
            for x in entries.by_ref().take(b.block.len) {
                // Scaling by a power of two is exact; only the rounding to an integer loses anything.
                let v = (x * factor).round_ties_even();
                if v.is_nan() || v.abs() > b.scale.limit as f64 || v.abs() >= power(63) {
                    return Err(RoundError::OverBound { block: b.block.name });
                }
                out.push(fixed::to_ring(v as i64));
            }
        }
        if out.len() != self.words() || entries.next().is_some() {
            return Err(Error::ApiMisuse("a statistic of another length than its layout").into());
        }
        Ok(out)
    }

    /// A total over `cohort` sites back in working units.
    ///
    /// # Errors
    /// [`RoundError::Implausible`] where it is larger than all sites together can have sent.
    pub fn decode(&self, values: &[u64], cohort: usize, rows: Option<u64>) -> Result<Totals, RoundError> {
        if values.len() != self.words() {
            return Err(Error::ApiMisuse("a total of another length than its layout").into());
        }
        let mut words = values.iter();
        let mut out = Vec::with_capacity(values.len());
        for b in &self.blocks {
            let unit = power(-b.scale.fraction_bits);
            for w in words.by_ref().take(b.block.len) {
                let v = fixed::from_ring(*w);
                if u128::from(v.unsigned_abs()) > u128::from(b.scale.limit) * cohort as u128 {
                    return Err(RoundError::Implausible { block: b.block.name });
                }
                out.push(v as f64 * unit);
            }
        }
        Ok(Totals { values: out, rows })
    }
}

/// A site's answer in fixed point, ready to be masked.
///
/// # Errors
/// [`RoundError`] naming what does not fit.
pub fn contribute(question: &Question, rows: &Prepared, sites: usize, max_rows: u64) -> Result<Vec<u64>, RoundError> {
    if rows.len() as u64 > max_rows {
        return Err(RoundError::TooManyRows { max_rows });
    }
    let layout = question.layout(rows.domain(), sites, max_rows)?;
    let statistic = match question {
        Question::CountRows => Statistic { values: vec![rows.len() as f64] },
        Question::Cluster(query) => answer(query, rows)?,
    };
    layout.encode(&statistic)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use veilsum_cluster::{Centres, OutOfBox, Rows, Scaling, pooled};

    #[test]
    fn exponents_are_the_smallest_that_hold() {
        for (bound, e) in [(1.0, 0), (1.0000001, 1), (0.5, -1), (0.3, -1), (2.0, 1), (3.0, 2), (1e9, 30), (0.0, -512)] {
            assert_eq!(exponent(bound), e, "{bound}");
        }
    }

    proptest! {
        #[test]
        fn the_sum_of_fixed_point_answers_is_the_plain_sum(
            values in proptest::collection::vec(0.0f64..1.0, 12..200),
            sites in 3usize..8,
        ) {
            let d = 2;
            let n = values.len() / d;
            let domain = Domain::new(vec![0.0; d], vec![1.0; d], Scaling::Box).unwrap();
            let centres = Centres::from_rows(&[vec![0.2, 0.3], vec![0.9, 0.5]]).unwrap();
            let parts: Vec<Prepared> = (0..sites)
                .map(|s| {
                    let rows: Vec<f64> = (0..n).filter(|i| i % sites == s).flat_map(|i| values[i * d..(i + 1) * d].to_vec()).collect();
                    Prepared::new(&Rows::new(rows, d).unwrap(), &domain, OutOfBox::Refuse).unwrap()
                })
                .collect();
            let query = Query::FuzzyValidation { centres, m: 2.0 };
            let plain = pooled::totals(&query, &parts).unwrap().values;
            let question = Question::Cluster(query);
            let layout = question.layout(&domain, sites, 1000).unwrap();
            let mut sum = vec![0u64; layout.words()];
            for p in &parts {
                let v = contribute(&question, p, sites, 1000).unwrap();
                sum.iter_mut().zip(v).for_each(|(a, b)| *a = a.wrapping_add(b));
            }
            let total = layout.decode(&sum, sites, None).unwrap().values;
            for (a, b) in total.iter().zip(&plain) {
                prop_assert!((a - b).abs() <= 1e-11, "{} {}", a, b);
            }
        }
    }

    #[test]
    fn more_rows_than_planned_and_foreign_totals_are_errors() {
        let domain = Domain::new(vec![0.0], vec![1.0], Scaling::Box).unwrap();
        let rows = Prepared::new(&Rows::new(vec![0.5; 11], 1).unwrap(), &domain, OutOfBox::Refuse).unwrap();
        assert_eq!(contribute(&Question::CountRows, &rows, 3, 10), Err(RoundError::TooManyRows { max_rows: 10 }));
        assert!(contribute(&Question::CountRows, &rows, 3, 11).is_ok());
        let layout = Question::CountRows.layout(&domain, 3, 10).unwrap();
        assert!(matches!(layout.decode(&[u64::MAX / 3], 3, None), Err(RoundError::Implausible { .. })));
        assert!(Question::CountRows.layout(&domain, 1000, u64::MAX).is_err());
    }

    #[test]
    fn questions_there_and_back() {
        let q = Question::Cluster(Query::FuzzySums { centres: Centres::from_rows(&[vec![0.25]]).unwrap(), m: 1.5 });
        assert_eq!(Question::from_bytes(&q.to_bytes()).unwrap(), q);
        assert!(Question::from_bytes(&q.to_bytes()[1..]).is_err());
    }
}
