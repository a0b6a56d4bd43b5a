//! One page for a browser and for paper, with nothing from elsewhere: no script, no image, no request, whatever stands in a name.
//!
//! Everything that is handed in is text and is escaped here.

use std::fmt::Write as _;

use crate::{
    chart::{Chart, swatch},
    drawing,
    text::escaped,
};

/// The system's own colours follow its dark mode. Below 40 em a table of words is a list, each cell with its column's name
/// before it, unless it has but two columns and the first is the name of what stands in the second; so is one of numbers with more than
/// four columns. One of few numbers scrolls, with a shade at the edge behind which there is more.
const STYLE: &str = ":root{color-scheme:light dark}*{box-sizing:border-box}\
body{font:1rem/1.5 system-ui,sans-serif;margin:0;color:var(--ink);background:var(--paper);overflow-wrap:break-word}\
main,footer{max-width:76rem;margin:0 auto;padding:1rem}\
h1{font-size:1.5rem;line-height:1.2}h2{font-size:1.2rem;margin-top:2rem;border-top:1px solid var(--quiet);padding-top:.5rem}h3{font-size:1rem;margin-bottom:.3rem}\
.says,.beware{font-size:1.1rem;border:2px solid;border-radius:.4rem;padding:.5rem .8rem;max-width:52rem}\
.beware{border-style:double;border-width:6px;font-weight:600}p,ul{max-width:52rem}\
table{border-collapse:collapse;width:100%;margin:.5rem 0}td,th{border:1px solid var(--quiet);padding:.25rem .5rem;text-align:left;vertical-align:top}\
.numbers td:not(:first-child),.numbers th:not(:first-child){text-align:right;font-variant-numeric:tabular-nums}\
.scroll{overflow-x:auto;margin:.5rem 0;background:linear-gradient(to right,var(--paper) 40%,transparent) 0/2.5rem 100% local no-repeat,\
linear-gradient(to left,var(--paper) 40%,transparent) 100%/2.5rem 100% local no-repeat,\
linear-gradient(to right,var(--quiet),transparent) 0/.8rem 100% no-repeat,linear-gradient(to left,var(--quiet),transparent) 100%/.8rem 100% no-repeat}.scroll table{margin:0}\
.good{color:var(--v2)}.bad{color:var(--v1);font-weight:bold}.quiet{color:var(--quiet)}\
a{color:var(--v0)}details{margin:.5rem 0}summary{cursor:pointer}footer{font-size:.85rem}\
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,21rem),1fr));gap:1.5rem;align-items:start}\
figure{margin:.8rem 0;max-width:36rem;break-inside:avoid}figcaption{font-weight:600;margin-bottom:.4rem}\
.swatch.chart{display:inline-block;width:.9em;height:.9em;vertical-align:-.1em;margin-right:.4em}\
.scroll td,.scroll th{min-width:4.5rem;max-width:20rem}\
@media(max-width:40em){.list thead,.turns thead{display:none}.list,.list tbody,.list tr,.list td,.turns,.turns tbody,.turns tr,.turns td{display:block;border:0}\
.list tr,.turns tr{border-top:1px solid var(--quiet);padding:.3rem 0}\
.list td,.turns td{padding:.1rem 0}.list td:empty{display:none}.list td::before{content:attr(data-column) \": \";font-weight:bold}\
.scroll .turns td{max-width:none;display:flex;justify-content:space-between;gap:1rem}.turns td::before{content:attr(data-column)}\
.turns td:first-child{font-weight:bold}.turns td:first-child::before,.turns td:empty{display:none}\
.pairs td::before{content:none}.pairs td:first-child{font-weight:bold}.scroll{font-size:.9rem}.scroll td:first-child{min-width:6.5rem;max-width:10rem}}\
@media print{@page{size:A4;margin:1.3cm 1.5cm}body{font-size:8.5pt;line-height:1.35}main,footer{max-width:none;padding:0}\
h1{font-size:13pt;margin:0 0 .5rem}h2{font-size:11pt;margin:.7rem 0 .3rem;padding-top:.2rem}h3{margin:.4rem 0 .2rem}p,ul,.says,.beware{max-width:none;margin:.3rem 0}\
.says,.beware{font-size:10pt}h2,h3{break-after:avoid}tr,li,.says{break-inside:avoid}\
.scroll{overflow:visible;background:none;font-size:7.5pt}.scroll td,.scroll th{min-width:0;padding:.1rem .3rem}\
.charts{grid-template-columns:repeat(3,1fr);gap:.5rem}figure{margin:.3rem 0;font-size:8pt}details{margin:.2rem 0}details:not([open])>:not(summary){display:none}\
a{color:inherit;text-decoration:none}}";

/// Columns of numbers that fit a telephone.
const FIT: usize = 4;

/// No request can leave the page, even if an escape were forgotten.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// A page that grows from top to bottom.
pub struct Page {
    title: String,
    body: String,
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Text.
    Text(String),
    /// Text behind the mark of a style, by which it is found in charts.
    Marked(usize, String),
    /// Text that is good news.
    Good(String),
    /// Text that is bad news.
    Bad(String),
}

