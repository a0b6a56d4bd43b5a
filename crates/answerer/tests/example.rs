use std::time::Duration;

use veilsum_answerer::conformance;

use super::{Folder, launch};

/// The worked example of the documentation passes the test of conformance: the contract can be kept with no library at all.
#[test]
fn the_page_of_python_of_the_documentation_gives_the_words_of_the_kernel() {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        eprintln!("SKIPPED: the example of an answerer: there is no python3 here");
        return;
    }
    let folder = Folder::fresh();
    let (data, rows) = (folder.path("rows.csv"), conformance::example(120));
    let quoted = |cell: &String| format!("\"{}\"", cell.replace('"', "\"\""));
    let line = |row: &Vec<String>| row.iter().map(quoted).collect::<Vec<_>>().join(",") + "\n";
    std::fs::write(&data, [&conformance::header()].into_iter().chain(&rows).map(line).collect::<String>()).unwrap();
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/answerers/csv_answerer.py");
    let (launch, said) = launch(&["python3", program, &data], Duration::from_secs(60));
    let known = conformance::rows_of(rows.iter().map(|row| row.iter().map(String::as_str).collect())).unwrap();
    let tried = conformance::check(&launch, &known);
    let wrong: Vec<_> = tried.iter().filter(|one| one.result.is_err()).collect();
    assert!(wrong.is_empty(), "{wrong:#?} {:?}", said.lock().unwrap());
    // It says itself that it does not take directions.
    let told = |one: &conformance::Tried| {
        one.what == "direction: begins" && one.result.as_ref().is_ok_and(|seen| seen.contains("not offered"))
    };
    assert!(tried.iter().any(told), "{tried:#?}");
    let same = |one: &&conformance::Tried| one.result.as_ref().is_ok_and(|seen| seen.contains("words"));
    assert_eq!(tried.iter().filter(same).count(), 8, "{tried:#?}");
}
