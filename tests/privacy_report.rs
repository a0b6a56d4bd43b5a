//! What is told to a data protection officer, with the real program: a report whose numbers are those of the commands and whose gaps are
//! those of the threat model, and in which no name becomes markup.

use std::fs;

use veilsum_testkit::program::Parties;

use crate::{
    joining::between,
    said::{Told, says},
};

const NASTY: &str = "<script>alert(\"x\")</script>";

/// A federation in which a column is called by a piece of HTML.
fn federation() -> Parties {
    let p = Parties::new(&[40, 55, 61], &[]);
    let rows = fs::read_to_string(p.folder.0.join("site-1.csv")).expect("rows");
    let header = format!("\"{}\",y,note", NASTY.replace('"', "\"\""));
    p.folder.write("site-1.csv", &rows.replacen("x,y,note", &header, 1));
    let columns = format!(
        "format = \"veilsum-columns/1\"\n[[column]]\nname = '{NASTY}'\nunit = \"<i>mm</i>\"\nlower = 0\nupper = 1\n\
         [[column]]\nname = \"y\"\nunit = \"mm\"\nlower = 0\nupper = 1\n"
    );
    p.folder.write("columns.toml", &columns);
    let make = format!("plan new --k 3 --set max_rows=2000 --exact --out {}", p.folder.path("plan.toml"));
    p.types("lead", &make, "roster key", &[]).expect(0);
    p
}

#[test]
fn the_privacy_report_has_the_numbers_of_the_plan_and_the_gaps_of_the_threat_model() {
    let p = federation();
    let told = |more: &[&str]| {
        let said = ["--purpose", "Find <groups> & more"];
        p.types("site-1", "plan privacy", "roster plan data", &[&said[..], more].concat()).expect(0)
    };
    let value = told(&["--json"]).json();
    let text = value["report"].as_str().expect("a report");
    assert_eq!(told(&[]).stdout.trim_end(), text.trim_end());
    // In Markdown a sign of markup stands behind a backslash.
    says(text, &["\\<script", "Find \\<groups\\> & more", "________", "alert", "!<i>"]);
    says(&text.replace("\\<", ""), &["!<script"]);
    says(text, &["\n## Which data\n", "\n## For what\n", "\n## Who sees what\n", "\n## For how long\n"]);
    says(text, &["\n## What if something goes wrong\n", "\n## What is not protected\n", "\n## To fill in\n"]);
    says(text, &["\n| lead | ", "\n| counter | ", "\n| site-1 | ", "\n| site-2 | ", "\n| site-3 | "]);
    // All points of the threat model, found another way than the program does.
    let model = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/threat-model.md")).expect("the threat model");
    let part = between(&model, "\n## What is not protected\n", "\n## ");
    let numbered = part.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    let points: Vec<&str> = numbered.filter_map(|line| line.split("**").nth(1)).collect();
    assert!(points.len() >= 12 && points.iter().all(|point| text.contains(&format!("\n**{point}**"))), "{points:?}");
    assert_eq!(value["not_protected"].as_array().map(Vec::len), Some(points.len()));

    let check = p.types("lead", "plan check --json", "roster plan", &[]).expect(0).json();
    says(text, &["sites_mean", "fingerprint"].map(|of| check[of].as_str().expect("words")));
    for question in check["questions"].as_array().expect("questions") {
        let (name, words) = (question["name"].as_str().expect("a name"), &question["words"]);
        let row = |line: &str| line.starts_with(&format!("| {name} | ")) && line.contains(&format!(" | {words} | "));
        assert!(text.lines().any(row), "{question}");
    }
    // What the method asks is explained, and what it does not ask is not.
    assert!(text.contains("`ffcm-avg1`") && !text.contains("range of K"), "{text}");
}
