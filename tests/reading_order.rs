//! Inside a crate, too, the arrows go one way: the list at the head of each crate's root says in which order its modules are
//! read, and no module names one that comes later in it. Files do not name each other in circles.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Source, read, there};

/// The roots of the crates whose modules are read in the order of a list.
const ORDERED: [&str; 6] = [
    "crates/charts/src/lib.rs",
    "crates/proto/src/lib.rs",
    "crates/door/src/lib.rs",
    "crates/cluster/src/lib.rs",
    "crates/federation/src/lib.rs",
    "crates/node/src/lib.rs",
];

/// The roots of the crates that are a set of commands, attacks or experiments, each for itself.
const SETS: [&str; 3] = ["crates/cli/lib.rs", "crates/lab/src/lib.rs", "crates/audit/src/lib.rs"];

/// The file of a module: what it defines, what it takes from elsewhere under which name. A module within it is a part of it.
#[derive(Default)]
pub(crate) struct Module {
    pub(crate) file: String,
    pub(crate) lines: usize,
    defines: BTreeSet<String>,
    pub(crate) takes: BTreeMap<String, Vec<String>>,
    /// Paths that the code follows, each as it is written; what is only handed on (`pub use`) is not among them.
    pub(crate) follows: Vec<Vec<String>>,
}

/// Modules by their paths, which begin with the crate's name.
pub(crate) type Tree = BTreeMap<Vec<String>, Module>;

/// What may stand before a `use`.
const VISIBLE: [&str; 4] = ["", "pub", "pub(crate)", "pub(super)"];

