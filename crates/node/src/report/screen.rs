//! The tables of a result for a terminal. Under noise a number stands above its error, or is not there.

use std::fmt::Write;

use veilsum_charts::text::{shortened, within};

use super::told::Told;
use crate::{
    app_messages::clean,
    cost::counted,
    description::{Bin, Description},
};

/// Columns of a table that are shown.
const SHOWN: usize = 8;

/// The centres as a table with one line a cluster. Clusters are numbered from 0, as everywhere: it is their place in the lists.
pub(super) fn centres(told: &Told) -> String {
    if let Some(found) = &told.description {
        return described(told, found);
    }
    if told.describes() {
        return "  nothing is shown: nobody knows how far noise moved it; result.json has it\n".to_owned();
    }
    let shown = told.columns.len().min(SHOWN);
    let noisy = told.privacy.is_some();
    let sized = !noisy && told.clusters.sizes.iter().any(Option::is_some);
    let shares = noisy || told.clusters.mass.iter().any(Option::is_some);
    // Rows, where they are known, and then numbers.
    let line = |first: String, size: String, rest: Vec<String>| {
        let size = if sized { format!(" {size:>8}") } else { String::new() };
        let rest: String = rest.iter().map(|cell| format!(" {cell:>12}")).collect();
        format!("{first}{size}{rest}")
    };
    let held = shares.then(|| if told.counts_rows() { "rows" } else { "mass" }.to_owned());
    let names = held.into_iter().chain(told.columns[..shown].iter().map(|name| shorten(name)));
    let mut out = line("  cluster".into(), "rows".into(), names.collect());
    let rest = told.columns.len() - shown;
    if rest > 0 {
        let _ = write!(out, "  (+{})", counted(rest, "column"));
    }
    out.push('\n');
    // What is not shown is said below.
    let mut hidden: Vec<String> = Vec::new();
    for i in 0..told.centres.len() {
        let (value, error, at) = told.held(i);
        let mut numbers: Vec<_> = shares.then_some((value, error, at, None)).into_iter().collect();
        let place = |column: usize| format!("/centres/{i}/{column}");
        numbers.extend((0..shown).map(|j| (told.at(i, j), told.error(i, j), place(j), Some(j))));
        hidden.extend(numbers.iter().filter(|of| of.0.is_none()).map(|of| told.hidden(&of.2)));
        let cells = numbers.iter().map(|(value, error, at, column)| {
            let alone = |x: f64| column.map_or_else(|| format!("{x:.2}"), |column| exact(x, extent(told, column)));
            value.map_or_else(|| told.hidden(at), |value| to_digits(value, *error, || alone(value)).0)
        });
        let cells = cells.collect();
        let size = told.size(i).map_or("–".to_owned(), |size| size.to_string());
        out += &line(format!("  {i:>7}"), size, cells);
        out.push('\n');
        if noisy && numbers.iter().any(|(_, error, ..)| error.is_some()) {
            let error = |value: Option<f64>, error| value.map_or(String::new(), |x| to_digits(x, error, String::new).1);
            let cells = numbers.iter().map(|(value, of, ..)| error(*value, *of)).collect();
            out += &line("       ±".into(), String::new(), cells);
            out.push('\n');
        }
    }
    // Under noise they stand among the columns, with their errors.
    for of in told.categories.iter().filter(|_| !noisy) {
        let _ = writeln!(out, "  shares of {}", clean(&of.column));
        for (i, (shares, mode)) in of.shares.iter().zip(&of.mode).enumerate() {
            let each = of.categories.iter().zip(shares).take(8);
            let each: Vec<String> = each.map(|(name, share)| format!("{} {share:.3}", shorten(name))).collect();
            let rest = of.categories.len().saturating_sub(8);
            let more = if rest > 0 { format!(" (+{rest})") } else { String::new() };
            let mode = mode.as_deref().map_or_else(|| "not clear".into(), shorten);
            let _ = writeln!(out, "  {i:>7}  mode {mode}: {}{more}", each.join(", "));
        }
    }
    if noisy && told.errors.is_some() {
        out += "  ±: a standard error of noise and sampling; two to either side: 95 %\n";
    }
    if hidden.iter().any(|why| why == "noise") {
        out += "  noise: not distinguishable from noise (its error is more than a third of it)\n";
    }
    if hidden.iter().any(|why| why.starts_with("below")) {
        out += "  below: less than two errors; the upper end of its interval\n";
    }
    if noisy && hidden.iter().any(|why| why == "–") {
        out += "  –: not shown, because nobody knows how far noise moved it; result.json has it if it was asked\n";
    }
    out
}

