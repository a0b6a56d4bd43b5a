//! What the reader accepts and refuses.

use std::io::{self, Cursor, Read, Write};

use super::*;

mod account;
mod cases;
mod copies;
#[cfg(feature = "columnar")]
pub(super) mod forms;
#[cfg(feature = "columnar")]
mod own_words;
#[cfg(feature = "columnar")]
mod typed;

/// What happened and what to do next.
fn whole(error: &TableError) -> String {
    format!("{error}; {}", error.advice())
}

/// Packed by gzip.
pub(super) fn gzip(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes.as_ref()).unwrap();
    out.finish().unwrap()
}

fn all() -> TableSpec {
    TableSpec::default()
}

fn spec(columns: &[&str], label: Option<&str>) -> TableSpec {
    TableSpec { columns: columns.iter().map(|&c| c.to_owned()).collect(), label: label.map(str::to_owned), ..all() }
}

/// [NOI-8]: whatever stands in the cells, the table is read; a row that cannot be used is not there.
#[test]
fn noi_8_no_cell_decides_whether_a_site_answers() {
    use crate::plan::Categorical;
    let rows = [
        ("1,2,u,k", Some(vec![1.0, 2.0, 1.0, 0.0])),
        (",2,u,k", None),
        ("x,2,u,k", None),
        ("inf,2,u,k", None),
        ("1;5,2,u,k", None),
        ("1,2,sometimes,k", Some(vec![1.0, 2.0, 0.0, 1.0])),
        ("1,2,,k", None),
        ("1,2,u,", None),
        ("1,2,u", None),
        ("1e300,-1e300,other,other", Some(vec![1e300, -1e300, 0.0, 1.0])),
    ];
    let categories = ["u", "other"].map(str::to_owned).to_vec();
    let of = TableSpec {
        categorical: vec![Categorical { column: "c".into(), categories: categories.clone(), weight: 1.0 }],
        unusable: Unusable::Weightless,
        ..spec(&["a", "b"], Some("l"))
    };
    for (row, expected) in &rows {
        let table = read(format!("a,b,c,l\n{row}\n"), &of).unwrap_or_else(|e| panic!("{row}: {e}"));
        assert_eq!(
            (table.rows, table.values),
            (usize::from(expected.is_some()), expected.clone().unwrap_or_default()),
            "{row}"
        );
        assert_eq!(table.tally.left_out.rows(), u64::from(expected.is_none()), "{row}");
    }
    let all: Vec<&str> = rows.iter().map(|(row, _)| *row).collect();
    let table = read(format!("a,b,c,l\n{}\n", all.join("\n")), &of).unwrap();
    assert_eq!((table.rows, table.labels), (3, Some(["k", "k", "other"].map(str::to_owned).to_vec())));
    // Without an "other" what is not listed has no weight.
    let listed = Categorical { column: "c".into(), categories: vec!["u".into(), "v".into()], weight: 1.0 };
    let none = TableSpec { categorical: vec![listed], ..of.clone() };
    assert_eq!(read("a,b,c,l\n1,2,w,k\n1,2,u,k\n", &none).unwrap().rows, 1);
    // No rows at all, and a filter that none passes.
    assert_eq!(read("a,b,c,l\n", &of).unwrap().rows, 0);
    refused("a,b\n1,0\nx,0\n", &spec(&["a", "b"], None));
}

fn read(text: impl AsRef<[u8]>, spec: &TableSpec) -> Result<Table, TableError> {
    read_csv_from(text.as_ref(), "site.csv", spec)
}

#[track_caller]
fn refused(text: impl AsRef<[u8]>, spec: &TableSpec) -> String {
    let error = whole(&read(text, spec).expect_err("this table is bad"));
    assert!(error.starts_with("site.csv"), "{error}");
    error
}

/// A stream without end, of which a reader without limits would want all.
struct Endless(u8, std::cell::Cell<usize>);

impl Read for &Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1.set(self.1.get() + buffer.len());
        assert!(self.1.get() < 4 * MAX_ROW, "read far beyond the limit");
        buffer.fill(self.0);
        Ok(buffer.len())
    }
}

#[test]
fn endless_rows_are_given_up() {
    for (before, byte, line) in [("", b'x', 1), ("", b',', 1), ("a,b\n1,2\n\"", b'7', 3), ("a,b\n1,2\n", b',', 3)] {
        let endless = Endless(byte, std::cell::Cell::new(0));
        let text = Cursor::new(before.as_bytes().to_vec()).chain(&endless);
        match read_csv_from(text, "site.csv", &all()) {
            Err(e) if e.to_string().contains("the row is longer than") => {
                assert_eq!(e.spot, Spot::Row(Place::Line(line)))
            }
            other => panic!("{other:?}"),
        }
    }
    let wide = "a,".repeat(MAX_COLUMNS) + "b\n";
    assert!(refused(wide, &all()).contains("more than 4096 columns"));
    let long = format!("a,b\n1,2\n3,{}\n", "7".repeat(MAX_CELL + 1));
    assert!(refused(long, &all()).contains("line 3: column 2 holds more than"));
    // What cannot be told apart ends the reading there, also in a column that nobody asks for.
    let long = format!("a,b,c\n,2,x\n1,2,{}\n", "x".repeat(MAX_CELL + 1));
    let long = read(long, &spec(&["a", "b"], None)).unwrap_err();
    assert!(long.to_string().contains("line 3: column 3 holds more than"), "{long}");
}

#[test]
fn many_rows_share_no_allowance() {
    let text = "a,b\n".to_owned() + &"1.25,-3\n".repeat(400_000);
    assert!(text.len() > 3 * MAX_ROW);
    let table = read(text, &all()).expect("a long table");
    assert_eq!((table.rows, table.values.len()), (400_000, 800_000));
}

#[test]
fn a_missing_file_is_told() {
    let error = super::read("no/such/site.csv", &all()).expect_err("no such file");
    assert!(error.advice().contains("check the path"), "{error}");
}

#[test]
fn centres_come_without_a_header() {
    let read = |text: &str| read_matrix_from(text.as_bytes(), "centres.csv", 2);
    assert_eq!(read("1,2\n3;4\n").map_err(|e| e.to_string()).expect_err("ragged").matches("line 2").count(), 1);
    assert_eq!(read("1;2\r\n3;-4e-3\r\n").expect("good"), [[1.0, 2.0], [3.0, -0.004]]);
    assert!(read("x,y\n1,2\n").expect_err("a header").advice().contains("remove that line"));
    assert!(read("1,2\n3,q\n").expect_err("a word").to_string().contains("line 2, column \"2\""));
    assert!(read("").expect_err("nothing").to_string().contains("empty"));
    assert!(read("1,5;2,5\n3,5;4,5\n").expect_err("commas").to_string().contains("two ways"));
}

#[test]
fn a_table_does_not_print_its_cells() {
    let table = read("a\n77\n", &all()).expect("a good table");
    assert_eq!(format!("{table:?}"), "Table { columns: [\"a\"], .. }");
}
