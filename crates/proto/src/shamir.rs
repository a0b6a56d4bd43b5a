//! Shamir's secret sharing over the scalar field of the curve (spec section 8; Shamir 1979).
//!
//! Site number i has the polynomial's value at x = i + 1, so no share is the secret itself.

use curve25519_dalek::scalar::Scalar;
use rand_core::CryptoRng;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// A share or a shared secret. Wiped on drop, never printed.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Share(pub(crate) Scalar);

impl Share {
    pub(crate) fn bytes(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    // A share is stored once and given out once; the two live apart.
    pub(crate) fn copy(&self) -> Share {
        Share(self.0)
    }

    /// Only the canonical encoding of a field element is a share ([SHA-2]).
    pub(crate) fn from_bytes(bytes: &[u8; 32]) -> Option<Share> {
        Option::from(Scalar::from_canonical_bytes(*bytes)).map(Share)
    }

    /// All of them, or none. With its full capacity from the start: growing would leave copies behind.
    pub(crate) fn all<'a>(list: impl ExactSizeIterator<Item = &'a [u8; 32]>) -> Option<Vec<Share>> {
        let mut shares = Vec::with_capacity(list.len());
        for bytes in list {
            shares.push(Share::from_bytes(bytes)?);
        }
        Some(shares)
    }
}

/// Whether these bytes are the canonical encoding of a field element ([SHA-2]): whether the number is below the group's order.
/// For shares that are secret no longer; it costs a fiftieth of bringing them into the field.
pub(crate) fn is_canonical(bytes: &[u8; 32]) -> bool {
    const ORDER: [u64; 4] = [0x5812_631a_5cf5_d3ed, 0x14de_f9de_a2f7_9cd6, 0, 1 << 60];
    limbs(bytes).iter().rev().lt(ORDER.iter().rev())
}

/// A uniform field element.
pub(crate) fn random_scalar(rng: &mut dyn CryptoRng) -> Scalar {
    let mut wide = Zeroizing::new([0u8; 64]);
    rng.fill_bytes(&mut wide[..]);
    Scalar::from_bytes_mod_order_wide(&wide)
}

/// The point at which site `i` evaluates ([SHA-2]).
fn point(i: u16) -> Scalar {
    Scalar::from(u64::from(i) + 1)
}

/// A polynomial of degree t − 1 whose value at zero is the secret. Shares are its values at the members' points: any t of them
/// open the secret, fewer say nothing about it.
pub(crate) struct Polynomial(Zeroizing<Vec<Scalar>>);

impl Polynomial {
    /// All coefficients but the secret are uniform.
    pub(crate) fn through(secret: &Scalar, t: usize, rng: &mut dyn CryptoRng) -> Polynomial {
        // With its full capacity from the start: growing would leave a copy behind.
        let mut coefficients = Zeroizing::new(Vec::with_capacity(t));
        coefficients.push(*secret);
        coefficients.extend((1..t).map(|_| random_scalar(rng)));
        Polynomial(coefficients)
    }
}

/// So many coefficients times powers below 2^64 add up to less than 2^320.
const GROUP: usize = 7;

/// A point at which many polynomials are evaluated: the powers of a member's x. The point is small, so several coefficients are
/// multiplied with powers of one word and added up, and only their sums with powers that take four.
pub(crate) struct Powers {
    /// 1, x, x², … as long as they fit a word.
    low: Vec<u64>,
    /// 1, y, y², … where y is the power of x that follows those.
    high: Vec<[u64; 4]>,
    /// 2^512.
    beyond: Scalar,
}

impl Powers {
    /// For polynomials of `t` coefficients.
    pub(crate) fn of(member: u16, t: usize) -> Powers {
        let x = u64::from(member) + 1;
        let low: Vec<u64> = std::iter::successors(Some(1u64), |power| power.checked_mul(x)).take(GROUP).collect();
        let y: Scalar = low.last().map_or(Scalar::ONE, |last| Scalar::from(*last) * Scalar::from(x));
        let high = std::iter::successors(Some(Scalar::ONE), |power| Some(power * y)).take(t.div_ceil(low.len()));
        let half = reduced(&[0, 0, 0, 0, 1, 0, 0, 0]);
        Powers { low, high: high.map(|power| limbs(power.as_bytes())).collect(), beyond: half * half }
    }

