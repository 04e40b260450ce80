//! Any text as both objects of an update. What is not JSON is refused, and what is JSON is judged alike however it is written: a text
//! that `serde_json` read and wrote again has no duplicate names, no needless escapes and no part that repeats another.
#![no_main]

use kube_unions_core::admission::{Phase, Ratcheting, StoredObject, StoredObjectError, review};
use kube_unions_fuzz::CATALOG;
use serde_json::Value;
use serde_json::value::RawValue;

fn update(new: &str, old: &str) -> String {
    format!(
        r#"{{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{{"uid":"1","kind":{{"group":"example.com","version":"v1","kind":"Thing"}},"operation":"UPDATE","object":{new},"oldObject":{old}}}}}"#
    )
}

/// Returns true if a number would be written in another way. Keys of lists are compared as they are written.
fn is_rounded(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(items) => items.iter().any(is_rounded),
        Value::Object(fields) => fields.values().any(is_rounded),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

libfuzzer_sys::fuzz_target!(|text: &str| {
    let entry = CATALOG.lookup("example.com", "v1", "Thing").unwrap();
    let judged = StoredObject::judge(entry, text);
    if serde_json::from_str::<&RawValue>(text).is_err() {
        assert!(matches!(judged, Err(StoredObjectError::Malformed(_))), "{judged:?}");
        return;
    }
    let Some(value) = serde_json::from_str::<Value>(text).ok().filter(|value| !is_rounded(value)) else { return };
    assert!(!matches!(judged, Err(StoredObjectError::Malformed(_))), "{judged:?}");
    let (new, old) = (value.to_string(), serde_json::to_string_pretty(&value).unwrap());
    for phase in [Phase::Mutate, Phase::Validate, Phase::Both] {
        let answer = |body: String| {
            let answer = review(&CATALOG, phase, Ratcheting::Enabled, body.as_bytes());
            answer.map(|answer| answer.to_json()).map_err(|error| error.to_string())
        };
        assert_eq!(answer(update(text, text)), answer(update(&new, &old)));
    }
});
