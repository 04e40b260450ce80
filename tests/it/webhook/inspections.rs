//! Reviews of `UnionDeclaration`s, with an inspector that needs no cluster.

use super::wire::{Answer, Request, Running, token, until};
use fixtures::reviews;
use kube_unions_core::admission::InspectionToken;
use kube_unions_core::declaration::{Declaration, Fault, FaultKind};
use kube_unions_webhook::webhook::Inspector;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{Semaphore, watch};

/// Returns an inspector that adds `found` to the faults of each spec, and the number of its calls.
pub(super) fn finding(found: Vec<Fault>) -> (Inspector, Arc<AtomicUsize>) {
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

fn fault(kind: FaultKind, version: &str, pointer: &str, path: &str, message: &str) -> Fault {
    Fault {
        declaration: Some("deployment".to_owned()),
        version: Some(version.to_owned()),
        pointer: pointer.to_owned(),
        path: path.to_owned(),
        ..Fault::new(kind, "Deployment.apps", message.to_owned())
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
    let [new, old] = [object, old].map(|it| Some(it).filter(|it| !it.is_null()));
    reviews::review("u-1", operation, new, old)
}

/// Sends a review to the path of the token.
pub(super) async fn inspect(server: &Running, review: &Value) -> Value {
    ask(server, &token().path(), review).await
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
async fn a_faulty_declaration_is_denied_in_the_words_of_the_api_server() {
    let message = "the schema has no such place";
    let (inspector, _) = finding(vec![
        fault(FaultKind::InvalidUnion, "v1", "/spec/unions/0", "spec.strategy", message),
        fault(FaultKind::InvalidUnion, "v1beta1", "/spec/unions/0", "spec.strategy", message),
        fault(FaultKind::OpenDiscriminator, "v1", "/spec/unions/0", "spec.strategy", "may surprise"),
    ]);
    let server = Running::inspecting(inspector).await;
    let response = inspect(&server, &review("CREATE", &object("spec["), &Value::Null)).await;
    assert_eq!(response["allowed"], false);
    assert!(response.get("patch").is_none());
    let message_begins = "UnionDeclaration.kube-unions.dev \"deployment\" is invalid: [spec.unions[0]: Invalid";
    assert!(response["status"]["message"].as_str().unwrap().starts_with(message_begins), "{response}");
    let causes = reviews::causes(&response["status"]);
    assert_eq!(causes.len(), 2, "the same fault of two versions is listed once: {causes:#?}");
    assert!(causes.iter().all(|cause| cause.field == "spec.unions[0]" && cause.reason == "FieldValueInvalid"));
    assert!(causes[0].message.starts_with("Invalid value: \"spec[\": `spec[` is not a path"));
    assert_eq!(causes[1].message, format!("Invalid value: \"spec.strategy\": {message}"));
    assert_eq!(response["auditAnnotations"], json!({"denied": "spec.unions[0]: FieldValueInvalid"}));
    let series = "kube_unions_admission_reviews_total{group=\"other\",kind=\"other\",operation=\"CREATE\",phase=\"validate\",outcome=\"denied\"}";
    assert_eq!(server.metric(series).await, Some(1.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn surprises_and_old_faults_are_warnings() {
    let (inspector, _) = finding(vec![
        fault(FaultKind::OpenDiscriminator, "v1", "/spec/unions/0", "spec.strategy", "may surprise"),
        fault(FaultKind::OpenDiscriminator, "v1", "/spec/target", "", &"é".repeat(400)),
    ]);
    let server = Running::inspecting(inspector).await;
    let response = inspect(&server, &review("CREATE", &object("spec"), &Value::Null)).await;
    assert_eq!(response["allowed"], true);
    assert_eq!(response["warnings"][0], "spec.unions[0]: spec.strategy: may surprise");
    assert!(response["warnings"][1].as_str().is_some_and(|it| it.len() <= 256 && it.ends_with('…')));

    let noted = "spec.unions[0] (may surprise), spec.target (may surprise)";
    assert_eq!(response["auditAnnotations"], json!({"warned": noted}));

    let (old, mut new) = (object("spec["), object("spec["));
    new["metadata"]["labels"] = json!({"a": "b"});
    let response = inspect(&server, &review("UPDATE", &new, &old)).await;
    assert_eq!(response["allowed"], true, "{response}");
    assert!(response["warnings"][0].as_str().unwrap().contains("is not a path"), "{response}");
    new["spec"]["target"]["group"] = "batch".into();
    let response = inspect(&server, &review("UPDATE", &new, &old)).await;
    assert_eq!(response["allowed"], false, "{response}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inspector_that_fails_or_times_out_denies_nothing() {
    let failing: Inspector = Arc::new(|_| Box::pin(async { Err("the cluster is away".into()) }));
    let silent: Inspector = Arc::new(|_| Box::pin(std::future::pending()));
    for (inspector, reason) in [(failing, "the cluster is away"), (silent, "the cluster did not answer in time")] {
        let server = Running::inspecting(inspector).await;
        let response = inspect(&server, &review("CREATE", &object("spec"), &Value::Null)).await;
        assert_eq!(response["allowed"], true);
        let warning = format!("not checked, its condition will tell whether it is in force: {reason}");
        assert_eq!(response["warnings"], json!([warning]));
        assert_eq!(response["auditAnnotations"], json!({"warned": "not checked"}));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_reviews_of_declarations_are_inspected() {
    let (inspector, asked) = finding(Vec::new());
    let server = Running::inspecting(inspector).await;
    let mut elsewhere = review("CREATE", &object("spec"), &Value::Null);
    elsewhere["request"]["kind"]["group"] = "example.com".into();
    let mut status = review("UPDATE", &object("spec"), &object("spec"));
    status["request"]["subResource"] = "status".into();
    let path = &*token().path();
    let rows = [
        ("/mutate", review("CREATE", &object("spec"), &Value::Null)),
        ("/validate", review("CREATE", &object("spec"), &Value::Null)),
        (path, review("DELETE", &Value::Null, &object("spec"))),
        (path, elsewhere),
        (path, status),
    ];
    for (path, review) in rows {
        assert_eq!(ask(&server, path, &review).await["allowed"], true, "{review}");
    }
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    inspect(&server, &review("UPDATE", &object("spec"), &object("spec.x"))).await;
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

/// Returns everything that a client can see of an answer.
fn seen(answer: &Answer) -> (u16, &str, Vec<(&str, &str)>) {
    let headers = answer.headers.iter().map(|(name, value)| (&**name, &**value)).filter(|(name, _)| *name != "date");
    (answer.code, &answer.body, headers.collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_token_is_answered_like_any_unknown_path() {
    let (inspector, asked) = finding(Vec::new());
    let server = Running::inspecting(inspector).await;
    let body = review("CREATE", &object("spec"), &Value::Null).to_string();
    let elsewhere = server.send(&Request::post("/nothing", &*body)).await;
    assert_eq!(elsewhere.code, 404);
    let right = token().path();
    let wrong = InspectionToken::from_random(*b"that of another.").path();
    for path in [
        &wrong,
        &right[..right.len() - 1],
        &format!("{right}0"),
        &format!("{right}/"),
        &right.to_uppercase(),
        InspectionToken::PREFIX,
        "/validate/inspect",
    ] {
        let answer = server.send(&Request::post(path, &*body)).await;
        assert_eq!(seen(&answer), seen(&elsewhere), "{path}");
        let answer = server.send(&Request::get(path)).await;
        assert_eq!(answer.code, 404, "{path}: the answer does not show the allowed methods");
    }
    assert_eq!(server.send(&Request::get(&right)).await.code, 405);
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    // The API server sends its timeout as a query.
    assert_eq!(server.send(&Request::post(&format!("{right}?timeout=5s"), &*body)).await.code, 200);
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_path_follows_the_token() {
    let (inspector, asked) = finding(Vec::new());
    let tokens = watch::Sender::new(None);
    let inspections = Some((inspector, tokens.subscribe()));
    let server = Running::with(|config| config.inspections = inspections).await;
    let body = review("CREATE", &object("spec"), &Value::Null).to_string();
    let another = InspectionToken::from_random(*b"that of another.");
    let codes = async || {
        let [one, other] = [token(), another.clone()].map(|token| Request::post(&token.path(), &*body));
        (server.send(&one).await.code, server.send(&other).await.code)
    };
    assert_eq!(codes().await, (404, 404));
    tokens.send_replace(Some(token()));
    assert_eq!(codes().await, (200, 404));
    tokens.send_replace(Some(another.clone()));
    assert_eq!(codes().await, (404, 200));
    assert_eq!(asked.load(Ordering::Relaxed), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_not_a_review_is_a_bad_request_at_the_path_of_the_token() {
    let (inspector, asked) = finding(Vec::new());
    let server = Running::inspecting(inspector).await;
    let whole = review("CREATE", &object("spec"), &Value::Null);
    let without = |field: &str| {
        let mut review = whole.clone();
        review["request"].as_object_mut().unwrap().remove(field);
        review.to_string()
    };
    let mut beta = whole.clone();
    beta["apiVersion"] = "admission.k8s.io/v1beta1".into();
    let mut unheard = whole.clone();
    unheard["request"]["operation"] = "é".repeat(1000).into();
    for (body, words) in [
        ("[]".to_owned(), "expected an AdmissionReview"),
        (whole.to_string()[..100].to_owned(), "EOF"),
        (without("uid"), "missing field `uid`"),
        (beta.to_string(), "AdmissionReview of admission.k8s.io/v1"),
        (unheard.to_string(), "CREATE, UPDATE, DELETE or CONNECT"),
    ] {
        let answer = server.send(&Request::post(&token().path(), &*body)).await;
        assert_eq!(answer.code, 400, "{body}: {answer:?}");
        let message = answer.json()["message"].as_str().unwrap().to_owned();
        assert!(message.contains(words) && message.len() < 600, "{message}");
    }
    assert_eq!(inspect(&server, &serde_json::from_str(&without("object")).unwrap()).await["allowed"], true);
    assert_eq!(asked.load(Ordering::Relaxed), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn inspections_without_seats_are_refused_with_429() {
    let seats = Arc::new(Semaphore::new(64));
    let taken = Arc::clone(&seats);
    let inspector: Inspector = Arc::new(move |_| {
        let seat = Arc::clone(&taken).try_acquire_owned().expect("64 at a time at most");
        Box::pin(async move {
            let _seat = seat;
            std::future::pending().await
        })
    });
    let server = Running::inspecting(inspector).await;
    let request = || Request::post(&token().path(), review("CREATE", &object("spec"), &Value::Null).to_string());
    // Reviews of other objects continue.
    let honest = Request::post("/validate", super::wire::review("u-2"));
    let refused = AtomicUsize::new(0);
    until(async || {
        let all = (0..80).map(|_| async { server.send(&request()).await });
        let (answers, honest) = futures::join!(futures::future::join_all(all), server.send(&honest));
        assert_eq!(honest.code, 200);
        for answer in answers.iter().filter(|answer| answer.code != 200) {
            assert_eq!((answer.code, answer.header("retry-after")), (429, Some("1")), "{answer:?}");
            assert_eq!(answer.json()["reason"], "TooManyRequests");
            refused.fetch_add(1, Ordering::Relaxed);
        }
        refused.load(Ordering::Relaxed) > 0
    })
    .await;
    assert_eq!(seats.available_permits(), 64, "no inspection continues after its timeout");
    let metric = server.metric("kube_unions_inspections_total{kind=\"other\",outcome=\"busy\"}").await;
    assert_eq!(metric.map(|it| it.to_string()), Some(refused.load(Ordering::Relaxed).to_string()));
}
