//! One page for a browser, with nothing from elsewhere: every attack with a figure, its numbers, and what it does not show.

use veilsum_charts::{Bar, Chart, Page, Plot, Value, page::Cell};

use crate::{
    finding::{Figure, Finding, Limit, Measure, Verdict},
    table::Report,
};

/// The page.
pub fn html(report: &Report) -> String {
    let mut page = Page::wide("Veilsum audit");
    page.says(&format!(
        "{} of {} attacks: every control succeeded and every protected run stayed under its bound.",
        report.findings.iter().filter(|f| f.verdict() == Verdict::Holds).count(),
        report.findings.len(),
    ));
    page.paragraph(&format!(
        "Seed {}, {}{:.0} s. Every attack runs twice: the control without the protection must succeed, and the run with it must stay under its \
         bound. A failed attack is evidence about these attacks, not a proof against all.",
        report.seed,
        if report.quick { "short form, " } else { "" },
        report.seconds
    ));
    let rows = report.findings.iter().map(|f| {
        [
            Cell::Link(f.attack.to_owned(), f.attack.to_owned()),
            verdict(f.verdict()),
            Cell::Text(format!("{:.1}", f.seconds)),
        ]
    });
    page.cells(&["attack", "verdict", "seconds"], rows);
    report.findings.iter().for_each(|f| section(&mut page, f));
    page.html()
}

fn section(page: &mut Page, f: &Finding) {
    page.part(f.attack);
    page.charts(&figures(&f.measures));
    let rows = f.measures.iter().map(|m| {
        [
            Cell::Text(m.what.clone()),
            Cell::Text(m.unprotected.to_string()),
            Cell::Text(m.control.shown(m.unprotected)),
            Cell::Text(m.protected.to_string()),
            Cell::Text(m.bound.shown(m.protected)),
            verdict(m.verdict()),
        ]
    });
    page.cells(&["what", "control", "control must be", "protected", "protected must be", "verdict"], rows);
    let told = [
        ("the adversary has", f.needs),
        ("control", f.control),
        ("protection", f.protection),
        ("not shown", f.not_shown),
    ];
    page.table(
        &["of this attack", "in words"],
        told.into_iter().filter(|(_, text)| !text.is_empty()).map(|(a, b)| [a, b]),
    );
    page.list(f.also_broken.iter().chain(&f.details));
}

fn verdict(v: Verdict) -> Cell {
    let word = v.word().to_owned();
    if v == Verdict::Holds { Cell::Good(word) } else { Cell::Bad(word) }
}

/// Two bars for every measure, and a line where each should reach or not pass: shares from 0 to 100 % in one chart, other numbers by
/// their powers of ten in another.
fn figures(measures: &[Measure]) -> Vec<Chart> {
    let is_rate = |m: &&Measure| matches!(m.unprotected, Figure::Rate(_));
    let (rates, numbers): (Vec<&Measure>, Vec<&Measure>) = measures.iter().partition(is_rate);
    let chart = |title: &str, of: Vec<&Measure>| {
        let names = ["control, without the protection", "protected"].map(str::to_owned).to_vec();
        let bars = of.into_iter().map(bar).collect();
        Chart::new(title, "", "", Plot::Bars(bars, names))
    };
    let both = [("Share of tries that succeed", rates), ("Numbers by powers of ten, from 10^-16", numbers)];
    both.into_iter().filter(|(_, of)| !of.is_empty()).map(|(title, of)| chart(title, of)).collect()
}

fn bar(m: &Measure) -> Bar {
    let value = |name: &str, figure: Figure, limit: Limit| {
        let (Limit::AtMost(at) | Limit::AtLeast(at)) = limit;
        Value {
            value: place(figure, figure.value()),
            words: format!("{name} {figure}, must be {}", limit.shown(figure)),
            limit: Some(place(figure, at)),
        }
    };
    let values = vec![value("control", m.unprotected, m.control), value("protected", m.protected, m.bound)];
    Bar { name: m.what.clone(), values }
}

/// Where a number is drawn: a share as it is, another by its power of ten above the least that is drawn.
fn place(kind: Figure, x: f64) -> f64 {
    match kind {
        Figure::Rate(_) => x,
        Figure::Number(_) => x.abs().clamp(1e-16, 1e20).log10() + 16.0,
    }
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
        assert!(page.contains("href=\"#part-a\"") && page.contains("id=\"part-a\""), "the table leads to the attack");
        for from_elsewhere in ["src=", "url(", "@import", "<script", "<link"] {
            assert!(!page.contains(from_elsewhere), "{from_elsewhere}");
        }
        assert!(!page.contains("NaN\"") && !page.contains("inf\""));
    }
}
