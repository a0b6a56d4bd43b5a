//! The threat model says what shows each of its claims. Here: that what it names exists, that no row is left without, and that
//! no attack of the audit is left out.

use std::{collections::BTreeSet, fs, path::PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn model() -> String {
    fs::read_to_string(root().join("threat-model.md")).expect("the threat model")
}

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Names of the audit's attacks, as their sources have them.
fn attacks() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let folder = root().join("crates/audit/src");
    for file in fs::read_dir(&folder).expect("the audit").flatten() {
        let Ok(text) = fs::read_to_string(file.path()) else { continue };
        let names = text.lines().filter_map(|line| line.strip_prefix("    name: \"")?.strip_suffix("\","));
        found.extend(names.map(str::to_owned));
    }
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

/// Whether a reference is one to something that exists: a file, a test in a file, an attack.
fn exists(reference: &str) -> bool {
    if let Some(name) = reference.strip_prefix("veilsum-audit ") {
        return attacks().contains(name);
    }
    let (path, test) = reference.split_once("::").map_or((reference, None), |(path, test)| (path, Some(test)));
    let file = root().join(path);
    match (path.split_once('*'), test) {
        (Some((start, _)), _) => {
            let path = root().join(start);
            let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return false };
            let name = name.to_string_lossy().into_owned();
            fs::read_dir(folder)
                .is_ok_and(|list| list.flatten().any(|e| e.file_name().to_string_lossy().starts_with(&name)))
        }
        (None, None) => file.is_file(),
        (None, Some(test)) => fs::read_to_string(file).is_ok_and(|text| text.contains(&format!("fn {test}("))),
    }
}

/// What a cell refers to.
fn references(cell: &str) -> Vec<&str> {
    let known = |text: &&str| {
        text.starts_with("veilsum-audit ")
            || ["crates/", "tests/", "protocol/", "secrets/", "fuzz/"].iter().any(|p| text.starts_with(p))
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
    let model = model();
    let all = references(&model);
    assert!(all.len() > 40, "{}", all.len());
    for reference in all {
        assert!(exists(reference), "the threat model refers to {reference}, which does not exist");
    }
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
