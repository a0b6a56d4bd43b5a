//! What was read of a site's rows, with the real program: the same account before a run and at its start, and what of it stops the site.

use std::time::Duration;

use serde_json::Value;
use veilsum_testkit::program::{Ended, Parties, agree, end_well, start, veilsum};

use crate::said::Told;

const LIMIT: Duration = Duration::from_secs(120);
/// Of a plan with noise.
const NOISE: [&str; 4] = ["--rho=0.4", "--expected-rows=4500", "--set=max_rounds=6", "--set=max_rows=1048576"];
/// What a site says that has few rows.
const TOY: &str = "max_rows = 1048576\n";

fn check(p: &Parties, more: &[&str]) -> Ended {
    agree(&p.files("site-1", "roster plan key policy"));
    p.types("site-1", "check --offline", "roster plan key policy data", more)
}

fn read(p: &Parties, code: i32) -> Value {
    check(p, &["--json"]).expect(code).json()["read"].clone()
}

fn rows(of: impl Iterator<Item = (&'static str, &'static str)>) -> String {
    of.fold("x,y,note\n".to_owned(), |text, (x, y)| text + &format!("{x},{y},private\n"))
}

/// A third of a column out of the plan's range is a warning, everywhere the operator looks.
#[test]
fn values_that_are_moved_to_the_edge_are_told_by_column() {
    let p = Parties::new(&[40, 50, 60], &["--set", "out_of_box=clip"]);
    p.folder.write("site-1.csv", &rows((0..40).map(|i| (if i % 3 == 0 { "1.75" } else { "0.5" }, "0.25"))));
    let told = check(&p, &[]).expect(0);
    let said = "x: 14 of 40 values (35 %) lie outside its range and are moved to its edge, 0 up and 14 down: line 2, line 5, line 8";
    assert!(told.unfolded().contains(&format!("WARN values: {said}")), "{}", told.text());
    assert!(told.stdout.find("WARN  values") < told.stdout.find("PASS"), "what is to be looked at: {}", told.stdout);
    assert!(told.unfolded().matches(said).count() == 2 && !told.text().contains("1.75"), "{}", told.text());
    assert!(told.stdout.lines().count() < 100, "{}", told.stdout);
    let of = read(&p, 0);
    let column = &of["columns"][0];
    assert_eq!((&column["above"], &column["below"], &of["rows"]), (&14.into(), &0.into(), &40.into()));
    // On its screen, and not in its log.
    let begun = veilsum(&p.client(1, &["--join-timeout", "1"]));
    let text = begun.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("What was read 40 rows in 1 file; all are used"), "{text}");
    assert!(text.contains(&format!("warning: {said}")) && !begun.stderr.contains("40 rows"), "{text}");
}

/// [NOI-8]: under noise all that a site shows before the plan's last answer is the same, whatever its rows hold; afterwards it says what it read.
#[test]
fn noi_8_nothing_that_depends_on_a_cell_is_shown_before_the_last_answer() {
    let p = Parties::new(&[40, 50, 60], &NOISE);
    p.folder.write("toy.toml", TOY);
    let shown = |cells: &str| {
        p.folder.write("site-1.csv", &format!("x,y,note\n{cells}"));
        let begun = veilsum(&p.client(1, &["--join-timeout", "1"]));
        // Which of the two it misses first, chance says.
        let expected = |line: &str| line.contains("no answer") || line.starts_with("next: ");
        assert!(begun.stderr.lines().all(expected), "{}", begun.stderr);
        (begun.code, begun.stdout)
    };
    let usual = shown(&"0.5,0.5,a\n".repeat(40));
    for cells in ["", "9,0.5,a\n", "\"0.5,0.5,a\n1;5,xylophone\n", "1,2\n3", &format!("{},1\n", "7".repeat(2_000_000))]
    {
        assert_eq!(shown(cells), usual, "{} bytes", cells.len());
    }
    p.folder.write("site-1.csv", &format!("x,y,note\n{}\"0.5,0.5,a\n", "9,0.5,a\n".repeat(40)));
    let lead = start(&p.server(&[]));
    let site = start(&p.client(1, &[]));
    end_well([p.intermediary(&[]), p.client(2, &[]), p.client(3, &[])].map(|args| start(&args)));
    lead.wait(LIMIT).expect(0);
    let said = ["41 rows in 1 file; 40 are used", "x: 40 of 40 values (100 %) lie", "partner on its line"];
    site.wait(LIMIT).expect(0).says(&said);
}

/// [NOI-8]: under noise the header alone says how rows are read, or its operator.
#[test]
fn noi_8_the_header_says_how_rows_are_read() {
    let p = Parties::new(&[40, 50, 60], &NOISE);
    let ready = |text: &str, own: &str, code: i32| {
        p.folder.write("toy.toml", &format!("{TOY}[rows]\n{own}"));
        p.folder.write("site-1.csv", text);
        check(&p, &[]).expect(code)
    };
    ready("x y, z;y\n", "columns = { x = \"x y, z\" }", 3)
        .says(&["several ways", "delimiter = \",\", or delimiter = \";\""]);
    ready("x,y\n0.5,0.5\n", "multiline = true", 3).says(&["take multiline out"]);
}

/// What a site says of its rows holds for every command, and rows that cannot be used are listed beside its key.
#[test]
fn a_site_says_once_where_its_rows_are_and_what_they_mean() {
    let p = Parties::new(&[40, 50, 60], &[]);
    let toy = std::fs::read_to_string(p.folder.path("toy.toml")).expect("a policy");
    std::fs::create_dir(p.folder.path("rows")).expect("a folder");
    let write = |wrong: &str| {
        for (i, part) in p.data[0].1.as_slice().chunks(30).enumerate() {
            let lines: String = part.chunks(2).map(|row| format!("{:?},{:?},a\n", row[0] * 1e3, row[1])).collect();
            p.folder.write(&format!("rows/part-{i}"), &format!("ex,y,ward\n{lines}1e9,7,b\n{wrong}"));
        }
    };
    let rows = "[rows]\nsource = \"rows\"\nfilter = \"ward = 'a'\"\ncolumns = { x = \"ex\" }\nunits = { x = { factor = 0.001 } }\n";
    p.folder.write("site.toml", &format!("{toy}{rows}"));
    let check = || p.types("site-1", "check --offline", "roster plan key", &[]);
    write("");
    agree(&p.files("site-1", "roster plan key"));
    check().expect(0).says(&["x, y", "ward"]);
    write("0.5,,a\n99999,0.5,a\n");
    check().expect(3).says(&["in all 6 rows cannot be used", "!99999"]);
    let list = std::fs::read_to_string(p.folder.path("site-1.key.unusable-rows.csv")).expect("a list");
    assert_eq!(list.lines().filter(|line| line.contains("no value in")).count(), 3, "{list}");
    p.folder.write("site.toml", &format!("{toy}{rows}sorce = \"x\"\n"));
    check().expect(3).says(&["do you mean \"source\"?"]);
    p.folder.write("site.toml", &toy);
    check().expect(0).says(&["SKIP  rows: give --data"]);
}
