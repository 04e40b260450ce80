//! Documents that make a careless implementation expensive. With a quadratic cost, each of these sizes would run for hours or
//! exhaust the memory.

use std::fmt::Write as _;
use strategic_merge_patch::Patcher;

/// Enough items that moving or copying all of them once for each would never end.
const MANY: usize = 100_000;

fn patcher() -> Patcher {
    let schema = r#"{"properties": {
        "one": {"type": "array", "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "k",
            "items": {"type": "object", "additionalProperties": {"type": "integer"}, "properties": {"k": {"type": "string"},
                "in": {"type": "object", "additionalProperties": {"type": "integer"}}}}},
        "two": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "n"],
            "items": {"type": "object", "properties": {"k": {"type": "string"}, "n": {"type": "integer"}, "v": {"type": "integer"}}}}}}"#;
    Patcher::from_json_schema("Thing", schema).unwrap()
}

/// A list of [`MANY`] items.
fn list(field: &str, item: impl Fn(usize) -> String) -> String {
    let items: Vec<String> = (0..MANY).map(item).collect();
    format!(r#"{{"{field}":[{}]}}"#, items.join(","))
}

#[test]
fn each_of_many_patch_items_with_one_key_is_merged_once() {
    // Moving a small item is cheap, so this test needs more items.
    let items = r#"{"k":"a","v":1},"#.repeat(1_000_000);
    let patch = format!(r#"{{"one":[{items}{{"k":"a","v":2}}]}}"#);
    let patched = patcher().apply(r#"{"one":[{"k":"a","v":0,"w":1}]}"#, &*patch).unwrap();
    assert_eq!(patched, r#"{"one":[{"k":"a","v":2,"w":1}]}"#);
}

#[test]
fn many_patch_items_that_each_add_a_field_do_not_copy_the_item_each_time() {
    let fields = (0..MANY).fold(String::new(), |mut all, number| {
        write!(all, r#","f{number}":1"#).unwrap();
        all
    });
    let live = r#"{"one":[{"k":"a"}]}"#;
    let patch = list("one", |number| format!(r#"{{"k":"a","f{number}":1}}"#));
    let patched = patcher().apply(live, &*patch).unwrap();
    assert!(patched == format!(r#"{{"one":[{{"k":"a"{fields}}}]}}"#), "every field is there, in order");
    // The same, one level deeper.
    let live = r#"{"one":[{"k":"a","in":{"f":1}}]}"#;
    let patch = list("one", |number| format!(r#"{{"k":"a","in":{{"f{number}":1}}}}"#));
    let patched = patcher().apply(live, &*patch).unwrap();
    assert!(patched == format!(r#"{{"one":[{{"k":"a","in":{{"f":1{fields}}}}}]}}"#), "every field is there, in order");
}

#[test]
fn many_patch_items_that_clear_fields_cost_only_the_fields_that_they_clear() {
    let patch = list("one", |number| format!(r#"{{"$retainKeys":["k","f{number}"],"k":"a","f{number}":1}}"#));
    let patched = patcher().apply(r#"{"one":[{"k":"a","v":0}]}"#, &*patch).unwrap();
    assert_eq!(patched, format!(r#"{{"one":[{{"k":"a","f{}":1}}]}}"#, MANY - 1));
    let patch = list("one", |number| format!(r#"{{"k":"a","f{number}":1,"f{}":null}}"#, number.wrapping_sub(1)));
    let patched = patcher().apply(r#"{"one":[{"k":"a","v":0}]}"#, &*patch).unwrap();
    assert_eq!(patched, format!(r#"{{"one":[{{"k":"a","v":0,"f{}":1}}]}}"#, MANY - 1));
}

#[test]
fn many_items_with_one_key_are_deleted_once_and_created_anew_once() {
    let live = list("one", |number| format!(r#"{{"k":"a","v":{number}}}"#));
    let delete = list("one", |_| r#"{"k":"a","$patch":"delete"}"#.to_owned());
    assert_eq!(patcher().apply(&*live, &*delete).unwrap(), r#"{"one":[]}"#);
    let items: Vec<String> = (0..MANY).map(|number| format!(r#"{{"k":"a","f{number}":1}}"#)).collect();
    let again = format!(r#"{{"one":[{{"k":"a","$patch":"delete"}},{}]}}"#, items.join(","));
    let patched = patcher().apply(&*live, &*again).unwrap();
    assert_eq!((patched.matches(r#""k":"a""#).count(), patched.matches(":1").count()), (1, MANY));
}

#[test]
fn items_that_share_the_default_key_are_searched_once() {
    // Only the last item has the key that every patch item removes.
    let last = MANY - 1;
    let live = list("two", |number| if number == last { r#"{"k":"a","n":1}"# } else { r#"{"k":"a"}"# }.to_owned());
    let patch = list("two", |number| format!(r#"{{"$patchMergeKey":["k","n"],"k":"a","n":null,"f{number}":1}}"#));
    // The result has duplicates and is refused. This test only needs an answer in time.
    let error = patcher().apply(&*live, &*patch).unwrap_err();
    assert!(error.to_string().contains("two"), "{error}");
    let patch = list("two", |_| r#"{"$patchMergeKey":["k"],"k":"b"}"#.to_owned());
    assert!(patcher().apply(&*live, &*patch).is_err());
}

#[test]
fn many_items_are_compared_once() {
    let live = list("one", |number| format!(r#"{{"k":"a","v":{number}}}"#));
    assert_eq!(patcher().create_two_way(&*live, &*live.replacen('{', r#"{"v":1,"#, 1)).unwrap(), r#"{"v":1}"#);
    let key = |n: usize| format!(r#"{{"k":"{n}","v":1}}"#);
    let keys = |n: usize| format!(r#"{{"k":"a","n":{n}}}"#);
    let halves = (list("one", key), list("one", |n| key(n).replace(":1", if n < MANY / 2 { ":1" } else { ":2" })));
    for (before, after) in [halves, (list("two", keys), list("two", |n| keys(n + MANY)))] {
        let patch = patcher().create_two_way(&*before, &*after).unwrap();
        assert_eq!(patcher().apply(&*before, &*patch).unwrap(), after);
    }
}
