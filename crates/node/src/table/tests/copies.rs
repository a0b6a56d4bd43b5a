//! A folder is read without the copies that programs leave in it, and no rows are read twice.

use std::{fs, sync::Arc};

use super::*;
use crate::documents::tests::Folder;

#[test]
fn a_folder_is_read_without_copies() {
    let folder = Folder::new("copies");
    let rows = folder.at("rows");
    fs::create_dir(&rows).unwrap();
    let write = |name: &str, text: &str| fs::write(rows.join(name), text).unwrap();
    write("a.csv", "x,y\n1,2\n3,4\n3,4\n");
    write("b.csv", "x,y\n1,2\n3,4\n");
    let read = |spec: &TableSpec| super::super::read(&rows, spec);
    assert_eq!(read(&all()).unwrap().rows, 5, "a part of the rows is no copy");
    let copies =
        "a.csv~ a.csv.bak .a.csv.swp .#a.csv #a.csv# a.tmp a.csv.part ~$a.csv _a.csv A.CSV.OLD README ReadMe.txt";
    for name in copies.split(' ') {
        write(name, "x,y\n1,2\n3,4\n3,4\n");
    }
    assert_eq!(read(&all()).unwrap().rows, 5);
    assert_eq!(files_of(&rows).unwrap().len(), 2);
    assert!(!would_be_of(&rows, &rows.join("new.bak")) && would_be_of(&rows, &rows.join("new.csv")));
    // Other order, other digits, and other cells that nobody asks for.
    write("c (1).csv", "x;y\n3;4.0\n1e0;2\n3;4\n");
    let error = whole(&read(&all()).unwrap_err());
    assert!(error.contains("c (1).csv: it holds the same 3 rows as ") && error.contains("a.csv; take one"), "{error}");
    fs::remove_file(rows.join("c (1).csv")).unwrap();
    fs::write(rows.join("z.csv.gz"), gzip("x,y\n3,4\n1,2\n")).unwrap();
    let error = read(&all()).unwrap_err().to_string();
    assert!(error.contains("z.csv.gz: it holds the same 2 rows as ") && error.ends_with("b.csv"), "{error}");
    // Where rows of persons are cut, which of them count says nothing of what a file holds.
    let rules = RowRules { person: Some("x".into()), rows_per_person: Some(1), ..RowRules::default() };
    let key = PersonKey::of(&folder.at("site.key.persons")).unwrap();
    let cut = TableSpec { person_key: Some(key), rules: Arc::new(rules), ..spec(&["y"], None) };
    let error = read(&cut).unwrap_err().to_string();
    assert!(error.contains("z.csv.gz: it holds the same 2 rows as "), "{error}");
    // Under noise no cell decides whether a site answers, and what was read twice counts twice.
    let noisy = read(&TableSpec { unusable: Unusable::Weightless, ..spec(&["x", "y"], None) }).unwrap();
    let (told, doubts) = (noisy.tally().lines().join("\n"), noisy.tally().doubts());
    assert_eq!((noisy.rows, doubts.len()), (7, 1));
    assert!(doubts[0].contains("z.csv.gz: it holds the same 2 rows as ") && told.contains(&doubts[0]), "{told}");
}
