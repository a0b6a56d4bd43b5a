//! Additively homomorphic commitments to masked vectors: they add up like the vectors themselves (spec section 9.8).
//!
//! A masked vector is no secret from the aggregator, so the commitments need not hide it. Their purpose is that a site
//! can check a sum of n vectors from n times 32 bytes. Three words share one scalar, 80 bits apart, so that sums of up
//! to 2^16 words do not overlap. The commitment is the sum of scalars times generators between which nobody knows a
//! relation. Finding two vectors with the same commitment means finding a discrete logarithm.
//!
//! Everything here is public, so variable time is acceptable.

use std::sync::{Arc, OnceLock, RwLock};

use curve25519_dalek::{
    ristretto::{CompressedRistretto, RistrettoPoint},
    scalar::Scalar,
    traits::{Identity, VartimeMultiscalarMul},
};

use crate::suite;

/// Words that share one generator.
const WORDS_PER_SCALAR: usize = 3;
/// Bits from one of them to the next.
const SPACING: usize = 80;
/// Largest words of a sum: 2^80 would run into the next.
const MAX_WORD: u128 = 1 << SPACING;

/// A commitment on the wire: a canonical ristretto255 encoding.
pub(crate) type Commitment = [u8; 32];

/// The commitment in a masked input where the plan does not open totals to the cohort.
pub(crate) const NONE: Commitment = [0; 32];

/// [OPN-1]: the generator with number `index`; its discrete logarithm to any other is unknown to everybody.
pub(crate) fn generator(index: u64) -> RistrettoPoint {
    let mut uniform = [0u8; 64];
    for (half, out) in uniform.chunks_mut(32).enumerate() {
        out.copy_from_slice(&suite::hash("generator", &[&index.to_le_bytes(), &[half as u8]]).0);
    }
    RistrettoPoint::from_uniform_bytes(&uniform)
}

/// The first `count` generators: made once in a process, for the longest vector so far.
fn generators(count: usize) -> Arc<Vec<RistrettoPoint>> {
    static KNOWN: OnceLock<RwLock<Arc<Vec<RistrettoPoint>>>> = OnceLock::new();
    let known = KNOWN.get_or_init(RwLock::default);
    let have = known.read().map(|k| k.clone()).unwrap_or_default();
    if have.len() >= count {
        return have;
    }
    let more = have.len() as u64..count as u64;
    let longer = Arc::new(have.iter().copied().chain(more.map(generator)).collect::<Vec<_>>());
    if let Ok(mut known) = known.write()
        && known.len() < longer.len()
    {
        *known = longer.clone();
    }
    longer
}

/// Words as scalars, three in each; every word is below 2^80.
fn packed(words: impl ExactSizeIterator<Item = u128>) -> impl ExactSizeIterator<Item = Scalar> {
    let count = words.len().div_ceil(WORDS_PER_SCALAR);
    let mut scalars = vec![[0u8; 32]; count];
    for (i, word) in words.enumerate() {
        debug_assert!(word < MAX_WORD);
        let at = i % WORDS_PER_SCALAR * SPACING / 8;
        scalars[i / WORDS_PER_SCALAR][at..at + SPACING / 8].copy_from_slice(&word.to_le_bytes()[..SPACING / 8]);
    }
    // 240 bits are below the order of the group, so nothing is reduced.
    scalars.into_iter().map(Scalar::from_bytes_mod_order)
}

/// The commitment to a vector of sums, each below 2^80.
fn point(words: impl ExactSizeIterator<Item = u128>) -> RistrettoPoint {
    let scalars = packed(words);
    let count = scalars.len();
    RistrettoPoint::vartime_multiscalar_mul(scalars, generators(count).iter().take(count))
}

/// [OPN-1]: the commitment to one masked vector.
pub(crate) fn commit(words: &[u64]) -> Commitment {
    point(words.iter().map(|w| u128::from(*w))).compress().to_bytes()
}

/// Integer sums of masked vectors: they do not wrap, so that commitments add up with them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sums {
    pub(crate) low: Vec<u64>,
    /// How often each word overflowed 2^64.
    pub(crate) high: Vec<u16>,
}

impl Sums {
    pub(crate) fn new(words: usize) -> Sums {
        Sums { low: vec![0; words], high: vec![0; words] }
    }

    pub(crate) fn add(&mut self, words: &[u64]) {
        for ((low, high), word) in self.low.iter_mut().zip(&mut self.high).zip(words) {
            let (sum, over) = low.overflowing_add(*word);
            (*low, *high) = (sum, *high + u16::from(over));
        }
    }

    /// Subtracts what [`Sums::add`] added.
    pub(crate) fn remove(&mut self, words: &[u64]) {
        for ((low, high), word) in self.low.iter_mut().zip(&mut self.high).zip(words) {
            let (sum, under) = low.overflowing_sub(*word);
            (*low, *high) = (sum, *high - u16::from(under));
        }
    }

    /// [OPN-4]: whether these are the sums of exactly what was committed to.
    pub(crate) fn are_of<'a>(&self, commitments: impl Iterator<Item = &'a Commitment>) -> bool {
        let mut sum = RistrettoPoint::identity();
        for c in commitments {
            let Some(point) = CompressedRistretto(*c).decompress() else { return false };
            sum += point;
        }
        let wide = |(low, high): (&u64, &u16)| u128::from(*high) << 64 | u128::from(*low);
        sum == point(self.low.iter().zip(&self.high).map(wide))
    }
}