    /// The member's share.
    pub(crate) fn share(&self, polynomial: &Polynomial) -> Share {
        let mut coefficient = Zeroizing::new([0u64; 4]);
        // The products of groups and powers are below 2^573, and are far fewer than 2^67.
        let (mut group, mut sum) = (Zeroizing::new([0u64; 5]), Zeroizing::new([0u64; 10]));
        for (coefficients, high) in polynomial.0.chunks(self.low.len()).zip(&self.high) {
            *group = [0; 5];
            for (c, low) in coefficients.iter().zip(&self.low) {
                *coefficient = limbs(c.as_bytes());
                add_product(&mut group, &[*low], &coefficient);
            }
            add_product(&mut sum, &group, high);
        }
        let (low, high) = sum.split_first_chunk::<8>().expect("ten are more than eight");
        let high = u128::from(high[0]) | u128::from(high[1]) << 64;
        Share(reduced(low) + Scalar::from(high) * self.beyond)
    }
}

fn evaluate(coefficients: &[Scalar], x: Scalar) -> Scalar {
    coefficients.iter().rev().fold(Scalar::ZERO, |acc, c| acc * x + c)
}

/// Products of two field elements are below 2^506, so the sum of so many is below 2^512.
const UNREDUCED: usize = 32;

/// The sum of the products: as multiplying and adding in the field, but reduced once for many products, which is most of
/// the cost of each. What is done does not depend on the values.
fn inner_product<'a>(pairs: impl Iterator<Item = (&'a Scalar, &'a [u8; 32])>) -> Scalar {
    let (mut total, mut sum, mut open) = (Scalar::ZERO, Zeroizing::new([0u64; 8]), 0);
    for (a, b) in pairs {
        if open == UNREDUCED {
            (total, *sum, open) = (total + reduced(&sum), [0; 8], 0);
        }
        add_product(&mut sum, &Zeroizing::new(limbs(a.as_bytes())), &limbs(b));
        open += 1;
    }
    total + reduced(&sum)
}

fn limbs(bytes: &[u8; 32]) -> [u64; 4] {
    let (limbs, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|i| u64::from_le_bytes(limbs[i]))
}

/// `sum` += a · b, which does not overflow.
fn add_product<const N: usize, const A: usize, const B: usize>(sum: &mut [u64; N], a: &[u64; A], b: &[u64; B]) {
    for (i, a) in a.iter().enumerate() {
        let mut carry = 0;
        for (j, b) in b.iter().enumerate() {
            (sum[i + j], carry) = a.carrying_mul_add(*b, sum[i + j], carry);
        }
        for word in &mut sum[i + B..] {
            let (more, over) = word.overflowing_add(carry);
            (*word, carry) = (more, u64::from(over));
        }
    }
}

fn reduced(wide: &[u64; 8]) -> Scalar {
    let mut bytes = Zeroizing::new([0; 64]);
    let (chunks, _) = bytes.as_chunks_mut::<8>();
    chunks.iter_mut().zip(wide).for_each(|(chunk, limb)| *chunk = limb.to_le_bytes());
    Scalar::from_bytes_mod_order_wide(&bytes)
}

/// Lagrange coefficients at zero for the points of `members` (distinct), by one batched inversion.
pub(crate) fn lagrange_at_zero(members: &[u16]) -> Vec<Scalar> {
    let mut inverses: Vec<Scalar> = members
        .iter()
        .map(|i| {
            let others = members.iter().filter(|j| *j != i);
            let below = others.clone().filter(|j| *j < i).count();
            let size = product(others.map(|j| u64::from(i.abs_diff(*j))).chain([u64::from(*i) + 1]));
            if below % 2 == 0 { size } else { -size }
        })
        .collect();
    Scalar::invert_batch_alloc(&mut inverses);
    let all = product(members.iter().map(|m| u64::from(*m) + 1));
    inverses.iter().map(|inverse| inverse * all).collect()
}

/// The product of factors of at most 17 bits: as integers for as long as they fit, since the field's product costs more.
fn product(factors: impl Iterator<Item = u64>) -> Scalar {
    let (whole, rest) = factors.fold((Scalar::ONE, 1u128), |(whole, rest), factor| {
        let longer = rest * u128::from(factor);
        if longer >> 110 == 0 { (whole, longer) } else { (whole * Scalar::from(longer), 1) }
    });
    whole * Scalar::from(rest)
}

/// The secret behind the shares that belong to `coefficients`; each is canonical.
pub(crate) fn recover<'a>(coefficients: &'a [Scalar], shares: impl Iterator<Item = &'a [u8; 32]>) -> Scalar {
    inner_product(coefficients.iter().zip(shares))
}

