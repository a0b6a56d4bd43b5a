//! From places to SVG: lines, marks and words. Colours are classes, so that a page has one set for light, dark and paper.

use std::fmt::Write as _;

use crate::text::{escaped, shortened, width};

/// Units from left to right: as many as a telephone has points, so that words stay as large as the page's.
pub(crate) const WIDE: f64 = 360.0;
/// Size of words.
pub(crate) const LETTER: f64 = 12.0;

/// Colours that are told apart without seeing red or green, after Okabe & Ito (2008); darker or lighter where that is needed for three
/// to one against white and black.
pub(crate) const COLOURS: usize = 7;
/// Shapes of marks: with [`COLOURS`] there are 42 pairs before one comes again.
const SHAPES: usize = 6;
/// Dashes of lines.
const DASHES: [&str; 5] = ["", "7 3", "2 3", "9 3 2 3", "4 2"];

/// What every chart needs of a style sheet: classes and colours, also for dark and for paper.
pub(crate) const STYLE: &str = ":root{--ink:#1a1a1a;--quiet:#595959;--grid:#d9d9d9;--paper:#fff;\
--v0:#005b96;--v1:#c24e00;--v2:#007d5c;--v3:#a6458a;--v4:#0097c9;--v5:#946800;--v6:#3d3d3d}\
@media screen and (prefers-color-scheme:dark){:root{--ink:#ececec;--quiet:#b4b4b4;--grid:#444;--paper:#121212;\
--v0:#4aa3e6;--v1:#ff9152;--v2:#35c79d;--v3:#e295c6;--v4:#8fe3ff;--v5:#eeb838;--v6:#dcdcdc}}\
.chart{display:block;width:100%;height:auto;color:var(--ink);font:12px system-ui,sans-serif}\
.chart text{fill:currentColor}.chart .quiet{fill:var(--quiet)}.chart .halo,.chart .over{paint-order:stroke;stroke:var(--paper);stroke-width:3px}.chart .halo{font-weight:600}.chart .over{stroke-width:5px}\
.chart .grid{stroke:var(--grid)}.chart .axis{stroke:var(--quiet)}.chart .note{stroke:var(--ink);stroke-dasharray:3 3}\
.c0{--c:var(--v0)}.c1{--c:var(--v1)}.c2{--c:var(--v2)}.c3{--c:var(--v3)}.c4{--c:var(--v4)}.c5{--c:var(--v5)}.c6{--c:var(--v6)}\
.chart .line{fill:none;stroke:var(--c);stroke-width:2}.chart .fill{fill:var(--c)}.chart .faint{fill:var(--c);fill-opacity:.4}\
.chart .soft{fill:var(--c);fill-opacity:.16;stroke:var(--c);stroke-width:1.5}";

// Where words begin, have their middle and end, as SVG names it; words begin at their place unless told otherwise.
pub(crate) const START: &str = "";
pub(crate) const MIDDLE: &str = " text-anchor=\"middle\"";
pub(crate) const END: &str = " text-anchor=\"end\"";

/// What stands before a name in a legend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Swatch {
    Mark,
    Line,
    Bar,
}

/// What is drawn so far.
#[derive(Debug, Default)]
pub(crate) struct Drawing {
    out: String,
}

