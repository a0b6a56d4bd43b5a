//! The book's page `docs/src/audit-path.md`: which files a claim rests on, in reading order, as the paths in the code say.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    fs,
    path::Path,
};

use crate::{
    layering::tree,
    source::{ROOT, Source, read, there},
};

/// The crates in the order in which they are read.
const CRATES: [&str; 3] = ["proto", "door", "contributions"];

/// A title, a claim, and the modules that its files begin at.
type Part = (&'static str, &'static str, &'static [&'static str]);

/// A part has the files that no part before it has.
const PARTS: [Part; 2] = [
    ("Masks", "What leaves a site's machine is masked, and masks come off a sum alone.", &["veilsum_proto::site"]),
    (
        "The door",
        "What is asked is answered if policy and account allow it, with noise. One row moves the answer by a bounded length, whatever \
         computes what it adds. The ledger has it first.",
        &["veilsum_door"],
    ),
];

/// Lines of a file may be so many others before the page is out of date, or a tenth.
const SLACK: usize = 20;

/// The file of a module: what it defines, what it takes from elsewhere under which name. A module within it is a part of it.
#[derive(Default)]
struct Module {
    file: String,
    lines: usize,
    defines: BTreeSet<String>,
    takes: BTreeMap<String, Vec<String>>,
    /// Paths that the code follows, each as it is written; what is only handed on (`pub use`) is not among them.
    follows: Vec<Vec<String>>,
}

/// Modules by their paths, which begin with the crate's name.
type Tree = BTreeMap<Vec<String>, Module>;

/// What may stand before a `use`.
const VISIBLE: [&str; 4] = ["", "pub", "pub(crate)", "pub(super)"];

fn path_of(path: &str) -> Vec<String> {
    path.split("::").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// Every path of a `use` with the name that it gets here.
fn uses(before: &str, tree: &str, each: &mut dyn FnMut(Vec<String>, String)) {
    let tree = tree.trim();
    if let Some((head, inside)) = tree.split_once('{') {
        let (mut depth, before) = (0, format!("{before}{head}"));
        let commas = |c| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            depth == 0 && c == ','
        };
        inside.split(commas).for_each(|part| uses(&before, part, each));
        return;
    }
    // Braces that close groups around it stand behind it.
    let (path, name) = match tree.trim_end_matches(['}', ' ', '\n']) {
        "" => return,
        tree => tree.split_once(" as ").unwrap_or((tree, "")),
    };
    let mut path = path_of(&format!("{before}{path}"));
    let last = path.pop_if(|last| ["self", "*"].contains(&&**last));
    let own = match (last.as_deref(), name) {
        (Some("*"), _) => format!("*{}", path.join("::")),
        (_, "") => path.last().cloned().unwrap_or_default(),
        (_, name) => name.to_owned(),
    };
    each(path, own);
}

/// What a line defines that begins an item of its file, and whether it is a module.
fn defined(line: &str) -> Option<(&str, bool)> {
    const ITEMS: [&str; 9] = ["const", "enum", "fn", "macro_rules", "mod", "static", "struct", "trait", "type"];
    let words = line.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
    let mut words = words.skip_while(|word| ["pub", "crate", "super", "async"].contains(word));
    let kind = words.next().filter(|kind| ITEMS.contains(kind) && !line.starts_with(' '))?;
    let name = words.find(|word| *word != "fn")?;
    Some((name, kind == "mod"))
}

