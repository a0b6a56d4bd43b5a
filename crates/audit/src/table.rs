//! The table of attacks, each with its control, its bound and a verdict.

use std::cell::OnceCell;

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::{
    all_but_one, canary, chosen_total, collusion, declared_change, differencing, dropout_lie, few_categories,
    finding::{Finding, Verdict},
    given_centre, inconsistency, labels, moving_rows, pinhole, poison, published_outlier,
    scene::Scene,
    swapped_roster, sweep_records, two_questions,
    view::{self, Recording},
    windows,
};

/// What every attack of one audit gets.
pub struct Context {
    /// From which scenes and starts are drawn.
    pub seed: u64,
    /// Whether the short form is run.
    pub quick: bool,
    sweep: OnceCell<Recording>,
}

impl Context {
    /// Makes an audit that has recorded nothing yet.
    pub fn new(seed: u64, quick: bool) -> Context {
        Context { seed, quick, sweep: OnceCell::new() }
    }

    /// The run of a sweep over K.
    ///
    /// # Errors
    /// Where it cannot be recorded.
    pub fn sweep(&self) -> Result<&Recording> {
        if let Some(recording) = self.sweep.get() {
            return Ok(recording);
        }
        let recording = view::record(&Scene::sweep(self.seed)?)?;
        Ok(self.sweep.get_or_init(|| recording))
    }
}

/// An attack of the table.
pub struct Attack {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it shows, in one line.
    pub shows: &'static str,
    run: fn(&Context) -> Result<Finding>,
}

/// All attacks.
pub const ATTACKS: &[Attack] = &[
    Attack {
        name: sweep_records::NAME,
        shows: "a sweep over K tells all 50 records of a site, and how many they are",
        run: |c| sweep_records::run(c.sweep()?, c.seed, if c.quick { 1 } else { 4 }),
    },
    Attack {
        name: differencing::NAME,
        shows: "totals over cohorts that change by single sites are solved for single sites",
        run: |c| differencing::run(c.seed, c.quick),
    },
    Attack {
        name: collusion::NAME,
        shows: "all sites but one collude, or are the coordinator's own",
        run: |c| collusion::run(c.sweep()?, c.seed),
    },
    Attack {
        name: inconsistency::NAME,
        shows: "different questions to different sites, or two to one, leave one site's sums in the open",
        run: |c| inconsistency::run(c.seed),
    },
    Attack {
        name: dropout_lie::NAME,
        shows: "a site said to be there to some and gone to others loses both its masks",
        run: |c| dropout_lie::run(c.seed, c.quick),
    },
    Attack {
        name: chosen_total::NAME,
        shows: "a coordinator, alone or with one site, chooses the total after it knows the true one",
        run: |c| chosen_total::run(c.seed),
    },
    Attack {
        name: swapped_roster::NAME,
        shows: "a roster with the same names in it puts a site among the attacker's own",
        run: |c| swapped_roster::run(c.seed),
    },
    Attack {
        name: pinhole::NAME,
        shows: "two centres that nearly coincide tell from a total whether a record is in the data",
        run: |c| pinhole::run(c.seed, c.quick),
    },
    Attack {
        name: poison::NAME,
        shows: "a site that lies ruins a run, or steers it to where the coordinator wants to look",
        run: |c| poison::run(c.seed, c.quick),
    },
    Attack {
        name: two_questions::NAME,
        shows: "far more centres than rows and a steep fuzzifier tell records in two questions of one plan",
        run: |c| two_questions::run(c.seed, c.quick),
    },
    Attack {
        name: given_centre::NAME,
        shows: "given first centres beside a patient tell whether he is there",
        run: |c| given_centre::run(c.seed, c.quick),
    },
    Attack {
        name: published_outlier::NAME,
        shows: "a published centre is an outlier's record, everybody honest",
        run: |c| published_outlier::run(c.seed, c.quick),
    },
    Attack {
        name: declared_change::NAME,
        shows: "totals before and after a declared change are solved for the new rows",
        run: |c| declared_change::run(c.seed, c.quick),
    },
    Attack {
        name: windows::NAME,
        shows: "windows of possibilistic c-means tell records one by one",
        run: |c| windows::run(c.seed, c.quick),
    },
    Attack {
        name: few_categories::NAME,
        shows: "totals tell how often each of a few possible rows occurs, and in which cell a person is",
        run: |c| few_categories::run(c.seed, c.quick),
    },
    Attack {
        name: all_but_one::NAME,
        shows: "who knows all rows but one solves for the last",
        run: |c| all_but_one::run(c.seed, c.quick),
    },
    Attack {
        name: labels::NAME,
        shows: "counts of labels in many plans' cells are solved for every row's label",
        run: |c| labels::run(c.seed, c.quick),
    },
    Attack {
        name: moving_rows::NAME,
        shows: "centres of successive rounds of k-means give away rows that move alone",
        run: |c| moving_rows::run(c.seed, c.quick),
    },
    Attack {
        name: canary::NAME,
        shows: "what the sites' noise really costs, and whether half a share is noticed",
        run: |c| canary::run(c.seed, c.quick),
    },
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

/// How far an audit is.
pub struct Step<'a> {
    /// Which attack, from 1.
    pub number: usize,
    /// Of how many.
    pub of: usize,
    /// The attack.
    pub attack: &'a Attack,
    /// What it found, once it is over.
    pub found: Option<&'a Finding>,
    /// Seconds since the audit began.
    pub seconds: f64,
}