pub(crate) fn parts(path: &str) -> Vec<String> {
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
    let mut path = parts(&format!("{before}{path}"));
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
fn add(tree: &mut Tree, path: &[String], file: &str, folder: &str, read: &dyn Fn(&str) -> Option<String>) {
    let source = Source::of(&read(file).unwrap_or_else(|| panic!("no {file}")));
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
    module.follows.extend(written.map(|word| parts(word.trim_matches(':'))).filter(|path| path.len() > 1));
    for (child, _) in rest.lines().filter(|line| line.ends_with(';')).filter_map(defined).filter(|(_, module)| *module)
    {
        let inner = [path, &[child.to_owned()]].concat();
        let (flat, nested) = (format!("{folder}/{child}.rs"), format!("{folder}/{child}/mod.rs"));
        let found = if read(&flat).is_some() { flat } else { nested };
        // What stands elsewhere (`#[path]`) is of tests.
        if read(&found).is_some() {
            add(tree, &inner, &found, &format!("{folder}/{child}"), read);
        }
    }
    tree.insert(path.to_vec(), module);
}

/// The module that defines what `written` names in module `here`; none where it is of a crate that is not in the tree.
pub(crate) fn resolve(tree: &Tree, here: &[String], written: &[String], depth: usize) -> Option<Vec<String>> {
    if depth > 8 {
        return None;
    }
    let (mut at, mut rest) = match written[0].as_str() {
        "crate" => (here[..1].to_vec(), &written[1..]),
        "self" => (here.to_vec(), &written[1..]),
        "super" => (here[..here.len().checked_sub(1).filter(|at| *at > 0)?].to_vec(), &written[1..]),
        first if tree.contains_key(&written[..1]) => (vec![first.to_owned()], &written[1..]),
        first => {
            let child = [here, &[first.to_owned()]].concat();
            let module = &tree[here];
            if tree.contains_key(&child) || module.defines.contains(first) {
                (here.to_vec(), written)
            } else {
                let target = module.takes.get(first).filter(|target| *target != written)?;
                return resolve(tree, here, &[target, &written[1..]].concat(), depth + 1);
            }
        }
    };
    while let [first, more @ ..] = rest {
        if first == "super" {
            at.pop();
            rest = more;
            continue;
        }
        let child = [&at[..], std::slice::from_ref(first)].concat();
        if tree.contains_key(&child) {
            (at, rest) = (child, more);
            continue;
        }
        let module = &tree[&at];
        if module.defines.contains(first) {
            return Some(at);
        }
        if let Some(target) = module.takes.get(first) {
            return resolve(tree, &at, &[target, more].concat(), depth + 1);
        }
        let mut globs = module.takes.iter().filter(|(name, _)| name.starts_with('*'));
        let inside = globs.find_map(|(_, target)| {
            resolve(tree, &at, target, depth + 1).filter(|inside| tree[inside].defines.contains(first))
        });
        return inside.or(Some(at).filter(|at| at.len() > 1));
    }
    Some(at)
}

pub(crate) fn crates_tree(roots: &[&str]) -> Tree {
    let mut tree = Tree::new();
    for root in roots {
        let (before, folder) = (tree.len(), root.rsplit_once('/').expect("a folder").0);
        let name = format!("veilsum_{}", folder.split('/').nth(1).expect("a crate"));
        add(&mut tree, &[name], root, folder, &|path| there(path).then(|| read(path)));
        assert!(tree.len() > before + 5, "{root} has only {} modules", tree.len() - before);
    }
    tree
}

/// Arrows between modules: who follows a path into whom.
fn arrows(tree: &Tree) -> BTreeSet<(&Vec<String>, Vec<String>)> {
    let each = tree.iter().flat_map(|(here, module)| module.follows.iter().map(move |written| (here, written)));
    each.filter_map(|(here, written)| Some((here, resolve(tree, here, written, 0)?))).filter(|(a, b)| *a != b).collect()
}

/// The names of modules in the numbered list at a file's head, in its order.
fn order(root: &str, tree: &Tree) -> Vec<String> {
    let (text, names) = (read(root), tree.keys().filter_map(|path| path.get(1)).collect::<BTreeSet<_>>());
    let mut listed: Vec<String> = Vec::new();
    let mut inside = false;
    for line in text.lines().map_while(|line| line.strip_prefix("//!")) {
        let numbered = line.trim_start().split_once(". ").is_some_and(|(n, _)| n.parse::<u8>().is_ok());
        inside = numbered || (inside && line.starts_with("  ") && !line.trim().is_empty());
        let marked = line.split('`').skip(1).step_by(2).filter(|_| inside);
        let known = marked.map(str::to_owned).filter(|name| names.contains(name));
        listed.extend(known.filter(|name| !listed.contains(name)).collect::<Vec<_>>());
    }
    listed
}

#[test]
fn no_module_names_one_that_is_read_later() {
    let mut wrong = Vec::new();
    for root in ORDERED {
        let tree = crates_tree(&[root]);
        let order = order(root, &tree);
        let place = |path: &[String]| order.iter().position(|module| Some(module) == path.get(1));
        let lacking = tree.keys().filter(|path| path.len() == 2 && place(path).is_none());
        wrong.extend(lacking.map(|path| format!("{root}: the list at its head lacks {}", path[1])));
        let up = arrows(&tree).into_iter().filter(|(from, to)| place(from).is_some() && place(from) < place(to));
        wrong.extend(up.map(|(from, to)| format!("{root}: {} -> {}", from.join("::"), to.join("::"))));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_do_not_name_each_other_in_circles() {
    for root in ORDERED.into_iter().chain(SETS) {
        let tree = crates_tree(&[root]);
        let mut left = arrows(&tree);
        assert!(left.len() > 5, "{root} has only {} arrows", left.len());
        // The root of a set hands over to each of them.
        left.retain(|(from, _)| from.len() > 1 || ORDERED.contains(&root));
        // A module from which no arrow leads on is in no circle, and neither is an arrow to it.
        loop {
            let starts: BTreeSet<Vec<String>> = left.iter().map(|(from, _)| (*from).clone()).collect();
            let before = left.len();
            left.retain(|(_, to)| starts.contains(to));
            if left.len() == before {
                break;
            }
        }
        assert!(left.is_empty(), "{root}: in circles, or on the way to one:\n{left:?}");
    }
}

/// The reader sees a planted arrow back up and a planted circle.
#[test]
fn the_reader_of_arrows_sees_what_is_planted() {
    let planted = |path: &str| {
        let text = match path {
            "./lib.rs" => "mod a;\nmod b;\npub use b::{Late, c::{self, D as E}, F};\n#[cfg(test)]\nmod tests;",
            "./a.rs" => "use crate::Late;\npub fn f(x: Late) -> u8 { super::b::g() }\npub struct Early;",
            "./b.rs" => "pub struct Late;\npub fn g() -> u8 { 1 }\nfn h() -> crate::a::Early { loop {} }",
            _ => return None,
        };
        Some(text.to_owned())
    };
    let mut tree = Tree::new();
    add(&mut tree, &["x".to_owned()], "./lib.rs", ".", &planted);
    let found: Vec<String> = arrows(&tree).iter().map(|(a, b)| format!("{}->{}", a.join("::"), b.join("::"))).collect();
    assert_eq!(found, ["x::a->x::b", "x::b->x::a"]);
    let names: Vec<&str> = tree[&["x".to_owned()][..]].takes.keys().map(String::as_str).collect();
    assert_eq!(names, ["E", "F", "Late", "c"]);
}
