//! The cases of contributed presets: kinds, and switches with their outcomes, a case in each of `*.yaml`.

use std::collections::BTreeMap;

use kube::core::{ApiResource, GroupVersionKind};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::resource::{Resource, written_out};
use crate::switches::Way;
use fixtures::crds::{crd, version};
use fixtures::files::{files, parse};

/// The file of a preset.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseFile {
    schemas: Vec<Schema>,
    switches: Vec<Row>,
}

/// Kinds that share a schema.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Schema {
    /// By `GROUP/VERSION`.
    kinds: BTreeMap<String, Vec<String>>,
    /// Those whose objects are in no namespace.
    #[serde(default)]
    cluster: Vec<String>,
    /// The schema of `spec`, as [`written_out`] reads it.
    spec: Value,
}

/// A case of a preset.
pub(super) struct Case {
    pub(super) kinds: Vec<Kind>,
    pub(super) rows: Vec<Row>,
}

/// A kind of a case.
pub(super) struct Kind {
    pub(super) resource: Resource,
    /// The CRD.
    pub(super) definition: Value,
}

/// A switch from one member to another.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    /// All of the file, if none is named.
    #[serde(default)]
    kinds: Vec<String>,
    /// The place of the union.
    pub(super) at: String,
    /// The rest of the object.
    #[serde(default)]
    pub(super) beside: Value,
    /// The contents of the place at first.
    pub(super) from: Value,
    /// The contents of the place that is switched to.
    pub(super) to: Value,
    /// The outcome without a preset, of ways that leave the old member behind. The usual one, if none is given: the new member joins the
    /// old one, or is rejected for it if there is a refusal.
    before: Option<Outcome>,
    /// The outcome with a preset. The usual one, if none is given: the new member clears the old one.
    after: Option<Outcome>,
    /// Part of the message of a rejection.
    pub(super) refusal: Option<String>,
    /// The warnings about the members that are cleared, one in a line, if a way clears one. The usual one, if none is given: one member
    /// was set, and one cleared.
    warning: Option<String>,
}

/// The result of a switch.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome {
    /// Only the new member is stored, and the client is warned that the old member was cleared.
    Cleared,
    /// Only the new member is stored. There is no warning.
    Switched,
    /// Both members are stored. There is no warning.
    Both,
    /// The request is refused, and the old member is stored.
    Rejected,
}

impl Kind {
    fn new(group_version: &str, name: &str, schema: &Schema) -> Self {
        let (group, of_group) = group_version.split_once('/').expect("a group and a version");
        let mut version =
            version(of_group, &json!({"type": "object", "properties": {"spec": written_out(&schema.spec)}}));
        version["storage"] = json!(true);
        let mut definition = crd(group, name, &[version]);
        let plural = ApiResource::from_gvk(&GroupVersionKind::gvk(group, of_group, name)).plural;
        definition["metadata"]["name"] = json!(format!("{plural}.{group}"));
        definition["spec"]["names"]["plural"] = json!(plural);
        if schema.cluster.iter().any(|it| it == name) {
            definition["spec"]["scope"] = json!("Cluster");
        }
        Self { resource: Resource::of_definition(&definition), definition }
    }

    pub(super) fn name(&self) -> &str {
        &self.resource.kind
    }

    /// Returns `KIND.GROUP`.
    pub(super) fn full_name(&self) -> String {
        format!("{}.{}", self.resource.kind, self.resource.group)
    }

    /// Returns the rule that sends objects of this kind to the webhook.
    pub(super) fn rule(&self) -> Value {
        json!({
            "apiGroups": [self.resource.group],
            "apiVersions": ["*"],
            "operations": ["CREATE", "UPDATE"],
            "resources": [self.resource.plural],
        })
    }

    pub(super) fn object(&self, name: &str, parts: &[&Value]) -> Value {
        let mut object = self.resource.object(name, &json!({}));
        parts.iter().filter(|part| !part.is_null()).for_each(|part| json_patch::merge(&mut object, part));
        object
    }
}

pub(super) fn cases() -> Vec<Case> {
    let of_file = |(path, text): (String, String)| {
        let CaseFile { schemas, switches: rows } = parse(&path, &text);
        let of_schema = |schema: &Schema| -> Vec<Kind> {
            let kinds = schema.kinds.iter().flat_map(|(version, names)| names.iter().map(move |name| (version, name)));
            kinds.map(|(version, name)| Kind::new(version, name, schema)).collect()
        };
        let kinds: Vec<Kind> = schemas.iter().flat_map(of_schema).collect();
        for name in rows.iter().flat_map(|row| &row.kinds) {
            assert!(kinds.iter().any(|kind| kind.name() == name), "{path}: {name} is no kind of this file");
        }
        Case { kinds, rows }
    };
    files("tests/e2e/contrib", "yaml").into_iter().map(of_file).collect()
}

pub(super) fn kinds(cases: &[Case]) -> impl Iterator<Item = &Kind> {
    cases.iter().flat_map(|case| &case.kinds)
}

/// Returns the CRDs of the kinds of a group.
pub(crate) fn definitions_of(group: &str) -> Vec<Value> {
    let cases = cases();
    kinds(&cases).filter(|kind| kind.resource.group == group).map(|kind| kind.definition.clone()).collect()
}

impl Row {
    pub(super) fn is_about(&self, kind: &Kind) -> bool {
        self.kinds.is_empty() || self.kinds.iter().any(|name| name == kind.name())
    }

    /// Returns true if the outcomes are others than the usual ones.
    pub(super) fn has_outcomes(&self) -> bool {
        self.before.is_some() || self.after.is_some()
    }

    /// Returns the outcome of a way without a preset.
    pub(super) fn before(&self, way: Way) -> Outcome {
        let usual = if self.refusal.is_some() { Outcome::Rejected } else { Outcome::Both };
        if way.leaves_the_old() { self.before.unwrap_or(usual) } else { Outcome::Switched }
    }

    /// Returns the outcome of a way with a preset.
    pub(super) fn after(&self, way: Way) -> Outcome {
        if way.leaves_the_old() { self.after.unwrap_or(Outcome::Cleared) } else { Outcome::Switched }
    }

    /// Returns true if these are the warnings about the members that are cleared.
    pub(super) fn is_told_by(&self, warnings: &[String]) -> bool {
        let alone = |members: &Value, others: &Value| {
            let mut names = members.as_object()?.keys().filter(|name| others.get(name).is_none());
            names.next().filter(|_| names.next().is_none()).cloned()
        };
        let usual = || {
            let (cleared, set) = (alone(&self.from, &self.to)?, alone(&self.to, &self.from)?);
            Some(format!("{}.{cleared}: cleared because `{set}` was set", self.at))
        };
        let expected = self.warning.clone().or_else(usual);
        expected.is_some_and(|expected| warnings.iter().eq(expected.lines()))
    }
}
