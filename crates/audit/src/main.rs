//! The `veilsum-audit` command.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Parser, Subcommand};
use veilsum_audit::{
    mine, page,
    span::{self, Assumed, read::Released, report::Report},
    table::{self, ATTACKS},
};
use veilsum_node::{documents, error::Failure};

/// Attacks what a party of a federation really received, each beside a control without protection.
///
/// Exit codes: 0 every control succeeded and every protected run stayed under its bound; 1 not so; 2 wrong arguments;
/// 3 the audit could not be run.
#[derive(Parser)]
#[command(name = "veilsum-audit", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Names the attacks.
    List,
    /// Records a run and lets every attack at it.
    All(Options),
    /// Records a run and lets one attack at it.
    Run {
        /// Its name, see `list`.
        #[arg(value_parser = ATTACKS.iter().map(|a| a.name).collect::<Vec<_>>())]
        attack: String,
        #[command(flatten)]
        options: Options,
    },
    /// Runs a plan on your own rows and says what could be known of each record, before you join.
    ///
    /// Exit codes: 0 nothing is recoverable under the plan's own assumptions; 1 something is; 3 it could not be found out.
    Mine {
        /// The plan.
        #[arg(long)]
        plan: PathBuf,
        /// The roster it is for.
        #[arg(long)]
        roster: PathBuf,
        /// Your rows, as you would join with them. Nothing of them is printed but line numbers.
        #[arg(long)]
        data: PathBuf,
        /// Prints one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Reads what was released, of any number of runs, and says for every site and every few how far its part is determined.
    ///
    /// Exit codes: 0 nobody's is; 1 somebody's is; 3 it could not be found out.
    Span(SpanArgs),
}

#[derive(clap::Args)]
struct SpanArgs {
    /// A view (one total a line, JSON), or a run's openings (openings.bin), for which roster and plan are needed.
    #[arg(long)]
    view: Vec<PathBuf>,
    /// A site's signed ledger; of totals that only ledgers know, errors are predicted and nothing is estimated.
    #[arg(long)]
    ledger: Vec<PathBuf>,
    /// The roster of a run in openings or a ledger, with its plan.
    #[arg(long, requires = "plan")]
    roster: Vec<PathBuf>,
    /// The plan of a run in openings or a ledger.
    #[arg(long, requires = "roster")]
    plan: Vec<PathBuf>,
    /// Groups of fewer sites than this are looked at.
    #[arg(long, default_value_t = 2)]
    contributors: usize,
    /// Sites that may collude beside them: a block has so many more.
    #[arg(long, default_value_t = 1)]
    colluders: usize,
    /// Rows of a site, about: how loud its rounding is beside them.
    #[arg(long, default_value_t = 100.0)]
    rows: f64,
    /// Draws the probe rows.
    #[arg(long, default_value_t = 3)]
    seed: u64,
    /// Prints one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Options {
    /// Draws the rows, the first centres and the attacks' starts; keys and masks are always fresh.
    #[arg(long, default_value_t = 3)]
    seed: u64,
    /// Prints one JSON object instead of the table.
    #[arg(long)]
    json: bool,
    /// Fewer victims, rounds and starts.
    #[arg(long)]
    quick: bool,
    /// Also writes audit.json and audit.html, a page without anything from elsewhere, into this folder.
    #[arg(long)]
    out: Option<PathBuf>,
}

fn main() -> ExitCode {
    let (options, only) = match Cli::parse().command {
        Command::List => {
            ATTACKS.iter().for_each(|a| println!("{:<24} {}", a.name, a.shows));
            return ExitCode::SUCCESS;
        }
        Command::Mine { plan, roster, data, json } => {
            return match mine(&plan, &roster, &data, json) {
                Ok(at_risk) => ExitCode::from(u8::from(at_risk)),
                Err(failure) => {
                    eprintln!("{}\n{}", failure.message, failure.advice);
                    ExitCode::from(3)
                }
            };
        }
        Command::Span(args) => {
            return match span(&args) {
                Ok(exposed) => ExitCode::from(u8::from(exposed)),
                Err(e) => {
                    eprintln!("it could not be found out: {e:#}");
                    ExitCode::from(3)
                }
            };
        }
        Command::All(options) => (options, None),
        Command::Run { attack, options } => (options, Some(attack)),
    };
    match audit(&options, only.as_deref()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(e) => {
            eprintln!("the audit could not be run: {e:#}");
            ExitCode::from(3)
        }
    }
}

