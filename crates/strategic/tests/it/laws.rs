//! Laws that hold for every schema, object and patch.

#![allow(clippy::wildcard_enum_match_arm, reason = "JSON has no further kinds of values")]

use super::generate::{self, field, key, merges};
use fixtures::dice::Dice;
use proptest::prelude::*;
use serde_json::{Value, json};
use strategic_merge_patch::{Conflicts, PatchError, Patcher, ThreeWay};

/// Removes the values that no patch can express: nulls, which delete, and items with the same keys.
fn plain(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.iter_mut().for_each(|(name, value)| plain(field(schema, name), value));
            let odd = |schema: &Value, value: &Value| {
                let wanted = schema["type"].as_str().unwrap_or_default();
                (value.is_object() && wanted != "object") || (value.is_array() && wanted != "array")
            };
            let described = schema["properties"].is_object() || schema["additionalProperties"].is_object();
            fields.retain(|name, value| !described || !odd(field(schema, name), value));
        }
        Value::Array(items) => {
            items.retain(|item| !item.is_null());
            for item in items.iter_mut() {
                plain(&schema["items"], item);
            }
            if merges(schema) {
                let objects = schema["items"]["type"] == "object";
                items.retain(|item| item.is_object() == objects);
                if let Some(key) = key(schema) {
                    items.retain(|item| item[key].is_string() || item[key].is_number());
                } else if objects {
                    items.clear();
                }
                if !objects {
                    let of_numbers = schema["items"]["type"] == "integer";
                    items.retain(|item| if of_numbers { item.is_number() } else { item.is_string() });
                }
                generate::distinct(items, key(schema));
            }
        }
        _ => {}
    }
}

struct World {
    schema: Value,
    patcher: Patcher,
    dice: Dice,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let depth = dice.below(3);
        let schema = generate::schema(&mut dice, depth);
        let patcher = Patcher::from_json_schema("Kind", &schema.to_string()).unwrap();
        Self { schema, patcher, dice }
    }

    fn object(&mut self) -> Value {
        let mut object = generate::object(&mut self.dice, &self.schema);
        plain(&self.schema, &mut object);
        object
    }

    fn changed(&mut self, before: &Value) -> Value {
        let mut after = generate::changed(&mut self.dice, &self.schema, before);
        plain(&self.schema, &mut after);
        after
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn applying_the_patch_from_one_object_to_another_gives_the_other(seed: u64) {
        let mut world = World::new(seed);
        let before = world.object();
        let after = world.changed(&before);
        let patch = world.patcher.create_two_way(&before, &after).unwrap();
        prop_assert_eq!(&world.patcher.apply(&before, &patch).unwrap(), &after, "{} by {}", before, patch);
        prop_assert_eq!(world.patcher.create_two_way(&after, &after).unwrap(), json!({}));
        // Text gives the same result.
        let text = world.patcher.apply(&*before.to_string(), &*patch.to_string()).unwrap();
        prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), after);
    }

    #[test]
    fn a_three_way_patch_without_other_changes_equals_the_two_way_patch(seed: u64, refuse: bool) {
        let mut world = World::new(seed);
        let before = world.object();
        let after = generate::changed(&mut world.dice, &world.schema, &before);
        let conflicts = if refuse { Conflicts::Refuse } else { Conflicts::Overwrite };
        let patcher = &world.patcher;
        let three = patcher.create_three_way(&ThreeWay { original: &before, modified: &after, current: &before, conflicts });
        match (patcher.create_two_way(&before, &after), three) {
            (Ok(two), Ok(three)) => prop_assert_eq!(two, three),
            (Err(two), Err(three)) => prop_assert_eq!(two.to_string(), three.to_string()),
            (two, three) => prop_assert!(false, "{two:?} {three:?}"),
        }
    }

    #[test]
    fn creating_and_applying_a_three_way_patch_again_changes_nothing(seed: u64) {
        let mut world = World::new(seed);
        let original = world.object();
        let modified = world.changed(&original);
        let current = world.changed(&original);
        let sides = ThreeWay { original: &original, modified: &modified, current: &current, conflicts: Conflicts::Overwrite };
        let Ok(patch) = world.patcher.create_three_way(&sides) else { return Ok(()) };
        let Ok(after) = world.patcher.apply(&current, &patch) else { return Ok(()) };
        let again = ThreeWay { original: &modified, current: &after, ..sides };
        let again = world.patcher.create_three_way(&again).unwrap();
        let settled = world.patcher.apply(&after, &again).unwrap();
        prop_assert_eq!(settled, after, "applying the same again changes nothing: {}", again);
    }

    #[test]
    fn patch_items_with_one_key_have_the_same_result_together_and_one_by_one(seed: u64) {
        let mut dice = Dice(seed);
        let mut items = generate::schema(&mut dice, 2);
        items["properties"]["name"] = json!({"type": "string"});
        let schema = json!({"type": "object", "properties": {"list": {"type": "array", "items": items,
            "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name"}}});
        let patcher = Patcher::from_json_schema("Kind", &schema.to_string()).unwrap();
        let named = |mut item: Value| {
            item["name"] = json!("it");
            if let Some(keys) = item["$retainKeys"].as_array_mut() {
                keys.push(json!("name"));
            }
            let fields = item.as_object_mut().unwrap();
            fields.retain(|key, value| key != "$patch" && !(key == "$retainKeys" && value.is_null()));
            item
        };
        let live = json!({"list": [named(generate::object(&mut dice, &items))]});
        let mut patches = Vec::new();
        for _ in 0..4 {
            let mut patch = generate::patch(&mut dice, &items, &live["list"][0]);
            if patches.len() < 2 {
                // Patches that have many fields in common.
                patch = generate::patch(&mut dice, &items, &patch);
            }
            patches.push(named(patch));
        }
        let together = patcher.apply(&live, &json!({"list": patches}));
        let one_by_one = patches.iter().try_fold(live.clone(), |object, patch| patcher.apply(&object, &json!({"list": [patch]})));
        match (together, one_by_one) {
            (Ok(together), Ok(one_by_one)) => prop_assert_eq!(together, one_by_one, "{} by {:?}", live, patches),
            (Err(_), Err(_)) => {}
            (together, one_by_one) => prop_assert!(false, "{together:?} {one_by_one:?}: {live} by {patches:?}"),
        }
    }

    #[test]
    fn any_patch_gives_an_error_or_a_result_without_directives(seed: u64) {
        let mut dice = Dice(seed);
        let schema = generate::schema(&mut dice, 2);
        let patcher = Patcher::from_json_schema("Kind", &schema.to_string()).unwrap();
        let object = generate::object(&mut dice, &schema);
        let (one, other) = (generate::patch(&mut dice, &schema, &object), generate::patch(&mut dice, &schema, &object));
        let result: Result<Value, PatchError> = patcher.apply(&object, &one);
        if let Ok(result) = result {
            let text = result.to_string();
            for directive in ["$patch", "$retainKeys", "$setElementOrder/", "$deleteFromPrimitiveList/"] {
                prop_assert!(!text.contains(directive), "{text}");
            }
        }
        let _: Result<Value, PatchError> = patcher.create_two_way(&one, &other);
    }
}
