//! One page for a browser, with nothing from elsewhere: every attack with a figure, its numbers, and what it does not show.

use std::fmt::Write as _;

use crate::{
    finding::{Figure, Finding, Limit, Measure, Verdict},
    table::Report,
};

const STYLE: &str = "body{font:16px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222}\
table{border-collapse:collapse;margin:.5em 0}td,th{border:1px solid #ccc;padding:.2em .6em;text-align:left}\
.holds{color:#00694d}.bad{color:#b03000;font-weight:bold}section{border-top:1px solid #ccc;margin-top:2em}\
dt{font-weight:bold}svg{width:100%;height:auto}";
/// Of the protected and the unprotected number (Okabe & Ito 2008).
const COLOURS: [&str; 2] = ["#d55e00", "#0072b2"];

/// The page.
pub fn html(report: &Report) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Veilsum audit</title><style>{STYLE}</style>\
         </head><body>\n<h1>Veilsum audit</h1>\n<p>{} of {} attacks: every control succeeded and every protected run stayed under \
         its bound. Seed {}, {}{:.0} s. A failed attack is evidence about these attacks, not a proof against all.</p>\n",
        report.findings.iter().filter(|f| f.verdict() == Verdict::Holds).count(),
        report.findings.len(),
        report.seed,
        if report.quick { "short form, " } else { "" },
        report.seconds
    );
    out += "<table><tr><th>attack<th>verdict</tr>";
    for f in &report.findings {
        let _ = write!(out, "<tr><td><a href=\"#{0}\">{0}</a><td>{1}</tr>", escaped(f.attack), verdict(f.verdict()));
    }
    out += "</table>\n";
    report.findings.iter().for_each(|f| section(&mut out, f));
    out += "</body></html>\n";
    out
}

fn section(out: &mut String, f: &Finding) {
    let _ = write!(
        out,
        "<section id=\"{0}\"><h2>{0}</h2>\n{1}\n<table><tr><th>what<th>control<th>must be<th>protected<th>must be<th>verdict</tr>",
        escaped(f.attack),
        figure(&f.measures)
    );
    for m in &f.measures {
        let _ = write!(
            out,
            "<tr><td>{}<td>{}<td>{}<td>{}<td>{}<td>{}</tr>",
            escaped(&m.what),
            m.unprotected,
            escaped(&m.control.shown(m.unprotected)),
            m.protected,
            escaped(&m.bound.shown(m.protected)),
            verdict(m.verdict())
        );
    }
    let _ = write!(
        out,
        "</table>\n<dl><dt>The adversary has<dd>{}<dt>Control<dd>{}<dt>Protection<dd>{}<dt>Not shown<dd>{}</dl>\n<ul>",
        escaped(f.needs),
        escaped(f.control),
        escaped(f.protection),
        escaped(f.not_shown)
    );
    for line in f.also_broken.iter().chain(&f.details) {
        let _ = write!(out, "<li>{}", escaped(line));
    }
    out.push_str("</ul></section>\n");
}

fn verdict(v: Verdict) -> String {
    let class = if v == Verdict::Holds { "holds" } else { "bad" };
    format!("<span class=\"{class}\">{}</span>", v.word())
}

const LEFT: f64 = 20.0;
const WIDE: f64 = 640.0;
const ROW: f64 = 64.0;

/// Two bars for every measure, and a mark where the bound is: shares from 0 to 100 %, other numbers by their powers of ten.
fn figure(measures: &[Measure]) -> String {
    let height = ROW * measures.len() as f64 + 24.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 {height}\" font-family=\"sans-serif\" font-size=\"12\" \
         role=\"img\">"
    );
    for (i, m) in measures.iter().enumerate() {
        let top = ROW * i as f64 + 16.0;
        text(&mut out, LEFT, top, &m.what);
        for (j, (value, name)) in [(m.unprotected, "control"), (m.protected, "protected")].into_iter().enumerate() {
            let y = top + 6.0 + 18.0 * j as f64;
            let width = place(value, value.value()).max(1.5);
            let colour = COLOURS[j];
            let _ =
                write!(out, "<rect x=\"{LEFT}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"14\" fill=\"{colour}\"/>");
            let limit = if j == 0 { m.control } else { m.bound };
            let (Limit::AtMost(at) | Limit::AtLeast(at)) = limit;
            let x = LEFT + place(value, at);
            let _ = write!(
                out,
                "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"black\"/>",
                y - 2.0,
                y + 16.0
            );
            text(
                &mut out,
                LEFT + width.min(WIDE - 190.0) + 8.0,
                y + 11.0,
                &format!("{name}: {value}, {}", limit.shown(value)),
            );
        }
    }
    out.push_str("</svg>");
    out
}

fn place(kind: Figure, x: f64) -> f64 {
    let share = match kind {
        Figure::Rate(_) => x,
        // From 10^-16 to 10^20.
        Figure::Number(_) => (x.abs().max(1e-16).log10() + 16.0) / 36.0,
    };
    if share.is_nan() { 0.0 } else { WIDE * share.clamp(0.0, 1.0) }
}

fn text(out: &mut String, x: f64, y: f64, words: &str) {
    let _ = write!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escaped(words));
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Rate;

    #[test]
    fn a_page_stands_alone_and_its_text_is_escaped() {
        let measures = vec![
            Measure::rates("<b>", Rate { hit: 1, of: 1 }, Rate { hit: 0, of: 0 }, 0.0),
            Measure::new("e", 0.0, Limit::AtMost(1.0), f64::INFINITY, Limit::AtLeast(2.0)),
            Measure::new("n", f64::NAN, Limit::AtMost(1.0), 1e300, Limit::AtLeast(2.0)),
        ];
        let f = Finding {
            attack: "a",
            needs: "x < y",
            control: "",
            protection: "",
            measures,
            also_broken: Some("broken & bad".into()),
            details: vec![],
            not_shown: "",
            seconds: 0.0,
        };
        let page = html(&Report { seed: 1, quick: true, findings: vec![f], passed: false, seconds: 1.0 });
        assert!(page.contains("&lt;b&gt;") && page.contains("x &lt; y") && page.contains("broken &amp; bad"));
        assert!(!page.contains("<b>") && page.contains("<svg") && page.contains("BROKEN"));
        for from_elsewhere in ["src=", "url(", "@import", "<script", "<link"] {
            assert!(!page.contains(from_elsewhere), "{from_elsewhere}");
        }
        assert!(!page.contains("width=\"NaN") && !page.contains("width=\"inf"));
    }
}
