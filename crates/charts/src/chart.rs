//! Charts: what is shown is data, and how it looks is decided here.

use crate::{
    drawing::{COLOURS, Drawing, END, LETTER, MIDDLE, START, Swatch, WIDE, mark, n},
    scale::{Scale, drawn},
    text::{escaped, number, shortened, width},
};

/// Height of the part between the axes.
const PLAIN: f64 = 200.0;
/// Radius of the largest circle of a [`Spot`].
const LARGEST: f64 = 30.0;

/// One chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// Its heading, also for those who do not see it.
    pub title: String,
    /// What runs to the right.
    pub x: String,
    /// What runs up.
    pub y: String,
    /// What is drawn.
    pub plot: Plot,
    /// Places on the axis that runs to the right, each with its words.
    pub notes: Vec<(f64, String)>,
    /// Whether what runs up does so by powers of ten; numbers that are not above zero have no place then.
    pub log: bool,
}

/// What is drawn.
#[derive(Debug, Clone, PartialEq)]
pub enum Plot {
    /// A line for each name.
    Lines(Vec<(String, Vec<(f64, f64)>)>),
    /// Bars to the right, in groups of these names; each of the others has a bar in every group.
    Bars(Vec<String>, Vec<(String, Vec<Value>)>),
    /// Bars upwards over parts of an axis: from, to, and how much; the height is how much by width.
    Histogram(Vec<(f64, f64, f64)>),
    /// Places in a plane.
    Plane(Vec<Cloud>, Vec<Spot>),
    /// Axes below each other, each with its name and its ends, and a line through all of them for each name; `None` leaves a gap.
    Parallel(Vec<(String, (f64, f64))>, Vec<(String, Vec<Option<f64>>)>),
}

/// One bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// How long it is.
    pub value: f64,
    /// What it says.
    pub words: String,
}

/// Many small marks of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Cloud {
    /// What they are.
    pub name: String,
    /// Which colour and shape.
    pub style: usize,
    /// Whether they are paler than others.
    pub faint: bool,
    /// Where they are.
    pub points: Vec<(f64, f64)>,
}

/// A place with a name, and what is known of its extent.
#[derive(Debug, Clone, PartialEq)]
pub struct Spot {
    /// Its name, short.
    pub name: String,
    /// Which colour and shape.
    pub style: usize,
    /// Where it is.
    pub at: (f64, f64),
    /// An ellipse around it: half of its width and height, in the units of the axes.
    pub ellipse: Option<(f64, f64)>,
    /// Its share of the whole, for a circle of that area where there is no ellipse.
    pub share: Option<f64>,
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value { value, words: number(value) }
    }
}

impl Chart {
    /// A chart with straight axes.
    pub fn new(title: impl Into<String>, x: impl Into<String>, y: impl Into<String>, plot: Plot) -> Chart {
        Chart { title: title.into(), x: x.into(), y: y.into(), plot, notes: Vec::new(), log: false }
    }

    /// Whether nothing of it has a place: no line of two points, no bar, no row, no centre.
    pub fn is_empty(&self) -> bool {
        let finite = |value: f64| drawn(value, false);
        match &self.plot {
            Plot::Lines(series) => {
                let places =
                    |points: &[(f64, f64)]| points.iter().filter(|(x, y)| finite(*x) && drawn(*y, self.log)).count();
                series.iter().all(|(_, points)| places(points) < 2)
            }
            Plot::Bars(_, series) => series.iter().flat_map(|(_, values)| values).all(|value| !finite(value.value)),
            Plot::Histogram(bins) => bins.iter().all(|(from, to, rows)| from >= to || *rows <= 0.0),
            Plot::Plane(clouds, spots) => {
                let places = clouds.iter().flat_map(|cloud| &cloud.points).chain(spots.iter().map(|spot| &spot.at));
                !places.into_iter().any(|(x, y)| finite(*x) && finite(*y))
            }
            Plot::Parallel(axes, lines) => {
                axes.len() < 2 || lines.iter().all(|(_, values)| values.iter().flatten().count() < 2)
            }
        }
    }

