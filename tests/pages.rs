//! What is told to a data protection officer, with the real program: the same as a page, in which no name becomes markup, and the
//! report whose numbers are those of the commands and whose gaps are those of the threat model.

use std::fs;

use serde_json::Value;
use veilsum_testkit::program::{Ended, Parties, veilsum};

const NASTY: &str = "<script>alert(\"x\")</script>";

/// A federation in which a column is called by a piece of HTML.
fn federation() -> (Parties, Vec<String>) {
    let p = Parties::new(&[40, 55, 61], &["--set=epsilon=0.005", "--set=max_rounds=12"]);
    let at = |file: &str| p.folder.path(file);
    let rows = fs::read_to_string(p.folder.0.join("site-1.csv")).expect("rows");
    let header = format!("\"{}\",y,note", NASTY.replace('"', "\"\""));
    p.folder.write("site-1.csv", &rows.replacen("x,y,note", &header, 1));
    let columns = format!(
        "format = \"veilsum-columns/1\"\n[[column]]\nname = '{NASTY}'\nunit = \"<i>mm</i>\"\nlower = 0\nupper = 1\n\
         [[column]]\nname = \"y\"\nunit = \"mm\"\nlower = 0\nupper = 1\n"
    );
    p.folder.write("columns.toml", &columns);
    let [roster, key, plan] = ["roster.toml", "lead.key", "plan.toml"].map(at);
    let make = [
        "plan",
        "new",
        "--roster",
        &roster,
        "--key",
        &key,
        "--out",
        &plan,
        "--k",
        "3",
        "--set",
        "max_rows=2000",
        "--exact",
    ];
    veilsum(&make).expect(0);
    let documents = ["--roster", &*roster, "--plan", &plan].map(str::to_owned).to_vec();
    (p, documents)
}

