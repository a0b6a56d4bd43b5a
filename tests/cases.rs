//! Text files that other people had trouble with, beside the checkout: each is read right, or refused with the cause, the place and what
//! helps.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use veilsum_node::table::{self, Decimal, Delimiter, RowRules, Table, TableSpec};
use veilsum_testkit::{data::shared, program::Folder, with_data};

with_data!(
    texts_are_read_or_refused_with_what_helps,
    every_spelling_of_nothing_can_be_marked,
    copies_are_not_counted_twice,
);

/// What a file comes to.
enum Is<'a> {
    /// So many rows with these means.
    Read(usize, &'a [f64]),
    /// An error with all of this.
    Refused(&'a [&'a str]),
}
use Is::{Read, Refused};

fn case(name: &str) -> PathBuf {
    shared().join("cases").join(name)
}

fn read(file: &Path, columns: &[&str], rules: RowRules) -> Result<Table, String> {
    let columns = columns.iter().map(|&column| column.to_owned()).collect();
    let spec = TableSpec { columns, rules: Arc::new(rules), ..TableSpec::default() };
    table::read(file, &spec).map_err(|e| format!("{e}; {}", e.advice()))
}

fn means(table: &Table) -> Vec<f64> {
    let d = table.columns.len();
    (0..d).map(|at| table.values.chunks(d).map(|row| row[at]).sum::<f64>() / table.rows as f64).collect()
}

#[track_caller]
fn is(name: &str, columns: &[&str], rules: &RowRules, expected: &Is<'_>) {
    let found = read(&case(name), columns, rules.clone());
    match (found, expected) {
        (Ok(table), Read(rows, of)) => {
            assert_eq!(table.rows, *rows, "{name}");
            let means = means(&table);
            assert!(means.iter().zip(*of).all(|(mean, of)| (mean - of).abs() < 1e-9), "{name}: {means:?}");
            assert_eq!(means.len(), of.len(), "{name}");
        }
        (Err(error), Refused(words)) => {
            let file = name.rsplit('/').next().unwrap_or(name);
            assert!(error.contains(file), "{name}: {error}");
            words.iter().for_each(|word| assert!(error.contains(word), "{name}: {word:?} is not in: {error}"));
        }
        (Ok(table), Refused(_)) => panic!("{name}: read, {} rows", table.rows),
        (Err(error), Read(..)) => panic!("{name}: {error}"),
    }
}

