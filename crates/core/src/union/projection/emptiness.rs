//! Tells which values are empty: `false`, zero, `""`, `{}` and `[]`.

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

#[cfg(test)]
mod tests {
    use super::is_empty;

    #[test]
    fn false_zero_and_empty_texts_maps_and_lists_are_empty_and_nothing_else_is() {
        for text in ["false", "0", "-0", "0.0", "-0.00", "0e5", "0E-7", "0.0e+10", "\"\"", "{}", "{ \n}", "[]", "[\t ]"]
        {
            assert!(is_empty(text), "{text}");
        }
        for text in ["true", "null", "1", "-1", "0.1", "1e-3", "1e999", "\" \"", "\"0\"", "\"\\u0000\"", "{\"a\":null}"]
        {
            assert!(!is_empty(text), "{text}");
        }
        for text in ["[0]", "[[]]", "[null]", "{\"\":{}}"] {
            assert!(!is_empty(text), "{text}");
        }
    }
}
