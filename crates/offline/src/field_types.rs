//! Finds values of a wrong type in objects of built-in kinds, where the API server does not decode the object: on the way to unions, and in place
//! of their discriminators and members.

use crate::help::HelpPage;
use crate::refused_field::RefusedField;
use kube_unions_core::catalog::CatalogEntry;
use kube_unions_core::field_path::{FieldPath, Segment};
use kube_unions_core::schema::Schema;
use kube_unions_core::union::{Part, Union, UnionStep};
use kube_unions_manifests::left_over;
use serde_json::Value;

/// Returns the values of another type than the schema has.
pub fn wrong_types(entry: &CatalogEntry, schema: &Schema, object: &Value) -> Vec<RefusedField> {
    let mut found = Vec::new();
    for place in entry.plan().places(Part::Main) {
        let root = TypedValue { schema, value: object, path: FieldPath::root(), is_keyed: false };
        root.check(&place.steps, place.unions, &mut found);
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    // Several unions may be of one object, or below one value.
    found.dedup();
    found
}

/// Returns a field with a value of one type in place of another.
fn refused(path: &FieldPath, found: JsonType, wanted: JsonType, is_keyed: bool) -> RefusedField {
    // The API server also says the number.
    let words = |into: &str| {
        if found == JsonType::Fraction {
            return "cannot unmarshal number".to_owned();
        }
        format!("cannot unmarshal {} into Go {into}", found.word())
    };
    RefusedField {
        path: path.clone(),
        message: format!("Invalid value: expected {}, got {}", wanted.noun(), found.noun()),
        line: format!("json: {}", words("struct field")),
        words_to_apply: match wanted.word_to_apply() {
            _ if is_keyed => "associative list with keys may not have non-map elements".to_owned(),
            Some(_) if found == JsonType::Fraction && wanted == JsonType::Number => "cannot convert float64".to_owned(),
            Some(word) => format!("expected {word}, got"),
            None => words("value"),
        },
        help: HelpPage::DECODE,
        reason: "FieldValueTypeInvalid",
    }
}

/// A type of a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JsonType {
    Object,
    List,
    Text,
    /// An integer: no union of a built-in kind has another number.
    Number,
    Fraction,
    Boolean,
    /// A number or a text.
    NumberOrText,
}

impl JsonType {
    /// `None` for null, which fits everywhere.
    fn of(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Null => return None,
            Value::Bool(_) => Self::Boolean,
            Value::Number(number) if number.as_f64().is_some_and(|number| number.fract() != 0.0) => Self::Fraction,
            Value::Number(_) => Self::Number,
            Value::String(_) => Self::Text,
            Value::Array(_) => Self::List,
            Value::Object(_) => Self::Object,
        })
    }

    /// `None` if the schema does not tell a type.
    fn wanted(schema: &Schema) -> Option<Self> {
        if schema.format.as_deref() == Some("int-or-string") {
            return Some(Self::NumberOrText);
        }
        match schema.type_name.as_deref()? {
            "object" => Some(Self::Object),
            "array" => Some(Self::List),
            "string" => Some(Self::Text),
            "integer" | "number" => Some(Self::Number),
            "boolean" => Some(Self::Boolean),
            _ => None,
        }
    }

    fn takes(self, found: Self) -> bool {
        self == found || self == Self::NumberOrText && matches!(found, Self::Number | Self::Text)
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Object => "an object",
            Self::List => "a list",
            Self::Text => "a string",
            Self::Number => "a number",
            Self::Fraction => "a fraction",
            Self::Boolean => "a boolean",
            Self::NumberOrText => "a number or a string",
        }
    }

    /// Returns the type in the words of Go's decoder.
    fn word(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::List => "array",
            Self::Text => "string",
            Self::Number | Self::Fraction | Self::NumberOrText => "number",
            Self::Boolean => "bool",
        }
    }

    /// Returns the type in the words of a server-side apply. `None`: it takes any scalar.
    fn word_to_apply(self) -> Option<&'static str> {
        match self {
            Self::Object => Some("map"),
            Self::List => Some("list"),
            Self::Text => Some("string"),
            Self::Number | Self::Fraction => Some("numeric (int or float)"),
            Self::Boolean => Some("boolean"),
            Self::NumberOrText => None,
        }
    }
}

/// A value on the way to a union, or in it, with its schema.
struct TypedValue<'v> {
    schema: &'v Schema,
    value: &'v Value,
    path: FieldPath,
    /// True for an item of a list with keys.
    is_keyed: bool,
}

impl<'v> TypedValue<'v> {
    fn then(&self, segment: Segment, schema: Option<&'v Schema>, value: Option<&'v Value>) -> Option<Self> {
        let mut path = self.path.clone();
        path.push(segment);
        Some(Self { schema: schema?, value: value?, path, is_keyed: false })
    }

    fn field(&self, name: &str) -> Option<Self> {
        self.then(Segment::Field(name.into()), self.schema.properties.get(name), self.value.get(name))
    }

