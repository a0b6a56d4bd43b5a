//! What tells the rows of one file from those of another, whatever their order.

use std::hash::{DefaultHasher, Hash, Hasher};

/// How many rows, and the sum of their hashes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Hash)]
pub(super) struct Print {
    pub rows: u64,
    pub sum: u64,
}

impl Print {
    pub(super) fn and(self, more: Print) -> Print {
        Print { rows: self.rows + more.rows, sum: self.sum.wrapping_add(more.sum) }
    }

    /// What came after `before`.
    pub(super) fn without(self, before: Print) -> Print {
        Print { rows: self.rows - before.rows, sum: self.sum.wrapping_sub(before.sum) }
    }

    /// Of rows of `columns` numbers each, with their labels where they have some.
    pub(super) fn of(values: &[f64], columns: usize, labels: Option<&[String]>) -> Print {
        values.chunks_exact(columns).enumerate().fold(Print::default(), |print, (i, row)| {
            let mut hasher = DefaultHasher::new();
            row.iter().for_each(|x| x.to_bits().hash(&mut hasher));
            labels.map(|labels| &labels[i]).hash(&mut hasher);
            print.and(Print { rows: 1, sum: hasher.finish() })
        })
    }
}
