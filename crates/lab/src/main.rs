//! The `veilsum-lab` command: the papers' tables, and what the protocol costs by itself.

mod cost;
mod tables;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::{Parser, Subcommand};
use veilsum_node::error::{Code, Failure};

/// The laboratory of Veilsum: the papers' tables run again, and what the protocol costs
///
/// Exit codes are those of `veilsum`; 1 also where a target was missed.
#[derive(Parser)]
#[command(name = "veilsum-lab", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// One JSON document on standard output instead of text
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Print the source papers' tables beside ours: paper, plain, masked
    Experiments(tables::ExperimentsArgs),
    /// Run the protocol alone for a number of sites and numbers, and say what it costs
    Simulate(cost::SimulateArgs),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match &cli.command {
        Command::Experiments(args) => tables::experiments(args, cli.json),
        Command::Simulate(args) => cost::simulate(args, cli.json),
    };
    let Err(failure) = result else { return ExitCode::SUCCESS };
    let _ = writeln!(io::stderr(), "error: {failure}");
    ExitCode::from(failure.code as u8)
}

/// Prints the JSON value with --json, else the text.
fn print(json: bool, value: &serde_json::Value, text: &str) -> Result<(), Failure> {
    let text = if json { value.to_string() } else { text.trim_end().to_owned() };
    match writeln!(io::stdout(), "{text}") {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(Code::Internal, e, "check where the output goes and its free space"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The book shows commands of the laboratory that take minutes, so that no test runs them; here they are parsed.
    #[test]
    fn what_the_book_shows_can_be_typed() {
        let mut found = 0;
        for page in ["docs/src/methods.md", "COMPARE.md"] {
            let path = format!("{}/../../{page}", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(path).expect("a page of the book");
            for part in text.split("cargo run --release -p veilsum-lab -- ").skip(1) {
                let line = part.split(['\n', '`']).next().unwrap_or_default();
                let words = ["veilsum-lab"].into_iter().chain(line.split_whitespace());
                assert!(Cli::try_parse_from(words).is_ok(), "{page}: {line}");
                found += 1;
            }
        }
        assert!(found >= 2, "{found}");
    }
}
