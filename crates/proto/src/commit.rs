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
    ristretto::{CompressedRistretto, RistrettoPoint, VartimeRistrettoPrecomputation},
    scalar::Scalar,
    traits::{Identity, VartimeMultiscalarMul, VartimePrecomputedMultiscalarMul},
};

use crate::{spread, suite};

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

/// Generators up to which multiples are kept, 10 kB for each and once more for a core alone: with more, reading the tables takes longer than
/// they save.
const TABLED: usize = 400;

/// Fewer generators or commitments than this are not worth another core.
const LEAST_PART: usize = 16;

/// The first generators, and their multiples where they are few: in a part for every core, and in one for a core that has no other beside
/// it. Each is made when it is needed first.
struct Generators {
    points: Vec<RistrettoPoint>,
    /// Generators of a part.
    part: usize,
    parts: OnceLock<Vec<VartimeRistrettoPrecomputation>>,
    whole: OnceLock<Vec<VartimeRistrettoPrecomputation>>,
}

impl Generators {
    fn first(points: Vec<RistrettoPoint>) -> Generators {
        let part = points.len().div_ceil(spread::most_parts(points.len(), LEAST_PART)).max(1);
        Generators { points, part, parts: OnceLock::new(), whole: OnceLock::new() }
    }

    /// The multiples, in parts of so many generators.
    fn tables(&self, part: usize) -> &[VartimeRistrettoPrecomputation] {
        if self.points.len() > TABLED {
            return &[];
        }
        let known = if part == self.part { &self.parts } else { &self.whole };
        known.get_or_init(|| self.points.chunks(part).map(VartimeRistrettoPrecomputation::new).collect())
    }
}

/// At least the first `count` generators: made once in a process, for the longest vector so far.
fn generators(count: usize) -> Arc<Generators> {
    // The two kinds apart: short vectors keep their tables where there are long ones, too.
    static KNOWN: [OnceLock<RwLock<Option<Arc<Generators>>>>; 2] = [const { OnceLock::new() }; 2];
    let known = KNOWN[usize::from(count > TABLED)].get_or_init(RwLock::default);
    let have = known.read().ok().and_then(|known| known.clone());
    if let Some(have) = have.as_ref().filter(|have| have.points.len() >= count) {
        return have.clone();
    }
    let before = have.iter().flat_map(|have| have.points.iter().copied());
    let from = have.as_ref().map_or(0, |have| have.points.len());
    let more: Vec<u64> = (from as u64..count as u64).collect();
    let more = spread::map(&more, LEAST_PART, |index| generator(*index));
    let longer = Arc::new(Generators::first(before.chain(more).collect()));
    if let Ok(mut known) = known.write()
        && known.as_ref().is_none_or(|known| known.points.len() < count)
    {
        *known = Some(longer.clone());
    }
    longer
}

/// The sum of scalars times generators and of commitments as often as their weights say. None where a commitment is not a point.
fn combination(scalars: &[Scalar], weighted: &[(Scalar, &Commitment)]) -> Option<RistrettoPoint> {
    let generators = generators(scalars.len());
    let parts = spread::parts(scalars.len().max(weighted.len()), LEAST_PART);
    let one = generators.points.len().max(1);
    let (parts, fixed) = match parts {
        1 => (1, one),
        parts => (parts.max(scalars.len().div_ceil(generators.part)), generators.part),
    };
    let (tables, each) = (generators.tables(fixed), weighted.len().div_ceil(parts));
    let part = |at: &usize| {
        let range = |length: usize, each: usize| (at * each).min(length)..((at + 1) * each).min(length);
        let fixed = range(scalars.len(), fixed);
        let (points, scalars) = (&generators.points[fixed.clone()], &scalars[fixed]);
        let weighted = &weighted[range(weighted.len(), each)];
        let weights = weighted.iter().map(|(weight, _)| *weight);
        let weighted = weighted.iter().map(|(_, commitment)| decoded(commitment));
        match tables.get(*at) {
            Some(tables) => tables.optional_mixed_multiscalar_mul(scalars, weights, weighted),
            None => RistrettoPoint::optional_multiscalar_mul(
                scalars.iter().copied().chain(weights),
                points.iter().copied().map(Some).chain(weighted),
            ),
        }
    };
    let all: Vec<usize> = (0..parts).collect();
    spread::map(&all, 1, part).into_iter().sum()
}

