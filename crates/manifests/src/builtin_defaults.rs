//! The defaults of built-in kinds that no schema has, and the fields that an API server clears itself.

use kube_unions_core::field_path;
use kube_unions_core::names::GroupKind;
use kube_unions_core::schema::Schema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const TABLE: &str = include_str!("builtin_defaults.yaml");

/// The table of defaults.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct BuiltInDefaults(Vec<DefaultsOfKinds>);

/// The defaults of kinds that have the same part.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DefaultsOfKinds {
    /// Each kind as `Kind.group`, and the path of the part.
    kinds: BTreeMap<String, String>,
    defaults: Vec<DefaultRule>,
    cleared: Option<ClearedFields>,
}

/// The fields that an update clears if it changes another field and not them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClearedFields {
    by: String,
    /// Each field, and the values of the other one with which it stays.
    kept: BTreeMap<String, Vec<String>>,
}

/// The fields that objects at a place get if they lack them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DefaultRule {
    #[serde(default)]
    at: String,
    #[serde(default)]
    when: Map<String, Value>,
    only: Option<Vec<String>>,
    set: Map<String, Value>,
}

impl BuiltInDefaults {
    /// Reads the table.
    ///
    /// # Errors
    /// The table of this crate is not one, which its tests rule out.
    pub fn read() -> Result<Self, String> {
        serde_saphyr::from_str(TABLE).map_err(|error| error.to_string())
    }

    /// Adds the defaults of a kind to an object of its schema.
    pub fn add(&self, kind: &GroupKind, schema: &Schema, object: &mut Value) {
        fill_items(schema, object);
        for (base, DefaultsOfKinds { defaults, .. }) in self.of(kind) {
            for rule in defaults {
                at(object, base, &mut |part| at(part, &rule.at, &mut |object| rule.add(object)));
            }
        }
    }

    /// Returns the objects of a kind that are never missing, because their fields are no pointers in Go: the path of the object around each, and
    /// its name.
    pub fn never_missing(&self, kind: &GroupKind) -> impl Iterator<Item = (String, &str)> {
        self.of(kind).flat_map(|(base, DefaultsOfKinds { defaults, .. })| {
            let objects = defaults.iter().flat_map(|rule| rule.set.iter().map(|(name, value)| (&rule.at, name, value)));
            objects.filter(|(.., value)| **value == json!({})).map(move |(at, name, _)| {
                let steps: Vec<&str> = [base, at].into_iter().filter(|path| !path.is_empty()).collect();
                (steps.join("."), name.as_str())
            })
        })
    }

    /// Removes from the new object of an update what the API server clears itself.
    pub fn clear(&self, kind: &GroupKind, old: &Value, new: &mut Value) {
        for (base, DefaultsOfKinds { cleared, .. }) in self.of(kind) {
            let pointer = field_path::pointer(base.split('.'));
            if let (Some(cleared), Some(old), Some(new)) = (cleared, old.pointer(&pointer), new.pointer_mut(&pointer)) {
                cleared.clear(old, new);
            }
        }
    }

    /// Returns what the table has for a kind, each with the path of the part.
    fn of(&self, kind: &GroupKind) -> impl Iterator<Item = (&str, &DefaultsOfKinds)> {
        let kind = kind.to_string();
        self.0.iter().filter_map(move |of_kinds| Some((of_kinds.kinds.get(&kind)?.as_str(), of_kinds)))
    }
}

impl ClearedFields {
    fn clear(&self, old: &Value, new: &mut Value) {
        let value = |object: &Value| object.get(&self.by).and_then(Value::as_str).map(str::to_owned);
        let (before, after) = (value(old), value(new));
        let Some(fields) = new.as_object_mut() else { return };
        for (name, kept) in &self.kept {
            let keeps = |value: &Option<String>| value.as_ref().is_some_and(|value| kept.contains(value));
            if keeps(&before) && !keeps(&after) && fields.get(name) == old.get(name) {
                fields.shift_remove(name);
            }
        }
    }
}

impl DefaultRule {
    fn add(&self, object: &mut Value) {
        let Some(fields) = object.as_object_mut() else { return };
        let is = |name: &String, value: &Value| match fields.get(name) {
            found if value.is_null() => found.is_none_or(is_unset),
            found => found == Some(value),
        };
        let is_met = self.when.iter().all(|(name, value)| is(name, value))
            && self.only.as_ref().is_none_or(|only| fields.keys().all(|name| only.contains(name)));
        if is_met {
            fill(fields, &self.set);
        }
    }
}

/// Returns true for a value after which a text in Go is as empty as without it.
fn is_unset(value: &Value) -> bool {
    value.is_null() || value == ""
}

