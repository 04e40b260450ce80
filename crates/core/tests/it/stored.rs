//! Stored objects, judged without an `AdmissionReview`. Every row of the cases is judged this way as well.

use fixtures::reviews::{catalog_of, thing};
use kube_unions_core::admission::{StoredObject, StoredObjectError};
use serde_json::{Value, json};

fn judge(text: &str) -> Result<StoredObject, StoredObjectError> {
    let field = json!({"type": "string"});
    let unions = json!([{"fields-to-discriminateBy": {"x": "X", "y": "Y"}}]);
    let schema = json!({"type": "object", "x-kubernetes-unions": unions, "properties": {"x": field, "y": field}});
    StoredObject::judge(&catalog_of(&schema).entries()[0], text)
}

#[test]
fn a_text_that_is_no_object_is_an_error() {
    assert!(matches!(judge("[]"), Err(StoredObjectError::NotAnObject)));
    assert!(matches!(judge("null"), Err(StoredObjectError::NotAnObject)));
    for text in ["", "{", "{} {}", "{\"a\": nul}"] {
        assert!(matches!(judge(text), Err(StoredObjectError::Malformed(_))), "{text}");
    }
    let valid: Value = thing(&json!({}));
    assert!(judge(&valid.to_string()).is_ok());
}
