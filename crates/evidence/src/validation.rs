//! Judges the validations of OpenAPI on a partly known value.

use crate::facts::Fact;
use crate::limits::DEEPEST_SCHEMA;
use crate::node::SchemaNode;
use crate::outcome::Outcomes;
use crate::rule::RULES;
use crate::value;
use serde_json::Value;

const SILENT: [&str; 8] = [
    "default",
    "description",
    "example",
    "externalDocs",
    "id",
    "nullable",
    "title",
    "x-kubernetes-preserve-unknown-fields",
];

/// Formats of numbers and passwords, which do not restrict a value of the type.
const FREE_FORMATS: [&str; 6] = ["", "double", "float", "int32", "int64", "password"];

/// The place of a node among the nodes of a schema.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SchemaLevel {
    depth: usize,
    /// True outside of `allOf`, `anyOf`, `oneOf` and `not`, where rules are judged by another module.
    structural: bool,
}

impl SchemaLevel {
    pub(crate) const ROOT: Self = Self { depth: 0, structural: true };

    fn below(self) -> Self {
        Self { depth: self.depth.saturating_add(1), ..self }
    }

    fn part(self) -> Self {
        Self { structural: false, ..self.below() }
    }
}

pub(crate) fn check(node: SchemaNode<'_>, fact: Fact<'_, '_>, level: SchemaLevel) -> Outcomes {
    if level.depth > DEEPEST_SCHEMA {
        return Outcomes::beyond("the schema is nested too deeply");
    }
    let Some(keywords) = node.0.as_object() else { return Outcomes::certain(true) };
    // The API server looks at nothing else of a null.
    let is_null = matches!(fact, Fact::Value(Value::Null, _));
    let keywords = keywords.iter().filter(|(keyword, _)| !is_null || matches!(keyword.as_str(), "enum" | "type"));
    Outcomes::all(keywords.map(|(keyword, argument)| check_keyword(node, keyword, argument, fact, level)))
}

pub(crate) fn check_keyword(
    node: SchemaNode<'_>,
    keyword: &str,
    argument: &Value,
    fact: Fact<'_, '_>,
    level: SchemaLevel,
) -> Outcomes {
    let items = || argument.as_array().into_iter().flatten();
    let parts = || items().map(|part| check(SchemaNode(part), fact, level.part()));
    match keyword {
        "required" => {
            let names = items().filter_map(Value::as_str);
            Outcomes::all(names.map(|name| presence(fact, name)))
        }
        "properties" => {
            Outcomes::all(node.properties().map(|(name, below)| check_field(below, fact.plain_field(name), level)))
        }
        "allOf" => Outcomes::all(parts()),
        "anyOf" => parts().fold(Outcomes::certain(false), Outcomes::or),
        "oneOf" => exactly_one(parts()),
        "not" => check(SchemaNode(argument), fact, level.part()).not(),
        "maxProperties" | "minProperties" => count_fields(keyword, SchemaNode(argument), fact),
        RULES if level.structural => Outcomes::certain(true),
        RULES => Outcomes::beyond("a rule inside of `allOf`, `anyOf`, `oneOf` or `not` is not evaluated here"),
        _ if SILENT.contains(&keyword) || keyword.starts_with("x-kubernetes-") => Outcomes::certain(true),
        _ => match fact {
            Fact::Value(value, _) => check_value(node, keyword, argument, value, level),
            Fact::Absent => Outcomes::certain(true),
            Fact::Object(_) if keyword == "type" => Outcomes::certain(argument == "object"),
            Fact::Object(_) | Fact::Around(_) | Fact::Present(..) | Fact::Maybe(_) | Fact::Nowhere => Outcomes::open(),
        },
    }
}

fn check_field(below: SchemaNode<'_>, field: Fact<'_, '_>, level: SchemaLevel) -> Outcomes {
    match field {
        Fact::Absent => Outcomes::certain(true),
        Fact::Maybe(_) => check(below, field, level.below()).either(Outcomes::certain(true)).of_contents(),
        Fact::Nowhere => Outcomes::beyond("a validation names a field that the schema lacks"),
        Fact::Value(..) | Fact::Object(_) | Fact::Around(_) | Fact::Present(..) => check(below, field, level.below()),
    }
}

/// Returns if an object has a field. Anything else than an object passes, as in OpenAPI.
fn presence(fact: Fact<'_, '_>, name: &str) -> Outcomes {
    if let Fact::Value(value, _) = fact
        && !value.is_object()
    {
        return Outcomes::certain(true);
    }
    match fact.plain_field(name) {
        // The API server prunes a field that the schema lacks.
        Fact::Absent | Fact::Nowhere => Outcomes::certain(false),
        Fact::Value(..) | Fact::Object(_) | Fact::Around(_) | Fact::Present(..) => Outcomes::certain(true),
        Fact::Maybe(_) => Outcomes::open(),
    }
}

fn exactly_one(parts: impl Iterator<Item = Outcomes>) -> Outcomes {
    let (mut none, mut one) = (Outcomes::certain(true), Outcomes::certain(false));
    for part in parts {
        one = one.and(part.clone().not()).or(none.clone().and(part.clone()));
        none = none.and(part.not());
    }
    one
}

