//! What the reader accepts and refuses.

use std::io::{self, Cursor, Read};

use super::*;

mod account;
#[cfg(feature = "columnar")]
pub(super) mod forms;
#[cfg(feature = "columnar")]
mod own_words;
mod texts;
#[cfg(feature = "columnar")]
mod typed;

/// What happened and what to do next.
fn whole(error: &TableError) -> String {
    format!("{error}; {}", error.advice())
}

fn all() -> TableSpec {
    TableSpec::default()
}

fn spec(columns: &[&str], label: Option<&str>) -> TableSpec {
    TableSpec { columns: columns.iter().map(|&c| c.to_owned()).collect(), label: label.map(str::to_owned), ..all() }
}

#[test]
fn a_category_becomes_indicators_behind_the_numbers() {
    use crate::plan::Categorical;
    let categories = ["no", "yes", "é"].map(str::to_owned).to_vec();
    let smoker = Categorical { column: "smoker".into(), categories, weight: 0.5 };
    let wanted = TableSpec { categorical: vec![smoker], ..spec(&["age"], Some("site")) };
    let table = read("smoker,age,site\nyes,40,a\né,50,b\n", &wanted).unwrap();
    assert_eq!(table.columns, ["age", "smoker=no", "smoker=yes", "smoker=é"]);
    assert_eq!(table.values, [40.0, 0.0, 1.0, 0.0, 50.0, 0.0, 0.0, 1.0]);
    let unknown = refused("smoker,age,site\nno,40,a\nsometimes,50,b\n", &wanted);
    assert!(unknown.contains("line 3, column \"smoker\"") && unknown.contains("\"no\", \"yes\", \"é\""), "{unknown}");
    assert!(!unknown.contains("sometimes"), "{unknown}");
    assert!(refused("smoker,age,site\n,50,b\n", &wanted).contains("column \"smoker\": the value is missing"));
    assert!(refused("age,site\n50,b\n", &wanted).contains("no column is called \"smoker\""));
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
        total: true,
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

#[test]
fn columns_come_in_the_order_asked_for() {
    let text = "a,b,kind,c\n1,2,x,3\n4,5, y ,6e0\n";
    let table = read(text, &spec(&["c", "a"], Some("kind"))).expect("a good table");
    assert_eq!((table.columns.join(" "), table.rows), ("c a".to_owned(), 2));
    assert_eq!(table.values, [3.0, 1.0, 6.0, 4.0]);
    assert_eq!(table.labels, Some(vec!["x".to_owned(), "y".to_owned()]));
    let rest = read(text, &spec(&[], Some("kind"))).expect("a good table");
    assert_eq!((rest.columns.join(" "), rest.values[..3].to_vec()), ("a b c".to_owned(), vec![1.0, 2.0, 3.0]));
}

#[test]
fn what_spreadsheets_write_is_read() {
    let expected = read("a,b\n1,2\n3,4\n", &all()).expect("a good table");
    for text in [
        "\u{feff}a,b\r\n1,2\r\n3,4\r\n",
        "a;b\n1;2\n3;4",
        "a\tb\n1\t2\n\n3\t4\n\n\n",
        "\"a\",\"b\"\n\"1\",2\n 3 , 4\n",
        "\n\na;b\r\n1;2\r\n3;4\r\n",
        "a,b\r1,2\r3,4\r",
    ] {
        let table = read(text, &all()).expect(text);
        assert!((table.columns, table.values) == (expected.columns.clone(), expected.values.clone()), "{text:?}");
    }
    let tricky = read("\"a,1\";b\n1;2\n", &all()).expect("a delimiter within quotes is none");
    assert_eq!(tricky.columns, ["a,1", "b"]);
}

#[test]
fn a_column_left_out_may_hold_anything() {
    let table = read(b"a,name\n1,caf\xe9\n2,\n", &spec(&["a"], None)).expect("only a is read");
    assert_eq!(table.values, [1.0, 2.0]);
}

#[test]
fn bad_cells_are_named_by_place_and_never_shown() {
    for (cell, words) in [
        ("secret77", "not a number"),
        ("0x77", "not a number"),
        ("7 7", "not a number"),
        ("", "missing"),
        ("NA", "missing"),
        ("NaN", "missing"),
        ("-inf", "NaN"),
        ("7e999", "too large"),
    ] {
        for (end, line) in [("\n", 4), ("\r\n", 4)] {
            let text = format!("a,weight{end}1,2{end}{end}3,{cell}{end}5,6{end}");
            let error = refused(text, &all());
            assert!(error.contains(words), "{error}");
            assert!(error.contains("\"weight\""), "{error}");
            assert!(error.contains(&format!("line {line},")), "{error}");
            assert!(!error.contains("77") && !error.contains("secret") && !error.contains("999"), "{error}");
        }
    }
    assert!(refused("a;b\n1;2,5\n", &all()).contains("decimal comma"));
}

#[test]
fn bad_shapes_are_named() {
    assert!(refused("", &all()).contains("empty"));
    assert!(refused("\n\r\n", &all()).contains("empty"));
    assert!(refused("a,b\n", &all()).contains("no rows"));
    let ragged = refused("a,b\n1,2\n1,2,3\n", &all());
    assert!(ragged.contains("line 3: 3 cells where 2 belong"), "{ragged}");
    assert!(refused("a,b,a\n1,2,3\n", &all()).contains("two columns are called \"a\""));
    assert!(refused("a,,b\n1,2,3\n", &all()).contains("column 2 has no name"));
    assert!(refused("a\nx\n", &spec(&[], Some("a"))).contains("no column beside the label"));
    let unknown = refused("a,b\n1,2\n", &spec(&["c"], None));
    assert!(unknown.contains("\"c\"") && unknown.contains("\"a\", \"b\""), "{unknown}");
    assert!(refused("a,b\n1,2\n", &spec(&["a", "a"], None)).contains("asked for twice"));
    assert!(refused("a,b\n1,2\n", &spec(&["a", "b"], Some("b"))).contains("asked for twice"));
}

#[test]
fn a_file_without_a_header_is_told_and_not_quoted() {
    for text in ["5.1,3.5,setosa\n4.9,3.0,setosa\n", "setosa,5.1,3.5\n", "x;5,1\n"] {
        let error = refused(text, &spec(&["petal"], None));
        assert!(error.contains("looks like data"), "{error}");
        assert!(!error.contains("setosa") && !error.contains("5.1"), "{error}");
    }
}

#[test]
fn other_encodings_are_told_by_their_line() {
    assert!(refused(b"a,kind\n1,x\n2,caf\xe9\n", &spec(&["a"], Some("kind"))).contains("line 3: the text is not"));
    assert!(refused(b"caf\xe9,b\n1,2\n", &all()).contains("line 1: the text is not"));
    assert!(refused(b"\xff\xfea\0,\0b\0\n\0", &all()).contains("line 1: the text is not"));
    assert!(refused(b"a\0,\0b\0\n\x001\0,\x002\0", &all()).contains("line 1: the text is not"));
}

#[test]
fn a_gap_in_a_single_column_is_a_missing_value() {
    assert!(refused("a\n1\n\n2\n", &all()).contains("line 3, column \"a\": the value is missing"));
    assert!(refused("a\r\n1\r\n\r\n2\r\n", &all()).contains("line 3, column \"a\": the value is missing"));
    assert_eq!(read("a\n1\n2\n\n\n", &all()).expect("only the end is blank").values, [1.0, 2.0]);
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
            Err(TableError { spot: Spot::Row(at), fault: Fault::RowTooLong, .. }) => assert_eq!(at, Place::Line(line)),
            other => panic!("{other:?}"),
        }
    }
    let wide = "a,".repeat(MAX_COLUMNS) + "b\n";
    assert!(refused(wide, &all()).contains("more than 4096 columns"));
    let long = format!("a,b\n1,2\n3,{}\n", "7".repeat(MAX_CELL + 1));
    assert!(refused(long, &all()).contains("line 3: column 2 holds more than"));
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
}

