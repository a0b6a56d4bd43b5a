//! The text of the core's own sources, for what no type can show.

use std::{fs, path::Path};

/// The core's own files, without their unit tests.
pub(crate) fn sources() -> Vec<(String, String)> {
    fn walk(folder: &Path, out: &mut Vec<(String, String)>) {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, out);
            } else {
                let text = fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default().to_owned();
                out.push((path.display().to_string(), code));
            }
        }
    }
    let mut out = Vec::new();
    walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut out);
    assert!(out.len() > 15, "the sources are here");
    out
}
