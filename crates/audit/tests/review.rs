//! The programs by which an earlier version was broken from outside, and what comes of each now: a plan on which the audit says yes, or a test
//! of what the product refuses.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use veilsum_audit::own::{Answer, Audited};
use veilsum_testkit::data::shared;

use crate::succeeds::cases;

/// Every program, and what stands for it: cases of `cases.toml`, and tests by file and name.
fn programs() -> BTreeMap<String, Vec<String>> {
    toml::from_str(include_str!("review.toml")).unwrap()
}

/// Whether proposals told nothing, as the table says of them.
pub(crate) fn proposals_tell_nothing(found: &Audited) -> bool {
    found.tried.iter().filter(|tried| tried.attack == "proposals").all(|tried| tried.answer == Answer::No)
}

#[test]
fn what_stands_for_a_program_exists() {
    let cases: BTreeSet<String> = cases().into_iter().map(|case| case.what).collect();
    for (program, now) in programs().iter().flat_map(|(program, all)| all.iter().map(move |now| (program, now))) {
        let Some((file, name)) = now.split_once("::") else {
            assert!(cases.contains(now), "{program}: {now}");
            continue;
        };
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
        let text = fs::read_to_string(&path).unwrap_or_else(|why| panic!("{program}: {file}: {why}"));
        assert!(text.contains(&format!("fn {name}(")), "{program}: {now}");
    }
}

fn every_program_has_an_entry() {
    let root = shared().join("reference/review3");
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(&root).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() {
            let inside = fs::read_dir(entry.path()).unwrap().flatten();
            found.extend(inside.map(|file| format!("{name}/{}", file.file_name().into_string().unwrap())));
        } else {
            found.insert(name);
        }
    }
    assert_eq!(found, programs().into_keys().collect());
}

veilsum_testkit::with_data!(every_program_has_an_entry);
