//! The API objects of policies, and how they differ from stored ones, to which the API server has added its defaults.

use crate::yaml;
use crate::yaml::PolicyComments;
use serde_json::{Map, Value};

/// A policy or its binding. A binding has the name of its policy.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyObject {
    json: Value,
    comments: Option<PolicyComments>,
}

impl PolicyObject {
    /// Makes an object of JSON. Fields without a value are left out.
    pub(crate) fn new(json: Value, comments: Option<PolicyComments>) -> Self {
        Self { json: without_nothing(json), comments }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    /// Returns the kind, for example `MutatingAdmissionPolicy`.
    pub fn kind(&self) -> &str {
        self.text("/kind")
    }

    /// Returns the API version, for example `admissionregistration.k8s.io/v1`.
    pub fn api_version(&self) -> &str {
        self.text("/apiVersion")
    }

    fn text(&self, pointer: &str) -> &str {
        self.json.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the object as YAML, with comments for its reader.
    pub fn to_yaml(&self) -> String {
        yaml::write(&self.json, self.comments.as_ref())
    }

    /// Returns the object as JSON. Its keys are always in the same order.
    pub fn to_json(&self) -> Value {
        self.json.clone()
    }

    /// Returns the path of the first field in which an object differs from this one, for example `spec.validations[0].message`.
    /// `None` if the API server would treat both alike.
    ///
    /// The object is in a file or stored. It may have defaults of the API server, and more labels, annotations and metadata. Its
    /// kind and name are not compared, and its version only if it has one: an item of a list has none.
    pub fn difference_from(&self, object: &Value) -> Option<String> {
        policy_difference(&self.json, object)
    }
}

impl From<Value> for PolicyObject {
    /// Makes an object without comments.
    fn from(json: Value) -> Self {
        Self::new(json, None)
    }
}

/// Returns the path of the first field in which a policy or binding, in a file or stored, differs from the wanted one.
///
/// Compares as [`PolicyObject::difference_from`] does, and the wanted owners as well: an owner of that kind and name has to be
/// there once, with the same UID.
pub fn policy_difference(wanted: &Value, object: &Value) -> Option<String> {
    if object.get("apiVersion").is_some_and(|it| wanted.get("apiVersion") != Some(it)) {
        return Some("apiVersion".to_owned());
    }
    let metadata = ["labels", "annotations"].into_iter().find_map(|name| {
        let entries = |object: &Value| object.pointer(&format!("/metadata/{name}")).cloned().unwrap_or_default();
        let (wanted, present) = (entries(wanted), entries(object));
        let mut wanted = wanted.as_object().into_iter().flatten();
        let (key, _) = wanted.find(|(key, value)| present.get(key) != Some(value))?;
        Some(format!("metadata.{name}[{key}]"))
    });
    let owners = || {
        let is_there = |owner: &Value| {
            let is_at = |other: &&Value| ["kind", "name"].into_iter().all(|field| other.get(field) == owner.get(field));
            owners(object).filter(is_at).eq([owner])
        };
        (!owners(wanted).all(is_there)).then(|| "metadata.ownerReferences".to_owned())
    };
    let is_policy = wanted.get("kind").and_then(Value::as_str).is_some_and(|kind| !kind.ends_with("Binding"));
    let spec = |object: &Value| defaulted(object.get("spec").cloned().unwrap_or_default(), is_policy);
    metadata.or_else(owners).or_else(|| difference("spec", &spec(wanted), &spec(object)))
}

fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    object.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten()
}

/// Returns a spec as an API server stores it: without nulls and empty lists, and with its defaults. A field keeps its value in
/// every other place, whatever its name: a label may have the name of a field.
fn defaulted(spec: Value, is_policy: bool) -> Value {
    let mut spec = without_nothing(spec);
    let Some(fields) = spec.as_object_mut() else { return spec };
    let default = |object: &mut Map<String, Value>, field: &str, value: Value| {
        object.entry(field).or_insert(value);
    };
    if is_policy {
        default(fields, "failurePolicy", "Fail".into());
    }
    for field in ["matchConstraints", "matchResources"] {
        let Some(matched) = fields.get_mut(field).and_then(Value::as_object_mut) else { continue };
        default(matched, "matchPolicy", "Equivalent".into());
        for selector in ["namespaceSelector", "objectSelector"] {
            default(matched, selector, Map::new().into());
        }
        for rules in ["resourceRules", "excludeResourceRules"] {
            let rules = matched.get_mut(rules).and_then(Value::as_array_mut).into_iter().flatten();
            rules.filter_map(Value::as_object_mut).for_each(|rule| default(rule, "scope", "*".into()));
        }
    }
    spec
}

/// Removes the values that an API server does not store: nulls, empty lists, and the empty labels of a selector.
fn without_nothing(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| (name, without_nothing(value)));
            let is_nothing = |name: &str, value: &Value| match value {
                Value::Null => true,
                Value::Array(items) => items.is_empty(),
                Value::Object(labels) => name == "matchLabels" && labels.is_empty(),
                Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
            };
            fields.filter(|(name, value)| !is_nothing(name, value)).collect()
        }
        Value::Array(items) => items.into_iter().map(without_nothing).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

