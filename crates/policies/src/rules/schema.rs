//! The raw schema of a version: the objects with unions in it, and how often an API server assumes that each occurs.

use super::expression::{Emptiness, Expression, TextField};
use crate::options::RuleForm;
use crate::refusal::RefusalReason;
use kube_unions_core::schema::cel_name::escape;
use kube_unions_core::union::UnionStep;
use serde_json::Value;

/// Largest request that an API server assumes, in bytes.
const LARGEST_REQUEST: u64 = 3 * 1024 * 1024;

/// Formats of strings that CEL does not read as strings.
const NOT_STRINGS: [&str; 4] = ["byte", "date", "date-time", "duration"];

/// The schema of an object with unions.
#[derive(Debug)]
pub(super) struct PlacedSchema<'s> {
    pub(super) form: RuleForm,
    node: &'s Value,
    /// The keys that lead from the root of the schema to the object.
    pub(super) path: Vec<String>,
    pub(super) occurrence: Occurrence,
}

/// The number of times that an object can occur, as an API server estimates it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Occurrence {
    pub(super) times: u64,
    /// The outermost list or map around the object that has no limit, with the keyword that would set one. If all have limits,
    /// the one with the largest. `None` outside lists and maps.
    pub(super) container: Option<(String, &'static str)>,
    /// True if all lists and maps have limits.
    pub(super) bounded: bool,
}

#[derive(Debug)]
pub(super) struct DiscriminatorSchema {
    /// Length of the longest value, without regard to an enum.
    pub(super) longest: Option<u64>,
    /// The values that the schema allows, if it has an enum. Those of a boolean are texts, as the union has them.
    pub(super) values: Option<Vec<Value>>,
    pub(super) nullable: bool,
    pub(super) required: bool,
}

