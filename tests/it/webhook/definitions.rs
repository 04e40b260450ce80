//! Reviews of CRDs with the annotation.

use super::inspections::{self, finding};
use super::wire::{Request, Running, token};
use fixtures::crds;
use fixtures::reviews::{self, Cause};
use kube_unions_core::declaration::{ANNOTATIONS_LIMIT, LAST_APPLIED};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The path of the annotation, as the API server writes it.
const FIELD: &str = "metadata.annotations[kube-unions.dev/unions]";

/// Returns a server, and the number of calls of its inspector.
async fn server() -> (Running, Arc<AtomicUsize>) {
    let (inspector, asked) = finding(Vec::new());
    (Running::inspecting(inspector).await, asked)
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "git": {"type": "object"}, "oci": {"type": "object"},
        "type": {"type": "string", "enum": ["Git", "Oci", "None"]},
        "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}},
    }}}})
}

/// Returns a CRD with this value, or this text, in its annotation.
fn crd(annotation: &Value) -> Value {
    let text = annotation.as_str().map_or_else(|| annotation.to_string(), str::to_owned);
    crds::annotated("g.example", "Source", &[crds::version("v1", &schema())], &text)
}

fn good() -> Value {
    json!({"v1": {"/properties/spec": [{"fields-to-discriminateBy": {"git": "Git", "oci": "Oci"}}]}})
}

fn review(old: Option<&Value>, new: &Value) -> Value {
    reviews::review("u-1", if old.is_some() { "UPDATE" } else { "CREATE" }, Some(new), old)
}

async fn inspect(server: &Running, old: Option<&Value>, new: &Value) -> Value {
    inspections::inspect(server, &review(old, new)).await
}

