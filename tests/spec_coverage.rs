//! Every rule of the specification is cited by code and by a test, and every rule that either cites is in the specification.

use std::collections::BTreeSet;

use crate::source::{PRODUCT, Source, files, is_test, product, read};

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
    ["spec", "door", "documents"].map(|part| read(&format!("protocol/{part}.md"))).join("\n")
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

/// Every rule is cited, and nothing cites a rule that is not there. SHA-256 is a hash, not a rule; two digits at most keep it out.
fn same(cited: &BTreeSet<String>, by: &str) {
    let spec = laid_down(&specification());
    assert!(spec.len() > 60, "only {} rules found", spec.len());
    let known: BTreeSet<&str> = spec.iter().map(|id| &id[..3]).collect();
    let dangling: Vec<_> = cited.iter().filter(|id| known.contains(&id[..3]) && !spec.contains(*id)).collect();
    assert!(dangling.is_empty(), "cited, but not in the specification: {dangling:?}");
    let uncited: Vec<_> = spec.difference(cited).collect();
    assert!(uncited.is_empty(), "in the specification, but cited by no {by}: {uncited:?}");
}

/// The product alone: what stands in a module of tests is the other test's, and the list of all rules cites none.
#[test]
fn rules_and_code_agree() {
    let of_code = product(PRODUCT).into_iter().filter(|(file, _)| !file.ends_with("proto/src/rule.rs"));
    same(&of_code.flat_map(|(_, source)| cited(&source.text)).collect(), "code");
}

/// Test files, modules of tests, and the rules that the vectors refuse under.
#[test]
fn rules_and_tests_agree() {
    let mut found = cited(&read("crates/proto/tests/known_lies.txt"));
    for file in files("tests", ".rs").into_iter().chain(files("crates", ".rs")) {
        // These files name rules, and test none.
        if !["tests/spec_coverage.rs", "crates/proto/tests/bad_vectors.rs"].contains(&&*file) {
            let text = read(&file);
            found.extend(cited(&if is_test(&file) { text } else { Source::of(&text).tests }));
        }
    }
    for file in files("protocol/vectors/v4", "") {
        let text = read(&file);
        found.extend(text.split("\"rule\": \"").skip(1).filter_map(|s| s.split('"').next()).flat_map(ids));
    }
    same(&found, "test and no vector");
}