/// A combination of vectors with weights that nobody who made a commitment could foresee ([INP-4]).
///
/// If the combination equals that of the commitments, each commitment is to its own vector. A commitment that is off by
/// E ≠ 0 shifts the combination by w·E, so whatever the errors of the others, at most one of the 2^128 weights w hides
/// it (Bellare, Garay & Rabin 1998). Plain sums show less: two commitments that are off by E and −E pass together, and
/// fail when one of the two sites leaves.
pub(crate) struct Weighted(Vec<Scalar>);

impl Weighted {
    pub(crate) fn new(words: usize) -> Weighted {
        Weighted(vec![Scalar::ZERO; words.div_ceil(WORDS_PER_SCALAR)])
    }

    pub(crate) fn add(&mut self, words: &[u64], weight: &Scalar) {
        let scalars = packed(words.iter().map(|w| u128::from(*w)));
        self.0.iter_mut().zip(scalars).for_each(|(sum, scalar)| *sum += weight * scalar);
    }

    /// Subtracts what [`Weighted::add`] added.
    pub(crate) fn remove(&mut self, words: &[u64], weight: &Scalar) {
        self.add(words, &-weight);
    }

    /// [INP-4]: whether each of these commitments is to the vector that was added with its weight.
    pub(crate) fn is_of<'a>(&self, commitments: impl Iterator<Item = (&'a Scalar, &'a Commitment)>) -> bool {
        let (weights, points): (Vec<Scalar>, Vec<_>) =
            commitments.map(|(weight, c)| (-weight, CompressedRistretto(*c).decompress())).unzip();
        let generators = generators(self.0.len());
        let scalars = self.0.iter().copied().chain(weights);
        let points = generators.iter().take(self.0.len()).map(|g| Some(*g)).chain(points);
        RistrettoPoint::optional_multiscalar_mul(scalars, points).is_some_and(|sum| sum == RistrettoPoint::identity())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn commitments_add_up_with_the_sums(
            vectors in (1usize..40).prop_flat_map(|len| {
                let word = prop_oneof![any::<u64>(), Just(u64::MAX), Just(0)];
                prop::collection::vec(prop::collection::vec(word, len), 1..9)
            }),
            at in any::<prop::sample::Index>(),
        ) {
            let mut sums = Sums::new(vectors[0].len());
            let commitments: Vec<Commitment> = vectors.iter().map(|v| commit(v)).collect();
            vectors.iter().for_each(|v| sums.add(v));
            prop_assert!(sums.are_of(commitments.iter()));
            let at = at.index(sums.low.len());
            let mut off = sums.clone();
            off.low[at] = off.low[at].wrapping_add(1);
            prop_assert!(!off.are_of(commitments.iter()));
            let mut off = sums.clone();
            off.high[at] = off.high[at].wrapping_add(1);
            prop_assert!(!off.are_of(commitments.iter()));
            // Zeros add nothing; a masked vector of zeros does not happen.
            if vectors[0].iter().any(|w| *w != 0) {
                prop_assert!(!sums.are_of(commitments.iter().skip(1)));
            }
            sums.remove(&vectors[0]);
            prop_assert!(sums.are_of(commitments.iter().skip(1)));
        }
    }

    /// Errors that cancel in a plain sum, in a subset of it or with multiplicities do not cancel under weights, before and
    /// after vectors leave.
    #[test]
    fn errors_that_cancel_in_the_sum_show_under_weights() {
        let vectors: Vec<Vec<u64>> = (0..5u64).map(|i| (0..7).map(|k| u64::MAX / (i + k + 1)).collect()).collect();
        let weights: Vec<Scalar> = (1..6u64).map(|i| Scalar::from(i * i + 1_000)).collect();
        let right: Vec<Commitment> = vectors.iter().map(|v| commit(v)).collect();
        let off = |i: usize, times: Scalar| {
            let point = CompressedRistretto(right[i]).decompress().unwrap();
            (point + times * generator(0)).compress().to_bytes()
        };
        let mut weighted = Weighted::new(7);
        vectors.iter().zip(&weights).for_each(|(v, w)| weighted.add(v, w));
        let check = |weighted: &Weighted, commitments: &[Commitment], from: usize| {
            weighted.is_of(weights[from..].iter().zip(&commitments[from..]))
        };
        assert!(check(&weighted, &right, 0));
        for shifts in [vec![(1, 1i64), (2, -1)], vec![(0, 2), (3, -1), (4, -1)], vec![(4, 1)]] {
            let mut wrong = right.clone();
            for (i, times) in &shifts {
                let size = Scalar::from(times.unsigned_abs());
                wrong[*i] = off(*i, if *times < 0 { -size } else { size });
            }
            let mut sums = Sums::new(7);
            vectors.iter().for_each(|v| sums.add(v));
            assert_eq!(sums.are_of(wrong.iter()), shifts.len() > 1, "the plain sum sees only what is left over");
            assert!(!check(&weighted, &wrong, 0), "{shifts:?}");
        }
        weighted.remove(&vectors[0], &weights[0]);
        assert!(check(&weighted, &right, 1) && !check(&weighted, &right, 0));
        let mut none = right.clone();
        none[2] = [0xff; 32];
        assert!(!check(&weighted, &none, 1));
    }

    #[test]
    fn what_is_not_a_point_is_no_commitment() {
        assert!(!Sums::new(1).are_of([[0xff; 32]].iter()));
        assert!(Sums::new(5).are_of([].iter()));
        assert_ne!(commit(&[1]), NONE);
    }
}
