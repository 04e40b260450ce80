//! The bounds: kept schemas, long requests, deep documents.

use super::{answers, answers_to, fault, json_schema, request};
use serde_json::{Value, json};

fn define(name: &str) -> (&str, Value) {
    ("define", json_schema(name, &json!({})))
}

fn apply(name: &str) -> (&'static str, Value) {
    ("apply", json!({"schema": name, "original": {}, "patch": {"a": 1}}))
}

#[test]
fn the_least_recently_used_schema_goes_first() {
    let names: Vec<String> = (0..64).map(|number| number.to_string()).collect();
    let mut requests: Vec<_> = names.iter().map(|name| define(name)).collect();
    // Using 0 makes 1 the least recently used, and defining 2 again does not need room.
    requests.extend([
        apply("0"),
        define("2"),
        define("one more"),
        apply("0"),
        apply("1"),
        apply("2"),
        apply("one more"),
    ]);
    let answers = answers(&requests);
    let outcomes: Vec<bool> = answers[64..].iter().map(|answer| answer.get("result").is_some()).collect();
    assert_eq!(outcomes, [true, true, true, true, false, true, true]);
    let (reason, code, message, _) = fault(&answers[68]);
    assert_eq!((reason, code), ("UnknownSchema", 1));
    assert!(message.starts_with("no schema `1`: define it"), "{message}");
}

#[test]
fn a_large_schema_takes_the_place_of_several() {
    let half = json!({"description": "x".repeat(40 * 1024 * 1024)});
    let lines = request(0, "define", &json_schema("a", &half))
        + &request(1, "define", &json_schema("b", &half))
        + &request(2, apply("a").0, &apply("a").1)
        + &request(3, apply("b").0, &apply("b").1);
    let answers = answers_to(lines.as_bytes());
    assert_eq!(fault(&answers[2]).0, "UnknownSchema");
    assert_eq!(answers[3]["result"], json!({"a": 1}));
}

#[test]
fn a_request_that_is_too_long_is_skipped_to_its_end() {
    let lines = ["x".repeat(70 * 1024 * 1024).as_str(), "\n", &request(1, "version", &json!({}))].concat();
    let answers = answers_to(lines.as_bytes());
    assert_eq!(answers.len(), 2);
    let (reason, code, message, _) = fault(&answers[0]);
    assert_eq!((reason, code, message), ("InvalidRequest", -32600, "the request is longer than 67108864 bytes"));
    assert_eq!(answers[0]["id"], Value::Null);
    assert_eq!(answers[1]["result"]["protocol"], 1);
}

#[test]
fn documents_may_be_deep() {
    let nested = |depth: usize| format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
    let lines = |depth: usize| {
        format!(
            "{}{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"apply\",\"params\":{{\"schema\":\"s\",\"original\":{{\"b\":1}},\"patch\":{}}}}}\n",
            request(0, "define", &json_schema("s", &json!({}))),
            nested(depth)
        )
    };
    let answered = |depth: usize| {
        let mut output = Vec::new();
        strategic_merge_patch_stdio::serve(lines(depth).as_bytes(), &mut output).unwrap();
        String::from_utf8(output).unwrap().lines().nth(1).unwrap().to_owned()
    };
    let wanted = nested(512).replacen('{', r#"{"b":1,"#, 1);
    assert_eq!(answered(512), format!(r#"{{"jsonrpc":"2.0","id":1,"result":{wanted}}}"#));
    let refused: Value = serde_json::from_str(&answered(513)).unwrap();
    let (reason, code, message, data) = fault(&refused);
    assert_eq!((reason, code, data), ("Unreadable", 3, json!({"document": "patch"})));
    let wanted = "cannot read the patch as JSON: nested deeper than 512 levels at line 1 column ";
    assert!(message.starts_with(wanted), "{message}");
}
