//! `veilsum assign` as a data team uses it: ids, what is shown, rows out of the box, and a file that is whole or as it was.

use std::process::Command;

use serde_json::Value;
use veilsum_testkit::program::{Folder, binary, veilsum};

/// A model of two columns in [0, 1], and rows around it: the last one is outside.
fn kit(folder: &Folder, rows: usize) -> (String, String) {
    let out = folder.path("out");
    veilsum(&["demo", "--exact", "--out", &out, "--set", "max_rounds=8"]).expect(0);
    let columns: Vec<String> = folder.json("out/model.json")["columns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| column["name"].as_str().unwrap().to_owned())
        .collect();
    let mut text = format!("patient,{}\n", columns.join(","));
    for i in 0..rows {
        let (x, y) = ((i % 97) as f64 / 97.0, (i % 89) as f64 / 89.0);
        text += &format!("\"p, {i}\",{x},{y}\n");
    }
    text += "far,7.5,0.5\n";
    (folder.path("out/model.json"), folder.write("rows.csv", &text))
}

fn lines(path: &str) -> Vec<String> {
    std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn ids_top_and_hard_labels_agree() {
    let folder = Folder::fresh();
    let (model, data) = kit(&folder, 300_000);
    let assign = |out: &str, more: &[&str]| {
        let out = folder.path(out);
        let args = ["assign", "--model", &model, "--data", &data, "--id", "patient", "--out", &out];
        let ended = veilsum(&[&args, more].concat()).expect(0);
        assert!(ended.stderr.contains("1 row outside the box"), "{}", ended.stderr);
        assert!(ended.stderr.contains("line 300002"), "{}", ended.stderr);
        #[cfg(unix)]
        assert_eq!(
            std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&out).unwrap().permissions()) & 0o777,
            0o600
        );
        out
    };
    let all = lines(&assign("all.csv", &[]));
    assert_eq!(all.len(), 300_002);
    assert_eq!(all[0], "patient,membership_0,membership_1,membership_2,membership_3,membership_4,outside_box,cluster");
    assert!(all[1].starts_with("\"p, 0\",") && all[300_001].starts_with("far,"), "{}", all[1]);
    let cells = |line: &str| line.rsplit(',').map(str::to_owned).collect::<Vec<_>>();
    assert_eq!((cells(&all[1])[1].as_str(), cells(&all[300_001])[1].as_str()), ("false", "true"));
    let hard = lines(&assign("hard.csv", &["--hard"]));
    assert_eq!(hard[0], "patient,outside_box,cluster");
    let top = lines(&assign("top.csv", &["--top", "2"]));
    assert_eq!(top[0], "patient,cluster_1,membership_1,cluster_2,membership_2,outside_box,cluster");
    for ((all, hard), top) in all.iter().zip(&hard).zip(&top).skip(1).step_by(1009) {
        let (all, hard, top) = (cells(all), cells(hard), cells(top));
        // From the back: cluster, outside, memberships 4 to 0.
        let u = |cluster: usize| all[6 - cluster].parse::<f64>().unwrap();
        let best: usize = all[0].parse().unwrap();
        assert_eq!((&hard[0], &top[0]), (&all[0], &all[0]));
        assert_eq!((top[5].parse::<usize>().unwrap(), top[4].parse::<f64>().unwrap()), (best, u(best)));
        let second: usize = top[3].parse().unwrap();
        assert!((0..5).all(|i| u(i) <= u(best) && (i == best || u(i) <= u(second))), "{all:?}");
    }
}

