//! The rows of `applied/*.yaml`, as they are written. [`cells`](super::cells) expands them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::place::Place;
use fixtures::files::{files, parse};

/// The way in which unions are enforced.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Enforcement {
    Webhook,
    Policies,
    /// Rules in the CRD, and nothing else.
    Rules,
}

/// A way to apply a manifest.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[serde(rename_all = "camelCase")]
pub(super) enum Way {
    /// Server-side apply, which takes fields over.
    ServerSide,
    /// `kubectl apply`.
    ClientSide,
    /// The request of `kubectl replace`.
    Replace,
    /// `helm upgrade` by Helm 3.
    Helm3,
    /// `helm upgrade` by Helm 4, which applies server-side.
    Helm4,
}

/// The answers to three applies of one manifest.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "camelCase")]
pub(super) enum Answer {
    /// Each is accepted and changes nothing.
    Kept,
    /// The first is stored, and the others change nothing.
    Stored,
    /// Each is refused in the same words.
    Refused,
    /// The first is stored, and the others are refused in the same words.
    Late,
    /// The first two are stored and change the object, and the third changes nothing.
    Settles,
    /// Each is stored and changes the object.
    Flips,
    /// The situation cannot arise.
    Impossible,
}

/// A form of a union, the places where it is, and what applies of it do.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Suite {
    /// The name of the form, which is part of the names of fields.
    pub(super) form: Option<String>,
    /// The schema of an object with the union. Another suite may have it.
    pub(super) schema: Option<Value>,
    /// The places in our own kind.
    #[serde(default)]
    pub(super) places: Vec<OwnPlace>,
    /// Places in kinds that have a preset.
    #[serde(default)]
    pub(super) presets: Vec<Preset>,
    #[serde(default = "usual_ways")]
    pub(super) ways: Vec<Way>,
    pub(super) rows: Vec<Row>,
}

/// A place of a form in our own kind.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(super) enum OwnPlace {
    Struct,
    /// An item of a list with one key.
    Item,
    /// The same, and its key has quotes.
    QuotedItem,
    /// An item of a list with two keys, one of which has a default that no manifest names.
    ShortItem,
    /// A value of a map.
    Value,
    /// A field of `status`.
    Status,
}

/// The place of a union in a kind that has a preset.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Preset {
    /// The rest of the object. A Deployment, unless it is given.
    #[serde(default = "deployment")]
    pub(super) object: Value,
    #[serde(default = "deployments")]
    pub(super) plural: String,
    pub(super) at: Place,
    /// The fields to use for a field of the rows.
    #[serde(default)]
    pub(super) fields: BTreeMap<String, Value>,
    /// The values to use for a value of the discriminator.
    #[serde(default)]
    pub(super) values: BTreeMap<String, String>,
    /// The same fields as `fields`, with the defaults of the API server.
    #[serde(default)]
    pub(super) stored: BTreeMap<String, Value>,
    /// True if `kubectl apply` replaces the object with the union as a whole.
    #[serde(default)]
    pub(super) replaces: bool,
}

/// A situation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Row {
    pub(super) situation: String,
    /// The writes that lead to it.
    #[serde(default)]
    pub(super) before: Vec<BTreeMap<Author, Value>>,
    /// The content of the place in the manifest.
    pub(super) manifest: Value,
    /// The content of the place in the end, unless it is the manifest's.
    pub(super) then: Option<Value>,
    /// The content of the place in the end by rules, which deduce nothing, if it is not `then`.
    pub(super) rules_then: Option<Value>,
    /// The answers for an enforcement and a way, for a way, for an enforcement, or for `all`. The first of these counts. Before these
    /// comes an enforcement and a way with `lists`, where `kubectl apply` replaces the item of a list as a whole: in lists of custom
    /// resources, and for volumes. Then comes one with `fields`, where fields alone lead to the place.
    pub(super) answers: BTreeMap<String, Answer>,
    /// A part of each refusal, likewise.
    #[serde(default)]
    pub(super) says: BTreeMap<String, String>,
}

/// The author of a write that leads to a situation.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[serde(rename_all = "camelCase")]
pub(super) enum Author {
    /// The way and the field manager of the case.
    Own,
    /// Server-side apply by another field manager.
    Manager,
    /// A controller reads the object, sets these fields, and replaces it.
    Controller,
}

/// The group of our own kind for each enforcement.
pub(super) fn group(enforcement: Enforcement) -> &'static str {
    match enforcement {
        Enforcement::Webhook => "webhook.applied.example",
        Enforcement::Policies => "policies.applied.example",
        Enforcement::Rules => "rules.applied.example",
    }
}

/// Returns the schema of our own kind, with every form at every place.
pub(super) fn schema() -> Value {
    let (mut spec, mut status) = (Map::new(), Map::new());
    for suite in suites().into_iter().map(|(_, suite)| suite).filter(|suite| suite.schema.is_some()) {
        let (form, schema) = (suite.form.expect("a schema has a form"), suite.schema.unwrap());
        let list = |keys: Value, required: &str| {
            let mut items = schema.clone();
            json_patch::merge(&mut items, &json!({"required": [required], "properties": keys}));
            let keys: Vec<&String> = keys.as_object().unwrap().keys().collect();
            json!({"type": "array", "maxItems": 4, "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys})
        };
        let name = json!({"type": "string", "maxLength": 40});
        let protocol = json!({"type": "string", "maxLength": 40, "default": "TCP"});
        let values = json!({"type": "object", "maxProperties": 4, "additionalProperties": schema});
        spec.extend([
            (format!("{form}Items"), list(json!({"name": name}), "name")),
            (format!("{form}Ports"), list(json!({"port": {"type": "integer"}, "protocol": protocol}), "port")),
            (format!("{form}Values"), values),
            (form.clone(), schema.clone()),
        ]);
        status.insert(form, schema);
    }
    json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": spec}, "status": {"type": "object", "properties": status}}})
}

/// Returns each file and its suite.
pub(super) fn suites() -> Vec<(String, Suite)> {
    let files = files("tests/e2e/applied", "yaml").into_iter();
    files
        .map(|(path, text)| {
            let value: Value = parse(&path, &text);
            let suite = serde_json::from_value(value).unwrap_or_else(|error| panic!("{path}: {error}"));
            (path, suite)
        })
        .collect()
}

fn deployment() -> Value {
    let template = json!({"metadata": {"labels": {"app": "x"}},
        "spec": {"containers": [{"name": "main", "image": "example.com/app:1"}]}});
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": template}})
}

fn deployments() -> String {
    "deployments".to_owned()
}

fn usual_ways() -> Vec<Way> {
    vec![Way::ServerSide, Way::ClientSide, Way::Replace]
}

impl Way {
    /// Returns true if a request by this way tells its manifest.
    pub(super) fn tells_its_manifest(self) -> bool {
        !matches!(self, Self::Replace | Self::Helm3)
    }
}
