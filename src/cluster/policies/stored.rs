//! A stored policy or binding, reduced to a digest of the parts that this program writes.
//!
//! Any JSON may be stored, so nothing here assumes a shape. Parts of other writers do not count: labels, annotations, owners,
//! the status. Fields that the API server fills in count as missing.

use crate::cluster::registration::Owner;
use kube_unions_core::names::GroupKind;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The label of every object that `serve` maintains.
const MAINTAINED_BY: &str = "kube-unions.dev/maintained-by";
const SERVE: &str = "serve";

/// Selects every object that `serve` maintains.
pub(in crate::cluster) const SELECTOR: &str = "kube-unions.dev/maintained-by=serve";

/// Annotation that names the kind of a policy.
const KIND: &str = "kube-unions.dev/kind";

/// Annotation that names the installation of a policy by its Service.
pub(in crate::cluster) const INSTALLATION: &str = "kube-unions.dev/installation";

/// The metadata that all objects of this installation share.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct PolicyFrame {
    pub(super) installation: Option<String>,
    pub(super) owner: Option<Owner>,
}

/// A stored object that has our label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredPolicy {
    pub(super) resource_version: Box<str>,
    /// The kind whose unions the object enforces; `None` if it does not say.
    pub(super) kind: Option<GroupKind>,
    /// True if another installation maintains the object.
    pub(super) is_of_another_installation: bool,
    pub(super) digest: u64,
}