/// The memberships in two clusters of two columns, as the formulas of `gk` and `gmm` have them of what is in the model.
fn by_hand(model: &Value, row: [f64; 2]) -> [f64; 2] {
    let number = |pointer: &str| model.pointer(pointer).and_then(Value::as_f64);
    let of = |k: usize| {
        let at = |i: usize| number(&format!("/covariances_working/{k}/{i}")).expect("a covariance");
        let z = [0, 1].map(|column| {
            let [lower, upper] = ["lower", "upper"].map(|end| number(&format!("/columns/{column}/{end}")).unwrap());
            (row[column] - lower) / (upper - lower) - number(&format!("/centres_working/{k}/{column}")).unwrap()
        });
        let (a, b, c) = (at(0), at(1), at(2));
        let det = a * c - b * b;
        let square = (c * z[0] * z[0] - 2.0 * b * z[0] * z[1] + a * z[1] * z[1]) / det;
        match model["method"].as_str() {
            Some("gk") => 1.0 / (square * det.sqrt()),
            _ => number(&format!("/weights/{k}")).unwrap_or(0.5) * (-square / 2.0).exp() / det.sqrt(),
        }
    };
    let (one, other) = (of(0), of(1));
    [one / (one + other), other / (one + other)]
}

#[test]
fn clusters_with_covariances_take_the_rows_that_are_theirs() {
    for method in ["gk", "gmm"] {
        let folder = Folder::fresh();
        let out = folder.path("out");
        veilsum(&["demo", "--exact", "--out", &out, "--method", method, "--k", "2", "--set", "max_rounds=6"]).expect(0);
        let (model, kept) = (folder.json("out/model.json"), folder.path("out/model.json"));
        let names: Vec<&str> = [0usize, 1].map(|i| model["columns"][i]["name"].as_str().unwrap()).to_vec();
        let grid: Vec<[f64; 2]> = (0..81).map(|i| [f64::from(i % 9) / 8.0, f64::from(i / 9) / 8.0]).collect();
        let text: String = grid.iter().map(|row| format!("{},{}\n", row[0], row[1])).collect();
        let data = folder.write("rows.csv", &format!("{}\n{text}", names.join(",")));
        let memberships = |model: &str| -> Vec<Vec<f64>> {
            let ended = veilsum(&["assign", "--model", model, "--data", &data, "--json"]).expect(0);
            let value: Value = serde_json::from_str(&ended.stdout).expect("one document");
            let rows = value["rows"].as_array().unwrap().iter();
            rows.map(|row| serde_json::from_value(row["memberships"].clone()).unwrap()).collect()
        };
        let found = memberships(&kept);
        for (row, u) in grid.iter().zip(&found) {
            let right = by_hand(&model, *row);
            assert!((0..2).all(|k| (u[k] - right[k]).abs() < 1e-9), "{method} {row:?}: {u:?}, not {right:?}");
        }
        // Fuzzy c-means at the same centres says something else, and is not what a model without covariances falls back to.
        let mut plain = model.clone();
        let members = plain.as_object_mut().unwrap();
        members.remove("weights");
        members.remove("covariances_working").expect("covariances");
        let old = folder.write("old.json", &plain.to_string());
        let told = veilsum(&["assign", "--model", &old, "--data", &data]).expect(3).stderr;
        assert!(
            told.contains("old.json") && told.contains("covariances") && told.contains("make the run again"),
            "{told}"
        );
        plain["method"] = "fcm".into();
        let fcm = memberships(&folder.write("fcm.json", &plain.to_string()));
        assert!(fcm.iter().zip(&found).any(|(a, b)| (a[0] - b[0]).abs() > 0.05), "{method} is fuzzy c-means here");
    }
}

#[test]
fn what_cannot_be_done_is_said() {
    let folder = Folder::fresh();
    let (model, data) = kit(&folder, 3);
    let assign = |more: &[&str]| veilsum(&[&["assign", "--model", &model, "--data", &data], more].concat());
    assert!(assign(&["--top", "9"]).expect(2).stderr.contains("5 clusters"));
    assert!(assign(&["--id", "patent"]).expect(3).stderr.contains("patient"), "the column that is meant");
    assert!(assign(&["--top", "2", "--hard"]).expect(2).stderr.contains("cannot be used with"));
    let ended = assign(&["--id", "patient", "--top", "1", "--json"]).expect(0);
    let value: Value = serde_json::from_str(&ended.stdout).unwrap();
    let row = &value["rows"][3];
    assert_eq!((&row["id"], &row["outside_box"]), (&"far".into(), &true.into()));
    assert_eq!((&row["top"][0], &value["rows_outside_box"]), (&row["cluster"], &1.into()));
    assert_eq!(row["memberships"].as_array().map(Vec::len), Some(5));
    let hard: Value = serde_json::from_str(&assign(&["--hard", "--json"]).expect(0).stdout).unwrap();
    assert_eq!(hard["rows"][3], serde_json::json!({"cluster": row["cluster"], "outside_box": true}));
    // Ids that were rounded when they were read would stand for several rows.
    let large = folder.write("large.csv", &std::fs::read_to_string(&data).unwrap().replace("far", "9007199254740992"));
    let ended = veilsum(&["assign", "--model", &model, "--data", &large, "--id", "patient"]).expect(3);
    assert!(ended.stderr.contains("too large") && !ended.stderr.contains("9007199254740992"), "{}", ended.stderr);
}

