//! Inside a crate, too, the arrows go one way: the list at the head of each crate's root says in which order its modules are
//! read, and no module names one that comes later in it. Files do not name each other in circles.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use syn::visit::Visit;

pub(crate) const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The roots of the crates whose modules are read in the order of a list.
const ORDERED: [&str; 5] = [
    "crates/charts/src/lib.rs",
    "crates/proto/src/lib.rs",
    "crates/cluster/src/lib.rs",
    "crates/federation/src/lib.rs",
    "crates/node/src/lib.rs",
];

/// The roots of the crates that are a set of commands, attacks or experiments, each for itself.
const SETS: [&str; 3] = ["crates/cli/lib.rs", "crates/lab/src/lib.rs", "crates/audit/src/lib.rs"];

/// Circles of files that stay, each with its reason. There may be two at most.
const CIRCLES: &[(&[&str], &str)] = &[];

/// One module: its file, what it defines, what it takes from elsewhere under which name.
#[derive(Default)]
pub(crate) struct Module {
    pub(crate) file: PathBuf,
    defines: BTreeSet<String>,
    pub(crate) takes: BTreeMap<String, Vec<String>>,
    /// Paths that the code follows, each as it is written; what is only handed on (`pub use`) is not among them.
    pub(crate) follows: Vec<Vec<String>>,
}

pub(crate) type Tree = BTreeMap<Vec<String>, Module>;

fn only_in_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().filter(|a| a.path().is_ident("cfg") || a.path().is_ident("test")).any(|a| {
        let syn::Meta::List(list) = &a.meta else { return true };
        list.tokens.to_string().split(|c: char| !c.is_alphanumeric()).any(|w| w == "test")
    })
}

struct Paths<'a>(&'a mut Vec<Vec<String>>);

impl<'a, 'ast> Visit<'ast> for Paths<'a> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            self.0.push(path.segments.iter().map(|s| s.ident.to_string()).collect());
        }
        syn::visit::visit_path(self, path);
    }
    fn visit_item_mod(&mut self, _: &'ast syn::ItemMod) {}
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        // A `use` inside a function.
        uses(&item.tree, &mut Vec::new(), &mut |path, _| self.0.push(path.to_vec()));
    }
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !only_in_tests(&item.attrs) {
            syn::visit::visit_item_fn(self, item);
        }
    }
}

/// Every path of a `use` with the name that it gets here.
fn uses(tree: &syn::UseTree, before: &mut Vec<String>, each: &mut dyn FnMut(&[String], String)) {
    match tree {
        syn::UseTree::Path(path) => {
            before.push(path.ident.to_string());
            uses(&path.tree, before, each);
            before.pop();
        }
        syn::UseTree::Name(name) if name.ident == "self" => each(before, before.last().cloned().unwrap_or_default()),
        syn::UseTree::Name(name) => {
            before.push(name.ident.to_string());
            each(before, name.ident.to_string());
            before.pop();
        }
        syn::UseTree::Rename(name) => {
            before.push(name.ident.to_string());
            each(before, name.rename.to_string());
            before.pop();
        }
        syn::UseTree::Glob(_) => each(before, format!("*{}", before.join("::"))),
        syn::UseTree::Group(group) => group.items.iter().for_each(|item| uses(item, before, each)),
    }
}

fn name_of(item: &syn::Item) -> Option<(&[syn::Attribute], String)> {
    Some(match item {
        syn::Item::Const(i) => (&i.attrs, i.ident.to_string()),
        syn::Item::Enum(i) => (&i.attrs, i.ident.to_string()),
        syn::Item::Fn(i) => (&i.attrs, i.sig.ident.to_string()),
        syn::Item::Static(i) => (&i.attrs, i.ident.to_string()),
        syn::Item::Struct(i) => (&i.attrs, i.ident.to_string()),
        syn::Item::Trait(i) => (&i.attrs, i.ident.to_string()),
        syn::Item::Type(i) => (&i.attrs, i.ident.to_string()),
        syn::Item::Macro(i) => (&i.attrs, i.ident.as_ref()?.to_string()),
        _ => return None,
    })
}

/// Reads a file as the module `path`; `folder` is where its children are.
fn read(tree: &mut Tree, path: &[String], file: &Path, folder: &Path) {
    let text = std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let parsed = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    items(tree, path, file, folder, &parsed.items);
}

