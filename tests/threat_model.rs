//! The threat model says what shows each of its claims. Here: that what it names exists, that no row is left without, and that
//! no attack of the audit is left out.

use std::collections::BTreeSet;

use crate::source::{files, read, there};

fn model() -> String {
    read("threat-model.md")
}

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Names of the audit's attacks, as their sources have them.
fn attacks() -> BTreeSet<String> {
    let sources: String = files("crates/audit/src", ".rs").iter().map(|file| read(file)).collect();
    let names = sources.lines().filter_map(|line| line.strip_prefix("    name: \"")?.strip_suffix("\","));
    let found: BTreeSet<String> = names.map(str::to_owned).collect();
    assert!(found.len() >= 9, "{found:?}");
    found
}

/// Rows of the tables under a heading, without head and rule, as their cells.
fn table(model: &str, heading: &str) -> Vec<Vec<String>> {
    let (_, part) = model.split_once(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no section {heading:?}"));
    let part = part.split("\n## ").next().unwrap_or_default();
    let rows = part.lines().filter(|line| line.starts_with('|')).skip(2);
    let found: Vec<Vec<String>> =
        rows.map(|row| row.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect()).collect();
    assert!(!found.is_empty(), "no table under {heading:?}");
    found
}

/// Whether a reference is one to something that exists: a file or folder, a test in a file, an attack.
fn exists(reference: &str) -> bool {
    if let Some(name) = reference.strip_prefix("veilsum-audit ") {
        return attacks().contains(name);
    }
    let (path, test) = reference.split_once("::").unwrap_or((reference, ""));
    match path.split_once('*') {
        Some((start, _)) => {
            let folder = start.rsplit_once('/').map_or("", |(folder, _)| folder);
            there(folder) && files(folder, "").iter().any(|file| file.starts_with(start))
        }
        None => there(path) && (test.is_empty() || read(path).contains(&format!("fn {test}("))),
    }
}

/// What a cell refers to.
fn references(cell: &str) -> Vec<&str> {
    let known = |text: &&str| {
        text.starts_with("veilsum-audit ")
            || !text.contains(' ')
                && ["crates/", "tests/", "protocol/", "secrets/", "fuzz/", "examples/"]
                    .iter()
                    .any(|p| text.starts_with(p))
    };
    quoted(cell).filter(known).collect()
}

#[test]
fn every_claim_names_what_shows_it() {
    let model = model();
    for heading in ["Who learns what", "Boundaries"] {
        for row in table(&model, heading) {
            let shown = row.last().expect("a cell");
            let said = ["*argued*", "–", "spec section"].iter().any(|word| shown.contains(word));
            let found = references(shown);
            assert!(said || !found.is_empty(), "{heading}: nothing shows {:?}", &row[..row.len() - 1]);
        }
    }
}

#[test]
fn every_reference_exists() {
    let mut seen = 0;
    for document in ["threat-model.md", "README.md", "CONTRIBUTING.md", "SECURITY.md"] {
        let text = read(document);
        for reference in references(&text).into_iter().filter(|found| !found.contains("TARGET")) {
            seen += 1;
            assert!(exists(reference), "{document} refers to {reference}, which does not exist");
        }
    }
    assert!(seen > 60, "{seen}");
    for made_up in
        ["tests/nothing.rs", "tests/threat_model.rs::nothing", "veilsum-audit nothing", "crates/nothing_*.rs"]
    {
        assert!(!exists(made_up), "{made_up}");
    }
    assert!(exists("tests/threat_model.rs::every_reference_exists"));
}

#[test]
fn no_attack_is_left_out() {
    // Every row begins with the name of the attack that shows it.
    let rows = table(&model(), "Attacks that are run");
    let cited: BTreeSet<String> = rows.iter().filter_map(|row| quoted(&row[0]).next()).map(str::to_owned).collect();
    assert!(rows.iter().all(|row| row[0].starts_with('`')), "{rows:?}");
    assert_eq!(cited, attacks());
}