impl std::fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Step { number, of, attack, found, seconds } = self;
        match found {
            None => write!(f, "[{number:>2}/{of}] {seconds:>4.0} s  {}: {}", attack.name, attack.shows),
            Some(found) => {
                write!(f, "[{number:>2}/{of}] {seconds:>4.0} s  {}: {}", attack.name, found.verdict().word())
            }
        }
    }
}

/// Runs the attack named `only`, or all attacks, on recorded runs; `told` is called with each before it begins and when it is over.
///
/// # Errors
/// Where a run cannot be recorded, or an attack cannot be run.
pub fn audit(seed: u64, quick: bool, only: Option<&str>, told: impl Fn(&Step<'_>)) -> Result<Report> {
    let began = std::time::Instant::now();
    let context = Context::new(seed, quick);
    let chosen: Vec<&Attack> = ATTACKS.iter().filter(|a| only.is_none_or(|name| a.name == name)).collect();
    let mut findings = Vec::new();
    for (i, attack) in chosen.iter().enumerate() {
        let step =
            |found| Step { number: i + 1, of: chosen.len(), attack, found, seconds: began.elapsed().as_secs_f64() };
        told(&step(None));
        let found = (attack.run)(&context).with_context(|| attack.name)?;
        told(&step(Some(&found)));
        findings.push(found);
    }
    let passed = !findings.is_empty() && findings.iter().all(|f| f.verdict() == Verdict::Holds);
    Ok(Report { seed, quick, findings, passed, seconds: began.elapsed().as_secs_f64() })
}

impl Report {
    /// The table, for people.
    pub fn print(&self, out: &mut impl std::io::Write) -> std::io::Result<()> {
        let header = ["attack", "what", "control", "must be", "protected", "must be", "verdict"].map(String::from);
        let mut rows = vec![header];
        for f in &self.findings {
            for (i, m) in f.measures.iter().enumerate() {
                rows.push([
                    if i == 0 { f.attack.to_owned() } else { String::new() },
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
            writeln!(out, "\n{} ({:.2} s): {}", f.attack, f.seconds, f.verdict().word())?;
            writeln!(out, "  control: {}", f.control)?;
            writeln!(out, "  protection: {}", f.protection)?;
            for line in f.also_broken.iter().chain(&f.details) {
                writeln!(out, "  {line}")?;
            }
            writeln!(out, "  not shown: {}", f.not_shown)?;
        }
        let word = if self.passed { "Passed" } else { "FAILED" };
        writeln!(
            out,
            "\n{word} in {:.0} s (seed {}): a failed attack is evidence about these attacks, not a proof against all.",
            self.seconds, self.seed
        )
    }
}