    /// Returns the values behind a step.
    fn behind(&self, step: &UnionStep<'_>) -> Vec<Self> {
        match step {
            UnionStep::Field(name) => self.field(name).into_iter().collect(),
            UnionStep::Items { keys } => {
                let items = self.value.as_array().into_iter().flatten().enumerate();
                let item = |(at, item)| self.then(Segment::Index(at), self.schema.items.as_deref(), Some(item));
                items.filter_map(item).map(|item| Self { is_keyed: !keys.is_empty(), ..item }).collect()
            }
            UnionStep::Values => {
                let (values, schema) = (self.value.as_object(), self.schema.additional_properties.as_deref());
                let value =
                    |(name, value): (&String, _)| self.then(Segment::Key(name.as_str().into()), schema, Some(value));
                values.into_iter().flatten().filter_map(value).collect()
            }
        }
    }

    /// Adds the values of wrong types from this one to unions behind some steps, and in them.
    fn check(&self, steps: &[UnionStep<'_>], unions: &[Union], found: &mut Vec<RefusedField>) {
        let (Some(is), Some(wanted)) = (JsonType::of(self.value), JsonType::wanted(self.schema)) else { return };
        if !wanted.takes(is) {
            // A tool is to replace the text, perhaps by a value of the type.
            if self.value.as_str().is_none_or(|text| left_over(text).is_none()) {
                found.push(refused(&self.path, is, wanted, self.is_keyed));
            }
            return;
        }
        if let Some((step, rest)) = steps.split_first() {
            self.behind(step).iter().for_each(|inner| inner.check(rest, unions, found));
        } else {
            let fields = unions.iter().flat_map(|union| union.discriminator().into_iter().chain(union.members()));
            fields.filter_map(|name| self.field(name)).for_each(|field| field.check(&[], &[], found));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::built_in::{AddedUnions, BuiltInKinds};
    use kube_unions_core::names::GroupVersionKind;
    use kube_unions_manifests::{Assembly, BuiltinUnions, assemble};
    use serde_json::json;

    fn kinds() -> Assembly {
        let added = AddedUnions { published: BuiltinUnions::Ignored, presets: true };
        assemble(BuiltInKinds::read().unwrap().enforced(Vec::new(), None, added), BuiltinUnions::Ignored)
    }

    fn found(kinds: &Assembly, [group, version, kind]: [&str; 3], spec: &Value) -> Vec<String> {
        let gvk = GroupVersionKind { group: group.into(), version: version.into(), kind: kind.into() };
        let entry = kinds.catalog.lookup(group, version, kind).unwrap();
        let object = json!({"spec": spec});
        let found = wrong_types(entry, kinds.built_in_schema(&gvk).unwrap(), &object);
        found.iter().map(|it| format!("{}: {}; {}", it.path, it.message, it.words())).collect()
    }

    #[test]
    fn a_value_of_a_wrong_type_is_found_on_the_way_to_a_union_and_in_place_of_its_fields() {
        let kinds = kinds();
        let of_pod = |spec: Value| found(&kinds, ["", "v1", "Pod"], &spec);
        assert_eq!(
            of_pod(json!({"containers": [
                {"livenessProbe": {"httpGet": 8080}, "env": [{"value": 1}, {"value": null}, {"value": ""}], "lifecycle": []},
                "c",
            ], "volumes": {"a": {}}, "securityContext": {"seccompProfile": {"type": ["a"]}}})),
            [
                "spec.containers[0].env[0].value: Invalid value: expected a string, got a number; cannot unmarshal number into Go struct field",
                "spec.containers[0].lifecycle: Invalid value: expected an object, got a list; cannot unmarshal array into Go struct field",
                "spec.containers[0].livenessProbe.httpGet: Invalid value: expected an object, got a number; cannot unmarshal number into Go struct field",
                "spec.containers[1]: Invalid value: expected an object, got a string; cannot unmarshal string into Go struct field",
                "spec.securityContext.seccompProfile.type: Invalid value: expected a string, got a list; cannot unmarshal array into Go struct field",
                "spec.volumes: Invalid value: expected a list, got an object; cannot unmarshal object into Go struct field",
            ]
        );
    }

    #[test]
    fn null_and_what_a_tool_is_to_replace_are_of_any_type() {
        let kinds = kinds();
        let pod = json!({"containers": [null, {"livenessProbe": "${PROBE}", "env": null, "envFrom": "{{ .Values.envFrom }}"}], "volumes": "${A}"});
        assert_eq!(found(&kinds, ["", "v1", "Pod"], &pod), [""; 0]);
        for (value, number) in
            [(json!(1), 0), (json!("50%"), 0), (json!(true), 1), (json!([1]), 1), (json!(2.0), 0), (json!(0.5), 1)]
        {
            let budget = json!({"minAvailable": value});
            assert_eq!(found(&kinds, ["policy", "v1", "PodDisruptionBudget"], &budget).len(), number, "{value}");
        }
    }
}
