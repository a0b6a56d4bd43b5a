//! What came of the experiments of the five papers, line by line, as the file of results keeps it.

use super::{Report, Sample, Verdict};

/// What one line of a report came to, as the file of results keeps it.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Number of its item.
    pub item: u16,
    /// What was run.
    pub setting: String,
    /// What was measured.
    pub measure: String,
    /// As the paper prints it, or `drawn`.
    pub printed: String,
    /// The paper's server, run again: mean over the draws.
    pub plain: Option<f64>,
    /// Ours, masked: mean over the draws.
    pub masked: Option<f64>,
    /// `same`, or by how much it differs and because of what.
    pub answer: String,
}

/// The lines that answer an item.
pub fn rows(report: &Report) -> Vec<Row> {
    let answered = report.lines.iter().filter(|line| line.item > 0);
    let mean = |sample: &Option<Sample>| sample.as_ref().map(Sample::mean);
    let row = |line: &super::Line| Row {
        item: line.item,
        setting: line.setting.clone(),
        measure: line.measure.clone(),
        printed: line.printed.clone(),
        plain: mean(&line.plain),
        masked: mean(&line.masked),
        answer: match &line.verdict {
            Verdict::Shown => String::new(),
            Verdict::Ok(why) => {
                // What was measured beside stands before or after.
                let begins =
                    ["same", "differs by ", "data not to be had"].iter().filter_map(|begin| why.find(begin)).min();
                why[begins.unwrap_or(0)..].split("; ").next().unwrap_or_default().to_owned()
            }
            // What was measured beside stands behind a colon.
            Verdict::Off(why) => match why.split_once(BEYOND) {
                Some((differs, room)) => format!("{differs}{BEYOND}{}", room.split(": ").next().unwrap_or_default()),
                None if why.starts_with(NOT) => why.replacen(": same: ", ": ", 1),
                None => format!("{NOT}: {why}"),
            },
        },
    };
    answered.map(row).collect()
}

/// The first line of the file of results.
pub const HEAD: &str = "item\tsetting\tmeasure\tprinted\tplain\tmasked\tanswer";

/// The file of results: a line of names, and a line for each row, with tabs between.
pub fn written(rows: &[Row]) -> String {
    let number = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.6}"));
    let line = |row: &Row| {
        let Row { item, setting, measure, printed, answer, .. } = row;
        let (plain, masked) = (number(row.plain), number(row.masked));
        format!("{item}\t{setting}\t{measure}\t{printed}\t{plain}\t{masked}\t{answer}\n")
    };
    format!("{HEAD}\n{}", rows.iter().map(line).collect::<String>())
}

/// How an answer goes on if a number is farther away than its reason explains.
pub const BEYOND: &str = ", which is more than ";
/// How it begins if something is not so.
pub const NOT: &str = "does not hold";
