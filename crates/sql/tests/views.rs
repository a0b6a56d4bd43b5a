//! Views of every kind: each is read as a file with the same values is, or refused with the column and what is wrong with it.

use veilsum_answerer::{
    Fault, Held, conformance,
    contract::{Categorical, Column, Hello, PROTOCOL},
};
use veilsum_cluster::{OutOfBox, Rows, Scaling};
use veilsum_node::table::{self, TableSpec};

const VIEWS: &str = r#"
CREATE DOMAIN years AS int CHECK (value >= 0);
CREATE TYPE smoke AS ENUM ('never', 'former', 'current');
CREATE TABLE v (age years, bmi numeric(5,2), cost money, w real, sex char(3), smoker smoke, ok boolean, d date, n numeric, big numeric,
  arr int[], "AGE" int, js jsonb, code float8, word text);
INSERT INTO v SELECT 20 + i % 60, 18 + (i % 200) / 10.0, '12.30', 0.1::real, CASE i % 2 WHEN 0 THEN 'm' ELSE 'f' END,
  (ARRAY['never', 'former', 'current'])[1 + i % 3]::smoke, i % 2 = 0, '2020-01-01', 20 + i / 7.0, 12345678901234567890.123456789 * (1 + i),
  ARRAY[i], i, '{}', 1 + i % 2, (ARRAY['1', ' 2.0 '])[1 + i % 2]
  FROM generate_series(1, 300) i;
CREATE MATERIALIZED VIEW mv AS SELECT age, bmi FROM v;
CREATE TABLE "Mixed Case" (age int, bmi float8);
INSERT INTO "Mixed Case" SELECT age, bmi FROM v;
CREATE SCHEMA stats;
CREATE VIEW stats.rows AS SELECT age, bmi FROM v;
"#;

fn hello(category: Option<(&str, &[&str])>) -> Hello {
    let column = |name: &str, lower, upper| Column { name: name.to_owned(), lower, upper };
    let of = |(column, categories): (&str, &[&str])| Categorical {
        column: column.into(),
        categories: categories.iter().map(|word| (*word).to_owned()).collect(),
        one: 0.5,
    };
    Hello {
        protocol: PROTOCOL,
        columns: vec![column("age", 0.0, 120.0), column("bmi", 10.0, 60.0)],
        categorical: category.into_iter().map(of).collect(),
        scaling: Scaling::Box,
        out_of_box: OutOfBox::Refuse,
        noise: false,
    }
}

#[test]
fn every_view_is_read_or_refused_with_what_is_wrong() {
    let Some(server) = super::server() else { return };
    server.sql(VIEWS);
    let asked = |args: &[&str], mode: &str, category: Option<(&str, &[&str])>| {
        let (launch, _) = super::launch(&server, &[args, &["--mode", mode]].concat());
        Held::start(launch, hello(category)).map(|held| held.ready().rows)
    };
    let nulls = |what: &str| format!("SELECT age, CASE WHEN age = 25 THEN {what} ELSE bmi END AS bmi FROM v");
    for mode in ["stream", "push"] {
        for (args, rows) in [
            (["--query", "SELECT age, bmi FROM v"], 300),
            (["--query", "SELECT age::int AS age, n AS bmi FROM v WHERE n < 60"], 279),
            (["--query", "SELECT age, bmi, d, arr, js, cost FROM v"], 300),
            (["--query", "SELECT age, bmi::real AS bmi FROM v"], 300),
            (["--query", "SELECT age, bmi, age AS age2 FROM v"], 300),
            (["--query", "SELECT ok AS age, bmi FROM v"], 300),
            (["--view", "mv"], 300),
            (["--view", "Mixed Case"], 300),
            (["--view", "stats.rows"], 300),
        ] {
            let found = asked(&args, mode, None);
            assert_eq!(found.unwrap_or_else(|fault| panic!("{args:?}: {fault}")), rows, "{args:?}");
        }
        for (query, told) in [
            (nulls("'NaN'::numeric"), "5 with no value in \"bmi\""),
            (nulls("'NaN'::float8"), "5 with no value in \"bmi\""),
            (nulls("'Infinity'::float8"), "5 with not a finite number in \"bmi\""),
            (nulls("NULL"), "5 with no value in \"bmi\""),
            ("SELECT age, big AS bmi FROM v".into(), "300 with a value outside the plan's public box in \"bmi\""),
            ("SELECT 9007199254740993::bigint AS age, bmi FROM v".into(), "outside the plan's public box in \"age\""),
            ("SELECT age, bmi::text AS bmi FROM v".into(), "the column \"bmi\" is of the type text"),
            ("SELECT age, cost AS bmi FROM v".into(), "the column \"bmi\" is of the type money"),
            ("SELECT age, d AS bmi FROM v".into(), "the column \"bmi\" is of the type date"),
            ("SELECT arr AS age, bmi FROM v".into(), "the column \"age\" is of the type _int4"),
            ("SELECT age, js AS bmi FROM v".into(), "the column \"bmi\" is of the type jsonb"),
            ("SELECT \"AGE\", bmi FROM v".into(), "there is no column \"age\" (there is \"AGE\")"),
            ("SELECT age, bmi, bmi FROM v".into(), "\"bmi\" stands twice"),
        ] {
            let fault = asked(&["--query", &query], mode, None).expect_err(&query);
            let told_is = match &fault {
                Fault::BadRows(_, reasons) => reasons.to_string(),
                fault => fault.to_string(),
            };
            let [count, what] = told.split_once(" with ").map_or(["", told], |(count, what)| [count, what]);
            assert!(
                told_is.contains(what) && told_is.contains(count) && !told_is.contains("9007"),
                "{query}: {told_is}"
            );
        }
    }
}

