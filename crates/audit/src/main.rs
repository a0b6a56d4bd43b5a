//! The `veilsum-audit` command.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use veilsum_audit::table::{self, ATTACKS};

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
}

fn main() -> ExitCode {
    let (options, only) = match Cli::parse().command {
        Command::List => {
            ATTACKS.iter().for_each(|a| println!("{:<24} {}", a.name, a.shows));
            return ExitCode::SUCCESS;
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
    let report = table::audit(options.seed, options.quick, only, |step| eprintln!("{step}"))?;
    let mut out = std::io::stdout().lock();
    if options.json {
        serde_json::to_writer_pretty(&mut out, &report)?;
        std::io::Write::write_all(&mut out, b"\n")?;
    } else {
        report.print(&mut out)?;
    }
    Ok(report.passed)
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
        assert!(found >= 1, "{found}");
    }
}
