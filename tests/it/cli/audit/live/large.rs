//! Clusters with many objects: those that are audited are read page by page, and definitions are kept up to a limit.

use super::{ApiServer, DEFINITIONS, WIDGETS, definition, page_of, widget};
use serde_json::{Value, json};

/// More objects than are kept of any list.
const MANY: usize = 25_000;

#[test]
fn every_object_of_a_list_that_is_longer_than_any_that_is_kept_is_audited() {
    let named = |number: usize| {
        let mut object = widget(number);
        object["metadata"]["name"] = format!("w{number:05}").into();
        object
    };
    let server = ApiServer::start(move |asked| asked.is(WIDGETS).then(|| page_of(asked, MANY, named)));
    let run = server.audit(&["-A", "-o", "json"]).code(1);
    let report = run.json();
    let summary = &report["summary"];
    assert_eq!((&summary["complete"], &summary["objects"]), (&json!(true), &json!(MANY)));
    let invalid = report["findings"].as_array().unwrap().iter().map(|finding| finding["name"].as_str().unwrap());
    assert!(invalid.eq((0..MANY).step_by(5).map(|number| format!("w{number:05}"))));
    assert!(server.tokens().len() < 100, "{} pages", server.tokens().len());
}

/// Returns the CRD of Widgets as the first one, and others without a schema.
fn numbered(number: usize) -> Value {
    if number == 0 {
        return definition();
    }
    json!({"metadata": {"name": format!("kind{number}s.example.org"), "resourceVersion": "7"}})
}

#[test]
fn definitions_are_read_up_to_a_limit_and_one_more_is_said_to_be_too_many() {
    for (definitions, code, says) in [
        (20_000, 1, "100 objects"),
        (
            20_001,
            2,
            "error: the cluster's unions cannot be learnt: the list has more than 20000 objects; delete some, or check",
        ),
        (
            MANY,
            2,
            "error: the cluster's unions cannot be learnt: the list has more than 20000 objects; delete some, or check",
        ),
    ] {
        let server = ApiServer::start(move |asked| match &*asked.path {
            DEFINITIONS => Some(page_of(asked, definitions, numbered)),
            WIDGETS => Some(page_of(asked, 100, widget)),
            _ => None,
        });
        server.audit(&["-A"]).code(code).says(&[says]);
        assert_eq!(server.requests(WIDGETS).is_empty(), code == 2, "{definitions}");
    }
}