fn run(words: &[&str], documents: &[String], more: &[&str]) -> Ended {
    let more = more.iter().map(|word| (*word).to_owned());
    veilsum(
        &words.iter().map(|word| (*word).to_owned()).chain(documents.iter().cloned()).chain(more).collect::<Vec<_>>(),
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}

/// The page stands alone, and nothing in it came from a name.
fn stands_alone(html: &str) {
    assert!(html.starts_with("<!doctype html>") && html.ends_with("</html>\n"), "{html}");
    assert!(html.contains("default-src 'none'") && html.contains("@media print") && html.contains("max-width:40em"));
    for bad in ["<script", "<i>", "href=", "src=", "http:", "https:", "onerror"] {
        assert!(!html.contains(bad), "{bad} in {html}");
    }
}

#[test]
fn two_answers_are_pages_too_with_the_same_first_sentence() {
    let (p, documents) = federation();
    let at = |file: &str| p.folder.path(file);
    let [key, data, out] = ["site-1.key", "site-1.csv", "page.html"].map(at);
    let page = |words: &[&str], documents: &[String], more: &[&str], code: i32| {
        let ended = run(words, documents, &[more, &["--html", &out, "--json"]].concat()).expect(code);
        let value: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:#?}"));
        let html = fs::read_to_string(&out).expect("a page");
        fs::remove_file(&out).expect("removed");
        stands_alone(&html);
        let says = value["says"].as_str().or(value["error"]["message"].as_str()).expect("a sentence").trim().to_owned();
        assert!(html.contains(&format!("<p class=\"says\">{}</p>", escaped(&says))), "{says}: {html}");
        (value, html)
    };
    // Nobody has agreed to it, so the plan is not answered: the page says so as well.
    let of_site = ["--offline", "--key", &*key, "--data", &data];
    let (value, html) = page(&["check"], &documents, &of_site, 7);
    assert!(html.contains(&escaped(NASTY)), "{html}");
    assert!(
        html.contains("<p class=\"says\">not ready") && html.contains("next: ") && html.contains("POL-9"),
        "{html}"
    );
    let told = value["leaves"]["totals_tell"].as_array().expect("sentences");
    assert!(
        told.len() >= 4 && told.iter().all(|each| html.contains(&escaped(each.as_str().expect("text")))),
        "{told:?}"
    );
    let words = [documents.clone(), of_site[1..3].iter().map(|word| (*word).to_owned()).collect()].concat();
    veilsum_testkit::program::agree(&words);
    let (value, html) = page(&["check"], &documents, &of_site, 0);
    assert!(html.contains("this site answers the whole plan") && html.contains("the whole account is left"), "{html}");
    assert_eq!(value["columns"]["ignored"][0], "note");
    let (value, html) = page(&["plan", "check"], &documents, &[], 0);
    assert!(html.contains(&escaped(NASTY)), "{html}");
    for warning in value["warnings"].as_array().expect("warnings") {
        assert!(html.contains(&escaped(warning.as_str().expect("text"))), "{warning}");
    }

    // Nothing is printed as if it were done where the page cannot be written.
    let nowhere = at("no-folder/page.html");
    for (words, documents, more) in
        [(&["check"][..], &documents[..], &of_site[..]), (&["plan", "check"], &documents, &[])]
    {
        let ended = run(words, documents, &[more, &["--html", &nowhere]].concat()).expect(3);
        assert!(
            ended.stderr.contains("--html: ") && ended.stderr.contains("no-folder") && ended.stdout.is_empty(),
            "{ended:#?}"
        );
    }
}

#[test]
fn the_privacy_report_has_the_numbers_of_the_plan_and_the_gaps_of_the_threat_model() {
    let (p, documents) = federation();
    let at = |file: &str| p.folder.path(file);
    let (out, data) = (at("report.html"), at("site-1.csv"));
    let told = run(
        &["plan", "privacy"],
        &documents,
        &["--html", &out, "--data", &data, "--purpose", "Find <groups> & more", "--json"],
    );
    let value: Value = serde_json::from_str(&told.expect(0).stdout).expect("JSON");
    let html = fs::read_to_string(&out).expect("a report");
    stands_alone(&html);
    for part in [
        "Which data",
        "For what",
        "Who sees what",
        "For how long",
        "What if something goes wrong",
        "What is not protected",
        "To fill in",
    ] {
        assert!(html.contains(&format!(">{part}</h2>")), "{part}");
    }
    assert!(
        html.contains("Find &lt;groups&gt; &amp; more")
            && html.contains("class=\"blank\"")
            && html.contains(&escaped(NASTY))
    );
    for party in ["lead", "counter", "site-1", "site-2", "site-3"] {
        assert!(html.contains(&format!(">{party}</td>")), "{party}");
    }
    // All points of the threat model, found another way than the program does.
    let model = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/threat-model.md")).expect("the threat model");
    let part = model
        .split("\n## What is not protected\n")
        .nth(1)
        .and_then(|rest| rest.split("\n## ").next())
        .expect("the part");
    let points: Vec<&str> = part
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()))
        .filter_map(|line| line.split("**").nth(1))
        .collect();
    assert!(
        points.len() >= 12 && points.iter().all(|point| html.contains(&format!("<strong>{}</strong>", escaped(point)))),
        "{points:?}"
    );
    assert_eq!(value["not_protected"].as_array().map(Vec::len), Some(points.len()));

    let check: Value =
        serde_json::from_str(&run(&["plan", "check"], &documents, &["--json"]).expect(0).stdout).expect("JSON");
    assert!(
        html.contains(&escaped(check["sites_mean"].as_str().expect("a sentence")))
            && html.contains(check["fingerprint"].as_str().expect("hex"))
    );
    for question in check["questions"].as_array().expect("questions") {
        let row = format!("data-column=\"question\">{}</td>", question["name"].as_str().expect("a name"));
        let words = format!("data-column=\"numbers in the first answer\">{}</td>", question["words"]);
        assert!(html.contains(&row) && html.contains(&words), "{question}");
    }
    // What the method asks is explained, and what it does not ask is not.
    assert!(html.contains("<code>ffcm-avg1</code>") && !html.contains("range of K"), "{html}");
    run(&["plan", "privacy"], &documents, &[]).expect(2);
    let nowhere = at("no-folder/report.html");
    assert!(run(&["plan", "privacy"], &documents, &["--html", &nowhere]).expect(3).stderr.contains("no-folder"));
}
