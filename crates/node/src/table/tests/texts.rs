//! Texts as other programs write them: read right, or refused with the place and with what helps.

use std::{fs, sync::Arc};

use super::*;
use crate::documents::tests::Folder;

fn under(rules: RowRules) -> TableSpec {
    TableSpec { rules: Arc::new(rules), ..all() }
}

fn columns(text: &str, spec: &TableSpec) -> (String, Vec<f64>) {
    let table = read(text, spec).unwrap_or_else(|e| panic!("{text:?}: {}", whole(&e)));
    (table.columns.join("|"), table.values)
}

/// No row is lost by a quotation mark: each text is refused at the line on which the mark opens.
#[test]
fn a_quotation_mark_without_its_partner_is_told_by_its_line() {
    for (text, line, what) in [
        ("a,b\n1,\"2\n", 2, "up to the end of the file"),
        ("a,b\n1,\"2", 2, "up to the end of the file"),
        ("a,b\r\n\r\n1,2\r\n3,\"4\r\n", 4, "up to the end of the file"),
        ("a,\"b\n1,2\n3,4\n", 1, "up to the end of the file"),
        ("a,b\n1,2\n\"1,2\n3,4\n", 3, "which has all cells of a row"),
        ("a,b,n\n1,2,\"x\n3,4,y\n5,6,z\n", 2, "before line 3, which looks like a row"),
        ("a,b,n\n1,2,\"x\n3,4,6\"\n5,6,z\n", 2, "before line 3, which looks like a row"),
        ("a,b,n\n1,2,\"x\n3,4,\"y\"\n5,6,z\n", 2, "before line 3, which looks like a row"),
        ("n,a,b\n\"x,1,2\n\"y\",3,4\n", 2, "which has all cells of a row"),
        ("n;a\nx;1\n\"y\n\"z\";3\nu;4\n", 3, "text follows the quotation mark that closes a cell on line 4"),
        ("a\n1\n\"2\n3\"\n4\n", 3, "before line 4, which looks like a row"),
        ("a b n\n1 2 \"x\n3 4 y\n5 6 z\"\n", 2, "before line 3, which looks like a row"),
        ("\"a,b\n1,2\n3,4\",c\n5,6\n", 1, "before line 2, which looks like a row"),
    ] {
        let error = refused(text, &all());
        let place = format!("site.csv, line {line}");
        assert!(error.starts_with(&place) && error.contains(what), "{text:?}: {error}");
    }
    // Rows that cannot be used before it change nothing about where it is.
    let error = refused("a,b,n\nx,1,u\n,2,u\n1,2,\"v\n3,4,w\n", &spec(&["a", "b"], None));
    assert!(error.starts_with("site.csv, line 4: a quotation mark opens here"), "{error}");
    assert!(error.contains("multiline = true"), "{error}");
}

#[test]
fn a_cell_may_span_lines_that_are_no_rows() {
    let text = "n,a,b\n\"two\nlines\",1,2\n\"and, one\n\nmore\",3,4\nlast,5,6\n";
    let table = read(text, &spec(&["a", "b"], None)).unwrap();
    assert_eq!((table.values, table.tally.spanning), (vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2));
    // Those that look like rows count where the site says so, and lines are counted over them.
    let text = "n,a,b\n\"x,1,2\ny,3,4\n\",5,6\nz,7,8\nz,q,8\n";
    let spec = TableSpec {
        columns: vec!["a".into(), "b".into()],
        ..under(RowRules { multiline: true, ..RowRules::default() })
    };
    let error = refused(text, &spec);
    assert!(error.starts_with("site.csv, line 6, column \"a\""), "{error}");
    let table = read(text.replace('q', "9"), &spec).unwrap();
    assert_eq!((table.values, table.tally.spanning), (vec![5.0, 6.0, 7.0, 8.0, 9.0, 8.0], 1));
}

