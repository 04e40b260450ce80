//! `kube-unions compile --to openapi`: unions in the keywords of a CRD's schema, which have no estimated cost.

use serde_json::{Value, json};

use super::super::agreement::Subject;
use super::super::{IN_FORCE, Native};
use super::ask;
use crate::support::kind::{documents, forget_unions};
use crate::support::webhook::kube_unions;
use fixtures::crds::{crd, version};
use fixtures::wait::eventually;
use kube_unions_core::admission::StoredObject;

const GROUP: &str = "keywords.rules.example";

/// Returns a CRD with a union of the 2022 form four lists deep. No list has `maxItems`.
fn definition() -> Value {
    let names = || (0..16).map(|number| format!("m{number}"));
    let values: Value = names().map(|name| (name.to_uppercase(), json!({"name": name}))).collect();
    let mut properties: Value = names().map(|name| (name, json!({"type": "object", "nullable": true}))).collect();
    properties["type"] = json!({"type": "string", "x-kubernetes-unions": {"fieldMembers": values}});
    let union = json!({"type": "object", "properties": properties});
    let lists = (0..4)
        .fold(union, |inner, _| json!({"type": "object", "properties": {"list": {"type": "array", "items": inner}}}));
    crd(GROUP, "Deep", &[version("v1", &lists)])
}

/// Returns the fields of an object with this union.
fn fields(union: &Value) -> Value {
    (0..4).fold(union.clone(), |inner, _| json!({"list": [{}, inner]}))
}

/// Compiles the CRD to a form, and asks the API server if it accepts the CRD.
fn compiled(native: &Native, form: &str, definition: &Value) -> Value {
    let run =
        kube_unions(&["compile", "--to", form, "--from=-", "--allow-partial"], &definition.to_string()).accepted();
    let mut crd = documents(&run.stdout).remove(0);
    forget_unions(&mut crd);
    let answer = ask(native, &crd);
    assert_eq!(answer.status, 201, "{form}: {}", answer.body["message"]);
    crd
}

/// A union four lists deep is too expensive in CEL, for us and for the API server. In keywords it is accepted, and the API server
/// refuses what an audit calls invalid.
pub(in super::super) fn are_judged_four_lists_deep(native: &Native) {
    let definition = definition();
    let cel = kube_unions(&["compile", "--to=cel", "--from=-"], &definition.to_string());
    assert_eq!(cel.code, Some(1), "{cel:?}");
    assert!(cel.stderr.contains("times the limit, because a list or map has no limit"), "{cel:?}");
    // The rules do not depend on the limits of lists.
    let mut limited = definition.clone();
    let mut node = &mut limited["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    for _ in 0..4 {
        node["properties"]["list"]["maxItems"] = json!(1);
        node = &mut node["properties"]["list"]["items"];
    }
    let mut forced = compiled(native, "cel", &limited);
    let mut node = &mut forced["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    for _ in 0..4 {
        node["properties"]["list"].as_object_mut().expect("a schema").remove("maxItems");
        node = &mut node["properties"]["list"]["items"];
    }
    assert!(node["x-kubernetes-validations"].is_array(), "{node}");
    let refused = ask(native, &forced);
    assert_eq!(refused.status, 422, "{}", refused.body);
    assert!(refused.body["message"].to_string().contains("estimated rule cost"), "{}", refused.body["message"]);

    let mut subject = Subject::of_definition(definition.clone());
    subject.definition = compiled(native, "openapi", &definition);
    native.apply(&subject.definition);
    native.wait_until_served(&subject.api.path(""));
    let entry = &subject.catalog.entries()[0];
    let write = |union: &Value| subject.ask(native, None, &fields(union));
    assert!(
        eventually(IN_FORCE, || write(&json!({"type": "M0", "m1": {}})).status == 422),
        "the schema was not in force"
    );
    let (mut accepted, mut denied) = (0, 0);
    for union in [
        json!({}),
        json!({"type": "M0", "m0": {}}),
        json!({"type": "M15", "m15": {}, "m0": null}),
        json!({"m0": null}),
        json!({"type": "M0"}),
        json!({"type": "M0", "m0": null}),
        json!({"type": "M0", "m1": {}}),
        json!({"type": "M0", "m0": {}, "m15": {}}),
        json!({"type": "Other"}),
        json!({"type": "Other", "m0": {}}),
        json!({"m0": {}}),
        json!({"m0": {}, "m1": {}}),
    ] {
        let object = subject.api.object("deep", &fields(&union));
        let is_valid = StoredObject::judge(entry, &object.to_string()).unwrap().violations().is_empty();
        let answer = write(&union);
        assert_eq!(answer.status, if is_valid { 201 } else { 422 }, "{union}: {}", answer.body["message"]);
        *(if is_valid { &mut accepted } else { &mut denied }) += 1;
    }
    assert_eq!((accepted, denied), (4, 8));
}

#[test]
fn unions_in_keywords_are_judged_four_lists_deep() {
    let Some(native) = Native::start() else { return };
    are_judged_four_lists_deep(&native);
}
