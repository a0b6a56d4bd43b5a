//! Charts as SVG, written by hand: lines over numbers, or groups of bars over names.

use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 170.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 56.0;
/// Colours that colour-blind readers tell apart (Okabe & Ito 2008).
const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000"];

/// One chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// Its heading.
    pub title: String,
    /// What runs to the right.
    pub x: String,
    /// What runs up.
    pub y: String,
    /// What is drawn.
    pub plot: Plot,
}

/// What is drawn.
#[derive(Debug, Clone, PartialEq)]
pub enum Plot {
    /// A line for each name.
    Lines(Vec<(String, Vec<(f64, f64)>)>),
    /// A group of bars for each name of the first list; a bar in each for each name of the second.
    Bars(Vec<String>, Vec<(String, Vec<f64>)>),
}

impl Chart {
    /// The SVG document.
    pub fn svg(&self) -> String {
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
             font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        );
        label(&mut out, WIDTH / 2.0, 24.0, "middle", &self.title);
        label(&mut out, (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 12.0, "middle", &self.x);
        let turned = format!("<g transform=\"rotate(-90 16 {0})\">", HEIGHT / 2.0);
        out.push_str(&turned);
        label(&mut out, 16.0, HEIGHT / 2.0, "middle", &self.y);
        out.push_str("</g>\n");
        match &self.plot {
            Plot::Lines(series) => lines(&mut out, series),
            Plot::Bars(groups, series) => bars(&mut out, groups, series),
        }
        out.push_str("</svg>\n");
        out
    }
}

/// A straight scale from numbers to the page.
struct Axis {
    from: f64,
    to: f64,
    start: f64,
    end: f64,
}

impl Axis {
    /// Around all finite values, a little wider.
    fn around(values: impl Iterator<Item = f64>, start: f64, end: f64, zero: bool) -> Self {
        let (mut from, mut to) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| value.is_finite()) {
            (from, to) = (from.min(value), to.max(value));
        }
        if zero {
            (from, to) = (from.min(0.0), to.max(0.0));
        }
        if from > to {
            (from, to) = (0.0, 1.0);
        }
        let margin = if to > from { (to - from) * 0.04 } else { 0.5 };
        Self { from: if zero && from == 0.0 { 0.0 } else { from - margin }, to: to + margin, start, end }
    }

    fn place(&self, value: f64) -> f64 {
        self.start + (value - self.from) / (self.to - self.from) * (self.end - self.start)
    }

    /// Round numbers along it.
    fn ticks(&self) -> Vec<f64> {
        let rough = (self.to - self.from) / 6.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|s| s * power).into_iter().find(|step| *step >= rough).unwrap_or(rough);
        let first = (self.from / step).ceil();
        (0..12).map(|i| (first + f64::from(i)) * step).take_while(|tick| *tick <= self.to).collect()
    }
}

fn lines(out: &mut String, series: &[(String, Vec<(f64, f64)>)]) {
    let points = || series.iter().flat_map(|(_, points)| points);
    let x = Axis::around(points().map(|point| point.0), LEFT, WIDTH - RIGHT, false);
    let y = Axis::around(points().map(|point| point.1), HEIGHT - BOTTOM, TOP, false);
    up(out, &y);
    for tick in x.ticks() {
        label(out, x.place(tick), HEIGHT - BOTTOM + 18.0, "middle", &short(tick));
    }
    for (i, (name, points)) in series.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        let finite = || points.iter().filter(|point| point.0.is_finite() && point.1.is_finite());
        let path: Vec<String> =
            finite().map(|point| format!("{:.1},{:.1}", x.place(point.0), y.place(point.1))).collect();
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            path.join(" ")
        );
        for point in finite() {
            let (x, y) = (x.place(point.0), y.place(point.1));
            let _ = writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>");
        }
        legend(out, i, colour, name);
    }
}

fn bars(out: &mut String, groups: &[String], series: &[(String, Vec<f64>)]) {
    let y = Axis::around(series.iter().flat_map(|(_, values)| values.iter().copied()), HEIGHT - BOTTOM, TOP, true);
    up(out, &y);
    let step = (WIDTH - RIGHT - LEFT) / groups.len().max(1) as f64;
    let wide = step * 0.8 / series.len().max(1) as f64;
    for (i, group) in groups.iter().enumerate() {
        label(out, LEFT + (i as f64 + 0.5) * step, HEIGHT - BOTTOM + 18.0, "middle", group);
    }
    for (j, (name, values)) in series.iter().enumerate() {
        let colour = COLOURS[j % COLOURS.len()];
        for (i, value) in values.iter().enumerate().filter(|(_, value)| value.is_finite()) {
            let (x, base, top) = (LEFT + i as f64 * step + step * 0.1 + j as f64 * wide, y.place(0.0), y.place(*value));
            let _ = writeln!(
                out,
                "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{wide:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>",
                base.min(top),
                (base - top).abs()
            );
        }
        legend(out, j, colour, name);
    }
}

/// The axis that runs up, with lines across.
fn up(out: &mut String, y: &Axis) {
    for tick in y.ticks() {
        let at = y.place(tick);
        let end = WIDTH - RIGHT;
        let _ = writeln!(out, "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{end}\" y2=\"{at:.1}\" stroke=\"#dddddd\"/>");
        label(out, LEFT - 6.0, at + 4.0, "end", &short(tick));
    }
}

fn legend(out: &mut String, i: usize, colour: &str, name: &str) {
    let (x, y) = (WIDTH - RIGHT + 16.0, TOP + 18.0 * i as f64);
    let _ = writeln!(out, "<rect x=\"{x}\" y=\"{y}\" width=\"12\" height=\"12\" fill=\"{colour}\"/>");
    label(out, x + 18.0, y + 10.0, "start", name);
}

fn label(out: &mut String, x: f64, y: f64, anchor: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>");
}

/// A tick's number without the rounding of its sum.
fn short(value: f64) -> String {
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_numbers_are_finite() {
        let line = |points: &[(f64, f64)]| ("a<b & c".to_owned(), points.to_vec());
        let plots = [
            Plot::Lines(vec![line(&[(1.0, 2.0), (2.0, f64::INFINITY), (3.0, 5.0)])]),
            Plot::Lines(vec![line(&[(1.0, 2.0)])]),
            Plot::Lines(vec![]),
            Plot::Bars(vec!["x".into()], vec![("y".into(), vec![0.3]), ("z".into(), vec![f64::NAN])]),
            Plot::Bars(vec![], vec![]),
        ];
        for plot in plots {
            let svg = Chart { title: "<script>".into(), x: "K".into(), y: "index".into(), plot }.svg();
            assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n") && svg.contains("&lt;script&gt;"));
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }

    #[test]
    fn ticks_are_round() {
        let axis = Axis { from: 0.31, to: 0.79, start: 0.0, end: 1.0 };
        assert_eq!(axis.ticks().iter().map(|tick| short(*tick)).collect::<Vec<_>>(), ["0.4", "0.5", "0.6", "0.7"]);
    }
}
