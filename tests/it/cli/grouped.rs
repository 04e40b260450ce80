//! Every command on groups: several fields of a value, fields that values share, and a boolean discriminator.

use super::{Folder, yaml};
use fixtures::crds::{crd, custom_resource, version};
use fixtures::files::{files, parse};
use fixtures::reviews::declaration;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const GROUP: &str = "groups.example.com";

/// A file of `tests/cases/groups`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GroupSuite {
    schema: Value,
    #[serde(default)]
    status_subresource: bool,
    declarations: BTreeMap<String, Value>,
    rows: Vec<GroupRow>,
}

/// A write, and its result: refused for `want_causes`, or stored as `want`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GroupRow {
    description: String,
    subresource: Option<String>,
    old: Option<Value>,
    new: Value,
    want: Option<Value>,
    #[serde(default)]
    want_causes: Vec<String>,
    #[serde(default)]
    want_warnings: Vec<String>,
}

impl GroupSuite {
    /// Returns every file with its name.
    fn all() -> Vec<(String, Self)> {
        let found = files("tests/cases/groups", "yaml").into_iter();
        found.map(|(path, text)| (path.clone(), parse(&path, &text))).collect()
    }

    fn of(name: &str) -> Self {
        Self::all().into_iter().find(|(found, _)| found == name).unwrap().1
    }

    /// Returns a folder with the CRD and the declarations in `kinds`.
    fn folder(&self) -> Folder {
        let folder = Folder::new(&[]);
        let mut version = version("v1", &self.schema);
        if self.status_subresource {
            version["subresources"] = json!({"status": {}});
        }
        folder.write("kinds/crd.json", crd(GROUP, "Job", &[version]).to_string());
        for (name, spec) in &self.declarations {
            folder.write(&format!("kinds/{name}.json"), declaration(name, GROUP, "Job", spec).to_string());
        }
        folder
    }
}

impl GroupRow {
    /// Returns the row as a test of a suite.
    fn test(&self) -> Value {
        let cause = |text: &String| {
            let (field, rest) = text.split_once(": ").unwrap();
            json!({"field": field, "message": rest.split_once(": ").unwrap().1})
        };
        let causes: Vec<Value> = self.want_causes.iter().map(cause).collect();
        let want = match &self.want {
            _ if !causes.is_empty() => json!({"rejected": {"causes": causes}}),
            Some(want) => json!({"normalized": {"object": job("a", want)}}),
            None if self.want_warnings.is_empty() => json!({"accepted": {}}),
            None => json!({"accepted": {"warnings": self.want_warnings}}),
        };
        let mut test = json!({"name": self.description, "new": job("a", &self.new), "want": want});
        if let Some(old) = &self.old {
            test["old"] = job("a", old);
        }
        if let Some(subresource) = &self.subresource {
            test["subresource"] = json!(subresource);
        }
        test
    }
}

fn job(name: &str, fields: &Value) -> Value {
    custom_resource(GROUP, "Job", name, fields)
}

#[test]
fn test_plays_every_row() {
    let mut played = 0;
    for (name, suite) in GroupSuite::all() {
        let folder = suite.folder();
        let tests: Vec<Value> = suite.rows.iter().map(GroupRow::test).collect();
        played += tests.len();
        let suite = json!({"apiVersion": "test.kube-unions.dev/v1alpha1", "kind": "Suite", "metadata": {"name": name},
            "from": ["kinds"], "tests": tests});
        folder.write("suite.json", suite.to_string());
        let run = folder.run(&["test", "suite.json"]);
        assert_eq!(run.code, 0, "{name}: {run:#?}");
    }
    assert!(played > 40, "only {played} rows");
}

