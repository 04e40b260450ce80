//! The rows of `tests/cases/go/markers.yaml`.

use super::{CRD, GO, derive, packages, with};
use fixtures::files::{edited, parse, root};
use kube_unions_go::{GoFinding, MarkedUnion};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A kind whose comments in capitals stand for markers.
const KUBERNETES: &str = include_str!("../../../../tests/cases/go/kiln/kubernetes.go");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Markers {
    #[serde(rename = "texts")]
    _texts: IgnoredAny,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    is: String,
    #[serde(default)]
    go: Vec<(String, String)>,
    #[serde(default)]
    crd: Vec<(String, String)>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    markers: Option<BTreeMap<String, Vec<String>>>,
    #[serde(default)]
    r#enum: Vec<String>,
    unions: Option<Vec<(String, Value)>>,
    #[serde(default)]
    findings: Vec<String>,
}

impl Row {
    fn sources(&self) -> (String, String) {
        let edited = |text, edits: &[(String, String)]| {
            edited(&self.is, text, edits.iter().map(|(before, after)| (before, after)))
        };
        let Some(markers) = &self.markers else { return (edited(GO, &self.go), edited(CRD, &self.crd)) };
        let go = markers.iter().fold(KUBERNETES.to_owned(), |go, (comment, markers)| {
            with(&go, &format!("// {comment}\n"), &format!("// {}\n", markers.join("\n// ")))
        });
        let values =
            if self.r#enum.is_empty() { String::new() } else { format!(", enum: [{}]", self.r#enum.join(", ")) };
        let crd = with(CRD, ", enum: [Cold, Glaze, Bisque]", &values);
        let others = "bisque: {type: string}\n              hot: {type: boolean}\n              raku: {type: array, items: {type: string}}";
        (go, with(&crd, "bisque: {type: object, properties: {degrees: {type: integer}}}", others))
    }

    /// Returns the differences to what the row wants.
    fn play(&self) -> Option<String> {
        let (go, crd) = self.sources();
        let files: Vec<(&str, &str)> = self.files.iter().map(|(path, text)| (&**path, &**text)).collect();
        let packages = packages(&[&[("v1/kiln.go", &*go)], &files[..]].concat());
        let derivation = derive(&packages, &crd);
        let unions: Vec<(String, Value)> =
            derivation.unions.iter().map(|union: &MarkedUnion| (union.place.to_string(), union.value())).collect();
        let plain = json!({"fieldMembers": {"Bisque": {"name": "bisque"}, "Cold": null, "Glaze": {"name": "glaze"}}});
        let wanted = self.unions.clone().unwrap_or_else(|| vec![("spec".to_owned(), plain)]);
        let others = [packages.misplaced_markers(None), packages.unread_types(Some(&[&derivation]))].concat();
        let told = |it: &GoFinding| {
            let line = go.lines().nth(it.position.line - 1).unwrap_or_default().trim();
            format!("{} {}: {} [{}: {line}]", it.severity.name(), it.kind.name(), it.message, it.path)
        };
        let findings: Vec<String> = derivation.findings.iter().chain(&others).map(told).collect();
        let tells = |(found, wanted): (&String, &String)| {
            let (rule, words) = wanted.split_once(": ").unwrap();
            found.starts_with(&format!("{rule}: ")) && found.contains(words)
        };
        let holds =
            unions == wanted && findings.len() == self.findings.len() && findings.iter().zip(&self.findings).all(tells);
        (!holds).then(|| format!("{}:\n{}\n{}", self.is, json!(unions), findings.join("\n")))
    }
}

#[test]
fn every_row_has_its_unions_and_its_findings() {
    let path = "tests/cases/go/markers.yaml";
    let markers: Markers = parse(path, &std::fs::read_to_string(root().join(path)).unwrap());
    assert!(markers.rows.len() > 60, "only {} rows", markers.rows.len());
    let failures: Vec<String> = markers.rows.iter().filter_map(Row::play).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
