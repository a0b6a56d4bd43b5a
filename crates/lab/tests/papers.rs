//! `results.tsv`, what `veilsum-lab experiments` found when it was last run whole, and the table of `COMPARE.md` that is made of it.

use std::{fs, path::PathBuf};

use veilsum_lab::experiments::{
    Line, Report, find,
    papers::{BEYOND, HEAD, NOT, written},
};

/// A table, figure or setting of a paper.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Item {
    /// Its number in the table of the papers.
    pub(crate) number: u16,
    /// Where it stands.
    place: &'static str,
    /// The experiment that answers it.
    pub(crate) experiment: &'static str,
    /// Which data of it are not to be had, and what stands in; empty where all are.
    absent: &'static str,
}

const fn item(number: u16, place: &'static str, experiment: &'static str) -> Item {
    Item { number, place, experiment, absent: "" }
}

const fn partly(number: u16, place: &'static str, experiment: &'static str, absent: &'static str) -> Item {
    Item { number, place, experiment, absent }
}

const SETS: &str = "70 of the 100 G2 files are not to be had and are generated";

/// All of them, paper by paper.
pub(crate) const ITEMS: [Item; 49] = [
    item(21, "FFCM case 1, balanced", "ffcm"),
    item(20, "FFCM Figure 1: a hidden cluster", "ffcm"),
    item(22, "FFCM Table 2, central", "ffcm"),
    item(23, "FFCM Table 2, avg1", "ffcm"),
    item(24, "FFCM Table 2, avg2", "ffcm"),
    item(25, "FFCM Table 3, avg2", "ffcm"),
    item(26, "FFCM Table 3, avg1: gap", "ffcm"),
    item(27, "FFCM Table 3, the rest", "ffcm"),
    item(31, "FFCM Table 4, central", "ffcm"),
    item(29, "FFCM Table 4, avg1: gap", "ffcm"),
    item(30, "FFCM Table 4, avg1: WSSE, OSSE", "ffcm"),
    item(28, "FFCM Table 4, avg2", "ffcm"),
    partly(32, "FFCM Table 5 (case 4)", "g2", SETS),
    partly(33, "FFCM Figure 4", "g2", SETS),
    item(101, "Framework Table 1, FedFCM", "motivational"),
    item(102, "Framework Table 1, central", "motivational"),
    item(103, "Framework Table 1, sites alone", "motivational"),
    item(105, "Framework Table 2", "motivational"),
    partly(106, "Framework Table 3, central and FedFCM", "g2", SETS),
    partly(107, "Framework Table 3, averaging", "g2", SETS),
    partly(108, "Framework Table 4", "g2", SETS),
    partly(109, "Framework Table 5", "g2", SETS),
    partly(110, "Framework Table 6", "g2", SETS),
    partly(111, "Framework Table 7", "g2", SETS),
    partly(112, "Framework Figures 2, 3", "g2", SETS),
    partly(113, "Framework Figure 4", "g2", SETS),
    item(115, "Framework: bank data", "bank"),
    item(117, "Framework Figure 5: K by elbow", "bank"),
    item(118, "Framework Figure 6", "bank"),
    item(119, "Framework Figure 7", "bank"),
    item(120, "Framework: rich rows and centres", "bank"),
    item(57, "Bárcena Table 1, all sites, xclara", "federated-fcm"),
    item(58, "Bárcena Table 1, all sites, the rest", "federated-fcm"),
    item(59, "Bárcena Table 1, some sites: ARI", "federated-fcm"),
    item(60, "Bárcena Table 1, some sites: Frobenius", "federated-fcm"),
    item(61, "Bárcena Figure 1a", "federated-fcm"),
    item(62, "Bárcena Figure 1b", "federated-fcm"),
    item(67, "FFCF: similarity, least number", "ffcf"),
    item(71, "FFCF Table 1, WSSE", "ffcf"),
    item(72, "FFCF Table 1, OSSE", "ffcf"),
    item(73, "FFCF Figure 1", "ffcf"),
    item(74, "FFCF: rounds", "ffcf"),
    item(79, "FKM Figure 1", "fkm"),
    item(80, "FKM Figure 2: 200 rows a cluster", "fkm"),
    item(81, "FKM Figures 3a to 3c", "fkm"),
    item(82, "FKM Figures 3d to 3f: by round", "fkm"),
    item(83, "FKM Figure 4: varying clusters", "fkm"),
    partly(84, "FKM Figure 5: FEMNIST", "fkm", "The images are not to be had: signs of ten hands are generated"),
    item(85, "FKM: central and one-shot", "fkm"),
];

