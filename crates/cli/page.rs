//! One page for a browser and for paper, with nothing from elsewhere: no script, no image, no request, whatever stands in a name.
//!
//! Everything that is handed in is text and is escaped here. The one exception is [`Page::marked`], which reads the few signs of
//! Markdown that the project's own documents use, after escaping.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use clap::Args;
use veilsum_node::{error::Failure, files};

/// The system's own colours follow its dark mode. Below 40 em a table is a list, each cell with its column's name before it.
pub(crate) const STYLE: &str = ":root{color-scheme:light dark}\
body{font:1rem/1.5 system-ui,sans-serif;max-width:52rem;margin:0 auto;padding:1rem;color:CanvasText;background:Canvas;overflow-wrap:anywhere}\
h1{font-size:1.5rem;line-height:1.2}h2{font-size:1.2rem;margin-top:2rem;border-top:1px solid GrayText;padding-top:.5rem}h3{font-size:1rem}\
.says{font-size:1.1rem;border:2px solid;border-radius:.4rem;padding:.5rem .8rem}\
table{border-collapse:collapse;width:100%;margin:.5rem 0}td,th{border:1px solid GrayText;padding:.25rem .5rem;text-align:left;vertical-align:top}\
.blank{display:inline-block;min-width:12rem;border-bottom:1px solid;height:1.2em}footer{margin-top:2rem;font-size:.85rem}\
@media(max-width:40em){thead{display:none}table,tbody,tr,td{display:block;border:0}tr{border-top:1px solid GrayText;padding:.3rem 0}\
td{padding:.1rem 0}td::before{content:attr(data-column) \": \";font-weight:bold}}\
@media print{@page{margin:2cm}body{font-size:10pt;max-width:none;padding:0}h2,h3{break-after:avoid}tr,li,.says{break-inside:avoid}}";

/// No request can leave the page, even if an escape were forgotten.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// Where the page goes.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct Print {
    /// Write the same as a page to print, too: one file without scripts that fetches nothing
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// What stands in a page where people write.
pub(crate) const BLANK: &str = "\u{2}";

/// A page that grows from top to bottom.
pub(crate) struct Page {
    title: String,
    body: String,
}

impl Page {
    /// An empty page under this title.
    pub(crate) fn new(title: &str) -> Page {
        Page { title: title.to_owned(), body: format!("<h1>{}</h1>\n", escaped(title)) }
    }

    /// The sentence that the page is about.
    pub(crate) fn says(&mut self, sentence: &str) -> &mut Page {
        self.element("p class=\"says\"", "p", sentence)
    }

    /// Begins a part.
    pub(crate) fn part(&mut self, title: &str) -> &mut Page {
        self.element("h2", "h2", title)
    }

    /// A paragraph.
    pub(crate) fn paragraph(&mut self, text: &str) -> &mut Page {
        self.element("p", "p", text)
    }

    /// A list.
    pub(crate) fn list<T: AsRef<str>>(&mut self, items: impl IntoIterator<Item = T>) -> &mut Page {
        self.body.push_str("<ul>\n");
        for item in items {
            self.element("li", "li", item.as_ref());
        }
        self.body.push_str("</ul>\n");
        self
    }

    /// A table with the names of its columns; a row may be shorter than these.
    pub(crate) fn table<T: AsRef<str>>(
        &mut self,
        columns: &[&str],
        rows: impl IntoIterator<Item: IntoIterator<Item = T>>,
    ) -> &mut Page {
        self.rows(columns, rows, escaped)
    }

    /// The same with cells in Markdown of the project's own documents.
    pub(crate) fn marked_table<T: AsRef<str>>(
        &mut self,
        columns: &[&str],
        rows: impl IntoIterator<Item: IntoIterator<Item = T>>,
    ) -> &mut Page {
        self.rows(columns, rows, inline)
    }

    /// Paragraphs and lists in Markdown of the project's own documents.
    pub(crate) fn marked(&mut self, text: &str) -> &mut Page {
        for block in text.split("\n\n").map(str::trim).filter(|block| !block.is_empty()) {
            // A list may stand in the lines right behind its paragraph.
            let mut items: Vec<String> = vec![String::new()];
            for line in block.lines().map(str::trim) {
                match line.strip_prefix("* ") {
                    Some(item) => items.push(item.to_owned()),
                    None => {
                        if let Some(item) = items.last_mut() {
                            item.push_str(if item.is_empty() { "" } else { " " });
                            item.push_str(line);
                        }
                    }
                }
            }
            let mut items = items.into_iter();
            if let Some(first) = items.next().filter(|first| !first.is_empty()) {
                let _ = writeln!(self.body, "<p>{}</p>", inline(&first));
            }
            let items: String = items.map(|item| format!("<li>{}</li>\n", inline(&item))).collect();
            if !items.is_empty() {
                let _ = write!(self.body, "<ul>\n{items}</ul>\n");
            }
        }
        self
    }

