//! The table: every attack with its control, its bound and a verdict.

use anyhow::Result;
use serde::Serialize;

use crate::{
    count_from_memberships,
    one_round_records::{self, Budget},
    view::{self, Recording},
};

/// So many out of so many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Rate {
    /// Successes.
    pub hit: u64,
    /// Tries.
    pub of: u64,
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let percent = 100.0 * self.hit as f64 / self.of.max(1) as f64;
        write!(f, "{percent:.0} % ({}/{})", self.hit, self.of)
    }
}

/// What one attack found.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// Its name.
    pub attack: &'static str,
    /// What the adversary must have.
    pub needs: &'static str,
    /// What is counted.
    pub unit: &'static str,
    /// The control: the same attack where nothing protects.
    pub unprotected: Rate,
    /// On what was really received.
    pub protected: Rate,
    /// Successes that the protected run may have: those of blind guessing.
    pub bound: u64,
    /// Another sign that the protection failed.
    pub also_broken: Option<String>,
    /// What a reader should know beside the numbers.
    pub details: Vec<String>,
    /// Time the attack took.
    pub seconds: f64,
}

/// What a finding says about the product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The control succeeded and the protected run stayed under its bound.
    Holds,
    /// The control did not succeed completely: nothing is shown.
    ControlFailed,
    /// The attack works on what was really received.
    Broken,
}

impl Finding {
    /// The verdict; a break outranks a failed control.
    pub fn verdict(&self) -> Verdict {
        if self.protected.hit > self.bound || self.also_broken.is_some() {
            Verdict::Broken
        } else if self.unprotected.of == 0 || self.unprotected.hit < self.unprotected.of || self.protected.of == 0 {
            Verdict::ControlFailed
        } else {
            Verdict::Holds
        }
    }
}

/// The smallest count that blind guessing with so many expected hits exceeds less than once in 1,000 audits.
pub fn beyond_chance(expected: f64) -> u64 {
    let mut term = (-expected).exp();
    let (mut below, mut count) = (term, 0u32);
    while 1.0 - below > 1e-3 && count < 1_000_000 {
        count += 1;
        term *= expected / f64::from(count);
        below += term;
    }
    u64::from(count)
}

/// An attack of the table.
pub struct Attack {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it shows, in one line.
    pub shows: &'static str,
    run: fn(&Recording, u64, bool) -> Result<Finding>,
}

/// All attacks.
pub const ATTACKS: &[Attack] = &[
    Attack {
        name: one_round_records::NAME,
        shows: "least squares turns one round of one small site's sums into its records",
        run: |recording, seed, quick| {
            one_round_records::run(recording, seed, if quick { Budget::QUICK } else { Budget::FULL })
        },
    },
    Attack {
        name: count_from_memberships::NAME,
        shows: "the memberships of a site's rows add up to the number of its rows",
        run: |recording, _, _| count_from_memberships::run(recording),
    },
];

/// The whole audit.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// From which the scene and the attacks are drawn. Keys and masks are fresh in every run.
    pub seed: u64,
    /// Whether the short form was run.
    pub quick: bool,
    /// Sites of the recorded run.
    pub sites: usize,
    /// Rounds of the recorded run at the coordinator.
    pub rounds: usize,
    /// Time the recorded run took, with keys and connections.
    pub recording_seconds: f64,
    /// One for every attack.
    pub findings: Vec<Finding>,
    /// Whether every control succeeded and every protected run stayed under its bound.
    pub passed: bool,
}