/// A line of the file of results.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) item: u16,
    /// As the paper prints it, or `drawn`.
    pub(crate) printed: String,
    plain: Option<f64>,
    masked: Option<f64>,
    answer: String,
}

/// The rows of such a file; `None` where it is none.
pub(crate) fn read(text: &str) -> Option<Vec<Row>> {
    let mut lines = text.lines();
    lines.next().filter(|head| *head == HEAD)?;
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('\t').collect();
        let [item, _, _, printed, plain, masked, answer] = cells[..] else { return None };
        Some(Row {
            item: item.parse().ok()?,
            printed: printed.into(),
            plain: plain.parse().ok(),
            masked: masked.parse().ok(),
            answer: answer.into(),
        })
    };
    lines.map(row).collect()
}

/// The table of a document: a row for every item, but for those of which all is as printed.
fn table(rows: &[Row]) -> String {
    let mut text = "| experiment | outcome |\n|---|---|\n".to_owned();
    let (mut absent, mut whole): (Vec<&str>, Vec<String>) = (Vec::new(), Vec::new());
    for item in ITEMS {
        let own: Vec<&Row> = rows.iter().filter(|row| row.item == item.number).collect();
        let mut place = item.place.to_owned();
        if !item.absent.is_empty() {
            let at = absent.iter().position(|known| *known == item.absent).unwrap_or(absent.len());
            if at == absent.len() {
                absent.push(item.absent);
            }
            place += &format!(" ({})", at + 1);
        }
        let as_printed = |row: &&Row| row.answer == "same" || row.printed == "drawn" && holds(row);
        if !own.is_empty() && own.iter().all(as_printed) {
            whole.push(place);
        } else {
            text += &format!("| {place} | {} |\n", outcome(&own));
        }
    }
    text += &format!("\nAll numbers same, all claims hold: {}.\n", whole.join("; "));
    for (at, what) in absent.iter().enumerate() {
        text += &format!("\n({}) {what}.\n", at + 1);
    }
    text
}

/// Whether a claim holds.
fn holds(row: &Row) -> bool {
    !row.answer.starts_with(NOT) && !row.answer.is_empty()
}

/// What all lines of an item come to.
fn outcome(rows: &[&Row]) -> String {
    let (drawn, printed): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.printed == "drawn");
    let mut said = Vec::new();
    if !printed.is_empty() {
        let same = printed.iter().filter(|row| row.answer == "same").count();
        let mut text = format!("{same} of {} same", printed.len());
        if let Some((row, found)) = farthest(&printed) {
            let because = row.answer.split_once("because ").or_else(|| row.answer.split_once(": "));
            let because = because.map_or("", |(_, because)| because);
            let because = because.split_once(BEYOND).map_or(because, |(because, _)| because);
            text += &format!("; farthest {found} for {}: {because}", row.printed);
        }
        let beyond = printed.iter().filter(|row| row.answer.contains(BEYOND) || row.answer.starts_with(NOT)).count();
        if beyond > 0 {
            text += &format!("; {beyond} further off");
        }
        said.push(text);
    }
    if !drawn.is_empty() {
        let hold = drawn.iter().filter(|row| holds(row)).count();
        said.push(format!("{hold} of {} claims hold", drawn.len()));
    }
    said.join("; ")
}

