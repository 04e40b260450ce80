//! The parts of a node that have rules of their own: the keys of a list, and the default.

use super::fault::RefusalReader;
use super::keywords::{REMOVE, flag, list, text};
use serde_json::{Map, Value};

impl RefusalReader {
    pub(super) fn list_keys(&mut self, node: &Value) {
        let (keys, list_type) = (list(node, "x-kubernetes-list-map-keys"), text(node, "x-kubernetes-list-type"));
        if list_type != "map" {
            if !keys.is_empty() {
                let keyword = "x-kubernetes-list-map-keys";
                self.refuse(&[keyword], "keys of a list without `x-kubernetes-list-type: map`", "add the list type");
            }
            let items = node.get("items").unwrap_or(&Value::Null);
            let is_atomic = match text(items, "type") {
                "object" => text(items, "x-kubernetes-map-type") == "atomic",
                "array" => matches!(text(items, "x-kubernetes-list-type"), "" | "atomic"),
                _ => true,
            };
            if list_type == "set" && !is_atomic {
                let remedy = "give the items `x-kubernetes-map-type: atomic`, or use `map`";
                self.refuse(&["x-kubernetes-list-type"], "a set of items that are not atomic", remedy);
            }
            if list_type == "set" && flag(items, "nullable") {
                self.refuse(&["items", "nullable"], "a set of nullable items", REMOVE);
            }
            return;
        }
        if keys.is_empty() {
            self.refuse(&["x-kubernetes-list-type"], "a list map without keys", "add `x-kubernetes-list-map-keys`");
        }
        let Some(items) = node.get("items").filter(|items| items.is_object()) else { return };
        if text(items, "type") != "object" {
            self.refuse(
                &["items"],
                "a list map whose items are not of `type: object`",
                "correct the type, or use `set`",
            );
            return;
        }
        if flag(items, "nullable") {
            self.refuse(&["items", "nullable"], "a list map of nullable items", REMOVE);
        }
        let mut known = Vec::new();
        for (index, key) in keys.iter().enumerate() {
            let (name, index) = (key.as_str().unwrap_or_default(), index.to_string());
            let place = ["x-kubernetes-list-map-keys", &index];
            if known.contains(&name) {
                self.refuse(&place, &format!("the key `{name}` twice"), REMOVE);
            }
            known.push(name);
            let Some(field) = items.get("properties").and_then(|fields| fields.get(name)) else {
                self.refuse(
                    &place,
                    &format!("the key `{name}`, which the items do not have"),
                    "name a field of the items",
                );
                continue;
            };
            let is_required = list(items, "required").iter().any(|required| required == name);
            if matches!(text(field, "type"), "array" | "object") {
                self.refuse(&place, &format!("the key `{name}`, which is not a scalar"), "use another key");
            }
            if !is_required && field.get("default").is_none_or(Value::is_null) {
                let what = format!("the key `{name}`, which an item may lack");
                self.refuse(&place, &what, "make it required, or give it a default");
            }
            if flag(field, "nullable") {
                self.refuse(&place, &format!("the key `{name}`, which may be null"), "remove `nullable` from it");
            }
        }
    }
}

/// The keywords that combine validations.
const COMBINING: [&str; 4] = ["allOf", "anyOf", "not", "oneOf"];

/// The keywords of [`broken_bound`].
const BOUNDS: [&str; 10] = [
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
];

