//! Traces that a collector receives, and collectors that fail.

use super::process::Process;
use super::wire::{Nobody, Request, review};
use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use hyper::HeaderMap;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::{Span, status::StatusCode};
use prost::Message;
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// Headers and body of each request to a collector.
type Received = Arc<Mutex<Vec<(HeaderMap, ExportTraceServiceRequest)>>>;

/// Starts a collector on loopback. Returns its requests and its URL.
async fn collector() -> (Received, String) {
    let received = Received::default();
    let sent = Arc::clone(&received);
    let take = post(async move |headers: HeaderMap, body: Bytes| {
        sent.lock().unwrap().push((headers, ExportTraceServiceRequest::decode(body).unwrap()));
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}/otlp/", listener.local_addr().unwrap());
    let router = Router::new().route("/otlp/v1/traces", take);
    tokio::spawn(async move { axum::serve(listener, router).await });
    (received, endpoint)
}

fn attributes(attributes: &[KeyValue]) -> BTreeMap<&str, &str> {
    let text = |attribute: &'_ KeyValue| match &attribute.value.as_ref().unwrap().value {
        Some(Value::StringValue(text)) => text.clone(),
        other => panic!("{other:?}"),
    };
    attributes.iter().map(|it| (it.key.as_str(), &*text(it).leak())).collect()
}

fn from(parent: &str, path: &str, body: &str) -> Request {
    let mut request = Request::post(path, body);
    request.head = request.head.replacen("\r\n", &format!("\r\ntraceparent: {parent}\r\ntracestate: k8s=1\r\n"), 1);
    request
}

