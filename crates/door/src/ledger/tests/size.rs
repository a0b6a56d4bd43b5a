//! What a ledger costs: bytes a question.

use super::*;

/// A round of fuzzy c-means with K centres in d columns.
fn fuzzy(clusters: u64, d: u64) -> Answer {
    let cost = Cost { scalars: clusters * (d + 1), nano_rho: None };
    Answer { question: question_digest(b"fuzzy_sums"), cost, ..answer(0) }
}

/// Bytes of the lines of one question in which nobody is missing: charge, masked words, then shares.
fn bytes_of_a_question(clusters: u64, d: u64) -> usize {
    let site = Site::new("size");
    let mut ledger = site.open().unwrap();
    let length = || fs::metadata(site.file()).unwrap().len() as usize;
    let (asked, before) = (place(0, 9), length());
    charge(&mut ledger, asked, fuzzy(clusters, d));
    for (frame, what) in [
        (vec![0; 8 * (clusters * (d + 1)) as usize + 200], Disclosure::MaskedWords),
        (vec![1; 300], Disclosure::SelfMaskShares),
    ] {
        ledger.record(&frame, what, Some(asked)).unwrap();
    }
    ledger.sync().unwrap();
    length() - before
}

/// Prints what the book says of a ledger's size.
#[test]
fn a_question_takes_few_bytes() {
    for (clusters, d) in [(3, 2), (10, 16)] {
        let bytes = bytes_of_a_question(clusters, d);
        println!("K = {clusters}, d = {d}: {bytes} bytes a question");
        assert!(bytes < 2_600, "{bytes}");
    }
}