/// Returns the reason why a value is no value of a schema, as far as its types, values and fields tell.
pub(super) fn misfit(node: &Value, value: &Value) -> Option<String> {
    let is_among = list(node, "enum").is_empty() || is_listed(node, value);
    let fits = match (text(node, "type"), value) {
        (_, Value::Null) => flag(node, "nullable"),
        ("" | "number", Value::Number(_))
        | ("" | "boolean", Value::Bool(_))
        | ("" | "string", Value::String(_))
        | ("" | "array", Value::Array(_))
        | ("" | "object", Value::Object(_)) => true,
        ("integer", Value::Number(number)) => number.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => false,
    };
    if !fits {
        return Some("is of another type".to_owned());
    }
    if !is_among {
        return Some("its `enum` lacks".to_owned());
    }
    let broken = || COMBINING.into_iter().find(|keyword| satisfies(node, keyword, value) == Some(false));
    if let Some(keyword) = broken_bound(node, value).or_else(broken) {
        return Some(format!("breaks its `{keyword}`"));
    }
    match value {
        Value::Array(items) => items.iter().find_map(|item| misfit(node.get("items")?, item)),
        Value::Object(fields) => misfit_of_fields(node, fields),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// Returns true if a value is one of `enum`, where 1 and 1.0 are the same.
fn is_listed(node: &Value, value: &Value) -> bool {
    let is_same = |listed: &Value| listed == value || listed.as_f64().is_some_and(|it| Some(it) == value.as_f64());
    list(node, "enum").iter().any(is_same)
}

/// Returns the bound of a schema that a value breaks.
fn broken_bound(node: &Value, value: &Value) -> Option<&'static str> {
    let (measure, least, most) = match value {
        Value::Number(number) => (number.as_f64()?, "minimum", "maximum"),
        Value::String(text) => (length(text.chars().count())?, "minLength", "maxLength"),
        Value::Array(items) => (length(items.len())?, "minItems", "maxItems"),
        Value::Object(fields) => (length(fields.len())?, "minProperties", "maxProperties"),
        Value::Null | Value::Bool(_) => return None,
    };
    let bound = |keyword: &str| node.get(keyword).and_then(Value::as_f64);
    let is_number = value.is_number();
    let [no_least, no_most] = ["exclusiveMinimum", "exclusiveMaximum"].map(|keyword| is_number && flag(node, keyword));
    if bound(least).is_some_and(|least| measure < least || (no_least && measure <= least)) {
        return Some(least);
    }
    bound(most).is_some_and(|most| measure > most || (no_most && measure >= most)).then_some(most)
}

/// Returns true if a value satisfies one of [`COMBINING`]. `None`: it has a keyword that is not evaluated here, for example `pattern`.
fn satisfies(node: &Value, keyword: &str, value: &Value) -> Option<bool> {
    let Some(argument) = node.get(keyword).filter(|it| !it.is_null()) else { return Some(true) };
    let parts: Vec<Option<bool>> = list(node, keyword).iter().map(|part| is_valid(part, value)).collect();
    let count = |wanted: Option<bool>| parts.iter().filter(|valid| **valid == wanted).count();
    match keyword {
        "not" => is_valid(argument, value).map(|valid| !valid),
        "allOf" => all(parts.into_iter()),
        "anyOf" if count(Some(true)) > 0 || parts.is_empty() => Some(true),
        "oneOf" if count(Some(true)) > 1 => Some(false),
        _ if count(None) > 0 => None,
        _ => Some(count(Some(true)) > 0 || parts.is_empty()),
    }
}

/// Returns true if a value satisfies a part of one of [`COMBINING`].
fn is_valid(part: &Value, value: &Value) -> Option<bool> {
    let fields = value.as_object();
    let of_keyword = |(keyword, argument): (&String, &Value)| match keyword.as_str() {
        "required" => {
            let mut names = list(part, "required").iter().filter_map(Value::as_str);
            Some(fields.is_none_or(|fields| names.all(|name| fields.contains_key(name))))
        }
        "properties" => {
            let described = argument.as_object().into_iter().flatten();
            all(described.map(|(name, below)| value.get(name).map_or(Some(true), |value| is_valid(below, value))))
        }
        "enum" => Some(is_listed(part, value)),
        "items" => all(value.as_array().into_iter().flatten().map(|item| is_valid(argument, item))),
        keyword if COMBINING.contains(&keyword) => satisfies(part, keyword, value),
        keyword if BOUNDS.contains(&keyword) => Some(broken_bound(part, value).is_none()),
        _ => None,
    };
    all(part.as_object()?.iter().map(of_keyword))
}

/// Returns true if all are, false if one is not, and `None` if that is not known.
fn all(parts: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let parts: Vec<Option<bool>> = parts.collect();
    if parts.contains(&Some(false)) { Some(false) } else { (!parts.contains(&None)).then_some(true) }
}

fn length(count: usize) -> Option<f64> {
    u32::try_from(count).ok().map(f64::from)
}

fn misfit_of_fields(node: &Value, fields: &Map<String, Value>) -> Option<String> {
    let described = |name: &str| {
        let values = node.get("additionalProperties").filter(|values| values.is_object());
        node.get("properties").and_then(|properties| properties.get(name)).or(values)
    };
    let required = list(node, "required").iter().filter_map(Value::as_str);
    if let Some(missing) = required.into_iter().find(|name| !fields.contains_key(*name)) {
        return Some(format!("lacks the required field `{missing}`"));
    }
    let is_open = ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"];
    let is_open = is_open.iter().any(|keyword| flag(node, keyword)) || flag(node, "additionalProperties");
    fields.iter().find_map(|(name, value)| match described(name) {
        Some(below) => misfit(below, value),
        None => (!is_open).then(|| format!("has the unknown field `{name}`")),
    })
}