fn decoded(commitment: &Commitment) -> Option<RistrettoPoint> {
    CompressedRistretto(*commitment).decompress()
}

/// Words as scalars, three in each; every word is below 2^80.
fn packed(words: impl ExactSizeIterator<Item = u128>) -> Vec<Scalar> {
    let count = words.len().div_ceil(WORDS_PER_SCALAR);
    let mut scalars = vec![[0u8; 32]; count];
    for (i, word) in words.enumerate() {
        debug_assert!(word < MAX_WORD);
        let at = i % WORDS_PER_SCALAR * SPACING / 8;
        scalars[i / WORDS_PER_SCALAR][at..at + SPACING / 8].copy_from_slice(&word.to_le_bytes()[..SPACING / 8]);
    }
    // 240 bits are below the order of the group, so nothing is reduced.
    scalars.into_iter().map(Scalar::from_bytes_mod_order).collect()
}

/// The commitment to a vector of sums, each below 2^80.
fn point(words: impl ExactSizeIterator<Item = u128>) -> RistrettoPoint {
    combination(&packed(words), &[]).unwrap_or_default()
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
}

/// [OPN-4]: whether these are the sums, low 64 bits and how often they overflowed, of exactly what was committed to.
pub(crate) fn are_sums_of<'a>(low: &[u64], high: &[u16], commitments: impl Iterator<Item = &'a Commitment>) -> bool {
    let wide = |(low, high): (&u64, &u16)| u128::from(*high) << 64 | u128::from(*low);
    let commitments: Vec<&Commitment> = commitments.collect();
    let sum: Option<RistrettoPoint> = spread::map(&commitments, LEAST_PART, |c| decoded(c)).into_iter().sum();
    sum == Some(point(low.iter().zip(high).map(wide)))
}

/// A combination of vectors with weights that nobody who made a commitment could foresee ([INP-4]).
///
/// If the combination equals that of the commitments, each commitment is to its own vector. A commitment that is off by
/// E ≠ 0 shifts the combination by w·E, so whatever the errors of the others, at most one of the 2^128 weights w hides
/// it (Bellare, Garay & Rabin 1998). Plain sums show less: two commitments that are off by E and −E pass together, and
/// fail when one of the two sites leaves.
///
/// Weights have 128 bits, so the combination of up to 2^16 vectors fits 208 bits a word, and is kept as integers: that costs
/// a twentieth of products in the field.
pub(crate) struct Weighted(Vec<[u64; 4]>);

impl Weighted {
    pub(crate) fn new(words: usize) -> Weighted {
        Weighted(vec![[0; 4]; words])
    }

    pub(crate) fn add(&mut self, words: &[u64], weight: u128) {
        self.each(words, weight, u64::carrying_add);
    }

    /// Subtracts what [`Weighted::add`] added.
    pub(crate) fn remove(&mut self, words: &[u64], weight: u128) {
        self.each(words, weight, u64::borrowing_sub);
    }

    fn each(&mut self, words: &[u64], weight: u128, step: impl Fn(u64, u64, bool) -> (u64, bool)) {
        for (sum, word) in self.0.iter_mut().zip(words) {
            let mut carry = false;
            for (limb, by) in sum.iter_mut().zip(weighted(*word, weight)) {
                (*limb, carry) = step(*limb, by, carry);
            }
        }
    }

    /// [INP-4]: whether each of these commitments is to the vector that was added with its weight.
    pub(crate) fn is_of<'a>(&self, commitments: impl Iterator<Item = (u128, &'a Commitment)>) -> bool {
        // The generators' side is negated: weights stay short, and short ones cost half.
        let scalars: Vec<Scalar> = self.0.chunks(WORDS_PER_SCALAR).map(|words| -spaced(words)).collect();
        let commitments: Vec<_> = commitments.map(|(weight, c)| (Scalar::from(weight), c)).collect();
        combination(&scalars, &commitments) == Some(RistrettoPoint::identity())
    }
}

fn weighted(word: u64, weight: u128) -> [u64; 4] {
    let low = u128::from(word) * u128::from(weight as u64);
    let high = u128::from(word) * (weight >> 64) + (low >> 64);
    [low as u64, high as u64, (high >> 64) as u64, 0]
}

