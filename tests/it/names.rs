//! One name means one thing: no two types of the shipped code have the same name.

use fixtures::files::files;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The words before the name of a type.
const KEYWORDS: [&str; 5] = ["struct", "enum", "trait", "union", "type"];

#[test]
fn no_two_types_have_the_same_name() {
    let mut places = BTreeMap::<String, Vec<String>>::new();
    for (path, text) in shipped() {
        for (number, line) in text.lines().enumerate() {
            if let Some(name) = defined(line) {
                places.entry(name.to_owned()).or_default().push(format!("{path}:{}", number + 1));
            }
        }
    }
    assert!(places.len() > 500, "only {} types were found", places.len());
    places.retain(|_, places| places.len() > 1);
    assert!(places.is_empty(), "{places:#?}");
}

/// Returns the files of the program and of the crates, each up to its test module, by path.
pub(crate) fn shipped() -> Vec<(String, String)> {
    let crates = files("crates", "rs").into_iter().filter(|(path, _)| path.split('/').nth(1) == Some("src"));
    let crates = crates.map(|(path, text)| (format!("crates/{path}"), text));
    let program = files("src", "rs").into_iter().map(|(path, text)| (format!("src/{path}"), text));
    let mut all: Vec<_> = crates.chain(program).collect();
    let mut of_tests = BTreeSet::new();
    for (path, text) in &mut all {
        while let Some((before, module)) = text.split_once("\n#[cfg(test)]\nmod ") {
            let Some((name, after)) = module.split_once(';').filter(|(name, _)| !name.contains('{')) else {
                *text = before.to_owned();
                break;
            };
            of_tests.insert(Path::new(path.as_str()).with_extension("").join(name));
            *text = format!("{before}\n{after}");
        }
    }
    let is_of_tests = |path: &str| of_tests.iter().any(|module| Path::new(path).with_extension("").starts_with(module));
    all.retain(|(path, _)| !is_of_tests(path));
    all
}

/// Returns the name of the type that a line defines. An indented `type` is one of a trait.
fn defined(line: &str) -> Option<&str> {
    let (keyword, rest) = without_visibility(line.trim_start())?.split_once(' ')?;
    if !KEYWORDS.contains(&keyword) || (keyword == "type" && line.starts_with(' ')) {
        return None;
    }
    let end = rest.find(|it: char| !it.is_alphanumeric() && it != '_').unwrap_or(rest.len());
    rest.get(..end).filter(|name| name.starts_with(|it: char| it.is_uppercase()))
}

/// Returns an item without `pub`.
pub(crate) fn without_visibility(item: &str) -> Option<&str> {
    match item.strip_prefix("pub(") {
        Some(rest) => Some(rest.split_once(") ")?.1),
        None => Some(item.strip_prefix("pub ").unwrap_or(item)),
    }
}
