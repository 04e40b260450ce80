//! Valid objects of built-in types, written again and again: with the presets in force, nothing comes of them that would not
//! have come without a webhook and without policies.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use fixtures::files::{files, parse};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::builtin::{BuiltIn, Objects};
use crate::support::http::Answer;

#[test]
fn what_is_valid_is_stored_as_without_the_webhook() {
    let Some(cluster) = BuiltIn::with_presets() else { return };
    stores_the_same(cluster, "presets");
}

#[test]
fn what_is_valid_is_stored_as_without_the_policies_of_the_presets() {
    let Some(cluster) = BuiltIn::with_policies() else { return };
    stores_the_same(cluster, "policies");
}

/// Fails unless a cluster stores what one without presets does.
fn stores_the_same(cluster: &Objects, round: &str) {
    static WITHOUT: OnceLock<Vec<(String, Value)>> = OnceLock::new();
    let corpus = corpus();
    assert!(corpus.len() >= 60, "{} objects are not many", corpus.len());
    let Some(bare) = Objects::without_presets() else { return };
    let without = WITHOUT.get_or_init(|| write_all(&bare, &corpus, "without"));
    let with = write_all(cluster, &corpus, round);
    for (one, other) in without.iter().zip(&with) {
        assert_eq!(one.0, other.0);
        assert_eq!(json_patch::diff(&one.1, &other.1), json_patch::Patch::default(), "{}", one.0);
    }
    assert_eq!(without.len(), with.len());
}

/// Writes every version of every object in every way, under names that end in `round`. What the API server answers and warns of, less
/// what differs from one time to the next.
fn write_all(cluster: &Objects, corpus: &[Vec<Value>], round: &str) -> Vec<(String, Value)> {
    let mut answers = Vec::new();
    for versions in corpus {
        let mut created = false;
        for (position, version) in versions.iter().enumerate() {
            let mut object = version.clone();
            let name = format!("{}-{round}", version["metadata"]["name"].as_str().unwrap());
            object["metadata"]["name"] = json!(name);
            let mut note = |step: &str, answer: Answer| {
                let what = format!("{} {}, version {position}, {step}", version["kind"], version["metadata"]["name"]);
                // Some ways are not for every object: a list with a key twice can't be applied, and that is the same with them.
                assert!(answer.is_success() || step != "written", "{what}: {answer:?}");
                let body = scrubbed(&answer.body, &name, round);
                answers.push((what, json!({"body": body, "warnings": answer.warnings})));
            };
            note("written", if created { cluster.replace(&object) } else { cluster.create(&object) });
            created = true;
            note("written back as read", cluster.replace(&cluster.stored(&object)));
            let label = json!({"metadata": {"labels": {"written": position.to_string()}}});
            note("labelled", cluster.patch(&object, "application/merge-patch+json", &label));
            let label = json!({"metadata": {"labels": {"written": null}}});
            note("label removed", cluster.patch(&object, "application/strategic-merge-patch+json", &label));
            note("applied by another manager", cluster.apply(&object, "another"));
            note("read", Answer { status: 200, body: cluster.stored(&object), warnings: Vec::new() });
        }
    }
    answers
}

/// An object without what is different each time: its name, identity, version, and times.
fn scrubbed(object: &Value, name: &str, round: &str) -> Value {
    let plain = name.strip_suffix(&format!("-{round}")).unwrap();
    let text = object.to_string().replace(name, plain);
    let text = match object["metadata"]["uid"].as_str() {
        Some(uid) => text.replace(uid, "the uid"),
        None => text,
    };
    let mut object: Value = serde_json::from_str(&text).unwrap();
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.remove("resourceVersion");
    metadata.remove("creationTimestamp");
    for entry in metadata.get_mut("managedFields").and_then(Value::as_array_mut).into_iter().flatten() {
        entry.as_object_mut().unwrap().remove("time");
    }
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("lastPhaseTransitionTime");
    }
    for condition in object.pointer_mut("/status/conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        condition.as_object_mut().unwrap().remove("lastTransitionTime");
    }
    object
}

/// The objects of one kind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CorpusKind {
    /// `API_VERSION KIND`.
    kind: String,
    /// The fields that every object has, with `NAME` for its name.
    #[serde(default)]
    base: Value,
    /// By name the versions, oldest first: what each has beside the base or instead of it.
    objects: BTreeMap<String, Vec<Value>>,
}

impl CorpusKind {
    fn versions(&self, name: &str, changes: &[Value]) -> Vec<Value> {
        let (api_version, kind) = self.kind.split_once(' ').expect("a version and a kind");
        let base = self.base.to_string().replace("NAME", name);
        let versions = changes.iter().map(|change| {
            let mut object: Value = serde_json::from_str(&base).unwrap();
            put(&mut object, change);
            put(&mut object, &json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}));
            object
        });
        versions.collect()
    }
}

/// Puts the fields of `change` into a value, at any depth. A list is put as a whole, and a null as a null.
fn put(value: &mut Value, change: &Value) {
    let (true, Some(fields)) = (value.is_object(), change.as_object()) else {
        change.clone_into(value);
        return;
    };
    fields.iter().for_each(|(name, change)| put(&mut value[name], change));
}

/// Every object with its versions, oldest first.
pub(crate) fn corpus() -> Vec<Vec<Value>> {
    let files = files("tests/e2e/corpus", "yaml");
    let kinds = files.iter().flat_map(|(path, text)| parse::<Vec<CorpusKind>>(path, text));
    kinds
        .flat_map(|kind| kind.objects.iter().map(|(name, changes)| kind.versions(name, changes)).collect::<Vec<_>>())
        .collect()
}
