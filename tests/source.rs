//! The project's files as the tests of this program read them, and a Rust source taken apart.

use std::{fs, path::Path};

pub(crate) const ROOT: &str = env!("CARGO_MANIFEST_DIR");

pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join(path)).unwrap_or_else(|why| panic!("{path}: {why}"))
}

pub(crate) fn there(path: &str) -> bool {
    Path::new(ROOT).join(path).exists()
}

/// All files below a folder whose names end so, in order, as paths from the root. What a build or a run makes is left out.
pub(crate) fn files(folder: &str, ending: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(Path::new(ROOT).join(&folder)).expect("a folder") {
            let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            if !Path::new(ROOT).join(&path).is_dir() {
                found.extend(name.ends_with(ending).then_some(path));
            } else if !["target", ".git", "book"].contains(&&*name) && !name.starts_with("veilsum-out") {
                open.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Whether a file is of tests alone.
pub(crate) fn is_test(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
    let named = ["test", "tests", "proptest", "proptests"].contains(&file)
        || file.starts_with("test_")
        || file.ends_with("_test")
        || file.ends_with("_tests");
    named || path.split('/').any(|part| ["test", "tests", "benches", "examples", "fuzz", "testkit"].contains(&part))
}

/// Folders of the crates that a site's program is made of, but for charts.
pub(crate) const PRODUCT: &str = "node/src cli federation/src proto/src door/src cluster/src";

/// Sources of these folders of crates that are not of tests alone, with their paths.
pub(crate) fn product(folders: &str) -> Vec<(String, Source)> {
    let folders = folders.split(' ').map(|folder| format!("crates/{folder}"));
    let all = folders.flat_map(|folder| files(&folder, ".rs")).filter(|path| !is_test(path));
    let found: Vec<_> = all.map(|path| (Source::of(&read(&path)), path)).map(|(source, path)| (path, source)).collect();
    assert!(found.len() > 3, "only {} sources", found.len());
    found
}

/// A source without what only tests compile.
#[derive(Default)]
pub(crate) struct Source {
    /// Its code: comments and literals are blanked.
    pub(crate) code: String,
    /// Its lines as they stand in the file, and those that only tests compile.
    pub(crate) text: String,
    pub(crate) tests: String,
    /// How many of either have code.
    pub(crate) lines: (usize, usize),
    /// Its literal texts. The lines that one is written over are one text.
    pub(crate) texts: Vec<String>,
}

impl Source {
    pub(crate) fn of(text: &str) -> Source {
        let (mut masked, mut code, mut texts) = (String::with_capacity(text.len()), vec![false], Vec::new());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let in_name = masked.ends_with(|c: char| c.is_alphanumeric() || c == '_');
            let comment = match rest.get(..2) {
                Some("//") => rest.find('\n').or(Some(rest.len())),
                Some("/*") => Some(rest.find("*/").map_or(rest.len(), |at| at + 2)),
                _ => None,
            };
            let blank = comment.or_else(|| literal(rest).filter(|_| !in_name));
            let (token, after) = rest.split_at(blank.unwrap_or(first.len_utf8()));
            let text = blank.is_some() && comment.is_none() && token.ends_with(['"', '#']);
            if let Some((_, inner)) = token.split_once('"').filter(|_| text) {
                let whole: String = inner.split("\\\n").map(str::trim_start).collect();
                texts.push((code.len() - 1, whole.trim_end_matches(['"', '#']).to_owned()));
            }
            for c in token.chars() {
                masked.push(if blank.is_some() && c != '\n' { ' ' } else { c });
                if c == '\n' {
                    code.push(false);
                }
                *code.last_mut().expect("a line") |= comment.is_none() && (blank.is_some() || !c.is_whitespace());
            }
            rest = after;
        }
        let tests = of_tests(&masked, code.len());
        let mut source = Source::default();
        for (((raw, masked), test), code) in text.lines().zip(masked.lines()).zip(&tests).zip(&code) {
            let (lines, into) = match test {
                true => (&mut source.lines.1, &mut source.tests),
                false => (&mut source.lines.0, &mut source.text),
            };
            *lines += usize::from(*code);
            *into += &format!("{raw}\n");
            if !test {
                source.code += &format!("{masked}\n");
            }
        }
        source.texts = texts.into_iter().filter(|(line, _)| !tests[*line]).map(|(_, text)| text).collect();
        source
    }

    pub(crate) fn words(&self) -> impl Iterator<Item = &str> {
        self.code.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
    }

    /// Whether the code names this: a word, or what stands there letter by letter.
    pub(crate) fn names(&self, what: &str) -> bool {
        let word = what.chars().all(|c| c.is_alphanumeric() || c == '_');
        if word { self.words().any(|found| found == what) } else { self.code.contains(what) }
    }
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

/// For each line whether only tests compile it: an item behind `#[cfg(test)]` ends at the brace that closes it, at its semicolon or,
/// where it is a variant or an arm, at its comma.
fn of_tests(masked: &str, lines: usize) -> Vec<bool> {
    let mut tests = vec![false; lines];
    let line_of = |at: usize| masked[..at].matches('\n').count();
    for (at, _) in masked.match_indices("#[cfg(test)]").chain(masked.match_indices("#[cfg(all(test")) {
        let mut depth = 0;
        let end = masked[at..].find(|c| {
            depth += i32::from(['{', '(', '['].contains(&c)) - i32::from(['}', ')', ']'].contains(&c));
            depth == 0 && ['}', ';', ','].contains(&c)
        });
        tests[line_of(at)..=line_of(end.map_or(masked.len() - 1, |end| at + end))].fill(true);
    }
    tests
}

#[test]
fn a_source_is_taken_apart() {
    let text = "//! a\n\nfn a() { // b\n    let s = \"// f64 \\\" \\\n        unsafe\"; /* c\n d */\n}\n#[cfg(test)]\nmod tests {\n    fn b() -> [u8; 2] {}\n}\nconst C: char = '\"';\n/// d\nfn e<'a>(r: &'a str) -> &'a str { r#\"{\"# }\n";
    let source = Source::of(text);
    assert_eq!((source.lines, source.texts.clone()), ((6, 4), vec!["// f64 \\\" unsafe".into(), "{".into()]));
    assert_eq!(source.tests, "#[cfg(test)]\nmod tests {\n    fn b() -> [u8; 2] {}\n}\n");
    assert!(source.text.starts_with("//! a\n\nfn a() {") && source.names("-> &'a str") && !source.names("unsafe"));
    assert_eq!(source.words().take(6).collect::<Vec<_>>(), ["fn", "a", "let", "s", "const", "C"]);
}
