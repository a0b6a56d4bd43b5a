//! `--method describe`: masked sums against the pooled rows, the table, `result.json`, and everything that is refused.

use serde_json::Value;
use veilsum_cluster::{Algorithm, Prepared, Rows, method::Seeding, pooled, random::Stream};
use veilsum_node::plan::PlanSpec;
use veilsum_testkit::{
    in_process::{masked, unit_square},
    program::{Folder, veilsum},
};

use crate::said::{Told, demo, says};

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// Ages that are normal, incomes that follow them, and who smokes.
fn table(rows: usize) -> (String, Vec<[f64; 2]>) {
    let mut stream = Stream::new(3, b"veilsum description rows");
    let mut text = String::from("age,income,smoker\n");
    let mut values = Vec::new();
    for row in 0..rows {
        let [a, b] = stream.normal_pair();
        let (age, income) = ((50.0 + 9.0 * a).clamp(18.0, 99.0), (2000.0 + 500.0 * a + 300.0 * b).clamp(0.0, 5000.0));
        text += &format!("{age},{income},{}\n", if row % 40 == 0 { "former" } else { ["yes", "no"][row % 2] });
        values.push([age, income]);
    }
    (text, values)
}

#[test]
fn masked_is_pooled_to_the_step() {
    let mut stream = Stream::new(11, b"veilsum description rows");
    let mut site = |rows: usize| {
        let values = (0..2 * rows).map(|_| 0.5 + 0.001 * (stream.unit() - 0.5)).collect();
        Rows::new(values, 2).unwrap()
    };
    let work = PlanSpec::plain(unit_square(), Algorithm::Describe { bins: 8 }, 1, Seeding::Uniform { seed: 1 });
    work.check().unwrap();
    let domain = work.domain().unwrap();
    let sites = [60, 20, 90].map(|rows| Prepared::new(&site(rows), &domain, work.out_of_box).unwrap());
    let masked = masked(&work.recipe, &domain, &sites, None).unwrap().description.unwrap();
    let all = Prepared::pooled(&sites).unwrap();
    let known = pooled::run(&mut work.run(1).unwrap(), &all).unwrap().description.unwrap();
    assert_eq!((masked.rows, &masked.histograms), (170, &known.histograms));
    for (found, known) in masked.means.iter().zip(&known.means) {
        assert!((found - known).abs() < 1e-12, "{found} {known}");
    }
    // Narrow columns: a thousandth of the box.
    for (found, known) in masked.variances.iter().zip(&known.variances) {
        assert!((found - known).abs() < 1e-13, "{found:e} {known:e}");
    }
}

#[test]
fn a_description_has_the_means_deviations_histograms_and_counts_of_pooled_rows() {
    let out = Folder::fresh();
    let (text, values) = table(400);
    // Every value that is missing is counted, in rows that are left out too.
    let data = out.write("rows.csv", &(text + ",1500,yes\n,-99,\n40,1500,\n,1500,no\n"));
    let options = ["--data", &data, "--sites", "5", "--method", "describe"];
    let columns = ["--column", "age", "income", "smoker=yes,no,former"];
    let rows = ["missing=leave-out", "columns.age=age", "missing_marks=-99"].map(|says| ["--rows", says]);
    let ended = demo(&out, "out", &[&options[..], &columns, rows.as_flattened()].concat()).expect(0);
    says(&ended.stdout, &["deviation", "rows by bin", "rows in all: 400", "missing: ", "!  cluster "]);
    let page = std::fs::read_to_string(out.path("out/report.html")).expect("a page");
    says(&(ended.stdout + &page), &["smoker, missing 2"]);
    let result = out.json("out/result.json");
    let found = &result["description"];
    assert_eq!(found["rows"].as_u64(), Some(400));
    let missing = [&found["numbers"][0], &found["numbers"][1], &found["categories"][0]].map(|of| &of["missing"]);
    assert_eq!(missing, [3, 1, 2]);
    for column in 0..2 {
        let mean = values.iter().map(|row| row[column]).sum::<f64>() / 400.0;
        let deviation = (values.iter().map(|row| (row[column] - mean).powi(2)).sum::<f64>() / 400.0).sqrt();
        let number_of = &found["numbers"][column];
        assert!((number(&number_of["mean"]) / mean - 1.0).abs() < 1e-9, "{number_of}");
        assert!((number(&number_of["deviation"]) / deviation - 1.0).abs() < 1e-9, "{number_of}");
        let bins = number_of["histogram"].as_array().unwrap();
        assert_eq!(bins.iter().map(|bin| bin["rows"].as_u64().unwrap()).sum::<u64>(), 400);
    }
    let counts = found["categories"][0]["counts"].as_array().unwrap();
    let counts: Vec<(&str, u64)> =
        counts.iter().map(|count| (count["category"].as_str().unwrap(), count["rows"].as_u64().unwrap())).collect();
    assert_eq!(counts, [("yes", 190), ("no", 200), ("former", 10)]);
    assert!(number(&result["pooled"]["max_abs_diff"]) < 1e-9);
    // A model of a description has no clusters to assign rows to.
    let model = out.path("out/model.json");
    veilsum(&["assign", "--model", &model, "--data", &data]).expect(3).says(&["no clusters"]);
}

/// Missing values are counted under noise, with an error or below the end of an interval; and the error of the number of rows is that of
/// whoever counted them, whose share of the budget is the smaller one.
#[test]
fn missing_values_are_counted_under_noise() {
    let out = Folder::fresh();
    let (mut text, _) = table(1_000);
    (0..300).for_each(|_| text += ",1500,yes\n");
    let data = out.write("rows.csv", &text);
    let rows = ["--data", &data, "--rows", "missing=leave-out", "--rows", "columns.age=age", "--sites", "3"];
    let columns = ["--rho=0.25", "--column", "age=18:99", "income=0:5000", "smoker=yes,no,former", "--seed", "1"];
    demo(&out, "out", &[&rows[..], &columns, &["--method", "describe"]].concat()).expect(0);
    let result = out.json("out/result.json");
    let (found, errors) = (&result["description"]["numbers"], &result["errors"]);
    // Five of its errors are beyond all chance; what two of them hide is no number.
    for (column, lacking) in [(0, 300.0), (1, 0.0)] {
        let (told, error) = (&found[column]["missing"], number(&errors["description"]["numbers"][column]["missing"]));
        let below = &errors["below"][format!("/description/numbers/{column}/missing")];
        let off = told.as_f64().map_or(0.0, |told| told - lacking);
        assert!(off.abs() <= 5.0 * error && told.is_null() == below.is_number(), "{told} ± {error}, {below}");
        assert!(told.is_number() || lacking == 0.0, "300 of 1,300 are more than noise: {below}");
    }
    assert_eq!(result["n_total_from"], "intermediary");
    assert!(number(&errors["n_total"]) > number(&errors["description"]["rows"]), "{errors}");
}
