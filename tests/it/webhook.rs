//! The server from the client's side, over loopback, byte by byte if necessary.

mod certificate;
mod definitions;
mod inspections;
#[cfg(feature = "otlp")]
mod otlp;
mod overload;
mod pressure;
mod process;
mod requests;
pub(crate) mod telemetry;
pub(crate) mod wire;

use fixtures::crds;
use fixtures::reviews::{self, declaration, declared_catalog};
use kube_unions_core::admission::{self, ReviewError};
use kube_unions_core::catalog::Catalog;
use kube_unions_webhook::webhook::{Config, Reviewer, Timeouts};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use wire::{Request, Running, Wire, padded_review, review, speaking, until};

const MIB: usize = 1024 * 1024;

#[tokio::test(flavor = "multi_thread")]
async fn a_review_is_answered_on_a_connection_that_stays() {
    let server = Running::start().await;
    let mut wire = server.connect().await;
    for (path, content_type) in [
        ("/mutate", "application/json"),
        ("/validate?timeout=5s", "application/json; charset=utf-8"),
        ("/mutate?timeout=5s", "Application/JSON"),
    ] {
        let answer = wire.exchange(&Request::typed(path, content_type, review("u-1"))).await;
        assert_eq!(answer.code, 200, "{path}: {answer:?}");
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.header("connection"), None);
        assert_eq!(answer.json()["response"]["uid"], "u-1");
        assert_eq!(answer.json()["response"]["allowed"], true);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_speaks_tls_1_2_and_1_3() {
    let server = Running::start().await;
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let mut wire =
            Wire::tls(server.addresses.webhook, speaking(&[version], &server.authority, None)).await.unwrap();
        assert_eq!(wire.exchange(&Request::post("/mutate", review("u"))).await.code, 200, "{version:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_not_a_review_is_refused_with_a_status() {
    let server = Running::start().await;
    let json = "application/json";
    let rows: [(&str, Request, u16, &str, &str); 13] = [
        ("not JSON", Request::post("/mutate", "kind: Pod"), 400, "BadRequest", ""),
        ("truncated", Request::post("/validate", &review("u")[..200]), 400, "BadRequest", ""),
        ("empty", Request::post("/mutate", ""), 400, "BadRequest", ""),
        ("no request", Request::post("/mutate", r#"{"kind":"AdmissionReview"}"#), 400, "BadRequest", ""),
        ("not UTF-8", Request::post("/mutate", vec![b'"', 0xff, b'"']), 400, "BadRequest", ""),
        ("8 MiB", Request::post("/mutate", padded_review("u", 8 * MIB)), 413, "RequestEntityTooLarge", "7340032"),
        ("YAML", Request::typed("/mutate", "application/yaml", "{}"), 415, "UnsupportedMediaType", json),
        ("no type", Request::typed("/mutate", "", "{}"), 415, "UnsupportedMediaType", json),
        (
            "almost JSON",
            Request::typed("/mutate", "application/json-patch+json", "{}"),
            415,
            "UnsupportedMediaType",
            json,
        ),
        ("GET", Request::get("/mutate"), 405, "MethodNotAllowed", "POST"),
        ("elsewhere", Request::post("/convert", review("u")), 404, "NotFound", "/mutate"),
        ("root", Request::get("/"), 404, "NotFound", "/validate"),
        ("a path of the ops port", Request::get("/metrics"), 404, "NotFound", "/validate"),
    ];
    for (what, request, code, reason, says) in rows {
        let answer = server.send(&request).await;
        assert_eq!(answer.code, code, "{what}: {answer:?}");
        assert_eq!(answer.header("content-type"), Some(json), "{what}");
        assert_eq!(answer.header("retry-after"), None, "{what}");
        assert_eq!(answer.header("allow"), (code == 405).then_some("POST"), "{what}");
        let status = answer.json();
        assert_eq!(status["kind"], "Status", "{what}");
        assert_eq!(status["apiVersion"], "v1", "{what}");
        assert_eq!(status["status"], "Failure", "{what}");
        assert_eq!(status["code"], code, "{what}");
        assert_eq!(status["reason"], reason, "{what}");
        let message = status["message"].as_str().unwrap();
        assert!(!message.is_empty() && message.contains(says), "{what}: {message}");
    }
    assert_eq!(server.send(&Request::post("/mutate", review("after"))).await.code, 200);
    assert_eq!(server.metric("kube_unions_panics_total").await, Some(0.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_of_seven_mebibytes_is_reviewed_and_one_byte_more_is_not() {
    let server = Running::start().await;
    assert_eq!(server.send(&Request::post("/mutate", padded_review("u", 7 * MIB))).await.code, 200);
    assert_eq!(server.send(&Request::post("/mutate", padded_review("u", 7 * MIB + 1))).await.code, 413);
    // Without Content-Length, the server counts the bytes as they arrive.
    let mut wire = server.connect().await;
    wire.write(
        b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
    )
    .await;
    let chunk = [b"100000\r\n", " ".repeat(MIB).as_bytes(), b"\r\n"].concat();
    for _ in 0..7 {
        wire.write(&chunk).await;
    }
    wire.write(b"1\r\n \r\n0\r\n\r\n").await;
    assert_eq!(wire.answer().await.code, 413);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_too_long_and_never_ends_is_refused() {
    let server = Running::with(|config| {
        (config.limits.body, config.timeouts.body) = (1024, Duration::from_secs(2));
    })
    .await;
    let mut wire = server.connect().await;
    let body = format!("800\r\n{}\r\n", " ".repeat(2048));
    let head =
        "POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    wire.write([head, &body].concat().as_bytes()).await;
    assert_eq!(wire.answer().await.code, 413);
}

#[tokio::test(flavor = "multi_thread")]
async fn expect_100_continue_refuses_a_long_body_before_it_is_sent() {
    let server = Running::start().await;
    let mut wire = server.connect().await;
    wire.write(
        b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9000000\r\n\
          Expect: 100-continue\r\n\r\n",
    )
    .await;
    assert_eq!(wire.answer().await.code, 413);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_is_ready_after_the_first_catalog() {
    let server = Running::without_catalog(|_| {}).await;
    until(async || server.ops("/readyz?verbose").await.body.contains("[+]listening ok\n")).await;
    let unready = server.ops("/readyz").await;
    assert_eq!(unready.code, 503);
    assert!(unready.body.contains("[+]certificate ok\n"), "{unready:?}");
    assert!(unready.body.contains("[-]catalog failed: "), "{unready:?}");
    assert_eq!(server.ops("/livez").await.code, 200);
    // An allowed review here would allow every object.
    let answer = server.send(&Request::post("/mutate", review("u"))).await;
    assert_eq!((answer.code, answer.header("retry-after")), (503, Some("1")));

    server.catalogs.send_replace(Some(Arc::default()));
    server.until_ready().await;
    assert_eq!(server.ops("/readyz").await.body, "ok\n");
    let checks =
        "[+]listening ok\n[+]certificate ok\n[+]clock ok\n[+]catalog ok\n[+]shutdown ok\nreadyz check passed\n";
    assert_eq!(server.ops("/readyz?verbose").await.body, checks);
    assert_eq!(server.send(&Request::post("/mutate", review("u"))).await.code, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ops_port_serves_only_health_and_metrics() {
    let server = Running::start().await;
    assert_eq!(server.ops("/mutate").await.code, 404);
    let mut wire = Wire::plain(server.addresses.ops).await;
    let answer = wire.exchange(&Request::post("/metrics", "{}")).await;
    assert_eq!((answer.code, answer.header("allow")), (405, Some("GET, HEAD")));
    let metrics = server.ops("/metrics").await;
    assert_eq!(metrics.code, 200);
    assert!(metrics.header("content-type").unwrap().starts_with("application/openmetrics-text"), "{metrics:?}");
    assert!(metrics.body.ends_with("# EOF\n"));
}

/// Returns a catalog with the kind of [`review`], with this number of unions in its spec.
fn declared(unions: usize) -> Arc<Catalog> {
    let mut properties = serde_json::Map::new();
    let mut declarations = Vec::new();
    for index in 0..unions {
        let [a, b] = ["a", "b"].map(|it| format!("{it}{index}"));
        declarations.push(json!({"fields-to-discriminateBy": {a.as_str(): "A", b.as_str(): "B"}}));
        properties.extend([a, b].map(|it| (it, json!({"type": "string"}))));
    }
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": properties, "x-kubernetes-unions": declarations},
    }});
    Arc::new(reviews::catalog(&[&crds::crd("nobody.example", "Stranger", &[crds::version("v1", &schema)])]))
}

/// Returns a catalog with a union in the schema, and one that a `UnionDeclaration` observes: `x` and `y` of `data`.
pub(crate) fn observed(actions: &[&str]) -> Arc<Catalog> {
    let text = || json!({"type": "string"});
    let schema = json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "properties": {"a": text(), "b": text()},
        "x-kubernetes-unions": [{"fields-to-discriminateBy": {"a": "A", "b": "B"}}],
    }, "data": {"type": "object", "properties": {"x": text(), "y": text()}}}});
    let definition = crds::crd("nobody.example", "Stranger", &[crds::version("v1", &schema)]);
    let spec = json!({"normalization": "Disabled", "validationActions": actions,
        "unions": [{"path": "data", "fieldsToDiscriminateBy": {"x": "X", "y": "Y"}}]});
    Arc::new(declared_catalog(&definition, &[declaration("observe", "nobody.example", "Stranger", &spec)]))
}

#[tokio::test(flavor = "multi_thread")]
async fn audited_violations_are_counted_once_for_both_phases_and_only_while_somebody_audits() {
    let server = Running::start().await;
    let series = "kube_unions_audited_violations_total{group=\"nobody.example\",kind=\"Stranger\"}";
    server.catalogs.send_replace(Some(observed(&["Audit"])));
    until(async || server.metric(series).await == Some(0.0)).await;
    let object = json!({"apiVersion": "nobody.example/v1", "kind": "Stranger", "metadata": {"name": "x"},
        "data": {"x": "1", "y": "s3cret"}});
    let body = reviews::review("u", "CREATE", Some(&object), None).to_string();
    for (path, count) in [("/mutate", 0.0), ("/validate", 1.0), ("/mutate", 1.0), ("/validate", 2.0)] {
        let answer = server.send(&Request::post(path, body.clone())).await.json();
        let response = &answer["response"];
        assert_eq!(
            (&response["allowed"], &response["warnings"], &response["patch"]),
            (&json!(true), &json!(null), &json!(null))
        );
        let audited = if path == "/validate" { json!({"audited": "data.y: FieldValueForbidden"}) } else { json!(null) };
        assert_eq!(response["auditAnnotations"], audited, "{answer}");
        assert_eq!(server.metric(series).await, Some(count));
    }
    server.catalogs.send_replace(Some(observed(&["Warn"])));
    until(async || server.metric(series).await.is_none()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_counters_of_a_kind_survive_a_new_catalog_and_go_with_the_kind() {
    let server = Running::start().await;
    let series = "kube_unions_admission_reviews_total{group=\"nobody.example\",kind=\"Stranger\",\
                  operation=\"CREATE\",phase=\"validate\",outcome=\"allowed\"}";
    let unions = "kube_unions_catalog_unions{source=\"schema\"}";
    let request = Request::post("/validate", review("u"));
    for (count, declarations) in [(1.0, 1), (2.0, 2)] {
        server.catalogs.send_replace(Some(declared(declarations)));
        until(async || server.metric(unions).await == Some(count)).await;
        assert_eq!(server.send(&request).await.code, 200);
        assert_eq!(server.metric(series).await, Some(count));
        // Prometheus counts the first denial from a zero.
        for operation in ["CREATE", "UPDATE"] {
            let denied = series.replace("CREATE", operation).replace("allowed", "denied");
            assert_eq!(server.metric(&denied).await, Some(0.0), "{denied}");
        }
    }
    server.catalogs.send_replace(Some(Arc::default()));
    until(async || server.metric(series).await.is_none()).await;
    assert_eq!(server.metric(&series.replace("allowed", "denied")).await, None);
    assert_eq!(server.metric(unions).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_ends_one_request_and_nothing_else() {
    let armed = Arc::<AtomicBool>::default();
    let is_armed = Arc::clone(&armed);
    let panicking: Reviewer = Arc::new(move |catalog, phase, ratcheting, body, meter| {
        assert!(!is_armed.load(Ordering::Relaxed), "armed");
        admission::review_within(catalog, phase, ratcheting, body, meter)
    });
    let server = Running::with(|config| config.reviewer = panicking).await;
    let mut wire = server.connect().await;
    for (round, size) in [(1.0, 2 * 1024), (2.0, MIB)] {
        armed.store(true, Ordering::Relaxed);
        let answer = wire.exchange(&Request::post("/mutate", padded_review("u", size))).await;
        assert_eq!(answer.code, 500);
        assert_eq!(answer.json()["reason"], "InternalError");
        assert!(!answer.body.contains("armed"), "{answer:?}");
        assert_eq!(server.metric("kube_unions_panics_total").await, Some(round));
        assert_eq!(server.metric("kube_unions_admission_in_flight").await, Some(0.0));
        armed.store(false, Ordering::Relaxed);
        let answer = wire.exchange(&Request::post("/mutate", padded_review("u", size))).await;
        assert_eq!(answer.code, 200, "on the same connection");
    }
}

/// A review that has begun and waits.
struct Begun {
    uid: String,
    go: oneshot::Sender<()>,
    /// Resolves to true if the review may still take memory after `go`.
    goes_on: oneshot::Receiver<bool>,
}

/// Returns a server whose large reviews wait, and their beginnings.
async fn gated(change: impl FnOnce(&mut Config)) -> (Running, mpsc::UnboundedReceiver<Begun>) {
    let (begun, begins) = mpsc::unbounded_channel();
    let reviewer: Reviewer = Arc::new(move |catalog, phase, ratcheting, body, meter| {
        if body.len() >= MIB {
            let ((go, gone), (tell, goes_on)) = (oneshot::channel(), oneshot::channel());
            let review: Value = serde_json::from_slice(body).unwrap();
            begun.send(Begun { uid: review["request"]["uid"].as_str().unwrap().to_owned(), go, goes_on }).unwrap();
            gone.blocking_recv().unwrap();
            let charged = meter.charge(1);
            // The test may not ask.
            tell.send(charged.is_ok()).ok();
            charged.map_err(ReviewError::Exhausted)?;
        }
        admission::review_within(catalog, phase, ratcheting, body, meter)
    });
    let server = Running::with(|config| {
        config.reviewer = reviewer;
        change(config);
    });
    (server.await, begins)
}

/// Lets every review go on, until the task is dropped.
fn open(mut begins: mpsc::UnboundedReceiver<Begun>) -> JoinSet<()> {
    let mut task = JoinSet::new();
    task.spawn(async move { while begins.recv().await.is_some_and(|begun| begun.go.send(()).is_ok()) {} });
    task
}

#[tokio::test(flavor = "multi_thread")]
async fn large_reviews_take_turns_and_delay_no_small_one() {
    let (server, mut begins) = gated(|_| {}).await;
    let mut wires = Vec::new();
    for _ in 0..16 {
        wires.push(server.sent(&Request::post("/mutate", padded_review("large", MIB))).await);
    }
    let turns = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(wires.len());
    let mut gates = Vec::new();
    for _ in 0..turns {
        gates.push(begins.recv().await.unwrap());
    }
    for _ in 0..20 {
        assert_eq!(server.send(&Request::post("/mutate", review("small"))).await.code, 200);
    }
    assert_eq!(server.metric("kube_unions_admission_in_flight").await, Some(f64::from(u32::try_from(turns).unwrap())));
    assert!(begins.try_recv().is_err(), "another one has begun");
    for begun in gates {
        begun.go.send(()).unwrap();
    }
    let _rest = open(begins);
    for mut wire in wires {
        assert_eq!(wire.answer().await.code, 200);
    }
    assert_eq!(server.metric("kube_unions_admission_in_flight").await, Some(0.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_server_is_unready_and_keeps_serving() {
    let (mut server, mut begins) = gated(|config| config.shutdown_delay = Duration::from_hours(1)).await;
    let mut kept = server.connect().await;
    server.stop();
    until(async || server.ops("/readyz").await.body.contains("[-]shutdown failed: shutting down\n")).await;
    assert_eq!(server.ops("/livez").await.code, 200);

    let large = Request::post("/mutate", padded_review("u", MIB));
    for wire in [&mut kept, &mut server.connect().await] {
        wire.send(&large).await;
        begins.recv().await.unwrap().go.send(()).unwrap();
        let answer = wire.answer().await;
        assert_eq!((answer.code, answer.header("connection")), (200, Some("close")));
        wire.closed().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_server_finishes_the_requests_in_flight() {
    let delay = Duration::from_millis(100);
    let (mut server, mut begins) = gated(|config| config.shutdown_delay = delay).await;
    let mut slow = server.sent(&Request::post("/mutate", padded_review("slow", MIB))).await;
    let gate = begins.recv().await.unwrap().go;
    // A connection without a request delays nothing.
    let silent = server.connect().await;

    let begin = Instant::now();
    server.stop();
    let address = server.addresses.webhook;
    until(async || tokio::net::TcpStream::connect(address).await.is_err()).await;
    assert!(begin.elapsed() >= delay, "the server accepts connections until the delay has passed");
    gate.send(()).unwrap();
    let answer = slow.answer().await;
    assert_eq!((answer.code, answer.header("connection")), (200, Some("close")));
    server.ended().await;
    drop(silent);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_does_not_finish_in_time_is_cut_off() {
    let mut server = Running::with(|config| config.timeouts.finish = Duration::from_millis(50)).await;
    let mut slow = server.connect().await;
    slow.begin(&Request::post("/mutate", review("u"))).await;
    server.stop();
    server.ended().await;
    slow.closed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_wait_for_a_client_has_a_timeout_of_its_own() {
    let short = Duration::from_millis(50);
    let request = Request::post("/mutate", review("u"));

    // The handshake timeout also applies to the ops port, so this server gets no probes.
    let server = Running::without_catalog(|config| config.timeouts.handshake = short).await;
    Wire::plain(server.addresses.webhook).await.closed().await;

    let server = Running::with(|config| config.timeouts.first_byte = short).await;
    server.connect().await.closed().await;

    let server = Running::with(|config| config.timeouts.header = short).await;
    let mut wire = server.connect().await;
    assert_eq!(wire.exchange(&request).await.code, 200);
    wire.write(b"POST /mutate HTTP/1.1\r\n").await;
    wire.closed().await;

    let server = Running::with(|config| config.timeouts.body = short).await;
    let mut wire = server.connect().await;
    wire.begin(&request).await;
    let answer = wire.answer().await;
    assert_eq!((answer.code, answer.json()["reason"].as_str()), (408, Some("Timeout")));

    let server = Running::with(|config| config.timeouts.idle = short).await;
    let mut wire = server.connect().await;
    assert_eq!(wire.exchange(&request).await.code, 200);
    wire.closed().await;

    // None of the short timeouts applies between two requests.
    let short = Duration::from_secs(2);
    let server = Running::with(|config| {
        let Timeouts { first_byte, header, body, write, .. } = &mut config.timeouts;
        (*first_byte, *header, *body, *write) = (short, short, short, short);
    })
    .await;
    let mut wire = server.connect().await;
    for _ in 0..2 {
        assert_eq!(wire.exchange(&request).await.code, 200);
        tokio::time::sleep(short * 5 / 4).await;
    }
    // The API server keeps a connection for 90 seconds, even one that it never used.
    let Timeouts { first_byte, idle, .. } = Timeouts::default();
    assert!(first_byte.min(idle) >= Duration::from_mins(2));
}