/// Records one run and lets every attack at it whose name is `only`, or all.
///
/// # Errors
/// Where the run cannot be recorded, or an attack cannot be run.
pub fn audit(seed: u64, quick: bool, only: Option<&str>) -> Result<Report> {
    let began = std::time::Instant::now();
    let recording = view::record(seed, if quick { 1 } else { 6 })?;
    let recording_seconds = began.elapsed().as_secs_f64();
    let chosen = ATTACKS.iter().filter(|a| only.is_none_or(|name| a.name == name));
    let findings: Vec<Finding> = chosen.map(|a| (a.run)(&recording, seed, quick)).collect::<Result<_>>()?;
    let passed = !findings.is_empty() && findings.iter().all(|f| f.verdict() == Verdict::Holds);
    let (sites, rounds) = (recording.truth.len(), recording.rounds.len());
    Ok(Report { seed, quick, sites, rounds, recording_seconds, findings, passed })
}

impl Report {
    /// The table, for people.
    pub fn print(&self, out: &mut impl std::io::Write) -> std::io::Result<()> {
        writeln!(
            out,
            "A real run on loopback QUIC was recorded: {} sites, {} rounds, {:.1} s (seed {}).\n",
            self.sites, self.rounds, self.recording_seconds, self.seed
        )?;
        let header = ["attack", "needs", "unprotected", "protected", "bound", "verdict"].map(String::from);
        let rows: Vec<[String; 6]> = self
            .findings
            .iter()
            .map(|f| {
                [
                    f.attack.to_owned(),
                    f.needs.to_owned(),
                    f.unprotected.to_string(),
                    f.protected.to_string(),
                    format!("{} {}", f.bound, f.unit),
                    match f.verdict() {
                        Verdict::Holds => "holds".to_owned(),
                        Verdict::ControlFailed => "CONTROL FAILED".to_owned(),
                        Verdict::Broken => "BROKEN".to_owned(),
                    },
                ]
            })
            .collect();
        let widths: [usize; 6] = std::array::from_fn(|i| {
            std::iter::once(&header).chain(&rows).map(|r| r[i].chars().count()).max().unwrap_or(0)
        });
        for row in std::iter::once(&header).chain(&rows) {
            let cells: Vec<String> = row.iter().zip(widths).map(|(c, w)| format!("{c:<w$}")).collect();
            writeln!(out, "{}", cells.join("  ").trim_end())?;
        }
        for f in &self.findings {
            writeln!(out, "\n{} ({:.2} s)", f.attack, f.seconds)?;
            for line in f.also_broken.iter().chain(&f.details) {
                writeln!(out, "  {line}")?;
            }
        }
        let word = if self.passed { "Passed" } else { "FAILED" };
        writeln!(out, "\n{word}: a failed attack is evidence about these attacks, not a proof against all.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(unprotected: Rate, protected: Rate, bound: u64) -> Finding {
        let (details, also_broken) = (vec!["a line".to_owned()], None);
        let (attack, needs, unit, seconds) = ("a", "b", "c", 0.0);
        Finding { attack, needs, unit, unprotected, protected, bound, also_broken, details, seconds }
    }

    #[test]
    fn an_audit_without_a_working_control_does_not_pass() {
        let rate = |hit, of| Rate { hit, of };
        assert_eq!(finding(rate(5, 5), rate(0, 5), 0).verdict(), Verdict::Holds);
        assert_eq!(finding(rate(4, 5), rate(0, 5), 0).verdict(), Verdict::ControlFailed);
        assert_eq!(finding(rate(0, 0), rate(0, 5), 0).verdict(), Verdict::ControlFailed);
        assert_eq!(finding(rate(5, 5), rate(0, 0), 0).verdict(), Verdict::ControlFailed);
        assert_eq!(finding(rate(5, 5), rate(1, 5), 0).verdict(), Verdict::Broken);
        let sign = Finding { also_broken: Some("a sign".into()), ..finding(rate(5, 5), rate(0, 5), 0) };
        assert_eq!(sign.verdict(), Verdict::Broken);
    }

    #[test]
    fn chance_is_what_blind_guessing_gives() {
        assert_eq!(beyond_chance(0.0), 0);
        assert_eq!(beyond_chance(5e-4), 0);
        assert_eq!(beyond_chance(0.01), 1);
        assert_eq!(beyond_chance(1.0), 5);
    }
}
