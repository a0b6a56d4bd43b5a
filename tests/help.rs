//! How long `--help` may be, and that `--help-all` has the rest.

use clap::Command;

/// Lines of `--help`: a terminal of ordinary size shows them without scrolling.
const SCREEN_LINES: usize = 42;
/// Characters of a line of `--help`.
const SCREEN_COLUMNS: usize = 80;

/// The command line with everything filled in that clap derives late, such as usage lines and inherited options.
fn built() -> Command {
    let mut command = veilsum_cli::commands();
    command.build();
    command
}

fn subcommands(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|sub| sub.get_name() != "help")
}

#[test]
fn the_help_of_every_command_fits_a_screen() {
    let mut seen = 0;
    let mut long = Vec::new();
    let mut check = |command: &Command| {
        let help = command.clone().render_help().to_string();
        let lines = help.lines().count();
        if lines > SCREEN_LINES {
            long.push(format!("{} --help has {lines} lines", command.get_name()));
        }
        // A usage line is one piece, to be copied.
        for line in help.lines().filter(|line| !line.starts_with("Usage:")) {
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
    assert!(long.is_empty(), "{long:?}");
    assert!(seen > 20, "{seen}");
}

#[test]
fn every_setting_is_in_the_long_help_alone() {
    let all = built();
    let demo = all.find_subcommand("demo").expect("a demonstration");
    let unfolded = |help: String| help.split_whitespace().collect::<Vec<_>>().join(" ");
    let short = unfolded(demo.clone().render_help().to_string());
    let long = unfolded(demo.clone().render_long_help().to_string());
    for (key, _, says) in veilsum_node::documents::PLAN_KEYS.iter().filter(|(key, ..)| !key.is_empty()) {
        assert!(!short.contains(says), "{key}");
        assert!(long.contains(&format!("{key} ")) && long.contains(says), "{key}");
    }
    // Few enough to be read.
    let plan = all.find_subcommand("plan").and_then(|plan| plan.find_subcommand("new")).expect("a new plan");
    let own = plan
        .get_arguments()
        .filter(|arg| !arg.is_global_set() && arg.get_long().is_some_and(|long| !long.starts_with("help")));
    assert!(own.count() <= 13, "--set is for the others");
}

/// One way to do each thing: a command or an option more has to take the place of another.
#[test]
fn commands_and_options_are_few() {
    fn leaves<'a>(command: &'a Command, all: &mut Vec<&'a Command>) {
        match subcommands(command).next() {
            None => all.push(command),
            Some(_) => subcommands(command).for_each(|sub| leaves(sub, all)),
        }
    }
    let built = built();
    let mut all = Vec::new();
    leaves(&built, &mut all);
    let options: std::collections::BTreeSet<&str> =
        all.iter().flat_map(|leaf| leaf.get_arguments().filter_map(|arg| arg.get_long())).collect();
    assert!(all.len() <= 30 && options.len() <= 70, "{} commands, {} options", all.len(), options.len());
}
