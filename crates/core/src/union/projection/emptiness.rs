//! Tells which values are empty: `false`, zero, `""`, `{}` and `[]`.

use serde_json::Value;

/// Returns true if a JSON value, without white space around it, is empty. A number is zero if the API server reads it as
/// zero: `0`, `-0`, `0.0` and `0e5` are.
pub(super) fn is_empty(text: &str) -> bool {
    let inside = |close| text.get(1..).and_then(|rest| rest.strip_suffix(close)).is_some_and(|it| it.trim().is_empty());
    match text.as_bytes().first() {
        Some(b'"') => text.len() == 2,
        Some(b'{') => inside('}'),
        Some(b'[') => inside(']'),
        Some(b'f') => true,
        Some(b'-' | b'0'..=b'9') => text.parse::<f64>().is_ok_and(|number| number == 0.0),
        _ => false,
    }
}

/// Returns true for `false`, a number that is zero, `""`, `{}` and `[]`, which do not count as set where `emptyIsUnset` names the member.
pub fn is_empty_value(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::{is_empty, is_empty_value};
    use serde_json::Value;

    /// Returns the value of a text. A number that is too large for one is another number that is not zero.
    fn value(text: &str) -> Value {
        serde_json::from_str(if text == "1e999" { "1e99" } else { text }).unwrap()
    }

    #[test]
    fn false_zero_and_empty_texts_maps_and_lists_are_empty_and_nothing_else_is() {
        for text in ["false", "0", "-0", "0.0", "-0.00", "0e5", "0E-7", "0.0e+10", "\"\"", "{}", "{ \n}", "[]", "[\t ]"]
        {
            assert!(is_empty(text) && is_empty_value(&value(text)), "{text}");
        }
        for text in ["true", "null", "1", "-1", "0.1", "1e-3", "1e999", "\" \"", "\"0\"", "\"\\u0000\"", "{\"a\":null}"]
        {
            assert!(!is_empty(text) && !is_empty_value(&value(text)), "{text}");
        }
        for text in ["[0]", "[[]]", "[null]", "{\"\":{}}"] {
            assert!(!is_empty(text) && !is_empty_value(&value(text)), "{text}");
        }
    }
}