impl Cell {
    fn html(&self) -> String {
        match self {
            Cell::Text(text) => escaped(text),
            Cell::Marked(style, text) => swatch(*style, text) + &escaped(text),
            Cell::Good(text) => format!("<span class=\"good\">{}</span>", escaped(text)),
            Cell::Bad(text) => format!("<span class=\"bad\">{}</span>", escaped(text)),
        }
    }
}

/// The rows of a table.
pub trait Rows<T>: IntoIterator<Item: IntoIterator<Item = T>> {}

impl<T, R: IntoIterator<Item: IntoIterator<Item = T>>> Rows<T> for R {}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell::Text(text.into())
    }
}

impl Page {
    /// An empty page under this title.
    pub fn new(title: &str) -> Page {
        Page { title: title.to_owned(), body: format!("<h1>{}</h1>\n", escaped(title)) }
    }

    /// The sentence that the page is about.
    pub fn says(&mut self, sentence: &str) -> &mut Page {
        self.element("p class=\"says\"", "p", sentence)
    }

    /// What nobody may overlook.
    pub fn beware(&mut self, sentence: &str) -> &mut Page {
        self.element("p class=\"beware\" role=\"note\"", "p", sentence)
    }

    /// Begins a part.
    pub fn part(&mut self, title: &str) -> &mut Page {
        let open = format!("h2 id=\"{}\"", anchor(title));
        self.element(&open, "h2", title)
    }

    /// Begins a part of a part.
    pub fn subpart(&mut self, title: &str) -> &mut Page {
        self.element("h3", "h3", title)
    }

    /// A paragraph.
    pub fn paragraph(&mut self, text: &str) -> &mut Page {
        self.element("p", "p", text)
    }

    /// A paragraph that explains rather than tells.
    pub fn aside(&mut self, text: &str) -> &mut Page {
        self.element("p class=\"quiet\"", "p", text)
    }

    /// A list; nothing where it is empty.
    pub fn list<T: AsRef<str>>(&mut self, items: impl IntoIterator<Item = T>) -> &mut Page {
        let mut items = items.into_iter().peekable();
        if items.peek().is_none() {
            return self;
        }
        self.body.push_str("<ul>\n");
        for item in items {
            self.element("li", "li", item.as_ref());
        }
        self.body.push_str("</ul>\n");
        self
    }

    /// A table with the names of its columns; a row may be shorter than these.
    pub fn table<T: AsRef<str>>(&mut self, columns: &[&str], rows: impl Rows<T>) -> &mut Page {
        // It becomes a list where there is no room for it.
        let class = if columns.len() == 2 { " class=\"list pairs\"" } else { " class=\"list\"" };
        self.rows(class, columns, rows, |text| escaped(text.as_ref()))
    }

    /// A table whose first column names what the numbers in the others are of. One with many columns scrolls by itself.
    pub fn numbers(&mut self, columns: &[&str], rows: impl Rows<Cell>) -> &mut Page {
        let class = if columns.len() > FIT { " class=\"numbers turns\"" } else { " class=\"numbers\"" };
        self.scrolling(class, columns, rows)
    }

    /// A table of cells.
    pub fn cells(&mut self, columns: &[&str], rows: impl Rows<Cell>) -> &mut Page {
        self.scrolling("", columns, rows)
    }

    fn scrolling(&mut self, class: &str, columns: &[&str], rows: impl Rows<Cell>) -> &mut Page {
        let name = escaped(&columns.iter().take(3).copied().collect::<Vec<_>>().join(", "));
        // Whoever has no mouse can scroll it.
        let _ = writeln!(self.body, "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{name}\">");
        self.rows(class, columns, rows, Cell::html);
        self.body.push_str("</div>\n");
        self
    }