/// Returns the labels of every object.
pub(super) fn labels() -> BTreeMap<String, String> {
    let labels = [
        (MAINTAINED_BY, SERVE),
        ("app.kubernetes.io/name", "kube-unions"),
        ("app.kubernetes.io/managed-by", "kube-unions"),
    ];
    labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

impl StoredPolicy {
    /// Reads a stored object; `None` if it has not our label.
    pub(super) fn of(object: &Value, frame: &PolicyFrame) -> Option<Self> {
        let text = |pointer: &str, key: &str| object.pointer(pointer)?.get(key)?.as_str();
        if text("/metadata/labels", MAINTAINED_BY) != Some(SERVE) {
            return None;
        }
        let installation = text("/metadata/annotations", INSTALLATION);
        let is_another = |own: &str| installation.is_some_and(|installation| installation != own);
        Some(Self {
            resource_version: text("/metadata", "resourceVersion").unwrap_or_default().into(),
            kind: text("/metadata/annotations", KIND).map(kind_of),
            is_of_another_installation: frame.installation.as_deref().is_some_and(is_another),
            digest: frame.digest(object),
        })
    }

    /// Reads a stored object of this installation; `None` for an object of another writer.
    pub(super) fn of_this_installation(object: &Value, frame: &PolicyFrame) -> Option<Self> {
        Self::of(object, frame).filter(|stored| !stored.is_of_another_installation)
    }
}

impl PolicyFrame {
    /// Completes the metadata of a compiled object.
    pub(super) fn complete(&self, object: &mut Value, kind: &GroupKind) {
        let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
        let mut annotations = object_at(metadata, "annotations");
        annotations.insert(KIND.to_owned(), format!("{}/{}", kind.group, kind.kind).into());
        if let Some(installation) = &self.installation {
            annotations.insert(INSTALLATION.to_owned(), installation.as_str().into());
        }
        metadata.insert("annotations".to_owned(), annotations.into());
        if let Some(owner) = &self.owner {
            metadata.insert("ownerReferences".to_owned(), json!([owner.reference()]));
        }
    }

    /// Returns the object to write in place of a stored one: the parts of other writers stay.
    pub(super) fn merged(&self, mut stored: Value, desired: &Value) -> Value {
        let Some(object) = stored.as_object_mut() else { return desired.clone() };
        for field in ["apiVersion", "kind", "spec"] {
            object.insert(field.to_owned(), desired.get(field).cloned().unwrap_or_default());
        }
        let mut metadata = object_at(object, "metadata");
        let wanted = desired.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
        for part in ["labels", "annotations"] {
            let mut all = object_at(&metadata, part);
            all.extend(object_at(&wanted, part));
            metadata.insert(part.to_owned(), all.into());
        }
        if let Some(owner) = &self.owner {
            let stored = metadata.get("ownerReferences").and_then(Value::as_array).cloned().unwrap_or_default();
            let mut owners: Vec<Value> = stored.into_iter().filter(|it| !owner.is_at(it)).collect();
            owners.push(owner.reference());
            metadata.insert("ownerReferences".to_owned(), owners.into());
        }
        metadata.shift_remove("managedFields");
        object.insert("metadata".to_owned(), metadata.into());
        stored
    }

    /// Returns a digest of the parts of an object that this program writes. Two objects with equal digests need no write.
    pub(super) fn digest(&self, object: &Value) -> u64 {
        let mut hasher = DefaultHasher::new();
        let of = |part: &str, key: &str| object.get("metadata").and_then(|it| it.get(part)?.get(key)?.as_str());
        for label in labels().keys() {
            of("labels", label).hash(&mut hasher);
        }
        of("annotations", KIND).hash(&mut hasher);
        // Without a Service of its own, this installation writes no annotation.
        if self.installation.is_some() {
            of("annotations", INSTALLATION).hash(&mut hasher);
        }
        if let Some(owner) = &self.owner {
            let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
            let ours: Vec<&Value> = owners.into_iter().flatten().filter(|it| owner.is_at(it)).collect();
            ours.len().hash(&mut hasher);
            for owner in ours {
                feed(owner, &mut hasher);
            }
        }
        feed(object.get("spec").unwrap_or(&Value::Null), &mut hasher);
        hasher.finish()
    }
}

fn kind_of(annotation: &str) -> GroupKind {
    let (group, kind) = annotation.split_once('/').unwrap_or_default();
    GroupKind::new(group, kind)
}

fn object_at(object: &Map<String, Value>, field: &str) -> Map<String, Value> {
    object.get(field).and_then(Value::as_object).cloned().unwrap_or_default()
}

/// Feeds a value to a hasher, without the order of keys and without fields that say the same as a missing field.
fn feed(value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().filter(|(key, value)| !is_default(key, value)).collect();
            fields.sort_by_key(|(key, _)| *key);
            ('{', fields.len()).hash(hasher);
            for (key, value) in fields {
                key.hash(hasher);
                feed(value, hasher);
            }
        }
        Value::Array(items) => {
            ('[', items.len()).hash(hasher);
            for item in items {
                feed(item, hasher);
            }
        }
        Value::String(text) => ('"', text).hash(hasher),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string().hash(hasher),
    }
}

