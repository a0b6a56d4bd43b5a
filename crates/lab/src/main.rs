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
