//! The words and keys of "One round in numbers" of the specification follow from the shares and seeds of the vectors.
//! (That its values are those of the vectors is shown in the product's `tests/spec_round.rs`.)

use std::path::Path;

use serde_json::Value;
use veilsum_proto::{identity::from_hex, suite::Hash, vectors_api as api};

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../protocol").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn section() -> String {
    let spec = read("spec.md");
    let (_, after) = spec.split_once("### 10.8 One round in numbers").expect("the section");
    after.split("\n## ").next().unwrap_or_default().to_owned()
}

fn array(hex: &str) -> [u8; 32] {
    from_hex(hex).and_then(|b| b.try_into().ok()).unwrap_or_else(|| panic!("not 32 bytes: {hex}"))
}

/// The value in the line of the code block that begins with `label`.
fn block(section: &str, label: &str) -> String {
    let line = section.lines().find(|l| l.split_whitespace().next() == Some(label));
    line.unwrap_or_else(|| panic!("no line {label}")).split_whitespace().nth(1).expect("a value").to_owned()
}

fn first_word(key: [u8; 32]) -> u64 {
    let mut word = [0];
    api::mask(&mut word, &key, None);
    word[0]
}

#[test]
fn the_seed_comes_out_of_the_shares_and_the_key_out_of_the_seed() {
    let text = section();
    let session: Value = serde_json::from_str(&read("vectors/v4/session_3.json")).expect("JSON");
    let shares = ["f(1)", "f(2)", "f(3)"].map(|label| array(&block(&text, label)));
    let seed = api::recover(&[0, 1, 2], &shares);
    assert_eq!(seed, array(&block(&text, "b")));
    let context = Hash(array(session["rounds"][1]["context"].as_str().unwrap()));
    let key = api::self_mask_key(&seed, &context);
    assert_eq!(key, array(&block(&text, "s(1)")));
    assert_eq!(first_word(key).to_le_bytes().to_vec(), from_hex(&block(&text, "stream")).unwrap());
}

#[test]
fn the_streams_in_the_table_are_those_of_the_keys() {
    let text = section();
    let session: Value = serde_json::from_str(&read("vectors/v4/session_3.json")).expect("JSON");
    let (_, table) = text.split_once("| site | x |").expect("the words");
    for (site, line) in table.lines().skip(2).take(3).enumerate() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let round = &session["rounds"][site];
        let key = |v: &Value| array(v.as_str().expect("a key"));
        assert_eq!(cells[2], format!("+ `{:016x}`", first_word(key(&round["self_key"]))));
        for (column, (low, high)) in [(3, (0, 1)), (4, (0, 2)), (5, (1, 2))] {
            let Some((sign, other)) = [('+', low, high), ('−', high, low)]
                .into_iter()
                .find_map(|(sign, me, other)| (site == me).then_some((sign, other)))
            else {
                assert_eq!(cells[column], "", "site {site} is not of this pair");
                continue;
            };
            let stream = first_word(key(&round["round_seeds"][other.to_string()]));
            assert_eq!(cells[column], format!("{sign} `{stream:016x}`"), "site {site} with {other}");
        }
    }
}