#[test]
fn what_is_written_reads_back() {
    let numbers = [[0.1, 1e300], [-5e-324, 1.0 / 3.0]];
    let mut out = Vec::new();
    let cells = numbers.map(|row| row.map(|x| format!("{x:?}")));
    write_csv(&mut out, &["c, 1", "c\"2"], cells).expect("memory is patient");
    let table = read(&out, &all()).expect("our own file");
    assert_eq!(table.columns, ["c, 1", "c\"2"]);
    assert_eq!(table.values, numbers.concat());
    let mut out = Vec::new();
    write_csv(&mut out, &["id", "cluster"], [["1", "a,b"], ["2", ""]]).expect("memory is patient");
    assert_eq!(String::from_utf8(out).expect("text"), "id,cluster\n1,\"a,b\"\n2,\n");
    let short = write_csv(Vec::new(), &["id", "cluster"], [["1"]]).expect_err("a short row");
    assert!(matches!(short.fault, Fault::WriteRagged { got: 1, expected: 2 }));
}

#[test]
fn a_table_does_not_print_its_cells() {
    let table = read("a\n77\n", &all()).expect("a good table");
    assert_eq!(format!("{table:?}"), "Table { columns: [\"a\"], .. }");
}

#[test]
fn every_row_that_cannot_be_used_is_counted_by_its_reason() {
    let spec = TableSpec { columns: vec!["a".into(), "b".into()], ..TableSpec::default() };
    let read = |text: &str| read_csv_from(text.as_bytes(), "f.csv", &spec);
    // A blank line, and a cell over two lines, move the lines from the rows.
    let text = "a,b,c\n1,2,x\n,2,x\n\n3,abc,x\n4,5,\"two\nlines\"\n,,x\n6,7\n8,inf,x\n,1,x\n,1,x\n,1,x\n9,9,x\n";
    let error = read(text).unwrap_err();
    assert_eq!(
        error.to_string(),
        "f.csv, line 3, column \"a\": the value is missing; in all 8 rows cannot be used: 5 with no value in \"a\" (lines 3, 8, 11, …); \
         1 with no number in \"b\" (line 5); 1 with other cells than the header has (line 9); 1 with NaN, infinite or too large in \
         \"b\" (line 10)"
    );
    assert!(
        error.advice().starts_with("remove such rows, or fill them in before clustering; or"),
        "{}",
        error.advice()
    );
    // One alone is told as before, and what cannot be told apart ends the reading there.
    let one = read("a,b,c\n1,2,x\n,2,x\n3,4,x\n").unwrap_err();
    assert_eq!(one.to_string(), "f.csv, line 3, column \"a\": the value is missing");
    let long = format!("a,b,c\n,2,x\n1,2,{}\n", "x".repeat(MAX_CELL + 1));
    let long = read(&long).unwrap_err();
    assert!(matches!((long.spot, long.fault), (Spot::Row(Place::Line(3)), Fault::CellTooLong(3))));
    let blanks = read_csv_from("a\n1\n\n\n2\n".as_bytes(), "f.csv", &TableSpec::default()).unwrap_err();
    assert!(
        blanks.to_string().contains("in all 2 rows cannot be used: 2 with no value in \"a\" (lines 3, 4)"),
        "{blanks}"
    );
}