#[test]
fn marks_within_cells_are_plain_or_told() {
    for text in ["n,a\n5\" pipe,1\nx\"y\"z,2\n", "n,a\n\"5\"\" pipe\",1\n \"x\" ,2\n", "n,a\n\"\",1\n\"\"\"\",2\n"] {
        assert_eq!(read(text, &spec(&["a"], None)).unwrap_or_else(|e| panic!("{text}: {e}")).values, [1.0, 2.0]);
    }
    let table = read("n,a\n\"5\"\" pipe\",1\n", &spec(&["a"], Some("n"))).unwrap();
    assert_eq!(table.labels, Some(vec!["5\" pipe".to_owned()]));
    // The rows behind such a row can be told apart, so it is one that cannot be used.
    let error = refused("n,a\nx,1\n\"ab\"c,2\ny,q\n", &spec(&["a"], None));
    assert!(
        error.starts_with("site.csv, line 3: text follows the quotation mark that closes a cell; in all 2 rows"),
        "{error}"
    );
    assert!(error.contains("line 3") && error.contains("twice (\"\")") && !error.contains("ab"), "{error}");
}

#[test]
fn what_stands_between_cells_is_told_from_header_and_rows() {
    let expected = ("age|bmi".to_owned(), vec![30.0, 21.5, 40.0, 23.5]);
    for text in [
        "age,bmi\n30,21.5\n40,23.5\n",
        "age|bmi\n30|21.5\n40|23.5\n",
        "age bmi\n30 21.5\n40   23.5\n",
        "  age   bmi\n   30  21.5 \n   40  23.5\n",
        "age\tbmi\n30 \t 21.5\n 40\t23.5\n",
        "age , bmi \n 30 , 21.5\n40 ,23.5 \n",
        "age, bmi\n30, 21.5\n40, 23.5\n",
        "sep=;\r\nage;bmi\r\n30;21.5\r\n40;23.5\r\n",
        "\u{feff}\"sep=,\"\nage,bmi\n30,21.5\n40,23.5\n",
        "SEP=|\nage|bmi\n30|21.5\n40|23.5\n",
        "age,bmi,\n30,21.5,\n40,23.5,\n",
        "age|bmi|\n30|21.5|\n40|23.5|\n",
        "age,bmi,\n30,21.5\n40,23.5\n",
    ] {
        assert_eq!(columns(text, &all()), expected, "{text:?}");
    }
    let named = columns("\"Weight, kg\";\"Age,\nyears\"\n70.5;30\n", &all());
    assert_eq!(named, ("Weight, kg|Age,\nyears".to_owned(), vec![70.5, 30.0]));
    assert_eq!(columns("bmi\n21.5\n23.5\n", &all()).1, [21.5, 23.5]);
    assert_eq!(columns("body mass\n21.5\n23.5\n", &all()), ("body mass".to_owned(), vec![21.5, 23.5]));
    // One row of other cells is one row that cannot be used, on its line, whatever else is between cells.
    for (text, line) in
        [("a,b\n1,2\n3,4\n5\n6,7\n", 4), ("sep=;\na;b\n1;2\n3;4;5\n6;7\n", 4), ("a, b\n1, 2\n3, 4,5\n6, 7\n", 3)]
    {
        assert!(refused(text, &all()).contains(&format!("line {line}: ")), "{text:?}");
    }
}