    /// Charts beside each other as far as there is room, each under its title; those in which nothing has a place are left out.
    pub fn charts<'a>(&mut self, charts: impl IntoIterator<Item = &'a Chart>) -> &mut Page {
        let mut charts = charts.into_iter().filter(|chart| !chart.is_empty()).peekable();
        if charts.peek().is_none() {
            return self;
        }
        self.body.push_str("<div class=\"charts\">\n");
        for chart in charts {
            let (title, drawn) = (escaped(&chart.title), chart.inline());
            let _ = writeln!(self.body, "<figure><figcaption>{title}</figcaption>\n{drawn}</figure>");
        }
        self.body.push_str("</div>\n");
        self
    }

    /// What only some readers want to see: folded up, and open on paper as the reader left it.
    pub fn folded(&mut self, title: &str, inside: impl FnOnce(&mut Page)) -> &mut Page {
        let _ = writeln!(self.body, "<details id=\"{}\"><summary>{}</summary>", anchor(title), escaped(title));
        inside(self);
        self.body.push_str("</details>\n");
        self
    }

    fn rows<T>(&mut self, class: &str, columns: &[&str], rows: impl Rows<T>, cell: fn(&T) -> String) -> &mut Page {
        let heads: String = columns.iter().map(|of| format!("<th scope=\"col\">{}</th>", escaped(of))).collect();
        let _ = writeln!(self.body, "<table{class}><thead><tr>{heads}</tr></thead><tbody>");
        for row in rows {
            self.body.push_str("<tr>");
            for (column, text) in columns.iter().zip(row) {
                let _ = write!(self.body, "<td data-column=\"{}\">{}</td>", escaped(column), cell(&text));
            }
            self.body.push_str("</tr>\n");
        }
        self.body.push_str("</tbody></table>\n");
        self
    }

    fn element(&mut self, open: &str, close: &str, text: &str) -> &mut Page {
        let _ = writeln!(self.body, "<{open}>{}</{close}>", escaped(text));
        self
    }

    /// The whole page.
    pub fn html(&self) -> String {
        format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\"><title>{}</title>\n<style>{}{STYLE}</style></head>\n<body>\n<main>\n{}</main>\n\
             <footer>Made by veilsum {} on this party's own machine. The page holds no script and fetches nothing.</footer>\n</body></html>\n",
            escaped(&self.title),
            drawing::STYLE,
            self.body,
            env!("CARGO_PKG_VERSION")
        )
    }
}

/// The name of a part within the page.
fn anchor(title: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    format!("part-{}", title.chars().map(letter).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Plot;

    const NASTY: &str = "<script>alert('x')</script>\"><img src=x onerror=y>&amp;\u{202e}\u{7}`**[a](b)";

    fn full() -> String {
        let mut page = Page::new(NASTY);
        page.says(NASTY).beware(NASTY).part(NASTY).subpart(NASTY).paragraph(NASTY).aside(NASTY).list([NASTY]);
        page.table(&[NASTY], [[NASTY]]);
        let nasty = || NASTY.to_owned();
        let cells = [Cell::Text(nasty()), Cell::Marked(1, nasty()), Cell::Good(nasty()), Cell::Bad(nasty())];
        page.numbers(&[NASTY], cells.map(|cell| [cell]));
        let chart = Chart::new(NASTY, NASTY, NASTY, Plot::Lines(vec![(nasty(), vec![(1.0, 1.0), (2.0, 2.0)])]));
        page.charts([&chart]);
        page.folded(NASTY, |page| {
            page.paragraph(NASTY);
        });
        page.html()
    }

    /// Whatever a name is, it opens no tag and ends no attribute.
    #[test]
    fn nothing_that_is_handed_in_becomes_markup() {
        let html = full();
        for bad in ["<script", "<img", "onerror=y>", "\u{202e}", "\u{7}"] {
            assert!(!html.contains(bad), "{bad:?} in {html}");
        }
        let known = "html head meta title style body main h1 h2 h3 p ul li table thead tbody tr th td span footer !doctype \
                     div a figure figcaption details summary svg path text line";
        let known: Vec<&str> = known.split(' ').collect();
        for tag in html.split('<').skip(1) {
            let tag = tag.trim_start_matches('/');
            let name = tag.split(|c: char| !c.is_ascii_alphanumeric() && c != '!').next().unwrap_or_default();
            assert!(known.contains(&name), "<{tag}");
        }
        for attribute in html.split("data-column=\"").skip(1) {
            assert!(attribute.split('"').nth(1).is_some_and(|rest| rest.starts_with('>')), "{attribute}");
        }
    }

    #[test]
    fn a_page_asks_nobody_for_anything() {
        let html = full().replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        // Names may say anything; these are the page's own words.
        let own = html.replace("src=x", "");
        for bad in ["http:", "https:", "src=", "href=\"h", "href=\"/", "url(", "@import", "<link"] {
            assert!(!own.contains(bad), "{bad}");
        }
        for own in ["default-src 'none'", "@media print", "color-scheme:light dark"] {
            assert!(html.contains(own), "{own}");
        }
    }

    #[test]
    fn a_chart_in_which_nothing_has_a_place_is_left_out() {
        let lines = |points: &[(f64, f64)]| Chart::new("t", "x", "y", Plot::Lines(vec![("a".into(), points.to_vec())]));
        let (one, zero) = (lines(&[(1.0, 2.0)]), lines(&[(1.0, 0.0), (2.0, 0.0), (3.0, 0.0)]));
        let full = lines(&[(1.0, 2.0), (2.0, 1.0)]);
        let bars = Chart::new("t", "", "", Plot::Bars(vec!["g".into()], vec![("s".into(), vec![f64::NAN.into()])]));
        let mut page = Page::new("x");
        page.charts([&one, &bars, &Chart { log: true, ..zero.clone() }]);
        assert!(!page.html().contains("<figure") && !zero.is_empty());
        page.charts([&one, &full]);
        assert_eq!(page.html().matches("<figure").count(), 1);
    }
}
