//! Reports what the adversary found, in sentences.

use std::{collections::BTreeMap, io};

use serde::Serialize;

use super::{Assumed, Found, Part, Sum};

/// Groups that are named one by one; the table goes on in the JSON form.
const LISTED: usize = 30;

/// What files let the adversary find.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The finding.
    #[serde(flatten)]
    pub found: Found,
    /// Totals that were looked at, and of how many the values are known.
    pub totals: [usize; 2],
    /// Answers that could not be rebuilt, by kind.
    pub left_out: BTreeMap<String, usize>,
    /// Sites of the smallest block that is assumed.
    pub least: usize,
}

impl Report {
    /// With what was assumed.
    pub fn new(found: Found, told: &[super::Told], left_out: BTreeMap<String, usize>, assumed: &Assumed) -> Report {
        let known = told.iter().filter(|t| t.values.is_some()).count();
        Report { found, totals: [told.len(), known], left_out, least: assumed.least }
    }

    /// For a terminal.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn print(&self, out: &mut impl io::Write) -> io::Result<()> {
        let Found { numbers, rank, atoms, parts, cut } = &self.found;
        writeln!(
            out,
            "{} totals over {} groups of sites that are always together; {numbers} numbers, {rank} independent ones above rounding.",
            self.totals[0],
            atoms.len()
        )?;
        if self.totals[1] < self.totals[0] {
            writeln!(
                out,
                "The values of {} totals are not known here: errors are predicted from the questions alone, without estimates.",
                self.totals[0] - self.totals[1]
            )?;
        }
        for (kind, count) in &self.left_out {
            writeln!(
                out,
                "{count} answers to {kind} could not be rebuilt from a ledger and its plan: what they add is missing below. A view \
                 that was recorded has them."
            )?;
        }
        for part in parts.iter().take(LISTED) {
            writeln!(out, "{}", sentence(part))?;
        }
        if parts.len() > LISTED {
            writeln!(out, "{} more groups are less exposed than these; --json names all.", parts.len() - LISTED)?;
        }
        if *cut {
            writeln!(out, "There are more groups of this size than are looked at; all smaller ones were.")?;
        }
        let flagged = self.found.flagged().count();
        if flagged == 0 {
            writeln!(
                out,
                "\nNo group is determined better than half of what a sum of {} sites hides. The adversary is linear: this is a \
                 check, not a proof.",
                self.least
            )
        } else {
            writeln!(
                out,
                "\nEXPOSED: {flagged} groups. Do not answer over further cohorts that tell these sites from others."
            )
        }
    }
}

fn sentence(part: &Part) -> String {
    let who = part.sites.join(" and ");
    let known = |sum: &Sum| {
        let mut text = format!("to {} of it", percent(sum.predicted));
        if let Some(estimate) = sum.estimate {
            text += &format!(" (estimate {}", crate::finding::short(estimate));
            if let Some(truth) = sum.truth {
                text += &format!(", true {}", crate::finding::short(truth));
            }
            text.push(')');
        }
        text
    };
    let columns: Vec<String> =
        part.columns.iter().enumerate().map(|(j, c)| format!("column {} {}", j + 1, known(c))).collect();
    format!(
        "{}{who}{}: the row count is known {}; sums of {}. Who knows only a block's sum is off by {}.",
        if part.flagged { "EXPOSED " } else { "" },
        if part.apart { "" } else { ", which no cohort tells from others" },
        known(&part.rows),
        columns.join(", "),
        percent(part.floor)
    )
}

fn percent(part: f64) -> String {
    format!("{} %", crate::finding::short(100.0 * part))
}
