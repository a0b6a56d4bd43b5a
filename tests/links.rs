//! Every relative link of the documents leads to a file that exists, and every anchor to a heading of it; the book's list of
//! chapters names every page.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Component, Path, PathBuf},
};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// All Markdown files of the project, as paths from the root.
fn documents() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).expect("a folder") {
            let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
            let path = folder.join(&name);
            if root().join(&path).is_dir() {
                if name != "target" && name != ".git" && !name.starts_with("veilsum-out") {
                    folders.push(path);
                }
            } else if name.ends_with(".md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

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

/// `a/b/../c` as `a/c`; nothing where it leaves the root.
fn straight(path: &Path) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => out.pop().then_some(())?,
            Component::Normal(name) => out.push(name),
            _ => {}
        }
    }
    Some(out)
}

/// Why a link of a document leads nowhere.
fn broken(document: &Path, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
    let folder = document.parent().unwrap_or(Path::new(""));
    let target = if file.is_empty() { Some(document.to_owned()) } else { straight(&folder.join(file)) };
    let Some(target) = target.filter(|target| root().join(target).exists()) else {
        return Some(format!("{} links to {link}, which is not there", document.display()));
    };
    let anchor = anchor?;
    let known = anchors(&read(&target));
    (!known.contains(anchor))
        .then(|| format!("{} links to {link}, which has no such heading: {known:?}", document.display()))
}

#[test]
fn every_link_leads_somewhere() {
    let documents = documents();
    for needed in
        ["README.md", "CONTRIBUTING.md", "COMPARE.md", "threat-model.md", "protocol/spec.md", "docs/src/SUMMARY.md"]
    {
        assert!(documents.contains(&PathBuf::from(needed)), "{needed}");
    }
    let mut seen = 0;
    let mut wrong = Vec::new();
    for document in &documents {
        for link in links(&read(document)) {
            seen += 1;
            wrong.extend(broken(document, &link));
        }
    }
    assert!(seen > 100, "{seen}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let readme = Path::new("README.md");
    assert_eq!(broken(readme, "protocol/spec.md#1-scope-parties-trust"), None);
    assert_eq!(broken(Path::new("docs/src/join.md"), "../../threat-model.md"), None);
    for bad in ["nothing.md", "protocol/spec.md#nothing", "#nothing", "../nothing.md", "../../../../etc/passwd"] {
        assert!(broken(readme, bad).is_some(), "{bad}");
    }
    let text = "[a](b.md) `[c](d.md)`\n```text\n[e](f.md)\n```\n<a href=\"g.md\">";
    assert_eq!(links(text), ["b.md", "g.md"]);
    let found = anchors("# A site's part\n## A site's part\n```sh\n# no heading\n```\n### 9.8 Opening, `x_y`");
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["98-opening-x_y", "a-sites-part", "a-sites-part-1"]);
}

#[test]
fn every_page_of_the_book_is_a_chapter_once() {
    let folder = Path::new("docs/src");
    let chapters: Vec<PathBuf> =
        links(&read(&folder.join("SUMMARY.md"))).iter().map(|link| folder.join(link)).collect();
    let pages: BTreeSet<PathBuf> =
        documents().into_iter().filter(|path| path.starts_with(folder) && !path.ends_with("SUMMARY.md")).collect();
    assert_eq!(chapters.len(), pages.len(), "a chapter is named twice, or a page is in no chapter");
    assert_eq!(chapters.into_iter().collect::<BTreeSet<_>>(), pages);
}

/// What the book's build reads: `.ci/book` moves links out of `docs/src` to the copies that it makes of these files.
#[test]
fn links_out_of_the_book_lead_to_files_that_are_built_with_it() {
    let script = read(Path::new(".ci/book"));
    for page in documents().iter().filter(|path| path.starts_with("docs/src")) {
        for link in links(&read(page)).iter().filter(|link| link.starts_with("../")) {
            let file = link.split('#').next().unwrap_or_default();
            let target = straight(&page.parent().expect("a folder").join(file)).expect("a path in the project");
            if !target.starts_with("docs/src") {
                assert!(script.contains(&*target.to_string_lossy()), "{}: {link} is not in .ci/book", page.display());
            }
        }
    }
}
