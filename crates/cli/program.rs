//! The `veilsum` command, as a program.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(veilsum_cli::run(std::env::args_os()))
}