/// Returns the causes of a denial of the CRD.
fn causes(response: &Value) -> Vec<Cause> {
    assert_eq!(response["allowed"], false, "{response}");
    let status = &response["status"];
    let message = status["message"].as_str().unwrap();
    let begins = "CustomResourceDefinition.apiextensions.k8s.io \"sources.g.example\" is invalid: ";
    assert!(message.starts_with(begins) && message.len() <= 8192, "{message}");
    let causes = reviews::causes(status);
    assert!(causes.iter().all(|cause| cause.message.len() <= 2048), "{causes:?}");
    causes
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_is_denied_with_its_path_and_its_reason() {
    let (server, asked) = server().await;
    let list = json!({"v1": {"/properties/spec": [{"fields-to-discriminateBy": {"git": "Git", "ocl": "Oci"}}]}});
    let rows: [(Value, &str, &str); 7] = [
        (json!(""), "", "not a JSON object of versions and pointers"),
        (json!("[]"), "", "expected a JSON object"),
        (json!({"v9": {}}), "", "no version `v9`"),
        (json!({"v1": {"properties/spec": []}}), "v1", "properties/spec"),
        (json!({"v1": {"/properties/spce": good()["v1"]["/properties/spec"]}}), "v1 spce", "no such place"),
        (list, "v1 spec", "`ocl`"),
        (
            json!({"v1": {"/properties/spec/properties/type": {"fieldMembers": {"Git": {"name": "git"}, "Oci": {"name": "oci"}, "Nnoe": null, "None": null}}}}),
            "v1 spec.type",
            "`Nnoe`",
        ),
    ];
    for (annotation, place, words) in rows {
        let causes = causes(&inspect(&server, None, &crd(&annotation)).await);
        let begins =
            if place.is_empty() { "Invalid value: ".to_owned() } else { format!("Invalid value: {place:?}: ") };
        let is_it = |it: &Cause| it.field == FIELD && it.message.starts_with(&begins) && it.message.contains(words);
        assert!(causes.iter().any(is_it), "{annotation}: {causes:#?}");
    }
    assert_eq!(asked.load(Ordering::Relaxed), 0, "the request has all that it takes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denial_lists_every_fault_beside_a_valid_declaration() {
    let (server, _) = server().await;
    let mut annotation = good();
    annotation["v1"]["/properties/nowhere"] = json!([]);
    annotation["v2"] = json!({});
    let causes = causes(&inspect(&server, None, &crd(&annotation)).await);
    assert_eq!(causes.len(), 2, "{causes:#?}");
    let denied = r#"kube_unions_inspections_total{kind="CustomResourceDefinition",outcome="denied"}"#;
    assert_eq!(server.metric(denied).await, Some(1.0));
    let response = inspect(&server, None, &crd(&good())).await;
    assert_eq!(response, json!({"uid": "u-1", "allowed": true}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_surprising_declaration_is_a_warning() {
    let (server, _) = server().await;
    let rows = [
        (
            json!({"v1": {"/properties/spec/properties/list/items": [{"fields-to-discriminateBy": {"a": "A", "b": "B"}}]}}),
            "v1 spec.list[*]",
        ),
        (json!(r#"{"v1": {}, "v1": {}}"#), "twice"),
    ];
    for (annotation, words) in rows {
        let response = inspect(&server, None, &crd(&annotation)).await;
        assert_eq!(response["allowed"], true, "{response}");
        let warning = response["warnings"][0].as_str().unwrap();
        assert!(warning.starts_with(FIELD) && warning.contains(words), "{warning}");
        assert_eq!(response["auditAnnotations"]["warned"], format!("{FIELD} (may surprise)"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_last_applied_configuration_denies_nothing() {
    let (server, _) = server().await;
    let mut stale = crd(&good());
    stale["metadata"]["annotations"] = json!({});
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    stale.pointer_mut(schema).unwrap()["x-kubernetes-unions"] = json!([{"fields-to-discriminateBy": {"git": "G"}}]);
    let mut crd = crd(&good());
    crd["metadata"]["annotations"][LAST_APPLIED] = stale.to_string().into();
    let response = inspect(&server, None, &crd).await;
    assert_eq!(response["allowed"], true, "{response}");
    assert!(response["warnings"][0].as_str().unwrap().contains("contradicts"), "{response}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_fault_denies_no_update_and_a_new_one_does() {
    let (server, _) = server().await;
    let bad = json!({"v1": {"/properties/spec": [{"fields-to-discriminateBy": {"git": "Git", "ocl": "Oci"}}]}});
    let old = crd(&bad);
    // A change of labels or status is always allowed.
    let mut labelled = old.clone();
    labelled["metadata"]["labels"] = json!({"a": "b"});
    labelled["metadata"]["annotations"]["example.com/note"] = "x".into();
    assert_eq!(inspect(&server, Some(&old), &labelled).await, json!({"uid": "u-1", "allowed": true}));

    // The schema changes, and the fault stays.
    let mut extended = old.clone();
    let properties = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    extended.pointer_mut(properties).unwrap()["more"] = json!({"type": "string"});
    let response = inspect(&server, Some(&old), &extended).await;
    assert_eq!(response["allowed"], true, "{response}");
    assert!(response["warnings"][0].as_str().unwrap().contains("`ocl`"), "{response}");
    assert_eq!(response["auditAnnotations"]["warned"], format!("{FIELD} (the fault is an old one)"));

    // One fault goes, another stays.
    let mut two = bad.clone();
    two["v1"]["/properties/nowhere"] = json!([]);
    assert_eq!(inspect(&server, Some(&crd(&two)), &old).await["allowed"], true);
    // A second fault is new. So is the same fault in a new version.
    let found = causes(&inspect(&server, Some(&old), &crd(&two)).await);
    assert!(found.len() == 1 && found[0].message.contains("nowhere"), "{found:#?}");
    let mut both = bad.clone();
    both["v2"] = both["v1"].clone();
    let mut second = crd(&both);
    let mut version = second["spec"]["versions"][0].clone();
    (version["name"], version["storage"]) = ("v2".into(), false.into());
    second["spec"]["versions"].as_array_mut().unwrap().insert(0, version);
    let found = causes(&inspect(&server, Some(&old), &second).await);
    assert!(found.len() == 1 && found[0].message.contains("\"v2 spec\""), "{found:#?}");

    // A new schema can make a valid declaration faulty.
    let mut without = crd(&good());
    without.pointer_mut(properties).unwrap().as_object_mut().unwrap().remove("oci");
    causes(&inspect(&server, Some(&crd(&good())), &without).await);
    // Without the annotation there is no fault.
    let mut bare = old.clone();
    bare["metadata"]["annotations"] = Value::Null;
    assert_eq!(inspect(&server, Some(&old), &bare).await, json!({"uid": "u-1", "allowed": true}));
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_gets_a_clear_and_bounded_answer() {
    let (server, _) = server().await;
    let long = "x".repeat(ANNOTATIONS_LIMIT - 1024);
    let many: serde_json::Map<String, Value> =
        (0..8_000).map(|number| (format!("/properties/spec/properties/no.{number}~1\u{7}"), json!([]))).collect();
    let deep = "[".repeat(100_000);
    let cycle = format!("/properties/spec{}", "/properties/spec".repeat(10_000));
    for annotation in [
        json!(long),
        json!("\u{0}\u{7}\u{1b}[31m\n"),
        json!({"v1": {"/properties/spec": deep}}),
        json!({"v1": { long.clone(): [] }}),
        json!({"v1": {"/properties/spec": [{"discriminator": long, "fields-to-discriminateBy": {"git": "Git"}}]}}),
        json!({"v1": { cycle: [] }}),
        json!({"v1": many}),
        json!({"../v1": {}, "v1/../..": {}, "a.b/c": {}}),
    ] {
        let response = inspect(&server, None, &crd(&annotation)).await;
        assert!(!causes(&response).is_empty());
        assert!(response.to_string().len() < 600_000, "{}", response.to_string().len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_names_are_left_to_the_api_server() {
    let (server, asked) = server().await;
    for name in ["../../etc", "a/b.c", "", "\u{7}"] {
        let mut crd = crd(&good());
        crd["metadata"]["name"] = name.into();
        crd["spec"]["group"] = format!("{name}/..").into();
        crd["spec"]["names"]["plural"] = "a/b".into();
        let response = inspect(&server, None, &crd).await;
        assert_eq!(response["allowed"], true, "the API server itself refuses such names: {response}");
    }
    assert_eq!(asked.load(Ordering::Relaxed), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_crd_is_denied_and_a_crd_without_the_annotation_is_not_inspected() {
    let (server, _) = server().await;
    let mut odd = crd(&good());
    odd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] = json!(7);
    let found = causes(&inspect(&server, None, &odd).await);
    assert!(
        found.len() == 1 && found[0].field == "spec" && found[0].message.contains("spec.versions[0].schema"),
        "{found:#?}"
    );
    assert_eq!(inspect(&server, Some(&odd), &odd).await["allowed"], true);
    odd["metadata"]["annotations"] = json!({"example.com/other": "x"});
    assert_eq!(inspect(&server, None, &odd).await, json!({"uid": "u-1", "allowed": true}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_crd_is_inspected_and_a_body_above_the_limit_is_refused() {
    let (server, _) = server().await;
    let mut large = crd(&json!({"v1": {"/properties/spce": []}}));
    let properties: serde_json::Map<String, Value> =
        (0..10_000).map(|number| (format!("property{number}"), json!({"type": "object", "properties": {}}))).collect();
    large["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["many"] =
        json!({"type": "object", "properties": properties});
    causes(&inspect(&server, None, &large).await);

    large["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "x".repeat(10 << 20).into();
    let answer = server.send(&Request::post(&token().path(), review(None, &large).to_string())).await;
    assert_eq!((answer.code, answer.json()["reason"].as_str()), (413, Some("RequestEntityTooLarge")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crd_that_needs_too_much_memory_is_allowed_unchecked() {
    let (server, _) = server().await;
    let mut hostile = crd(&json!({"v1": {"/properties/spce": []}}));
    // One megabyte of these needs a hundred to compile.
    hostile["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["allOf"] = json!(vec![json!({}); 300_000]);
    let response = inspect(&server, None, &hostile).await;
    assert_eq!(response["allowed"], true);
    assert!(response["warnings"][0].as_str().unwrap().starts_with("not checked, "), "{response}");
    let unchecked = r#"kube_unions_inspections_total{kind="CustomResourceDefinition",outcome="unchecked"}"#;
    assert_eq!(server.metric(unchecked).await, Some(1.0));
    hostile["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["allOf"] = json!(vec![json!({}); 3_000]);
    causes(&inspect(&server, None, &hostile).await);
}