#[tokio::test(flavor = "multi_thread")]
async fn each_review_is_a_span_with_labels_of_the_catalog_and_the_parent_of_the_request() {
    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    let (received, endpoint) = collector().await;
    let arguments = ["--otlp-endpoint", &endpoint, "--shutdown-delay", "0"];
    // Longer than the test: the spans are sent when the process stops.
    let variables = [
        ("OTEL_BSP_SCHEDULE_DELAY", "600000"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=a"),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test"),
    ];
    let process = Process::start_with(&arguments, &variables);
    let both = review("u-denied")
        .replace(r#""metadata":{"name":"x"}"#, r#""metadata":{"name":"x"},"spec":{"a":"s3cret","b":"s3cret"}"#);
    let unknown = review("u-unknown").replace("Stranger", "Flood").replace("nobody", "flood");
    let sampled = format!("00-{TRACE}-00f067aa0ba902b7-01");
    for (request, code) in [
        (from(&sampled, "/validate", &both), 200),
        (Request::post("/mutate", unknown.as_str()), 200),
        (Request::post("/mutate", "nonsense"), 400),
        (from("rubbish", "/mutate", &review("u-rubbish")), 200),
        // The API server does not sample this one.
        (from(&format!("00-{TRACE}-00f067aa0ba902b8-00"), "/mutate", &review("u-unsampled")), 200),
    ] {
        assert_eq!(process.send(&request).await.code, code);
    }
    process.signal("-TERM");
    let (status, log) = process.ended_saying();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(!log.contains("traces"), "{log}");

    let received = received.lock().unwrap();
    let mut spans: BTreeMap<&str, &Span> = BTreeMap::new();
    for (headers, request) in received.iter() {
        assert_eq!(
            (&headers["content-type"], &headers["x-tenant"]),
            (&"application/x-protobuf".parse().unwrap(), &"a".parse().unwrap())
        );
        for resource in &request.resource_spans {
            let of = attributes(&resource.resource.as_ref().unwrap().attributes);
            assert_eq!((of["service.name"], of["service.version"]), ("kube-unions", env!("CARGO_PKG_VERSION")));
            assert_eq!(of["deployment.environment.name"], "test");
            for span in resource.scope_spans.iter().flat_map(|scope| &scope.spans) {
                assert!(spans.insert(attributes(&span.attributes)["admission.uid"], span).is_none(), "{span:?}");
            }
        }
    }
    let uids: Vec<&str> = spans.keys().copied().collect();
    assert_eq!(uids, ["", "u-denied", "u-rubbish", "u-unknown"]);
    for span in spans.values() {
        assert_eq!((span.name.as_str(), span.attributes.len()), ("admission review", 6));
        assert!(span.end_time_unix_nano > span.start_time_unix_nano, "{span:?}");
    }
    let labels = |group, kind, operation, phase, outcome, uid| {
        BTreeMap::from([
            ("admission.group", group),
            ("admission.kind", kind),
            ("admission.operation", operation),
            ("admission.outcome", outcome),
            ("admission.phase", phase),
            ("admission.uid", uid),
        ])
    };
    let of = |uid: &str| attributes(&spans[uid].attributes);
    assert_eq!(of("u-denied"), labels("nobody.example", "Stranger", "CREATE", "validate", "denied", "u-denied"));
    assert_eq!(of("u-unknown"), labels("other", "other", "CREATE", "mutate", "allowed", "u-unknown"));
    assert_eq!(of(""), labels("other", "other", "other", "mutate", "unreadable", ""));
    let failed = |uid: &str| spans[uid].status.as_ref().is_some_and(|status| status.code() == StatusCode::Error);
    assert!(failed("") && !failed("u-denied"), "a denial is an answer");

    let denied = spans["u-denied"];
    let trace = u128::from_be_bytes(denied.trace_id.as_slice().try_into().unwrap());
    let parent = u64::from_be_bytes(denied.parent_span_id.as_slice().try_into().unwrap());
    assert_eq!((format!("{trace:032x}").as_str(), parent), (TRACE, 0x00f0_67aa_0ba9_02b7));
    assert_eq!(denied.trace_state, "k8s=1");
    assert!(spans["u-rubbish"].parent_span_id.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_down_delays_neither_reviews_nor_the_shutdown() {
    // One collector accepts connections and never answers. The other does not listen.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = Nobody::new();
    for (collector, is_gone) in [(silent.local_addr().unwrap(), false), (gone.address(), true)] {
        let endpoint = format!("http://{collector}");
        let arguments = ["--otlp-endpoint", &endpoint, "--shutdown-delay", "0"];
        let variables = [
            ("OTEL_BSP_SCHEDULE_DELAY", "1"),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "16"),
            ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4"),
        ];
        let mut process = Process::start_with(&arguments, &variables);
        let mut wire = process.connect().await;
        // Many more spans than the queue holds.
        for number in 0..500 {
            let answer = wire.exchange(&Request::post("/mutate", review(&number.to_string()))).await;
            assert_eq!(answer.code, 200);
        }
        if is_gone {
            let line = process.logged("traces cannot be sent, and are dropped until they can");
            assert!(line["reason"].as_str().unwrap().contains("refused"), "{line}");
        }
        process.signal("-TERM");
        let (status, log) = process.ended_saying();
        assert_eq!(status.code(), Some(0), "{log}");
        // The silent collector fails at a timeout, which may or may not have passed.
        let most = usize::from(!is_gone);
        assert!(log.matches("traces cannot be sent").count() <= most, "the failure is logged once: {log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_certificate_of_a_collector_is_verified_by_the_system_roots() {
    // Any server that speaks TLS and answers will do.
    let other = Process::start(&[]);
    let endpoint = format!("https://localhost:{}", other.webhook.port());
    let roots = other.ca_file.display().to_string();
    let directory = tempfile::tempdir().unwrap();
    let strange = Process::start(&["--tls-ca-file", directory.path().join("ca.crt").to_str().unwrap()]);
    let strangers = strange.ca_file.display().to_string();
    for (roots, reason) in [(&roots, "the collector answered 404"), (&strangers, "certificate")] {
        let variables = [("SSL_CERT_FILE", roots.as_str()), ("SSL_CERT_DIR", ""), ("OTEL_BSP_SCHEDULE_DELAY", "1")];
        let mut process = Process::start_with(&["--otlp-endpoint", &endpoint], &variables);
        assert_eq!(process.send(&Request::post("/mutate", review("u"))).await.code, 200);
        let line = process.logged("traces cannot be sent, and are dropped until they can");
        assert!(line["reason"].as_str().unwrap().contains(reason), "{line}");
    }
}