#[test]
fn what_can_be_read_in_two_ways_is_not_guessed() {
    let text = "Weight, kg;Height, cm;Age, y\n70,5;180,2;30,9\n80,5;170,4;40,1\n";
    let error = refused(text, &all());
    assert!(error.contains("two ways") && error.contains("\"Weight, kg\", \"Height, cm\", \"Age, y\""), "{error}");
    assert!(error.contains("delimiter = \",\" for the first, delimiter = \";\" with decimal = \",\""), "{error}");
    assert!(!error.contains("70") && !error.contains("180"), "{error}");
    let semicolon = RowRules { delimiter: Some(Delimiter::Semicolon), ..RowRules::default() };
    assert!(refused(text, &under(semicolon.clone())).contains("say decimal = \",\""));
    for rules in [
        RowRules { decimal: Some(Decimal::Comma), ..semicolon },
        RowRules { decimal: Some(Decimal::Comma), ..RowRules::default() },
    ] {
        let read = columns(text, &under(rules));
        assert_eq!(read, ("Weight, kg|Height, cm|Age, y".to_owned(), vec![70.5, 180.2, 30.9, 80.5, 170.4, 40.1]));
    }
    assert!(refused("a|x,b\n1|2,3\n4|5,6\n", &all()).contains("delimiter = \"|\""));
    assert!(refused("a\tx,b\n1\t2,3\n4\t5,6\n", &all()).contains("delimiter = \"tab\""));
    let pipe = RowRules { delimiter: Some(Delimiter::Pipe), ..RowRules::default() };
    assert!(refused("a|x,b\n1|2,3\n", &under(pipe)).contains("column \"x,b\""));
    // First centres are numbers alone.
    assert!(
        read_matrix_from("1,5;2,5\n3,5;4,5\n".as_bytes(), "c.csv", 2).unwrap_err().to_string().contains("two ways")
    );
}

#[test]
fn decimal_commas_are_read_where_the_site_says_so() {
    let comma = || under(RowRules { decimal: Some(Decimal::Comma), ..RowRules::default() });
    for (text, values) in [
        ("age;bmi\n30,5;21,5\n-40;1,5e1\n", vec![30.5, 21.5, -40.0, 15.0]),
        ("age,bmi\n\"30,5\",\"21,5\"\n\"40,5\",22\n", vec![30.5, 21.5, 40.5, 22.0]),
        ("bmi\n21,5\n23,5\n", vec![21.5, 23.5]),
        ("age bmi\n30,5 21,5\n", vec![30.5, 21.5]),
        ("cost\n1,234\n", vec![1.234]),
    ] {
        assert_eq!(columns(text, &comma()).1, values, "{text:?}");
        assert!(refused(text, &all()).contains("decimal = \",\""), "{text:?}");
    }
    // A point is a separator of thousands there, or a mistake, and is never guessed.
    for text in ["age;cost\n30;1.234\n", "age;cost\n30;1.234,5\n", "age;cost\n30;1.5\n", "age;cost\n30;1.234.567\n"] {
        assert!(
            refused(text, &comma()).contains("line 2, column \"cost\": this is not a number; it has a point"),
            "{text:?}"
        );
    }
    // Words keep their commas, and a filter compares what was read.
    let filter = Filter::parse("bmi < 22 and ward = 'a,b'").unwrap();
    let rules = RowRules { decimal: Some(Decimal::Comma), filter, ..RowRules::default() };
    let spec = TableSpec { columns: vec!["bmi".into()], ..under(rules) };
    assert_eq!(columns("ward;bmi\na,b;21,5\na,b;23,5\nc;1,5\n", &spec).1, [21.5]);
}

#[test]
fn thousands_are_refused() {
    for (cell, what) in [
        ("\"1,234\"", "three digits behind it"),
        ("\"1,234.50\"", "separators of thousands"),
        ("1.234.567", "separators of thousands"),
        ("\"1.234,5\"", "separators of thousands and a decimal comma"),
        ("1 234", "separators of thousands"),
        ("1'234", "separators of thousands"),
    ] {
        let error = refused(format!("age,cost\n29,1\n30,{cell}\n"), &all());
        assert!(
            error.contains("line 3, column \"cost\": this is not a number") && error.contains(what),
            "{cell}: {error}"
        );
    }
}