    /// The SVG of a page that has the style sheet of [`Page`](crate::Page).
    pub fn inline(&self) -> String {
        let mut drawing = Drawing::default();
        let high = match &self.plot {
            Plot::Lines(series) => self.lines(&mut drawing, series),
            Plot::Bars(groups, series) => bars_to_the_right(&mut drawing, groups, series, &self.x),
            Plot::Histogram(bins) => self.histogram(&mut drawing, bins),
            Plot::Plane(clouds, spots) => self.plane(&mut drawing, clouds, spots),
            Plot::Parallel(axes, lines) => parallel(&mut drawing, axes, lines),
        };
        drawing.svg(high, &self.title)
    }

    fn lines(&self, drawing: &mut Drawing, series: &[(String, Vec<(f64, f64)>)]) -> f64 {
        let points = series.iter().flat_map(|(_, points)| points.iter().copied());
        let both: Vec<_> = points.filter(|(x, y)| drawn(*x, false) && drawn(*y, self.log)).collect();
        let frame = Frame::new(self, drawing, 6.0, &both);
        for (style, (name, points)) in series.iter().enumerate() {
            let places = points.iter().filter_map(|(x, y)| Some((frame.x.place(*x)?, frame.y.place(*y)?)));
            let places: Vec<(f64, f64)> = places.collect();
            drawing.polyline(&places, style, name);
            // Many marks would hide the line.
            let each = places.len().div_ceil(40).max(1);
            let shown = points.iter().filter(|(x, y)| drawn(*x, false) && drawn(*y, self.log));
            for (at, (x, y)) in places.iter().zip(shown).step_by(each) {
                let title = format!("{name}: {} {}, {} {}", self.x, number(*x), self.y, number(*y));
                drawing.mark(*at, 3.5, style, &title);
            }
        }
        let names: Vec<(String, usize)> = series.iter().enumerate().map(|(i, (name, _))| (name.clone(), i)).collect();
        frame.bottom + drawing.legend(frame.bottom, &names, Swatch::Line)
    }

