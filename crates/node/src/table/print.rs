//! A fingerprint of rows, whatever their order.

use twox_hash::XxHash3_128;

/// How many rows, and the sum of their hashes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Hash)]
pub(super) struct Print {
    pub rows: u64,
    pub sum: u128,
}

impl Print {
    pub(super) fn and(self, more: Print) -> Print {
        Print { rows: self.rows + more.rows, sum: self.sum.wrapping_add(more.sum) }
    }

    /// What came after `before`.
    pub(super) fn without(self, before: Print) -> Print {
        Print { rows: self.rows - before.rows, sum: self.sum.wrapping_sub(before.sum) }
    }

    /// Of so many rows of `columns` numbers each, with their labels where they have some.
    pub(super) fn of(seed: u64, values: &[f64], columns: usize, labels: Option<&[String]>) -> Print {
        let (mut print, mut bytes) = (Print::default(), vec![0; 8 * columns]);
        for (i, row) in values.chunks_exact(columns).enumerate() {
            bytes.truncate(8 * columns);
            bytes.chunks_exact_mut(8).zip(row).for_each(|(slot, x)| slot.copy_from_slice(&x.to_le_bytes()));
            if let Some(labels) = labels {
                bytes.extend_from_slice(labels[i].as_bytes());
            }
            print = print.and(Print { rows: 1, sum: XxHash3_128::oneshot_with_seed(seed, &bytes) });
        }
        print
    }
}