#[test]
fn a_header_in_another_place_is_told() {
    for (text, what) in [
        ("age,bmi\n1,30,21.5\n2,40,23.5\n", "one cell more than the header; if the first cells are names of rows"),
        ("age bmi\n1 30 21.5\n2 40 23.5\n", "one cell more than the header; if the first cells are names of rows"),
        ("age,bmi\n30,21,5\n40,23,5\n", "if numbers have commas"),
        ("age,bmi\n30,21.5,\n40,23.5,\n", "every row ends by a separator"),
        ("age\n30;\n40;\n", "every row ends by a separator"),
        ("Report of 2026\n\nage;bmi\n30;21\n40;22\n", "the header seems to be on line 3"),
        ("# a\n# b\nage,bmi\n30,21\n40,22\n", "the header seems to be on line 3"),
    ] {
        let error = refused(text, &all());
        assert!(error.starts_with("site.csv, header: ") && error.contains(what), "{text:?}: {error}");
    }
    let again = refused("age,bmi\n30,21\nage,bmi\n40,x\n", &all());
    assert!(again.starts_with("site.csv, line 3: the header stands here once more; in all 2 rows"), "{again}");
    assert!(refused("age,bmi,\n30,21,\n40,22,x\n", &all()).contains("column 3 has no name"));
    assert!(refused("sep=:\nage:bmi\n30:21\n", &all()).contains("none of comma, semicolon"));
}

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
    for name in [
        "a.csv~",
        "a.csv.bak",
        ".a.csv.swp",
        ".#a.csv",
        "#a.csv#",
        "a.tmp",
        "a.csv.part",
        "~$a.csv",
        "_a.csv",
        "A.CSV.OLD",
        "README",
        "ReadMe.txt",
    ] {
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
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, b"x,y\n3,4\n1,2\n").unwrap();
    fs::write(rows.join("z.csv.gz"), packed.finish().unwrap()).unwrap();
    let error = read(&all()).unwrap_err().to_string();
    assert!(error.contains("z.csv.gz: it holds the same 2 rows as ") && error.ends_with("b.csv"), "{error}");
    // Where rows of persons are cut, which of them count says nothing of what a file holds.
    let rules = RowRules { person: Some("x".into()), rows_per_person: Some(1), ..RowRules::default() };
    let key = PersonKey::of(&folder.at("site.key.persons")).unwrap();
    let cut = TableSpec { person_key: Some(key), rules: Arc::new(rules), ..spec(&["y"], None) };
    let error = read(&cut).unwrap_err().to_string();
    assert!(error.contains("z.csv.gz: it holds the same 2 rows as "), "{error}");
    // Under noise no cell decides whether a site answers, and what was read twice counts twice.
    let noisy = read(&TableSpec { total: true, ..spec(&["x", "y"], None) }).unwrap();
    let (told, doubts) = (noisy.tally().lines().join("\n"), noisy.tally().doubts());
    assert_eq!((noisy.rows, doubts.len()), (7, 1));
    assert!(doubts[0].contains("z.csv.gz: it holds the same 2 rows as ") && told.contains(&doubts[0]), "{told}");
}

/// The sign before fractions is that of the whole file: a point before three digits is not taken for one where other cells have commas.
#[test]
fn points_beside_decimal_commas_are_not_guessed() {
    let one = |name: &str| spec(&[name], None);
    let said = |decimal| TableSpec {
        columns: vec!["a".into()],
        ..under(RowRules { decimal: Some(decimal), ..RowRules::default() })
    };
    for (text, line) in [
        ("a;b\n1.234;5,6\n", 2),
        ("a;b\n1;2\n-12.345;6\n900;5,6\n", 3),
        ("a|n|b\n1.234|x, y|5,6\n", 2),
        ("a b\n1.234 5,6\n", 2),
        ("a\tb\n1.234\t1.234,5\n", 2),
        ("a,b\n1.234,\"5,6\"\n", 2),
        ("a;b\n1.234;\"5,6\"\n", 2),
        ("a;b\n1.234;5,6 %\n", 2),
        ("a;b\n1.234;€ 5,6\n", 2),
        ("a,b\n1.234,x\n5,1.234.567\n", 2),
        ("a,b\n5,1.234.567 €\n1.234,7\n", 3),
    ] {
        let error = refused(text, &one("a"));
        let place = format!("site.csv, line {line}, column \"a\": a point stands before three digits here, and ");
        assert!(
            error.starts_with(&place) && error.contains("decimal = \",\"") && !error.contains("234"),
            "{text:?}: {error}"
        );
        // Under noise no cell stops a site: its operator is warned.
        assert!(read(text, &TableSpec { total: true, ..one("a") }).is_ok(), "{text:?}");
        assert!(read(text, &said(Decimal::Point)).is_ok(), "{text:?}");
        assert!(refused(text, &said(Decimal::Comma)).contains("it has a point, and"), "{text:?}");
    }
    // Also where only a filter looks at the column.
    let rules = RowRules { filter: Filter::parse("a > 2").unwrap(), ..RowRules::default() };
    let filtered = TableSpec { columns: vec!["c".into()], ..under(rules) };
    assert!(refused("a;b;c\n1.234;5,6;1\n7.000;5,6;1\n", &filtered).contains("a point stands before three digits"));
    // What is plain, or stands before a fraction elsewhere in its column, is read.
    for (text, values) in [
        ("a;b\n1.234;5\n", vec![1.234]),
        ("a;b\n1.234;5,6\n1.5;2\n", vec![1.234, 1.5]),
        ("a;b\n0.234;5,6\n", vec![0.234]),
        ("a;b\n12.5;5,6\n7.125;5,6\n", vec![12.5, 7.125]),
        ("a;b\n1234;5,6\n", vec![1234.0]),
        ("a;b\n1.234;x, y\n", vec![1.234]),
        ("a,b\n1.234,192.168.100.101\n", vec![1.234]),
        ("a,b\n1.234,1.23.456\n", vec![1.234]),
        ("a,b\n1.25,1.234.567\n", vec![1.25]),
    ] {
        assert_eq!(columns(text, &one("a")).1, values, "{text:?}");
    }
}

