//! A site's own rows: what its filter, marks, names, words and units make of them in every form, and which of them cannot be used.

use std::{fs, sync::Arc};

use ::parquet::basic::Compression;

use super::{
    super::*,
    forms::{columns_of, named, parquet, read_bytes, refused, told, typed},
};
use crate::documents::tests::Folder;

#[test]
fn rows_that_cannot_be_used_are_all_listed_without_their_values() {
    let folder = Folder::new("listed");
    let parts = folder.at("parts");
    fs::create_dir(&parts).unwrap();
    let put = |file: &str, text: &str| {
        fs::write(parts.join(file), parquet(&[columns_of(text, "float")], Compression::SNAPPY)).unwrap();
    };
    put("a", "x\n0.5\n\nNaN\n");
    put("b", "x\n98765.25\n\n");
    let list = folder.at("site.key.unusable-rows.csv");
    let spec = TableSpec { within: vec![(0.0, 1.0)], list: Some(list.clone()), ..named(&["x"]) };
    let told = refused(&parts, &spec);
    for said in [
        "a, row 2, column \"x\"",
        "in all 4 rows cannot be used",
        "1 with a value outside the plan's public box in \"x\"",
        "unusable-rows.csv lists them all",
    ] {
        assert!(told.contains(said) && !told.contains("98765"), "{said}: {told}");
    }
    let text = fs::read_to_string(&list).unwrap();
    assert_eq!(text.lines().count(), 5, "{text}");
    assert!(text.contains("b,row 1,") && text.contains("a,row 3,") && !text.contains("98765"), "{text}");
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&list).unwrap().permissions()) & 0o777, 0o600);
    // A list of before is taken away where all rows can be used.
    fs::remove_file(parts.join("a")).unwrap();
    put("b", "x\n0.5\n");
    assert_eq!(read(&parts, &spec).unwrap().rows, 1);
    assert!(!list.exists());
}

/// A number to filter by, a text to filter by, one that is typed as text and holds numbers, and the row's own number.
#[test]
fn a_filter_finds_the_same_rows_in_every_form() {
    let text = "age,ward,score,id\n20.0,a,1,0\nNA,a,2,1\n-99.0,a,3,2\n21.0,,-99.0,3\n22.0,gone,NULL,4\n23.0,b,7,5\n24.0,a,oops,6\n\
                17.0,a,oops,7\n";
    let spec = |filter: &str| {
        let (marks, filter) = (vec!["-99".into(), "gone".into()], Filter::parse(filter).unwrap());
        TableSpec { rules: Arc::new(RowRules { marks, filter, ..RowRules::default() }), ..named(&["id"]) }
    };
    let typed = typed(&columns_of(text, "float text text int"));
    for bytes in typed.into_iter().chain([text.as_bytes().to_vec()]) {
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
            let table = read_bytes(&bytes, &spec(filter)).unwrap_or_else(|e| panic!("{filter}: {e}"));
            assert_eq!((&table.values[..], table.tally.filtered), (ids, 8 - ids.len() as u64), "{filter}");
        }
        for filter in ["score >= 2", "score in (1, 2)", "score != 1"] {
            let told = told(&bytes, &spec(filter));
            for said in [
                "column \"score\": this is not a number",
                "2 with no number",
                "the filter of site.toml compares this column with a number",
            ] {
                assert!(told.contains(said) && !told.contains("oops"), "{said}: {told}");
            }
        }
    }
}
