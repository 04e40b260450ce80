//! Pieces of CEL expressions.
//!
//! Policies see objects without types, so every expression here is safe for values of any type: it never selects a field
//! of a value that is not known to be a map. Fields are always written as strings, `object["spec"]`, so that their names can
//! be anything.
//!
//! A value that may be missing is a list of at most one value. This spares optional values, whose checker has faults.

use kube_unions_core::field_path::push_token;

/// Returns a string literal.
pub(crate) fn text(text: &str) -> String {
    // The escapes of JSON are escapes of CEL.
    serde_json::Value::from(text).to_string()
}

/// Returns a list literal of strings.
pub(crate) fn texts<'t>(items: impl IntoIterator<Item = &'t str>) -> String {
    let items: Vec<String> = items.into_iter().map(text).collect();
    format!("[{}]", items.join(", "))
}

/// Returns a map literal of strings.
pub(crate) fn table<'t>(entries: impl IntoIterator<Item = (&'t str, String)>) -> String {
    let entries: Vec<String> =
        entries.into_iter().map(|(key, value)| format!("{}: {}", text(key), text(&value))).collect();
    format!("{{{}}}", entries.join(", "))
}

/// Returns a reference token of a JSON Pointer with its slash, as an escaped text (RFC 6901).
pub(crate) fn pointer(name: &str) -> String {
    let mut pointer = String::from("/");
    push_token(&mut pointer, name);
    pointer
}

/// Returns the values of a field of each map in a list. Skips other values, and maps without the field.
pub(crate) fn field(list: &str, name: &str) -> String {
    let name = text(name);
    format!("{list}.map(o, type(o) == map && {name} in o, o[{name}])")
}

/// Returns the values at the end of several fields of each map in a list.
pub(crate) fn fields(list: &str, names: &[&str]) -> String {
    names.iter().fold(list.to_owned(), |list, name| field(&list, name))
}

/// Returns the maps of a list.
pub(crate) fn maps(list: &str) -> String {
    format!("{list}.filter(o, type(o) == map)")
}

/// Returns the lists of a list.
pub(crate) fn lists(list: &str) -> String {
    format!("{list}.filter(o, type(o) == list)")
}

/// Returns the string in a field of a map, empty if there is none.
pub(crate) fn string_field(map: &str, name: &str) -> String {
    let name = text(name);
    format!("({name} in {map} && type({map}[{name}]) == string ? {map}[{name}] : \"\")")
}

/// Returns true if a field of a map has a value that is not a string.
pub(crate) fn is_wrong_type(map: &str, name: &str) -> String {
    let name = text(name);
    format!("{name} in {map} && {map}[{name}] != null && type({map}[{name}]) != string")
}

/// Returns true if a field of a map is set: present and not null. `name` is an expression.
pub(crate) fn is_set(map: &str, name: &str) -> String {
    format!("{name} in {map} && {map}[{name}] != null")
}

/// Returns true if a value, which is not null, is `false`, zero, `""`, `{}` or `[]`.
pub(crate) fn is_empty(value: &str) -> String {
    format!("{value} in [dyn(false), dyn(0), dyn(\"\"), dyn({{}}), dyn([])]")
}

/// The longest text of a user's object in a message, in characters.
const LONGEST: usize = 64;

/// Returns a text of the user, made safe to display: on one line, and cut if it is long. `expression` is evaluated twice.
pub(crate) fn printable(expression: &str) -> String {
    let cut = format!("(size({expression}) > {LONGEST} ? {expression}.substring(0, {LONGEST}) + \"…\" : {expression})");
    one_line(cut)
}

/// Returns a text without line breaks and tabs.
pub(crate) fn one_line(expression: String) -> String {
    let replaced = |text: String, from: &str| format!("{text}.replace(\"{from}\", \"\u{fffd}\")");
    ["\\n", "\\r", "\\t"].into_iter().fold(expression, replaced)
}

/// Returns the characters of a name that an identifier may have, with `_` for the others. Two underscores in a row could
/// begin an escape, for example `__dash__`.
pub(crate) fn identifier(name: &str) -> String {
    let mut identifier = String::with_capacity(name.len());
    for it in name.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '_' }) {
        if it != '_' || !identifier.ends_with('_') {
            identifier.push(it);
        }
    }
    identifier
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_hold_any_text() {
        assert_eq!(text("a\"b\\c\nd\u{1}é"), r#""a\"b\\c\nd\u0001é""#);
        assert_eq!(texts(["a", "b"]), r#"["a", "b"]"#);
        assert_eq!(table([("A", "a".to_owned())]), r#"{"A": "a"}"#);
        assert_eq!(pointer("a/b~c"), "/a~1b~0c");
    }

    #[test]
    fn an_identifier_has_no_escapes() {
        assert_eq!(identifier("a-b.__dash__ü1"), "a_b_dash_1");
    }

    #[test]
    fn a_field_is_read_from_maps_only() {
        assert_eq!(fields("[object]", &["a"]), r#"[object].map(o, type(o) == map && "a" in o, o["a"])"#);
    }
}