/// A comma in a name does not make commas of numbers separators.
#[test]
fn commas_in_names_beside_decimal_commas_are_not_guessed() {
    let comma = || under(RowRules { decimal: Some(Decimal::Comma), ..RowRules::default() });
    for (text, key, names, values) in [
        ("Weight,kg Height\n70,5 180\n80,5 170\n", "blanks", "Weight,kg|Height", vec![70.5, 180.0, 80.5, 170.0]),
        ("Weight, kg\n70,5\n80,1\n", ";", "Weight, kg", vec![70.5, 80.1]),
        ("Weight, kg\tHeight\n70,5\t180\n", "tab", "Weight, kg|Height", vec![70.5, 180.0]),
    ] {
        let delimiter = toml::Value::from(key).try_into::<Delimiter>().unwrap();
        let rules = RowRules { delimiter: Some(delimiter), decimal: Some(Decimal::Comma), ..RowRules::default() };
        let error = refused(text, &all());
        assert!(error.contains("two ways") && error.contains(&format!("delimiter = {key:?} with decimal")), "{error}");
        assert_eq!(columns(text, &under(rules)), (names.to_owned(), values), "{text:?}");
    }
    let error = refused("Weight, kg Height\n70,5 180\n80,5 170\n", &all());
    assert!(error.contains("amid numbers in every row") && error.contains("without commas and blanks"), "{error}");
    assert_eq!(columns("Weight,kg Height\n70,5 180\n", &comma()).1, [70.5, 180.0]);
    assert!(refused("Weight, kg\n70,5\n", &comma()).contains("two ways"));
    // Two columns of whole numbers, and blanks within words.
    for text in ["age,kids\n30,2\n40,1\n", "age, kids\n30, 2\n40, 1\n", "patient id,kids\n30 x,2\n40 y,1\n"] {
        assert_eq!(read(text, &spec(&["kids"], None)).unwrap().values, [2.0, 1.0], "{text:?}");
    }
}

#[test]
fn a_first_line_that_says_another_separator_is_told() {
    for text in ["sep=;\nage,bmi\n30,21\n40,22\n", "sep=,\nage;bmi\n30,5;21\n40;22\n"] {
        let error = refused(text, &all());
        assert!(error.contains("other signs separate cells") && error.contains("take that line out"), "{error}");
    }
    assert_eq!(
        columns("sep=;\nWeight, kg\n70,5\n", &under(RowRules { decimal: Some(Decimal::Comma), ..RowRules::default() }))
            .1,
        [70.5]
    );
}
