//! Where a site's answers come from: rows in memory, or rows in Spark.

use serde::{Deserialize, Serialize};
use veilsum_cluster::{AskedOfRows, Batch, SumStep, asked_of_rows};
/// What a site's rows are once they are read, and once they are ready to answer.
pub use veilsum_cluster::{Domain, Error as ClusterError, Prepared, Rows, Scaling};
pub use veilsum_door::guard::Source;
pub use veilsum_proto::suite::Hash;
use veilsum_proto::{
    Error,
    suite::{self, LongHash},
};

use crate::error::Failure;

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

    /// The words of an answer: for every entry of the batch's layout the rows' contributions in whole numbers ([SUM-1], [NOI-6]).
    ///
    /// # Errors
    /// What is wrong with the question or the rows, or fails in the place where they are.
    fn words(&self, batch: &Batch, steps: &Steps) -> Result<Vec<i64>, Failure>;

    /// Gives to `take`, once, where the sum of an answer with noise comes from, of which every entry has a factor ([NOI-3]).
    ///
    /// # Errors
    /// As [`Answerer::words`], and those of `take`.
    fn sum(&self, batch: &Batch, factors: &[f64], take: &mut Take<'_>) -> Result<(), Failure>;
}

/// Takes where a sum comes from.
pub type Take<'t> = dyn FnMut(Source<'_>) -> Result<(), Error> + 't;

/// How the entries of an answer are whole numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Steps {
    /// Every row's contribution is rounded to the step of its entry ([SUM-1]): of every block length and step.
    Exact(Vec<SumStep>),
    /// Every row's vector is bounded ([NOI-3]): a factor for each entry.
    Guarded(Vec<f64>),
}

/// The words of an answer from rows in memory.
///
/// # Errors
/// As [`veilsum_cluster::words`] and [`asked_of_rows`].
pub fn words(batch: &Batch, rows: &Prepared, steps: &Steps) -> Result<Vec<i64>, ClusterError> {
    match steps {
        Steps::Exact(steps) => veilsum_cluster::words(batch, rows, steps),
        Steps::Guarded(factors) => asked(batch, rows, |source| source.sum(factors).map_err(|_| ClusterError::Steps))?,
    }
}

/// Gives to `take` where the sum under noise of these rows comes from.
fn asked<T>(batch: &Batch, rows: &Prepared, take: impl FnOnce(Source<'_>) -> T) -> Result<T, ClusterError> {
    asked_of_rows(batch, rows, |asked| {
        take(match asked {
            AskedOfRows::Each(rows, change, questions) => Source::Table(rows, change, questions),
            AskedOfRows::Missing(counts) => Source::Counts(counts),
        })
    })
}

/// Rows that do not answer a question.
pub fn misfit(e: impl std::fmt::Display) -> Failure {
    Failure::input(e, "check the data against the plan's public box; if they fit, report a defect")
}

impl Answerer for Prepared {
    fn domain(&self) -> &Domain {
        self.domain()
    }

    fn rows(&self) -> u64 {
        self.len() as u64
    }

    fn digest(&self) -> Hash {
        let width = self.domain().columns().max(1);
        let row = |row: &[f64]| {
            let bytes: Vec<u8> = row.iter().flat_map(|x| x.to_le_bytes()).collect();
            suite::hash("row of a site", &[&bytes])
        };
        let parts = self.packed().parts();
        let mut rows: Vec<Hash> =
            parts.flat_map(|part| part.as_slice().chunks(width).map(row).collect::<Vec<_>>()).collect();
        rows.sort_unstable();
        let mut digest = LongHash::new("rows of a site", 32 * rows.len() as u64);
        rows.iter().for_each(|row| digest.add(&row.0));
        digest.finish()
    }

    fn words(&self, batch: &Batch, steps: &Steps) -> Result<Vec<i64>, Failure> {
        words(batch, self, steps).map_err(misfit)
    }

    fn sum(&self, batch: &Batch, _: &[f64], take: &mut Take<'_>) -> Result<(), Failure> {
        Ok(asked(batch, self, take).map_err(misfit)??)
    }
}