/// The scalar of words that are 80 bits apart, each below 2^208: they overlap, so the sum is reduced.
fn spaced(words: &[[u64; 4]]) -> Scalar {
    let word = |word: &[u64; 4]| {
        let mut bytes = [0; 32];
        let (chunks, _) = bytes.as_chunks_mut::<8>();
        chunks.iter_mut().zip(word).for_each(|(chunk, limb)| *chunk = limb.to_le_bytes());
        Scalar::from_bytes_mod_order(bytes)
    };
    let mut spacing = [0; 32];
    spacing[SPACING / 8] = 1;
    let spacing = Scalar::from_bytes_mod_order(spacing);
    words.iter().rev().fold(Scalar::ZERO, |sum, next| sum * spacing + word(next))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Errors that cancel in a plain sum, in a subset of it or with multiplicities do not cancel under weights, before and
    /// after vectors leave.
    #[test]
    fn errors_that_cancel_in_the_sum_show_under_weights() {
        let vectors: Vec<Vec<u64>> = (0..5u64).map(|i| (0..7).map(|k| u64::MAX / (i + k + 1)).collect()).collect();
        let weights: Vec<u128> = (1..6u128).map(|i| u128::MAX / (i * i + 1_000)).collect();
        let right: Vec<Commitment> = vectors.iter().map(|v| commit(v)).collect();
        let off = |i: usize, times: Scalar| {
            let point = CompressedRistretto(right[i]).decompress().unwrap();
            (point + times * generator(0)).compress().to_bytes()
        };
        let mut weighted = Weighted::new(7);
        vectors.iter().zip(&weights).for_each(|(v, w)| weighted.add(v, *w));
        let check = |weighted: &Weighted, commitments: &[Commitment], from: usize| {
            weighted.is_of(weights[from..].iter().copied().zip(&commitments[from..]))
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
            let plain = are_sums_of(&sums.low, &sums.high, wrong.iter());
            assert_eq!(plain, shifts.len() > 1, "the plain sum sees only what is left over");
            assert!(!check(&weighted, &wrong, 0), "{shifts:?}");
        }
        weighted.remove(&vectors[0], weights[0]);
        assert!(check(&weighted, &right, 1) && !check(&weighted, &right, 0));
        let mut none = right.clone();
        none[2] = [0xff; 32];
        assert!(!check(&weighted, &none, 1));
    }

    /// The tables, the parts and the integers against one plain sum in the group, below and above the length that has tables; shared by
    /// all cores, and on one because others have work.
    #[test]
    fn a_combination_is_the_plain_sum() {
        combinations_are_plain_sums();
        let _busy: Vec<_> = (0..1_000).map(|_| spread::AtWork::begin()).collect();
        assert_eq!(spread::parts(1_000, 1), 1);
        combinations_are_plain_sums();
    }

    fn combinations_are_plain_sums() {
        for words in [1usize, 2, 3, 4, 50, 170, 3 * TABLED, 3 * TABLED + 1] {
            let vector = |i: u64| -> Vec<u64> { (0..words as u64).map(|k| u64::MAX / (i * 31 + k + 1)).collect() };
            let plain = |words: &[u64], weight: u128| -> RistrettoPoint {
                let scalars = packed(words.iter().map(|w| u128::from(*w)));
                (0..).zip(scalars).map(|(i, s)| Scalar::from(weight) * s * generators(TABLED + 1).points[i]).sum()
            };
            generators(words.div_ceil(WORDS_PER_SCALAR).max(TABLED + 1));
            assert_eq!(commit(&vector(3)), plain(&vector(3), 1).compress().to_bytes(), "{words} words");
            let (mut weighted, mut sum) = (Weighted::new(words), RistrettoPoint::identity());
            let weights = [u128::MAX, 1, 0, u128::MAX - 7, 1 << 64];
            for (i, weight) in (0..).zip(weights) {
                weighted.add(&vector(i), weight);
                sum += plain(&vector(i), weight);
            }
            let scalars: Vec<Scalar> = weighted.0.chunks(WORDS_PER_SCALAR).map(spaced).collect();
            assert_eq!(combination(&scalars, &[]), Some(sum), "{words} words");
            let right: Vec<Commitment> = (0..5).map(|i| commit(&vector(i))).collect();
            assert!(weighted.is_of(weights.into_iter().zip(&right)));
            weights.iter().zip(0..).for_each(|(weight, i)| weighted.remove(&vector(i), *weight));
            assert!(weighted.0.iter().all(|sum| *sum == [0; 4]));
        }
    }
}
