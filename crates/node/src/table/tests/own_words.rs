//! A site's own rows: what its filter, marks, names, words and units make of them in every form, and which of them cannot be used.

use std::{fs, path::PathBuf, sync::Arc};

use ::parquet::basic::Compression;
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};

use super::{
    super::*,
    forms::{named, parquet, refused},
};
use crate::documents::tests::Folder;

#[test]
fn rows_that_cannot_be_used_are_all_listed_without_their_values() {
    let folder = Folder::new("listed");
    let parts = folder.at("parts");
    fs::create_dir(&parts).unwrap();
    let part = |values: Vec<Option<f64>>| {
        RecordBatch::try_from_iter([("x", Arc::new(Float64Array::from(values)) as ArrayRef)]).unwrap()
    };
    fs::write(parts.join("a"), parquet(&[part(vec![Some(0.5), None, Some(f64::NAN)])], Compression::SNAPPY)).unwrap();
    fs::write(parts.join("b"), parquet(&[part(vec![Some(98765.25), None])], Compression::SNAPPY)).unwrap();
    let list = folder.at("site.key.unusable-rows.csv");
    let spec = TableSpec { within: vec![(0.0, 1.0)], list: Some(list.clone()), ..named(&["x"]) };
    let told = refused(&parts, &spec);
    assert!(told.contains("a, row 2, column \"x\"") && told.contains("in all 4 rows cannot be used"), "{told}");
    assert!(
        told.contains("1 with a value outside the plan's public box in \"x\"") && !told.contains("98765"),
        "{told}"
    );
    assert!(told.contains("unusable-rows.csv lists them all"), "{told}");
    let text = fs::read_to_string(&list).unwrap();
    assert_eq!(text.lines().count(), 5, "{text}");
    assert!(text.contains("b,row 1,") && text.contains("a,row 3,") && !text.contains("98765"), "{text}");
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&list).unwrap().permissions()) & 0o777, 0o600);
    // A list of before is taken away where all rows can be used.
    fs::remove_file(parts.join("a")).unwrap();
    fs::write(parts.join("b"), parquet(&[part(vec![Some(0.5)])], Compression::SNAPPY)).unwrap();
    assert_eq!(read(&parts, &spec).unwrap().rows, 1);
    assert!(!list.exists());
}

/// The same four columns as text and as Parquet: a number to filter by, a text to filter by, one that is typed as text and holds numbers,
/// and the row's own number.
fn filtered(folder: &Folder) -> [PathBuf; 2] {
    let rows = [
        (Some(20.0), Some("a"), "1"),
        (None, Some("a"), "2"),
        (Some(-99.0), Some("a"), "3"),
        (Some(21.0), None, "-99.0"),
        (Some(22.0), Some("gone"), "NULL"),
        (Some(23.0), Some("b"), "7"),
        (Some(24.0), Some("a"), "oops"),
        (Some(17.0), Some("a"), "oops"),
    ];
    let mut text = "age,ward,score,id\n".to_owned();
    for (id, (age, ward, score)) in rows.iter().enumerate() {
        let age = age.map_or("NA".to_owned(), |age: f64| format!("{age:?}"));
        text += &format!("{age},{},{score},{id}\n", ward.unwrap_or("?"));
    }
    let typed = RecordBatch::try_from_iter([
        ("age", Arc::new(rows.iter().map(|row| row.0).collect::<Float64Array>()) as ArrayRef),
        ("ward", Arc::new(rows.iter().map(|row| row.1).collect::<StringArray>())),
        ("score", Arc::new(rows.iter().map(|row| Some(row.2)).collect::<StringArray>())),
        ("id", Arc::new(Int64Array::from_iter_values(0..rows.len() as i64))),
    ])
    .unwrap();
    let paths = [folder.at("rows.csv"), folder.at("rows.parquet")];
    fs::write(&paths[0], text).unwrap();
    fs::write(&paths[1], parquet(&[typed], Compression::SNAPPY)).unwrap();
    paths
}

#[test]
fn a_filter_finds_the_same_rows_in_a_text_and_in_a_typed_file() {
    let folder = Folder::new("filtered");
    let spec = |filter: &str| {
        let (marks, filter) = (vec!["-99".into(), "gone".into()], Filter::parse(filter).unwrap());
        TableSpec { rules: Arc::new(RowRules { marks, filter, ..RowRules::default() }), ..named(&["id"]) }
    };
    for path in filtered(&folder) {
        // Neither NULL nor a word, nor a mark, nor a mark in other digits, is a value that passes.
        for (filter, ids) in [
            ("age < 100", &[0.0, 3.0, 4.0, 5.0, 6.0, 7.0][..]),
            ("age != 20", &[3.0, 4.0, 5.0, 6.0, 7.0]),
            ("ward != 'a'", &[5.0]),
            ("ward in ('b', 'c')", &[5.0]),
            ("score = 'NULL'", &[4.0]),
            ("score != 'oops'", &[0.0, 1.0, 2.0, 5.0]),
            // A row that another comparison takes out needs no number here, wherever that stands.
            ("score >= 1 and age < 21 and age > 17", &[0.0]),
            ("age < 21 and age > 17 and score >= 1", &[0.0]),
        ] {
            let spec = spec(filter);
            let table = read(&path, &spec).unwrap_or_else(|e| panic!("{filter}, {}: {e}", path.display()));
            assert_eq!(
                (&table.values[..], table.tally.filtered),
                (ids, 8 - ids.len() as u64),
                "{filter}, {}",
                path.display()
            );
        }
        for filter in ["score >= 2", "score in (1, 2)", "score != 1"] {
            let told = refused(&path, &spec(filter));
            assert!(
                told.contains("column \"score\": this is not a number") && told.contains("2 with no number"),
                "{told}"
            );
            assert!(told.contains("the filter of site.toml compares this column with a number"), "{told}");
            assert!(!told.contains("oops"), "{told}");
        }
    }
}

#[test]
fn a_mark_is_a_mark_in_other_digits_too() {
    let folder = Folder::new("marks");
    let path = folder.at("rows.csv");
    let spec = |marks: &[&str]| TableSpec {
        rules: Arc::new(RowRules {
            marks: marks.iter().map(|&mark| mark.to_owned()).collect(),
            missing: Some(Missing::LeaveOut),
            columns: [("a".to_owned(), "a".to_owned())].into(),
            ..RowRules::default()
        }),
        ..named(&["a"])
    };
    let text = "a\n1\n-99.0\n-99\n -9.9e1\n-98\n";
    let typed = RecordBatch::try_from_iter([(
        "a",
        Arc::new(Float64Array::from(vec![1.0, -99.0, -99.0, -99.0, -98.0])) as ArrayRef,
    )])
    .unwrap();
    for bytes in [text.as_bytes().to_vec(), parquet(&[typed], Compression::SNAPPY)] {
        fs::write(&path, bytes).unwrap();
        for marks in [["-99", "x"], ["-99.0", "x"]] {
            let table = read(&path, &spec(&marks)).unwrap();
            assert_eq!((&table.values[..], table.tally.left_out.rows()), (&[1.0, -98.0][..], 3));
        }
    }
}
