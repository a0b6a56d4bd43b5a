//! The `veilsum-audit` command.

use std::process::ExitCode;

use clap::{Parser, builder::PossibleValue};
use veilsum_audit::table::{self, ATTACKS};

/// Attacks what a party of a federation really received, each beside a control without protection.
///
/// Exit codes: 0 every control succeeded and every protected run stayed under its bound; 1 not so; 2 wrong arguments;
/// 3 the audit could not be run.
#[derive(Parser)]
#[command(name = "veilsum-audit", version)]
struct Cli {
    /// Which attack is let at a recorded run.
    #[arg(value_parser = attacks())]
    attack: String,
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

fn attacks() -> Vec<PossibleValue> {
    let each = ATTACKS.iter().map(|attack| PossibleValue::new(attack.name).help(attack.shows));
    [PossibleValue::new(ALL).help("every attack")].into_iter().chain(each).collect()
}

const ALL: &str = "all";

fn main() -> ExitCode {
    match audit(&Cli::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(e) => {
            eprintln!("the audit could not be run: {e:#}");
            ExitCode::from(3)
        }
    }
}

fn audit(cli: &Cli) -> anyhow::Result<bool> {
    let only = Some(cli.attack.as_str()).filter(|name| *name != ALL);
    let report = table::audit(cli.seed, cli.quick, only, |step| eprintln!("{step}"))?;
    let mut out = std::io::stdout().lock();
    if cli.json {
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
