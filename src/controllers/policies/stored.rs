//! A stored policy or binding, and whether it is as wanted.
//!
//! Any JSON may be stored, so nothing here assumes a shape. Parts of other writers do not count: labels, annotations, owners,
//! the status. [`policy_difference`] compares, here as in `compile --check`.

use crate::controllers::object::{INSTALLATION, Owner, merge_metadata, named_installation, object_at};
use kube_unions_core::names::GroupKind;
use kube_unions_policies::policy_difference;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The label of every object that `serve` maintains.
pub const MAINTAINED_BY: &str = "kube-unions.dev/maintained-by";
const SERVE: &str = "serve";

/// Selects every object that `serve` maintains.
pub(crate) const SELECTOR: &str = "kube-unions.dev/maintained-by=serve";

/// Annotation that names the kind of a policy.
const KIND: &str = "kube-unions.dev/kind";

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
    /// The object, or the wanted one if they are alike.
    content: Arc<Value>,
    /// The wanted object from which `content` differs, if they were compared.
    differs_from: Option<Arc<Value>>,
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
    /// Reads a stored object of this installation; `None` for an object of another writer.
    pub(super) fn of_this_installation(object: Value, frame: &PolicyFrame) -> Option<Self> {
        if !frame.maintains(&object) {
            return None;
        }
        let text = |pointer: &str, key: &str| object.pointer(pointer)?.get(key)?.as_str();
        Some(Self {
            resource_version: text("/metadata", "resourceVersion").unwrap_or_default().into(),
            kind: text("/metadata/annotations", KIND).map(kind_of),
            content: Arc::new(object),
            differs_from: None,
        })
    }

    /// Returns true if the object needs no write to be as wanted.
    pub(super) fn is_as(&mut self, wanted: &Arc<Value>) -> bool {
        if Arc::ptr_eq(&self.content, wanted) {
            return true;
        }
        if self.differs_from.as_ref().is_some_and(|other| Arc::ptr_eq(other, wanted)) {
            return false;
        }
        let is_alike = policy_difference(wanted, &self.content).is_none();
        if is_alike {
            self.content = Arc::clone(wanted);
        } else {
            self.differs_from = Some(Arc::clone(wanted));
        }
        is_alike
    }
}

impl PolicyFrame {
    /// Returns true for an object that has our label, unless it names another installation.
    pub(super) fn maintains(&self, object: &Value) -> bool {
        let label = object.pointer("/metadata/labels").and_then(|labels| labels.get(MAINTAINED_BY)?.as_str());
        let named = named_installation(object);
        let is_another = self.installation.as_deref().is_some_and(|own| named.is_some_and(|named| named != own));
        label == Some(SERVE) && !is_another
    }

    /// Completes the metadata of a compiled object.
    pub(super) fn complete(&self, object: &mut Value, kind: &GroupKind) {
        let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
        let mut annotations = Map::from_iter([(KIND.to_owned(), format!("{}/{}", kind.group, kind.kind).into())]);
        if let Some(installation) = &self.installation {
            annotations.insert(INSTALLATION.to_owned(), installation.as_str().into());
        }
        merge_metadata(metadata, &json!({"annotations": annotations}), self.owner.as_ref());
    }

    /// Returns the object to write in place of a stored one: the parts of other writers stay.
    pub(super) fn merged(&self, mut stored: Value, desired: &Value) -> Value {
        let Some(object) = stored.as_object_mut() else { return desired.clone() };
        for field in ["apiVersion", "kind", "spec"] {
            object.insert(field.to_owned(), desired.get(field).cloned().unwrap_or_default());
        }
        let mut metadata = object_at(object, "metadata");
        let wanted = desired.get("metadata").unwrap_or(&Value::Null);
        merge_metadata(&mut metadata, wanted, self.owner.as_ref());
        metadata.shift_remove("managedFields");
        object.insert("metadata".to_owned(), metadata.into());
        stored
    }
}

fn kind_of(annotation: &str) -> GroupKind {
    let (group, kind) = annotation.split_once('/').unwrap_or_default();
    GroupKind::new(group, kind)
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

    fn is_in_sync(object: &Value) -> bool {
        policy_difference(&desired(), object).is_none()
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
        assert!(is_in_sync(&object));
        object["metadata"]["labels"]["of"] = json!("others");
        object["metadata"]["annotations"]["of"] = json!("others");
        object["metadata"]["finalizers"] = json!(["of/others"]);
        let owners = object["metadata"]["ownerReferences"].as_array_mut().unwrap();
        owners.insert(0, json!({"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "9"}));
        assert!(is_in_sync(&object));
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
            ("/spec/matchConstraints/objectSelector", json!({"matchLabels": {"a": ""}})),
            ("/spec/matchConstraints/objectSelector", json!({"matchLabels": {"scope": "*"}})),
        ] {
            let mut changed = stored();
            *changed.pointer_mut(pointer).unwrap() = value;
            assert!(!is_in_sync(&changed), "{pointer}");
            let written = frame().merged(changed, &desired());
            assert!(is_in_sync(&written), "{pointer}");
            assert_eq!(written["metadata"]["resourceVersion"], "7", "bound to the version that was read");
        }
        let mut more = stored();
        more["spec"]["matchConditions"] = json!([{"name": "never", "expression": "false"}]);
        assert!(!is_in_sync(&more), "an addition that narrows the policy");
    }

    #[test]
    fn an_object_without_our_label_is_not_ours_and_any_json_can_be_read() {
        let read = |object: Value| StoredPolicy::of_this_installation(object, &frame());
        let ours = read(stored()).unwrap();
        assert_eq!(ours.kind, Some(GroupKind::new("g", "Thing")));
        assert_eq!(&*ours.resource_version, "7");
        for value in [json!(null), json!({}), json!("else"), json!(["serve"])] {
            let mut object = stored();
            object["metadata"]["labels"]["kube-unions.dev/maintained-by"] = value;
            assert_eq!(read(object), None);
        }
        for object in [json!(null), json!([]), json!({"metadata": 1}), json!({"metadata": {"labels": "serve"}})] {
            assert_eq!(read(object.clone()), None);
            frame().merged(object, &desired());
        }
        for (installation, is_ours) in [("else/else", false), ("", true), (" ", true), ("ns/name", true)] {
            let mut other = stored();
            other["metadata"]["annotations"][INSTALLATION] = json!(installation);
            assert_eq!(frame().maintains(&other), is_ours, "{installation:?}");
            assert!(PolicyFrame::default().maintains(&other), "{installation:?}");
        }
    }

    #[test]
    fn an_object_is_compared_with_each_wanted_one() {
        let mut object = StoredPolicy::of_this_installation(stored(), &frame()).unwrap();
        let mut other = desired();
        other["spec"]["failurePolicy"] = json!("Ignore");
        let (wanted, other) = (Arc::new(desired()), Arc::new(other));
        let compared = [&wanted, &other, &other, &wanted, &Arc::new(desired())].map(|wanted| object.is_as(wanted));
        assert_eq!(compared, [true, false, false, true, true]);
    }
}
