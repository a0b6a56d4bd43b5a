//! Every rule of the specification is cited by code and by a test, every rule that either cites is in the specification,
//! and every file that the threat model points to exists.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn rust_files(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            rust_files(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

/// Three capitals, a dash, digits: `KEX-3`, wherever it stands; in code also as `Rule::Kex3`.
fn ids(text: &str) -> BTreeSet<String> {
    let named = text.split("Rule::").skip(1).filter_map(|rest| {
        let name = rest.split(|c: char| !c.is_ascii_alphanumeric()).next()?;
        Some(format!("{}-{}", name.get(..3)?.to_uppercase(), name.get(3..)?))
    });
    let bytes = text.as_bytes();
    let mut out: BTreeSet<String> = named.filter(|id| id.parse::<veilsum_proto::Rule>().is_ok()).collect();
    for i in 0..bytes.len().saturating_sub(4) {
        let before = i == 0 || !(bytes[i - 1].is_ascii_alphanumeric() || bytes[i - 1] == b'-');
        let letters = bytes[i..i + 3].iter().all(u8::is_ascii_uppercase);
        if before && letters && bytes[i + 3] == b'-' {
            let digits: String = text[i + 4..].chars().take_while(char::is_ascii_digit).collect();
            if !digits.is_empty() && digits.len() <= 2 {
                out.insert(format!("{}-{digits}", &text[i..i + 3]));
            }
        }
    }
    out
}

/// The specification's three parts.
fn specification() -> String {
    ["spec", "door", "documents"].map(|part| read(root().join(format!("protocol/{part}.md")))).join("\n")
}

/// Rules are set in bold where they are laid down.
fn laid_down(spec: &str) -> BTreeSet<String> {
    spec.split("**[").skip(1).filter_map(|s| s.split_once("]**")).map(|(id, _)| id.to_owned()).collect()
}

/// The rules that a text cites; ranges such as "[MSK-1] to [MSK-4]" cite what lies between.
fn cited(text: &str) -> BTreeSet<String> {
    let mut cited = ids(text);
    for (from, to) in text.split(" to [").zip(text.split(" to [").skip(1)) {
        let from = ids(&from[from.len().saturating_sub(12)..]);
        let to = ids(&to[..to.len().min(12)]);
        if let (Some(a), Some(b)) = (from.last(), to.first())
            && a[..4] == b[..4]
            && let (Ok(low), Ok(high)) = (a[4..].parse::<u32>(), b[4..].parse::<u32>())
        {
            cited.extend((low..=high).map(|n| format!("{}{n}", &a[..4])));
        }
    }
    cited
}

/// Nothing cites a rule that is not there. SHA-256 is a hash, not a rule; two digits at most keep it out.
fn none_dangles(cited: &BTreeSet<String>, spec: &BTreeSet<String>) {
    let known: BTreeSet<&str> = spec.iter().map(|id| &id[..3]).collect();
    let dangling: Vec<_> = cited.iter().filter(|id| known.contains(&id[..3]) && !spec.contains(*id)).collect();
    assert!(dangling.is_empty(), "cited, but not in the specification: {dangling:?}");
}

#[test]
fn rules_and_code_agree() {
    let spec = laid_down(&specification());
    assert!(spec.len() > 60, "only {} rules found", spec.len());
    let mut files = Vec::new();
    for folder in ["crates/proto/src", "crates/node/src", "crates/federation/src", "crates/cli", "crates/cluster/src"] {
        rust_files(&root().join(folder), &mut files);
    }
    // The product alone: what stands in a module of tests is the other test's, and the list of all rules cites none.
    files.retain(|file| !is_test(file) && !file.ends_with("proto/src/rule.rs"));
    let cited: BTreeSet<String> = files.iter().flat_map(|file| cited(product_and_tests(&read(file)).0)).collect();
    none_dangles(&cited, &spec);
    let uncited: Vec<_> = spec.difference(&cited).collect();
    assert!(uncited.is_empty(), "in the specification, but cited by no code: {uncited:?}");
}

/// Whether a source is a module of tests or in a folder of them.
fn is_test(file: &Path) -> bool {
    file.strip_prefix(root()).is_ok_and(|file| file.iter().any(|part| part == "tests" || part == "tests.rs"))
}

/// A source without its module of tests, and that module.
fn product_and_tests(text: &str) -> (&str, &str) {
    text.split_at(text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len()))
}

/// [`rules_and_code_agree`] for tests: test files, modules of tests, and the rules that the vectors refuse under.
#[test]
fn rules_and_tests_agree() {
    let spec = laid_down(&specification());
    let mut found = BTreeSet::new();
    let mut files = Vec::new();
    for folder in ["tests", "proto/tests", "cluster/tests", "lab/tests", "audit/tests", "testkit/src"] {
        let folder = if folder == "tests" { folder.to_owned() } else { format!("crates/{folder}") };
        rust_files(&root().join(folder), &mut files);
    }
    // These files name rules, and test none.
    files.retain(|file| !file.ends_with("spec_coverage.rs") && !file.ends_with("bad_vectors.rs"));
    found.extend(files.iter().flat_map(|file| cited(&read(file))));
    let mut sources = Vec::new();
    for folder in crate::SOURCES {
        rust_files(&root().join(folder), &mut sources);
    }
    for file in &sources {
        let text = read(file);
        let tests = if is_test(file) { &text[..] } else { product_and_tests(&text).1 };
        found.extend(cited(tests));
    }
    for file in fs::read_dir(root().join("protocol/vectors/v4")).expect("the vectors").flatten() {
        let text = read(file.path());
        found.extend(text.split("\"rule\": \"").skip(1).filter_map(|s| s.split('"').next()).flat_map(ids));
    }
    none_dangles(&found, &spec);
    let untested: Vec<_> = spec.difference(&found).collect();
    assert!(untested.is_empty(), "in the specification, but cited by no test and no vector: {untested:?}");
}

#[test]
fn the_threat_model_points_to_what_exists() {
    for document in ["threat-model.md", "README.md", "CONTRIBUTING.md", "SECURITY.md"] {
        let text = read(root().join(document));
        for quoted in text.split('`').skip(1).step_by(2) {
            let named = ["crates/", "tests/", "protocol/", "examples/"].iter().any(|p| quoted.starts_with(p));
            if !named || quoted.contains(' ') {
                continue;
            }
            let exists = match quoted.split_once('*') {
                None => root().join(quoted).exists(),
                Some((start, _)) => {
                    let path = root().join(start);
                    let (folder, name) = (path.parent().unwrap(), path.file_name().unwrap().to_string_lossy());
                    fs::read_dir(folder).unwrap().flatten().any(|e| e.file_name().to_string_lossy().starts_with(&*name))
                }
            };
            assert!(exists, "{document} points to {quoted}, which does not exist");
        }
    }
}
