//! Answers from rows in memory, by the same code as a site's own: whoever reads rows from somewhere needs no more.

use veilsum_cluster::{Batch, Domain, Error, Prepared, SumStep};

use crate::contract::{AskedBlock, Refusal, RefusalCode};

/// Kinds whose answers for parts of the rows make the answer for all of them, so that rows need not be held.
pub const ADDITIVE: [&str; 12] = [
    "fuzzy_sums",
    "fuzzy_validation",
    "local_means",
    "moments",
    "histogram",
    "margins",
    "validation",
    "silhouette",
    "shifts",
    "typical_sums",
    "shaped_sums",
    "shaped_shifts",
];

/// The words of rows for a question with these blocks.
///
/// # Errors
/// [`Refusal`].
pub fn words(batch: &Batch, rows: &Prepared, blocks: &[AskedBlock]) -> Result<Vec<i64>, Refusal> {
    veilsum_cluster::words(batch, rows, &steps_of(blocks)).map_err(|e| unanswered(&e))
}

fn steps_of(blocks: &[AskedBlock]) -> Vec<SumStep> {
    blocks.iter().map(|block| SumStep { len: block.len, fraction_bits: block.fraction_bits }).collect()
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
        _ => Refusal::new(
            RefusalCode::Rows,
            e,
            "check the rows against the plan's public box; if they fit, report a defect",
        ),
    }
}
