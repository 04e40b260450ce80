//! Writes a [`Value`] as JSON text or as a `serde_json::Value`, without recursion.

use crate::value::{Entry, Value};
use serde_json::Value as Json;
use std::slice::Iter;

enum Open<'a> {
    List(Iter<'a, Value<'a>>),
    Map(Iter<'a, Entry<'a>>),
}

/// The compact text.
pub(super) fn text(value: Value<'_>) -> String {
    let mut text = String::new();
    let mut open = Vec::new();
    begin(value, &mut text, &mut open);
    while let Some(last) = open.last_mut() {
        let first = text.ends_with(['[', '{']);
        let next = match last {
            Open::List(items) => items.next().copied().map(|value| (None, value)),
            Open::Map(entries) => entries.next().map(|(key, value)| (Some(*key), *value)),
        };
        let Some((key, value)) = next else {
            text.push(if matches!(last, Open::List(_)) { ']' } else { '}' });
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

fn begin<'a>(value: Value<'a>, text: &mut String, open: &mut Vec<Open<'a>>) {
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
            open.push(Open::List(items.iter()));
        }
        Value::Map(entries) => {
            text.push('{');
            open.push(Open::Map(entries.iter()));
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

/// A number as `serde_json` has it. Its own reader would not always find the nearest.
fn number(text: &str) -> Json {
    let integer = text.parse::<i64>().map(Json::from).or_else(|_| text.parse::<u64>().map(Json::from));
    integer.unwrap_or_else(|_| text.parse::<f64>().map_or(Json::Null, Json::from))
}

/// The value as `serde_json` has it. A number that it can't hold becomes the nearest that it can.
pub(super) fn json(value: Value<'_>) -> Json {
    enum Building<'a> {
        List(Iter<'a, Value<'a>>, Vec<Json>),
        Map(Iter<'a, Entry<'a>>, &'a str, serde_json::Map<String, Json>),
    }
    let mut open: Vec<Building<'_>> = Vec::new();
    let mut next = Some(value);
    loop {
        let mut done = match next.take() {
            None => None,
            Some(Value::List(items)) => {
                open.push(Building::List(items.iter(), Vec::with_capacity(items.len())));
                None
            }
            Some(Value::Map(entries)) => {
                open.push(Building::Map(entries.iter(), "", serde_json::Map::with_capacity(entries.len())));
                None
            }
            Some(Value::Null) => Some(Json::Null),
            Some(Value::Bool(value)) => Some(Json::Bool(value)),
            Some(Value::Number(text)) => Some(number(text)),
            Some(Value::String(text)) => Some(Json::String(text.to_owned())),
        };
        while next.is_none() {
            match (open.last_mut(), done.take()) {
                (None, Some(whole)) => return whole,
                (None, None) => return Json::Null,
                (Some(Building::List(_, items)), Some(item)) => items.push(item),
                (Some(Building::Map(_, key, map)), Some(value)) => {
                    map.insert((*key).to_owned(), value);
                }
                (Some(Building::List(items, _)), None) => next = items.next().copied(),
                (Some(Building::Map(entries, key, _)), None) => {
                    next = entries.next().map(|(name, value)| {
                        *key = name;
                        *value
                    });
                }
            }
            if next.is_none() {
                // Nothing is left of the innermost one, or something was just put into it.
                let ended = match open.last() {
                    Some(Building::List(items, _)) => items.len() == 0,
                    Some(Building::Map(entries, ..)) => entries.len() == 0,
                    None => false,
                };
                if ended {
                    done = open.pop().map(|building| match building {
                        Building::List(_, items) => Json::Array(items),
                        Building::Map(_, _, map) => Json::Object(map),
                    });
                }
            }
        }
    }
}
