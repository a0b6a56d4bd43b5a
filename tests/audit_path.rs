//! The book's page `docs/src/audit-path.md`: which files a claim rests on, in reading order, as the paths in the code say.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    fs,
    path::Path,
};

use crate::{
    reading_order::{Module, Tree, crate_tree, resolve},
    source::{ROOT, read},
};

/// The crates in the order in which they are read.
const CRATES: [(&str, &str); 4] = [
    ("veilsum_proto", "crates/proto/src/lib.rs"),
    ("veilsum_cluster", "crates/cluster/src/lib.rs"),
    ("veilsum_federation", "crates/federation/src/lib.rs"),
    ("veilsum_node", "crates/node/src/lib.rs"),
];

/// A title, a claim, and the modules that its files begin at: a crate, and a path in it.
type Part = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// A part has the files that no part before it has.
const PARTS: [Part; 3] = [
    ("Masks", "What leaves a site's machine is masked, and masks come off a sum alone.", &[("veilsum_proto", "site")]),
    (
        "The door",
        "What is asked is answered if policy, account and blocks allow it, with noise, and the ledger has it first.",
        &[("veilsum_federation", "release"), ("veilsum_node", "egress"), ("veilsum_node", "store::ledger")],
    ),
    (
        "The site",
        "The process that reads rows, answers and follows the run: all else that it names.",
        &[("veilsum_node", "role::site_session")],
    ),
];

/// Lines of a file may be so many others before the page is out of date, or a tenth.
const SLACK: usize = 20;

type Place = (&'static str, Vec<String>);

/// The module that a written path leads to, in whichever crate.
fn target(trees: &BTreeMap<&'static str, Tree>, (name, here): &Place, written: &[String]) -> Option<Place> {
    let tree = &trees[name];
    if let Some(found) = resolve(tree, here, written, 0) {
        return Some((name, found));
    }
    if let Some((other, tree)) = trees.get_key_value(written[0].as_str()) {
        let inside = [&["crate".to_owned()], &written[1..]].concat();
        return resolve(tree, &[], &inside, 0)
            .map(|found| (*other, found))
            .or_else(|| handed(trees, other, &[], &inside[1..]));
    }
    match written[0].as_str() {
        "crate" => handed(trees, name, &[], &written[1..]),
        "super" => handed(trees, name, &here[..here.len().checked_sub(1)?], &written[1..]),
        "self" => handed(trees, name, here, &written[1..]),
        _ => handed(trees, name, here, written),
    }
}

/// Where a path goes on that a module has from another crate.
fn handed(trees: &BTreeMap<&'static str, Tree>, name: &'static str, at: &[String], rest: &[String]) -> Option<Place> {
    let child = [at, rest.get(..1)?].concat();
    if trees[name].contains_key(&child) {
        return handed(trees, name, &child, &rest[1..]);
    }
    let taken = trees[name][at].takes.get(&rest[0])?;
    // `use memchr::memchr`: the first name is that of another crate.
    if taken[0] == rest[0] { None } else { target(trees, &(name, at.to_vec()), &[taken, &rest[1..]].concat()) }
}

/// Modules that these follow a path into, and so on.
fn closure(trees: &BTreeMap<&'static str, Tree>, roots: &[(&'static str, &str)]) -> BTreeSet<Place> {
    let mut open: Vec<Place> = Vec::new();
    for (name, root) in roots {
        let path: Vec<String> = root.split("::").map(str::to_owned).collect();
        let below = trees[name].keys().filter(|module| module.starts_with(&path));
        open.extend(below.map(|module| (*name, module.clone())));
    }
    let mut seen = BTreeSet::new();
    while let Some(place) = open.pop() {
        if seen.insert(place.clone()) {
            let follows = &trees[place.0][&place.1].follows;
            open.extend(follows.iter().filter_map(|written| target(trees, &place, written)));
        }
    }
    seen
}