/// Reads a file as the module `path`; `folder` is where its children are.
fn add(tree: &mut Tree, path: &[String], file: &str, folder: &str) {
    let source = Source::of(&read(file));
    let mut module = Module { file: file.to_owned(), lines: source.lines.0, ..Module::default() };
    let (mut rest, mut lines) = (String::new(), source.code.lines());
    while let Some(line) = lines.next() {
        module.defines.extend(defined(line).map(|(name, _)| name.to_owned()));
        let Some((head, first)) = line.split_once("use ").filter(|(head, _)| VISIBLE.contains(&head.trim())) else {
            rest += &format!("{line}\n");
            continue;
        };
        let mut taken = first.to_owned();
        while !taken.contains(';') {
            taken += lines.next().expect("the end of a `use`");
        }
        uses("", taken.trim_end().trim_end_matches(';'), &mut |target, name| {
            // One within a function is followed and names nothing for others.
            if !head.starts_with(' ') {
                module.takes.insert(name, target.clone());
            }
            if head.trim().is_empty() {
                module.follows.push(target);
            }
        });
    }
    let written = rest.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
    module.follows.extend(written.map(|word| path_of(word.trim_matches(':'))).filter(|path| path.len() > 1));
    for (child, _) in rest.lines().filter(|line| line.ends_with(';')).filter_map(defined).filter(|(_, module)| *module)
    {
        let inner = [path, &[child.to_owned()]].concat();
        let (flat, nested) = (format!("{folder}/{child}.rs"), format!("{folder}/{child}/mod.rs"));
        let found = if there(&flat) { flat } else { nested };
        // What stands elsewhere (`#[path]`) is of tests.
        if there(&found) {
            add(tree, &inner, &found, &format!("{folder}/{child}"));
        }
    }
    tree.insert(path.to_vec(), module);
}

/// The module that defines what `written` names in module `here`; none where it is of a crate that is not in the tree. Names that lead
/// to names are followed so many times.
fn resolve(tree: &Tree, here: &[String], written: &[String], times: usize) -> Option<Vec<String>> {
    let mut at = here.to_vec();
    for (number, name) in written.iter().enumerate() {
        let (module, child) = (&tree[&at], [&at[..], std::slice::from_ref(name)].concat());
        let is_first = number == 0;
        at = match name.as_str() {
            "crate" => at[..1].to_vec(),
            "self" => at,
            "super" => at[..at.len() - 1].to_vec(),
            _ if is_first && tree.contains_key(&written[..1]) => written[..1].to_vec(),
            _ if tree.contains_key(&child) => child,
            _ if module.defines.contains(name) => return Some(at),
            _ => {
                let again = |target: &[String]| resolve(tree, &at, target, times.checked_sub(1)?);
                if let Some(target) = module.takes.get(name).filter(|target| !is_first || *target != written) {
                    return again(&[target, &written[number + 1..]].concat());
                }
                let globs = module.takes.iter().filter(|(name, _)| !is_first && name.starts_with('*'));
                let mut inside = globs.filter_map(|(_, target)| again(target));
                let defines = |inside: &Vec<String>| tree[inside].defines.contains(name);
                return inside.find(defines).or(Some(at.clone()).filter(|at| !is_first && at.len() > 1));
            }
        };
        if at.is_empty() {
            return None;
        }
    }
    Some(at)
}

fn crates_tree() -> Tree {
    let mut tree = Tree::new();
    for name in CRATES {
        let (before, folder) = (tree.len(), format!("crates/{name}/src"));
        add(&mut tree, &[format!("veilsum_{name}")], &format!("{folder}/lib.rs"), &folder);
        assert!(tree.len() > before + 5, "{name} has only {} modules", tree.len() - before);
    }
    tree
}

/// Modules that these follow a path into, and so on.
fn closure(tree: &Tree, roots: &[&str]) -> BTreeSet<Vec<String>> {
    let roots: Vec<Vec<String>> = roots.iter().map(|root| path_of(root)).collect();
    let below = |module: &&Vec<String>| roots.iter().any(|root| module.starts_with(root));
    let mut open: Vec<Vec<String>> = tree.keys().filter(below).cloned().collect();
    let mut seen = BTreeSet::new();
    while let Some(module) = open.pop() {
        if seen.insert(module.clone()) {
            open.extend(tree[&module].follows.iter().filter_map(|written| resolve(tree, &module, written, 8)));
        }
    }
    seen
}

/// The files of each part, in reading order, with their lines.
fn parts() -> Vec<Vec<(String, usize)>> {
    let (tree, mut seen) = (crates_tree(), BTreeSet::new());
    let mut files = |roots| {
        let mut part: Vec<(String, usize)> = Vec::new();
        for Module { file, lines, .. } in closure(&tree, roots).iter().map(|module| &tree[module]) {
            if seen.insert(file.clone()) {
                part.push((file.clone(), *lines));
            }
        }
        let place = |file: &str| CRATES.iter().position(|name| file.starts_with(&format!("crates/{name}/")));
        part.sort_by_key(|(file, _)| (place(file), file.clone()));
        part
    };
    PARTS.map(|(.., roots)| files(roots)).into()
}

