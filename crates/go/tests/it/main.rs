//! Tests of the public API, with sources and schemas as text.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failing test panics"
)]

mod broken;
mod markers;
mod parsing;
mod property;
mod unused;

use fixtures::files::parse;
use kube_unions_core::declaration::Definition;
use kube_unions_go::{Derivation, GoFile, GoParser, KindVersion, Packages};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A kind with one union in `spec`: the discriminator `firing` and the members `glaze` and `bisque`.
const GO: &str = include_str!("../../../../tests/cases/go/kiln/kiln.go");
const CRD: &str = include_str!("../../../../tests/cases/go/kiln/crd.yaml");

#[track_caller]
fn parsed(path: &str, text: &str) -> GoFile {
    let mut parser = GoParser::new().unwrap();
    parser.parse(&Path::new(path).into(), text.as_bytes()).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the packages of the module `example.com/kilns` with these files.
#[track_caller]
fn packages(files: &[(&str, &str)]) -> Packages {
    let mut folders: BTreeMap<PathBuf, Vec<GoFile>> = BTreeMap::new();
    for (path, text) in files {
        folders.entry(Path::new(path).parent().unwrap().to_owned()).or_default().push(parsed(path, text));
    }
    let mut packages = Packages::default();
    for (folder, files) in folders {
        let import_path = format!("example.com/kilns/{}", folder.display());
        packages.add(&folder, Some(&import_path), files);
    }
    packages
}

/// Derives the unions of the only version of a CRD.
fn derive(packages: &Packages, crd: &str) -> Derivation {
    let json = parse::<Value>("crd.yaml", crd);
    let mut definition = Definition::from_json(&json.to_string()).unwrap();
    let [version] = <[_; 1]>::try_from(definition.take_versions()).expect("one version");
    let name = version.name.clone();
    let kind = KindVersion { group: definition.group(), kind: definition.kind(), version: &name, versions: &[&name] };
    packages.unions(kind, version, &json["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
}

/// Returns a text with one part replaced.
#[track_caller]
fn with(text: &str, before: &str, after: &str) -> String {
    assert!(text.contains(before), "no `{before}` in {text}");
    text.replacen(before, after, 1)
}