fn audit(options: &Options, only: Option<&str>) -> anyhow::Result<bool> {
    // On a terminal what an attack found takes the place of its name; elsewhere both are lines.
    let terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let report = table::audit(options.seed, options.quick, only, |step| match (terminal, step.found) {
        (true, None) => eprint!("{step}"),
        (true, Some(_)) => eprintln!("\r\x1b[K{step}"),
        (false, _) => eprintln!("{step}"),
    })?;
    if let Some(folder) = &options.out {
        std::fs::create_dir_all(folder)?;
        veilsum_node::files::write_atomic(folder.join("audit.json"), &serde_json::to_vec_pretty(&report)?)?;
        veilsum_node::files::write_atomic(folder.join("audit.html"), page::html(&report).as_bytes())?;
    }
    let mut out = std::io::stdout().lock();
    if options.json {
        serde_json::to_writer_pretty(&mut out, &report)?;
        std::io::Write::write_all(&mut out, b"\n")?;
    } else {
        report.print(&mut out)?;
    }
    Ok(report.passed)
}

fn mine(plan: &Path, roster: &Path, data: &Path, json: bool) -> Result<bool, Failure> {
    let federation = documents::load_federation(roster, plan)?;
    let rows = documents::load_rows(&federation, data)?;
    let failed = |e: &dyn std::fmt::Display| {
        Failure::input(
            format!("this plan cannot be run on these rows: {e:#}"),
            "`veilsum plan check` says what it asks",
        )
    };
    let found = mine::diagnose(&federation, &rows).map_err(|e| failed(&e))?;
    let mut out = std::io::stdout().lock();
    if json {
        serde_json::to_writer_pretty(&mut out, &found).map_err(|e| failed(&e))?;
        println!();
    } else {
        found.print(&mut out).map_err(|e| failed(&e))?;
    }
    Ok(found.at_risk)
}

fn span(args: &SpanArgs) -> anyhow::Result<bool> {
    anyhow::ensure!(
        args.contributors >= 2,
        "groups of fewer than {} sites are none: --contributors 2 at least",
        args.contributors
    );
    anyhow::ensure!(args.rows.is_finite() && args.rows >= 1.0, "a site has one row at least: --rows");
    let mut federations = Vec::new();
    for roster in &args.roster {
        for plan in &args.plan {
            // Plans of another roster among several are not of this one.
            match documents::load_federation(roster, plan) {
                Ok(federation) => federations.push(federation),
                Err(failure) if args.roster.len() == 1 => anyhow::bail!("{failure}"),
                Err(_) => {}
            }
        }
    }
    let mut released = Released::default();
    for view in &args.view {
        if view.extension().is_some_and(|e| e == "bin" || e == "transcript") {
            released.openings(view, &federations)?;
        } else {
            released.view(view)?;
        }
    }
    released.ledgers(&args.ledger, &federations)?;
    let least = args.contributors + args.colluders;
    let assumed = Assumed { contributors: args.contributors, least, rows: args.rows, seed: args.seed };
    let report = Report::new(span::span(&released.told, &assumed)?, &released.told, released.left_out, &assumed);
    let mut out = std::io::stdout().lock();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &report)?;
        std::io::Write::write_all(&mut out, b"\n")?;
    } else {
        report.print(&mut out)?;
    }
    Ok(report.found.flagged().next().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The book shows commands of the audit that take minutes, so that no test runs them; here they are parsed.
    #[test]
    fn what_the_book_shows_can_be_typed() {
        let mut found = 0;
        for page in ["join", "account", "privacy"] {
            let path = format!("{}/../../docs/src/{page}.md", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(path).expect("a page of the book");
            for line in text.lines().filter_map(|line| line.strip_prefix("cargo run --release -p veilsum-audit -- ")) {
                let words = ["veilsum-audit"].into_iter().chain(line.split_whitespace());
                assert!(Cli::try_parse_from(words).is_ok(), "{page}: {line}");
                found += 1;
            }
        }
        assert!(found >= 4, "{found}");
    }
}