/// Makes the nulls in lists of objects empty objects, as Go's decoder does.
fn fill_items(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Some(schema) = schema.properties.get(name.as_str()).or(schema.additional_properties.as_deref()) {
                    fill_items(schema, value);
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = &schema.items else { return };
            for item in items {
                if item.is_null() && schema.type_name.as_deref() == Some("object") {
                    *item = json!({});
                }
                fill_items(schema, item);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Adds the fields that are missing, also in objects below.
fn fill(fields: &mut Map<String, Value>, defaults: &Map<String, Value>) {
    for (name, default) in defaults {
        match (fields.get_mut(name), default) {
            (Some(Value::Object(inner)), Value::Object(defaults)) => fill(inner, defaults),
            (Some(found), _) if !(found.is_null() || default.is_string() && is_unset(found)) => {}
            (Some(_) | None, _) => drop(fields.insert(name.clone(), default.clone())),
        }
    }
}

/// Calls `act` for each value at a path such as `{a,b}[*].c`.
fn at(value: &mut Value, path: &str, act: &mut dyn FnMut(&mut Value)) {
    if path.is_empty() {
        return act(value);
    }
    let (step, rest) = path.split_once('.').unwrap_or((path, ""));
    let (names, is_list) = step.strip_suffix("[*]").map_or((step, false), |names| (names, true));
    for name in names.trim_matches(['{', '}']).split(',') {
        match value.get_mut(name) {
            Some(Value::Array(items)) if is_list => items.iter_mut().for_each(|item| at(item, rest, act)),
            Some(inner) if !is_list => at(inner, rest, act),
            Some(_) | None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_update_clears_what_the_new_value_does_not_keep_unless_it_changes_that_too() {
        let table = BuiltInDefaults::read().unwrap();
        let service = |fields: Value| json!({"spec": fields});
        let balanced =
            json!({"type": "LoadBalancer", "loadBalancerClass": "a/b", "loadBalancerSourceRanges": ["10.0.0.0/8"]});
        for (given, want) in [
            (json!({"type": "ClusterIP", "loadBalancerClass": "a/b"}), json!({"type": "ClusterIP"})),
            (
                json!({"type": "ClusterIP", "loadBalancerClass": "a/c"}),
                json!({"type": "ClusterIP", "loadBalancerClass": "a/c"}),
            ),
            (balanced.clone(), balanced.clone()),
            (
                json!({"type": "NodePort", "loadBalancerClass": "a/b", "loadBalancerSourceRanges": ["10.0.0.0/8"]}),
                json!({"type": "NodePort", "loadBalancerSourceRanges": ["10.0.0.0/8"]}),
            ),
        ] {
            let mut new = service(given);
            table.clear(&GroupKind::new("", "Service"), &service(balanced.clone()), &mut new);
            assert_eq!(new, service(want));
        }
    }

    #[test]
    fn defaults_are_added_where_their_object_is_and_nothing_else_is_set() {
        let table = BuiltInDefaults::read().unwrap();
        let objects = json!({"properties": {"spec": {"properties": {
            "volumes": {"type": "array", "items": {"type": "object"}}, "names": {"type": "array", "items": {"type": "string"}},
        }}}});
        let schema: Schema = serde_json::from_value(objects).unwrap();
        let completed = |kind: &str, group: &str, mut object: Value| {
            table.add(&GroupKind::new(group, kind), &schema, &mut object);
            object
        };
        let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": 1}});
        for (kind, given, want) in [
            ("Deployment", json!({"strategy": {"rollingUpdate": {"maxSurge": 1}}}), json!({"strategy": rolling})),
            ("Deployment", json!({"strategy": {"type": "Recreate"}}), json!({"strategy": {"type": "Recreate"}})),
            (
                "StatefulSet",
                json!({}),
                json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}}),
            ),
            (
                "StatefulSet",
                json!({"updateStrategy": {"type": "RollingUpdate"}}),
                json!({"updateStrategy": {"type": "RollingUpdate"}}),
            ),
            (
                "Deployment",
                json!({"strategy": {"type": "", "rollingUpdate": {"maxSurge": 1}}}),
                json!({"strategy": rolling}),
            ),
            (
                "StatefulSet",
                json!({"updateStrategy": {"type": ""}}),
                json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}}),
            ),
            ("Other", json!({}), json!({})),
            ("Other", json!({"names": [null], "other": [null]}), json!({"names": [null], "other": [null]})),
        ] {
            assert_eq!(completed(kind, "apps", json!({"spec": given})), json!({"spec": want}));
        }
        let volumes = json!([{"name": "a"}, {"name": "b", "configMap": {}}, {"name": "c", "nfs": {}}, null]);
        let pod = completed("Pod", "", json!({"spec": {"volumes": volumes}}));
        let want = json!([{"name": "a", "emptyDir": {}}, {"name": "b", "configMap": {"defaultMode": 420}}, {"name": "c", "nfs": {}}, {"emptyDir": {}}]);
        assert_eq!(pod["spec"]["volumes"], want);
    }
}
