//! Every relative link of the documents leads to a file that exists, and every anchor to a heading of it; the book's list of
//! chapters names every page.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path},
};

use crate::source::{files, read, there};

/// The text without blocks of code and without code between backticks.
fn prose(text: &str) -> String {
    let outside: Vec<&str> = text.split("```").step_by(2).collect();
    let mut out = String::new();
    for part in outside {
        for line in part.lines() {
            out.push_str(&line.split('`').step_by(2).collect::<Vec<_>>().join("code"));
            out.push('\n');
        }
    }
    out
}

/// What the links of a text lead to: `[words](target)` and `<a href="target">`.
fn links(text: &str) -> Vec<String> {
    let text = prose(text);
    let of = |mark: &str, end: char| {
        text.split(mark).skip(1).filter_map(|rest| rest.split(end).next()).map(str::to_owned).collect::<Vec<_>>()
    };
    let mut found = of("](", ')');
    found.extend(of("href=\"", '"'));
    found
}

/// The anchors of a text's headings, as GitHub and mdBook make them: lower case, blanks to hyphens, of all other characters only
/// letters, digits, hyphens and underscores; a number behind what is there already.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = BTreeSet::new();
    let outside: String = text.split("```").step_by(2).collect();
    for line in outside.lines() {
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let slug: String = heading
            .trim()
            .to_lowercase()
            .chars()
            .filter_map(|c| match c {
                ' ' => Some('-'),
                c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
                _ => None,
            })
            .collect();
        let number = seen.entry(slug.clone()).or_default();
        found.insert(if *number == 0 { slug } else { format!("{slug}-{number}") });
        *number += 1;
    }
    found
}

/// Where a link of a document leads: `a/b/../c` as `a/c`; nothing where it leaves the root.
fn straight(document: &str, link: &str) -> Option<String> {
    let mut out = Vec::new();
    for part in Path::new(document).parent()?.join(link).components() {
        match part {
            Component::ParentDir => drop(out.pop()?),
            Component::Normal(name) => out.push(name.to_str()?.to_owned()),
            _ => {}
        }
    }
    Some(out.join("/"))
}

/// Why a link of a document leads nowhere.
fn broken(document: &str, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
    let target = if file.is_empty() { Some(document.to_owned()) } else { straight(document, file) };
    let Some(target) = target.filter(|target| there(target)) else {
        return Some(format!("{document} links to {link}, which is not there"));
    };
    let known = anchors(&read(anchor.and(Some(target.as_str()))?));
    (!known.contains(anchor?)).then(|| format!("{document} links to {link}, which has no such heading: {known:?}"))
}

#[test]
fn every_link_leads_somewhere() {
    let documents = files("", ".md");
    let all: Vec<(&String, String)> = documents
        .iter()
        .flat_map(|document| links(&read(document)).into_iter().map(move |link| (document, link)))
        .collect();
    let wrong: Vec<String> = all.iter().filter_map(|(document, link)| broken(document, link)).collect();
    assert!(all.len() > 100, "{}", all.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    assert_eq!(broken("README.md", "protocol/spec.md#1-scope-parties-trust"), None);
    assert_eq!(broken("docs/src/join.md", "../../threat-model.md"), None);
    for bad in ["nothing.md", "protocol/spec.md#nothing", "#nothing", "../nothing.md", "../../../../etc/passwd"] {
        assert!(broken("README.md", bad).is_some(), "{bad}");
    }
    let text = "[a](b.md) `[c](d.md)`\n```text\n[e](f.md)\n```\n<a href=\"g.md\">";
    assert_eq!(links(text), ["b.md", "g.md"]);
    let found = anchors("# A site's part\n## A site's part\n```sh\n# no heading\n```\n### 9.8 Opening, `x_y`");
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["98-opening-x_y", "a-sites-part", "a-sites-part-1"]);
}

#[test]
fn every_page_of_the_book_is_a_chapter_once() {
    let summary = "docs/src/SUMMARY.md";
    let chapters = links(&read(summary)).into_iter().map(|link| format!("docs/src/{link}"));
    let (mut chapters, pages) = (chapters.collect::<Vec<_>>(), files("docs/src", ".md"));
    chapters.push(summary.into());
    chapters.sort();
    assert_eq!(chapters, pages);
}

/// What the book's build reads: `.ci/book` moves links out of `docs/src` to the copies that it makes of these files.
#[test]
fn links_out_of_the_book_lead_to_files_that_are_built_with_it() {
    let script = read(".ci/book");
    for page in files("docs/src", ".md") {
        for link in links(&read(&page)).iter().filter(|link| link.starts_with("../")) {
            let target = straight(&page, link.split('#').next().unwrap_or_default()).expect("a path in the project");
            assert!(target.starts_with("docs/src") || script.contains(&target), "{page}: {link} is not in .ci/book");
        }
    }
}
