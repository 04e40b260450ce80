//! Lists whose items have several merge keys.

use proptest::prelude::*;
use serde_json::{Value, json};
use strategic_merge_patch::Patcher;

/// A list of ports with the keys `port`, `protocol` and `zone`. With `default`, the protocol defaults to TCP.
fn ports(default: bool) -> Patcher {
    let protocol = if default { json!({"type": "string", "default": "TCP"}) } else { json!({"type": "string"}) };
    let schema = json!({"type": "object", "properties": {"ports": {"type": "array",
        "items": {"type": "object", "required": ["port"], "properties": {"port": {"type": "integer"}, "protocol": protocol,
            "zone": {"type": "string"}, "to": {"type": "integer"}}},
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol", "zone"]}}});
    Patcher::from_json_schema("Service", &schema.to_string()).unwrap()
}

fn list(items: &Value) -> Value {
    json!({ "ports": items })
}

const ALL: [&str; 3] = ["port", "protocol", "zone"];

#[test]
fn an_absent_key_equals_its_default() {
    let live = list(&json!([{"port": 80, "protocol": "TCP", "to": 1}, {"port": 80, "protocol": "UDP", "to": 1}]));
    let wanted = list(&json!([{"port": 80, "to": 2}, {"port": 80, "protocol": "UDP", "to": 1}]));
    let patch = ports(true).create_two_way(&live, &wanted).unwrap();
    let result = ports(true).apply(&live, &patch).unwrap();
    assert_eq!(result["ports"][0], json!({"port": 80, "protocol": "TCP", "to": 2}), "{patch}");
    assert_eq!(ports(true).create_two_way(&live, &result).unwrap()["ports"][0]["to"], 2);
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
        let error = ports(false).apply(&live, &list(&serde_json::from_str(items).unwrap())).expect_err(items);
        assert!(error.to_string().contains(wanted), "{items}: {error}");
    }
}

#[test]
fn an_order_entry_with_only_the_default_key_orders_every_item_with_this_key() {
    let live = list(&json!([{"port": 1}, {"port": 2, "protocol": "A"}, {"port": 2, "protocol": "B"}]));
    let patch = json!({"$setElementOrder/ports": [{"port": 2}, {"port": 1}]});
    let result = ports(false).apply(&live, &patch).unwrap();
    assert_eq!(result, list(&json!([{"port": 2, "protocol": "A"}, {"port": 2, "protocol": "B"}, {"port": 1}])));
}

fn random() -> impl Strategy<Value = Value> {
    let key = |values: &'static [&'static str]| prop::option::of(prop::sample::select(values));
    let port = (0..3_u8, key(&["TCP", "UDP"]), key(&["a", "b"]), 0..3_u8).prop_map(|(port, protocol, zone, to)| {
        let mut item = json!({"port": port, "to": to});
        if let Some(protocol) = protocol {
            item["protocol"] = json!(protocol);
        }
        if let Some(zone) = zone {
            item["zone"] = json!(zone);
        }
        item
    });
    prop::collection::vec(port, 0..8).prop_map(|mut ports| {
        let mut seen = Vec::new();
        ports.retain(|port| {
            let keys = ALL.map(|key| port[key].clone());
            let new = !seen.contains(&keys);
            seen.push(keys);
            new
        });
        list(&Value::Array(ports))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn applying_the_patch_from_one_list_to_another_gives_the_other(before in random(), after in random()) {
        let patch = ports(false).create_two_way(&before, &after).unwrap();
        let result = ports(false).apply(&before, &patch).map_err(|error| TestCaseError::fail(format!("{error}: {patch}")))?;
        prop_assert_eq!(result, after, "{} by {}", before, patch);
        let strict = ports(false).strict().apply(&before, &patch);
        prop_assert!(strict.is_ok(), "a created patch must be unambiguous: {patch}");
    }
}