/// The files of each part, in reading order, with their lines.
fn parts() -> Vec<Vec<(String, usize)>> {
    let trees = CRATES.into_iter().map(|(name, root)| (name, crate_tree(root))).collect();
    let mut seen = BTreeSet::new();
    let mut files = |roots| {
        let mut part = Vec::new();
        for (name, module) in closure(&trees, roots) {
            let Module { file, lines, .. } = &trees[name][&module];
            if seen.insert(file.clone()) {
                let place = CRATES.iter().position(|(known, _)| *known == name).expect("a crate");
                part.push((place, file.clone(), *lines));
            }
        }
        part.sort();
        part.into_iter().map(|(_, file, lines)| (file, lines)).collect()
    };
    PARTS.map(|(.., roots)| files(roots)).into()
}

fn page() -> String {
    let mut text = String::from(
        "# The audit path\n\n\
         Which files a claim rests on, as the paths in the code say: every module that one of them names is in the list, but for \
         other people's crates. `tests/audit_path.rs` makes this page. Behind a file stand its lines, without blanks, comments and \
         tests.\n",
    );
    let (all, mut before) = (parts(), 0);
    for ((title, claim, roots), files) in PARTS.iter().zip(&all) {
        let lines: usize = files.iter().map(|(_, lines)| lines).sum();
        before += lines;
        let from: Vec<String> = roots.iter().map(|(name, module)| format!("`{name}::{module}`")).collect();
        let _ = write!(
            text,
            "\n## {title}\n\n{claim} It begins at {}. About {lines} lines in {} files; with the parts before it {before}.\n",
            from.join(", "),
            files.len()
        );
        let mut folder = "";
        for (file, lines) in files {
            // A line for each file, so that two changes of the page merge.
            let (of, rest) = file.split_at(file.find("/src/").expect("a source of a crate") + "/src/".len());
            if folder != of {
                let _ = write!(text, "\nIn `{of}`:\n");
            }
            folder = of;
            let _ = writeln!(text, "`{rest}` {lines},");
        }
    }
    // The last of a folder has none.
    text.replace(",\n\n", "\n\n").trim_end_matches(",\n").to_owned() + "\n"
}

/// A page's files with their lines.
fn rows(text: &str) -> Vec<(String, usize)> {
    let mut root = "";
    let mut found = Vec::new();
    for line in text.lines() {
        if let Some(named) = line.strip_prefix("In `").and_then(|rest| rest.strip_suffix("`:")) {
            root = named;
        } else if let Some((file, lines)) = line.strip_prefix('`').and_then(|rest| rest.split_once("` "))
            && let Ok(lines) = lines.trim_end_matches(',').parse()
        {
            found.push((format!("{root}{file}"), lines));
        }
    }
    found
}

const PAGE: &str = "docs/src/audit-path.md";

#[test]
fn the_page_lists_what_the_claims_rest_on() {
    let (shown, now) = (rows(&read(PAGE)), rows(&page()));
    let names = |rows: &[(String, usize)]| rows.iter().map(|(file, _)| file.clone()).collect::<Vec<_>>();
    let write = "`cargo test --test documents write_the_audit_path -- --ignored` writes the page";
    assert_eq!(names(&shown), names(&now), "{write}");
    for ((file, shown), (_, now)) in shown.iter().zip(&now) {
        assert!(shown.abs_diff(*now) <= SLACK.max(now / 10), "{file} has {now} lines, the page says {shown}; {write}");
    }
    // A site's machine names neither rows nor statistics nor a network.
    assert!(parts()[0].iter().all(|(file, _)| file.starts_with("crates/proto/src/")));
}

/// Not a test: it writes the page that the test above compares.
#[test]
#[ignore = "writes docs/src/audit-path.md"]
fn write_the_audit_path() {
    fs::write(Path::new(ROOT).join(PAGE), page()).expect("the page can be written");
}
