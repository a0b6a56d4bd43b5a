//! The sum of all memberships is the number of rows (FedFuzzDB; Stallmann & Wilbik 2022, Eqs. 15-17).
//!
//! Their scheme hides every N_l behind an intermediary and then sends `A_i = sum_j u_ij` to the coordinator. A row's
//! memberships add up to one, so `sum_i A_i = N_l`, and the detour hides nothing unless the A_i are masked as well.

use std::time::Instant;

use anyhow::{Context, Result};
use veilsum_cluster::Query;

use crate::{
    finding::{Finding, Measure, Rate},
    view::{Recording, read_as_plain},
};

/// Name on the command line.
pub const NAME: &str = "count-from-memberships";
/// A sum this close to a whole number is taken for a count.
const CLOSE: f64 = 1e-6;

/// The row count behind a sum of memberships, where it can be one.
pub fn attack(memberships: &[f64], max_rows: u64) -> Option<u64> {
    let sum: f64 = memberships.iter().sum();
    let whole = sum.round();
    (whole >= 1.0 && whole <= max_rows as f64 && (sum - whole).abs() < CLOSE).then_some(whole as u64)
}

/// Runs the attack at the coordinator (validation sums) and at the intermediary (row counts).
///
/// # Errors
/// Where the recording holds no validation round.
pub fn run(recording: &Recording) -> Result<Finding> {
    let began = Instant::now();
    let seen = recording
        .rounds
        .iter()
        .find(|r| matches!(r.query.queries[..], [Query::FuzzyValidation { .. }]))
        .context("the recorded run asked for no validation sums")?;
    let before: usize =
        seen.layout.blocks.iter().take_while(|b| b.block.name != "memberships").map(|b| b.block.len).sum();
    let scaled =
        seen.layout.blocks.iter().find(|b| b.block.name == "memberships").context("no memberships are sent")?;
    let part = before..before + scaled.block.len;

    let (mut plain, mut masked, mut claims) = (Rate::default(), Rate::default(), 0u64);
    let mut chance = 0.0;
    for (site, rows) in recording.truth.iter().enumerate() {
        let n = rows.len() as u64;
        let tally = |rate: &mut Rate, guess: Option<u64>| rate.add(guess == Some(n));
        tally(&mut plain, attack(&seen.plain[site].values[part.clone()], recording.max_rows));
        let words = read_as_plain(&seen.layout, seen.received.get(&(site as u16)).context("a site sent nothing")?);
        let guess = attack(&words[part.clone()], recording.max_rows);
        tally(&mut masked, guess);
        let count = |words: &[u64]| attack(&read_as_plain(&recording.count_layout, words), recording.max_rows);
        tally(&mut plain, count(&recording.plain_counts[site..=site]));
        let at_intermediary = count(&recording.counts[site..=site]);
        tally(&mut masked, at_intermediary);
        claims += u64::from(guess.is_some()) + u64::from(at_intermediary.is_some());
        // A masked word is uniform over 2^(64 - f), its sum no narrower; a hit is an interval of 2 CLOSE.
        chance += 2.0 * CLOSE / 2f64.powi(64 - scaled.scale.fraction_bits);
        chance += 2.0 * CLOSE / 2f64.powi(64 - recording.count_layout.blocks[0].scale.fraction_bits);
    }
    Ok(Finding {
        attack: NAME,
        needs: "one site's validation sums, or its count at the intermediary",
        control: "the same sums and counts as the papers send them: to the coordinator, and through an intermediary",
        protection: "masks on the sums and on the count",
        measures: vec![Measure::rates("row counts N_l", plain, masked, chance)],
        also_broken: None,
        details: vec![
            format!("masked: {claims} of {} sums and counts even look like a number of rows", masked.of),
            format!(
                "what the coordinator does learn, by design: the cohort's total of {} rows (the total of the memberships \
                 says the same)",
                recording.n_total.context("the run ended without a total row count")?
            ),
        ],
        not_shown: "what sizes, times or other documents say about the number of rows",
        seconds: began.elapsed().as_secs_f64(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_numbers_within_the_plan_are_counts() {
        assert_eq!(attack(&[1.25, 0.75, 3.0], 64), Some(5));
        assert_eq!(attack(&[1.25, 0.75, 3.1], 64), None);
        assert_eq!(attack(&[-3.0, 1.0], 64), None);
        assert_eq!(attack(&[65.0], 64), None);
    }
}
