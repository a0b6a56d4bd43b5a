//! A site's own rows: what its filter, marks, names, words and units make of them in every form, and which of them cannot be used.

use std::{fs, path::PathBuf, sync::Arc};

use ::parquet::basic::Compression;
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};

use super::{
    super::*,
    forms::{named, parquet, refused},
};
use crate::{documents::tests::Folder, plan::Categorical};

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
    #[cfg(unix)]
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

#[test]
fn a_site_reads_its_own_names_words_and_units_as_the_agreed_ones() {
    let folder = Folder::new("rules");
    let path = folder.at("rows.csv");
    fs::write(
        &path,
        "Alter,Gewicht,edu,sex,ward\n40,100,primary,w,a\n50,200,2,m,b\n,150,1,m,a\n60,-99,1,w,a\n70,10,1,w,c\n",
    )
    .unwrap();
    let map = |pairs: &[(&str, Meaning)]| pairs.iter().map(|(word, of)| ((*word).to_owned(), of.clone())).collect();
    let rules = RowRules {
        columns: [("age", "Alter"), ("weight", "Gewicht")].map(|(a, b)| (a.to_owned(), b.to_owned())).into(),
        values: [
            ("edu".to_owned(), map(&[("primary", Meaning::Number(1.0))])),
            ("sex".to_owned(), map(&[("w", Meaning::Word("female".into())), ("m", Meaning::Word("male".into()))])),
        ]
        .into(),
        units: [("weight".to_owned(), Unit { factor: 0.5, offset: 1.0 })].into(),
        missing: Some(Missing::LeaveOut),
        marks: vec!["-99".into()],
        filter: Filter::parse("ward in ('a', 'b') and Gewicht < 1e3").unwrap(),
        ..RowRules::default()
    };
    let sex = Categorical { column: "sex".into(), categories: vec!["female".into(), "male".into()], weight: 1.0 };
    let spec = |rules: RowRules| TableSpec {
        categorical: vec![sex.clone()],
        rules: Arc::new(rules),
        ..named(&["age", "weight", "edu"])
    };
    let table = read(&path, &spec(rules.clone())).unwrap();
    assert_eq!(table.values, [40.0, 51.0, 1.0, 1.0, 0.0, 50.0, 101.0, 2.0, 0.0, 1.0]);
    // What a filter compares and is marked as missing does not pass.
    assert_eq!((table.tally.filtered, table.tally.left_out.rows()), (2, 1));
    let change = |change: &dyn Fn(&mut RowRules)| {
        let mut changed = rules.clone();
        change(&mut changed);
        refused(&path, &spec(changed))
    };
    let none = change(&|r| r.filter = Filter::parse("ward = 'z'").unwrap());
    assert!(none.contains("the filter of site.toml leaves no row"), "{none}");
    let near = change(&|r| r.units.extend([("wieght".to_owned(), Unit { factor: 1.0, offset: 0.0 })]));
    assert!(near.contains("\"wieght\"") && near.contains("do you mean \"weight\"?"), "{near}");
    assert!(
        change(&|r| drop(r.columns.insert("age".into(), "alter".into()))).contains("no column is called \"alter\"")
    );
    assert!(change(&|r| r.filter = Filter::parse("war = 1").unwrap()).contains("the filter of site.toml compares"));
    assert!(change(&|r| r.columns.clear()).contains("no column"));
    let other = change(&|r| drop(r.values.insert("sex".into(), map(&[("w", Meaning::Word("woman".into()))]))));
    assert!(other.contains("was not agreed on") && other.contains("\"female\", \"male\""), "{other}");
    let turned = change(&|r| drop(r.values.insert("sex".into(), map(&[("female", Meaning::Word("male".into()))]))));
    assert!(turned.contains("what was agreed on stays"), "{turned}");
    assert!(
        change(&|r| r.units.extend([("sex".to_owned(), Unit { factor: 2.0, offset: 0.0 })])).contains("has no numbers")
    );
    let number = change(&|r| drop(r.values.insert("edu".into(), map(&[("2", Meaning::Number(3.0))]))));
    assert!(number.contains("another meaning"), "{number}");
}
