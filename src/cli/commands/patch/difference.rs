//! Compares two JSON texts and returns the difference as a JSON Patch (RFC 6902).
//!
//! The patch contains values as they were written, because parsing a number could change it.

use kube_unions_core::field_path::push_token;
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Number of levels to compare. Deeper values are replaced as a whole.
const DEEPEST: usize = 64;

/// One operation of a JSON Patch.
#[derive(Debug, Serialize)]
pub(super) struct JsonPatchOperation<'t> {
    op: OperationName,
    /// The JSON Pointer of the value.
    pub(super) path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'t RawValue>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum OperationName {
    Test,
    Add,
    Remove,
    Replace,
}

impl<'t> JsonPatchOperation<'t> {
    /// Returns an operation that makes the whole patch fail unless the value at `path` is `value`.
    pub(super) fn test(path: &str, value: &'t RawValue) -> Self {
        operation(OperationName::Test, path.to_owned(), Some(value))
    }
}

/// Returns the operations that turn `before` into `after`, in order.
pub(super) fn difference<'t>(before: &'t str, after: &'t str) -> serde_json::Result<Vec<JsonPatchOperation<'t>>> {
    let mut operations = Vec::new();
    // The pairs are at different paths, so the operations of one do not move another.
    let mut pairs = vec![(String::new(), 0, serde_json::from_str(before)?, serde_json::from_str(after)?)];
    while let Some((path, depth, before, after)) = pairs.pop() {
        let (before, after): (&RawValue, &RawValue) = (before, after);
        if before.get() == after.get() {
            continue;
        }
        match (before.get().as_bytes().first(), after.get().as_bytes().first()) {
            (Some(b'{'), Some(b'{')) if depth < DEEPEST => {
                let before: BTreeMap<String, &RawValue> = serde_json::from_str(before.get())?;
                let after: BTreeMap<String, &RawValue> = serde_json::from_str(after.get())?;
                let gone = before.keys().filter(|name| !after.contains_key(*name));
                operations.extend(gone.map(|name| operation(OperationName::Remove, below(&path, name), None)));
                for (name, value) in after {
                    let path = below(&path, &name);
                    match before.get(&name) {
                        Some(before) => pairs.push((path, depth + 1, *before, value)),
                        None => operations.push(operation(OperationName::Add, path, Some(value))),
                    }
                }
            }
            (Some(b'['), Some(b'[')) if depth < DEEPEST => {
                let before: Vec<&RawValue> = serde_json::from_str(before.get())?;
                let after: Vec<&RawValue> = serde_json::from_str(after.get())?;
                list(&path, &before, &after, &mut operations, |path, before, after| {
                    pairs.push((path, depth + 1, before, after));
                });
            }
            (Some(b'"'), Some(b'"')) if text(before)? == text(after)? => {}
            _ => operations.push(operation(OperationName::Replace, path, Some(after))),
        }
    }
    Ok(operations)
}

/// Keeps the equal items at both ends and compares the others in pairs. Items are added or removed after the last pair, where
/// they do not change the index of a pair.
fn list<'t>(
    path: &str,
    before: &[&'t RawValue],
    after: &[&'t RawValue],
    operations: &mut Vec<JsonPatchOperation<'t>>,
    mut pair: impl FnMut(String, &'t RawValue, &'t RawValue),
) {
    let same = |(one, other): &(&&RawValue, &&RawValue)| one.get() == other.get();
    let start = before.iter().zip(after).take_while(same).count();
    let (before, after) = (before.get(start..).unwrap_or_default(), after.get(start..).unwrap_or_default());
    let end = before.iter().rev().zip(after.iter().rev()).take_while(same).count();
    let before = before.get(..before.len() - end).unwrap_or_default();
    let after = after.get(..after.len() - end).unwrap_or_default();
    for (position, (before, after)) in before.iter().zip(after).enumerate() {
        pair(below(path, &(start + position).to_string()), before, after);
    }
    let pairs = before.len().min(after.len());
    for position in (pairs..before.len()).rev() {
        operations.push(operation(OperationName::Remove, below(path, &(start + position).to_string()), None));
    }
    for (position, value) in after.iter().enumerate().skip(pairs) {
        operations.push(operation(OperationName::Add, below(path, &(start + position).to_string()), Some(value)));
    }
}

fn operation(op: OperationName, path: String, value: Option<&RawValue>) -> JsonPatchOperation<'_> {
    JsonPatchOperation { op, path, value }
}

fn text(value: &RawValue) -> serde_json::Result<String> {
    serde_json::from_str(value.get())
}

fn below(path: &str, name: &str) -> String {
    let mut path = path.to_owned();
    path.push('/');
    push_token(&mut path, name);
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn patch(before: &str, after: &str) -> Value {
        serde_json::to_value(difference(before, after).unwrap()).unwrap()
    }

    #[test]
    fn the_patch_contains_only_changes() {
        let before = r#"{"a": {"b/c~": [1, 2, 3], "x": 1}, "gone": null, "s": "\u003c"}"#;
        let after = r#"{"s": "<", "a": {"b/c~": [1, 3], "x": 1, "n": 18446744073709551617}}"#;
        let mut operations = difference(before, after).unwrap();
        operations.sort_by(|one, other| one.path.cmp(&other.path));
        assert_eq!(
            serde_json::to_string(&operations).unwrap(),
            r#"[{"op":"remove","path":"/a/b~1c~0/1"},{"op":"add","path":"/a/n","value":18446744073709551617},{"op":"remove","path":"/gone"}]"#
        );
        assert_eq!(patch("[]", "{}"), json!([{"op": "replace", "path": "", "value": {}}]));
    }

    #[test]
    fn a_deep_difference_replaces_a_value_at_the_depth_limit() {
        let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(9000), "]".repeat(9000));
        let (before, after) = (deep("1"), deep("2"));
        let operations = difference(&before, &after).unwrap();
        let [JsonPatchOperation { op: OperationName::Replace, path, .. }] = operations.as_slice() else {
            panic!("{operations:?}")
        };
        assert_eq!(path.len(), 2 * DEEPEST);
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), (0..4u8).prop_map(Value::from)];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map("[abc~/]", inner, 0..4).prop_map(|map| map.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn applying_the_operations_gives_the_other_text(before in value(), after in value()) {
            let patch: json_patch::Patch = serde_json::from_value(patch(&before.to_string(), &after.to_string())).unwrap();
            let mut patched = before;
            json_patch::patch(&mut patched, &patch).unwrap();
            prop_assert_eq!(patched, after);
        }
    }
}
