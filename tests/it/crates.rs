//! The crates of the workspace: the diagram in CONTRIBUTING.md shows them as they are, one crate has the door to the API server, and no file
//! is too long.

use crate::names::shipped;
use fixtures::files::{assert_generated_between, files, root};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The lines of CONTRIBUTING.md around the diagram.
const LINES: (&str, &str) = ("<!-- crates: made by make crates -->\n", "<!-- end of crates -->\n");

/// The most lines that a file may have without its tests.
const LONGEST: usize = 500;

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
pub(crate) struct Package {
    name: String,
    pub(crate) manifest_path: String,
    /// `None`: to any registry.
    publish: Option<Vec<String>>,
    dependencies: Vec<Dependency>,
    pub(crate) targets: Vec<Target>,
}

#[derive(Deserialize)]
pub(crate) struct Target {
    kind: Vec<String>,
    pub(crate) src_path: PathBuf,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// `None`: an ordinary one.
    kind: Option<String>,
    path: Option<String>,
}

/// Returns the crates of the workspace.
pub(crate) fn members() -> Vec<Package> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--offline", "--no-deps", "--format-version", "1"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice::<Metadata>(&output.stdout).unwrap().packages
}

/// Returns the crates of the workspace by name, but those of tests.
fn packages() -> BTreeMap<String, Package> {
    let in_tests = root().join("tests");
    let packages = members().into_iter().filter(|it| !Path::new(&it.manifest_path).starts_with(&in_tests));
    packages.map(|package| (package.name.clone(), package)).collect()
}

/// Returns the crates that are published, by name.
fn published() -> BTreeMap<String, Package> {
    packages().into_iter().filter(|(_, package)| package.publish.is_none()).collect()
}

impl Package {
    /// Returns the crates of the workspace that this one depends on.
    fn uses<'a>(&'a self, all: &'a BTreeMap<String, Package>) -> BTreeSet<&'a str> {
        let ordinary = self.dependencies.iter().filter(|it| it.kind.is_none() && it.path.is_some());
        ordinary.map(|it| it.name.as_str()).filter(|name| all.contains_key(*name)).collect()
    }
}

/// Returns the diagram as Markdown: an arrow leads from a crate to a crate that it depends on.
fn diagram() -> String {
    let all = packages();
    let mut text = String::from("```mermaid\nflowchart TD\n");
    for (name, package) in &all {
        for used in package.uses(&all) {
            text.extend(["  ", name, " --> ", used, "\n"]);
        }
    }
    text += "```\n";
    text
}

#[test]
fn the_diagram_shows_the_crates_as_they_are() {
    assert_generated_between("CONTRIBUTING.md", LINES, &format!("\n{}\n", diagram()), "make crates");
}

#[test]
fn the_guide_says_for_whom_each_crate_is() {
    const PAGE: &str = "docs/reference/libraries.md";
    let page = read_to_string(root().join(PAGE)).unwrap();
    for name in published().keys() {
        let row = |line: &str| line.starts_with(&format!("| `{name}`")) || line.starts_with(&format!("| [`{name}`]"));
        assert!(page.lines().any(row), "`{name}` is missing in the table of crates in {PAGE}");
    }
}

#[test]
fn each_crate_has_the_metadata_of_a_registry() {
    for (name, package) in published() {
        let manifest = read_to_string(&package.manifest_path).unwrap();
        for key in ["categories", "description", "keywords", "license", "readme", "repository"] {
            let is_set = |line: &str| line.strip_prefix(key).is_some_and(|rest| rest.starts_with([' ', '.']));
            assert!(manifest.lines().any(is_set), "{name}: `{key}` is missing in {}", package.manifest_path);
        }
        assert!(manifest.contains("version.workspace = true"), "{name}: the version is that of the workspace");
    }
}

