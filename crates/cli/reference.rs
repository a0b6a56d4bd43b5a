//! The book's page `docs/src/reference.md`, written from the command line's own definition, and how long `--help` may be.

use std::{fmt::Write, fs, path::PathBuf};

use clap::{Arg, Command, CommandFactory};

use crate::Cli;

/// Lines of `--help`: a terminal of ordinary size shows them without scrolling.
const SCREEN_LINES: usize = 42;
/// Characters of a line of `--help`.
const SCREEN_COLUMNS: usize = 130;

const INTRODUCTION: &str = "\
# Reference of commands

This page is generated from the program's own definition of its commands. `veilsum COMMAND --help` prints the usual options on
one screen, and `veilsum COMMAND --help-all` prints everything that this page says.

Every command takes these options as well:

";

const EXIT_CODES: &str = "\
## Exit codes

An error says what happened, whose fault it is, and what to do next.

";

fn page_file() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/src/reference.md"))
}

/// The command line with everything filled in that clap derives late, such as usage lines and inherited options.
fn built() -> Command {
    let mut command = Cli::command();
    command.build();
    command
}

/// The whole page.
fn page() -> String {
    let command = built();
    let mut text = INTRODUCTION.to_owned();
    for arg in command.get_arguments().filter(|arg| arg.is_global_set() || arg.get_id() == "version") {
        describe(&mut text, arg);
    }
    for sub in subcommands(&command) {
        section(&mut text, sub, "veilsum");
    }
    text += "\n";
    text += EXIT_CODES;
    text += "```text\n";
    text += crate::EXIT_CODES.trim_end();
    text += "\n```\n";
    text
}

fn subcommands(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|sub| sub.get_name() != "help")
}

/// A command that does something, or the commands below it.
fn section(text: &mut String, command: &Command, parent: &str) {
    let name = format!("{parent} {}", command.get_name());
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    let _ = write!(text, "\n## {name}\n\n{}.\n", about.trim_end_matches('.'));
    if command.has_subcommands() {
        for sub in subcommands(command) {
            section(text, sub, &name);
        }
        return;
    }
    let usage = command.clone().render_usage().to_string();
    let _ = write!(text, "\n```text\n{}\n```\n", usage.trim_start_matches("Usage: "));
    for heading in headings(command) {
        let _ = write!(text, "\n**{}**\n\n", heading.as_deref().unwrap_or("Options"));
        for arg in own(command).filter(|arg| arg.get_help_heading() == heading.as_deref()) {
            describe(text, arg);
        }
    }
}

/// The options of this command alone.
fn own(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| !arg.is_global_set())
}

/// The headings of a command's options, in the order of their first use.
fn headings(command: &Command) -> Vec<Option<String>> {
    let mut found: Vec<Option<String>> = Vec::new();
    for arg in own(command) {
        let heading = arg.get_help_heading().map(str::to_owned);
        if !found.contains(&heading) {
            found.push(heading);
        }
    }
    found
}

/// One option as an item of a list.
fn describe(text: &mut String, arg: &Arg) {
    let mut name = arg.get_long().map_or_else(String::new, |long| format!("--{long}"));
    if let Some(short) = arg.get_short() {
        name = format!("-{short}, {name}");
    }
    if let Some(values) = arg.get_value_names().filter(|_| arg.get_action().takes_values()) {
        let shown: Vec<&str> = values.iter().map(|value| value.as_str()).collect();
        name = format!("{name} {}", shown.join(" "));
    }
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let sentences: Vec<&str> = help.split("\n\n").map(|part| part.trim().trim_end_matches('.')).collect();
    let _ = write!(text, "- `{}`: {}.", name.trim(), plain(&sentences.join(". ")));
    if arg.is_required_set() {
        text.push_str(" It is required.");
    }
    let values = arg.get_possible_values();
    if arg.get_action().takes_values() && !values.is_empty() {
        let shown: Vec<String> = values
            .iter()
            .map(|value| match value.get_help() {
                Some(help) => format!("`{}` ({})", value.get_name(), plain(&help.to_string())),
                None => format!("`{}`", value.get_name()),
            })
            .collect();
        let _ = write!(text, " Values: {}.", shown.join(", "));
    }
    let defaults: Vec<String> =
        arg.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
    if arg.get_action().takes_values() && !defaults.is_empty() && !arg.is_hide_default_value_set() {
        let _ = write!(text, " Default: `{}`.", defaults.join(" "));
    }
    text.push('\n');
}

/// Text of a help message as Markdown: what it would take for a link or a tag is escaped.
fn plain(text: &str) -> String {
    text.replace('\n', " ").replace('[', "\\[").replace('<', "\\<").replace('_', "\\_").replace('*', "\\*")
}

#[test]
fn the_reference_of_commands_is_what_the_program_says() {
    let written = fs::read_to_string(page_file()).unwrap_or_default();
    let now = page();
    let first = written.lines().zip(now.lines()).find(|(a, b)| a != b);
    assert!(
        written == now,
        "docs/src/reference.md is out of date, first at {first:?}; `cargo test -p veilsum --lib reference -- --ignored` writes it"
    );
}

/// Not a test: it writes the page that the test beside it compares. Run it after an option has changed.
#[test]
#[ignore = "writes docs/src/reference.md"]
fn write_the_reference_of_commands() {
    fs::write(page_file(), page()).expect("the page can be written");
}

#[test]
fn the_help_of_every_command_fits_a_screen() {
    let mut seen = 0;
    let mut check = |command: &Command| {
        let help = command.clone().render_help().to_string();
        let lines = help.lines().count();
        assert!(lines <= SCREEN_LINES, "{} --help has {lines} lines\n{help}", command.get_name());
        for line in help.lines() {
            assert!(line.chars().count() <= SCREEN_COLUMNS, "{} --help: {line}", command.get_name());
        }
        seen += 1;
    };
    let all = built();
    check(&all);
    for sub in subcommands(&all) {
        check(sub);
        subcommands(sub).for_each(&mut check);
    }
    assert!(seen > 20, "{seen}");
}

#[test]
fn everything_that_short_help_leaves_out_is_in_the_long_one() {
    let all = built();
    let demo = all.find_subcommand("demo").expect("a demonstration");
    let (short, long) = (demo.clone().render_help().to_string(), demo.clone().render_long_help().to_string());
    let hidden: Vec<&str> =
        own(demo).filter(|arg| arg.is_hide_short_help_set()).filter_map(|arg| arg.get_long()).collect();
    assert!(hidden.len() > 10, "{hidden:?}");
    for name in hidden {
        assert!(!short.contains(&format!("--{name} ")), "{name}");
        assert!(long.contains(&format!("--{name}")), "{name}");
    }
}
