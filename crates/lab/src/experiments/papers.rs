//! What came of the experiments of the five papers, line by line, as the file of results keeps it.

use super::{Line, Report, Sample, Verdict};

/// The first line of the file of results.
pub const HEAD: &str = "item\tsetting\tmeasure\tprinted\tplain\tmasked\tanswer";

/// The file of results: a line of names, and one for each line of the reports that answers an item, with tabs between.
pub fn written(reports: &[Report]) -> String {
    let mean = |of: &Option<Sample>| of.as_ref().map_or(String::new(), |sample| format!("{:.6}", sample.mean()));
    let line = |line: &Line| {
        let Line { item, setting, measure, printed, .. } = line;
        let (plain, masked, answer) = (mean(&line.plain), mean(&line.masked), answer(&line.verdict));
        format!("{item}\t{setting}\t{measure}\t{printed}\t{plain}\t{masked}\t{answer}\n")
    };
    let answered = reports.iter().flat_map(|report| &report.lines).filter(|line| line.item > 0);
    format!("{HEAD}\n{}", answered.map(line).collect::<String>())
}

/// `same`, or by how much it differs and because of what.
fn answer(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Shown => String::new(),
        Verdict::Ok(why) => {
            // What was measured beside stands before or after.
            let begins = ["same", "differs by ", "data not to be had"].iter().filter_map(|begin| why.find(begin)).min();
            why[begins.unwrap_or(0)..].split("; ").next().unwrap_or_default().to_owned()
        }
        // What was measured beside stands behind a colon.
        Verdict::Off(why) => match why.split_once(BEYOND) {
            Some((differs, room)) => format!("{differs}{BEYOND}{}", room.split(": ").next().unwrap_or_default()),
            None if why.starts_with(NOT) => why.replacen(": same: ", ": ", 1),
            None => format!("{NOT}: {why}"),
        },
    }
}

/// How an answer goes on if a number is farther away than its reason explains.
pub const BEYOND: &str = ", which is more than ";
/// How it begins if something is not so.
pub const NOT: &str = "does not hold";
