//! The book's page `docs/src/audit-path.md`: which files a claim rests on, in reading order, as the paths in the code say.

use std::{collections::BTreeSet, fmt::Write, fs, path::Path};

use crate::{
    reading_order::{Module, Tree, crates_tree, parts as path_of, resolve},
    source::{ROOT, read},
};

/// The roots of the crates in the order in which they are read.
const CRATES: [&str; 6] = [
    "crates/proto/src/lib.rs",
    "crates/door/src/lib.rs",
    "crates/contributions/src/lib.rs",
    "crates/cluster/src/lib.rs",
    "crates/federation/src/lib.rs",
    "crates/node/src/lib.rs",
];

/// A title, a claim, and the modules that its files begin at.
type Part = (&'static str, &'static str, &'static [&'static str]);

/// A part has the files that no part before it has.
const PARTS: [Part; 3] = [
    ("Masks", "What leaves a site's machine is masked, and masks come off a sum alone.", &["veilsum_proto::site"]),
    (
        "The door",
        "What is asked is answered if policy and account allow it, with noise. One row moves the answer by a bounded length, whatever \
         computes what it adds. The ledger has it first.",
        &["veilsum_door"],
    ),
    (
        "The site",
        "The process that reads rows, answers and follows the run: all else that it names.",
        &["veilsum_node::role::site_session"],
    ),
];

/// Lines of a file may be so many others before the page is out of date, or a tenth.
const SLACK: usize = 20;

/// Modules that these follow a path into, and so on.
fn closure(tree: &Tree, roots: &[&str]) -> BTreeSet<Vec<String>> {
    let roots: Vec<Vec<String>> = roots.iter().map(|root| path_of(root)).collect();
    let below = |module: &&Vec<String>| roots.iter().any(|root| module.starts_with(root));
    let mut open: Vec<Vec<String>> = tree.keys().filter(below).cloned().collect();
    let mut seen = BTreeSet::new();
    while let Some(module) = open.pop() {
        if seen.insert(module.clone()) {
            open.extend(tree[&module].follows.iter().filter_map(|written| resolve(tree, &module, written, 0)));
        }
    }
    seen
}

/// The files of each part, in reading order, with their lines.
fn parts() -> Vec<Vec<(String, usize)>> {
    let (tree, mut seen) = (crates_tree(&CRATES), BTreeSet::new());
    let mut files = |roots| {
        let mut part: Vec<(String, usize)> = Vec::new();
        for Module { file, lines, .. } in closure(&tree, roots).iter().map(|module| &tree[module]) {
            if seen.insert(file.clone()) {
                part.push((file.clone(), *lines));
            }
        }
        let place = |file: &str| CRATES.iter().position(|root| file.starts_with(root.trim_end_matches("lib.rs")));
        part.sort_by_key(|(file, _)| (place(file), file.clone()));
        part
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
        let from: Vec<String> = roots.iter().map(|root| format!("`{root}`")).collect();
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

/// Lines and files that an auditor reads of the masks and the door together at most.
const MOST: (usize, usize) = (6_800, 55);

#[test]
fn masks_and_door_are_read_in_two_days() {
    let both: Vec<(String, usize)> = parts().into_iter().take(2).flatten().collect();
    let (lines, files) = (both.iter().map(|(_, lines)| lines).sum::<usize>(), both.len());
    assert!(lines <= MOST.0 && files <= MOST.1, "{lines} lines in {files} files");
}

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