impl<'s> PlacedSchema<'s> {
    /// Finds the object that steps lead to.
    ///
    /// An API server evaluates rules in CEL only if every schema around them has a type.
    pub(super) fn find(form: RuleForm, root: &'s Value, steps: &[UnionStep<'_>]) -> Result<Self, RefusalReason> {
        let missing =
            || if form == RuleForm::Cel { RefusalReason::UntypedPlace } else { RefusalReason::UndescribedPlace };
        let (mut node, mut path, mut shown) = (root, Vec::new(), String::new());
        let mut limits: Vec<(Option<u64>, (String, &'static str))> = Vec::new();
        for step in steps {
            let is_typed = |name| form != RuleForm::Cel || text(node, "type") == Some(name);
            let next = match step {
                UnionStep::Field(name) if is_typed("object") => {
                    path.extend(["properties".to_owned(), (*name).to_owned()]);
                    let dot = if shown.is_empty() { "" } else { "." };
                    shown = format!("{shown}{dot}{name}");
                    node.get("properties").and_then(|properties| properties.get(*name))
                }
                UnionStep::Items { .. } if is_typed("array") => {
                    limits.push((node.get("maxItems").and_then(limit), (shown.clone(), "maxItems")));
                    path.push("items".to_owned());
                    shown.push_str("[*]");
                    node.get("items")
                }
                UnionStep::Values if is_typed("object") => {
                    limits.push((node.get("maxProperties").and_then(limit), (shown.clone(), "maxProperties")));
                    path.push("additionalProperties".to_owned());
                    shown.push_str(".*");
                    node.get("additionalProperties")
                }
                UnionStep::Field(_) | UnionStep::Items { .. } | UnionStep::Values => None,
            };
            node = next.filter(|next| next.is_object()).ok_or_else(missing)?;
        }
        if form == RuleForm::Cel && text(node, "type") != Some("object") {
            return Err(missing());
        }
        let times = limits.iter().try_fold(1, |times: u64, (limit, _)| Some(times.saturating_mul((*limit)?)));
        let decisive = match times {
            Some(_) => limits.into_iter().max_by_key(|(limit, _)| *limit),
            None => limits.into_iter().find(|(limit, _)| limit.is_none()),
        };
        let occurrence = Occurrence {
            times: times.unwrap_or_else(|| LARGEST_REQUEST / smallest_object(node).saturating_add(1)),
            container: decisive.map(|(_, container)| container),
            bounded: times.is_some(),
        };
        Ok(Self { form, node, path, occurrence })
    }

    /// Fails if a rule cannot read a field.
    pub(super) fn readable(&self, name: &str) -> Result<(), RefusalReason> {
        let property = self.property(name);
        match self.form {
            RuleForm::Cel if escape(name).is_none() => Err(RefusalReason::UnreadableName(name.to_owned())),
            RuleForm::Cel if property.and_then(smallest).is_none() => Err(RefusalReason::UntypedField(name.to_owned())),
            // A keyword inside `allOf` may only be about a field that the schema describes outside.
            RuleForm::OpenApi if property.is_none() => Err(RefusalReason::UndescribedField(name.to_owned())),
            RuleForm::Cel | RuleForm::OpenApi | RuleForm::JsonSchema => Ok(()),
        }
    }

    /// Returns true if a member is set: it is there, and if `empty_is_unset`, it is not empty.
    pub(super) fn is_set(&self, name: &str, empty_is_unset: bool) -> Result<Expression, RefusalReason> {
        self.readable(name)?;
        let has = Expression::Has(name.to_owned());
        if !empty_is_unset {
            return Ok(has);
        }
        let property = self.property(name).unwrap_or(&Value::Null);
        let has_format = text(property, "format").is_some_and(|it| NOT_STRINGS.contains(&it));
        let is_map = property.get("additionalProperties").is_some_and(Value::is_object);
        let emptiness = match text(property, "type") {
            _ if is_true(property, "x-kubernetes-int-or-string") => &[Emptiness::Integer, Emptiness::Text][..],
            Some("boolean") => &[Emptiness::Boolean],
            Some("integer") => &[Emptiness::Integer],
            Some("number") => &[Emptiness::Real],
            Some("string") if !has_format || self.form != RuleForm::Cel => &[Emptiness::Text],
            Some("array") => &[Emptiness::List],
            Some("object") if is_map => &[Emptiness::Map],
            _ if self.form == RuleForm::Cel => return Err(RefusalReason::UnknownEmptiness(name.to_owned())),
            Some("object") => &[Emptiness::Fields],
            _ => &[Emptiness::Unknown],
        };
        let is_filled = emptiness.iter().map(|it| Expression::IsFilled(name.to_owned(), *it));
        Ok(Expression::And(std::iter::once(has).chain(is_filled).collect()))
    }

    /// Returns true if a field may be null. One that the schema does not describe may.
    pub(super) fn is_nullable(&self, name: &str) -> bool {
        self.property(name).is_none_or(|property| is_true(property, "nullable"))
    }

    pub(super) fn discriminator(&self, name: &str) -> Result<DiscriminatorSchema, RefusalReason> {
        self.readable(name)?;
        let property = self.property(name).unwrap_or(&Value::Null);
        let format = text(property, "format").filter(|_| self.form == RuleForm::Cel);
        if let Some(format) = format.filter(|format| NOT_STRINGS.contains(format)) {
            return Err(RefusalReason::DiscriminatorFormat { name: name.to_owned(), format: format.to_owned() });
        }
        let values = property.get("enum").and_then(Value::as_array).filter(|values| !values.is_empty());
        let is_boolean = text(property, "type") == Some("boolean");
        let booleans = is_boolean.then(|| vec!["false".into(), "true".into()]);
        Ok(DiscriminatorSchema {
            longest: property.get("maxLength").and_then(limit).map(|length| length.saturating_mul(4)),
            values: booleans.or_else(|| values.cloned()),
            nullable: self.is_nullable(name),
            required: required(self.node).any(|required| required == name),
        })
    }

    fn property(&self, name: &str) -> Option<&'s Value> {
        self.node.get("properties")?.get(name)
    }
}

impl DiscriminatorSchema {
    /// Returns the field of a discriminator, if these are the values that the schema allows.
    pub(super) fn field<'v>(&self, name: &str, values: Option<impl IntoIterator<Item = &'v str>>) -> TextField {
        let longest = |values: Option<_>| {
            let values = Option::into_iter(values).flatten();
            values.map(str::len).max().map(|length| u64::try_from(length).unwrap_or(u64::MAX))
        };
        let longest = self.longest.or_else(|| longest(values)).unwrap_or(LARGEST_REQUEST - 2);
        TextField { name: name.to_owned(), longest }
    }
}

fn limit(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_i64().map(|_| 0))
}

fn text<'s>(node: &'s Value, keyword: &str) -> Option<&'s str> {
    node.get(keyword).and_then(Value::as_str)
}

fn is_true(node: &Value, keyword: &str) -> bool {
    node.get(keyword) == Some(&Value::Bool(true))
}

