//! Stored objects, judged without an `AdmissionReview`. Every row of the cases is judged this way as well.

use fixtures::reviews::{catalog_of, thing};
use fixtures::stored::assert_judged_as_reviewed;
use kube_unions_core::admission::{StoredObject, StoredObjectError};
use kube_unions_core::catalog::Catalog;
use kube_unions_core::union::MOST_VIOLATIONS;
use serde_json::{Value, json};

fn catalog() -> Catalog {
    let items = json!({"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "string"}},
        "x-kubernetes-unions": [{"fields-to-discriminateBy": {"x": "X", "y": "Y"}}]});
    catalog_of(&json!({"type": "object", "properties": {"items": {"type": "array", "items": items}}}))
}

fn judge(text: &str) -> Result<StoredObject, StoredObjectError> {
    StoredObject::judge(&catalog().entries()[0], text)
}

#[test]
fn violations_beyond_the_cap_are_counted() {
    let items = vec![json!({"x": "", "y": ""}); MOST_VIOLATIONS + 44];
    let object = thing(&json!({"items": items}));
    let stored = judge(&object.to_string()).unwrap();
    assert_eq!(stored.violations().kept().len(), MOST_VIOLATIONS);
    assert_eq!(stored.violations().left_out(), 44);
    assert!(!stored.is_repaired());
    assert_judged_as_reviewed(&catalog(), &object);
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
