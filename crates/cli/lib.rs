//! The `veilsum` command: one file for each command, and one way to report an error.
//!
//! The map of all crates, and the order in which to read them, is the front page of [`veilsum_node`]. What the commands do is in the
//! book in `docs/`. Here: `verb` says what a command is and how it prints, `method` has the options that `plan new` and `demo` share,
//! `settings` what `--set` may say and `columns` what `--column` may,
//! `party` those of the three roles, `watch` who is told how a run goes (with `progress` and `screen` for the terminal); every other file is
//! one command and a line in the list below.
//!
//! All of it is a library, so that Python has the same commands: [`run`] is the program, [`call`] one command whose JSON document
//! comes back, and [`embedded`] what a program
//! needs that runs parties itself.

mod agree;
mod assign;
mod check;
mod columns;
mod demo;
pub mod embedded;
mod events;
mod explain;
mod federation;
mod join;
mod key;
mod ledger;
mod method;
mod party;
mod plan;
mod privacy;
mod progress;
mod proposal;
mod propose;
mod report;
mod roster;
mod rows;
mod run;
mod screen;
mod settings;
mod status;
mod terminal;
mod terms;
mod verb;
mod verify;
mod watch;
mod words;

use std::{
    ffi::OsString,
    io::{self, Write},
    sync::atomic::{AtomicBool, Ordering},
};

use clap::{
    CommandFactory, Parser, Subcommand,
    error::{ContextKind, ContextValue, ErrorKind},
};
use serde_json::{Value, json};
use tracing_subscriber::{
    Layer,
    filter::{LevelFilter, Targets},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use veilsum_node::error::{Code, Failure};

use verb::Verb;

const ERRORS: &str = "\
Errors go to standard error as `error: …` and `next: …`. The exit codes are in --help-all.";

/// Federated fuzzy clustering: only totals over all sites become readable
#[derive(Parser, Debug)]
#[command(name = "veilsum", version, after_help = ERRORS, after_long_help = explain::exit_codes(), arg_required_else_help = true, disable_help_flag = true, max_term_width = 80,
    disable_help_subcommand = true)]
pub(crate) struct Cli {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
    /// Log what happens to standard error; twice for more
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// One JSON document on standard output instead of text
    #[arg(long, global = true)]
    pub json: bool,
    /// Print the usual options
    #[arg(short, long, global = true, action = clap::ArgAction::HelpShort)]
    pub help: Option<bool>,
    /// Print all options with all that is said of them
    #[arg(long, global = true, action = clap::ArgAction::HelpLong)]
    pub help_all: Option<bool>,
}

/// The list of commands, in the order of `--help`: what is parsed, and what is run.
macro_rules! verbs {
    ($($verb:ident($args:ty),)*) => {
/// What to do.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
            $(#[allow(missing_docs)] $verb(Box<$args>),)*
        }

        impl Command {
            fn run(&self, json: bool) -> Result<(), Failure> {
                match self {
                    $(Command::$verb(verb) => verb.run(json),)*
                }
            }
        }
    };
}

verbs! {
    Demo(demo::DemoArgs),
    Run(run::RunArgs),
    Federation(federation::FederationArgs),
    Join(join::JoinArgs),
    Agree(agree::AgreeArgs),
    Plan(plan::PlanArgs),
    Report(report::ReportArgs),
    Assign(assign::AssignArgs),
    Verify(verify::VerifyArgs),
    Check(check::CheckArgs),
    Status(status::StatusArgs),
    Explain(explain::ExplainArgs),
    Ledger(ledger::LedgerArgs),
}

/// The program with these arguments, the first of which is its own name: prints, and says with which exit code to end.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let args: Vec<OsString> = args.into_iter().collect();
    // Also where the arguments themselves are wrong, so it cannot come from the parsed ones.
    let json = args.iter().skip(1).take_while(|a| *a != "--").any(|a| a == "--json");
    let cli = match Cli::try_parse_from(&args) {
        Ok(cli) => cli,
        // Help that was asked for, or that stands in for a command that was not named.
        Err(e) if !e.use_stderr() || e.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // Nothing can be done where even this cannot be printed.
            let _ = e.print();
            return e.exit_code() as u8;
        }
        Err(e) => return report(&wrong_arguments(&e, args.into_iter().skip(1)), json),
    };
    log_to_stderr(cli.verbose);
    match cli.command.run(cli.json) {
        Ok(()) => 0,
        Err(failure) => report(&failure, cli.json),
    }
}

/// All commands with their options, from which `packaging/pages.rs` writes manual pages and completions.
#[doc(hidden)]
pub fn commands() -> clap::Command {
    Cli::command()
}

/// One command with these arguments, without the program's name: the JSON document that `--json` prints, which is not printed.
/// For commands that read and write documents; a role takes signals for itself and belongs into a process of its own.
///
/// # Errors
/// The [`Failure`] of the command.
pub fn call(args: impl IntoIterator<Item = OsString>) -> Result<Value, Failure> {
    let args: Vec<OsString> = args.into_iter().collect();
    let named = ["veilsum", "--json"].map(OsString::from).into_iter().chain(args.iter().cloned());
    let cli = Cli::try_parse_from(named).map_err(|e| wrong_arguments(&e, args.into_iter()))?;
    let (done, printed) = verb::kept(|| cli.command.run(true));
    done?;
    if printed.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(&printed).map_err(Failure::defect)
}

/// Goes on with another command, in the place of the one that was typed.
pub(crate) fn again(args: Vec<OsString>, json: bool) -> Result<(), Failure> {
    let cli = Cli::try_parse_from(std::iter::once("veilsum".into()).chain(args.iter().cloned()));
    cli.map_err(|e| wrong_arguments(&e, args.into_iter()))?.command.run(json)
}