#[test]
fn normalize_keeps_a_field_that_both_values_select() {
    let folder = GroupSuite::of("map-form.yaml").folder();
    folder.write("old.json", job("a", &json!({"spec": {"type": "S3", "bucket": "b", "region": "r"}})).to_string());
    folder.write("new.json", job("a", &json!({"spec": {"type": "GCS", "bucket": "b", "region": "r"}})).to_string());
    let run = folder.run(&["normalize", "--from", "kinds", "--old", "old.json", "-f", "new.json"]).code(0);
    assert_eq!(run.json(), job("a", &json!({"spec": {"type": "GCS", "bucket": "b"}})));
    run.says(&["spec.region: cleared because `type` changed to \"GCS\""]);
}

#[test]
fn audit_names_each_field_of_a_stored_object_that_its_value_forbids_or_requires() {
    for (suite, fields, want) in [
        (
            "map-form.yaml",
            json!({"spec": {"type": "S3", "region": "r", "project": "p"}}),
            ["spec.bucket", "spec.project"],
        ),
        (
            "list-form.yaml",
            json!({"plain": {"ref": "r", "template": "t", "selector": "s"}}),
            ["plain.selector", "plain.template"],
        ),
        ("boolean.yaml", json!({"spec": {"enabled": true, "reason": "r"}}), ["spec.host", "spec.reason"]),
    ] {
        let folder = GroupSuite::of(suite).folder();
        folder.write("live/bad.json", job("bad", &fields).to_string());
        let report = folder.run(&["audit", "--from", "kinds", "--from", "live", "-o", "json"]).code(1).json();
        let mut found: Vec<&str> =
            report["findings"].as_array().unwrap().iter().map(|it| it["field"].as_str().unwrap()).collect();
        found.sort_unstable();
        assert_eq!(found, want, "{report:#}");
    }
}

#[test]
fn explain_shows_every_field_of_a_value_and_lint_has_nothing_against_them() {
    for (name, lines) in [
        (
            "map-form.yaml",
            &["S3 → bucket, region (optional)", "GCS → bucket, project (optional)", "None → no member"][..],
        ),
        ("list-form.yaml", &["Pod → selector, template", "selector, template", "a, b"]),
        ("boolean.yaml", &["true → host, port (optional)", "\"\" → no member"]),
    ] {
        let folder = GroupSuite::of(name).folder();
        let faults = folder.run(&["lint", "--strict", "kinds"]).code(0).stdout;
        assert!(faults.lines().all(|line| line.contains(": note: ")), "{faults}");
        let text = folder.run(&["explain", "--from", "kinds"]).code(0).stdout;
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for line in lines {
            assert!(text.contains(line), "no `{line}` in {text}");
        }
    }
}

#[test]
fn a_patch_clears_the_group_that_it_replaces() {
    let folder = GroupSuite::of("map-form.yaml").folder();
    folder.write("job.json", job("a", &json!({"spec": {"type": "S3", "bucket": "b", "region": "r"}})).to_string());
    folder.write("patch.json", json!({"spec": {"type": "GCS", "project": "p"}}).to_string());
    let patch = ["patch", "apply", "--schema", "kinds", "--original", "job.json", "--patch-file", "patch.json"];
    let want = json!({"spec": {"type": "GCS", "bucket": "b", "project": "p"}});
    assert_eq!(folder.run(&patch).code(0).json(), job("a", &want));
}

#[test]
fn compile_has_every_form_of_every_file() {
    for (name, suite) in GroupSuite::all() {
        let folder = suite.folder();
        for (form, says) in
            [("policies", "ValidatingAdmissionPolicy"), ("cel", "x-kubernetes-validations"), ("json-schema", "if")]
        {
            let run = folder.run(&["compile", "--to", form, "--action", "deny", "--from", "kinds"]).code(0);
            assert!(run.stdout.contains(says), "{name}, {form}: {run:#?}");
        }
        let policies = folder.run(&["compile", "--to", "policies", "--from", "kinds"]).code(0);
        let kinds =
            policies.stdout.split("---\n").filter(|text| !text.is_empty()).map(|text| yaml(text)["kind"].clone());
        assert!(kinds.filter(|kind| kind == "MutatingAdmissionPolicy").count() > 0, "{name}");
    }
}
