//! `columns.toml` with the real program: what columns are is said once and made into plans. That it is handed to whoever joins is in `joining.rs`.

use veilsum_testkit::program::{Folder, Parties, veilsum};

use crate::said::{self, Told};

/// Of the rows that `Parties` makes.
pub(crate) const COLUMNS: &str = "format = \"veilsum-columns/1\"\nmissing_marks = [\"-99\"]\n\
    [[column]]\nname = \"x\"\nunit = \"mm\"\nlower = 0\nupper = 1\n\
    [[column]]\nname = \"y\"\nunit = \"mm\"\nlower = 0\nupper = 1\n";

#[test]
fn a_file_fits_or_it_is_said_what_is_missing() {
    let folder = Folder::fresh();
    let smoker = "[[categorical]]\ncolumn = \"smoker\"\ncategories = [\"never\", \"former\"]\n";
    folder.write("columns.toml", &format!("{COLUMNS}{smoker}"));
    let roster = folder.path("roster.toml");
    let site = folder.write("site.toml", "[rows]\nvalues = { smoker = { 0 = \"never\" } }\n");
    let check = |rows: &str, more: &[&str]| {
        let data = folder.write("rows.csv", rows);
        let args = ["check", "--offline", "--roster", &roster, "--policy", &site, "--data", &data];
        veilsum(&[&args, more].concat())
    };
    let fits = "x,y,smoker,id\n0.1,0.2,0,1\n1,1,former,2\n";
    let told = check(fits, &["--json"]).json();
    assert_eq!(said::check(&told, "rows")["outcome"], "pass", "{told:#}");
    check("x,smoker\n0.1,never\n", &[]).expect(3).says(&["not ready: ", "no column is called \"y\""]);
    let rows = "x,y,smoker\n0.1,0.2,never\n2,0.2,never\n0.1,,former\n0.1,0.2,sometimes\n0.1,-99,never\n-1,0,0\n";
    let bad = check(rows, &["--json"]).json();
    let counts = |of: &serde_json::Value| -> Vec<u64> {
        let reasons = of["read"]["left_out"].as_array().expect("reasons");
        reasons.iter().map(|reason| reason["rows"].as_u64().expect("a number")).collect()
    };
    assert_eq!(counts(&bad), [2], "two without a value: {bad:#}");
    // Ranges and categories are counted by those that the operator types.
    let typed = ["--json", "--column", "x=0:1", "y=0:1", "smoker=never,former"];
    let own = check(rows, &typed).json();
    assert_eq!((counts(&own), &own["read"]["columns"][0]["above"]), (vec![2, 1], &1.into()), "{own:#}");
    assert!(!bad.to_string().contains("sometimes"), "a value of a row: {bad}");
}

/// Columns, ranges and units are said once, and a plan has them from there.
#[test]
fn a_plan_takes_its_columns_from_the_file() {
    let p = Parties::new(&[40, 55, 61], &["--set=epsilon=0.005", "--set=max_rounds=12"]);
    let made = format!("plan new --k 3 --set max_rows=2000 --exact --out {}", p.folder.path("plan.toml"));
    let make = |more: &[&str]| p.types("lead", &made, "roster key", more);
    let columns = || {
        let show = p.types("lead", "plan check --json", "roster plan", &[]).expect(0).json();
        show["work"]["columns"].as_array().expect("columns").clone()
    };
    make(&[]).expect(2).says(&["no column is named", "--columns FILE"]);
    let elsewhere = p.folder.write("elsewhere.toml", COLUMNS);
    make(&["--columns", &elsewhere]).expect(0);
    assert_eq!(columns()[1], serde_json::json!({ "name": "y", "lower": 0.0, "upper": 1.0 }));
    p.folder.write("columns.toml", COLUMNS);
    make(&["--column", "y"]).expect(0);
    assert_eq!(columns().len(), 1);
    make(&["--column", "x=0:2"]).expect(0);
    assert_eq!(columns()[0]["upper"], 2.0);
    make(&["--column", "z"]).expect(2).says(&["--column z", "no columns.toml has it"]);
    p.folder.write("columns.toml", &COLUMNS.replacen("lower = 0", "lower = 3", 1));
    make(&[]).expect(3).says(&["columns.toml", "\"x\""]);
}