fn items(tree: &mut Tree, path: &[String], file: &Path, folder: &Path, all: &[syn::Item]) {
    let mut module = Module { file: file.to_owned(), ..Module::default() };
    for item in all {
        match item {
            syn::Item::Mod(child) => {
                let hidden = child.attrs.iter().any(|a| a.path().is_ident("path") || a.path().is_ident("cfg_attr"));
                if only_in_tests(&child.attrs) || hidden {
                    continue;
                }
                let name = child.ident.to_string();
                let inner = [path, std::slice::from_ref(&name)].concat();
                match &child.content {
                    Some((_, inside)) => items(tree, &inner, file, &folder.join(&name), inside),
                    None => {
                        let flat = folder.join(format!("{name}.rs"));
                        let nested = folder.join(&name).join("mod.rs");
                        let found = if flat.is_file() { flat } else { nested };
                        read(tree, &inner, &found, &folder.join(&name));
                    }
                }
            }
            syn::Item::Use(item) if !only_in_tests(&item.attrs) => {
                let handed_on = !matches!(item.vis, syn::Visibility::Inherited);
                uses(&item.tree, &mut Vec::new(), &mut |target, name| {
                    module.takes.insert(name, target.to_vec());
                    if !handed_on {
                        module.follows.push(target.to_vec());
                    }
                });
            }
            _ => {
                let named = name_of(item);
                let attributes = match (&named, item) {
                    (Some((attributes, _)), _) => attributes,
                    (None, syn::Item::Impl(i)) => &i.attrs[..],
                    _ => &[],
                };
                if only_in_tests(attributes) {
                    continue;
                }
                if let Some((_, name)) = named {
                    module.defines.insert(name);
                }
                Paths(&mut module.follows).visit_item(item);
            }
        }
    }
    tree.insert(path.to_vec(), module);
}

/// The module that defines what `written` names in module `here`; none where it is of another crate.
pub(crate) fn resolve(tree: &Tree, here: &[String], written: &[String], depth: usize) -> Option<Vec<String>> {
    if depth > 8 {
        return None;
    }
    let (mut at, mut rest) = match written[0].as_str() {
        "crate" => (Vec::new(), &written[1..]),
        "self" => (here.to_vec(), &written[1..]),
        "super" => (here[..here.len().checked_sub(1)?].to_vec(), &written[1..]),
        first => {
            let child = [here, &[first.to_owned()]].concat();
            let module = &tree[here];
            if tree.contains_key(&child) || module.defines.contains(first) {
                (here.to_vec(), written)
            } else {
                let target = module.takes.get(first)?;
                if target == written {
                    return None;
                }
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
        let globs = module.takes.iter().filter(|(name, _)| name.starts_with('*'));
        for (_, target) in globs {
            let Some(inside) = resolve(tree, &at, target, depth + 1) else { continue };
            if tree[&inside].defines.contains(first) {
                return Some(inside);
            }
        }
        return Some(at);
    }
    Some(at)
}

pub(crate) fn crate_tree(root: &str) -> Tree {
    let file = Path::new(ROOT).join(root);
    let mut tree = Tree::new();
    read(&mut tree, &[], &file, file.parent().expect("a folder"));
    assert!(tree.len() > 5, "{root} has only {} modules", tree.len());
    tree
}

/// Arrows between modules: who follows a path into whom, and its last word.
fn arrows(tree: &Tree) -> Vec<(Vec<String>, Vec<String>, String)> {
    let mut found = Vec::new();
    for (here, module) in tree {
        for written in &module.follows {
            if let Some(target) = resolve(tree, here, written, 0).filter(|target| target != here) {
                found.push((here.clone(), target, written.last().cloned().unwrap_or_default()));
            }
        }
    }
    found
}

/// The names of modules in the numbered list at a file's head, in its order.
fn order(root: &str, tree: &Tree) -> Vec<String> {
    let text = std::fs::read_to_string(Path::new(ROOT).join(root)).expect("a root");
    let head: Vec<&str> = text.lines().take_while(|line| line.starts_with("//!") || line.is_empty()).collect();
    let mut listed: Vec<String> = Vec::new();
    let mut inside = false;
    for line in head {
        let line = line.trim_start_matches("//!");
        let numbered = line.trim_start().split_once(". ").is_some_and(|(n, _)| n.parse::<u8>().is_ok());
        inside = numbered || (inside && line.starts_with("  ") && !line.trim().is_empty());
        if !inside {
            continue;
        }
        for word in line.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '`' || c == '[')) {
            let name = word.trim_matches(|c| c == '[' || c == '`');
            let marked = word.contains('`');
            if marked && tree.contains_key(&vec![name.to_owned()]) && !listed.iter().any(|l| l == name) {
                listed.push(name.to_owned());
            }
        }
    }
    listed
}

