//! Fields of built-in kinds that the API server takes only beside some values of others, and that no union tells.

use crate::help::HelpPage;
use crate::refused_field::RefusedField;
use crate::sentences::words_of;
use kube_unions_core::field_path::{FieldPath, Segment};
use kube_unions_core::names::GroupVersionKind;
use kube_unions_core::union::is_empty_value;
use kube_unions_manifests::left_over;
use serde_json::{Map, Value, json};

/// A field of `spec` that the API server refuses.
#[derive(Debug)]
struct FieldRule {
    /// The kind, of the core group.
    kind: &'static str,
    /// The steps from `spec` to the field: names, and `*` for each item of a list.
    field: &'static [&'static str],
    /// The only value that is refused. Empty: every value but an empty one.
    value: &'static str,
    /// The fields of `spec` that must have one of these values for a refusal. An empty text stands for an empty value and for a missing field.
    when: &'static [(&'static str, &'static [&'static str])],
    /// True if the API server clears the field of an update that does not change it.
    is_cleared: bool,
    /// The message of the API server, behind the path. `…` stands for a value.
    line: &'static str,
}

/// `ValidateService` of Kubernetes 1.36. An end-to-end test tries every field with every type.
static RULES: [FieldRule; 5] = [
    FieldRule {
        kind: "Service",
        field: &["externalTrafficPolicy"],
        value: "",
        when: &[("type", &["", "ClusterIP"]), ("externalIPs", &[""])],
        is_cleared: true,
        line: "Invalid value: …: may only be set for externally-accessible services",
    },
    FieldRule {
        kind: "Service",
        field: &["healthCheckNodePort"],
        value: "",
        when: &[("type", &["LoadBalancer"]), ("externalTrafficPolicy", &["", "Cluster"])],
        is_cleared: true,
        line: "Invalid value: …: may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
    },
    FieldRule {
        kind: "Service",
        field: &["ports", "*", "nodePort"],
        value: "",
        when: &[("type", &["", "ClusterIP"])],
        is_cleared: true,
        line: "Forbidden: may not be used when `type` is 'ClusterIP'",
    },
    FieldRule {
        kind: "Service",
        field: &["clusterIP"],
        value: "None",
        when: &[("type", &["NodePort"])],
        is_cleared: false,
        line: "Invalid value: …: may not be set to 'None' for NodePort services",
    },
    FieldRule {
        kind: "Service",
        field: &["clusterIP"],
        value: "None",
        when: &[("type", &["LoadBalancer"])],
        is_cleared: false,
        line: "Invalid value: …: may not be set to 'None' for LoadBalancer services",
    },
];

/// The rules of a kind.
fn rules_of(kind: &GroupVersionKind) -> impl Iterator<Item = &'static FieldRule> {
    RULES.iter().filter(move |rule| kind.group.is_empty() && *kind.kind == *rule.kind)
}

/// Returns the fields that the API server refuses in an object, which has its defaults.
pub(crate) fn refused_fields(kind: &GroupVersionKind, old: Option<&Value>, new: &Value) -> Vec<RefusedField> {
    rules_of(kind).flat_map(|rule| rule.refused_fields(old, new)).collect()
}

/// Adds the rules of a kind to its JSON schema.
pub fn add_to_json_schema(kind: &GroupVersionKind, schema: &mut Value) {
    let rules: Vec<Value> = rules_of(kind).map(FieldRule::to_json_schema).collect();
    if let Some(spec) =
        schema.pointer_mut("/properties/spec").and_then(Value::as_object_mut).filter(|_| !rules.is_empty())
    {
        let all = spec.entry("allOf").or_insert_with(|| json!([]));
        if let Some(all) = all.as_array_mut() {
            all.extend(rules);
        }
    }
}

impl FieldRule {
    fn refused_fields(&self, old: Option<&Value>, new: &Value) -> Vec<RefusedField> {
        let (Some(spec), old) = (new.get("spec"), old.and_then(|old| old.get("spec"))) else { return Vec::new() };
        let found = self.values(spec);
        let is_left = |old: &Value| {
            let before = self.values(old);
            !self.fits(old) && found.iter().all(|(_, value)| before.iter().any(|(_, before)| before == value))
        };
        if !self.fits(spec) || self.is_cleared && old.is_some_and(is_left) {
            return Vec::new();
        }
        found.into_iter().map(|(path, _)| self.refused(path)).collect()
    }

    /// Returns true if the other fields of a `spec` have the values of the rule.
    fn fits(&self, spec: &Value) -> bool {
        self.when.iter().all(|(name, values)| {
            let value = spec.get(name).filter(|value| !is_unset(value));
            value.map_or(values.contains(&""), |value| value.as_str().is_some_and(|value| values.contains(&value)))
        })
    }

    fn refused(&self, path: FieldPath) -> RefusedField {
        RefusedField {
            path,
            message: self.message(),
            line: self.line.to_owned(),
            words_to_apply: words_of(self.line).to_owned(),
            help: HelpPage::SERVICE,
            reason: "FieldValueForbidden",
        }
    }

    /// Returns the sentence of kube-unions, for example ``Forbidden: may not be set while `type` is "ClusterIP"``.
    fn message(&self) -> String {
        let quoted = if self.value.is_empty() { String::new() } else { format!(" to \"{}\"", self.value) };
        let condition = |(name, values): &(&str, &[&str])| match values.last().filter(|last| !last.is_empty()) {
            Some(value) => format!("`{name}` is \"{value}\""),
            None => format!("`{name}` is empty"),
        };
        let conditions: Vec<String> = self.when.iter().map(condition).collect();
        format!("Forbidden: may not be set{quoted} while {}", conditions.join(" and "))
    }

