//! Pages of results that nobody would wish for: early, tiny, huge, hostile, foreign.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use super::*;
use crate::{documents::tests::Folder, signed::model_digest};

const NASTY: &str = "<script>alert(\"x\")</script><img src=x>";
/// What a page may weigh.
const MOST: usize = 2_000_000;

/// Writes a document of this name.
fn put(place: &Folder, name: &str, value: &Value) -> PathBuf {
    let path = place.0.join(name);
    fs::write(&path, value.to_string()).unwrap();
    path
}

/// A result of so many clusters, columns and sites, with everything that a result can hold.
fn result(k: usize, d: usize, sites: usize, name: &str) -> Value {
    let curve = |k: usize| {
        json!({"k": k, "indices": {"fuzzy_davies_bouldin": 1.0 / k as f64, "xie_beni": null}, "objective": 9.0 / k as f64,
            "rounds": 4, "converged": true, "collapsed": k == 7, "restart": 0})
    };
    let party = |i: usize| format!("{name} site {i}");
    let traffic: serde_json::Map<String, Value> =
        (0..sites).map(|i| (party(i), json!({"masked_input": {"messages": 3, "bytes": 4000 + i}}))).collect();
    let all = json!({
        "format": "veilsum-result/1",
        "method": "fcm", "k": k, "m": 2.0, "columns": (0..d).map(|j| format!("{name} column {j}")).collect::<Vec<_>>(),
        "centres": centres(k, d, 1.0),
        "sizes": vec![Some(40); k], "mass": vec![40.5; k], "weight": vec![Value::Null; k],
        "deviations": vec![Some(vec![0.1; d]); k], "not_shown": [name], "n_total": 40 * k, "n_total_from": name,
        "categories": [{"column": name, "categories": [name, "b"], "shares": vec![vec![0.25, 0.75]; k], "mode": [name]}],
        "rounds": 3, "converged": true, "objective": 1.5, "objective_per_row": 0.1,
        "indices": {"fuzzy_davies_bouldin": 0.5, "modified_partition_coefficient": 0.6},
        "curve": (2..9).map(curve).collect::<Vec<_>>(),
        "stability": {"matched_distance": [0.0, 0.3], "agreement": 0.5},
        "departures": [{"site": party(0), "question": 4, "why": format!("{name} its connection broke\n"), "more": 1}],
        "questions": 12, "cohort": (1..sites).map(party).collect::<Vec<_>>(), "missing": [party(0)],
        "plan_hash": "ab".repeat(32), "history": [{"round": 1, "shift": 0.5}, {"round": 2, "shift": 0.0}, {"round": 3, "shift": 1e-9}],
        "traffic": traffic, "warnings": [name], "findings": [{"name": "x", "text": name, "numbers": {}}],
    });
    let documents = json!({
        "software": name, "roster_hash": "cd".repeat(32), "run": "ef".repeat(32), "model_digest": digest(&model(k, d)), "wire_version": 2,
        "release": {"totals": 12, "sites": "same", "min_total_rows": 200, "more": 1},
        "signatures": {"written_by": name, "file": "00", "result": [{"party": name, "signature": "00"},
            {"party": party(1), "ledger": "23".repeat(32), "signature": "00"}]},
    });
    with(all, documents)
}

/// The same with these members.
fn with(mut all: Value, members: Value) -> Value {
    all.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    all
}

fn centres(k: usize, d: usize, unit: f64) -> Vec<Vec<f64>> {
    (0..k).map(|i| (0..d).map(|j| ((i * 7 + j * 3) % 11) as f64 / 10.0 / unit).collect()).collect()
}

fn model(k: usize, d: usize) -> Value {
    let columns: Vec<Value> =
        (0..d).map(|j| json!({"name": format!("c column {j}"), "lower": 0.0, "upper": 2.0})).collect();
    json!({"format": "veilsum-model/1", "method": "fcm", "k": k, "m": 2.0, "columns": columns, "scaling": "box",
        "centres": centres(k, d, 1.0), "centres_working": centres(k, d, 2.0), "plan": "ab".repeat(32), "converged": true})
}

fn digest(model: &Value) -> String {
    model_digest(model.to_string().as_bytes()).to_string()
}

/// The page of a result, which asks for nothing, holds no markup of names, and is not large.
fn checked(path: &std::path::Path) -> String {
    let html = page(&Reported::read(path).unwrap(), None).html();
    assert!(html.len() < MOST, "{} bytes", html.len());
    let plain = html.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    for bad in ["<script", "<img", "http:", "https:", "url(", "NaN", "href=\"h"] {
        assert!(!plain.contains(bad), "{bad}");
    }
    html
}

