//! The `veilsum-audit` command.

use std::{
    io::{self, StdoutLock, Write},
    path::PathBuf,
    process::ExitCode,
};

use clap::{Args, Parser, Subcommand, builder::PossibleValue};
use serde::Serialize;
use veilsum_audit::{
    own,
    table::{self, ATTACKS},
};
use veilsum_node::documents::{self, RowsFrom};

/// Attacks what a party of a federation really received, each beside a control without protection.
///
/// Exit codes: 0 every control succeeded and every protected run stayed under its bound (`plan`: no row is at risk); 1 not so; 2 wrong
/// arguments; 3 the audit could not be run.
#[derive(Parser)]
#[command(name = "veilsum-audit", version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    own: Option<Own>,
    #[command(flatten)]
    table: TableArgs,
}

#[derive(Subcommand)]
enum Own {
    /// Attacks your own plan on your own rows, each attack beside blind guessing.
    Plan(PlanArgs),
}

#[derive(Args)]
struct PlanArgs {
    /// The plan.
    #[arg(long, value_name = "FILE")]
    plan: PathBuf,
    /// Its roster; roster.toml beside the plan if none is named.
    #[arg(long, value_name = "FILE")]
    roster: Option<PathBuf>,
    /// Your rows.
    #[arg(long, value_name = "FILE")]
    data: PathBuf,
    /// A file for each other site; rows like yours are drawn if there is none.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    others: Vec<PathBuf>,
    /// Your site.toml, for what it says of rows.
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Draws strangers, samples and the noise.
    #[arg(long, default_value_t = 3)]
    seed: u64,
    /// Prints one JSON object instead of the table.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct TableArgs {
    /// Which attack is let at a recorded run.
    #[arg(value_parser = attacks(), required = true)]
    attack: Option<String>,
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
    let cli = Cli::parse();
    let passed = match &cli.own {
        Some(Own::Plan(args)) => plan(args),
        None => audit(&cli.table),
    };
    match passed {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(e) => {
            eprintln!("the audit could not be run: {e:#}");
            ExitCode::from(3)
        }
    }
}

fn plan(args: &PlanArgs) -> anyhow::Result<bool> {
    let began = std::time::Instant::now();
    let federation = own::federation(&args.plan, args.roster.as_deref())?;
    let policy = args.policy.as_ref().map(|path| documents::load_policy(path)).transpose()?;
    let rules = policy.map(|policy| policy.rows).unwrap_or_default();
    let from = RowsFrom { data: args.data.clone(), rules, ..RowsFrom::default() };
    let scene = own::Scene::new(&federation, &from, &args.others, args.seed)?;
    let found = own::audit(&scene, args.seed, |step| eprintln!("{:>4} s  {step}", began.elapsed().as_secs()))?;
    show(args.json.then_some(&found), |out| found.print(out))?;
    Ok(!found.at_risk)
}

fn audit(cli: &TableArgs) -> anyhow::Result<bool> {
    let only = cli.attack.as_deref().filter(|name| *name != ALL);
    let report = table::audit(cli.seed, cli.quick, only, |step| eprintln!("{step}"))?;
    show(cli.json.then_some(&report), |out| report.print(out))?;
    Ok(report.passed)
}

/// Prints a JSON object, or the text where there is none.
fn show(json: Option<&impl Serialize>, text: impl FnOnce(&mut StdoutLock<'_>) -> io::Result<()>) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match json {
        Some(json) => Ok(writeln!(out, "{}", serde_json::to_string_pretty(json)?)?),
        None => Ok(text(&mut out)?),
    }
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
