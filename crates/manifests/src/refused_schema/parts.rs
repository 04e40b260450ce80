//! The parts of a node that have rules of their own: the keys of a list, and the default.

use super::fault::RefusalReader;
use super::keywords::{REMOVE, flag, list, text};
use crate::keyword_fit::{KeywordFit, broken_bound, fit_keyword};
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

/// Returns the reason why a value is no value of a schema, as far as its types, values and fields tell.
pub(super) fn misfit(node: &Value, value: &Value) -> Option<String> {
    let breaks = |keyword: &str| fit_keyword(node, keyword, value) == KeywordFit::No;
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
    if breaks("enum") {
        return Some("its `enum` lacks".to_owned());
    }
    let combining = || COMBINING.into_iter().find(|keyword| breaks(keyword));
    if let Some(keyword) = broken_bound(node, value).or_else(combining) {
        return Some(format!("breaks its `{keyword}`"));
    }
    match value {
        Value::Array(items) => items.iter().find_map(|item| misfit(node.get("items")?, item)),
        Value::Object(fields) => misfit_of_fields(node, fields),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
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