/// Columns, their histograms and categories, as tables.
fn described(told: &Told, found: &Description) -> String {
    let errors = told.errors.as_ref().and_then(|errors| errors.description.as_ref());
    let width =
        |names: &mut dyn Iterator<Item = &String>| names.map(|name| shorten(name).chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    let names = width(&mut found.numbers.iter().map(|number| &number.column)).max(6);
    if !found.numbers.is_empty() {
        let _ =
            writeln!(out, "  {:<names$} {:>9} {:>11} {:>11}  rows by bin", "column", "missing", "mean", "deviation");
    }
    for (i, number) in found.numbers.iter().enumerate() {
        let below = |name: &str| told.below(&format!("numbers/{i}/{name}"));
        let missing = |end: f64| format!("below {}", end.ceil());
        let lacking =
            below("missing").map_or_else(|| number.missing.map_or("–".to_owned(), |n| n.to_string()), missing);
        let name = shorten(&number.column);
        let off = errors.and_then(|errors| errors.numbers.get(i));
        let (mean, mean_off) = to_digits(number.mean, off.map(|off| off.mean), || short(number.mean));
        let (deviation, deviation_off) =
            to_digits(number.deviation, off.map(|off| off.deviation), || short(number.deviation));
        let most = number.histogram.iter().map(density).fold(0.0, f64::max);
        let bars = number.histogram.iter().map(|bin| bar(density(bin) / most));
        let _ = writeln!(
            out,
            "  {name:<names$} {lacking:>9} {mean:>11} {:>11}  {}",
            below("deviation").map_or(deviation, |end| format!("below {}", short(end))),
            bars.collect::<String>()
        );
        let Some(off) = off else { continue };
        let rows = off.histogram.iter().map(|bin| bin.rows).max().unwrap_or(0);
        let deviation = below("deviation").map_or(deviation_off, |_| String::new());
        let lacking = below("missing").map_or_else(|| off.missing.unwrap_or(0).to_string(), |_| String::new());
        let _ = writeln!(out, "  {:>names$} {lacking:>9} {mean_off:>11} {deviation:>11}  {rows} in a bin", "±");
    }
    for (i, of) in found.categories.iter().enumerate() {
        let _ = writeln!(
            out,
            "  {}, missing {}",
            clean(&of.column),
            told.lacking(&format!("categories/{i}"), |of| of.categories.get(i)?.missing)
        );
        let names = width(&mut of.counts.iter().map(|count| &count.category));
        for (at, count) in of.counts.iter().enumerate() {
            let category = shorten(&count.category);
            let off = errors.and_then(|errors| errors.categories.get(i)?.counts.get(at));
            let off = off.map_or_else(String::new, |off| format!("  ± {} ({:.2} %)", off.rows, 100.0 * off.share));
            let _ = writeln!(out, "    {category:<names$} {:>10} {:>7.2} %{off}", count.rows, 100.0 * count.share);
        }
    }
    out
}

/// The index curve of a sweep, the chosen K marked; not under noise, where no point has an error.
pub(super) fn curve(told: &Told) -> String {
    if told.curve.is_empty() || told.privacy.is_some() {
        return String::new();
    }
    let mut out = String::from("      K  rounds  fuzzy Davies–Bouldin  objective/N\n");
    let rows =
        told.objective.zip(told.objective_per_row).map_or(1.0, |(all, each)| if all > 0.0 { all / each } else { 1.0 });
    for point in &told.curve {
        let index = match point.indices.fuzzy_davies_bouldin {
            _ if point.collapsed => "collapsed".to_owned(),
            Some(index) => format!("{index:.4}"),
            None => "undefined".to_owned(),
        };
        let mark = if point.k == told.k { "->" } else { "" };
        let each = point.objective.map_or("–".to_owned(), |objective| format!("{:.8}", objective / rows));
        let _ = writeln!(out, "  {mark:<2}{:>3}  {:>6}  {index:>20}  {each}", point.k, point.rounds);
    }
    out
}

/// Rows for each unit of a bin's width.
fn density(bin: &Bin) -> f64 {
    bin.rows as f64 / (bin.to - bin.from)
}

/// A part of the highest bin, from 0 to 1.
fn bar(part: f64) -> char {
    const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    BARS[if part > 0.0 { (8.0 * part).ceil().clamp(1.0, 8.0) as usize } else { 0 }]
}

/// A number and its error, both to the second digit of the latter, as on the page; `alone` without an error.
fn to_digits(x: f64, error: Option<f64>, alone: impl FnOnce() -> String) -> (String, String) {
    let both = error.map(|error| within(x, error));
    let both = both.as_deref().and_then(|both| both.split_once(" ± "));
    both.map_or_else(|| (alone(), String::new()), |(x, error)| (x.to_owned(), error.to_owned()))
}

/// How wide the public range of a column is; that of a share is 1.
fn extent(told: &Told, column: usize) -> f64 {
    let column = told.model.as_ref().and_then(|model| model.columns.get(column));
    column.map_or(1.0, |column| column.upper - column.lower)
}

/// A number with the digits that its column's range gives it.
fn exact(x: f64, range: f64) -> String {
    match range.log10().floor() as i32 {
        place @ -5..=-1 => format!("{x:.*}", (4 - place) as usize),
        place @ 0..=11 => format!("{x:.*}", (9 - place).clamp(0, 5) as usize),
        _ => format!("{x:.4e}"),
    }
}

/// Five significant digits.
fn short(x: f64) -> String {
    if !x.is_finite() {
        return "–".to_owned();
    }
    if x == 0.0 {
        return "0".to_owned();
    }
    match x.abs().log10().floor() as i32 {
        place @ -4..=4 => format!("{x:.*}", (4 - place) as usize),
        5..=9 => format!("{x:.0}"),
        _ => format!("{x:.4e}"),
    }
}

fn shorten(name: &str) -> String {
    shortened(&clean(name), 12)
}

#[cfg(test)]
mod tests {
    #[test]
    fn centres_have_the_digits_of_their_column() {
        for (x, range, text) in [
            (4.2e-13, 1e-12, "4.2000e-13"),
            (0.000_512_34, 0.001, "0.0005123"),
            (0.5, 1.0, "0.50000"),
            (63.25, 120.0, "63.25000"),
            (123_456.75, 1e6, "123456.750"),
            (2.5e14, 1e15, "2.5000e14"),
        ] {
            assert_eq!(super::exact(x, range), text);
        }
    }
}
