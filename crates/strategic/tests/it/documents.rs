//! Documents keep their numbers and the order of their keys.

use proptest::prelude::*;
use serde_json::Value;
use strategic_merge_patch::Patcher;

fn open() -> Patcher {
    Patcher::from_json_schema("Thing", "{}").unwrap()
}

#[test]
fn numbers_and_the_order_of_keys_stay_as_they_were_written() {
    let text =
        r#"{"z":123456789012345678901234567890,"a":1.10,"m":{"y":1e400,"b":-0.0,"é\n":[0.1000000000000000055,1E+2]}}"#;
    assert_eq!(open().apply(text, "{}").unwrap(), text);
    let patched = open().apply(text, r#"{"new": 2.50, "m": {"b": null, "more": 18446744073709551616}}"#).unwrap();
    let wanted = r#"{"z":123456789012345678901234567890,"a":1.10,"m":{"y":1e400,"é\n":[0.1000000000000000055,1E+2],"more":18446744073709551616},"new":2.50}"#;
    assert_eq!(patched, wanted);
}

#[test]
fn the_last_value_of_a_repeated_key_takes_the_first_place() {
    assert_eq!(open().apply(r#"{"in":{"a":1,"b":2,"a":3}}"#, "{}").unwrap(), r#"{"in":{"a":3,"b":2}}"#);
}

#[test]
fn compares_numbers_beyond_64_bits_exactly() {
    let patch = open()
        .create_two_way(r#"{"a":18446744073709551616,"b":1.10}"#, r#"{"a":18446744073709551617,"b":1.1}"#)
        .unwrap();
    assert_eq!(patch, r#"{"a":18446744073709551617}"#);
}

fn json() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    scalar.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..5).prop_map(|entries| entries.into_iter().collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn text_is_read_and_written_as_serde_json_does(value in json(), pretty: bool) {
        let value = serde_json::json!({ "value": value });
        let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
        let written = open().apply(&*text, "{}").unwrap();
        prop_assert_eq!(&written, &value.to_string());
        prop_assert_eq!(open().apply(&value, &Value::Null).unwrap(), value);
    }
}