    fn histogram(&self, drawing: &mut Drawing, bins: &[(f64, f64, f64)]) -> f64 {
        let whole = |(from, to, _): &&(f64, f64, f64)| from < to && drawn(*from, false) && drawn(*to, false);
        let bins: Vec<&(f64, f64, f64)> = bins.iter().filter(whole).collect();
        // Words stand above the bars.
        let lanes = 2.0;
        let top = lanes + 15.0 * self.notes.len() as f64 + 4.0;
        let bottom = top + 90.0;
        let ends =
            bins.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |ends, bin| (ends.0.min(bin.0), ends.1.max(bin.1)));
        let x = Scale::between(ends, (4.0, WIDE - 4.0));
        let y = Scale::from_zero(bins.iter().map(|(from, to, rows)| rows / (to - from)), (bottom, top));
        for (from, to, rows) in bins {
            let (Some(left), Some(right), Some(up)) = (x.place(*from), x.place(*to), y.place(rows / (to - from)))
            else {
                continue;
            };
            let title = format!("{} to {}: {} {}", number(*from), number(*to), number(*rows), self.y);
            drawing.bar((left, up), ((right - left - 1.0).max(0.5), bottom - up), 0, &title);
        }
        drawing.line((0.0, bottom), (WIDE, bottom), "axis");
        ticks_below(drawing, &x, bottom, 5);
        notes(drawing, &self.notes, &x, (lanes, bottom));
        bottom + 22.0
    }

    fn plane(&self, drawing: &mut Drawing, clouds: &[Cloud], spots: &[Spot]) -> f64 {
        let of_spots = spots.iter().flat_map(|spot| {
            let (dx, dy) = spot.ellipse.unwrap_or_default();
            [(spot.at.0 - dx, spot.at.1 - dy), (spot.at.0 + dx, spot.at.1 + dy)]
        });
        let places: Vec<_> = of_spots.chain(clouds.iter().flat_map(|cloud| cloud.points.iter().copied())).collect();
        // Circles do not reach over the axes.
        let inset = if spots.iter().any(|spot| spot.ellipse.is_none() && spot.share.is_some()) { LARGEST } else { 6.0 };
        let frame = Frame::new(self, drawing, inset, &places);
        let at = |(x, y): (f64, f64)| Some((frame.x.place(x)?, frame.y.place(y)?));
        for cloud in clouds {
            let marks: String = cloud.points.iter().filter_map(|p| at(*p)).map(|p| mark(p, 2.0, cloud.style)).collect();
            if !marks.is_empty() {
                drawing.path(&marks, if cloud.faint { "faint" } else { "fill" }, cloud.style, &cloud.name);
            }
        }
        let title =
            |Spot { name, at, .. }: &Spot| format!("{name}: {} {}, {} {}", self.x, number(at.0), self.y, number(at.1));
        let largest = spots.iter().filter_map(|spot| spot.share).filter(|share| share.is_finite()).fold(0.0, f64::max);
        let placed: Vec<(&Spot, (f64, f64))> = spots.iter().filter_map(|spot| Some((spot, at(spot.at)?))).collect();
        for (spot, place) in &placed {
            let size = |share: f64| LARGEST * (share / largest).sqrt();
            let share = || spot.share.filter(|share| *share > 0.0 && largest > 0.0);
            let path = spot.ellipse.and_then(|of| ellipse(&frame, *place, of));
            if let Some(path) = path.or_else(|| Some(mark(*place, size(share()?), 0))) {
                drawing.path(&path, "soft", spot.style, &title(spot));
            }
        }
        let mut taken: Vec<(f64, f64)> = Vec::new();
        for (spot, place) in &placed {
            drawing.mark(*place, 5.0, spot.style, &title(spot));
            // Where words would lie on others there are none: the mark says whose it is.
            let wide = width(&spot.name, LETTER);
            let free = |(x, y): &(f64, f64)| {
                let apart =
                    |(a, b): &(f64, f64), more: f64| (a - x).abs() > wide + more || (b - y).abs() > LETTER + 1.0;
                let inside = *x - wide / 2.0 > frame.left
                    && *x + wide / 2.0 < WIDE
                    && *y - LETTER > frame.top
                    && *y < frame.floor - 2.0;
                let marks =
                    placed.iter().all(|(_, (a, b))| (a - x).abs() > wide / 2.0 + 5.0 || (b - (y - 4.0)).abs() > 9.0);
                inside && marks && taken.iter().all(|other| apart(other, 2.0))
            };
            let aside = 8.0 + wide / 2.0;
            let along = [0.0, aside, -aside, 0.0, aside, -aside, aside, -aside];
            let around = along.into_iter().zip([-9.0, 4.0, 4.0, 18.0, -8.0, -8.0, 14.0, 14.0]);
            if let Some(there) = around.map(|(dx, dy)| (place.0 + dx, place.1 + dy)).find(free) {
                drawing.text(there, MIDDLE, "halo", &spot.name, wide + 1.0);
                taken.push(there);
            }
        }
        let mut names: Vec<(String, usize)> = Vec::new();
        for cloud in clouds.iter().filter(|cloud| !cloud.faint && !cloud.points.is_empty()) {
            if !names.iter().any(|(name, _)| *name == cloud.name) {
                names.push((cloud.name.clone(), cloud.style));
            }
        }
        frame.bottom + drawing.legend(frame.bottom, &names, Swatch::Mark)
    }
}

/// The room between two axes, with both drawn.
struct Frame {
    x: Scale,
    y: Scale,
    left: f64,
    top: f64,
    /// Where the lower axis is.
    floor: f64,
    /// Below its words.
    bottom: f64,
}

