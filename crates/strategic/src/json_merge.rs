//! JSON merge patches (RFC 7386), as kubectl, Helm and the API server use them for kinds without a Go type.

use serde_json::{Map, Value};

/// Applies a merge patch.
pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(fields) = target.as_object_mut() else { return };
    for (name, value) in patch {
        if value.is_null() {
            fields.remove(name);
        } else {
            merge(fields.entry(name).or_insert(Value::Null), value);
        }
    }
}

/// Returns the merge patch that turns one object into another. A null of `to` removes the field.
pub fn two_way(from: &Value, to: &Value) -> Value {
    let (Some(before), Some(after)) = (from.as_object(), to.as_object()) else { return to.clone() };
    let mut patch = Map::new();
    for (name, value) in after {
        match before.get(name) {
            Some(old) if old == value => {}
            Some(old) if old.is_object() && value.is_object() => {
                let inner = two_way(old, value);
                if !is_empty(&inner) {
                    patch.insert(name.clone(), inner);
                }
            }
            Some(_) | None => {
                patch.insert(name.clone(), value.clone());
            }
        }
    }
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    patch.extend(gone.map(|name| (name.clone(), Value::Null)));
    Value::Object(patch)
}

/// Returns the merge patch that makes the changes from `original` to `modified` in `current`.
pub fn three_way(original: &Value, modified: &Value, current: &Value) -> Value {
    let mut patch = part(&two_way(original, modified), true);
    let additions = part(&two_way(current, modified), false);
    merge(&mut patch, &additions);
    patch
}

/// Returns the removals of a patch, or everything else.
fn part(patch: &Value, removals: bool) -> Value {
    let fields = patch.as_object().into_iter().flatten();
    let kept = fields.filter_map(|(name, value)| {
        let kept = match value.as_object() {
            Some(fields) if !fields.is_empty() => Some(part(value, removals)).filter(|inner| !is_empty(inner)),
            _ => (value.is_null() == removals).then(|| value.clone()),
        };
        Some((name.clone(), kept?))
    });
    Value::Object(kept.collect())
}

fn is_empty(object: &Value) -> bool {
    object.as_object().is_some_and(Map::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_three_way_patch_keeps_what_others_set_and_removes_what_the_author_removed() {
        for (original, modified, current, want) in [
            (
                json!({"a": {"x": 1}}),
                json!({"b": {}}),
                json!({"a": {"x": 1, "y": 2}, "c": 3}),
                json!({"b": {}, "c": 3}),
            ),
            (json!({"t": "A"}), json!({"t": "B"}), json!({"t": "A", "a": {}}), json!({"t": "B", "a": {}})),
            (json!({"t": "A"}), json!({"t": "B", "a": null}), json!({"t": "A", "a": {}}), json!({"t": "B"})),
            (json!({}), json!({"l": [1]}), json!({"l": [1, 2]}), json!({"l": [1]})),
        ] {
            let mut after = current;
            let patch = three_way(&original, &modified, &after);
            merge(&mut after, &patch);
            assert_eq!(after, want);
        }
    }

    fn object() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![(0..3u8).prop_map(Value::from), Just(json!([1]))];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop::collection::btree_map("[abc]", inner, 0..4).prop_map(|fields| fields.into_iter().collect())
        })
        .prop_map(|inner| json!({"o": inner}))
    }

    proptest! {
        #[test]
        fn the_two_way_patch_turns_one_object_into_the_other(from in object(), to in object()) {
            let mut after = from.clone();
            merge(&mut after, &two_way(&from, &to));
            prop_assert_eq!(&after, &to);
            let mut reference = from.clone();
            json_patch::merge(&mut reference, &two_way(&from, &to));
            prop_assert_eq!(after, reference);
        }
    }
}
