//! `results.tsv`, what `veilsum-lab experiments` found when it was last run whole, and the table of `COMPARE.md` that is made of it.

use std::{fs, path::PathBuf};

use veilsum_lab::experiments::papers::{ITEMS, Row, read, table};

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