/// Returns true for a field that the API server would fill in, or omit.
fn is_default(key: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.iter().all(|(key, value)| is_default(key, value)),
        Value::Array(items) => items.is_empty(),
        Value::String(text) => {
            matches!(
                (key, text.as_str()),
                (_, "") | ("matchPolicy", "Equivalent") | ("scope", "*") | ("failurePolicy", "Fail")
            )
        }
        Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> PolicyFrame {
        let owner = Owner { name: "kube-unions".to_owned(), uid: "1".to_owned() };
        PolicyFrame { installation: Some("ns/name".to_owned()), owner: Some(owner) }
    }

    /// A policy as this program writes it.
    fn desired() -> Value {
        let mut object = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "unions-a", "labels": labels()},
            "spec": {
                "matchConstraints": {"resourceRules": [{"apiGroups": ["g"], "resources": ["things"]}]},
                "validations": [{"expression": "true", "reason": "Invalid"}],
            },
        });
        frame().complete(&mut object, &GroupKind::new("g", "Thing"));
        object
    }

    /// The policy as an API server stores it.
    fn stored() -> Value {
        let mut object = desired();
        object["metadata"]["resourceVersion"] = json!("7");
        object["metadata"]["managedFields"] = json!([{"manager": "kube-unions"}]);
        object["metadata"]["generation"] = json!(1);
        object["spec"]["failurePolicy"] = json!("Fail");
        object["spec"]["matchConstraints"]["matchPolicy"] = json!("Equivalent");
        object["spec"]["matchConstraints"]["namespaceSelector"] = json!({});
        object["spec"]["matchConstraints"]["objectSelector"] = json!({});
        object["spec"]["matchConstraints"]["resourceRules"][0]["scope"] = json!("*");
        object["status"] = json!({"observedGeneration": 1, "typeChecking": {}});
        object
    }

    #[test]
    fn defaults_of_the_api_server_and_additions_of_others_cause_no_write() {
        let mut object = stored();
        assert_eq!(frame().digest(&desired()), frame().digest(&object));
        object["metadata"]["labels"]["of"] = json!("others");
        object["metadata"]["annotations"]["of"] = json!("others");
        object["metadata"]["finalizers"] = json!(["of/others"]);
        let owners = object["metadata"]["ownerReferences"].as_array_mut().unwrap();
        owners.insert(0, json!({"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "9"}));
        assert_eq!(frame().digest(&desired()), frame().digest(&object));
    }

    /// Rows: a pointer to a part of ours, and another value.
    #[test]
    fn every_change_of_our_parts_is_seen_and_undone_by_one_write() {
        for (pointer, value) in [
            ("/metadata/labels/app.kubernetes.io~1name", json!("else")),
            ("/metadata/annotations/kube-unions.dev~1kind", json!("g/Other")),
            ("/metadata/annotations/kube-unions.dev~1installation", json!("else/else")),
            ("/metadata/ownerReferences", json!([])),
            ("/metadata/ownerReferences/0/uid", json!("stale")),
            ("/spec", Value::Null),
            ("/spec/failurePolicy", json!("Ignore")),
            ("/spec/validations/0/expression", json!("false")),
            ("/spec/matchConstraints/matchPolicy", json!("Exact")),
            ("/spec/matchConstraints/resourceRules/0/scope", json!("Cluster")),
            ("/spec/matchConstraints/objectSelector", json!({"matchLabels": {"a": "b"}})),
        ] {
            let mut changed = stored();
            *changed.pointer_mut(pointer).unwrap() = value;
            assert_ne!(frame().digest(&desired()), frame().digest(&changed), "{pointer}");
            let written = frame().merged(changed, &desired());
            assert_eq!(frame().digest(&desired()), frame().digest(&written), "{pointer}");
            assert_eq!(written["metadata"]["resourceVersion"], "7", "bound to the version that was read");
        }
        let mut more = stored();
        more["spec"]["matchConditions"] = json!([{"name": "never", "expression": "false"}]);
        assert_ne!(frame().digest(&desired()), frame().digest(&more), "an addition that narrows the policy");
    }

    #[test]
    fn an_object_without_our_label_is_not_ours_and_any_json_can_be_read() {
        let read = |object: &Value| StoredPolicy::of(object, &frame());
        let ours = read(&stored()).unwrap();
        assert_eq!(ours.kind, Some(GroupKind::new("g", "Thing")));
        assert!(!ours.is_of_another_installation && &*ours.resource_version == "7");
        for value in [json!(null), json!({}), json!("else"), json!(["serve"])] {
            let mut object = stored();
            object["metadata"]["labels"]["kube-unions.dev/maintained-by"] = value;
            assert_eq!(read(&object), None);
        }
        for object in [json!(null), json!([]), json!({"metadata": 1}), json!({"metadata": {"labels": "serve"}})] {
            assert_eq!(read(&object), None);
            frame().merged(object, &desired());
        }
        let mut other = stored();
        other["metadata"]["annotations"][INSTALLATION] = json!("else/else");
        assert!(read(&other).unwrap().is_of_another_installation);
        assert!(!StoredPolicy::of(&other, &PolicyFrame::default()).unwrap().is_of_another_installation);
    }
}