    fn rows<T: AsRef<str>>(
        &mut self,
        columns: &[&str],
        rows: impl IntoIterator<Item: IntoIterator<Item = T>>,
        cell: fn(&str) -> String,
    ) -> &mut Page {
        let heads: String = columns.iter().map(|column| format!("<th>{}</th>", escaped(column))).collect();
        let _ = writeln!(self.body, "<table><thead><tr>{heads}</tr></thead><tbody>");
        for row in rows {
            self.body.push_str("<tr>");
            for (column, text) in columns.iter().zip(row) {
                let _ = write!(self.body, "<td data-column=\"{}\">{}</td>", escaped(column), cell(text.as_ref()));
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
    pub(crate) fn html(&self) -> String {
        format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\"><title>{}</title>\n<style>{STYLE}</style></head>\n<body>\n{}\
             <footer>Made by veilsum {} on this party's own machine. The page holds no script and fetches nothing.</footer>\n</body></html>\n",
            escaped(&self.title),
            self.body,
            env!("CARGO_PKG_VERSION")
        )
    }

    /// Writes it, whole or not at all, if a file was asked for.
    ///
    /// # Errors
    /// A [`Failure`] where the file cannot be written.
    pub(crate) fn write(&self, file: Option<&Path>) -> Result<(), Failure> {
        let Some(file) = file else { return Ok(()) };
        files::write_atomic(file, self.html().as_bytes()).map_err(|e| {
            let failure = Failure::from(e);
            Failure { message: format!("--html: {}", failure.message), ..failure }
        })
    }
}

/// Text that nothing in it can end: not the text itself, and not the value of an attribute.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\u{2}' => out.push_str("<span class=\"blank\"></span>"),
            // A name may turn the direction of what follows, or hide parts of it.
            c if c.is_control() && c != '\n'
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}') =>
            {
                out.push('\u{fffd}');
            }
            c => out.push(c),
        }
    }
    out
}

/// Bold words, names between backticks, and the words of links.
fn inline(markdown: &str) -> String {
    let (mut out, mut bold) = (String::new(), false);
    for (i, piece) in escaped(markdown).split('`').enumerate() {
        if i % 2 == 1 {
            let _ = write!(out, "<code>{piece}</code>");
            continue;
        }
        let mut rest = piece;
        while let Some((before, after)) = rest.split_once("**") {
            out.push_str(&unlinked(before));
            out.push_str(if bold { "</strong>" } else { "<strong>" });
            (bold, rest) = (!bold, after);
        }
        out.push_str(&unlinked(rest));
    }
    out + if bold { "</strong>" } else { "" }
}

/// `[words](address)` without its address: it leads into a checkout.
fn unlinked(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("](") {
        let open = before.rfind('[');
        let (Some(open), Some(close)) = (open, after.find(')')) else { break };
        out += &before[..open];
        out += &before[open + 1..];
        rest = &after[close + 1..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const NASTY: &str = "<script>alert('x')</script>\"><img src=x onerror=y>&amp;\u{202e}\u{7}`**[a](b)";

    /// Whatever a name is, it opens no tag and ends no attribute.
    #[test]
    fn nothing_that_is_handed_in_becomes_markup() {
        let mut page = Page::new(NASTY);
        page.says(NASTY).part(NASTY).paragraph(NASTY).list([NASTY]).table(&[NASTY], [[NASTY]]);
        page.marked_table(&[NASTY], [[NASTY]]).marked(&format!("{NASTY}\n* {NASTY}\n\n{NASTY}"));
        let html = page.html();
        for bad in ["<script", "<img", "onerror=y>", "\u{202e}", "\u{7}"] {
            assert!(!html.contains(bad), "{bad:?} in {html}");
        }
        let known = [
            "html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "ul", "li", "table", "thead", "tbody",
            "tr", "th", "td", "strong", "code", "span", "footer", "!doctype",
        ];
        for tag in html.split('<').skip(1) {
            let name = tag
                .trim_start_matches('/')
                .split(|c: char| !c.is_ascii_alphanumeric() && c != '!')
                .next()
                .unwrap_or_default();
            assert!(known.contains(&name), "<{tag}");
        }
        for attribute in html.split("data-column=\"").skip(1) {
            assert!(attribute.split('"').nth(1).is_some_and(|rest| rest.starts_with('>')), "{attribute}");
        }
    }

    #[test]
    fn a_page_asks_nobody_for_anything() {
        let html = Page::new("x").html();
        for bad in ["http:", "https:", "src=", "href=", "url(", "@import", "<link"] {
            assert!(!html.contains(bad), "{bad}");
        }
        assert!(
            html.contains("default-src 'none'")
                && html.contains("@media print")
                && html.contains("color-scheme:light dark")
        );
    }

    #[test]
    fn the_signs_of_our_documents_are_read() {
        let mut page = Page::new("x");
        page.marked("**Exact** totals of `a_b` ([REL-1]; [the book](docs/x.md)):\n* one\n  and on\n* two\n\nAfter.");
        page.table(&["who"], [[BLANK]]);
        let html = page.html();
        assert!(
            html.contains("<p><strong>Exact</strong> totals of <code>a_b</code> ([REL-1]; the book):</p>\n<ul>\n<li>one and on</li>\n<li>two</li>\n</ul>\n<p>After.</p>"),
            "{html}"
        );
        assert!(html.contains("<span class=\"blank\">"));
    }
}
