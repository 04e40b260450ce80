//! Values of samples as values of CEL, and formats and patterns as the API server reads them.

use crate::node::SchemaNode;
use kube_unions_core::schema::cel_name::escape;
use regex::Regex;
use serde_json::{Value, json};
use std::collections::HashMap;

/// Formats whose strings are of another type in CEL.
const TYPED_FORMATS: [&str; 5] = ["byte", "date", "date-time", "datetime", "duration"];

/// Strings that match many patterns.
const STRINGS: &str =
    "x a A 1 xx abc a-b example.com https://example.com a/b 1s 10% /x xxxxxxxx 192.0.2.1 192.0.2.0/24";

/// Returns a value as the API server gives it to CEL. `None` if the types of both could differ.
pub(crate) fn to_cel(value: &Value, node: Option<SchemaNode<'_>>) -> Option<cel::Value> {
    match value {
        Value::Null => None,
        Value::Bool(value) => Some((*value).into()),
        Value::Number(number) if node.and_then(SchemaNode::type_name) == Some("number") => {
            number.as_f64().map(cel::Value::Float)
        }
        Value::Number(number) => number.as_i64().map(cel::Value::Int).or(number.as_f64().map(cel::Value::Float)),
        Value::String(text) => {
            let typed = node.and_then(|node| node.text("format")).is_some_and(|it| TYPED_FORMATS.contains(&it));
            // Classes of patterns are those of Unicode in the library, and of ASCII in Go.
            (!typed && text.is_ascii()).then(|| text.as_str().into())
        }
        Value::Array(items) => {
            // Lists of these types are equal in any order.
            let unordered = node.and_then(|node| node.text("x-kubernetes-list-type")).is_some_and(|it| it != "atomic");
            if unordered && items.len() > 1 {
                return None;
            }
            let node = node.and_then(SchemaNode::items);
            let items: Option<Vec<_>> = items.iter().map(|item| to_cel(item, node)).collect();
            items.map(Into::into)
        }
        Value::Object(fields) => {
            let is_struct = node.is_some_and(SchemaNode::has_properties);
            let field = |(name, value): (&String, &Value)| {
                let below = node.and_then(|node| node.field(name));
                let name = if is_struct { escape(name)? } else { name.clone() };
                Some((name, to_cel(value, below)?))
            };
            let fields: Option<HashMap<String, cel::Value>> = fields.iter().map(field).collect();
            fields.map(Into::into)
        }
    }
}

/// Compiles a pattern that Go's regular expressions read in the same way.
pub(crate) fn pattern(text: &str) -> Option<Regex> {
    let mut in_class = false;
    let mut letters = text.chars().peekable();
    while let Some(it) = letters.next() {
        let next = letters.peek().copied();
        match it {
            '\\' => {
                // Escapes that both know.
                let known = |it: char| it.is_ascii_punctuation() || "dDwWsSbBAztnrf".contains(it);
                if !next.is_some_and(known) {
                    return None;
                }
                letters.next();
            }
            '[' if in_class => return None,
            '[' => {
                in_class = true;
                // A bracket that comes first is a member of the class.
                if next == Some('^') {
                    letters.next();
                }
                if letters.peek() == Some(&']') {
                    letters.next();
                }
            }
            ']' => in_class = false,
            '&' | '~' | '-' if in_class && next == Some(it) => return None,
            '{' if !in_class && next == Some(',') => return None,
            '(' if !in_class && next == Some('?') => {
                letters.next();
                if letters.peek() != Some(&':') {
                    return None;
                }
            }
            _ => {}
        }
    }
    Regex::new(text).ok()
}

/// Returns a value of a format that the API server checks.
pub(crate) fn of_format(format: &str) -> Option<&'static str> {
    Some(match format {
        "byte" => "eA==",
        "cidr" => "192.0.2.0/24",
        "date" => "2020-01-01",
        "date-time" | "datetime" => "2020-01-01T00:00:00Z",
        "duration" => "1s",
        "email" => "a@example.com",
        "hostname" => "example.com",
        "ipv4" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "mac" => "02:00:00:00:00:01",
        "uri" => "https://example.com",
        "uuid" => "123e4567-e89b-42d3-a456-426614174000",
        _ => return None,
    })
}

/// Returns a short text that a schema accepts, if one is known.
pub(crate) fn text(node: SchemaNode<'_>) -> String {
    if let Some(known) = node.text("format").and_then(of_format) {
        return known.to_owned();
    }
    let count = |keyword: &str| node.get(keyword).and_then(Value::as_u64).and_then(|count| usize::try_from(count).ok());
    let least = count("minLength").unwrap_or(0).min(1024);
    let mut padded = STRINGS.split(' ').map(|text| format!("{text}{}", "x".repeat(least.saturating_sub(text.len()))));
    let pattern = node.text("pattern").and_then(pattern);
    let fits = |text: &String| {
        count("maxLength").is_none_or(|most| text.len() <= most) && pattern.as_ref().is_none_or(|it| it.is_match(text))
    };
    padded.find(fits).unwrap_or_else(|| "x".to_owned())
}

/// Returns a small number that a schema accepts, if there is one.
pub(crate) fn number(node: SchemaNode<'_>) -> Value {
    let bound = |keyword: &str| node.get(keyword).and_then(Value::as_f64);
    let exclusive = |keyword: &str| if node.flag(keyword) { 1.0 } else { 0.0 };
    let least = bound("minimum").map(|least| least + exclusive("exclusiveMinimum"));
    let most = bound("maximum").map(|most| most - exclusive("exclusiveMaximum"));
    let step = node.get("multipleOf").and_then(Value::as_f64).unwrap_or(1.0);
    let value = least.map_or(step, |least| least.max(step));
    let value = most.map_or(value, |most| value.min(most)).ceil();
    // A bound that is no integer of 64 bits makes an unfit sample, which is not accepted.
    format!("{value:.0}").parse::<i64>().map_or_else(|_| json!(1), |value| json!(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_go_reads_otherwise_are_not_used() {
        for text in ["[[a]]", "[a&&b]", "a{,3}", "(?!x)", "(?x) a", r"\pN", r"\Qa.b\E", r"\u{61}", "("] {
            assert!(pattern(text).is_none(), "{text}");
        }
        for text in ["^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", r"^\d{1,3}(?:\.\d+)?$", "[]a]", r"[^\]]+"] {
            assert!(pattern(text).is_some(), "{text}");
        }
    }

    #[test]
    fn values_that_the_api_server_types_are_not_guessed() {
        let node = json!({"type": "string", "format": "duration"});
        assert!(to_cel(&json!("1s"), Some(SchemaNode(&node))).is_none());
        let node = json!({"type": "number"});
        assert_eq!(to_cel(&json!(1), Some(SchemaNode(&node))), Some(cel::Value::Float(1.0)));
        assert_eq!(to_cel(&json!(1), None), Some(cel::Value::Int(1)));
    }
}
