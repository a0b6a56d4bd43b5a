//! Answers from rows in memory, by the same code as a site's own: whoever reads rows from somewhere needs no more.

use veilsum_cluster::{Batch, Domain, Error, Prepared, SumStep};

use crate::contract::{AskedBlock, KINDS, Refusal, RefusalCode};

/// Kinds whose answers for parts of the rows make the answer for all of them, so that rows need not be held.
pub fn additive() -> impl Iterator<Item = &'static str> {
    const WHOLE: [&str; 4] = ["local_fuzzy", "local_means_steps", "features", "local_choice"];
    KINDS.into_iter().filter(|kind| !WHOLE.contains(kind))
}

/// The words of rows for a question with these blocks.
///
/// # Errors
/// [`Refusal`].
pub fn words(batch: &Batch, rows: &Prepared, blocks: &[AskedBlock]) -> Result<Vec<i64>, Refusal> {
    let step = |block: &AskedBlock| SumStep { len: block.len, fraction_bits: block.fraction_bits };
    veilsum_cluster::words(batch, rows, &blocks.iter().map(step).collect::<Vec<_>>()).map_err(|e| unanswered(&e))
}

/// Adds the words of other rows of the same site.
///
/// # Errors
/// [`Refusal`].
pub fn merge(batch: &Batch, domain: &Domain, words: &mut [i64], more: &[i64]) -> Result<(), Refusal> {
    batch.merge(domain, words, more).map_err(|e| unanswered(&e))
}

fn unanswered(e: &Error) -> Refusal {
    match e {
        Error::Fuzzifier
        | Error::ColumnMismatch { .. }
        | Error::Transform
        | Error::Batch { .. }
        | Error::Question { .. } => Refusal::new(RefusalCode::Protocol, e, "ask a question that fits the box"),
        _ => {
            let next = "check the rows against the plan's public box; if they fit, report a defect";
            Refusal::new(RefusalCode::Rows, e, next)
        }
    }
}
