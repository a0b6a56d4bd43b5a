//! [NOI-9]: at most so many rows of one person count, and always the same ones.

use std::{collections::BTreeMap, fs};

use parquet::basic::Compression;

use super::*;
use crate::{
    documents::tests::Folder,
    table::{
        Missing, RowRules, TableSpec, Unusable, read,
        tests::forms::{columns_of, named, parquet, refused},
    },
};

/// Persons and rows of each.
const PERSONS: usize = 12;
const ROWS: usize = 5;

fn spec(rows: u64, key: u8) -> TableSpec {
    let person = Some("patient".to_owned());
    let rules = Arc::new(RowRules { person, rows_per_person: Some(rows), ..RowRules::default() });
    TableSpec { rules, person_key: Some(PersonKey::test(key)), ..named(&["x", "y"]) }
}

/// Ids that are no doubles: two of them are next to each other.
fn id(person: usize) -> i64 {
    (1 << 53) + person as i64
}

/// Person, x and y of each row. x tells a row from others.
fn rows() -> Vec<(i64, f64, f64)> {
    (0..PERSONS * ROWS).map(|i| (id(i % PERSONS), i as f64, (i % 7) as f64 / 4.0)).collect()
}

fn text(rows: &[(i64, f64, f64)]) -> String {
    rows.iter().fold("patient,x,y\n".to_owned(), |text, (id, x, y)| text + &format!("{id},{x},{y}\n"))
}

/// The x of the rows that count, sorted.
fn taken(path: &Path, spec: &TableSpec) -> Vec<u64> {
    let table = read(path, spec).unwrap_or_else(|e| panic!("{e}; {}", e.advice()));
    let mut all: Vec<u64> = table.values.chunks(2).map(|row| row[0] as u64).collect();
    all.sort_unstable();
    all
}

fn of_each(taken: &[u64]) -> Vec<usize> {
    let mut of: BTreeMap<u64, usize> = BTreeMap::new();
    taken.iter().for_each(|x| *of.entry(x % PERSONS as u64).or_default() += 1);
    of.into_values().collect()
}

#[test]
fn at_most_so_many_rows_of_a_person_count_and_always_the_same() {
    let folder = Folder::new("persons");
    let path = folder.at("rows.csv");
    fs::write(&path, text(&rows())).unwrap();
    for most in [1, 2, 4, 5, 1_000] {
        let first = taken(&path, &spec(most, 1));
        assert_eq!(of_each(&first), vec![ROWS.min(most as usize); PERSONS]);
        // Whatever the order of rows.
        let turned: Vec<_> = rows().into_iter().rev().collect();
        let other = folder.at("turned.csv");
        fs::write(&other, text(&turned)).unwrap();
        assert_eq!(taken(&other, &spec(most, 1)), first);
        // And of files, and of columns.
        let parts = folder.at(&format!("parts-{most}"));
        fs::create_dir(&parts).unwrap();
        for (i, part) in turned.chunks(17).enumerate() {
            let lines = part.iter().map(|(id, x, y)| format!("{y:.3},{id},{x:.1}\n")).collect::<String>();
            fs::write(parts.join(format!("{i}.csv")), format!("y,patient,x\n{lines}")).unwrap();
        }
        assert_eq!(taken(&parts, &spec(most, 1)), first, "digits play no part, either");
        // Another secret takes others, if any are left out.
        assert_eq!(taken(&path, &spec(most, 2)) == first, most >= ROWS as u64);
    }
    // A person who has more rows later has the same ones or a new one in the place of one; nobody else is touched.
    let first = taken(&path, &spec(2, 1));
    let more: Vec<_> =
        rows().into_iter().chain((0..9).map(|i| (id(3), f64::from(600 + i * PERSONS as i32 + 3), 9.0))).collect();
    fs::write(&path, text(&more)).unwrap();
    let others = |all: &[u64]| all.iter().copied().filter(|x| x % PERSONS as u64 != 3).collect::<Vec<_>>();
    let later = taken(&path, &spec(2, 1));
    assert_eq!((others(&later), later.len()), (others(&first), first.len()));
    // A person more or less is no more than their rows that count.
    let without: Vec<_> = rows().into_iter().filter(|row| row.0 != id(3)).collect();
    fs::write(&path, text(&without)).unwrap();
    assert_eq!(taken(&path, &spec(2, 1)), others(&first));
    fs::write(&path, text(&more)).unwrap();
    // Without a secret nothing is cut: rows that are only looked at.
    assert_eq!(taken(&path, &TableSpec { person_key: None, ..spec(2, 1) }).len(), more.len());
}

