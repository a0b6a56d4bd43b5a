//! `sizes.toml`, the limits of what the project may grow to. Product lines have no blanks, comments and tests.

use std::{collections::BTreeMap, fs, path::Path};

use crate::reading_order::ROOT;

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

/// Folders and files whose lines are tests.
fn is_test(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
    let named = ["test", "tests", "proptest", "proptests"].contains(&file)
        || file.starts_with("test_")
        || file.ends_with("_test")
        || file.ends_with("_tests");
    named || path.split('/').any(|part| ["test", "tests", "benches", "examples", "fuzz", "testkit"].contains(&part))
}

/// The length of the string or character that the text begins with.
fn literal(text: &str) -> Option<usize> {
    let bare = text.trim_start_matches(['b', 'c']);
    let prefix = text.len() - bare.len();
    if let Some(raw) = bare.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        let begin = prefix + 1 + hashes + 1;
        let end = format!("\"{}", "#".repeat(hashes));
        return raw[hashes..].starts_with('"').then(|| begin + text[begin..].find(&end).map_or(0, |at| at + end.len()));
    }
    let quoted = |begin: usize, quote: char| {
        let mut escaped = false;
        let end = text[begin..].find(|c| {
            let ends = c == quote && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        begin + end.map_or(0, |at| at + 1)
    };
    match bare.chars().next() {
        Some('"') if prefix <= 1 => Some(quoted(prefix + 1, '"')),
        Some('\'') if bare[1..].starts_with('\\') || bare.chars().nth(2) == Some('\'') => {
            Some(quoted(prefix + 1, '\''))
        }
        _ => None,
    }
}

/// The text with comments and literals blank, and for each line whether it has code.
fn lexed(text: &str) -> (String, Vec<bool>) {
    let (mut out, mut code) = (String::with_capacity(text.len()), vec![false]);
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let in_name = out.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let comment = match rest.get(..2) {
            Some("//") => rest.find('\n').or(Some(rest.len())),
            Some("/*") => Some(rest.find("*/").map_or(rest.len(), |at| at + 2)),
            _ => None,
        };
        let blank = comment.or_else(|| literal(rest).filter(|_| !in_name));
        let (token, after) = rest.split_at(blank.unwrap_or(first.len_utf8()));
        for c in token.chars() {
            let shown = if blank.is_some() && c != '\n' { ' ' } else { c };
            out.push(shown);
            if c == '\n' {
                code.push(false);
            }
            *code.last_mut().expect("a line") |= comment.is_none() && (blank.is_some() || !c.is_whitespace());
        }
        rest = after;
    }
    (out, code)
}

/// Product and test lines of a source.
fn lines(text: &str) -> (usize, usize) {
    let (masked, code) = lexed(text);
    let line_of = |at: usize| masked[..at].matches('\n').count();
    let mut tests = vec![false; code.len()];
    for (at, _) in masked.match_indices("#[cfg(test)]").chain(masked.match_indices("#[cfg(all(test")) {
        let open = masked[at..].find(['{', ';']).map_or(masked.len() - 1, |found| at + found);
        let mut depth = 0;
        let end = masked[open..].char_indices().find(|(_, c)| {
            depth += i32::from(*c == '{') - i32::from(*c == '}');
            depth == 0
        });
        let last = line_of(open + end.map_or(0, |(at, _)| at));
        tests[line_of(at)..=last].fill(true);
    }
    let all = code.iter().filter(|code| **code).count();
    let of_tests = code.iter().zip(&tests).filter(|(code, test)| **code && **test).count();
    (all - of_tests, of_tests)
}

fn walk(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !["target", ".git", "book"].contains(&name.as_str()) {
                walk(&path, found);
            }
        } else {
            found.push(path.strip_prefix(ROOT).expect("in the checkout").to_string_lossy().into_owned());
        }
    }
}

#[test]
fn nothing_is_larger_than_sizes_toml_allows() {
    let read =
        |path: &str| fs::read_to_string(Path::new(ROOT).join(path)).unwrap_or_else(|why| panic!("{path}: {why}"));
    let sizes: Sizes = toml::from_str(&read("sizes.toml")).expect("sizes.toml");
    let mut files = Vec::new();
    walk(Path::new(ROOT), &mut files);
    let packages: Vec<&str> = files.iter().filter_map(|file| file.strip_suffix("/Cargo.toml")).collect();
    let (mut product, mut tests, mut words) = (BTreeMap::new(), 0, 0);
    for file in &files {
        if file.ends_with(".md") {
            words += read(file).split_whitespace().count();
        } else if file.ends_with(".rs") {
            let package = packages
                .iter()
                .filter(|package| file.starts_with(&format!("{package}/")))
                .max_by_key(|package| package.len());
            let text = read(file);
            let (code, test) = lines(&text);
            if is_test(file) {
                tests += code + test;
            } else {
                *product.entry(package.map_or("crates/cli", |package| package).to_owned()).or_insert(0) += code;
                tests += test;
            }
        }
    }
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

#[test]
fn comments_blanks_and_tests_are_no_product_lines() {
    let text = "//! a\n\nfn a() { // b\n    let s = \"//\n\"; /* c\n d */\n}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nconst C: char = '\"';\n/// d\nfn e<'a>(r: &'a str) -> &'a str { r#\"{\"# }\n";
    assert_eq!(lines(text), (6, 4));
}
