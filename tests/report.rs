//! `veilsum report` with the real program: the page that a run leaves, the page with a site's own rows, and what is refused.

use std::{fs, path::Path, time::Duration};

use veilsum_testkit::program::{Ended, Folder, start_in, veilsum};

use crate::said::{self, Told, says};

/// Rows of two clear groups, and a column whose name is a piece of HTML.
fn rows(more: &str) -> String {
    let line = |i: usize| {
        let at = if i.is_multiple_of(2) { 1.0 } else { 8.0 };
        format!("{},{},{}\n", at + (i % 7) as f64 / 10.0, 9.0 - at + (i % 5) as f64 / 10.0, (i % 11) as f64)
    };
    format!("a,\"<b>b</b>\",c\n{}{more}", (0..400).map(line).collect::<String>())
}

fn demo(folder: &Folder, more: &[&str]) -> Ended {
    let data = folder.write("rows.csv", &rows(""));
    said::demo(folder, "out", &[&["--data", &data, "--sites", "4"], more].concat()).expect(0)
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).expect("a page")
}

#[test]
fn a_run_leaves_a_page_that_asks_for_nothing_and_the_command_makes_it_again() {
    let folder = Folder::fresh();
    demo(&folder, &["--k", "2..4", "--set", "choose=xie-beni"]);
    let page = read(folder.path("out/report.html"));
    says(&page, &["2 clusters were computed", "What was given away", "How many groups", "Who took part"]);
    says(&page, &["becomes readable is a total over", "&lt;b&gt;b&lt;/b&gt;"]);
    let plain = page.replace("http://www.w3.org/2000/svg", "");
    says(&plain, &["!<script", "!http:", "!https:", "!src=", "!<b>b</b>"]);
    let told = veilsum(&["report", &folder.path("out")]).expect(0).text();
    assert!(told.starts_with("2 clusters were computed") && told.contains("report.html"), "{told}");
    assert!(read(folder.path("out/report.html")).contains("becomes readable is a total over"));
    // Documents in the current folder are found as well.
    for document in ["plan.toml", "roster.toml"] {
        fs::rename(folder.path(&format!("out/{document}")), folder.path(document)).unwrap();
    }
    start_in(&folder.0, &["report", "out"]).wait(Duration::from_secs(60)).expect(0);
    assert!(read(folder.path("out/report.html")).contains("becomes readable is a total over"));
    // Without the plan nothing is said of it.
    for document in ["plan.toml", "roster.toml"] {
        fs::remove_file(folder.path(document)).unwrap();
    }
    veilsum(&["report", &folder.path("out")]).expect(0);
    assert!(!read(folder.path("out/report.html")).contains("becomes readable is a total over"));
    // Nobody is said to have kept silent who was not asked.
    demo(&folder, &["--k", "2", "--set", "judge=intermediary"]);
    let page = read(folder.path("out/report.html"));
    assert!(page.contains("Sites were not asked to sign") && !page.contains(">no<"), "{page}");
    demo(&folder, &["--k", "2..4", "--set", "choose=xie-beni"]);
    let elsewhere = folder.path("elsewhere.html");
    veilsum(&["report", &folder.path("out/model.json"), "--html", &elsewhere]).expect(0);
    assert!(read(elsewhere).contains("400 rows of 4 sites"), "the result is found beside the model");
}

/// The rows of all tables of a page whose columns are a label and a value.
fn labelled(html: &str) -> Vec<(String, String)> {
    let text = |cell: &str| {
        let cell = cell.split("</td>").next().unwrap_or_default().to_owned();
        let signs = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
        signs.iter().fold(cell, |cell, (escaped, sign)| cell.replace(escaped, sign))
    };
    let rows = html.split("<td data-column=\"what\">").skip(1);
    rows.filter_map(|row| Some((text(row), text(row.split_once("<td data-column=\"value\">")?.1)))).collect()
}

/// The screen, the page and the page with own rows say the same numbers under the same words.
#[test]
fn equal_labels_have_equal_values_on_every_page_and_on_the_screen() {
    let folder = Folder::fresh();
    for more in
        [&["--k", "2..4", "--set", "indices=all"][..], &["--method", "kmeans", "--k", "2"], &["--k", "2", "--rho", "1"]]
    {
        let screen = demo(&folder, more).stdout;
        veilsum(&["report", &folder.path("out"), "--data", &folder.path("rows.csv")]).expect(0);
        let shared = labelled(&read(folder.path("out/report.html")));
        let own = labelled(&read(folder.path("out/own-report.html")));
        assert!(shared.len() >= 4 && shared == own, "{shared:?} {own:?}");
        for (label, value) in &shared {
            let line = format!("{label}: {value}");
            assert!(screen.lines().any(|said| said == line), "{line:?} is not in {screen}");
        }
        let labels: std::collections::BTreeSet<&String> = shared.iter().map(|(label, _)| label).collect();
        assert_eq!(labels.len(), shared.len(), "no label twice");
    }
}