#[test]
fn every_form_takes_the_same_rows_and_ids_beyond_doubles_are_told_apart() {
    let folder = Folder::new("persons-forms");
    let path = folder.at("rows");
    let columns = |types: &str| parquet(&[columns_of(&text(&rows()), types)], Compression::SNAPPY);
    fs::write(&path, text(&rows())).unwrap();
    let first = taken(&path, &spec(2, 7));
    assert_eq!(of_each(&first), [2; PERSONS], "persons whose ids are one double stay two");
    for types in ["int float float", "text float float"] {
        fs::write(&path, columns(types)).unwrap();
        assert_eq!(taken(&path, &spec(2, 7)), first);
    }
    fs::write(&path, columns("cents float float")).unwrap();
    let told = refused(&path, &spec(2, 7));
    assert!(told.contains("\"patient\"") && told.contains("export it as text or as an integer"), "{told}");
}

/// Rows without a value are counted apart: as many of a person as of those that are used, and none of nobody.
#[test]
fn at_most_so_many_rows_of_a_person_lack_a_value() {
    let folder = Folder::new("persons-missing");
    let path = folder.at("rows.csv");
    let mut all = text(&rows());
    (0..ROWS).for_each(|i| all += &format!("{},{},\n{},,0.5\n,,\n", id(0), 100 + i, id(1)));
    fs::write(&path, all).unwrap();
    for most in [1, 2, 4, 1_000] {
        let spec = spec(most, 1);
        let columns = ["x", "y"].map(|name| (name.to_owned(), name.to_owned())).into();
        let rules = RowRules { missing: Some(Missing::LeaveOut), columns, ..(*spec.rules).clone() };
        let spec = TableSpec { rules: Arc::new(rules), ..spec };
        let table = read(&path, &spec).unwrap_or_else(|e| panic!("{e}; {}", e.advice()));
        let lacking = most.min(ROWS as u64);
        assert_eq!(table.tally.columns.iter().map(|of| of.missing).collect::<Vec<_>>(), [lacking; 2], "{most}");
        assert_eq!(table.tally.used, (PERSONS as u64) * lacking);
        assert_eq!(table.tally.left_out.rows(), 3 * ROWS as u64);
        // Under noise one column is left out by the site's rule, and the other as a row that cannot be used: both count once.
        let one = [("x".to_owned(), "x".to_owned())].into();
        let rules = RowRules { columns: one, ..(*spec.rules).clone() };
        let text = (0..ROWS).map(|i| format!("7,,{i}\n7,{i},\n")).collect::<String>();
        let both = folder.at("both.csv");
        fs::write(&both, "patient,x,y\n".to_owned() + &text).unwrap();
        let spec = TableSpec { rules: Arc::new(rules), unusable: Unusable::Weightless, ..spec };
        let table = read(&both, &spec).unwrap_or_else(|e| panic!("{e}; {}", e.advice()));
        let all: u64 = table.tally.columns.iter().map(|of| of.missing).sum();
        assert_eq!((all, table.tally.used), (most.min(2 * ROWS as u64), 0), "{most}");
    }
}

#[test]
fn the_secret_is_made_once_and_only_its_owner_reads_it() {
    let folder = Folder::new("persons-key");
    let path = folder.at("a.key.persons");
    let first = PersonKey::of(&path).unwrap();
    assert!(PersonKey::of(&path).unwrap() == first && format!("{first:?}") == "PersonKey");
    crate::files::check_private(&path).unwrap();
    assert!(PersonKey::of(&folder.at("b.key.persons")).unwrap() != first);
    fs::write(&path, "short").unwrap();
    let failure = PersonKey::of(&path).unwrap_err();
    assert!(failure.message.contains("damaged") && failure.advice.contains("from a backup"), "{failure}");
}
