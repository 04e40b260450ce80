//! The cases of contributed presets: kinds, and switches with their outcomes, as documents of `*.yaml`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::kind::documents;
use fixtures::crds::{crd, version};
use fixtures::files::files;

/// A document of the file of a preset. The first has the schemas, and the second the switches.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Case {
    schemas: Vec<Schema>,
    switches: Vec<Row>,
}

/// Kinds that share a schema.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Schema {
    group: String,
    version: String,
    kinds: Vec<Names>,
    /// The schema of `spec`.
    spec: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Names {
    kind: String,
    /// The kind in lower case with an `s`, unless it is given.
    plural: Option<String>,
    /// `Namespaced` or `Cluster`.
    scope: Option<String>,
}

/// A kind of a case.
pub(super) struct Kind {
    pub(super) group: String,
    version: String,
    pub(super) name: String,
    plural: String,
    namespaced: bool,
    pub(super) spec: Value,
}

/// A switch from one member to another.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    /// Names as in kubectl: `KIND`, or `KIND.GROUP` where two groups have one.
    pub(super) kinds: Vec<String>,
    /// The place of the union.
    pub(super) at: String,
    /// The rest of the object.
    #[serde(default)]
    pub(super) beside: Value,
    /// The contents of the place at first.
    pub(super) from: Value,
    /// The contents of the place that is switched to.
    pub(super) to: Value,
    /// The usual ones without a preset, if it is empty: the new member joins the old one, or is rejected for it if there is a refusal.
    #[serde(default)]
    pub(super) before: BTreeMap<Way, Outcome>,
    /// The usual ones with a preset, if it is empty: the new member clears the old one.
    #[serde(default)]
    pub(super) after: BTreeMap<Way, Outcome>,
    /// Part of the message of a rejection.
    pub(super) refusal: Option<String>,
    /// The warnings about the members that are cleared, one in a line, if a way clears one. The usual one, if none is given: one member
    /// was set, and one cleared.
    pub(super) warning: Option<String>,
    /// True if the outcomes are others than the usual ones.
    #[serde(skip)]
    pub(super) has_outcomes: bool,
}

/// A way to switch a member.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[serde(rename_all = "camelCase")]
pub(super) enum Way {
    /// The object is created, and a merge patch sets the new member.
    Patch,
    /// The object is created, and `kubectl apply` has the new member only.
    CreateThenApply,
    /// `kubectl apply` has one member, then the other.
    ApplyThenApply,
    /// Server-side apply has one member, then the other, with the same field manager.
    SameManager,
    /// Server-side apply has one member, then the other, with another field manager.
    OtherManager,
    /// The object is created, and server-side apply has the new member only.
    CreateThenServerSide,
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

impl Way {
    pub(super) const ALL: [Self; 6] = [
        Self::Patch,
        Self::CreateThenApply,
        Self::ApplyThenApply,
        Self::SameManager,
        Self::OtherManager,
        Self::CreateThenServerSide,
    ];

    /// The ways that leave a member behind for a preset to clear.
    pub(super) const CLEARING: [Self; 4] =
        [Self::Patch, Self::CreateThenApply, Self::OtherManager, Self::CreateThenServerSide];
}

impl Kind {
    /// Returns `KIND.GROUP`.
    pub(super) fn full_name(&self) -> String {
        format!("{}.{}", self.name, self.group)
    }

    /// Returns the CRD.
    pub(super) fn definition(&self) -> Value {
        let schema = json!({"type": "object", "properties": {"spec": self.spec}});
        let mut version = version(&self.version, &schema);
        version["storage"] = json!(true);
        let mut definition = crd(&self.group, &self.name, &[version]);
        definition["metadata"]["name"] = json!(format!("{}.{}", self.plural, self.group));
        definition["spec"]["names"]["plural"] = json!(self.plural);
        definition["spec"]["scope"] = json!(if self.namespaced { "Namespaced" } else { "Cluster" });
        definition
    }

    /// Returns the rule that sends objects of this kind to the webhook.
    pub(super) fn rule(&self) -> Value {
        json!({
            "apiGroups": [self.group],
            "apiVersions": ["*"],
            "operations": ["CREATE", "UPDATE"],
            "resources": [self.plural],
        })
    }

    /// Returns the path of an object, or with an empty name of the collection.
    pub(super) fn path(&self, name: &str) -> String {
        let namespace = if self.namespaced { "/namespaces/default" } else { "" };
        let collection = format!("/apis/{}/{}{namespace}/{}", self.group, self.version, self.plural);
        if name.is_empty() { collection } else { format!("{collection}/{name}") }
    }

    pub(super) fn object(&self, name: &str, parts: &[&Value]) -> Value {
        let mut object = json!({
            "apiVersion": format!("{}/{}", self.group, self.version),
            "kind": self.name,
            "metadata": {"name": name},
        });
        if self.namespaced {
            object["metadata"]["namespace"] = json!("default");
        }
        parts.iter().filter(|part| !part.is_null()).for_each(|part| json_patch::merge(&mut object, part));
        object
    }
}

fn cases() -> impl Iterator<Item = Case> {
    let documents = files("tests/e2e/contrib", "yaml").into_iter().flat_map(|(_, text)| documents(&text));
    documents.map(|document| serde_json::from_value(document).unwrap())
}

pub(super) fn kinds() -> Vec<Kind> {
    let kinds = cases().flat_map(|case| case.schemas).flat_map(|Schema { group, version, kinds, spec }| {
        kinds.into_iter().map(move |Names { kind: name, plural, scope }| Kind {
            group: group.clone(),
            version: version.clone(),
            plural: plural.unwrap_or_else(|| format!("{}s", name.to_lowercase())),
            name,
            namespaced: scope.is_none_or(|scope| scope == "Namespaced"),
            spec: spec.clone(),
        })
    });
    kinds.collect()
}

/// Returns the CRDs of the kinds of a group.
pub(crate) fn definitions_of(group: &str) -> Vec<Value> {
    kinds().iter().filter(|kind| kind.group == group).map(Kind::definition).collect()
}

pub(super) fn rows() -> Vec<Row> {
    cases().flat_map(|case| case.switches).map(Row::completed).collect()
}

impl Row {
    /// Adds what is usual.
    fn completed(mut self) -> Self {
        self.has_outcomes = !self.before.is_empty() || !self.after.is_empty();
        if self.before.is_empty() {
            self.before = usual(if self.refusal.is_some() { Outcome::Rejected } else { Outcome::Both });
        }
        if self.after.is_empty() {
            self.after = usual(Outcome::Cleared);
        }
        if self.warning.is_none() && self.after.values().any(|outcome| *outcome == Outcome::Cleared) {
            let alone = |members: &Value, others: &Value| {
                let mut names = members.as_object().expect("members").keys().filter(|name| others.get(name).is_none());
                let name = names.next().filter(|_| names.next().is_none());
                name.unwrap_or_else(|| panic!("{}: a switch of several fields has a warning", self.at)).clone()
            };
            let (cleared, set) = (alone(&self.from, &self.to), alone(&self.to, &self.from));
            self.warning = Some(format!("{}.{cleared}: cleared because `{set}` was set", self.at));
        }
        self
    }
}

/// Returns this outcome for each way, but for those that also say what is gone.
fn usual(outcome: Outcome) -> BTreeMap<Way, Outcome> {
    let of = |way| match way {
        Way::ApplyThenApply | Way::SameManager => Outcome::Switched,
        Way::Patch | Way::CreateThenApply | Way::OtherManager | Way::CreateThenServerSide => outcome,
    };
    Way::ALL.into_iter().map(|way| (way, of(way))).collect()
}
