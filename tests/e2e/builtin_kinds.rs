//! Built-in kinds without any input about them: the verdict of each command that works offline is that of a real API server.

mod creates;
mod document;
mod schemas;
mod unions;

use std::collections::BTreeMap;

use jsonschema::{Validator, validator_for};
use serde_json::{Value, json};

use crate::builtin::Objects;
use crate::presets::list;
use crate::support::kubectl::Output;
use crate::support::process::Workspace;
use crate::support::version::{Feature, is_served};
use crate::support::webhook::kube_unions;

/// The commands, in the order of [`outputs`].
const COMMANDS: [&str; 5] = ["normalize", "audit", "patch", "test", "review"];

/// The answers of commands about a kind.
struct KindAnswers {
    /// The JSON schema, or why there is none.
    schema: Result<Validator, Output>,
    explained: Output,
}

impl KindAnswers {
    fn of(kind: &str) -> Self {
        let schema = kube_unions(&["compile", "--to", "json-schema", "--kind", kind], "");
        let schema = if schema.succeeded() { Ok(validator_for(&schema.json()).unwrap()) } else { Err(schema) };
        Self { schema, explained: kube_unions(&["explain", kind], "") }
    }
}

#[test]
fn every_command_has_the_verdict_of_the_server_on_built_in_kinds() {
    let Some(objects) = Objects::without_presets() else { return };
    let workspace = Workspace::new("built-in-kinds");
    let (mut refused, mut known, mut faults) = (0, 0, Vec::new());
    let mut told: BTreeMap<String, KindAnswers> = BTreeMap::new();
    let mut rows = list(include_str!("builtin_kinds/rows.yaml"));
    rows.retain(|row| is_served(&row["object"]));
    for row in rows {
        let (object, at) = (&row["object"], row["at"].as_str().unwrap());
        let answer = objects.send("POST", &format!("{at}?dryRun=All"), "application/json", object);
        let is_refused = !answer.is_success();
        let (kind, is_known) = (object["kind"].as_str().unwrap(), row["known"] == true);
        refused += usize::from(is_refused);
        known += usize::from(is_known);
        // A review has the object as the API server completes it.
        let reviewed = if is_refused { object } else { &answer.body };
        for (command, output) in COMMANDS.iter().zip(outputs(&workspace, object, reviewed)) {
            let holds = if is_known {
                output.code == Some(i32::from(is_refused))
            } else {
                // The output names the kind that was not judged.
                let said = format!("{}{}", output.stdout, output.stderr);
                let names = ["no union is known of", "nothing in the built-in kinds describes", "has no union here"];
                said.contains(kind) && names.iter().any(|words| said.contains(words))
            };
            if !holds {
                faults.push(format!("{command} {object}: {output:?}\n{}", answer.body["message"]));
            }
        }
        let KindAnswers { schema, explained } = told.entry(kind.to_owned()).or_insert_with(|| KindAnswers::of(kind));
        let is_right = match schema {
            Ok(schema) => {
                let is_explained = explained.code == Some(0) && explained.stdout.starts_with(kind);
                is_known && is_explained && schema.is_valid(object) != is_refused
            }
            Err(failed) => {
                let says = format!("no kind `{kind}` with unions");
                !is_known && failed.code == Some(2) && failed.stderr.contains(&says) && explained.code == Some(2)
            }
        };
        if !is_right {
            faults.push(format!("compile, explain {object}: {:?}, {explained:?}", schema.as_ref().err()));
        }
    }
    let wanted = if Feature::ResourceClaims.is_served() { (136, 77) } else { (126, 73) };
    assert_eq!((known, refused), wanted, "{faults:#?}");
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

fn outputs(workspace: &Workspace, object: &Value, reviewed: &Value) -> [Output; 5] {
    let write = |name: &str, value: Value| workspace.write(name, &value.to_string()).to_str().unwrap().to_owned();
    let file = write("object.json", object.clone());
    let suite = json!({"apiVersion": "test.kube-unions.dev/v1alpha1", "kind": "Suite",
        "tests": [{"name": "stored", "new": object, "want": {"accepted": {}}}]});
    let suite = write("suite.json", suite);
    let (group, version) = object["apiVersion"].as_str().unwrap().rsplit_once('/').unwrap_or(("", "v1"));
    let version = object["apiVersion"].as_str().unwrap().rsplit_once('/').map_or(version, |(_, version)| version);
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "1", "operation": "CREATE", "object": reviewed, "name": object["metadata"]["name"],
        "kind": {"group": group, "version": version, "kind": object["kind"]}}});
    let review = write("review.json", review);
    [
        kube_unions(&["normalize", "-f", &file], ""),
        kube_unions(&["audit", "-f", &file], ""),
        kube_unions(&["patch", "apply", "-f", &file, "-p", "{}"], ""),
        kube_unions(&["test", &suite], ""),
        kube_unions(&["normalize", "-f", &review, "-o", "review"], ""),
    ]
}
