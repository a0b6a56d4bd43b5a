//! The table of attacks, each with its control, its bound and a verdict.

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::{
    canary, collusion, differencing, dropout_lie,
    finding::{Attack, Context, Finding, Verdict},
    inconsistency, pinhole, poison, swapped_roster, sweep_records,
};

/// All attacks.
pub const ATTACKS: &[Attack] = &[
    sweep_records::ATTACK,
    differencing::ATTACK,
    collusion::ATTACK,
    inconsistency::ATTACK,
    dropout_lie::ATTACK,
    swapped_roster::ATTACK,
    pinhole::ATTACK,
    poison::ATTACK,
    canary::ATTACK,
];

/// The whole audit.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// From which the scenes and the attacks are drawn. Keys and masks are fresh in every run.
    pub seed: u64,
    /// Whether the short form was run.
    pub quick: bool,
    /// One for every attack.
    pub findings: Vec<Finding>,
    /// Whether every control succeeded and every protected run stayed under its bound.
    pub passed: bool,
    /// Time it took.
    pub seconds: f64,
}

/// Runs the attack named `only`, or all attacks, on recorded runs; `told` hears of each before it begins and when it is over.
///
/// # Errors
/// Where a run cannot be recorded, or an attack cannot be run.
pub fn audit(seed: u64, quick: bool, only: Option<&str>, told: impl Fn(String)) -> Result<Report> {
    let began = std::time::Instant::now();
    let context = Context::new(seed, quick);
    let chosen: Vec<&Attack> = ATTACKS.iter().filter(|a| only.is_none_or(|name| a.name == name)).collect();
    let mut findings = Vec::new();
    for (i, attack) in chosen.iter().enumerate() {
        let tell = |what: &str| {
            let (at, of, seconds) = (i + 1, chosen.len(), began.elapsed().as_secs());
            told(format!("[{at:>2}/{of}] {seconds:>4} s  {}: {what}", attack.name));
        };
        tell(attack.shows);
        let own = std::time::Instant::now();
        let found = (attack.run)(&context).with_context(|| attack.name)?;
        tell(found.verdict().word());
        findings.push(Finding { attack, found, seconds: own.elapsed().as_secs_f64() });
    }
    let passed = !findings.is_empty() && findings.iter().all(|f| f.found.verdict() == Verdict::Holds);
    Ok(Report { seed, quick, findings, passed, seconds: began.elapsed().as_secs_f64() })
}

impl Report {
    /// The table, for people.
    pub fn print(&self, out: &mut impl std::io::Write) -> std::io::Result<()> {
        let header = ["attack", "what", "control", "must be", "protected", "must be", "verdict"].map(String::from);
        let mut rows = vec![header];
        for f in &self.findings {
            for (i, m) in f.found.measures.iter().enumerate() {
                rows.push([
                    if i == 0 { f.attack.name.to_owned() } else { String::new() },
                    m.what.clone(),
                    m.unprotected.to_string(),
                    m.control.shown(m.unprotected),
                    m.protected.to_string(),
                    m.bound.shown(m.protected),
                    m.verdict().word().to_owned(),
                ]);
            }
        }
        let widths: [usize; 7] = std::array::from_fn(|i| rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0));
        for row in &rows {
            let cells: Vec<String> = row.iter().zip(widths).map(|(c, w)| format!("{c:<w$}")).collect();
            writeln!(out, "{}", cells.join("  ").trim_end())?;
        }
        for f in &self.findings {
            writeln!(out, "\n{} ({:.2} s): {}", f.attack.name, f.seconds, f.found.verdict().word())?;
            writeln!(out, "  control: {}", f.attack.control)?;
            writeln!(out, "  protection: {}", f.attack.protection)?;
            for line in f.found.also_broken.iter().chain(&f.found.details) {
                writeln!(out, "  {line}")?;
            }
            writeln!(out, "  not shown: {}", f.attack.not_shown)?;
        }
        let word = if self.passed { "Passed" } else { "FAILED" };
        writeln!(
            out,
            "\n{word} in {:.0} s (seed {}): a failed attack is evidence about these attacks, not a proof against all.",
            self.seconds, self.seed
        )
    }
}
