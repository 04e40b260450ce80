//! The files of a crate import each other in one direction: no import leads back to the file.
//!
//! An import of `crate::`, `super::`, `self::` or a module of the file counts for the file that defines the name. A re-export does not
//! count.

use crate::names::{shipped, without_visibility};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn no_files_import_each_other_in_a_circle() {
    let sources = shipped();
    let mut files = Files::default();
    for (path, text) in &sources {
        files.add(path, text);
    }
    let mut imports = BTreeMap::<&str, BTreeSet<&str>>::new();
    for (path, text) in &sources {
        let of_uses = statements(text).filter(|(exports, _)| !exports).flat_map(|(_, tree)| names(tree));
        let imported = of_uses.filter_map(|name| files.defining(&files.absolute(&module(path), &name)?));
        imports.insert(path, imported.filter(|imported| imported != path).collect());
    }
    assert!(imports.values().map(BTreeSet::len).sum::<usize>() > 1000, "too few imports are found: {imports:#?}");
    let reached: BTreeMap<_, _> = imports.keys().map(|path| (*path, reached(path, &imports))).collect();
    let leads_back = |path: &&str| reached[*path].contains(*path);
    let circular: BTreeSet<_> = imports.keys().copied().filter(leads_back).collect();
    let circles: Vec<_> = circular.iter().map(|path| (path, imports[path].intersection(&circular))).collect();
    assert!(circles.is_empty(), "files import each other in a circle: {circles:#?}");
}

/// The files of all crates. A module is named by the folder of its crate and its path in it, like `src::follow::list`.
#[derive(Default)]
struct Files<'t> {
    /// By module.
    paths: BTreeMap<String, &'t str>,
    /// The names that modules export: the name in the module, and the name as the module imports it.
    exports: BTreeMap<String, String>,
}

impl<'t> Files<'t> {
    fn add(&mut self, path: &'t str, text: &str) {
        let module = module(path);
        self.paths.insert(module.clone(), path);
        for name in statements(text).filter(|(exports, _)| *exports).flat_map(|(_, tree)| names(tree)) {
            let (name, alias) = name.split_once(" as ").unwrap_or((&name, name.rsplit("::").next().unwrap()));
            self.exports.insert(format!("{module}::{alias}"), name.to_owned());
        }
    }

    /// Returns the name in an import of a module, seen from the folder of its crate. `None`: the name is of another crate.
    fn absolute(&self, module: &str, name: &str) -> Option<String> {
        let (first, rest) = name.split_once("::")?;
        let (crate_, _) = module.split_once("::").unwrap_or((module, ""));
        match first {
            "crate" => Some(format!("{crate_}::{rest}")),
            "self" => Some(format!("{module}::{rest}")),
            "super" => {
                let (mut parent, mut rest) = (module.rsplit_once("::")?.0, rest);
                while let Some(further) = rest.strip_prefix("super::") {
                    (parent, rest) = (parent.rsplit_once("::")?.0, further);
                }
                Some(format!("{parent}::{rest}"))
            }
            _ => self.paths.contains_key(&format!("{module}::{first}")).then(|| format!("{module}::{name}")),
        }
    }

    /// Returns the file that defines a name.
    fn defining(&self, name: &str) -> Option<&'t str> {
        let mut head = name;
        loop {
            if let Some(path) = self.paths.get(head) {
                return Some(path);
            }
            let (module, _) = head.rsplit_once("::")?;
            if let Some(imported) = self.exports.get(head) {
                let target = self.absolute(module, imported)?;
                return self.defining(&format!("{target}{}", &name[head.len()..]));
            }
            head = module;
        }
    }
}

/// Returns the module of a file. The folder of a crate is one segment of it.
fn module(path: &str) -> String {
    let path = path.trim_end_matches(".rs").trim_end_matches("/lib");
    let (crate_, path) = path.split_at(path.find("src").unwrap() + 3);
    format!("{crate_}{}", path.replace('/', "::"))
}

/// Returns what each `use` of a text imports, and true if the text exports it.
fn statements(text: &str) -> impl Iterator<Item = (bool, &str)> {
    text.match_indices('\n').filter_map(|(at, _)| {
        let statement = &text[at + 1..];
        let private = without_visibility(statement)?;
        let (tree, _) = private.strip_prefix("use ")?.split_once(';')?;
        Some((private.len() < statement.len(), tree))
    })
}

/// Returns the names in a tree of imports.
fn names(tree: &str) -> Vec<String> {
    let Some((prefix, rest)) = tree.split_once('{') else { return vec![tree.trim().to_owned()] };
    let (mut depth, mut start, mut all) = (0, 0, Vec::new());
    for (at, character) in rest.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                all.extend(names(&rest[start..at]).iter().map(|name| format!("{}{name}", prefix.trim())));
                start = at + 1;
            }
            _ => {}
        }
    }
    all
}

/// Returns the files that a file imports, directly or not.
fn reached<'t>(path: &'t str, imports: &BTreeMap<&'t str, BTreeSet<&'t str>>) -> BTreeSet<&'t str> {
    let (mut seen, mut next) = (BTreeSet::new(), vec![path]);
    while let Some(file) = next.pop() {
        next.extend(imports[file].iter().copied().filter(|it| seen.insert(*it)));
    }
    seen
}
