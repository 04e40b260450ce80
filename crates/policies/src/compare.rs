//! Compares policies with stored ones, to which the API server has added its defaults.

use crate::object::PolicyObject;
use serde_json::Value;

/// The values that the API server sets where a policy has none, by the name of their field.
const DEFAULTS: [(&str, &str); 3] = [("matchPolicy", "Equivalent"), ("failurePolicy", "Fail"), ("scope", "*")];

impl PolicyObject {
    /// Returns the path of the first field in which an object differs from this one, for example `spec.validations[0].message`.
    /// `None` if the API server would treat both alike.
    ///
    /// The object is in a file or stored. It may have defaults of the API server, and more labels, annotations and metadata. Its
    /// kind and name are not compared, and its version only if it has one: an item of a list has none.
    pub fn difference_from(&self, object: &Value) -> Option<String> {
        let wanted = self.to_json();
        if object.get("apiVersion").is_some_and(|it| wanted.get("apiVersion") != Some(it)) {
            return Some("apiVersion".to_owned());
        }
        let metadata = ["labels", "annotations"].into_iter().find_map(|name| {
            let entries = |object: &Value| object.pointer(&format!("/metadata/{name}")).cloned().unwrap_or_default();
            let (wanted, present) = (entries(&wanted), entries(object));
            let mut wanted = wanted.as_object().into_iter().flatten();
            let (key, _) = wanted.find(|(key, value)| present.get(key) != Some(value))?;
            Some(format!("metadata.{name}[{key}]"))
        });
        let spec = |object: &Value| canonical(object.get("spec").cloned().unwrap_or_default());
        metadata.or_else(|| difference("spec", &spec(&wanted), &spec(object)))
    }
}

/// Removes the values that mean the same as their absence.
fn canonical(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| (name, canonical(value)));
            fields.filter(|(name, value)| !is_absent(name, value)).collect()
        }
        Value::Array(items) => items.into_iter().map(canonical).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

fn is_absent(name: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::String(text) => DEFAULTS.contains(&(name, text)),
        Value::Bool(_) | Value::Number(_) => false,
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
    use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
    use serde_json::json;

    fn wanted() -> PolicyObject {
        let policy: ValidatingAdmissionPolicy = serde_json::from_value(json!({
            "metadata": {"name": "a", "labels": {"team": "x"}},
            "spec": {
                "matchConstraints": {"resourceRules": [{
                    "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["deployments"],
                }]},
                "validations": [{"expression": "true", "message": "m"}],
            },
        }))
        .unwrap();
        PolicyObject::ValidatingPolicy(Box::new(policy))
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
            ("/spec/matchConstraints/namespaceSelector", json!({"a": 1}), "spec.matchConstraints.namespaceSelector"),
            ("/spec", json!(null), "spec"),
        ] {
            let mut object = stored();
            *object.pointer_mut(pointer).unwrap() = value;
            assert_eq!(wanted().difference_from(&object).as_deref(), Some(path));
        }
        assert_eq!(wanted().difference_from(&json!("text")).as_deref(), Some("metadata.labels[team]"));
    }
}