    /// Returns the values of the field that are refused if the others fit, with their paths.
    fn values<'v>(&self, spec: &'v Value) -> Vec<(FieldPath, &'v Value)> {
        let root = (FieldPath::from_iter([Segment::Field("spec".into())]), spec);
        let step = |all: Vec<(FieldPath, &'v Value)>, step: &&str| {
            let inside = |(path, value): (FieldPath, &'v Value)| {
                let then =
                    move |segment: Segment| path.segments().iter().cloned().chain([segment]).collect::<FieldPath>();
                let items: Vec<(FieldPath, &'v Value)> = match value.as_array().filter(|_| *step == "*") {
                    Some(items) => {
                        items.iter().enumerate().map(|(index, item)| (then(Segment::Index(index)), item)).collect()
                    }
                    None => {
                        value.get(step).map(|value| (then(Segment::Field((*step).into())), value)).into_iter().collect()
                    }
                };
                items
            };
            all.into_iter().flat_map(inside).collect()
        };
        let mut found = self.field.iter().fold(vec![root], step);
        // A tool is to replace the text, perhaps by nothing.
        let is_known = |value: &Value| value.as_str().is_none_or(|text| left_over(text).is_none());
        found.retain(|(_, value)| is_known(value));
        found.retain(|(_, value)| if self.value.is_empty() { !is_unset(value) } else { *value == self.value });
        found
    }

    /// Returns a schema of `spec` that refuses the field.
    fn to_json_schema(&self) -> Value {
        let refused =
            if self.value.is_empty() { json!({"not": {"enum": [null, "", 0]}}) } else { json!({"const": self.value}) };
        let field = self.field.iter().rev().fold(refused, |inner, step| match *step {
            "*" => json!({"type": "array", "contains": inner}),
            name => json!({"type": "object", "required": [name], "properties": {name: inner}}),
        });
        let condition = |(name, values): &(&str, &[&str])| {
            let texts = values.iter().map(|&value| Value::from(value)).chain([Value::Null, json!([])]);
            let is_optional = values.contains(&"");
            let allowed: Vec<Value> =
                texts.filter(|value| is_optional || value.as_str().is_some_and(|it| !it.is_empty())).collect();
            let required: Vec<&str> = (!is_optional).then_some(*name).into_iter().collect();
            json!({"required": required, "properties": {*name: {"enum": allowed}}})
        };
        let all: Vec<Value> = self.when.iter().map(condition).chain([field]).collect();
        json!({"if": {"allOf": all}, "then": Map::from_iter([
            ("not".to_owned(), json!({})),
            ("errorMessage".to_owned(), format!("{}: {}", self.field.join("."), self.message()).into()),
        ])})
    }
}

/// Returns true for a value that the API server takes for a missing field.
fn is_unset(value: &Value) -> bool {
    value.is_null() || is_empty_value(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(old: Option<Value>, new: Value) -> Vec<String> {
        let kind = GroupVersionKind { group: "".into(), version: "v1".into(), kind: "Service".into() };
        let [old, new] = [old, Some(new)].map(|spec| spec.map(|spec| json!({"spec": spec})));
        let found = refused_fields(&kind, old.as_ref(), &new.unwrap());
        found.iter().map(|it| format!("{}: {}", it.path, it.message)).collect()
    }

    #[test]
    fn a_field_is_refused_beside_the_values_of_its_rule_alone() {
        let ports = json!([{"port": 80}, {"port": 81, "nodePort": 30080}]);
        let new = json!({"type": "ClusterIP", "ports": ports, "externalTrafficPolicy": "Local", "externalIPs": []});
        assert_eq!(
            refused(None, new),
            [
                "spec.externalTrafficPolicy: Forbidden: may not be set while `type` is \"ClusterIP\" and `externalIPs` is empty",
                "spec.ports[1].nodePort: Forbidden: may not be set while `type` is \"ClusterIP\"",
            ]
        );
        for valid in [
            json!({"type": "ClusterIP", "externalTrafficPolicy": "Local", "externalIPs": ["192.0.2.1"]}),
            json!({"type": "ClusterIP", "externalTrafficPolicy": "", "ports": [{"nodePort": 0}, {"nodePort": null}]}),
            json!({"type": "NodePort", "externalTrafficPolicy": "Local", "ports": [{"nodePort": 30080}]}),
            json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 30999}),
            json!({"type": "${TYPE}", "externalTrafficPolicy": "Local", "clusterIP": "None"}),
            json!({"type": "ClusterIP", "externalTrafficPolicy": "${POLICY}", "clusterIP": "None"}),
            json!({"type": "NodePort", "clusterIP": "10.0.0.1"}),
            json!({"type": ["ClusterIP"], "ports": {"nodePort": 1}}),
        ] {
            assert_eq!(refused(None, valid.clone()), [""; 0], "{valid}");
        }
    }

    #[test]
    fn a_field_that_an_update_leaves_alone_is_cleared_and_not_refused() {
        let old =
            |port| json!({"type": "NodePort", "ports": [{"nodePort": 30080}, {"nodePort": port}], "clusterIP": "None"});
        let new = json!({"type": "ClusterIP", "ports": [{"nodePort": 30081}]});
        assert_eq!(refused(Some(old(30081)), new.clone()), [""; 0]);
        assert_eq!(refused(Some(old(30082)), new.clone()).len(), 1);
        let headless = json!({"type": "NodePort", "clusterIP": "None"});
        assert_eq!(refused(Some(old(30081)), headless).len(), 1, "this field is not cleared");
        assert_eq!(refused(Some(new.clone()), new).len(), 1, "no API server has stored the old object");
    }
}
