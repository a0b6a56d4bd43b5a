//! The `veilsum` command.

fn main() -> std::process::ExitCode {
    veilsum::cli::main()
}
