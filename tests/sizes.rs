//! `sizes.toml`, the limits of what the project may grow to. Product lines have no blanks, comments and tests.

use std::collections::BTreeMap;

use crate::source::{Source, files, is_test, read};

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Sizes {
    /// Product lines of each package, by its folder.
    product: BTreeMap<String, usize>,
    /// Lines of tests, all packages together.
    tests: usize,
    /// Words of all Markdown, and of the specification's three parts.
    words: usize,
    specification: usize,
    rules: usize,
}

#[test]
fn nothing_is_larger_than_sizes_toml_allows() {
    let sizes: Sizes = toml::from_str(&read("sizes.toml")).expect("sizes.toml");
    let manifests = files("", "Cargo.toml");
    let packages: Vec<&str> = manifests.iter().filter_map(|file| file.strip_suffix("Cargo.toml")).collect();
    let (mut product, mut tests) = (BTreeMap::new(), 0);
    for file in files("", ".rs") {
        let package = packages.iter().filter(|package| file.starts_with(**package)).max_by_key(|package| package.len());
        let name = package.map(|package| package.trim_end_matches('/')).filter(|name| !name.is_empty());
        let (code, test) = Source::of(&read(&file)).lines;
        if is_test(&file) {
            tests += code + test;
        } else {
            *product.entry(name.unwrap_or("crates/cli").to_owned()).or_insert(0) += code;
            tests += test;
        }
    }
    let words = files("", ".md").iter().map(|file| read(file).split_whitespace().count()).sum();
    let spec: String = ["spec", "door", "documents"].map(|part| read(&format!("protocol/{part}.md"))).concat();
    let counted = [
        ("tests", tests, sizes.tests),
        ("words", words, sizes.words),
        ("specification", spec.split_whitespace().count(), sizes.specification),
        ("rules", spec.matches("\n**[").count(), sizes.rules),
    ];
    let of_packages =
        product.iter().map(|(name, lines)| (name.as_str(), *lines, sizes.product.get(name).copied().unwrap_or(0)));
    let mut larger = Vec::new();
    for (what, now, limit) in of_packages.chain(counted) {
        println!("{what}: {now} of {limit}");
        if now > limit {
            larger.push(format!("{what}: {now} of {limit}"));
        }
    }
    assert!(larger.is_empty(), "larger than sizes.toml allows; a commit that raises a limit says why: {larger:?}");
}