/// Recovers the secret although one of the first t + 1 shares is wrong, where a commitment tells the right secret: one
/// spare share is enough, where decoding alone needs two. Names the sites whose shares are not of the same polynomial.
pub(crate) fn recover_committed(
    members: &[u16],
    shares: &[Scalar],
    t: usize,
    committed: impl Fn(&Scalar) -> bool,
) -> Option<(Scalar, Vec<u16>)> {
    if members.len() <= t || t == 0 {
        return None;
    }
    let pick = |places: &[usize]| {
        let at: Vec<u16> = places.iter().map(|i| members[*i]).collect();
        let of: Vec<Scalar> = places.iter().map(|i| shares[*i]).collect();
        recover(&lagrange_at_zero(&at), of.iter().map(Scalar::as_bytes))
    };
    (0..t).find_map(|out| {
        let mut places: Vec<usize> = (0..=t).filter(|i| *i != out).collect();
        let secret = pick(&places);
        committed(&secret).then(|| {
            let others: Vec<usize> = (0..members.len()).filter(|i| !places.contains(i)).collect();
            let mut is_wrong = |i: &usize| {
                places[t - 1] = *i;
                pick(&places) != secret
            };
            (secret, others.into_iter().filter(|i| is_wrong(i)).map(|i| members[i]).collect())
        })
    })
}

/// Recovers the secret although up to (m − t)/2 of the m shares are wrong, and names the wrong ones
/// (Berlekamp & Welch 1986).
///
/// Returns `None` where no polynomial of degree below `t` passes through enough of the shares.
pub(crate) fn recover_robust(members: &[u16], shares: &[Scalar], t: usize) -> Option<(Scalar, Vec<u16>)> {
    let m = members.len();
    let most = m.checked_sub(t).filter(|_| t > 0)? / 2;
    for errors in 0..=most {
        // Unknowns: Q of degree < t + errors, E monic of degree `errors`: Q(x) = y E(x) at every share.
        let width = t + 2 * errors;
        let row = |(i, y): (&u16, &Scalar)| {
            let powers = std::iter::successors(Some(Scalar::ONE), |power| Some(power * point(*i)));
            let powers: Vec<Scalar> = powers.take(t + errors).collect();
            let of_e = powers[..errors].iter().map(|power| -(y * power));
            let right = y * powers[errors];
            powers.iter().copied().chain(of_e).chain([right]).collect()
        };
        let mut rows: Vec<Vec<Scalar>> = members.iter().zip(shares).map(row).collect();
        let Some(solution) = solve(&mut rows, width) else { continue };
        let (q, e) = solution.split_at(t + errors);
        let Some(poly) = divide(q, &[e, &[Scalar::ONE]].concat()) else { continue };
        let wrong: Vec<u16> =
            members.iter().zip(shares).filter(|(i, y)| evaluate(&poly, point(**i)) != **y).map(|(i, _)| *i).collect();
        if wrong.len() <= most && poly.len() <= t {
            return Some((poly.first().copied().unwrap_or(Scalar::ZERO), wrong));
        }
    }
    None
}

/// One solution of the linear system whose last column is the right-hand side, or `None` where there is none.
fn solve(rows: &mut [Vec<Scalar>], width: usize) -> Option<Vec<Scalar>> {
    let mut pivots = Vec::with_capacity(width);
    let mut r = 0;
    for column in 0..width {
        let Some(found) = (r..rows.len()).find(|i| rows[*i][column] != Scalar::ZERO) else { continue };
        rows.swap(r, found);
        let inverse = rows[r][column].invert();
        rows[r].iter_mut().for_each(|v| *v *= inverse);
        let pivot = rows[r].clone();
        for (i, row) in rows.iter_mut().enumerate() {
            let factor = row[column];
            if i != r && factor != Scalar::ZERO {
                row.iter_mut().zip(&pivot).for_each(|(v, p)| *v -= factor * p);
            }
        }
        pivots.push(column);
        r += 1;
    }
    if rows[r..].iter().any(|row| row[width] != Scalar::ZERO) {
        return None;
    }
    let mut solution = vec![Scalar::ZERO; width];
    for (row, column) in rows.iter().zip(pivots) {
        solution[column] = row[width];
    }
    Some(solution)
}

