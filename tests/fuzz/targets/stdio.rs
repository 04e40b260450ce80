//! Any bytes as requests of JSON-RPC: each line that asks for an answer gets one, which is JSON.
#![no_main]

use serde_json::Value;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut answers = Vec::new();
    strategic_merge_patch_stdio::serve(bytes, &mut answers).expect("memory can be read and written");
    let answers: Vec<Value> = answers
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).expect("an answer is JSON"))
        .collect();
    let requests = bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).count();
    assert!(answers.len() <= requests, "{} answers to {requests} requests", answers.len());
    for answer in answers {
        assert_eq!(answer["jsonrpc"], "2.0");
        assert_ne!(answer.get("result").is_some(), answer.get("error").is_some(), "{answer}");
    }
});
