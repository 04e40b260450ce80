//! Tests of the protocol, through its requests and answers, and of the program.

#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod cases;
mod limits;
mod messages;
mod program;
mod sources;

use serde_json::{Value, json};
use strategic_merge_patch_stdio::serve;

/// Returns the answers to lines.
fn answers_to(lines: &[u8]) -> Vec<Value> {
    let mut answers = Vec::new();
    serve(lines, &mut answers).unwrap();
    let answers = String::from_utf8(answers).unwrap();
    assert!(answers.is_empty() || answers.ends_with('\n'), "{answers}");
    answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the answers to requests, each with its position as `id`.
fn answers(requests: &[(&str, Value)]) -> Vec<Value> {
    let lines: String = (0..).zip(requests).map(|(id, (method, params))| request(id, method, params)).collect();
    let answers = answers_to(lines.as_bytes());
    let ids: Vec<_> = answers.iter().map(|answer| answer["id"].clone()).collect();
    assert_eq!(ids, (0..requests.len()).map(Value::from).collect::<Vec<_>>());
    answers
}

fn request(id: usize, method: &str, params: &Value) -> String {
    format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

/// Parameters of `define` with a JSON schema.
fn json_schema(name: &str, document: &Value) -> Value {
    json!({"schema": name, "source": {"jsonSchema": {"name": "Thing", "document": document}}})
}

/// Returns an error as reason, code and message, and the other parts of its data.
fn fault(answer: &Value) -> (&str, i64, &str, Value) {
    let error = &answer["error"];
    let mut data = error["data"].clone();
    data.as_object_mut().unwrap_or_else(|| panic!("no error: {answer}")).remove("reason");
    (
        error["data"]["reason"].as_str().unwrap(),
        error["code"].as_i64().unwrap(),
        error["message"].as_str().unwrap(),
        data,
    )
}
