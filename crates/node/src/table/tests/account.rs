//! What was read is counted the same whatever becomes of it, and no value of a row is in the account.

use super::spec;
use crate::{
    documents::tests::Folder,
    plan::Categorical,
    table::{TableSpec, Tally, Unusable, look, read, read_given},
};

/// Of numbers from 0 to 10 that are moved into this range, with noise or without.
fn clipped(noise: bool) -> TableSpec {
    let unusable = if noise { Unusable::Weightless } else { Unusable::Refused };
    TableSpec { within: vec![(0.0, 10.0); 2], clips: true, unusable, ..spec(&["a", "b"], None) }
}

fn tally(text: &str, spec: &TableSpec) -> (Tally, Option<String>) {
    let folder = Folder::new("account");
    std::fs::write(folder.at("s.csv"), text).unwrap();
    let (tally, fault) = look(folder.at("s.csv"), spec).unwrap();
    (tally, fault.map(|fault| fault.to_string()))
}

#[test]
fn every_row_is_counted_once_with_noise_and_without() {
    let text = "a,b,note\n1,2,x\n77777,2,x\n3,,x\n-88888,NA,x\nold,5,x\n1,2\n4,99999,x\n";
    for total in [true, false] {
        let (found, stopped) = tally(text, &clipped(total));
        assert_eq!((found.rows, found.used, found.files), (7, 3, 1), "{found:?}");
        assert_eq!(found.left_out.rows() + found.unusable.rows(), 4);
        assert_eq!((found.left_out.rows() > 0, stopped.is_none()), (total, total));
        assert_eq!(found.unused, ["note"]);
        let of: Vec<_> = found.columns.iter().map(|of| (&*of.name, of.missing, of.below, of.above)).collect();
        // A row that does not count moves nothing: -88888 is in one that lacks a value.
        assert_eq!(of, [("a", 0, 0, 1), ("b", 2, 0, 1)]);
        assert_eq!(
            (&found.columns[0].first[..], &found.columns[1].first[..]),
            (&["line 3".to_owned()][..], &["line 8".to_owned()][..])
        );
        let shown = format!("{found}{found:?}{}{:?}", serde_json::to_string(&found).unwrap(), found.doubts());
        assert!(["77777", "88888", "99999", "old"].iter().all(|value| !shown.contains(value)), "{shown}");
    }
}

#[test]
fn one_in_a_hundred_is_told_and_more_is_a_warning() {
    let rows = |out: usize| {
        let lines: String = (0..200).map(|i| if i < out { "11,1\n" } else { "5,1\n" }).collect();
        tally(&format!("a,b\n{lines}"), &clipped(true)).0
    };
    assert!(rows(0).lines().len() == 2 && rows(0).doubts().is_empty());
    let told = |of: &Tally| of.lines().iter().any(|line| line.starts_with("a: 2 of 200 values (1 %) lie outside"));
    assert!(told(&rows(2)) && rows(2).doubts().is_empty());
    assert!(rows(3).doubts()[0].contains("0 up and 3 down: line 2, line 3, line 4"), "{:?}", rows(3).doubts());
}

/// Grams for kilograms: 99 % of a column, and one less.
#[test]
fn a_column_that_is_out_of_range_as_a_whole_is_called_another_unit() {
    let doubts = |inside: usize| {
        let lines: String = (0..200).map(|i| if i < inside { "5,1\n" } else { "70000,1\n" }).collect();
        tally(&format!("a,b\n{lines}"), &clipped(true)).0.doubts()
    };
    for (inside, whole) in [(0, true), (2, true), (3, false)] {
        let [told] = &doubts(inside)[..] else { panic!("one doubt") };
        assert!(told.contains("lie outside its range") && !told.contains("70000"), "{told}");
        assert_eq!(told.contains("[rows.units]"), whole, "{inside}: {told}");
    }
    assert!(tally("a,b\n", &clipped(true)).0.doubts().is_empty(), "no rows at all");
}

/// Points that may stand between thousands stop a site without noise; under noise they are told.
#[test]
fn signs_that_can_be_read_in_two_ways_stop_no_site_under_noise() {
    let text = "a,b\n1.234,\"0,5\"\n2.345,1\n";
    let of = |noise| TableSpec { within: vec![(0.0, 10_000.0)], columns: vec!["a".into()], ..clipped(noise) };
    let folder = Folder::new("signs");
    std::fs::write(folder.at("s.csv"), text).unwrap();
    let told = read(folder.at("s.csv"), &of(false)).unwrap_err();
    assert!(told.to_string().contains("may be a number of thousands"), "{told}");
    let doubts = read(folder.at("s.csv"), &of(true)).unwrap().tally().doubts();
    assert!(doubts[0].contains("may be a number of thousands") && !doubts[0].contains("2.345"), "{doubts:?}");
}

#[test]
fn categories_that_are_read_as_other_are_told() {
    let categories = ["u", "other"].map(str::to_owned).to_vec();
    let column = Categorical { column: "c".into(), categories, weight: 1.0 };
    let of = TableSpec { categorical: vec![column], ..clipped(true) };
    let (found, _) = tally("a,b,c\n1,1,u\n1,1,new\n1,1,other\n1,1,\n", &of);
    assert_eq!((found.columns[2].other, found.columns[2].missing), (1, 1));
    assert!(found.doubts().iter().any(|doubt| doubt.contains("none of its categories") && doubt.contains("line 3")));
}

/// Files of a folder are counted, and a place names the file.
#[test]
fn a_folder_is_one_account() {
    let folder = Folder::new("account");
    for (name, text) in [("1.csv", "a,b\n1,1\n11,1\n"), ("2.csv", "a,b\n1,1\n\n12,1\n")] {
        std::fs::write(folder.at(name), text).unwrap();
    }
    let found = read(folder.at(""), &clipped(true)).unwrap().tally();
    assert_eq!((found.files, found.rows, found.columns[0].above), (2, 4, 2));
    assert!(found.columns[0].first[1].ends_with("2.csv line 4"), "{:?}", found.columns);
    assert_eq!(read(folder.at(""), &clipped(true)).unwrap().rows, 4);
}

/// Rows that a program hands over are counted as a file's are.
#[test]
fn rows_in_memory_have_the_same_account() {
    let values = [1.0, 1.0, 11.0, 1.0, f64::NAN, 1.0];
    let table = read_given(&values, &clipped(true)).unwrap();
    let found = table.tally();
    assert_eq!((table.rows, found.rows, found.used, found.columns[0].above), (2, 3, 2, 1));
    let refused = TableSpec { clips: false, ..clipped(false) };
    let told = read_given(&values, &refused).unwrap_err().to_string();
    assert!(told.starts_with("the rows that were handed over, row 2, column \"a\": outside"), "{told}");
    assert!(read_given(&values[..5], &refused).is_err());
}
