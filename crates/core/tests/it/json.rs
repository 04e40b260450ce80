//! Reviews whose JSON is written in several ways get the same answer.

use crate::things;
use fixtures::reviews::{GROUP, answer, review_text};
use kube_unions_core::admission::{Phase, Ratcheting, ReviewError, StoredObject, StoredObjectError, review};
use kube_unions_core::catalog::Catalog;
use proptest::prelude::*;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::sync::LazyLock;

static CATALOG: LazyLock<Catalog> = LazyLock::new(things);

fn update(new: &str, old: &str) -> String {
    review_text([GROUP, "v1", "Thing"], "UPDATE", new, old)
}

/// Returns the text of a value: scalars, lists, and objects with the names of unions, some of them twice or with escapes.
fn values(depth: u32) -> BoxedStrategy<String> {
    let scalars = ["null", "true", "0", "7", "\"A\"", "\"B\"", r#""\u0041""#, "\"x\"", "\"\"", "{}", "[]"];
    let scalar = prop::sample::select(scalars.map(str::to_owned).to_vec());
    let long = Just(format!("{{\"x\":\"{}\"}}", "long ".repeat(100)));
    if depth == 0 {
        return prop_oneof![8 => scalar, 1 => long].boxed();
    }
    let names = ["a", "b", "type", r"t\u0079pe", "name", "one", "map", "list", "keyed", "data"];
    let field = (prop::sample::select(names.to_vec()), values(depth - 1));
    let field = field.prop_map(|(name, value)| format!("\"{name}\":{value}"));
    prop_oneof![
        2 => scalar,
        1 => long,
        2 => prop::collection::vec(values(depth - 1), 0..4).prop_map(|items| format!("[{}]", items.join(","))),
        6 => prop::collection::vec(field, 0..6).prop_map(|fields| format!("{{{}}}", fields.join(","))),
    ]
    .boxed()
}

fn objects() -> impl Strategy<Value = String> {
    // Long lists of few items have duplicate keys.
    let item = r#"(\{"name":"[xyz]","a":\{\}(,"type":"B")?\})"#;
    let keyed = prop::collection::vec(item, 0..6).prop_map(|items| format!("[{}]", items.join(",")));
    let spec = (values(3), keyed, values(3)).prop_map(|(one, keyed, data)| {
        format!(r#"{{"one":{one},"keyed":{keyed},"data":{data},"map":{data},"list":[{one},{one}]}}"#)
    });
    prop_oneof![spec, values(4)].prop_map(|spec| format!(r#"{{"metadata":{{"name":"x"}},"spec":{spec}}}"#))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_update_is_judged_alike_however_it_is_written(new in objects(), other in prop::option::of(objects())) {
        let old = other.unwrap_or_else(|| new.clone());
        // Without duplicate names and escapes, and with other white space in each object, so that nothing is repeated.
        let [plain_new, plain_old] = [&new, &old].map(|text| serde_json::from_str::<Value>(text).unwrap());
        let plain = update(&plain_new.to_string(), &serde_json::to_string_pretty(&plain_old).unwrap());
        for phase in [Phase::Mutate, Phase::Validate, Phase::Both] {
            for ratcheting in [Ratcheting::Enabled, Ratcheting::Disabled] {
                let answer = |body: &str| {
                    let review = review(&CATALOG, phase, ratcheting, body.as_bytes());
                    review.map(|review| review.to_json()).map_err(|error| error.to_string())
                };
                let (written, plain) = (answer(&update(&new, &old)), answer(&plain));
                prop_assert_eq!(written.map(String::from_utf8), plain.map(String::from_utf8));
            }
        }
    }
}

#[test]
fn what_is_skipped_is_json_all_the_same() {
    let entry = CATALOG.lookup(GROUP, "v1", "Thing").unwrap();
    assert!(matches!(StoredObject::judge(entry, "[]"), Err(StoredObjectError::NotAnObject)));
    for broken in
        ["nul", "01", "1.", "[1,]", "{\"x\":1,}", "{x:1}", "[}", "{]", "\"\\x\"", "\"\u{1}\"", "\"\\u12\"", "[1 2]"]
    {
        let text = format!(r#"{{"metadata":{{"x":{broken}}},"spec":{{"one":{{"a":{{"x":{broken}}}}}}}}}"#);
        let error = serde_json::from_str::<IgnoredAny>(&text).unwrap_err().to_string();
        match StoredObject::judge(entry, &text) {
            Err(StoredObjectError::Malformed(reason)) => assert_eq!(reason, error, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
        let body = update("{}", &text);
        match review(&CATALOG, Phase::Mutate, Ratcheting::Enabled, body.as_bytes()) {
            Err(ReviewError::Malformed(_)) => {}
            other => panic!("{body}: {other:?}"),
        }
    }
}

#[test]
fn what_is_long_or_deep_is_answered() {
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let member = |value: &str| format!(r#"{{"spec":{{"one":{{"a":{value},"type":"A"}},"data":{{"x":{value}}}}}}}"#);
    let many = format!("[{}]", vec!["{}"; 1_000_000].join(","));
    let values = [
        deep(10_000),
        deep(100_000),
        "7".repeat(1_000_000),
        format!("{{\"{}\":1}}", "k".repeat(1 << 20)),
        format!("{{\"{}\":1}}", r"\u006b".repeat(1 << 18)),
        many,
    ];
    for value in values {
        let text = member(&value);
        let body = update(&text, &text);
        let answer = answer(&CATALOG, Phase::Both, Ratcheting::Enabled, body.as_bytes()).unwrap();
        assert!(answer.operations.is_empty(), "{text:.100}");
        // In the place of a union as well.
        let text = format!(r#"{{"spec":{{"list":{value},"map":{value},"one":{value}}}}}"#);
        let body = update(&text, "null");
        if let Err(error) = review(&CATALOG, Phase::Both, Ratcheting::Enabled, body.as_bytes()) {
            assert!(error.to_string().contains("number out of range"), "{error}");
        }
    }
}
