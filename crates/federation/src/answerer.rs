//! Where a site's answers come from: rows in memory, rows that are read anew for every question, or another process that has the
//! rows.

use std::collections::HashSet;

use veilsum_cluster::{AnswerError, Batch, Domain, Prepared, Rows, SumStep, random::Stream, words};
pub use veilsum_proto::suite::Hash;
use veilsum_proto::suite::{self, LongHash};

/// What a site has instead of its rows when it answers: somebody who knows them.
///
/// It holds neither keys nor policy nor ledger; whoever asks it checks what it says.
pub trait Answerer: Send + Sync {
    /// The plan's public box.
    fn domain(&self) -> &Domain;

    /// Number of rows, n.
    fn rows(&self) -> u64;

    /// Digest of the rows that answers are made of, in working units. It is for their owner alone, because a party that guesses
    /// the rows could test the guess against it.
    fn digest(&self) -> Hash;

    /// One label a row, where the plan wants them compared.
    fn labels(&self) -> Option<&[u32]> {
        None
    }

    /// The number of different rows that the values could form, where it is small ([`PossibleRows`]). `widths` are how many
    /// neighbouring coordinates tell one column ([`PlanSpec::widths`](crate::plan::PlanSpec::widths)).
    fn possible_rows(&self, widths: &[usize]) -> Option<u64>;

    /// The words of an answer: for every entry of the batch's layout the rows' contributions in whole steps ([SUM-1]). `steps` are
    /// those of the layout's blocks.
    ///
    /// # Errors
    /// [`AnswererError`].
    fn words(&self, batch: &Batch, steps: &[SumStep], noise: Option<&mut Stream>) -> Result<Vec<i64>, AnswererError>;
}

/// Why there are no words.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AnswererError {
    /// The clustering side refuses.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// The place where the rows are failed, or holds other rows than before.
    #[error("{what}")]
    Source {
        /// What happened, and whose fault it is.
        what: String,
        /// What to do next.
        next: String,
    },
}

impl Answerer for Prepared {
    fn domain(&self) -> &Domain {
        self.domain()
    }

    fn rows(&self) -> u64 {
        self.len() as u64
    }

    fn digest(&self) -> Hash {
        let mut digest = RowsDigest::new(self.rows(), self.domain());
        self.packed().parts().for_each(|part| digest.add(&part));
        digest.finish()
    }

    fn labels(&self) -> Option<&[u32]> {
        self.labels()
    }

    fn possible_rows(&self, widths: &[usize]) -> Option<u64> {
        let mut seen = PossibleRows::new(widths);
        self.packed().parts().all(|part| part.iter().all(|row| seen.see(row)));
        seen.count()
    }

    fn words(&self, batch: &Batch, steps: &[SumStep], noise: Option<&mut Stream>) -> Result<Vec<i64>, AnswererError> {
        Ok(words(batch, self, steps, noise)?)
    }
}

/// The digest of rows in working units ([`Answerer::digest`]), a stretch of them after the other.
pub struct RowsDigest {
    digest: LongHash,
    bytes: Vec<u8>,
}

impl RowsDigest {
    /// Of so many rows of this box.
    pub fn new(rows: u64, domain: &Domain) -> Self {
        let bytes = rows * 8 * domain.columns() as u64;
        Self { digest: LongHash::new("rows behind blur", bytes), bytes: Vec::new() }
    }

    /// The next rows, working units.
    pub fn add(&mut self, rows: &Rows) {
        self.bytes.clear();
        self.bytes.extend(rows.as_slice().iter().flat_map(|x| x.to_le_bytes()));
        self.digest.add(&self.bytes);
    }

    /// After the last row.
    pub fn finish(self) -> Hash {
        self.digest.finish()
    }
}

/// Digest of what is known of rows that another process has.
pub fn digest_of(parts: &[&[u8]]) -> Hash {
    suite::hash("rows elsewhere", parts)
}

/// Above this number of different rows we know no attack that counts them from totals. Lattices and least squares do so
/// at 49 to 73 possible rows, and their cost grows with the number.
pub const COUNTABLE: u64 = 1_024;

/// Counts the different rows that the values of a site's columns could form, as long as there are few. The totals of a few rounds
/// then tell how often each row occurs, however many rows there are. An operator who knows the number sets `release.domain`.
pub struct PossibleRows {
    /// By column its coordinates and the values seen.
    columns: Vec<(std::ops::Range<usize>, HashSet<Vec<u64>>)>,
    countable: bool,
}

impl PossibleRows {
    /// Nothing seen yet. The indicators of a category are not independent: `widths` are how many neighbouring coordinates tell one
    /// column.
    pub fn new(widths: &[usize]) -> Self {
        let mut from = 0;
        let mut place = |width: &usize| {
            from += width;
            from - width..from
        };
        Self { columns: widths.iter().map(|width| (place(width), HashSet::new())).collect(), countable: true }
    }

    /// The number for these rows.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a [f64]>, widths: &[usize]) -> Option<u64> {
        let mut seen = Self::new(widths);
        rows.into_iter().all(|row| seen.see(row));
        seen.count()
    }

    /// Looks at a row; false where there are too many to count and no other row needs to be looked at.
    pub fn see(&mut self, row: &[f64]) -> bool {
        if self.countable {
            for (place, values) in &mut self.columns {
                values.insert(row[place.clone()].iter().map(|x| x.to_bits()).collect());
            }
            self.countable = self.product() <= COUNTABLE;
        }
        self.countable
    }

    /// The number, where it is small; `None` otherwise.
    pub fn count(&self) -> Option<u64> {
        self.countable.then(|| self.product())
    }

    fn product(&self) -> u64 {
        self.columns.iter().fold(1, |product, (_, values)| product.saturating_mul(values.len().max(1) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn possible(values: &[f64], widths: &[usize]) -> Option<u64> {
        PossibleRows::of(values.chunks_exact(widths.iter().sum()), widths)
    }

    #[test]
    fn possible_rows_are_those_that_the_values_can_be_combined_to() {
        let scale: Vec<f64> = (0..7).flat_map(|i| [f64::from(i), f64::from(6 - i)]).collect();
        assert_eq!(possible(&scale, &[1, 1]), Some(49));
        assert_eq!(possible(&scale, &[2]), Some(7));
        assert_eq!(possible(&[1.0; 3], &[1]), Some(1));
        assert_eq!(possible(&[], &[1]), Some(1));
        let many = |n: u32| (0..n).map(f64::from).collect::<Vec<f64>>();
        assert_eq!(possible(&many(1_024), &[1]), Some(1_024));
        assert_eq!(possible(&many(1_025), &[1]), None);
    }
}