/// The parser's own words in the form of every other error: what is wrong, and which option or which command's help helps.
fn wrong_arguments(error: &clap::Error, args: impl Iterator<Item = OsString>) -> Failure {
    let text = error.to_string();
    let words = text.trim_start_matches("error: ");
    let words = words.split("\n\nUsage:").next().unwrap_or_default();
    let words = words.split("\n\nFor more information").next().unwrap_or_default();
    let (words, tip) = words.split_once("\n\n  tip: ").map_or((words, None), |(words, tip)| (words, Some(tip)));
    let message: Vec<&str> = words.split_whitespace().collect();
    let all = Cli::command();
    let (mut command, mut name) = (&all, String::from("veilsum"));
    let args: Vec<OsString> = args.collect();
    for arg in &args {
        if let Some(sub) = command.find_subcommand(arg) {
            (command, name) = (sub, format!("{name} {}", sub.get_name()));
        }
    }
    let unknown = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(unknown)) if error.kind() == ErrorKind::UnknownArgument => settings::named(unknown),
        _ => None,
    };
    let takes_settings = command.get_arguments().any(|arg| arg.get_long() == Some("set"));
    let next = match (unknown, tip) {
        _ if error.kind() == ErrorKind::InvalidSubcommand => {
            let there: Vec<&str> =
                command.get_subcommands().map(clap::Command::get_name).filter(|name| *name != "help").collect();
            format!("the commands are {}; see `{name} --help`", there.join(", "))
        }
        (Some(key), _) if takes_settings => format!("it is a setting: --set {key}=VALUE"),
        (_, Some(tip)) => format!("{}, or see `{name} --help`", tip.split_whitespace().collect::<Vec<_>>().join(" ")),
        _ => format!("see `{name} --help`"),
    };
    Failure::usage(message.join(" "), joined(error, &args).unwrap_or(next))
}

/// How a value that begins with a hyphen, such as the name of a column, is told from an option.
fn joined(error: &clap::Error, args: &[OsString]) -> Option<String> {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else { return None };
    let args: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
    let value = args.iter().position(|arg| arg.starts_with(&**unknown) && !arg.starts_with("--"))?;
    let option = args[..value].iter().rfind(|arg| arg.starts_with("--") && !arg.contains('='))?;
    Some(format!("a value that begins with a hyphen is joined to its option: '{option}={}'", args[value]))
}

fn log_to_stderr(verbose: u8) {
    let (others, ours) = match verbose {
        0 => (LevelFilter::WARN, LevelFilter::WARN),
        1 => (LevelFilter::WARN, LevelFilter::INFO),
        _ => (LevelFilter::INFO, LevelFilter::DEBUG),
    };
    // The environment has no say: a log must not become talkative by accident. A target stands for all that begin as it does.
    let filter = Targets::new().with_default(others).with_target("veilsum", ours);
    let lines = tracing_subscriber::fmt::layer().with_writer(|| screen::Lines).with_target(false).with_ansi(false);
    let filter = if verbose < 2 { filter.with_target(UDP, LevelFilter::OFF) } else { filter };
    let udp = NoUdp::default().with_filter(Targets::new().with_target(UDP, LevelFilter::WARN));
    let _ = tracing_subscriber::registry().with(lines.with_filter(filter)).with(udp).try_init();
}

/// What the library that sends UDP packets calls itself in logs.
const UDP: &str = "quinn_udp";

/// Says once, in a sentence, that UDP packets do not leave this machine, where the library has a system's code for it.
#[derive(Default)]
struct NoUdp(AtomicBool);

impl NoUdp {
    /// The sentence, once.
    fn sentence(&self, target: &str) -> Option<&'static str> {
        (target.starts_with(UDP) && !self.0.swap(true, Ordering::Relaxed)).then_some(
            "this machine does not let UDP packets out, as with a packet filter: links take TCP where they may (`veilsum check` says which \
             ways are open)",
        )
    }
}

impl<S: tracing::Subscriber> Layer<S> for NoUdp {
    fn on_event(&self, event: &tracing::Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
        if let Some(sentence) = self.sentence(event.metadata().target()) {
            tell!("{sentence}");
        }
    }
}

fn report(failure: &Failure, json: bool) -> u8 {
    if json && (failure.code == Code::Early || verb::has_printed()) {
        // The document that was printed says so (`ended_early`, `error`); there is one.
    } else if json {
        let _ = writeln!(io::stdout(), "{}", json!({ "error": verb::error(failure) }));
    } else {
        verb::tell(failure);
    }
    failure.code as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A plan's settings are no options of their own: who types one as an option is told how.
    #[test]
    fn a_setting_typed_as_an_option_is_told_how() {
        let told = |words: &[&str]| call(words.iter().map(OsString::from)).unwrap_err().advice;
        assert_eq!(told(&["demo", "--max-rounds", "2"]), "it is a setting: --set max_rounds=VALUE");
        assert!(told(&["verify", "--max-rounds", "2"]).contains("`veilsum verify --help`"));
        assert!(told(&["demo", "--columns", "age"]).contains("'--column'"));
    }

    /// A system's code is nobody's to read: of UDP that is filtered one sentence is said, once.
    #[test]
    fn filtered_udp_is_said_in_one_sentence() {
        let layer = NoUdp::default();
        assert_eq!(layer.sentence("veilsum_node::carrier"), None);
        let said = layer.sentence("quinn_udp::imp").expect("a sentence");
        assert!(said.contains("UDP") && said.contains("TCP") && !said.contains("Os {"), "{said}");
        assert_eq!(layer.sentence("quinn_udp::imp"), None);
    }
}
