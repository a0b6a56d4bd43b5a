//! Columns of categories from the command line: against numpy (`mixed.py`) from the same start, over several sites, and everything
//! that is refused.

use serde_json::Value;
use veilsum_testkit::program::{Ended, Folder, veilsum};

use crate::said::{self, Told, strings};

/// Two columns of numbers and one of categories, as a CSV file.
fn table(fixture: &Value) -> String {
    let cell = |cell: &Value| cell.as_str().map_or_else(|| cell.to_string(), str::to_owned);
    let row = |row: &Value| row.as_array().unwrap().iter().map(cell).collect::<Vec<String>>().join(",");
    let rows: Vec<String> = fixture["rows"].as_array().unwrap().iter().map(row).collect();
    format!("age,income,smoker\n{}\n", rows.join("\n"))
}

fn fixture() -> Value {
    serde_json::from_str(include_str!("mixed.json")).expect("the numbers of mixed.py")
}

fn demo(out: &Folder, data: &str, more: &str) -> Ended {
    said::demo(out, "out", &["--data", data, "--sites", "5"].into_iter().chain(more.split(' ')).collect::<Vec<_>>())
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

/// [QRY-1], [QRY-9]: pooled rows, numpy and masked sums come to the same centres, and shares have their categories' names.
#[test]
fn weighted_indicators_come_to_what_numpy_comes_to() {
    let (out, fixture) = (Folder::fresh(), fixture());
    let data = out.write("mixed.csv", &table(&fixture));
    let line = |row: &Value| row.as_array().unwrap().iter().map(Value::to_string).collect::<Vec<String>>().join(",");
    let start: Vec<String> = fixture["start"].as_array().unwrap().iter().map(line).collect();
    let start = out.write("start.csv", &(start.join("\n") + "\n"));
    for case in fixture["cases"].as_array().unwrap() {
        let (weight, epsilon) = (case["weight"].to_string(), case["epsilon"].to_string());
        let method = case["method"].as_str().unwrap();
        let indices = if method == "kmeans" { "" } else { " --set indices=scalars" };
        let args = format!(
            "--column age income smoker=never,former,current --set category_weight={weight} --method {method} --k 3 \
             --set epsilon={epsilon} --set init={start} --set max_rounds=200{indices}"
        );
        let ended = demo(&out, &data, &args).expect(0);
        let result = out.json("out/result.json");
        let what = format!("{method}, weight {weight}");
        let columns = ["age", "income", "smoker=never", "smoker=former", "smoker=current"];
        assert_eq!(strings(&result["columns"]), columns);
        assert_eq!((&result["rounds"], &result["converged"]), (&case["rounds"], &true.into()), "{what}");
        for (found, expected) in result["centres"].as_array().unwrap().iter().zip(case["centres"].as_array().unwrap()) {
            for (found, expected) in found.as_array().unwrap().iter().zip(expected.as_array().unwrap()) {
                let (found, expected) = (number(found), number(expected));
                assert!((found - expected).abs() <= 1e-8 * expected.abs().max(1.0), "{what}: {found} and {expected}");
            }
        }
        assert!(number(&result["pooled"]["max_abs_diff"]) <= 1e-9, "{what}");
        let shares = &result["categories"][0];
        assert_eq!((&shares["column"], &shares["categories"]), (&"smoker".into(), &fixture["categories"]));
        assert_eq!(shares["mode"], case["modes"], "{what}");
        for (i, of) in shares["shares"].as_array().unwrap().iter().enumerate() {
            let of: Vec<f64> = of.as_array().unwrap().iter().map(number).collect();
            assert!((of.iter().sum::<f64>() - 1.0).abs() < 1e-8, "{what}");
            assert_eq!(of[0], number(&result["centres"][i][2]), "{what}");
        }
        assert!(ended.stdout.contains("shares of smoker") && ended.stdout.contains("mode former"), "{}", ended.stdout);
    }
}

#[test]
fn standardisation_leaves_categories_alone() {
    let (out, fixture) = (Folder::fresh(), fixture());
    let data = out.write("mixed.csv", &table(&fixture));
    let columns = "--column age income smoker=never,former,current";
    demo(&out, &data, &format!("{columns} --set standardise=standard --k 3")).expect(0);
    let result = out.json("out/result.json");
    assert!(number(&result["pooled"]["max_abs_diff"]) <= 1e-9);
    let of = |name: &str| result["standardisation"][name].as_array().unwrap().iter().map(number).collect::<Vec<f64>>();
    assert_eq!((&of("shift")[2..], &of("factor")[2..]), (&[0.0; 3][..], &[1.0; 3][..]));
    assert!(of("factor")[..2].iter().all(|factor| *factor != 1.0));
}

/// Rows of one's own are assigned by their category, and what a model does not know is refused by place.
#[test]
fn assign_reads_categories() {
    let (out, fixture) = (Folder::fresh(), fixture());
    let data = out.write("mixed.csv", &table(&fixture));
    let columns = "--column age income smoker=never,former,current --set category_weight=3";
    demo(&out, &data, &format!("{columns} --k 3 --set init=totals")).expect(0);
    let model = out.path("out/model.json");
    let own = out.write("own.csv", "smoker,age,income\nnever,40,3\nformer,40,3\ncurrent,40,3\n");
    let told = veilsum(&["assign", "--model", &model, "--data", &own, "--json"]).expect(0).json();
    let labels: std::collections::BTreeSet<String> =
        told["rows"].as_array().unwrap().iter().map(|row| row["cluster"].to_string()).collect();
    assert_eq!(labels.len(), 3, "{told}");
    let bad = out.write("bad.csv", "smoker,age,income\nnever,40,3\nsecretly,40,3\n");
    let said = ["another category in \"smoker\" (line 3)", "!secretly"];
    veilsum(&["assign", "--model", &model, "--data", &bad]).expect(0).says(&said);
}