fn texts_are_read_or_refused_with_what_helps() {
    let four = Read(4, &[45.0, 26.0]);
    let decimal = Refused(&["line 2", "decimal comma", "decimal = \",\""]);
    let usual = RowRules::default();
    for (name, columns, expected) in [
        ("04-excel-sep-line/rows.csv", &[][..], &four),
        ("04-excel-sep-line/quoted.csv", &[], &four),
        ("05-decimal-comma/rows.csv", &[], &decimal),
        ("05-decimal-comma/one.csv", &[], &decimal),
        ("05-decimal-comma/comma-quoted.csv", &[], &decimal),
        ("05-decimal-comma/mixed.csv", &[], &decimal),
        ("06-thousands/us.csv", &[], &Refused(&["line 2, column \"cost\"", "thousands"])),
        ("06-thousands/us2.csv", &[], &Refused(&["line 2, column \"cost\"", "thousands"])),
        // One cell of it is a number.
        ("06-thousands/de.csv", &[], &Refused(&["line 3, column \"cost\"", "thousands"])),
        ("07-trailing-delimiter/both.csv", &[], &four),
        ("07-trailing-delimiter/header-only.csv", &[], &four),
        ("07-trailing-delimiter/rows-only.csv", &[], &Refused(&["header", "ends by a separator"])),
        ("08-unclosed-quote/first.csv", &["age", "bmi"], &Refused(&["line 3", "quotation mark"])),
        ("08-unclosed-quote/middle.csv", &["age", "bmi"], &Refused(&["line 3", "quotation mark", "multiline"])),
        ("08-unclosed-quote/last.csv", &["age", "bmi"], &Refused(&["line 3", "quotation mark", "multiline"])),
        ("13-pipe/rows.csv", &[], &four),
        ("13-pipe/trail.csv", &[], &four),
        ("14-blanks-between/rows.txt", &[], &four),
        ("14-blanks-between/padded.csv", &[], &four),
        ("20-gzip-members/two.csv.gz", &[], &four),
        ("20-gzip-members/empty-member.csv.gz", &[], &four),
        ("20-gzip-members/zeros.csv.gz", &[], &four),
        ("20-gzip-members/garbage.csv.gz", &[], &Refused(&["other bytes follow", "again"])),
        ("20-gzip-members/cut.csv.gz", &[], &Refused(&["cut short", "again"])),
        ("20-gzip-members/crc.csv.gz", &[], &Refused(&["damaged", "again"])),
        ("31-other-forms/feather1", &[], &Refused(&["Feather file of version 1"])),
        ("31-other-forms/old.xls", &[], &Refused(&["old Excel workbook", "CSV UTF-8"])),
        ("31-other-forms/rows.csv.bz2", &[], &Refused(&["bzip2", "unpack"])),
        ("31-other-forms/rows.csv.xz", &[], &Refused(&["xz", "unpack"])),
        ("31-other-forms/rows.dta", &[], &Refused(&["Stata", "export"])),
        ("31-other-forms/rows.json", &[], &Refused(&["JSON", "CSV"])),
        ("34-quote-swallows/rows.csv", &["age", "bmi"], &Refused(&["line 102", "quotation mark"])),
        (
            "56-comma-wins-silently/rows.csv",
            &[],
            &Refused(&["two ways", "Age, y", "delimiter = \";\"", "decimal = \",\""]),
        ),
        (
            "56-comma-wins-silently/small.csv",
            &[],
            &Refused(&["two ways", "Weight, kg", "delimiter = \";\"", "decimal = \",\""]),
        ),
    ] {
        is(name, columns, &usual, expected);
    }
    let comma = RowRules { decimal: Some(Decimal::Comma), ..RowRules::default() };
    for (name, expected) in [
        ("05-decimal-comma/rows.csv", Read(4, &[35.5, 22.5])),
        ("05-decimal-comma/one.csv", Read(2, &[22.5])),
        ("05-decimal-comma/comma-quoted.csv", Read(2, &[35.5, 22.5])),
        ("05-decimal-comma/mixed.csv", Refused(&["line 2, column \"age\"", "it has a point"])),
        ("06-thousands/de.csv", Refused(&["line 2, column \"cost\"", "it has a point"])),
        ("56-comma-wins-silently/small.csv", Read(4, &[75.5, 45.0])),
    ] {
        is(name, &[], &comma, &expected);
    }
    let semicolon = RowRules { delimiter: Some(Delimiter::Semicolon), ..comma };
    is("56-comma-wins-silently/small.csv", &["Weight, kg"], &semicolon, &Read(4, &[75.5]));
}

/// Each word of the list is missing by itself, or its error says how to mark it; marked, it is missing.
fn every_spelling_of_nothing_can_be_marked() {
    let folder = Folder::fresh();
    let words = std::fs::read_to_string(case("26-nan-spellings/words.txt")).expect("the list");
    for word in words.lines().chain(["", "-", "n/a", "#DIV/0!", "k.A.", "keine Angabe", "nan"]) {
        let file = PathBuf::from(folder.path("rows.csv"));
        std::fs::write(&file, format!("age,bmi\n30,21.5\n40,{word}\n50,29.0\n")).expect("a file");
        let error = read(&file, &[], RowRules::default()).expect_err(word);
        assert!(error.contains("line 3, column \"bmi\""), "{word}: {error}");
        assert!(error.contains("value is missing") || error.contains("missing_marks"), "{word}: {error}");
        let columns = ["age", "bmi"].map(|name| (name.to_owned(), name.to_owned())).into();
        let marks = Some(word.to_owned()).filter(|word| !word.is_empty()).into_iter().collect();
        let missing = Some(veilsum_node::table::Missing::LeaveOut);
        let table = read(&file, &[], RowRules { columns, marks, missing, ..RowRules::default() });
        assert_eq!(table.unwrap_or_else(|e| panic!("{word}: {e}")).rows, 2, "{word}");
    }
}

fn copies_are_not_counted_twice() {
    let error = read(&case("55-copies-in-a-folder/dup"), &[], RowRules::default()).expect_err("copies");
    assert!(error.contains("it holds the same 250 rows as") && error.contains("rows (1).csv"), "{error}");
}