fn count_fields(keyword: &str, limit: SchemaNode<'_>, fact: Fact<'_, '_>) -> Outcomes {
    let Some(limit) = limit.0.as_u64().and_then(|limit| usize::try_from(limit).ok()) else { return Outcomes::open() };
    let (least, most) = match fact {
        Fact::Absent => return Outcomes::certain(true),
        Fact::Value(value, _) => match value.as_object() {
            Some(fields) => (fields.len(), Some(fields.len())),
            None => return Outcomes::certain(true),
        },
        Fact::Object(object) => {
            let names = object.node.properties().map(|(name, _)| fact.plain_field(name));
            let (mut least, mut most) = (0_usize, 0_usize);
            for field in names {
                let (set, maybe) = match field {
                    Fact::Absent | Fact::Nowhere => (0, 0),
                    Fact::Maybe(_) => (0, 1),
                    Fact::Value(..) | Fact::Object(_) | Fact::Around(_) | Fact::Present(..) => (1, 1),
                };
                least = least.saturating_add(set);
                most = most.saturating_add(maybe);
            }
            (least, (!object.node.is_open()).then_some(most))
        }
        Fact::Around(_) | Fact::Present(..) | Fact::Maybe(_) | Fact::Nowhere => return Outcomes::open(),
    };
    let (holds, fails) = if keyword == "maxProperties" {
        (most.is_some_and(|most| most <= limit), least > limit)
    } else {
        (least >= limit, most.is_some_and(|most| most < limit))
    };
    match (holds, fails) {
        (true, _) => Outcomes::certain(true),
        (_, true) => Outcomes::certain(false),
        (false, false) => Outcomes::open(),
    }
}

/// Judges a validation of a whole value.
fn check_value(node: SchemaNode<'_>, keyword: &str, argument: &Value, value: &Value, level: SchemaLevel) -> Outcomes {
    let schema = SchemaNode(argument);
    let below = |value: &Value| check(schema, Fact::Value(value, Some(schema)), level.below());
    let length = || value.as_str().map(|text| text.chars().count());
    let items = || value.as_array().map(Vec::len);
    let at_least = |have: Option<usize>| compare(have, argument.as_u64(), |have, limit| have >= limit);
    let at_most = |have: Option<usize>| compare(have, argument.as_u64(), |have, limit| have <= limit);
    let number = |holds: fn(f64, f64) -> bool| match (value.as_f64(), argument.as_f64()) {
        (None, _) => Outcomes::certain(true),
        (Some(have), Some(limit)) => Outcomes::certain(holds(have, limit)),
        (Some(_), None) => Outcomes::open(),
    };
    match keyword {
        "type" => Outcomes::certain(has_type(value, argument.as_str().unwrap_or_default(), node)),
        "enum" => Outcomes::certain(argument.as_array().is_some_and(|values| values.contains(value))),
        "minLength" => at_least(length()),
        "maxLength" => at_most(length()),
        "minItems" => at_least(items()),
        "maxItems" => at_most(items()),
        "minimum" if node.flag("exclusiveMinimum") => number(|have, limit| have > limit),
        "minimum" => number(|have, limit| have >= limit),
        "maximum" if node.flag("exclusiveMaximum") => number(|have, limit| have < limit),
        "maximum" => number(|have, limit| have <= limit),
        // The first two change `minimum` and `maximum`. The API server does not allow the third.
        "exclusiveMinimum" | "exclusiveMaximum" | "uniqueItems" => Outcomes::certain(true),
        "pattern" => match (value.as_str(), argument.as_str().and_then(value::pattern)) {
            (None, _) => Outcomes::certain(true),
            (Some(text), Some(pattern)) if text.is_ascii() => Outcomes::certain(pattern.is_match(text)),
            (Some(_), _) => Outcomes::open(),
        },
        "format" => match (argument.as_str().unwrap_or_default(), value.as_str()) {
            (format, Some(text)) if !FREE_FORMATS.contains(&format) => {
                if value::of_format(format) == Some(text) {
                    Outcomes::certain(true)
                } else {
                    Outcomes::open()
                }
            }
            _ => Outcomes::certain(true),
        },
        "items" => Outcomes::all(value.as_array().into_iter().flatten().map(below)),
        "additionalProperties" if argument.is_object() => {
            let fields = value.as_object().into_iter().flatten();
            Outcomes::all(fields.filter(|(name, _)| node.property(name).is_none()).map(|(_, value)| below(value)))
        }
        "additionalProperties" if argument == true => Outcomes::certain(true),
        _ => Outcomes::open(),
    }
}

fn compare(have: Option<usize>, limit: Option<u64>, holds: fn(usize, usize) -> bool) -> Outcomes {
    match (have, limit.and_then(|limit| usize::try_from(limit).ok())) {
        (None, _) => Outcomes::certain(true),
        (Some(have), Some(limit)) => Outcomes::certain(holds(have, limit)),
        (Some(_), None) => Outcomes::open(),
    }
}

fn has_type(value: &Value, name: &str, node: SchemaNode<'_>) -> bool {
    match value {
        Value::Null => node.flag("nullable"),
        Value::Bool(_) => name == "boolean",
        Value::Number(number) => name == "number" || (name == "integer" && (number.is_i64() || number.is_u64())),
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn outcomes(schema: &Value, value: &Value) -> Outcomes {
        check(SchemaNode(schema), Fact::Value(value, Some(SchemaNode(schema))), SchemaLevel::ROOT)
    }

    #[test]
    fn validations_judge_whole_values() {
        let schema = json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "string", "minLength": 2, "pattern": "^x"}, "b": {"type": "integer", "minimum": 1}},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}]});
        assert!(outcomes(&schema, &json!({"a": "xy"})).accepts());
        for wrong in
            [json!({}), json!({"a": "x"}), json!({"a": "yy"}), json!({"a": "xy", "b": 1}), json!("a"), json!({"a": 1})]
        {
            assert!(outcomes(&schema, &wrong).rejects(), "{wrong}");
        }
        let unknown = json!({"a": {"format": "ipv6"}});
        assert!(!outcomes(&json!({"properties": unknown}), &json!({"a": "x"})).accepts());
        assert_eq!(Outcomes::certain(false), outcomes(&json!({"not": {"required": ["a"]}}), &json!({"a": 1})));
    }
}
