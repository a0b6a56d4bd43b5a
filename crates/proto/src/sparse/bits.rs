//! Sets of members as bitmaps: n/8 bytes whoever is in them (spec section 17.2).

use serde::{Deserialize, Serialize};

/// A set of numbers below a size that both sides know; bit i mod 8 of byte i div 8 stands for i.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Bits(Vec<u8>);

impl Bits {
    pub(crate) fn none(size: usize) -> Bits {
        Bits(vec![0; size.div_ceil(8)])
    }

    pub(crate) fn of(size: usize, set: impl IntoIterator<Item = u16>) -> Bits {
        let mut bits = Bits::none(size);
        set.into_iter().for_each(|i| bits.set(i, true));
        bits
    }

    pub(crate) fn set(&mut self, i: u16, on: bool) {
        if let Some(byte) = self.0.get_mut(usize::from(i) / 8) {
            let mask = 1 << (i % 8);
            *byte = if on { *byte | mask } else { *byte & !mask };
        }
    }

    pub(crate) fn has(&self, i: u16) -> bool {
        self.0.get(usize::from(i) / 8).is_some_and(|byte| byte >> (i % 8) & 1 == 1)
    }

    pub(crate) fn count(&self) -> usize {
        self.0.iter().map(|b| b.count_ones() as usize).sum()
    }

    /// Whether it is the one way to write a set of numbers below `size`.
    pub(crate) fn fits(&self, size: usize) -> bool {
        self.0.len() == size.div_ceil(8)
            && (size.is_multiple_of(8) || self.0.last().is_none_or(|b| b >> (size % 8) == 0))
    }

    pub(crate) fn within(&self, other: &Bits) -> bool {
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(|(a, b)| a & !b == 0)
    }

    pub(crate) fn list(&self) -> impl Iterator<Item = u16> {
        (0..8 * self.0.len()).map(|i| i as u16).filter(|i| self.has(*i))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_set_and_its_bits(size in 1usize..200, numbers in proptest::collection::btree_set(0u16..200, 0..50)) {
            let set: Vec<u16> = numbers.into_iter().filter(|i| usize::from(*i) < size).collect();
            let bits = Bits::of(size, set.iter().copied());
            prop_assert!(bits.fits(size));
            prop_assert_eq!(bits.list().collect::<Vec<_>>(), set.clone());
            prop_assert_eq!(bits.count(), set.len());
            for less in &set {
                let mut smaller = bits.clone();
                smaller.set(*less, false);
                prop_assert!(smaller.within(&bits) && !bits.within(&smaller));
            }
        }
    }

    #[test]
    fn one_way_to_write_a_set() {
        assert!(Bits(vec![0xff, 0x01]).fits(9));
        assert!(!Bits(vec![0xff, 0x02]).fits(9), "a bit beyond the size");
        assert!(!Bits(vec![0xff, 0x01, 0]).fits(9) && !Bits(vec![0xff]).fits(9));
        assert!(!Bits(vec![0]).within(&Bits(vec![0, 0])));
    }
}
