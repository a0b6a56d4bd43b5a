//! A report as text for people.

use super::{Report, Sample, Verdict};

/// What the cells of a line are.
const HEAD: [&str; 6] = ["setting", "measure", "printed", "plain", "masked", "verdict"];

/// The report as a table, notes first.
pub fn text(report: &Report) -> String {
    let mut out = format!("{}: {} ({:.1} s)\n", report.name, report.title, report.seconds);
    for note in &report.notes {
        out.push_str(&format!("  note: {note}\n"));
    }
    let number = |sample: &Option<Sample>, digits: usize| match sample {
        None => "-".to_owned(),
        Some(sample) if sample.values().len() < 2 => value(sample.mean(), digits),
        Some(sample) => format!("{} ± {}", value(sample.mean(), digits), value(sample.sd(), digits)),
    };
    let mut table: Vec<[String; 6]> = vec![HEAD.map(str::to_owned)];
    for line in &report.lines {
        let verdict = match &line.verdict {
            Verdict::Shown => String::new(),
            Verdict::Ok(_) if line.item == 0 => "ok".to_owned(),
            Verdict::Ok(why) => why.clone(),
            Verdict::Off(why) => format!("OFF: {why}"),
        };
        let (plain, masked) = (number(&line.plain, line.digits), number(&line.masked, line.digits));
        table.push([line.setting.clone(), line.measure.clone(), line.printed.clone(), plain, masked, verdict]);
    }
    let width = |column: usize| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..5).map(width).collect();
    for row in &table {
        out.push_str("  ");
        for (cell, width) in row.iter().zip(&widths) {
            out.push_str(&format!("{cell:<width$}  "));
        }
        out.truncate(out.trim_end_matches(' ').len());
        if !row[5].is_empty() {
            out.push_str(&format!("  {}", row[5]));
        }
        out.push('\n');
    }
    let missed = report.missed().count();
    let met = report.targets() - missed;
    out.push_str(&format!("  {met} of {} targets met\n", report.targets()));
    out
}

/// A number with so many decimals; tiny ones in powers of ten.
fn value(number: f64, digits: usize) -> String {
    if !number.is_finite() {
        return "undefined".to_owned();
    }
    if number != 0.0 && number.abs() < 0.5 * 10f64.powi(-(digits as i32)) {
        return format!("{number:.1e}");
    }
    format!("{number:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::super::Line;
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut report = Report::new("t", "a, \"b\"");
        report.note("n");
        let sample: Sample = [1.0, 2.0].into_iter().collect();
        report.lines.push(Line::new("x, y", "m", 2).plain(sample).masked(1e-12).holds(true, "says \"so\""));
        report.lines.push(Line::new("z", "m", 2).plain(f64::INFINITY).holds(false, "w"));
        let text = text(&report);
        assert!(
            text.contains("1.50 ± 0.71  1.0e-12  ok") && text.contains("undefined") && text.contains("OFF"),
            "{text}"
        );
        assert!(text.ends_with("1 of 2 targets met\n"), "{text}");
    }
}
