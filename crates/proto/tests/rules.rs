//! The enum of rules is the specification's index.

use std::{fs, path::PathBuf};

use veilsum_proto::Rule;

fn file(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &str) -> String {
    fs::read_to_string(file(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The rules of the index in their order, with the section of each.
fn index() -> Vec<(String, String)> {
    let spec = read("../../protocol/spec.md");
    let (_, index) = spec.split_once("## 16. Index of rules").expect("an index");
    let index = index.split("\n## ").next().unwrap_or_default();
    let rows = index.lines().filter_map(|row| row.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    let rules = rows.skip(1).flat_map(|(_, rules)| rules.split(", "));
    rules.map(|rule| rule.split_once(": ").expect("rule: section")).map(|(a, b)| (a.into(), b.into())).collect()
}

/// The source of the enum with the list that the index asks for.
fn written() -> String {
    let source = read("src/rule.rs");
    let (head, _) = source.split_once("\nrules! {\n").expect("the list");
    let variant = |name: &str| format!("{}{}{}", &name[..1], name[1..3].to_lowercase(), &name[4..]);
    let line = |(name, section): (String, String)| format!("    {} \"{name}\" \"{section}\"\n", variant(&name));
    format!("{head}\nrules! {{\n{}}}\n", index().into_iter().map(line).collect::<String>())
}

#[test]
fn the_enum_is_the_index() {
    let (now, source) = (written(), read("src/rule.rs"));
    let first = source.lines().zip(now.lines()).find(|(a, b)| a != b);
    assert!(source == now, "src/rule.rs is not the index, first at {first:?}; its first lines say how it is written");
    let names: Vec<String> = index().into_iter().map(|(name, _)| name).collect();
    assert!(names.len() > 150 && Rule::ALL.iter().map(|rule| rule.to_string()).eq(names), "{:?}", Rule::ALL);
}

/// Not a test: it writes the list that the test beside it compares. Run it after the index has changed.
#[test]
#[ignore = "it writes crates/proto/src/rule.rs, and no test run changes sources"]
fn write_the_rules() {
    fs::write(file("src/rule.rs"), written()).expect("the list can be written");
}

/// The wire and files hold a rule's name, and no other text is one.
#[test]
fn a_rule_is_its_name() {
    for rule in Rule::ALL {
        assert_eq!((rule.name().parse(), serde_json::json!(rule)), (Ok(*rule), rule.name().into()));
    }
    for text in [
        "",
        "KEX",
        "KEX-",
        concat!("KEX", "-0"),
        concat!("KEX", "-03"),
        "kex-3",
        "[KEX-3]",
        "KEX-3 ",
        "ABC-1",
        concat!("KEX", "-99"),
    ] {
        assert!(text.parse::<Rule>().is_err(), "{text:?}");
        assert!(serde_json::from_value::<Rule>(text.into()).is_err(), "{text:?}");
    }
}
