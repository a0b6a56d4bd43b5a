//! Masks: an AES-256-CTR keystream is added to a vector in Z_2^64 (spec section 9; Bonawitz et al. 2017, section 4).

use aes::Aes256;
use ctr::{
    CtrCore,
    cipher::{
        BlockSizeUser, KeyIvInit, StreamCipherBackend, StreamCipherClosure, StreamCipherCore, StreamCipherSeekCore,
        array::{Array, typenum::Unsigned},
        consts::U16,
    },
    flavors::Ctr64LE,
};

use curve25519_dalek::scalar::Scalar;
use zeroize::Zeroizing;

use crate::{
    spread,
    suite::{Hash, Purpose, Secret},
};

/// Whether a mask is added or subtracted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sign {
    Plus,
    Minus,
}

impl Sign {
    pub(crate) fn reversed(self) -> Sign {
        match self {
            Sign::Plus => Sign::Minus,
            Sign::Minus => Sign::Plus,
        }
    }
}

/// What the self-mask keys of a round are derived for, from the seeds' canonical bytes ([MSK-1]).
pub(crate) fn self_masks(context: &Hash) -> Purpose {
    Purpose::new("self-mask", &[&context.0])
}

/// The self-mask key of a round from its shared seed; the aggregator derives the same after recovery ([MSK-1]).
pub(crate) fn self_mask_key(seed: &Scalar, context: &Hash) -> Secret {
    self_masks(context).derive(&*Zeroizing::new(seed.to_bytes()))
}

/// The sign with which site `me` applies the mask it shares with `other` ([MSK-3]): the lower number adds.
pub(crate) fn pair_sign(me: u16, other: u16) -> Sign {
    if me < other { Sign::Plus } else { Sign::Minus }
}

/// The keystream of one mask.
type Stream = CtrCore<Aes256, Ctr64LE>;

/// Bytes of keystream that are made before they are added: several of a processor's steps, the widest of which has 1,024, because
/// adding after every step lets the cipher wait.
const STEPS: usize = 2_048;

/// Adds (or subtracts) what comes next of a keystream to `words` ([MSK-3]). Where it stands afterwards depends on how many blocks the processor
/// makes at once, so whoever goes on says where. The buffer for steps serves many masks and is wiped once, because wiping takes longer than a
/// short mask itself.
fn add_stream(words: &mut [u64], stream: &mut Stream, sign: Sign, steps: &mut [u8; STEPS]) {
    stream.process_with_backend(Adding { words, sign, steps });
}

/// The keystream is added while it is in the nearest cache.
struct Adding<'a> {
    words: &'a mut [u64],
    sign: Sign,
    steps: &'a mut [u8; STEPS],
}

impl BlockSizeUser for Adding<'_> {
    type BlockSize = U16;
}

impl StreamCipherClosure for Adding<'_> {
    #[inline(always)]
    fn call<B: StreamCipherBackend<BlockSize = U16>>(self, backend: &mut B) {
        let (blocks, _) = Array::slice_as_chunks_mut(self.steps);
        let (steps, _) = Array::slice_as_chunks_mut(blocks);
        const { assert!(16 * B::ParBlocksSize::USIZE <= STEPS, "a step of every processor fits") };
        // In words, of which a block is two.
        let (step, all) = (2 * B::ParBlocksSize::USIZE, 2 * B::ParBlocksSize::USIZE * steps.len());
        for words in self.words.chunks_mut(all) {
            steps[..words.len().div_ceil(step)].iter_mut().for_each(|step| backend.gen_par_ks_blocks(step));
            // Of the last step, what is not needed is left.
            add(words, Array::slice_as_flattened(Array::slice_as_flattened(steps)), self.sign);
        }
    }
}

#[inline(always)]
fn add(words: &mut [u64], keystream: &[u8], sign: Sign) {
    let (masks, _) = keystream.as_chunks::<8>();
    let masks = masks.iter().map(|mask| u64::from_le_bytes(*mask));
    // The sign is looked at once, and not in the loop.
    match sign {
        Sign::Plus => words.iter_mut().zip(masks).for_each(|(word, mask)| *word = word.wrapping_add(mask)),
        Sign::Minus => words.iter_mut().zip(masks).for_each(|(word, mask)| *word = word.wrapping_sub(mask)),
    }
}

/// A key is used for one vector only, so the counter starts at zero.
fn stream(key: &Secret) -> Stream {
    Stream::new(key.bytes().into(), &[0u8; 16].into())
}

/// Words that stay in a core's cache while all masks are added to them.
const NEAR: usize = 1 << 14;
/// Whole blocks of the keystream.
const _: () = assert!(NEAR.is_multiple_of(2));

/// Applies many masks. It adds all of them to one part of a long vector before it goes to the next part, because memory
/// is slower than the cipher.
pub(crate) fn apply_all(words: &mut [u64], masks: &[(Secret, Sign)]) {
    spread::add_up(words, masks, |words, masks| {
        let mut steps = Zeroizing::new([0; STEPS]);
        if words.len() <= NEAR {
            return masks.iter().for_each(|(key, sign)| add_stream(words, &mut stream(key), *sign, &mut steps));
        }
        let mut streams: Vec<_> = masks.iter().map(|(key, sign)| (stream(key), *sign)).collect();
        for (block, part) in (0..).step_by(NEAR / 2).zip(words.chunks_mut(NEAR)) {
            for (stream, sign) in &mut streams {
                stream.set_block_pos(block);
                add_stream(part, stream, *sign, &mut steps);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(words: &mut [u64], key: &Secret, sign: Sign) {
        add_stream(words, &mut stream(key), sign, &mut [0; STEPS]);
    }

    /// [MSK-3]: step by step as the cipher's own stream, whatever is left of the last step and of the last block.
    #[test]
    fn msk_3_a_mask_is_the_ciphers_stream() {
        use ctr::cipher::StreamCipher;
        let key = Secret([9; 32]);
        for len in (0..300).chain([1_023, 1_024, 1_025, 5_000]) {
            let mut bytes = vec![0; 8 * len];
            ctr::Ctr64LE::<Aes256>::new(key.bytes().into(), &[0u8; 16].into()).apply_keystream(&mut bytes);
            let (masks, _) = bytes.as_chunks::<8>();
            let expected: Vec<u64> = masks.iter().map(|mask| u64::from_le_bytes(*mask).wrapping_add(7)).collect();
            let mut words = vec![7; len];
            apply(&mut words, &key, Sign::Plus);
            assert!(words == expected, "{len} words");
        }
    }

    /// Many masks in parts are the same as one after the other, around the length of a part and of several.
    #[test]
    fn all_at_once_as_one_by_one() {
        let keys = (0..5u8).map(|i| (Secret([i; 32]), if i % 2 == 0 { Sign::Plus } else { Sign::Minus }));
        let masks: Vec<(Secret, Sign)> = keys.collect();
        for len in [0, 1, NEAR - 1, NEAR, NEAR + 1, 3 * NEAR + 77] {
            let (mut together, mut alone): (Vec<u64>, Vec<u64>) = (0..len as u64).map(|i| (i, i)).unzip();
            apply_all(&mut together, &masks);
            masks.iter().for_each(|(key, sign)| apply(&mut alone, key, *sign));
            assert!(together == alone, "{len} words");
        }
    }
}