#[test]
fn no_module_names_one_that_is_read_later() {
    let mut up = Vec::new();
    for root in ORDERED {
        let tree = crate_tree(root);
        let order = order(root, &tree);
        let declared: BTreeSet<&String> = tree.keys().filter(|path| path.len() == 1).map(|path| &path[0]).collect();
        let missing: Vec<_> = declared.iter().filter(|module| !order.contains(module)).collect();
        up.extend(missing.iter().map(|module| format!("{root}: the list at its head lacks {module}")));
        let place = |path: &[String]| order.iter().position(|m| Some(m) == path.first());
        let found = arrows(&tree);
        assert!(found.len() > 10, "{root} has only {} arrows", found.len());
        for (from, to, word) in found {
            if let (Some(a), Some(b)) = (place(&from), place(&to))
                && b > a
            {
                up.push(format!("{root}: {} -> {}: {word}", from.join("::"), to.join("::")));
            }
        }
    }
    up.sort();
    up.dedup();
    assert!(up.is_empty(), "{} arrows run back up:\n{}", up.len(), up.join("\n"));
}

#[test]
fn files_do_not_name_each_other_in_circles() {
    let mut circles = Vec::new();
    for root in ORDERED.into_iter().chain(SETS) {
        let tree = crate_tree(root);
        let mut next: BTreeMap<&Path, BTreeMap<&Path, BTreeSet<String>>> = BTreeMap::new();
        for (from, to, word) in arrows(&tree) {
            let (from, to) = (tree[&from].file.as_path(), tree[&to].file.as_path());
            if from != to {
                next.entry(from).or_default().entry(to).or_default().insert(word);
            }
        }
        let reach = |start| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![start]);
            while let Some(file) = open.pop() {
                for to in next.get(file).into_iter().flat_map(BTreeMap::keys) {
                    if seen.insert(*to) {
                        open.push(*to);
                    }
                }
            }
            seen
        };
        let reached: BTreeMap<&Path, BTreeSet<&Path>> = next.keys().map(|file| (*file, reach(*file))).collect();
        let mut done = BTreeSet::new();
        for (file, all) in &reached {
            if !all.contains(file) || done.contains(file) {
                continue;
            }
            let circle: Vec<&Path> =
                all.iter().copied().filter(|other| reached.get(other).is_some_and(|r| r.contains(file))).collect();
            done.extend(circle.iter().copied());
            let relative = |p: &Path| p.strip_prefix(ROOT).expect("a path of ours").display().to_string();
            let mut lines: Vec<String> = Vec::new();
            for a in &circle {
                for (b, words) in next[a].iter().filter(|(b, _)| circle.contains(b)) {
                    lines.push(format!("  {} -> {}: {words:?}", relative(a), relative(b)));
                }
            }
            circles.push((circle.iter().map(|p| relative(p)).collect::<Vec<_>>(), lines.join("\n")));
        }
    }
    assert!(CIRCLES.len() <= 2, "two circles at most stay, each with its reason");
    let unexplained: Vec<_> =
        circles.iter().filter(|(files, _)| !CIRCLES.iter().any(|(known, _)| known == files)).map(|(_, t)| t).collect();
    assert!(
        unexplained.is_empty(),
        "{} circles of files:\n{}",
        unexplained.len(),
        unexplained.iter().map(|t| t.as_str()).collect::<Vec<_>>().join("\n\n")
    );
    for (known, _) in CIRCLES {
        assert!(circles.iter().any(|(files, _)| files == known), "{known:?} is no circle any more: strike it");
    }
}

/// The reader sees a planted arrow back up and a planted circle.
#[test]
fn the_reader_of_arrows_sees_what_is_planted() {
    let folder = std::env::temp_dir().join(format!("veilsum-order-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("a file");
    write("lib.rs", "mod a;\nmod b;\npub use b::Late;\n#[cfg(test)] mod tests;");
    write("a.rs", "use crate::Late;\npub fn f(x: Late) -> u8 { super::b::g() }\npub struct Early;");
    write("b.rs", "pub struct Late;\npub fn g() -> u8 { 1 }\nfn h() -> crate::a::Early { loop {} }");
    let mut tree = Tree::new();
    read(&mut tree, &[], &folder.join("lib.rs"), &folder);
    std::fs::remove_dir_all(&folder).expect("the folder");
    let found: BTreeSet<String> =
        arrows(&tree).iter().map(|(a, b, _)| format!("{}->{}", a.join("::"), b.join("::"))).collect();
    assert_eq!(found, BTreeSet::from(["a->b".to_owned(), "b->a".to_owned()]));
}
