//! Who decided what: a line for each command by which people decide something for their party, in a file of mode 0600 beside its key.

use std::{
    ffi::OsString,
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use clap::{ArgMatches, Command};
use serde_json::json;
use veilsum_node::{clock::seconds_since_1970, files};

use crate::screen;

/// The file.
pub(crate) const FILE: &str = "decisions.log";

/// Commands by which somebody decides. The words that were typed hold no secret.
const DECISIONS: [&str; 11] = [
    "federation invite",
    "federation approve",
    "federation remove",
    "roster change",
    "roster accept",
    "rekey",
    "plan agree",
    "plan new",
    "plan propose",
    "plan stop",
    "ledger",
];

/// Writes down that this command was done, if it decides anything. That it cannot be written is told, and undoes nothing.
pub(crate) fn keep(commands: Command, args: &[OsString]) {
    let Ok(matches) = commands.try_get_matches_from(args) else { return };
    let (mut leaf, mut name) = (&matches, Vec::new());
    while let Some((sub, of)) = leaf.subcommand() {
        name.push(sub);
        leaf = of;
    }
    let name = name.join(" ");
    if !DECISIONS.contains(&&*name) || !decides(&name, leaf) {
        return;
    }
    let words: Vec<_> = args.iter().skip(1).map(|word| word.to_string_lossy()).collect();
    let path = folder(leaf).join(FILE);
    let mut options = fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&path).and_then(|mut file| {
        let line = json!({ "at": seconds_since_1970(), "uid": uid(&file), "login": login(), "did": words.join(" ") });
        file.write_all(format!("{line}\n").as_bytes())
    });
    if let Err(e) = written {
        let told = format!("warning: {} does not say that this was decided ({e})\n", files::quoted(&path));
        let _ = screen::print(told.as_bytes());
    }
}

/// Not where a ledger is only shown, or a plan made that nobody proposes.
fn decides(name: &str, leaf: &ArgMatches) -> bool {
    if name == "plan new" && leaf.try_get_one::<bool>("start").ok().flatten() != Some(&true) {
        return false;
    }
    !leaf.try_get_raw("what").ok().flatten().is_some_and(|mut words| words.any(|word| word == "show"))
}

/// The folder of the party: of its key, its federation or its roster.
fn folder(leaf: &ArgMatches) -> PathBuf {
    let named = |name: &str| leaf.try_get_one::<PathBuf>(name).ok().flatten();
    let beside = ["key", "roster"].into_iter().find_map(named).and_then(|file| file.parent());
    beside.or(named("folder").map(PathBuf::as_path)).unwrap_or(Path::new("")).to_owned()
}

/// The user of this process, whose file this is.
fn uid(file: &fs::File) -> Option<u32> {
    #[cfg(unix)]
    return file.metadata().ok().map(|about| std::os::unix::fs::MetadataExt::uid(&about));
    #[cfg(not(unix))]
    return file.metadata().ok().and(None);
}

/// Who has logged in, whatever user they have become since, where the system says so.
fn login() -> Option<u32> {
    let told = fs::read_to_string("/proc/self/loginuid").ok()?.trim().parse().ok();
    told.filter(|login| *login != u32::MAX)
}