/// The Makefile publishes these crates, and a crate that is published depends on no other one.
#[test]
fn the_published_crates_are_those_of_the_makefile() {
    let makefile = read_to_string(root().join("Makefile")).unwrap();
    let listed = makefile.lines().find_map(|line| line.strip_prefix("PACKAGES := ")).unwrap();
    let listed: BTreeSet<&str> = listed.split(' ').collect();
    let (all, published) = (packages(), published());
    assert_eq!(published.keys().map(String::as_str).collect::<BTreeSet<_>>(), listed);
    for (name, package) in &published {
        let unpublished: Vec<_> = package.uses(&all).into_iter().filter(|used| !listed.contains(used)).collect();
        assert!(unpublished.is_empty(), "{name} is published and needs {unpublished:?}, which are not");
    }
}

/// The deadlines and bounds of answers are behind this door.
#[test]
fn requests_to_the_api_server_are_sent_through_one_door() {
    let words = ["Request::builder", "Request::get", ".request_text(", ".request::<", "client.send("];
    let sends = |text: &str| words.iter().any(|word| text.contains(word));
    let senders: Vec<_> = shipped().into_iter().filter(|(_, text)| sends(text)).map(|(path, _)| path).collect();
    assert_eq!(senders, ["crates/api/src/request.rs"], "send requests by `kube-unions-api`");
}

#[test]
fn each_dependency_is_named_by_the_code_that_has_it() {
    let mut unnamed = Vec::new();
    for (name, package) in packages() {
        let text = |ordinary: bool| {
            let is_ordinary = |target: &&Target| target.kind.iter().any(|kind| kind == "bin" || kind.ends_with("lib"));
            let targets = package.targets.iter().filter(|target| !ordinary || is_ordinary(target));
            targets.map(|target| code_beside(&target.src_path)).collect::<String>()
        };
        let (ordinary, all) = (text(true), text(false));
        for dependency in package.dependencies.iter().filter(|it| it.kind.as_deref() != Some("build")) {
            let named = dependency.name.replace('-', "_");
            let named = if named == "kube_unions_fixtures" { "fixtures".to_owned() } else { named };
            let code = if dependency.kind.is_none() { &ordinary } else { &all };
            let is_named = code.match_indices(&named).any(|(at, _)| {
                let (before, after) = (&code[..at], &code[at + named.len()..]);
                let is_word = |it: Option<char>| it.is_some_and(|it| it.is_alphanumeric() || it == '_');
                !is_word(before.chars().next_back()) && !is_word(after.chars().next())
            });
            if !is_named {
                unnamed.push(format!(
                    "{name}: no source names {}: remove it from {}",
                    dependency.name, package.manifest_path
                ));
            }
        }
    }
    assert!(unnamed.is_empty(), "\n{}", unnamed.join("\n"));
}

/// Returns the lines of code in the folder of a target's first file and below it.
fn code_beside(first: &Path) -> String {
    let (mut text, mut folders) = (String::new(), vec![first.parent().unwrap().to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let mut code = read_to_string(&path).unwrap();
                let elsewhere = code.lines().filter_map(|line| line.strip_prefix("#[path = \"")?.strip_suffix("\"]"));
                let elsewhere: Vec<_> = elsewhere.map(|file| path.with_file_name(file)).collect();
                code.extend(elsewhere.into_iter().map(|file| read_to_string(file).unwrap()));
                let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
                text.extend(lines.flat_map(|line| [line, "\n"]));
            }
        }
    }
    text
}

#[test]
fn no_source_file_is_too_long() {
    let sources = ["src", "crates"]
        .into_iter()
        .flat_map(|folder| files(folder, "rs").into_iter().map(move |(path, text)| (format!("{folder}/{path}"), text)));
    let long: Vec<_> = sources
        .filter(|(path, _)| !path.contains("/tests/") && !path.contains("/benches/"))
        .map(|(path, text)| (path, without_tests(&text).lines().count()))
        .filter(|(_, lines)| *lines > LONGEST)
        .map(|(path, lines)| format!("{path}: {lines} lines; split it by meaning"))
        .collect();
    assert!(long.is_empty(), "\n{}", long.join("\n"));
}

/// Returns the text before the tests of a file, which stand at its end.
fn without_tests(text: &str) -> &str {
    text.find("#[cfg(test)]\nmod tests {").map_or(text, |end| &text[..end])
}
