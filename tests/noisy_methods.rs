//! Every family that runs with noise, as whole federations: the result is signed by all sites and near that of an exact run.

use serde_json::Value;
use veilsum_testkit::program::Folder;

use crate::said;

/// Runs a demonstration of five sites with these options, and gives its result.
fn demo(more: &[&str]) -> Value {
    let out = Folder::fresh();
    let ended = said::demo(&out, "out", more).expect(0);
    let result = out.json("out/result.json");
    let signed = result["signatures"].as_array().map(Vec::len);
    assert!(signed.is_none_or(|signed| signed > 3), "{signed:?} signatures: {}", ended.stdout);
    result
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("a list").iter().map(|x| x.as_f64().unwrap_or(f64::NAN)).collect()
}

/// [NOI-5], [NOI-7]: a description with noise.
#[test]
fn noi_7_a_description_with_noise_is_near_the_exact_one() {
    let noisy = demo(&["--method", "describe", "--rho", "1"]);
    let exact = demo(&["--method", "describe"]);
    let rows = |of: &Value| of["description"]["rows"].as_f64().expect("rows");
    assert!((rows(&noisy) / rows(&exact) - 1.0).abs() < 0.05);
    // Counts that differ by their noise are no sign of a lost site.
    assert!(noisy["description"]["histogram_rows"].is_null() && noisy["description"]["spread_rows"].is_null());
    let [noisy, exact] = [noisy, exact].map(|of| of["description"]["numbers"].as_array().unwrap().clone());
    for (noisy, exact) in noisy.iter().zip(&exact) {
        let of = |value: &Value, key: &str| value[key].as_f64().expect("a number");
        let deviation = of(exact, "deviation");
        assert!((of(noisy, "mean") - of(exact, "mean")).abs() < 0.1 * deviation, "{noisy} {exact}");
        assert!((of(noisy, "deviation") / deviation - 1.0).abs() < 0.3, "{noisy} {exact}");
        let counts = noisy["histogram"].as_array().expect("counts");
        assert!(counts.iter().all(|bin| bin["rows"].as_u64().is_some()), "{counts:?}");
    }
}

/// Whether every cluster of an exact `fcm` is near one of these centres.
fn near(noisy: &Value, most: f64) {
    let exact = demo(&["--method", "fcm"]);
    let boxed =
        |of: &Value| -> Vec<Vec<f64>> { of["centres_box"].as_array().expect("centres").iter().map(numbers).collect() };
    let found = boxed(noisy);
    for centre in boxed(&exact) {
        let far = |other: &Vec<f64>| other.iter().zip(&centre).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        let nearest = found.iter().map(far).fold(f64::INFINITY, f64::min);
        assert!(nearest < most, "no centre within {most} of {centre:?}: {found:?}");
    }
}

/// What stands between the tags of every cell of a page's tables, by the name of its column.
fn cells(html: &str) -> Vec<(String, String)> {
    let each = html.split("<td").skip(1).filter_map(|cell| {
        let (column, rest) = cell.split_once("data-column=\"")?.1.split_once('"')?;
        let text = rest.split_once('>')?.1.split_once("</td>")?.0;
        Some((column.to_owned(), text.to_owned()))
    });
    each.collect()
}

/// Whether a text has a digit.
fn digit(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_digit())
}

/// [NOI-7]: with noise every number of the result has its error on the screen and on the page, or is not there.
#[test]
fn what_noise_moved_stands_beside_its_error_on_screen_and_page() {
    let all = [
        &["--method", "fcm"][..],
        &["--method", "kmeans", "--k", "1..6"],
        &["--method", "fcm", "--k", "1..6"],
        &["--method", "fcm", "--set", "indices=all"],
        &["--method", "fcm", "--set", "standardise=standard"],
        &["--method", "describe"],
    ];
    for more in all {
        let out = Folder::fresh();
        let ended = said::demo(&out, "out", &[&["--rho", "20"], more].concat()).expect(0);
        let result = out.json("out/result.json");
        let html = std::fs::read_to_string(out.path("out/report.html")).expect("a page");
        assert!(result["deviations"].as_array().is_some_and(|all| all.iter().all(Value::is_null)), "{more:?}");
        let errors = result["errors"]["centres"].as_array().map_or(0, |all| {
            let known = all.iter().flat_map(numbers).filter(|error| error.is_finite() && *error > 0.0);
            known.count()
        });
        assert!(errors > 0, "{more:?}: {}", result["errors"]);
        // The screen: below a line with numbers one with their errors.
        let lines: Vec<&str> = ended.stdout.lines().collect();
        let of_cluster = |line: &str| line.split_whitespace().next().is_some_and(|word| word.parse::<u32>().is_ok());
        let indented = |line: &&str| line.starts_with("  ");
        let table: Vec<&str> = lines.iter().copied().skip_while(|line| !indented(line)).take_while(indented).collect();
        assert!(table.iter().any(|line| line.contains('±')), "{more:?}: {}", ended.stdout);
        for (at, line) in table.iter().enumerate().filter(|(_, line)| of_cluster(line)) {
            let shown = line.split_whitespace().skip(1).any(digit);
            let error = table.get(at + 1).is_some_and(|next| next.trim_start().starts_with('±'));
            assert!(shown && error, "{more:?}: {}", ended.stdout);
        }
        // The page: every cell of a cluster, and of a described column.
        let of_rows = ["mean", "deviation", "50 %", "x", "y", "share, %", "rows"];
        let cells = cells(&html);
        let told: Vec<&(String, String)> = cells
            .iter()
            .filter(|(column, _)| column.starts_with("cluster ") || of_rows.contains(&column.as_str()))
            .collect();
        assert!(!told.is_empty(), "{more:?}");
        for (column, text) in told {
            let known = text.contains(" ± ") || text.starts_with("below ") || !digit(text) || text == "1";
            assert!(known, "{more:?}: {column}: {text}");
        }
        // The same facts on both.
        for line in lines.iter().filter(|line| line.starts_with("not shown: ") || line.starts_with("rows in all: ")) {
            let (_, value) = line.split_once(": ").expect("a value");
            assert!(html.contains(value), "{more:?}: {value}");
        }
        if more.contains(&"standardise=standard") {
            near(&result, 0.1);
        }
        if more.contains(&"indices=all") {
            let indices = &result["indices"];
            assert!(indices["davies_bouldin"].is_f64() && indices["calinski_harabasz"].is_f64(), "{indices}");
        }
        // Hard groups are counted, with errors; nothing is shared among them.
        if more.contains(&"kmeans") {
            let all = |of: &Value, is: fn(&Value) -> bool| of.as_array().is_some_and(|of| of.iter().all(is));
            let (sizes, mass) = (&result["errors"]["sizes"], &result["mass"]);
            assert!(all(sizes, Value::is_f64) && all(mass, Value::is_null), "{sizes} {mass}");
            assert!(all(&result["errors"]["noise"]["sizes"], Value::is_f64), "{}", result["errors"]);
        }
        if more.contains(&"1..6") {
            let tested = |text: &str| !text.contains("not tested");
            assert!(tested(&ended.stdout) && tested(&html) && html.contains("how much tighter the groups are"));
            assert!(result["curve"].as_array().is_some_and(|of| of.iter().all(|k| k["indices"]["gap"].is_f64())));
        }
    }
}
