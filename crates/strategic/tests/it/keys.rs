//! Lists whose items have several merge keys.

use super::generate::Random;
use proptest::prelude::*;
use serde_json::{Value, json};
use strategic_merge_patch::Patcher;

/// A list of ports with the keys `port`, `protocol` and `zone`. Random items have few values of each.
fn schema() -> Value {
    let [protocols, zones] = [json!(["TCP", "UDP"]), json!(["a", "b"])];
    json!({"type": "object", "properties": {"ports": {"type": "array",
        "items": {"type": "object", "required": ["port"], "properties": {"port": {"type": "integer", "enum": [0, 1, 2]},
            "protocol": {"type": "string", "enum": protocols}, "zone": {"type": "string", "enum": zones}, "to": {"type": "integer"}}},
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol", "zone"]}}})
}

fn patcher(schema: &Value) -> Patcher {
    Patcher::from_json_schema("Service", &schema.to_string()).unwrap()
}

fn list(items: &Value) -> Value {
    json!({ "ports": items })
}

#[test]
fn an_absent_key_equals_its_default() {
    let live = list(&json!([{"port": 80, "protocol": "TCP", "to": 1}, {"port": 80, "protocol": "UDP", "to": 1}]));
    let wanted = list(&json!([{"port": 80, "to": 2}, {"port": 80, "protocol": "UDP", "to": 1}]));
    let mut schema = schema();
    schema["properties"]["ports"]["items"]["properties"]["protocol"]["default"] = json!("TCP");
    let patcher = patcher(&schema);
    let patch = patcher.create_two_way(&live, &wanted).unwrap();
    let result = patcher.apply(&live, &patch).unwrap();
    assert_eq!(result["ports"][0], json!({"port": 80, "protocol": "TCP", "to": 2}), "{patch}");
    assert_eq!(patcher.create_two_way(&live, &result).unwrap()["ports"][0]["to"], 2);
}

#[test]
fn refuses_invalid_directives() {
    let live = list(&json!([{"port": 1}, {"port": 1, "protocol": "UDP"}, {"port": 1, "protocol": "UDP", "zone": "a"}]));
    let rows = r#"
[{"$patchMergeKey": [], "port": 1}] => must be a non-empty list of distinct strings
[{"$patchMergeKey": ["port", "port"], "port": 1}] => must be a non-empty list of distinct strings
[{"$patchMergeKey": "port", "port": 1}] => must be a non-empty list of distinct strings
[{"$patchMergeKey": ["protocol"], "port": 1}] => must contain the merge key `port`
[{"$patchMergeKey": ["port", "to"], "port": 1}] => contains `to`, which is not a merge key of the list
[{"$patchMergeKey": ["port"], "port": null}] => without the merge key `port`
[{"$patchMergeKey": ["port"], "port": 5}, {"port": 6}] => must be in every item of the list, or in none
[{"$patchMergeKey": ["port"], "port": 1, "to": 1}] => matches more than one item
[{"$patchMergeKey": ["port", "zone"], "port": 1, "zone": null}] => two items of the list have the same merge keys
[{"$patchMergeKey": ["port", "protocol"], "port": 7, "protocol": null}] => no matching item of the list has it
[{"$patchMergeKey": ["port", "protocol", "zone"], "$patch": "delete", "port": 1, "zone": null}] => null in an item to delete
[{"$patchMergeKey": ["port", "protocol"], "port": 2}, {"$patchMergeKey": ["port", "protocol", "zone"], "port": 1, "protocol": null}] => two items of the list have the same merge keys
"#;
    for (items, wanted) in rows.lines().filter_map(|row| row.split_once(" => ")) {
        let error = patcher(&schema()).apply(&live, &list(&serde_json::from_str(items).unwrap())).expect_err(items);
        assert!(error.to_string().contains(wanted), "{items}: {error}");
    }
}

#[test]
fn an_order_entry_with_only_the_default_key_orders_every_item_with_this_key() {
    let live = list(&json!([{"port": 1}, {"port": 2, "protocol": "A"}, {"port": 2, "protocol": "B"}]));
    let patch = json!({"$setElementOrder/ports": [{"port": 2}, {"port": 1}]});
    let result = patcher(&schema()).apply(&live, &patch).unwrap();
    assert_eq!(result, list(&json!([{"port": 2, "protocol": "A"}, {"port": 2, "protocol": "B"}, {"port": 1}])));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn applying_the_patch_from_one_list_to_another_gives_the_other(seed: u64) {
        let (mut random, schema) = (Random::plain(seed), schema());
        let (before, after, patcher) = (random.object(&schema), random.object(&schema), patcher(&schema));
        let patch = patcher.create_two_way(&before, &after).unwrap();
        let result = patcher.apply(&before, &patch).map_err(|error| TestCaseError::fail(format!("{error}: {patch}")))?;
        prop_assert_eq!(result, after, "{} by {}", before, patch);
        let strict = patcher.strict().apply(&before, &patch);
        prop_assert!(strict.is_ok(), "a created patch must be unambiguous: {patch}");
    }
}
