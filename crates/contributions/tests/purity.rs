//! A contribution is a function of one row: nothing in these files can carry anything from one row to the next, or differ between
//! machines. A reader finds the same by reading them.

use std::path::Path;

/// What has no place in a pure function, with what it could do.
const REFUSED: [(&str, &str); 14] = [
    ("static ", "a state that outlives the row"),
    ("thread_local", "a state that outlives the row"),
    ("Cell", "a state behind a shared reference"),
    ("atomic", "a state behind a shared reference"),
    ("Mutex", "a state behind a shared reference"),
    ("Once", "a state behind a shared reference"),
    ("unsafe", "a state that the compiler does not see"),
    ("alloc", "memory that grows with a row"),
    ("std::", "files, clocks, threads"),
    ("extern", "code from elsewhere"),
    ("include", "code from elsewhere"),
    ("asm!", "code that the compiler does not see"),
    ("macro_rules", "code that a search does not see"),
    ("loop ", "work without an end"),
];
/// Calls that end a function early; the work would tell a value.
const EARLY: [&str; 4] = ["return", "break", "continue", "while "];

/// What is refused in this text; comments are not code.
fn found(code: &str) -> Vec<&'static str> {
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code = lines.collect::<Vec<_>>().join("\n").replace("#![forbid(unsafe_code)]", "").replace("#![no_std]", "");
    let refused = REFUSED.iter().filter(|(word, _)| code.contains(word)).map(|(_, why)| *why);
    refused.chain(EARLY.iter().filter(|word| code.contains(**word)).copied()).collect()
}

#[test]
fn contributions_are_functions_of_one_row() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = 0;
    for entry in std::fs::read_dir(home.join("src")).unwrap() {
        let path = entry.unwrap().path();
        let code = std::fs::read_to_string(&path).unwrap();
        assert_eq!(found(&code), Vec::<&str>::new(), "{}", path.display());
        files += 1;
    }
    assert!(files >= 6, "{files} files");
    let root = std::fs::read_to_string(home.join("src/lib.rs")).unwrap();
    assert!(root.contains("\n#![no_std]\n") && root.contains("\n#![forbid(unsafe_code)]\n"));
    let manifest = std::fs::read_to_string(home.join("Cargo.toml")).unwrap();
    let (_, dependencies) = manifest.split_once("[dependencies]\n").unwrap();
    assert_eq!(dependencies.trim(), "libm.workspace = true");
    assert!(!home.join("build.rs").exists());
}

/// Each of these has carried a row into the next one.
#[test]
fn a_state_is_refused() {
    for code in [
        "static mut SEEN: f64 = 0.0;",
        "static SEEN: AtomicU64 = AtomicU64::new(0);",
        "thread_local! { static SEEN: f64 = 0.0 }",
        "struct Question { seen: core::cell::Cell<f64> }",
        "extern crate alloc;",
        "use std::sync::Mutex;",
        "if x > 0.5 { return; }",
        "while x > 0.0 { x -= 1.0; }",
    ] {
        assert!(!found(code).is_empty(), "{code}");
    }
    assert_eq!(found("// no static is needed\nout[0] += 1.0;"), Vec::<&str>::new());
}