impl Frame {
    fn new(chart: &Chart, drawing: &mut Drawing, inset: f64, places: &[(f64, f64)]) -> Frame {
        drawing.text((0.0, 12.0), START, "quiet", &chart.y, WIDE);
        let lanes = 22.0;
        let roof = lanes + 15.0 * chart.notes.len() as f64;
        let floor = roof + PLAIN;
        let y = Scale::around(places.iter().map(|at| at.1), (floor - inset, roof + inset), chart.log);
        let ticks = y.ticks(5);
        let left = ticks.iter().map(|(_, words)| width(words, LETTER)).fold(16.0, f64::max).min(76.0) + 8.0;
        for (at, words) in &ticks {
            drawing.line((left, *at), (WIDE, *at), "grid");
            drawing.text((left - 5.0, at + 4.0), END, "", words, left - 5.0);
        }
        let x = Scale::around(places.iter().map(|at| at.0), (left + inset, WIDE - inset), false);
        drawing.line((left, floor), (WIDE, floor), "axis");
        ticks_below(drawing, &x, floor, 6);
        drawing.text((WIDE, floor + 32.0), END, "quiet", &chart.x, WIDE - left);
        notes(drawing, &chart.notes, &x, (lanes, floor));
        Frame { x, y, left, top: roof, floor, bottom: floor + 38.0 }
    }
}

/// Lines down from their words, which stay within the drawing, each in a lane of its own; no line crosses words.
fn notes(drawing: &mut Drawing, notes: &[(f64, String)], x: &Scale, (lanes, floor): (f64, f64)) {
    let placed = notes
        .iter()
        .enumerate()
        .filter_map(|(lane, (at, words))| Some((x.place(*at)?, lanes + 15.0 * lane as f64 + 9.0, words)));
    for (at, y, _) in placed.clone() {
        drawing.line((at, y + 3.0), (at, floor), "note");
    }
    for (at, y, words) in placed {
        let half = width(words, LETTER).min(WIDE) / 2.0;
        drawing.text(((at - half).clamp(0.0, WIDE - 2.0 * half), y), START, "over", words, WIDE);
    }
}

/// Numbers below an axis, as many as do not touch.
fn ticks_below(drawing: &mut Drawing, x: &Scale, floor: f64, wanted: usize) {
    let mut free = 0.0;
    for (at, words) in x.ticks(wanted) {
        let half = width(&words, LETTER) / 2.0;
        if at - half >= free && at + half <= WIDE {
            drawing.line((at, floor), (at, floor + 4.0), "axis");
            drawing.text((at, floor + 16.0), MIDDLE, "", &words, 2.0 * half + 1.0);
            free = at + half + 6.0;
        }
    }
}

/// An ellipse whose half width and half height are known, around a place.
fn ellipse(frame: &Frame, (x, y): (f64, f64), (wide, high): (f64, f64)) -> Option<String> {
    let (a, b) = (frame.x.length(wide), frame.y.length(high));
    if !(a > 0.0 && b > 0.0) {
        return None;
    }
    let (a, b) = (a.max(0.5), b.max(0.5));
    let arc = format!("{} {} 0 1 0", n(a), n(b));
    Some(format!("M{} {}A{arc} {} {}A{arc} {} {}z", n(x - a), n(y), n(x + a), n(y), n(x - a), n(y)))
}