fn page() -> String {
    let mut text = String::from(
        "# The audit path\n\n\
         Which files a claim rests on, as the paths in the code say: every module that one of them names is in the list, but for \
         other people's crates. `tests/audit_path.rs` makes this page. Behind a file stand its lines, without blanks, comments and \
         tests.\n",
    );
    let (all, mut before) = (parts(), 0);
    for ((title, claim, roots), files) in PARTS.iter().zip(&all) {
        let lines: usize = files.iter().map(|(_, lines)| lines).sum();
        before += lines;
        let from: Vec<String> = roots.iter().map(|root| format!("`{root}`")).collect();
        let _ = write!(
            text,
            "\n## {title}\n\n{claim} It begins at {}. About {lines} lines in {} files; with the parts before it {before}.\n",
            from.join(", "),
            files.len()
        );
        let mut folder = "";
        for (file, lines) in files {
            // A line for each file, so that two changes of the page merge.
            let (of, rest) = file.split_at(file.find("/src/").expect("a source of a crate") + "/src/".len());
            if folder != of {
                let _ = write!(text, "\nIn `{of}`:\n");
            }
            folder = of;
            let _ = writeln!(text, "`{rest}` {lines},");
        }
    }
    text += "\n## Other people's crates\n\n\
         Both name these. They are not read here, and are taken at their word; [Contributing](../../CONTRIBUTING.md#dependencies) says \
         what each is for.\n\n";
    let named = ["veilsum-proto", "veilsum-door", "veilsum-contributions"];
    let direct = named.into_iter().flat_map(|package| tree(package, "normal", &["--depth", "1"]));
    let others: BTreeSet<String> = direct.filter(|line| !line.starts_with("veilsum")).collect();
    for (name, version) in others.iter().filter_map(|line| line.split_once(" v")) {
        let _ = writeln!(text, "`{name}` {},", version.split(' ').next().unwrap_or_default());
    }
    // The last of a list has none.
    text.replace(",\n\n", "\n\n").trim_end_matches(",\n").to_owned() + "\n"
}

/// A page's folders, and its files with their lines.
fn rows(text: &str) -> Vec<(&str, usize)> {
    let lines = text.lines().filter(|line| line.starts_with('`') || line.starts_with("In `"));
    let counted = |line| {
        let (file, lines): (&str, &str) = str::rsplit_once(line, ' ')?;
        Some((file, lines.trim_end_matches(',').parse().ok()?))
    };
    lines.map(|line| counted(line).unwrap_or((line, 0))).collect()
}

const PAGE: &str = "docs/src/audit-path.md";

/// Lines and files that an auditor reads at most: of the masks and the door together, and of the door.
const MOST: [(usize, usize); 2] = [(6_800, 55), (2_200, 20)];

#[test]
fn the_door_is_read_in_a_day_and_masks_in_another() {
    let parts = parts();
    for (read, most) in [parts.concat(), parts[1].clone()].iter().zip(MOST) {
        let (lines, files) = (read.iter().map(|(_, lines)| lines).sum::<usize>(), read.len());
        assert!(lines <= most.0 && files <= most.1, "{lines} lines in {files} files");
    }
}

#[test]
fn the_page_lists_what_the_claims_rest_on() {
    let (page_there, page_now) = (read(PAGE), page());
    let (shown, now) = (rows(&page_there), rows(&page_now));
    let names = |rows: &[(&str, usize)]| rows.iter().map(|(file, _)| (*file).to_owned()).collect::<Vec<_>>();
    let write = "`cargo test --test documents write_the_audit_path -- --ignored` writes the page";
    assert_eq!(names(&shown), names(&now), "{write}");
    for ((file, shown), (_, now)) in shown.iter().zip(&now) {
        assert!(shown.abs_diff(*now) <= SLACK.max(now / 10), "{file} has {now} lines, the page says {shown}; {write}");
    }
    // A site's machine names neither rows nor statistics nor a network.
    assert!(parts()[0].iter().all(|(file, _)| file.starts_with("crates/proto/src/")));
}

/// Not a test: it writes the page that the test above compares.
#[test]
#[ignore = "writes docs/src/audit-path.md"]
fn write_the_audit_path() {
    fs::write(Path::new(ROOT).join(PAGE), page()).expect("the page can be written");
}
