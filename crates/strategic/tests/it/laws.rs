//! Laws that hold for every schema, object and patch.

use super::generate::{self, Random};
use proptest::prelude::*;
use serde_json::{Value, json};
use strategic_merge_patch::{Conflicts, PatchError, Patcher, ThreeWay};

/// Returns a schema and its patcher.
fn kind(random: &mut Random) -> (Value, Patcher) {
    let depth = random.dice.below(3);
    let schema = generate::schema(&mut random.dice, depth);
    let patcher = Patcher::from_json_schema("Kind", &schema.to_string()).unwrap();
    (schema, patcher)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn applying_the_patch_from_one_object_to_another_gives_the_other(seed: u64) {
        let mut random = Random::plain(seed);
        let (schema, patcher) = kind(&mut random);
        let before = random.object(&schema);
        let after = random.changed(&schema, &before);
        let patch = patcher.create_two_way(&before, &after).unwrap();
        prop_assert_eq!(&patcher.apply(&before, &patch).unwrap(), &after, "{} by {}", before, patch);
        prop_assert_eq!(patcher.create_two_way(&after, &after).unwrap(), json!({}));
        // Text gives the same result.
        let text = patcher.apply(&*before.to_string(), &*patch.to_string()).unwrap();
        prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), after);
    }

    #[test]
    fn a_three_way_patch_without_other_changes_equals_the_two_way_patch(seed: u64, refuse: bool) {
        let mut random = Random::plain(seed);
        let (schema, patcher) = kind(&mut random);
        let before = random.object(&schema);
        let after = Random::new(seed).changed(&schema, &before);
        let conflicts = if refuse { Conflicts::Refuse } else { Conflicts::Overwrite };
        let three = patcher.create_three_way(&ThreeWay { original: &before, modified: &after, current: &before, conflicts });
        match (patcher.create_two_way(&before, &after), three) {
            (Ok(two), Ok(three)) => prop_assert_eq!(two, three),
            (Err(two), Err(three)) => prop_assert_eq!(two.to_string(), three.to_string()),
            (two, three) => prop_assert!(false, "{two:?} {three:?}"),
        }
    }

    #[test]
    fn creating_and_applying_a_three_way_patch_again_changes_nothing(seed: u64) {
        let mut random = Random::plain(seed);
        let (schema, patcher) = kind(&mut random);
        let original = random.object(&schema);
        let (modified, current) = (random.changed(&schema, &original), random.changed(&schema, &original));
        let sides = ThreeWay { original: &original, modified: &modified, current: &current, conflicts: Conflicts::Overwrite };
        let Ok(patch) = patcher.create_three_way(&sides) else { return Ok(()) };
        let Ok(after) = patcher.apply(&current, &patch) else { return Ok(()) };
        let again = ThreeWay { original: &modified, current: &after, ..sides };
        let again = patcher.create_three_way(&again).unwrap();
        let settled = patcher.apply(&after, &again).unwrap();
        prop_assert_eq!(settled, after, "applying the same again changes nothing: {}", again);
    }

    #[test]
    fn patch_items_with_one_key_have_the_same_result_together_and_one_by_one(seed: u64) {
        let mut random = Random::new(seed);
        let mut items = generate::schema(&mut random.dice, 2);
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
        let live = json!({"list": [named(random.object(&items))]});
        let mut patches = Vec::new();
        for _ in 0..4 {
            let mut patch = random.patch(&items, &live["list"][0]);
            if patches.len() < 2 {
                // Patches that have many fields in common.
                patch = random.patch(&items, &patch);
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
        let mut random = Random::new(seed);
        let schema = generate::schema(&mut random.dice, 2);
        let patcher = Patcher::from_json_schema("Kind", &schema.to_string()).unwrap();
        let object = random.object(&schema);
        let (one, other) = (random.patch(&schema, &object), random.patch(&schema, &object));
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
