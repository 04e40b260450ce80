//! Reviews of declarations themselves, judged by a stand-in for the cluster.

use super::wire::{Request, Running};
use kube_unions::declaration::{Declaration, Fault, Severity};
use kube_unions::server::Inspector;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Finds these in every declaration, besides what is wrong with its spec, and counts how often it was asked.
fn finding(found: Vec<Fault>) -> (Inspector, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let inspector: Inspector = Arc::new(move |object| {
        count.fetch_add(1, Ordering::Relaxed);
        let (_, mut faults) = Declaration::from_json(&object).expect("the object as it was sent");
        faults.extend(found.iter().cloned());
        Box::pin(async move { Ok(faults) })
    });
    (inspector, asked)
}

fn fault(severity: Severity, version: &str, pointer: &str, path: &str, message: &str) -> Fault {
    Fault {
        declaration: Some("deployment".to_owned()),
        version: Some(version.to_owned()),
        severity,
        pointer: pointer.to_owned(),
        path: path.to_owned(),
        ..Fault::unreadable("Deployment.apps", message.to_owned())
    }
}

fn object(path: &str) -> Value {
    json!({
        "apiVersion": "kube-unions.dev/v1alpha1", "kind": "UnionDeclaration", "metadata": {"name": "deployment"},
        "spec": {
            "target": {"group": "apps", "kind": "Deployment"},
            "unions": [{"path": path, "discriminator": "type", "fieldMembers": {"A": {"name": "a"}}}],
        },
    })
}

fn review(operation: &str, object: &Value, old: &Value) -> Value {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u-1", "operation": operation, "name": "deployment",
        "kind": {"group": "kube-unions.dev", "version": "v1alpha1", "kind": "UnionDeclaration"},
        "object": object, "oldObject": old,
    }})
}

async fn ask(server: &Running, path: &str, review: &Value) -> Value {
    let answer = server.send(&Request::post(path, review.to_string())).await;
    assert_eq!(answer.code, 200, "{answer:?}");
    let json = answer.json();
    assert_eq!(json["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(json["response"]["uid"], "u-1");
    json["response"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declaration_that_could_not_be_in_force_is_denied_in_the_words_of_the_api_server() {
    let message = "the schema has no such place";
    let (inspector, _) = finding(vec![
        fault(Severity::Error, "v1", "/spec/unions/0", "spec.strategy", message),
        fault(Severity::Error, "v1beta1", "/spec/unions/0", "spec.strategy", message),
        fault(Severity::Warning, "v1", "/spec/unions/0", "spec.strategy", "may surprise"),
    ]);
    let server = Running::inspecting(inspector).await;
    let response = ask(&server, "/validate", &review("CREATE", &object("spec["), &Value::Null)).await;
    assert_eq!(response["allowed"], false);
    assert!(response.get("patch").is_none());
    let status = &response["status"];
    assert_eq!((&status["code"], &status["reason"]), (&json!(422), &json!("Invalid")));
    let details = &status["details"];
    assert_eq!(details["name"], "deployment");
    assert_eq!((&details["group"], &details["kind"]), (&json!("kube-unions.dev"), &json!("UnionDeclaration")));
    let causes = details["causes"].as_array().unwrap();
    assert_eq!(causes.len(), 2, "the versions of a kind say it once: {causes:#?}");
    assert!(causes.iter().all(|cause| cause["field"] == "spec.unions[0]" && cause["reason"] == "FieldValueInvalid"));
    assert!(causes[0]["message"].as_str().unwrap().starts_with("Invalid value: \"spec[\": `spec[` is not a path"));
    assert_eq!(causes[1]["message"], format!("Invalid value: \"spec.strategy\": {message}"));
    let message = status["message"].as_str().unwrap();
    assert!(
        message.starts_with("UnionDeclaration.kube-unions.dev \"deployment\" is invalid: [spec.unions[0]: Invalid")
    );
    assert_eq!(response["auditAnnotations"], json!({"denied": "spec.unions[0]: FieldValueInvalid"}));
    let series = "kube_unions_admission_reviews_total{group=\"other\",kind=\"other\",operation=\"CREATE\",phase=\"validate\",outcome=\"denied\"}";
    assert_eq!(server.metric(series).await, Some(1.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_surprise_is_a_warning_and_so_is_an_old_fault() {
    let (inspector, _) = finding(vec![
        fault(Severity::Warning, "v1", "/spec/unions/0", "spec.strategy", "may surprise"),
        fault(Severity::Warning, "v1", "/spec/target", "", &"é".repeat(400)),
    ]);
    let server = Running::inspecting(inspector).await;
    let response = ask(&server, "/validate", &review("CREATE", &object("spec"), &Value::Null)).await;
    assert_eq!(response["allowed"], true);
    assert_eq!(response["warnings"][0], "spec.unions[0]: spec.strategy: may surprise");
    assert!(response["warnings"][1].as_str().is_some_and(|it| it.len() <= 256 && it.ends_with('…')));

    let noted = "spec.unions[0] (may surprise), spec.target (may surprise)";
    assert_eq!(response["auditAnnotations"], json!({"warned": noted}));

    let (old, mut new) = (object("spec["), object("spec["));
    new["metadata"]["labels"] = json!({"a": "b"});
    let response = ask(&server, "/validate", &review("UPDATE", &new, &old)).await;
    assert_eq!(response["allowed"], true, "{response}");
    assert!(response["warnings"][0].as_str().unwrap().contains("is not a path"), "{response}");
    new["spec"]["target"]["group"] = "batch".into();
    let response = ask(&server, "/validate", &review("UPDATE", &new, &old)).await;
    assert_eq!(response["allowed"], false, "{response}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inspector_that_fails_denies_nothing() {
    let inspector: Inspector = Arc::new(|_| Box::pin(async { Err("the cluster is away".into()) }));
    let server = Running::inspecting(inspector).await;
    let response = ask(&server, "/validate", &review("CREATE", &object("spec"), &Value::Null)).await;
    assert_eq!(response["allowed"], true);
    let warning = "not checked, its condition will tell whether it is in force: the cluster is away";
    assert_eq!(response["warnings"], json!([warning]));
    assert_eq!(response["auditAnnotations"], json!({"warned": "not checked"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inspector_that_does_not_answer_in_time_denies_nothing() {
    let inspector: Inspector = Arc::new(|_| Box::pin(std::future::pending()));
    let server = Running::inspecting(inspector).await;
    let response = ask(&server, "/validate", &review("CREATE", &object("spec"), &Value::Null)).await;
    assert_eq!(response["allowed"], true);
    assert!(response["warnings"][0].as_str().unwrap().contains("did not answer in time"), "{response}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_reviews_of_declarations_are_inspected() {
    let (inspector, asked) = finding(Vec::new());
    let server = Running::inspecting(inspector).await;
    let mut elsewhere = review("CREATE", &object("spec"), &Value::Null);
    elsewhere["request"]["kind"]["group"] = "example.com".into();
    let mut status = review("UPDATE", &object("spec"), &object("spec"));
    status["request"]["subResource"] = "status".into();
    let rows = [
        ("/mutate", review("CREATE", &object("spec"), &Value::Null)),
        ("/validate", review("DELETE", &Value::Null, &object("spec"))),
        ("/validate", elsewhere),
        ("/validate", status),
    ];
    for (path, review) in rows {
        assert_eq!(ask(&server, path, &review).await["allowed"], true, "{review}");
    }
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    ask(&server, "/validate", &review("UPDATE", &object("spec"), &object("spec.x"))).await;
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}
