//! The enum of rules lists those of the specification.

use std::{fs, path::PathBuf};

use veilsum_proto::Rule;

fn file(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &str) -> String {
    fs::read_to_string(file(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The rules in the order in which the specification lays them down, with the section of each.
fn laid_down() -> Vec<(String, String)> {
    let parts = ["spec", "door", "documents"].map(|part| read(&format!("../../protocol/{part}.md")));
    let mut section = "";
    let mut rules = Vec::new();
    for line in parts.iter().flat_map(|part| part.lines()) {
        if let Some((_, heading)) = line.split_once("## ") {
            section = heading.split(' ').next().unwrap_or_default().trim_end_matches('.');
        } else if let Some((rule, _)) = line.strip_prefix("**[").and_then(|rest| rest.split_once("]**")) {
            rules.push((rule.to_owned(), section.to_owned()));
        }
    }
    rules
}

/// The source of the enum with the list that the specification asks for.
fn written() -> String {
    let source = read("src/rule.rs");
    let (head, _) = source.split_once("\nrules! {\n").expect("the list");
    let variant = |name: &str| format!("{}{}{}", &name[..1], name[1..3].to_lowercase(), &name[4..]);
    let section = |rules: &[(String, String)]| {
        let names: Vec<String> = rules.iter().map(|(name, _)| format!("{} \"{name}\"", variant(name))).collect();
        let lines: Vec<String> = names.chunks(6).map(|some| some.join(", ")).collect();
        format!("    \"{}\": {};\n", rules[0].1, lines.join(",\n        "))
    };
    let all = laid_down();
    format!("{head}\nrules! {{\n{}}}\n", all.chunk_by(|a, b| a.1 == b.1).map(section).collect::<String>())
}

#[test]
fn the_enum_lists_every_rule() {
    let (now, source) = (written(), read("src/rule.rs"));
    let first = source.lines().zip(now.lines()).find(|(a, b)| a != b);
    assert!(
        source == now,
        "src/rule.rs does not list the rules, first at {first:?}; its first lines say how it is written"
    );
    let names: Vec<String> = laid_down().into_iter().map(|(name, _)| name).collect();
    assert!(names.len() > 140 && Rule::ALL.iter().map(|rule| rule.to_string()).eq(names), "{:?}", Rule::ALL);
}

/// Not a test: it writes the list that the test beside it compares. Run it after a rule has come or gone.
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
    for text in ["", "KEX-", concat!("KEX", "-0"), "kex-3", "[KEX-3]", "KEX-3 ", "ABC-1"] {
        assert!(text.parse::<Rule>().is_err(), "{text:?}");
        assert!(serde_json::from_value::<Rule>(text.into()).is_err(), "{text:?}");
    }
}