/// What is a category of a file is one of a view: a number, a yes or no and a word in the spelling of every form.
#[test]
fn categories_are_found_in_every_spelling() {
    let Some(server) = super::server() else { return };
    let held = |values: &str, categories: &[&str], mode: &str| {
        let query = format!("SELECT 30 AS age, 20.5 AS bmi, c FROM (VALUES {values}) t (c)");
        let (launch, _) = super::launch(&server, &["--query", &query, "--mode", mode]);
        Held::start(launch, hello(Some(("c", categories))))
    };
    let composed = "caf\u{e9}";
    for (values, categories) in [
        ("(1), (2)", ["1", "2"]),
        ("(1), (2)", ["1.0", "2.0"]),
        ("(1::float8), (2)", ["1", "2"]),
        ("(1.00), (2.0)", ["1", "2"]),
        ("(1.50), (2.5)", ["1.5", "2.5"]),
        ("('1'), (' 2.0 ')", ["1", "2"]),
        ("('100.'), ('0.0')", ["100", "0"]),
        ("('m'::char(3)), ('f')", ["m", "f"]),
        ("(true), (false)", ["true", "false"]),
        ("(true), (false)", ["True", "False"]),
        ("(true), (false)", ["1", "0"]),
        ("('TRUE'), ('False')", ["true", "false"]),
        ("('TRUE'), ('False')", ["1", "0"]),
        ("('none'), ('NaN')", ["none", "NaN"]),
        ("(E'cafe\\u0301'), (E'caf\\u00e9')", [composed, "b"]),
    ] {
        for mode in ["stream", "push"] {
            let rows = held(values, &categories, mode).map(|held| held.ready().rows);
            assert_eq!(rows.unwrap_or_else(|fault| panic!("{values} {categories:?}: {fault}")), 2);
        }
    }
    for (values, reason) in [
        ("('01'), ('1')", "1 with a category that the plan does not list"),
        ("('NA'), ('1')", "1 with no value"),
        ("(''), (' ')", "2 with no value"),
        ("('NaN'), (NULL)", "2 with no value"),
        ("('NaN'::float8), (1)", "1 with no value"),
        ("('none'), ('nothing')", "1 with a category that the plan does not list"),
    ] {
        for mode in ["stream", "push"] {
            let Err(Fault::BadRows(_, reasons)) = held(values, &["1", "2"], mode) else { panic!("{values}") };
            let [count, what] = reason.split_once(" with ").map(|(count, what)| [count, what]).unwrap();
            assert!(reasons.contains(&format!("{what} in \"c\" ({count})")), "{values}: {reasons}");
        }
    }
}

/// The database writes its view as a file; read as one, it is the same rows, word for word.
#[test]
fn a_view_has_the_rows_of_the_file_that_the_database_writes_of_it() {
    let Some(server) = super::server() else { return };
    let sugar = "\"Blood \"\"sugar\"\"\"";
    server.sql(&format!(
        "CREATE VIEW typed AS SELECT age::numeric(7, 3) AS age, bmi::float8 AS bmi, {sugar}::float8 AS {sugar}, smoker::varchar AS smoker \
         FROM veilsum_example"
    ));
    let hello = super::hello();
    let columns = hello.columns.iter().map(|column| column.name.clone()).collect();
    let of = |of: &Categorical| veilsum_node::plan::Categorical {
        column: of.column.clone(),
        categories: of.categories.clone(),
        weight: 1.0,
    };
    let categorical = hello.categorical.iter().map(of).collect();
    let spec = TableSpec { columns, categorical, ..TableSpec::default() };
    let mut all = Vec::new();
    for options in ["CSV HEADER", "DELIMITER ';' CSV HEADER", "CSV HEADER FORCE QUOTE *"] {
        let text = server.sql(&format!("COPY (TABLE typed) TO STDOUT WITH {options}")) + "\n";
        let table =
            table::read_csv_from(text.as_bytes(), "rows.csv", &spec).unwrap_or_else(|e| panic!("{options}: {e}"));
        all.push(Rows::new(table.values, 6).unwrap());
    }
    assert!(all.iter().all(|rows| *rows == all[0]));
    let (launch, _) = super::launch(&server, &["--view", "typed", "--mode", "stream"]);
    let tried = conformance::check(&launch, &all[0]);
    let wrong: Vec<_> = tried.iter().filter(|one| one.result.is_err()).collect();
    assert!(tried.len() > 16 && wrong.is_empty(), "{wrong:#?}");
}