/// One digit behind the point at most.
pub(crate) fn n(x: f64) -> String {
    let text = format!("{x:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

impl Drawing {
    /// Words in so much room; what does not fit is cut, and whole in the title.
    pub(crate) fn text(&mut self, (x, y): (f64, f64), anchor: &str, class: &str, words: &str, room: f64) {
        let mut shown = words.to_owned();
        let mut most = words.chars().count();
        while width(&shown, LETTER) > room && most > 1 {
            most -= 1;
            shown = shortened(words, most);
        }
        let title = if shown == words { String::new() } else { format!("<title>{}</title>", escaped(words)) };
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        let (x, y, shown) = (n(x), n(y), escaped(&shown));
        let _ = writeln!(self.out, "<text x=\"{x}\" y=\"{y}\"{anchor}{class}>{shown}{title}</text>");
    }

    /// A straight line.
    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(n);
        let _ = writeln!(self.out, "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" class=\"{class}\"/>");
    }

    /// A line through places, in the colour and dashes of this style.
    pub(crate) fn polyline(&mut self, places: &[(f64, f64)], style: usize, title: &str) {
        if places.len() < 2 {
            return;
        }
        let path: Vec<String> = places.iter().map(|(x, y)| format!("{} {}", n(*x), n(*y))).collect();
        self.path(&format!("M{}", path.join("L")), "line", style, title);
    }

    /// A path in the colour of this style.
    pub(crate) fn path(&mut self, path: &str, class: &str, style: usize, title: &str) {
        let dashes = DASHES[style % DASHES.len()];
        let dashes = match class {
            "line" if !dashes.is_empty() => format!(" stroke-dasharray=\"{dashes}\""),
            _ => String::new(),
        };
        let colour = style % COLOURS;
        let _ = write!(self.out, "<path class=\"c{colour} {class}\"{dashes} d=\"{path}\"");
        let _ = match title {
            "" => writeln!(self.out, "/>"),
            title => writeln!(self.out, "><title>{}</title></path>", escaped(title)),
        };
    }

    /// The mark of this style.
    pub(crate) fn mark(&mut self, at: (f64, f64), size: f64, style: usize, title: &str) {
        self.path(&mark(at, size, style), "fill", style, title);
    }

    /// A rectangle in the colour of this style: full, pale with an edge, or with a mark at its end.
    pub(crate) fn bar(&mut self, (x, y): (f64, f64), (wide, high): (f64, f64), style: usize, title: &str) {
        let class = if style % 2 == 1 { "soft" } else { "fill" };
        self.path(&format!("M{} {}h{}v{}h-{}z", n(x), n(y), n(wide), n(high), n(wide)), class, style, title);
        if style > 1 {
            self.mark((x + wide, y + high / 2.0), 5.0, style, title);
        }
    }

    /// Every style with its name, one behind the other as far as they fit; says how high that is. Nothing where there is one.
    pub(crate) fn legend(&mut self, top: f64, names: &[(String, usize)], of: Swatch) -> f64 {
        if names.len() < 2 {
            return 0.0;
        }
        let swatch = if of == Swatch::Mark { 16.0 } else { 30.0 };
        let (mut x, mut y) = (0.0, top + 14.0);
        for (name, style) in names {
            let name = shortened(name, 48);
            let wide = (swatch + width(&name, LETTER) + 12.0).min(WIDE);
            if x > 0.0 && x + wide > WIDE {
                (x, y) = (0.0, y + 18.0);
            }
            match of {
                Swatch::Mark => self.mark((x + 6.0, y - 4.0), 4.0, *style, ""),
                Swatch::Line => {
                    self.polyline(&[(x, y - 4.0), (x + 24.0, y - 4.0)], *style, "");
                    self.mark((x + 12.0, y - 4.0), 4.0, *style, "");
                }
                Swatch::Bar => self.bar((x + 1.0, y - 9.0), (20.0, 9.0), *style, ""),
            }
            self.text((x + swatch, y), START, "", &name, WIDE - swatch);
            x += wide;
        }
        y - top + 6.0
    }

    /// What was drawn, so high, with a name for those who do not see it.
    pub(crate) fn svg(&self, high: f64, name: &str) -> String {
        let (wide, high, name) = (n(WIDE), n(high.ceil()), escaped(name));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 {wide} {high}\" role=\"img\" aria-label=\"{name}\">\n{}</svg>\n",
            self.out
        )
    }
}

/// The outline of the mark of a style around a place, relative behind its first step: many of them make one path.
pub(crate) fn mark((x, y): (f64, f64), size: f64, style: usize) -> String {
    let (r, d) = (n(size), n(2.0 * size));
    let third = size / 1.5;
    let t = n(third);
    match style % SHAPES {
        0 => format!("M{} {}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0-{d} 0z", n(x - size), n(y)),
        1 => format!("M{} {}h{d}v{d}h-{d}z", n(x - size), n(y - size)),
        2 => format!("M{} {}l{r} {d}h-{d}z", n(x), n(y - size)),
        3 => format!("M{} {}l{r} {r}l-{r} {r}l-{r}-{r}z", n(x), n(y - size)),
        4 => format!("M{} {}h{t}v{t}h{t}v{t}h-{t}v{t}h-{t}v-{t}h-{t}v-{t}h{t}z", n(x - third / 2.0), n(y - size)),
        _ => format!("M{} {}l{r}-{d}h-{d}z", n(x), n(y + size)),
    }
}