/// Tables for other programs lie beside the result, and go when a result has none.
#[test]
fn tables_lie_beside_the_result() {
    let folder = Folder::fresh();
    demo(&folder, &["--k", "2..4", "--set", "indices=all", "--set", "choose=xie-beni"]);
    let lines = |name: &str| read(folder.path(name)).lines().map(str::to_owned).collect::<Vec<_>>();
    let centres = lines("out/centres.csv");
    assert_eq!((centres[0].as_str(), centres.len()), ("cluster,rows,mass,a,<b>b</b>,c", 3));
    assert_eq!(lines("out/profile.csv").len(), 1 + 2 * 3);
    assert_eq!(lines("out/curve.csv").len(), 1 + 3);
    let result = folder.json("out/result.json");
    let parts = result["profile"].as_array().expect("a profile");
    let sum = |key: &str| parts.iter().map(|part| part[key].as_f64().expect("a number")).sum::<f64>();
    assert!((sum("between") - 1.0).abs() < 1e-9 && (sum("total") - 1.0).abs() < 1e-9);
    assert!(result["findings"].is_array());
    demo(&folder, &["--k", "2"]);
    assert!(!Path::new(&folder.path("out/curve.csv")).exists(), "that of an earlier run");
}

/// Whoever reads a page does not see the file that it was made from.
#[test]
fn a_page_of_a_result_that_was_changed_says_so_on_its_top() {
    let folder = Folder::fresh();
    demo(&folder, &["--k", "2"]);
    let (out, result) = (folder.path("out"), folder.path("out/result.json"));
    let whole = read(folder.path("out/report.html"));
    assert!(whole.contains("The signatures held when this page was made") && !whole.contains("Do not use this page"));
    let text = read(&result);
    let changed = text.replacen("\"n_total\": 400", "\"n_total\": 401", 1);
    assert_ne!(text, changed);
    fs::write(&result, changed).expect("a changed result");
    let said = veilsum(&["report", &out]).expect(0);
    assert!(said.stderr.contains("the result does not hold"), "{}", said.stderr);
    let page = read(folder.path("out/report.html"));
    assert!(page.contains("Do not use this page") && page.contains("The signatures do not hold"), "{page}");
    // Without the documents nobody can say.
    fs::remove_file(folder.path("out/roster.toml")).expect("it was there");
    let said = veilsum(&["report", &out]).expect(0).stderr;
    assert!(!said.contains("does not hold") && said.contains("could not be checked"), "{said}");
    let page = read(folder.path("out/report.html"));
    assert!(page.contains("this page does not say") && page.contains("could not be checked when this page was made"));
}

#[test]
fn own_rows_are_shown_only_where_it_is_asked_for_and_to_the_owner_alone() {
    let folder = Folder::fresh();
    demo(&folder, &["--k", "2"]);
    let more = "500,1,1\n".to_owned() + &"1,2,3\n".repeat(4_600);
    let (out, data) = (folder.path("out"), folder.write("own.csv", &rows(&more)));
    assert!(!Path::new(&folder.path("out/own-report.html")).exists(), "never unless asked for");
    let shared = folder.path("out/report.html");
    let before = read(&shared);
    let told = veilsum(&["report", &out, "--data", &data]).expect(0).text();
    assert!(told.contains("own-report.html") && told.contains("must not leave the site"), "{told}");
    let own = folder.path("out/own-report.html");
    let page = read(&own);
    let warning = page.find("It must not leave this site").expect("a warning");
    assert!(warning < page.find("2 clusters were").expect("a finding"), "the warning comes first");
    says(&page, &["5001 rows", "1 lies out of the box", "Every 4th row is drawn."]);
    says(&before, &["!must not leave", "!own rows"]);
    veilsum_node::files::check_private(&own).unwrap();
    assert_eq!(read(&shared), before, "the page without rows is as it was");
    veilsum(&["report", &out, "--data", &data, "--html", &shared]).expect(2);
    assert_eq!(read(&shared), before);
}

#[test]
fn a_description_has_no_page_with_own_rows() {
    let folder = Folder::fresh();
    demo(&folder, &["--method", "describe"]);
    assert!(read(folder.path("out/report.html")).contains("Nobody looked for groups"));
    let told = veilsum(&["report", &folder.path("out"), "--data", &folder.path("rows.csv")]);
    told.expect(3).says(&["has no clusters", "leave --data out", "next: "]);
}
