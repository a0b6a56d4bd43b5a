//! `veilsum assign` as a data team uses it: ids, what is shown, rows out of the box, and a file that is whole or as it was.

use std::time::Duration;

use veilsum_testkit::program::{Folder, ending, start_limited, veilsum};

use crate::said::{Told, demo, says};

/// A model of two columns in [0, 1], and rows around it: the last one is outside.
fn kit(folder: &Folder, rows: usize) -> (String, String) {
    demo(folder, "out", &["--set", "max_rounds=8"]).expect(0);
    let mut text = "patient,x,y\n".to_owned();
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
        veilsum(&[&args, more].concat()).expect(0).says(&["1 row outside the box", "line 300002"]);
        veilsum_node::files::check_private(&out).unwrap();
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

#[test]
fn what_cannot_be_done_is_said() {
    let folder = Folder::fresh();
    let (model, data) = kit(&folder, 3);
    let assign = |more: &[&str]| veilsum(&[&["assign", "--model", &model, "--data", &data], more].concat());
    assert!(assign(&["--top", "9"]).expect(2).stderr.contains("5 clusters"));
    assert!(assign(&["--id", "patent"]).expect(3).stderr.contains("patient"), "the column that is meant");
    assert!(assign(&["--top", "2", "--hard"]).expect(2).stderr.contains("cannot be used with"));
    let value = assign(&["--id", "patient", "--top", "1", "--json"]).expect(0).json();
    let row = &value["rows"][3];
    assert_eq!((&row["id"], &row["outside_box"]), (&"far".into(), &true.into()));
    assert_eq!((&row["top"][0], &value["rows_outside_box"]), (&row["cluster"], &1.into()));
    assert_eq!(row["memberships"].as_array().map(Vec::len), Some(5));
    let hard = assign(&["--hard", "--json"]).expect(0).json();
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
    let text = std::fs::read_to_string(&data).unwrap() + "\"broken,0.5,0.5\n";
    let broken = folder.write("broken.csv", &text);
    veilsum(&["assign", "--model", &model, "--data", &broken, "--out", &out]).expect(3).says(&["line 20003"]);
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "before");
    // Nothing is printed of rows that cannot all be read.
    let value = veilsum(&["assign", "--model", &model, "--data", &broken, "--hard", "--json"]).expect(3).json();
    says(value["error"]["message"].as_str().expect("why"), &["line 20003"]);
    assert!(value["rows"].is_null());
    if cfg!(target_os = "linux") {
        let limited = start_limited(&["assign", "--model", &model, "--data", &data, "--out", &out], 16 << 10);
        limited.wait(Duration::from_secs(60)).expect(3).says(&["cannot be written", "next: check"]);
        assert_eq!(std::fs::read_to_string(&out).unwrap(), "before");
    }
    let left = ending(&folder.0, "").into_iter().map(|path| path.file_name().unwrap().to_owned());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().starts_with('.')), "something unfinished is left");
}

/// Every row has a line: one that cannot be used has nothing but its id there, and is counted by its reason, as in a run.
#[test]
fn a_row_that_cannot_be_used_has_an_empty_line() {
    let folder = Folder::fresh();
    let (model, _) = kit(&folder, 0);
    let data = folder.write("holes.csv", "patient,x,y\na,0.5,0.5\nb,,0.5\nc,0.5,many\nd\ne,9,0.5\n");
    let assign = |more: &[&str]| {
        let args = ["assign", "--model", &model, "--data", &data, "--id", "patient"];
        veilsum(&[&args, more].concat()).expect(0)
    };
    let told = ["3 of 5 rows cannot be used", "1 with no value in \"x\" (line 3)", "1 row outside the box"];
    let ended = assign(&["--hard", "--rows", "missing=leave-out"]).says(&told).says(&["holes.csv, line 6"]);
    let cells: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!((cells.len(), cells[2], cells[3], cells[4]), (6, "b,,", "c,,", ",,"), "{cells:?}");
    assert!(cells[1].starts_with("a,false,") && cells[5].starts_with("e,true,"), "{cells:?}");
    assert!(assign(&[]).stdout.contains("\nb,,,,,,,\n") && assign(&["--top", "1"]).stdout.contains("\nc,,,,\n"));
    let value = assign(&["--json"]).json();
    assert!(value["rows"][1]["memberships"].is_null() && value["rows"][1]["id"] == "b", "{value}");
    assert_eq!((&value["left_out"][1]["why"], &value["rows_outside_box"]), (&"no number in \"y\"".into(), &1.into()));
    veilsum(&["report", &folder.path("out"), "--data", &data]).expect(0).says(&["3 of 5 rows cannot be used"]);
    // None is left out where all have to be.
    let args = ["assign", "--model", &model, "--data", &data, "--rows"];
    for rows in ["missing=refuse", "person=patient"] {
        assert!(veilsum(&[&args[..], &[rows]].concat()).expect(2).stderr.contains("every row is given a line"));
    }
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