/// Lines that are no longer than this, broken between words; one at least.
fn wrapped(text: &str, room: f64) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last().map_or("", String::as_str);
        let longer = if last.is_empty() { word.to_owned() } else { format!("{last} {word}") };
        if last.is_empty() || width(&longer, LETTER) < room {
            lines.pop();
            lines.push(longer);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

fn bars_to_the_right(drawing: &mut Drawing, groups: &[String], series: &[(String, Vec<Value>)], what: &str) -> f64 {
    let values = || series.iter().flat_map(|(_, values)| values);
    let longest = values().map(|value| width(&value.words, LETTER)).fold(0.0, f64::max);
    // Long words stand above their bar, so that they never lie on one.
    let above = longest > 130.0;
    let end = if above { WIDE - 2.0 } else { WIDE - longest - 8.0 };
    let x = Scale::from_zero(values().map(|v| v.value), (2.0, end));
    let zero = x.place(0.0).unwrap_or(2.0);
    let mut y = 2.0;
    for (i, group) in groups.iter().enumerate() {
        for line in wrapped(group, WIDE) {
            drawing.text((0.0, y + 12.0), START, "", &line, WIDE);
            y += 15.0;
        }
        y += 2.0;
        for (style, (name, values)) in series.iter().enumerate() {
            let Some(value) = values.get(i) else { continue };
            let title = format!("{group}, {name}: {}", value.words);
            if above {
                drawing.text((0.0, y + 11.0), START, "quiet", &value.words, WIDE);
                y += 15.0;
            } else {
                drawing.text((WIDE, y + 10.0), END, "", &value.words, longest + 4.0);
            }
            if let Some(to) = x.place(value.value) {
                drawing.bar((zero.min(to), y), ((to - zero).abs().max(1.0), 11.0), style, &title);
            }
            y += 15.0;
        }
        y += 4.0;
    }
    if !what.is_empty() {
        drawing.text((WIDE, y + 12.0), END, "quiet", what, WIDE);
        y += 18.0;
    }
    let names: Vec<(String, usize)> = series.iter().enumerate().map(|(i, (name, _))| (name.clone(), i)).collect();
    y + drawing.legend(y, &names, Swatch::Bar) + 4.0
}

fn parallel(drawing: &mut Drawing, axes: &[(String, (f64, f64))], lines: &[(String, Vec<Option<f64>>)]) -> f64 {
    const LEFT: f64 = 132.0;
    const ROW: f64 = 40.0;
    let y = |row: usize| ROW * row as f64 + 20.0;
    let scales: Vec<Scale> = axes.iter().map(|(_, ends)| Scale::between(*ends, (LEFT, WIDE - 8.0))).collect();
    for (row, (name, (from, to))) in axes.iter().enumerate() {
        drawing.text((0.0, y(row) - 2.0), START, "", name, LEFT - 10.0);
        let ends = format!("{} to {}", number(*from), number(*to));
        drawing.text((0.0, y(row) + 12.0), START, "quiet", &ends, LEFT - 10.0);
        drawing.line((LEFT, y(row)), (WIDE - 8.0, y(row)), "axis");
        for end in [LEFT, WIDE - 8.0] {
            drawing.line((end, y(row) - 4.0), (end, y(row) + 4.0), "axis");
        }
    }
    for (style, (name, values)) in lines.iter().enumerate() {
        let place = |(row, value): (usize, &Option<f64>)| Some((scales.get(row)?.place((*value)?)?, y(row)));
        let places: Vec<Option<(f64, f64)>> = values.iter().enumerate().map(place).collect();
        for part in places.split(Option::is_none) {
            let part: Vec<(f64, f64)> = part.iter().flatten().copied().collect();
            drawing.polyline(&part, style, name);
        }
        for ((at, value), (axis, _)) in places.iter().zip(values).zip(axes) {
            if let (Some(at), Some(value)) = (at, value) {
                drawing.mark(*at, 4.0, style, &format!("{name}: {axis} {}", number(*value)));
            }
        }
    }
    let bottom = ROW * axes.len() as f64 + 4.0;
    let names: Vec<(String, usize)> = lines.iter().enumerate().map(|(i, (name, _))| (name.clone(), i)).collect();
    bottom + drawing.legend(bottom, &names, Swatch::Line) + 2.0
}

/// A small mark for a table or a list, so that its lines are found again in a chart.
pub(crate) fn swatch(style: usize, name: &str) -> String {
    format!(
        "<svg class=\"chart swatch\" viewBox=\"0 0 12 12\" role=\"img\" aria-label=\"{}\"><path class=\"c{} fill\" d=\"{}\"/></svg>",
        escaped(&shortened(name, 60)),
        style % COLOURS,
        mark((6.0, 6.0), 5.0, style)
    )
}

#[cfg(test)]
mod tests;