/// Of the numbers that differ the one that does so by the largest part of itself, with what was found, to as many digits.
fn farthest<'r>(rows: &[&'r Row]) -> Option<(&'r Row, String)> {
    let part = |row: &&&Row| {
        let (found, printed) = (row.masked.or(row.plain)?, row.printed.parse::<f64>().ok()?);
        Some((found - printed).abs() / printed.abs().max(0.01))
    };
    let off = rows.iter().filter(|row| row.answer != "same");
    let most = off.max_by(|a, b| part(a).unwrap_or(0.0).total_cmp(&part(b).unwrap_or(0.0)))?;
    let decimals = most.printed.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let found = most.masked.or(most.plain)?;
    Some((most, format!("{found:.decimals$}").replace("0.", ".").replace("-0.", "-.")))
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn text(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn results() -> Vec<Row> {
    read(&text("results.tsv")).expect("rows of results")
}

/// `VEILSUM_WRITE=1` writes it anew.
#[test]
fn compare_has_the_table_of_the_results() {
    let page = text("../../COMPARE.md");
    let (before, rest) = page.split_once("<!-- results -->\n").expect("a mark");
    let (found, after) = rest.split_once("<!-- end of results -->").expect("a mark");
    let made = table(&results());
    if std::env::var_os("VEILSUM_WRITE").is_some() {
        let page = format!("{before}<!-- results -->\n{made}<!-- end of results -->{after}");
        fs::write(path("../../COMPARE.md"), page).expect("COMPARE.md");
        return;
    }
    assert!(found == made, "VEILSUM_WRITE=1 writes it:\n{made}");
}

#[test]
fn every_item_has_an_answer() {
    let rows = results();
    for item in ITEMS {
        assert!(rows.iter().any(|row| row.item == item.number), "{} {}", item.number, item.place);
    }
    for row in rows {
        let begins = ["same", "differs by ", "does not hold", "data not to be had"]
            .iter()
            .any(|begin| row.answer.starts_with(begin));
        assert!(begins && !row.answer.ends_with("because "), "{row:?}");
        assert!(ITEMS.iter().any(|item| item.number == row.item), "{row:?}");
    }
}

#[test]
fn results_are_written_read_and_summed_up() {
    let mut report = Report::new("t", "T");
    report.lines.push(Line::new("a", "ours", 2).masked(1.0));
    report.lines.push(Line::new("a", "b", 2).plain(0.3).masked(0.31).printed(24, ".31", 0.0, ""));
    report.lines.push(Line::new("c", "d", 2).masked(0.35).printed(24, ".31", 0.1, "it rains"));
    report.lines.push(Line::new("e", "f", 2).masked(1.0).drawn(24).holds(true, "same: it is so; of course"));
    let rows = read(&written(&[report])).expect("rows");
    assert!(rows.len() == 3 && read("no such file").is_none(), "{rows:?}");
    let table = table(&rows);
    let own = "| FFCM Table 2, avg2 | 1 of 2 same; farthest .35 for .31: it rains; 1 of 1 claims hold |";
    assert!(table.contains(own), "{table}");
}

#[test]
fn every_item_stands_once_and_names_an_experiment() {
    for (at, item) in ITEMS.iter().enumerate() {
        assert!(find(item.experiment).is_some(), "{}", item.place);
        assert!(ITEMS[..at].iter().all(|other| other.number != item.number), "{}", item.place);
    }
}

fn shared(name: &str) -> String {
    std::fs::read_to_string(veilsum_testkit::data::shared().join(name)).expect("a shared file")
}

/// Whether these digits stand in the text as a number of their own, with or without a leading zero and sign.
fn stands(number: &str, text: &str) -> bool {
    let digits = number.trim_start_matches('-').trim_start_matches('0');
    let digits = if digits.is_empty() { "0" } else { digits };
    text.match_indices(digits).any(|(at, _)| {
        let before = text[..at].trim_end_matches(|c| c == '0' && digits.starts_with('.'));
        let after = &text[at + digits.len()..];
        let ends = !after.starts_with(|c: char| c.is_ascii_digit())
            && !after.strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        ends && !before.ends_with(|c: char| c.is_ascii_digit() || c == '.')
    })
}

#[test]
fn a_number_stands_for_itself() {
    let text = "gap .12, 0.63; 17.18 (-2.01,99.80) 43193 rows";
    assert!([".12", "0.12", ".63", "0.63", "17.18", "-2.01", "99.80", "43193"].iter().all(|n| stands(n, text)));
    assert!(![".1", "7.18", "2.0", "4319", ".18", "99.8", "3193"].iter().any(|n| stands(n, text)));
}

/// The papers' table, and what the design says of each of their numbers.
fn printed_numbers_are_the_papers() {
    let known = shared("reference/papers-table.md") + &shared("design/methods.md");
    for row in results().iter().filter(|row| row.printed != "drawn") {
        let plain = known.replace("43,193", "43193");
        assert!(stands(&row.printed, &plain), "{row:?}");
    }
}

/// Every table, figure and case of the papers' table is an item here.
fn every_table_and_figure_is_an_item() {
    let table = shared("reference/papers-table.md");
    let mut found = 0;
    for line in table.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let (Some(Ok(number)), Some(what)) = (cells.get(1).map(|cell| cell.parse::<u16>()), cells.get(2)) else {
            continue;
        };
        if ["Table", "Fig.", "Case"].iter().any(|word| what.contains(word)) {
            assert!(ITEMS.iter().any(|item| item.number == number), "{line}");
            found += 1;
        }
    }
    assert!(found >= 35, "{found}");
}

veilsum_testkit::with_data!(printed_numbers_are_the_papers, every_table_and_figure_is_an_item);