/// Returns the path of the first difference of two values at a path.
fn difference(path: &str, one: &Value, other: &Value) -> Option<String> {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let names = one.keys().chain(other.keys().filter(|name| !one.contains_key(*name)));
            names.into_iter().find_map(|name| {
                let path = format!("{path}.{name}");
                match (one.get(name), other.get(name)) {
                    (Some(one), Some(other)) => difference(&path, one, other),
                    _ => Some(path),
                }
            })
        }
        (Value::Array(one), Value::Array(other)) => {
            let pairs = one.iter().zip(other).enumerate();
            let mut differences =
                pairs.filter_map(|(index, (one, other))| difference(&format!("{path}[{index}]"), one, other));
            let longer = || (one.len() != other.len()).then(|| format!("{path}[{}]", one.len().min(other.len())));
            differences.next().or_else(longer)
        }
        (one, other) => (one != other).then(|| path.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wanted() -> PolicyObject {
        PolicyObject::from(json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "a", "labels": {"team": "x"}},
            "spec": {
                "matchConstraints": {"resourceRules": [{
                    "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["deployments"],
                }]},
                "validations": [{"expression": "true", "message": "m"}],
            },
        }))
    }

    /// Returns the wanted object as an API server stores it.
    fn stored() -> Value {
        let mut stored = wanted().to_json();
        stored["metadata"]["uid"] = "u".into();
        stored["metadata"]["labels"]["more"] = "y".into();
        stored["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/last-applied-configuration": "{}"});
        let spec = &mut stored["spec"];
        spec["failurePolicy"] = "Fail".into();
        spec["matchConstraints"]["matchPolicy"] = "Equivalent".into();
        spec["matchConstraints"]["namespaceSelector"] = json!({});
        spec["matchConstraints"]["objectSelector"] = json!({});
        spec["matchConstraints"]["resourceRules"][0]["scope"] = "*".into();
        stored["status"] = json!({"observedGeneration": 1});
        stored
    }

    #[test]
    fn defaults_of_the_api_server_and_foreign_metadata_are_no_difference() {
        assert_eq!(wanted().difference_from(&wanted().to_json()), None);
        assert_eq!(wanted().difference_from(&stored()), None);
        let mut item = stored();
        item.as_object_mut().unwrap().remove("apiVersion");
        assert_eq!(wanted().difference_from(&item), None);
    }

    #[test]
    fn the_first_difference_is_named() {
        for (pointer, value, path) in [
            ("/apiVersion", json!("admissionregistration.k8s.io/v1beta1"), "apiVersion"),
            ("/metadata/labels/team", json!("z"), "metadata.labels[team]"),
            ("/metadata/labels", json!({}), "metadata.labels[team]"),
            ("/spec/failurePolicy", json!("Ignore"), "spec.failurePolicy"),
            ("/spec/validations/0/expression", json!("false"), "spec.validations[0].expression"),
            ("/spec/validations", json!([]), "spec.validations"),
            ("/spec/validations", json!([{"expression": "true", "message": "m"}, {}]), "spec.validations[1]"),
            ("/spec/matchConstraints/namespaceSelector", json!({"a": 1}), "spec.matchConstraints.namespaceSelector.a"),
            // Labels with an empty value, and with the name and the default of a field.
            (
                "/spec/matchConstraints/objectSelector",
                json!({"matchLabels": {"a": ""}}),
                "spec.matchConstraints.objectSelector.matchLabels",
            ),
            (
                "/spec/matchConstraints/objectSelector",
                json!({"matchLabels": {"failurePolicy": "Fail"}}),
                "spec.matchConstraints.objectSelector.matchLabels",
            ),
            (
                "/spec/matchConstraints/namespaceSelector",
                json!({"matchExpressions": [{"key": "a", "operator": "In", "values": [""]}]}),
                "spec.matchConstraints.namespaceSelector.matchExpressions",
            ),
            (
                "/spec/matchConstraints/resourceRules/0/scope",
                json!("Cluster"),
                "spec.matchConstraints.resourceRules[0].scope",
            ),
            (
                "/spec/matchConstraints/resourceRules/0",
                json!({"scope": "*"}),
                "spec.matchConstraints.resourceRules[0].apiGroups",
            ),
            ("/spec/validations/0/messageExpression", json!(""), "spec.validations[0].messageExpression"),
            ("/spec/unknown", json!({}), "spec.unknown"),
            ("/spec/paramKind", json!({}), "spec.paramKind"),
            ("/spec", json!(null), "spec"),
        ] {
            let mut object = stored();
            let (parent, field) = pointer.rsplit_once('/').unwrap();
            let parent = object.pointer_mut(parent).unwrap();
            let place =
                if parent.is_array() { &mut parent[field.parse::<usize>().unwrap()] } else { &mut parent[field] };
            *place = value;
            assert_eq!(wanted().difference_from(&object).as_deref(), Some(path));
        }
        assert_eq!(wanted().difference_from(&json!("text")).as_deref(), Some("metadata.labels[team]"));
    }
}