fn page_of(result: &Value) -> String {
    let place = Folder::new("page");
    checked(&put(&place, "result.json", result))
}

#[test]
fn a_report_says_what_was_found_why_how_good_and_by_whom() {
    let html = page_of(&result(3, 4, 5, "c"));
    for part in [
        "3 clusters were computed among 120 rows of 4 sites by the method fcm; the run converged after 3 rounds.",
        "Why 3: of 2 to 8 groups",
        "How good: ",
        "What to doubt",
        "How large the clusters are",
        "Where the clusters are",
        "All columns at once",
        "Columns in pairs",
        "How many groups",
        "Convergence",
        "Stability over restarts",
        "In numbers",
        "To cite",
        "Of 2 starts only the best came to these centres.",
        "1 of 2 starts came to these centres",
        "Who took part",
        "in the total that the centres come from",
        "Traffic",
        "What was given away",
        "Plan, versions and hashes",
        "With K = 7 two centres fell together",
        "to question 3",
        "c its connection broke",
        "12 totals, opened to the sites",
        &"cd".repeat(32),
        &"ef".repeat(32),
        &digest(&model(3, 4)),
        &"23".repeat(32),
        "departures, n_total, n_total_from, software, traffic, warnings",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert_eq!(html.matches("<h1>").count(), 1);
    assert!(html.contains("K = 8: smallest") && html.contains("K = 3: the result"), "what is best is marked");
}

/// Two pages of paper, laid out by hand, have room for some 1,400 words and two charts in a row; the rest is folded up, and stays so.
#[test]
fn what_is_not_folded_fits_two_pages_of_paper() {
    let html = page_of(&result(6, 8, 5, "c"));
    let mut parts = html.split("<details");
    let open = parts.next().unwrap_or_default().to_owned();
    let open = parts.fold(open, |open, part| open + part.split_once("</details>").map_or("", |(_, rest)| rest));
    let words = open.split("<body>").nth(1).unwrap_or_default().split('<').filter_map(|tag| tag.split_once('>'));
    let words: usize = words.map(|(_, text)| text.split_whitespace().count()).sum();
    assert!(words < 1_400 && open.matches("<figure").count() <= 2, "{words} words");
    for part in ["How large the clusters are", "Where the clusters are", "How many groups", "To cite"] {
        assert!(open.contains(part), "{part}");
    }
    assert!(html.contains("@page{size:A4") && html.contains("details:not([open])>:not(summary){display:none}"));
}

#[test]
fn one_cluster_64_columns_500_sites_and_names_with_html_have_a_page() {
    for (k, d, sites, name) in
        [(1, 1, 3, "c"), (1, 64, 2, "c"), (30, 64, 500, "c"), (200, 2, 500, "c"), (3, 4, 5, NASTY)]
    {
        let html = page_of(&result(k, d, sites, name));
        let escaped = html.contains("&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;");
        assert_eq!(escaped, name == NASTY, "names stay names");
        let said = if k == 1 { "One group, which is all rows together".to_owned() } else { format!("{k} clusters") };
        assert!(html.contains(&said), "{k} x {d}, {sites} sites");
    }
}

/// The words in the first line of a page.
fn headline(html: &str) -> &str {
    html.split("class=\"says\">").nth(1).and_then(|rest| rest.split("</p>").next()).expect("a headline")
}

/// What a finding refutes is not said on the top.
#[test]
fn no_headline_says_what_a_finding_refutes() {
    for (name, why) in veilsum_cluster::warnings::KINDS {
        let doubted = json!({"findings": [{"name": name, "text": "a doubt", "numbers": {}}]});
        let html = page_of(&with(result(3, 4, 5, "c"), doubted));
        let says = headline(&html);
        assert_eq!(says.contains("clusters were computed among"), why.is_none(), "{name}: {says}");
        assert!(why.is_none_or(|why| says.contains(&veilsum_charts::text::escaped(why))), "{name}: {says}");
        assert!(html.contains("a doubt"));
    }
}

/// Groups are found if none could have been chosen.
#[test]
fn groups_are_found_if_they_were_tested_against_none() {
    let mut swept = result(3, 4, 5, "c");
    let point = |k: u32| json!({"k": k, "indices": {"gap": 0.1, "gap_error": 0.01}, "objective": 1.0, "rounds": 4, "converged": true});
    swept["curve"] = (2..5).map(point).collect();
    assert!(headline(&page_of(&swept)).starts_with("3 clusters were computed"));
    swept["curve"] = (1..5).map(point).collect();
    assert!(headline(&page_of(&swept)).starts_with("3 groups of similar rows were found"));
}

/// A yardstick is computed for this K and these columns, or none is named.
#[test]
fn how_good_is_beside_rows_without_groups() {
    let said = |d: usize| {
        let indices = json!({"indices": {"modified_partition_coefficient": 0.4}});
        let html = page_of(&with(result(3, d, 5, "c"), indices));
        let good =
            html.split("How good: ").nth(1).and_then(|rest| rest.split("</li>").next()).expect("a sentence").to_owned();
        assert!(!good.contains("coefficient") && !html.contains("reach 0.7"), "{good}");
        good
    };
    assert!(said(1).contains("and it is no more here"), "{}", said(1));
    assert!(said(4).contains("K = 3 in 4 columns, and it is more here"), "{}", said(4));
    assert!(!said(65).contains("spread evenly"), "more than anybody computes");
}

/// Every number of a noisy result stands beside its error, or is not on the page.
#[test]
fn what_has_no_error_under_noise_is_not_shown() {
    let mut noisy = with(
        result(2, 2, 5, "c"),
        json!({
            "privacy": {"promise": "noise"}, "centres": [[0.123451, 0.223451], [0.323451, 0.423451]],
            "errors": {"centres": [[0.011, 0.012], [0.013, 0.014]], "mass": [3.5, 4.5], "n_total": 7.0,
                "fuzzy_davies_bouldin": 0.015, "objective_per_row": 0.016, "not_distinguishable_from_noise": []},
            "mass": [41.77777, 42.77777], "sizes": [987_654, 987_655], "deviations": [[0.77, 0.77], [0.77, 0.77]],
            "profile": [], "history": [{"round": 1, "shift": 0.765_43}, {"round": 2, "shift": 0.654_32}],
            "indices": {"fuzzy_davies_bouldin": 0.565_656, "modified_partition_coefficient": 0.676_767},
            "curve": [{"k": 2, "indices": {"fuzzy_davies_bouldin": 0.787_878}, "objective": 9.898_98}, {"k": 3, "objective": 8.787_87}],
            "converged": false,
        }),
    );
    let html = page_of(&noisy);
    for shown in ["0.123 ± 0.011", "0.423 ± 0.014", "41.8 ± 3.5", "80.0 ± 7.0", "0.566 ± 0.015", "0.100 ± 0.016"]
    {
        assert!(html.contains(shown), "{shown}");
    }
    // Rows of hard groups have errors, too; fewer than two of them are below the end of their interval.
    noisy["errors"]["sizes"] = json!([12_345.6, 4_321.0]);
    noisy["errors"]["not_distinguishable_from_noise"] = json!(["/sizes/1"]);
    noisy["errors"]["below"] = json!({"/sizes/1": 9_876.5});
    noisy["mass"] = json!([null, null]);
    let counted = page_of(&noisy);
    for shown in ["988000 ± 12000", "below 98"] {
        assert!(counted.contains(shown), "{shown}");
    }
    for hidden in ["987654", "0.77", "0.76543", "0.67677", "0.78788", "9.899", "converged"] {
        let tables = html.split("<body").nth(1).expect("a body");
        assert!(!tables.contains(&format!(">{hidden}")) && !tables.contains(&format!(" {hidden} ")), "{hidden}");
    }
    assert!(headline(&html).contains("made the 3 rounds that its plan has with noise"), "{}", headline(&html));
}

#[test]
fn the_columns_that_matter_come_first_and_the_rest_is_folded() {
    let mut wide = result(3, 30, 5, "c");
    let part = |j: usize| {
        json!({"column": format!("c column {j}"), "between": if j == 17 { 0.7 } else { 0.3 / 29.0 }, "total": 0.033,
            "explained": 0.5, "mean": 0.25, "deviation": 0.5})
    };
    wide["profile"] = (0..30).map(part).collect();
    let html = page_of(&wide);
    let open = html.find("c column 17</td>").expect("it is there");
    let folded = html.find("The other 24 columns, which differ less").expect("the rest");
    assert!(open < folded && html.contains("70 %") && html.contains("0.25 ± 0.50"));
    assert!(html.contains("(+0.3)") || html.contains("(-0.5)"), "differences in standard deviations");
    assert!(html.contains("The other 24 columns at once"));
}

/// The partition coefficient of one group is 1 and its entropy 0, whatever the rows are.
#[test]
fn one_group_is_best_by_no_partition_index_and_ranges_are_those_of_the_indices() {
    let mut one = result(1, 2, 5, "c");
    let point = |(k, coefficient, entropy): (u32, f64, f64)| {
        let indices = json!({"partition_coefficient": coefficient, "partition_entropy": entropy});
        json!({"k": k, "indices": indices})
    };
    one["curve"] = [(1, 1.0, 0.0), (2, 0.7, 0.5), (3, 0.8, 0.4)].map(point).to_vec().into();
    one["indices"] = json!({"modified_partition_coefficient": 0.6});
    let html = page_of(&one);
    assert!(html.contains("Why 1: of 1 to 3 groups") && !html.contains("best there"));
    assert!(html.contains("K = 3: largest") && html.contains("K = 3: smallest"));
    assert!(html.contains("0 to 1"));
}

#[test]
fn a_run_that_stopped_says_so_on_top_and_who_was_lost() {
    let html = page_of(&with(
        result(3, 2, 5, "c"),
        json!({
            "ended_early": {"round": 2, "at_rest": false, "reason": "a site left <b>", "lost": ["c site 0"], "refused": []},
            "converged": false, "departures": [{"site": "c site 0", "question": 1, "why": null}],
        }),
    ));
    assert!(html.contains("This run stopped before its end, after 2 rounds: a site left &lt;b&gt;."));
    assert!(html.contains("lost: gone, silent, or left out because it broke a rule") && html.contains("never"));
}

#[test]
fn what_is_drowned_in_noise_or_missing_is_left_out_and_said() {
    let mut noisy = result(3, 2, 5, "c");
    noisy["centres"][1][0] = Value::Null;
    noisy["privacy"] =
        json!({"promise": "(5, 1e-6)-differentially private", "epsilon": 5.0, "delta": 1e-6, "unit": "record"});
    noisy["errors"] =
        json!({"centres": [[0.01, 0.02], [0.5, 0.01], [0.1, 0.1]], "not_distinguishable_from_noise": ["/centres/1/0"]});
    let html = page_of(&noisy);
    assert!(html.contains(">noise<") && html.contains("± 0.02"));
    assert!(html.contains("among the rows of 4 sites"), "a count without an error is not said");
    assert!(html.contains("(5, 1e-6)-differentially private"));
    // What a site knows that ran no copy of the method.
    let few = json!({"format": "veilsum-result/1", "method": "fcm", "k": 1, "m": 2.0, "centres": [[1.0]], "columns": ["x"], "converged": null,
        "ended_early": null, "plan_hash": "00", "standardisation": null, "traffic": {}});
    assert!(page_of(&few).contains("does not say whether the run converged"));
}

/// A run's own result has the numbers that its file has as `null`.
#[test]
fn what_drowned_is_not_shown_where_the_result_still_has_it() {
    let noisy = json!({"method": "fcm", "k": 2, "m": 2.0, "columns": ["x"], "centres": [[0.654_321], [0.765_432]], "n_total": 4711,
        "mass": [31.5, 32.5], "indices": {"fuzzy_davies_bouldin": 0.987_654, "xie_beni": 0.543_21, "davies_bouldin": 0.5},
        "privacy": {"promise": "noise", "predicted_error": null}, "errors": {"centres": [[0.011], [0.012]], "mass": [1.1, 1.2],
        "n_total": 9.0, "fuzzy_davies_bouldin": 0.014, "xie_beni": 0.015,
        "not_distinguishable_from_noise": ["/centres/0/0", "/mass/0", "/n_total", "/indices/xie_beni"]}});
    let result = serde_json::from_value(noisy).unwrap();
    let screen = crate::report::centres(&result) + &crate::report::summary(&result);
    let shown = ["0.765", "32.5", "0.988 ± 0.014", "1 index value: not distinguishable", "1 index value: noise is"];
    assert!(shown.iter().all(|shown| screen.contains(shown)), "{screen}");
    assert!(["0.654", "31.5", "4711", "0.543"].iter().all(|hidden| !screen.contains(hidden)), "{screen}");
}

/// Where nobody knows how far noise moved them, neither page nor screen nor a table has the centres.
#[test]
fn centres_without_errors_are_not_shown_under_noise() {
    let place = Folder::new("unknown");
    let mut noisy = result(3, 2, 5, "c");
    noisy["privacy"] = json!({"promise": "noise"});
    noisy["centres"] = json!(vec![[0.654_321, 0.765_432]; 3]);
    let file = put(&place, "result.json", &noisy);
    let html = checked(&file);
    assert!(html.contains("Nobody knows how far noise moved the centres") && !html.contains("All columns at once"));
    let told = &Reported::read(&file).unwrap().told;
    let screen = crate::report::screen::centres(told);
    assert!(screen.contains("–: not shown, because nobody knows"), "{screen}");
    crate::report::tables::write(&file, told).unwrap();
    let table = fs::read_to_string(place.0.join("centres.csv")).unwrap();
    for text in [&html, &screen, &table] {
        assert!(!text.contains("0.654") && !text.contains("0.765"), "{text}");
    }
}

#[test]
fn described_columns_have_a_page_of_their_own() {
    let mut described = result(1, 2, 5, "c");
    let number = |name: &str| {
        json!({"column": name, "mean": 1.0, "deviation": 0.5,
        "histogram": [{"from": 0.0, "to": 1.0, "rows": 10}, {"from": 1.0, "to": 2.0, "rows": 30}]})
    };
    described["method"] = json!("describe");
    described["description"] = json!({"rows": 40, "missing": "not counted", "numbers": [number("a"), number(NASTY)],
        "categories": [{"column": NASTY, "counts": [{"category": NASTY, "rows": 4, "share": 0.1}]}]});
    let html = page_of(&described);
    assert!(html.contains("Nobody looked for groups") && html.contains("Columns of categories"));
    assert!(!html.contains("Where the clusters are"));
}

#[test]
fn what_is_no_result_or_another_versions_is_refused_with_the_next_step() {
    let place = Folder::new("refused");
    let refused = |value: &Value| Reported::read(&put(&place, "result.json", value)).err().expect("refused");
    let but = |members: Value| with(result(3, 2, 5, "c"), members);
    let failure = refused(&but(json!({"format": "veilsum-result/2"})));
    assert!(failure.message.contains("veilsum-result/2") && failure.message.contains("reads veilsum-result/1"));
    assert!(failure.advice.contains("with the veilsum of the run"));
    let lame = json!({"centres": [[1.0], [1.0, 1.0], [1.0, 1.0]], "another": 1, "software": 5, "rounds": -1, "errors": {"mass": 1}, "signatures": "none"});
    let wrong = lame.as_object().unwrap().iter().map(|(key, value)| but(json!({key: value})));
    let words = json!([["a", 1], [1, 1], [1, 1]]);
    let none = [json!([1]), json!({"k": 3}), json!({"format": "veilsum-evidence/1"}), but(json!({"centres": words}))];
    for bad in none.into_iter().chain(wrong) {
        assert!(refused(&bad).advice.contains("name the result.json"), "{bad}");
    }
    fs::remove_file(place.0.join("result.json")).unwrap();
    let failure = Reported::read(&place.0).err().expect("nothing is here");
    assert!(failure.message.contains("there is no result here") && failure.advice.contains("veilsum status"));
}

#[test]
fn a_model_is_taken_with_its_result_and_no_other() {
    let place = Folder::new("model");
    let model_file = put(&place, "model.json", &model(3, 2));
    assert!(checked(&model_file).contains("3 clusters"), "a model alone");
    put(&place, "result.json", &result(3, 2, 5, "c"));
    let all = Reported::read(&model_file).unwrap();
    assert_eq!((all.place(), all.model.is_some()), (place.0.join("report.html"), true));
    let html = page(&all, None).html();
    assert!(html.contains("0 to 2") && html.contains("120 rows"), "the box is the model's, the rows are the result's");
    // Of another plan, or of another run of this one: its digest is not the one that the result names.
    for (key, value) in [("plan", json!("cd".repeat(32))), ("converged", json!(false)), ("m", json!(2.5))] {
        let mut another = model(3, 2);
        another[key] = value;
        put(&place, "model.json", &another);
        let all = Reported::read(&place.0).unwrap();
        assert!(all.model.is_none() && page(&all, None).html().contains("is the model of another result"), "{key}");
    }
    let all = Reported::read(&place.0).unwrap();
    let data = place.0.join("rows.csv");
    fs::write(&data, "c column 0,c column 1\n1,1\n").unwrap();
    let failure = Own::read(&all, &data, None).err().expect("no model");
    assert!(failure.advice.contains("model.json of the same run"));
}
