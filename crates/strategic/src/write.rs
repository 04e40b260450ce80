//! Writes a [`Value`] as JSON text or as a `serde_json::Value`, without recursion.

use crate::value::{MapEntry, Value};
use serde_json::Value as Json;
use std::slice::Iter;

enum WriteFrame<'a> {
    List(Iter<'a, Value<'a>>),
    Map(Iter<'a, MapEntry<'a>>),
}

/// Returns the compact JSON text.
pub(crate) fn text(value: Value<'_>) -> String {
    let mut text = String::new();
    let mut open = Vec::new();
    begin(value, &mut text, &mut open);
    while let Some(last) = open.last_mut() {
        let first = text.ends_with(['[', '{']);
        let next = match last {
            WriteFrame::List(items) => items.next().copied().map(|value| (None, value)),
            WriteFrame::Map(entries) => entries.next().map(|(key, value)| (Some(*key), *value)),
        };
        let Some((key, value)) = next else {
            text.push(if matches!(last, WriteFrame::List(_)) { ']' } else { '}' });
            open.pop();
            continue;
        };
        if !first {
            text.push(',');
        }
        if let Some(key) = key {
            string(key, &mut text);
            text.push(':');
        }
        begin(value, &mut text, &mut open);
    }
    text
}

fn begin<'a>(value: Value<'a>, text: &mut String, open: &mut Vec<WriteFrame<'a>>) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(true) => text.push_str("true"),
        Value::Bool(false) => text.push_str("false"),
        Value::Number(number) => text.push_str(number),
        Value::String(value) => string(value, text),
        Value::List([]) => text.push_str("[]"),
        Value::Map([]) => text.push_str("{}"),
        Value::List(items) => {
            text.push('[');
            open.push(WriteFrame::List(items.iter()));
        }
        Value::Map(entries) => {
            text.push('{');
            open.push(WriteFrame::Map(entries.iter()));
        }
    }
}

fn string(value: &str, text: &mut String) {
    text.push('"');
    let mut rest = value;
    while let Some(position) = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f)) {
        let (plain, special) = rest.split_at(position);
        text.push_str(plain);
        let mut characters = special.chars();
        match characters.next().unwrap_or_default() {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            control => {
                let hex = |shift: u32| char::from_digit((u32::from(control) >> shift) & 15, 16).unwrap_or('0');
                text.push_str("\\u00");
                text.extend([hex(4), hex(0)]);
            }
        }
        rest = characters.as_str();
    }
    text.push_str(rest);
    text.push('"');
}

/// Converts a number. `serde_json` itself would not always find the nearest `f64`: its feature `float_roundtrip` is off.
fn number(text: &str) -> Json {
    let integer = text.parse::<i64>().map(Json::from).or_else(|_| text.parse::<u64>().map(Json::from));
    integer.unwrap_or_else(|_| text.parse::<f64>().map_or(Json::Null, Json::from))
}

/// A list or an object whose parts are being converted.
enum ToJsonFrame<'a> {
    List(Iter<'a, Value<'a>>, Vec<Json>),
    Map(Iter<'a, MapEntry<'a>>, &'a str, serde_json::Map<String, Json>),
}

/// Returns the value as a `serde_json::Value`. A number out of its range becomes the nearest one in range.
pub(crate) fn json(value: Value<'_>) -> Json {
    let mut open = Vec::new();
    let mut done = begin_json(value, &mut open);
    loop {
        let next = match (open.last_mut(), done.take()) {
            (None, whole) => return whole.unwrap_or(Json::Null),
            (Some(ToJsonFrame::List(items, built)), part) => {
                built.extend(part);
                items.next().copied()
            }
            (Some(ToJsonFrame::Map(entries, key, built)), part) => {
                built.extend(part.map(|value| ((*key).to_owned(), value)));
                entries.next().map(|(name, value)| {
                    *key = name;
                    *value
                })
            }
        };
        done = match next {
            Some(part) => begin_json(part, &mut open),
            None => open.pop().map(|building| match building {
                ToJsonFrame::List(_, items) => Json::Array(items),
                ToJsonFrame::Map(_, _, map) => Json::Object(map),
            }),
        };
    }
}

/// Converts a scalar, or opens a list or an object.
fn begin_json<'a>(value: Value<'a>, open: &mut Vec<ToJsonFrame<'a>>) -> Option<Json> {
    match value {
        Value::Null => Some(Json::Null),
        Value::Bool(value) => Some(Json::Bool(value)),
        Value::Number(text) => Some(number(text)),
        Value::String(text) => Some(Json::String(text.to_owned())),
        Value::List(items) => {
            open.push(ToJsonFrame::List(items.iter(), Vec::with_capacity(items.len())));
            None
        }
        Value::Map(entries) => {
            open.push(ToJsonFrame::Map(entries.iter(), "", serde_json::Map::with_capacity(entries.len())));
            None
        }
    }
}