#[test]
fn a_file_is_whole_or_as_it_was() {
    let folder = Folder::fresh();
    let (model, data) = kit(&folder, 20_000);
    let out = folder.write("out.csv", "before");
    let text = std::fs::read_to_string(&data).unwrap() + "broken,x,y\n";
    let broken = folder.write("broken.csv", &text);
    let ended = veilsum(&["assign", "--model", &model, "--data", &broken, "--out", &out]).expect(3);
    assert!(ended.stderr.contains("line 20003"), "{}", ended.stderr);
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "before");
    // Nothing is printed of rows that cannot all be read.
    let ended = veilsum(&["assign", "--model", &model, "--data", &broken, "--hard", "--json"]).expect(3);
    let value: Value = serde_json::from_str(&ended.stdout).expect("one document");
    assert!(
        value["rows"].is_null() && value["error"]["message"].as_str().is_some_and(|why| why.contains("line 20003"))
    );
    if cfg!(target_os = "linux") {
        let limited = format!(
            "trap '' XFSZ; ulimit -f 16; exec {} assign --model {model} --data {data} --out {out}",
            binary().display()
        );
        let ended = Command::new("bash").args(["-c", &limited]).output().expect("it starts");
        let told = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(3), "{told}");
        assert!(told.contains("cannot be written") && told.contains("next: check"), "{told}");
        assert_eq!(std::fs::read_to_string(&out).unwrap(), "before");
    }
    let hidden = std::fs::read_dir(&folder.0)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with('.'));
    assert_eq!(hidden.count(), 0, "nothing unfinished is left behind");
}

/// Who names the file of the rows for the memberships, too, keeps the rows.
#[test]
fn what_is_read_is_not_overwritten() {
    let folder = Folder::fresh();
    let (model, data) = kit(&folder, 20);
    std::fs::create_dir(folder.path("rows")).unwrap();
    std::fs::copy(&data, folder.path("rows/part-1.csv")).unwrap();
    for (rows, out) in [
        (&data, &data),
        (&data, &folder.path("./out/../rows.csv")),
        (&data, &model),
        (&folder.path("rows"), &folder.path("rows/part-1.csv")),
        (&folder.path("rows/*.csv"), &folder.path("rows/part-1.csv")),
    ] {
        let before = std::fs::read(out).unwrap();
        let said = veilsum(&["assign", "--model", &model, "--data", rows, "--out", out]).expect(2).stderr;
        assert!(said.contains("would be overwritten") && said.contains("next: name another file"), "{said}");
        assert_eq!(std::fs::read(out).unwrap(), before);
    }
    // What would be read as rows the next time is not written.
    for rows in ["rows", "rows/*.csv"] {
        let (rows, out) = (folder.path(rows), folder.path("rows/memberships.csv"));
        let said = veilsum(&["assign", "--model", &model, "--data", &rows, "--out", &out]).expect(2).stderr;
        assert!(said.contains("read as rows the next time") && !std::path::Path::new(&out).exists(), "{said}");
        veilsum(&["assign", "--model", &model, "--data", &rows, "--out", &folder.path("memberships.csv")]).expect(0);
    }
    // And of rows that cannot be read nothing is printed, no head either.
    let said = veilsum(&["assign", "--model", &model, "--data", &data, "--id", "nobody"]).expect(3);
    assert!(said.stdout.is_empty() && said.stderr.contains("no column is called"), "{}", said.stdout);
}