fn required(node: &Value) -> impl Iterator<Item = &str> {
    node.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Returns the length of the shortest JSON text of a value, as an API server estimates it. Returns `None` if expressions cannot
/// read the value, because it has no type.
fn smallest(schema: &Value) -> Option<u64> {
    if is_true(schema, "x-kubernetes-int-or-string") {
        return Some(1);
    }
    match text(schema, "type")? {
        "array" => smallest(schema.get("items")?).map(|_| 2),
        "object" => match schema.get("additionalProperties").filter(|values| values.is_object()) {
            Some(values) => smallest(values).map(|_| 2),
            None => Some(smallest_object(schema)),
        },
        "string" => Some(match text(schema, "format") {
            Some("duration") => 3,
            Some("date") => 12,
            Some("date-time") => 21,
            _ => 2,
        }),
        "boolean" => Some(4),
        "number" | "integer" => Some(1),
        _ => None,
    }
}

/// Returns the length of the shortest JSON text of an object: that of its required fields without defaults.
fn smallest_object(schema: &Value) -> u64 {
    let is_resource = is_true(schema, "x-kubernetes-embedded-resource");
    required(schema).fold(2, |sum: u64, name| {
        let property = schema.get("properties").and_then(|properties| properties.get(name));
        let size = match property {
            Some(property) if property.get("default").is_none_or(Value::is_null) => smallest(property),
            None if is_resource && ["apiVersion", "kind", "metadata"].contains(&name) => Some(2),
            _ => None,
        };
        let field = |size: u64| size.saturating_add(u64::try_from(name.len()).unwrap_or(u64::MAX)).saturating_add(4);
        sum.saturating_add(size.map_or(0, field))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn occurrence(list: &Value) -> Occurrence {
        let root = json!({"type": "object", "properties": {"l": list}});
        let steps = [UnionStep::Field("l"), UnionStep::Items { keys: vec![] }];
        PlacedSchema::find(RuleForm::Cel, &root, &steps).unwrap().occurrence
    }

    #[test]
    fn an_item_without_a_limit_occurs_as_often_as_a_request_can_hold_it() {
        let mut list = json!({"type": "array", "items": {"type": "object", "required": ["name", "n", "d"], "properties": {
            "name": {"type": "string"}, "n": {"type": "integer"}, "d": {"type": "string", "default": "d"}}}});
        let found = occurrence(&list);
        assert_eq!(found.times, 3 * 1024 * 1024 / (2 + 10 + 6 + 1));
        assert_eq!(found.container, Some(("l".to_owned(), "maxItems")));
        assert!(!found.bounded);
        list["maxItems"] = json!(7);
        let found = occurrence(&list);
        assert!(found.times == 7 && found.bounded && found.container.is_some());
    }

    #[test]
    fn limits_around_an_object_multiply() {
        let root = json!({"type": "object", "properties": {"m": {"type": "object", "maxProperties": 5, "additionalProperties": {
            "type": "array", "maxItems": 100, "items": {"type": "object"}}}}});
        let steps = [UnionStep::Field("m"), UnionStep::Values, UnionStep::Items { keys: vec![] }];
        let found = PlacedSchema::find(RuleForm::Cel, &root, &steps).unwrap();
        assert_eq!(found.occurrence.times, 500);
        assert_eq!(found.occurrence.container, Some(("m.*".to_owned(), "maxItems")));
        assert_eq!(found.path, ["properties", "m", "additionalProperties", "items"]);
    }

    #[test]
    fn a_place_or_field_without_a_type_is_refused() {
        let root = json!({"type": "object", "properties": {
            "loose": {"x-kubernetes-preserve-unknown-fields": true, "properties": {"o": {"type": "object"}}},
            "o": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {"type": "array", "items": {}}, "b": {
                "type": "object"}, "i": {"x-kubernetes-int-or-string": true}, "u": {"x-kubernetes-preserve-unknown-fields": true}, "d": {"type": "string", "format": "date"}}}}});
        let find = |steps: &[&str]| {
            let steps: Vec<_> = steps.iter().map(|name| UnionStep::Field(name)).collect();
            PlacedSchema::find(RuleForm::Cel, &root, &steps)
        };
        assert_eq!(find(&["loose", "o"]).unwrap_err(), RefusalReason::UntypedPlace);
        let object = find(&["o"]).unwrap();
        assert!(object.readable("b").is_ok() && object.readable("i").is_ok());
        for name in ["a", "u", "gone"] {
            assert_eq!(object.readable(name), Err(RefusalReason::UntypedField(name.to_owned())));
        }
        assert!(matches!(object.discriminator("d"), Err(RefusalReason::DiscriminatorFormat { .. })));
    }
}
