//! Two small charts as SVG, without a script: how the centres move, and one index over K. Lines differ in dashes as well as in colour.

use std::fmt::Write as _;

use veilsum_node::role::status::Course;

use crate::page::escaped;

/// Colours and dashes, of which the page's style has as many.
pub(crate) const KINDS: usize = 6;
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 60.0;
const BOTTOM: f64 = 30.0;
/// Powers of ten on an axis at most.
const TICKS: i32 = 6;

/// How far the centres of every K moved, by round, the shift on a logarithmic axis; nothing where no centre has moved.
pub(crate) fn convergence(courses: &[Course]) -> String {
    let points = || courses.iter().flat_map(|course| &course.shifts).filter(|(_, shift)| *shift > 0.0);
    let (Some(first), Some(last)) = (points().map(|p| p.0).min(), points().map(|p| p.0).max()) else {
        return String::new();
    };
    let logs = || points().map(|(_, shift)| shift.log10());
    let low = logs().fold(f64::INFINITY, f64::min).floor();
    let high = logs().fold(f64::NEG_INFINITY, f64::max).ceil().max(low + 1.0);
    let across =
        |round: u32| LEFT + (WIDTH - LEFT - 10.0) * f64::from(round - first) / f64::from((last - first).max(1));
    let down = |log: f64| 10.0 + (HEIGHT - BOTTOM - 10.0) * (high - log) / (high - low);
    let mut svg = opening(WIDTH, HEIGHT, &format!("How far the centres moved in rounds {first} to {last}"));
    let step = ((high - low) as i32 / TICKS).max(1);
    for power in (low as i32..=high as i32).step_by(step as usize) {
        let y = down(f64::from(power));
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\" \
             text-anchor=\"end\">1e{power}</text>",
            LEFT - 6.0,
            y + 4.0
        );
    }
    for (round, anchor) in [(first, "start"), (last, "end")] {
        let (x, y) = (across(round), HEIGHT - 8.0);
        let _ = write!(svg, "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"{anchor}\">round {round}</text>");
        if first == last {
            break;
        }
    }
    for (at, course) in courses.iter().enumerate() {
        let shown = course.shifts.iter().filter(|(_, shift)| *shift > 0.0);
        let line: Vec<String> =
            shown.map(|(round, shift)| format!("{:.1},{:.1}", across(*round), down(shift.log10()))).collect();
        if let ([only], true) = (&line[..], line.len() == 1) {
            let (x, y) = only.split_once(',').unwrap_or_default();
            let _ = write!(svg, "<circle class=\"dot\" cx=\"{x}\" cy=\"{y}\" r=\"4\"/>");
        }
        let _ = write!(svg, "<polyline class=\"s{}\" points=\"{}\"/>", at % KINDS, line.join(" "));
    }
    svg + "</svg>"
}

/// One index over K, with the chosen K marked.
pub(crate) fn over_k(name: &str, points: &[(u32, f64, bool)]) -> String {
    const ACROSS: f64 = 200.0;
    const DOWN: f64 = 110.0;
    let low = points.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
    let high = points.iter().map(|p| p.1).fold(f64::NEG_INFINITY, f64::max);
    let (Some(first), Some(last)) = (points.iter().map(|p| p.0).min(), points.iter().map(|p| p.0).max()) else {
        return String::new();
    };
    let across = |k: u32| 10.0 + (ACROSS - 20.0) * f64::from(k - first) / f64::from((last - first).max(1));
    let down = |value: f64| 10.0 + (DOWN - 36.0) * (high - value) / (high - low).max(f64::MIN_POSITIVE);
    let mut svg = opening(ACROSS, DOWN, &format!("{name} for K = {first} to {last}"));
    let line: Vec<String> =
        points.iter().map(|(k, value, _)| format!("{:.1},{:.1}", across(*k), down(*value))).collect();
    let _ = write!(svg, "<polyline class=\"s0\" points=\"{}\"/>", line.join(" "));
    for (k, value, _) in points.iter().filter(|point| point.2) {
        let (x, y) = (across(*k), down(*value));
        let _ = write!(svg, "<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"/>");
    }
    for (k, anchor) in [(first, "start"), (last, "end")] {
        let _ =
            write!(svg, "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"{anchor}\">K = {k}</text>", across(k), DOWN - 6.0);
    }
    svg + "</svg>"
}

fn opening(width: f64, height: f64, says: &str) -> String {
    format!("<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">", escaped(says))
}