/// q / e where e is monic, or `None` where a remainder is left. Coefficients from the lowest degree up.
fn divide(q: &[Scalar], e: &[Scalar]) -> Option<Vec<Scalar>> {
    let mut rest = q.to_vec();
    let degree = e.len() - 1;
    if rest.len() <= degree {
        return rest.iter().all(|v| *v == Scalar::ZERO).then(Vec::new);
    }
    let mut out = vec![Scalar::ZERO; rest.len() - degree];
    for k in (0..out.len()).rev() {
        let lead = rest[k + degree];
        out[k] = lead;
        for (j, c) in e.iter().enumerate() {
            rest[k + j] -= lead * c;
        }
    }
    rest.iter().all(|v| *v == Scalar::ZERO).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn wrong_shares_are_corrected_and_named(seed: u64, t in 1usize..7, spare in 0usize..7, wrong_seed: u64) {
            let mut rng = ChaCha20Rng::seed_from_u64(seed);
            let n = t + spare;
            let members: Vec<u16> = (0..n as u16).collect();
            let secret = random_scalar(&mut rng);
            let polynomial = Polynomial::through(&secret, t, &mut rng);
            let mut shares: Vec<Scalar> = members.iter().map(|m| Powers::of(*m, t).share(&polynomial).0).collect();
            let errors = spare / 2;
            let mut bad: Vec<u16> = (0..errors).map(|k| ((wrong_seed as usize + 5 * k) % n) as u16).collect();
            bad.sort_unstable();
            bad.dedup();
            for b in &bad {
                shares[usize::from(*b)] += random_scalar(&mut rng) + Scalar::ONE;
            }
            let (found, wrong) = recover_robust(&members, &shares, t).expect("within the decoding radius");
            prop_assert_eq!(found, secret);
            prop_assert_eq!(wrong, bad);
        }
    }

    /// What is fast against what is plain: Horner's rule for shares, and Lagrange's formula as it is written.
    #[test]
    fn sums_that_are_reduced_late_are_those_of_the_field() {
        let mut rng = ChaCha20Rng::seed_from_u64(4);
        let largest = Scalar::ZERO - Scalar::ONE;
        for t in [1, 2, 4, 6, 7, 8, 31, 32, 33, 64, 65, 200, 700] {
            let secret = random_scalar(&mut rng);
            let polynomial = Polynomial::through(&secret, t, &mut rng);
            let full = Polynomial(Zeroizing::new(vec![largest; t]));
            for (m, polynomial) in
                [0, 1, 7, 998, 1_624, u16::MAX].into_iter().flat_map(|m| [(m, &polynomial), (m, &full)])
            {
                assert!(Powers::of(m, t).share(polynomial).0 == evaluate(&polynomial.0, point(m)));
            }
            let all = vec![largest; t];
            let squares = inner_product(all.iter().zip(all.iter().map(Scalar::as_bytes)));
            assert_eq!(squares, Scalar::from(t as u64), "(−1)² t times");
        }
        for members in [&[4][..], &[0, 1, 2], &[9, 3, u16::MAX, 0, 998, 500, 501, 40, 41, 42, 43]] {
            let xs: Vec<Scalar> = members.iter().map(|m| point(*m)).collect();
            let plain = |i: usize| -> Scalar {
                let others = (0..xs.len()).filter(|j| *j != i);
                others.map(|j| xs[j] * (xs[j] - xs[i]).invert()).product()
            };
            assert_eq!(lagrange_at_zero(members), (0..xs.len()).map(plain).collect::<Vec<_>>());
        }
    }

    #[test]
    fn only_canonical_bytes_are_shares() {
        assert!(Share::from_bytes(&[0xff; 32]).is_none());
        // The group order itself is zero in disguise.
        let order = Scalar::ZERO - Scalar::ONE;
        let mut bytes = order.to_bytes();
        assert!(Share::from_bytes(&bytes).is_some());
        bytes[0] += 1;
        assert!(Share::from_bytes(&bytes).is_none());
        // The check of the bytes alone is the same, at the order and on both sides of it in every limb.
        for limb in 0..4 {
            for (by, upper) in [(-1i64, false), (0, false), (1, false), (-1, true), (1, true)] {
                let mut bytes = order.to_bytes();
                bytes[0] += 1;
                let at = 8 * limb..8 * limb + 8;
                let word = u64::from_le_bytes(bytes[at.clone()].try_into().unwrap()).wrapping_add_signed(by);
                bytes[at].copy_from_slice(&word.to_le_bytes());
                bytes[31] ^= u8::from(upper) << 7;
                assert_eq!(is_canonical(&bytes), Share::from_bytes(&bytes).is_some(), "{bytes:?}");
            }
        }
        assert!(is_canonical(&order.to_bytes()) && is_canonical(&[0; 32]) && !is_canonical(&[0xff; 32]));
    }
}
