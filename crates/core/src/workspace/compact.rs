//! Shrinks the `spec` of a CRD to the fields that unions follow from: names, versions and structural schemas without
//! descriptions, formats and validations. The result reads like the original.
//!
//! Measured, in bytes, of the JSON text of `spec`:
//!
//! | CRD | stored | compact |
//! |---|---|---|
//! | `httproutes.gateway.networking.k8s.io`, two versions | 181,359 | 16,330 |
//! | `gateways.gateway.networking.k8s.io`, two versions | 67,992 | 8,417 |
//! | `globalnetworkpolicies.crd.projectcalico.org` | 28,599 | 3,904 |
//! | `felixconfigurations.crd.projectcalico.org` | 21,979 | 4,486 |
//! | `rollouts.samples.kube-unions.dev` | 3,073 | 1,249 |
//! | hostile: 2,000 unions | 311,003 | 311,003 |
//! | hostile: 30,000 fields with random names | 780,113 | 780,113 |
//! | hostile: an `enum` of random values, as large as etcd stores one | 1,545,107 | 1,545,107 |
//!
//! So 2,000 CRDs of a usual size take about 10 MiB. A hostile CRD takes no more than etcd stores of it, which is less than
//! the plans of the unions that fit into it.
//!
//! Knows the shape of a CRD, not its meaning: [`job`](super::job) reads the schemas.

use serde_json::Value;

/// Returns the JSON text of a CRD's `spec` without the fields that nothing reads, if that is shorter. A text that a parser refuses
/// is returned as it is.
pub(super) fn compact(spec: &str) -> String {
    let shrunk = serde_json::from_str(spec).ok().map(|mut value| {
        CrdLevel::Spec.shrink(&mut value);
        value.to_string()
    });
    shrunk.filter(|shrunk| shrunk.len() < spec.len()).unwrap_or_else(|| spec.to_owned())
}

/// An object in the `spec` of a CRD, or a list of such objects.
#[derive(Clone, Copy)]
enum CrdLevel {
    Spec,
    Version,
    /// `schema` of a version.
    Validation,
    Schema,
    /// `properties` of a schema.
    Properties,
}

/// The treatment of a field.
enum Keep {
    Nothing,
    /// The value as it is.
    Whole,
    /// The value, shrunk.
    Part(CrdLevel),
}

impl CrdLevel {
    fn keep(self, field: &str) -> Keep {
        match (self, field) {
            (Self::Spec, "versions") => Keep::Part(Self::Version),
            (Self::Version, "schema") => Keep::Part(Self::Validation),
            (Self::Schema, "properties") => Keep::Part(Self::Properties),
            (Self::Validation, "openAPIV3Schema")
            | (Self::Properties, _)
            | (Self::Schema, "items" | "additionalProperties") => Keep::Part(Self::Schema),
            (Self::Spec, "group" | "names" | "scope")
            | (Self::Version, "name" | "served" | "subresources")
            | (
                Self::Schema,
                "type"
                | "required"
                | "enum"
                | "default"
                | "nullable"
                | "x-kubernetes-list-type"
                | "x-kubernetes-list-map-keys"
                | "x-kubernetes-map-type"
                | "x-kubernetes-patch-strategy"
                | "x-kubernetes-patch-merge-key"
                | "x-kubernetes-recommended-patch-merge-key"
                | "x-kubernetes-preserve-unknown-fields"
                | "x-kubernetes-embedded-resource"
                | "x-kubernetes-unions",
            ) => Keep::Whole,
            (Self::Spec | Self::Version | Self::Validation | Self::Schema, _) => Keep::Nothing,
        }
    }
    /// Removes the fields of an object, or of a list of objects, that nothing reads.
    fn shrink(self, value: &mut Value) {
        match value {
            Value::Object(fields) => fields.retain(|name, value| match self.keep(name) {
                Keep::Nothing => false,
                Keep::Whole => true,
                Keep::Part(level) => {
                    level.shrink(value);
                    true
                }
            }),
            Value::Array(items) => items.iter_mut().for_each(|item| self.shrink(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[track_caller]
    fn shrinks(spec: &Value, expected: &Value) {
        let compact = compact(&spec.to_string());
        assert_eq!(serde_json::from_str::<Value>(&compact).unwrap(), *expected);
    }

    fn with_schema(schema: &Value) -> Value {
        json!({"group": "g", "versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]})
    }

    #[test]
    fn descriptions_and_validations_go_and_the_structure_stays() {
        let described = json!({
            "description": "…", "type": "object", "required": ["a"], "x-kubernetes-validations": [{"rule": "true"}],
            "properties": {
                "description": {"type": "string", "description": "a field of this name", "enum": ["x", 1.5], "pattern": "x"},
                "a": {"type": "array", "items": {"type": "string", "maxLength": 3}, "x-kubernetes-list-type": "set"},
                "b": {"additionalProperties": {"type": "integer", "format": "int32", "nullable": true}, "default": {"description": "kept"}},
                "c": {"additionalProperties": true, "allOf": [{"required": ["z"]}]},
            },
        });
        let structure = json!({
            "type": "object", "required": ["a"],
            "properties": {
                "description": {"type": "string", "enum": ["x", 1.5]},
                "a": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                "b": {"additionalProperties": {"type": "integer", "nullable": true}, "default": {"description": "kept"}},
                "c": {"additionalProperties": true},
            },
        });
        shrinks(&with_schema(&described), &with_schema(&structure));
        let whole = json!({
            "group": "g", "names": {"kind": "K"}, "scope": "Cluster", "conversion": {"strategy": "None"},
            "versions": [{"name": "v1", "served": true, "storage": true, "deprecated": false, "subresources": {"status": {}}}],
        });
        let kept = json!({
            "group": "g", "names": {"kind": "K"}, "scope": "Cluster",
            "versions": [{"name": "v1", "served": true, "subresources": {"status": {}}}],
        });
        shrinks(&whole, &kept);
    }

    #[test]
    fn malformed_values_stay_so_that_reading_them_fails_in_the_same_way() {
        for odd in [json!(7), json!(-7), json!(1.5), json!("text"), json!(null), json!([]), json!([{}, 1]), json!({})] {
            shrinks(&odd, &odd);
            shrinks(&with_schema(&odd), &with_schema(&odd));
            let properties = json!({"properties": odd.clone(), "items": odd});
            shrinks(&with_schema(&properties), &with_schema(&properties));
        }
        let deep = |levels: usize| {
            let schema = "{\"items\":".repeat(levels) + "{}" + &"}".repeat(levels);
            format!(r#"{{"versions":[{{"schema":{{"openAPIV3Schema":{schema}}}}}]}}"#)
        };
        for text in ["", "{", "{\"group\": 1,,}", deep(100).as_str(), deep(5_000).as_str()] {
            assert!(compact(text) == text, "{} bytes", text.len());
        }
    }
}
