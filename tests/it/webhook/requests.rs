//! The answers to unusual requests, byte for byte. `requests.txt` beside this file has them.

use super::wire::{Running, Wire, review};
use fixtures::files::assert_generated;
use std::fmt::Write as _;

const PATH: &str = "tests/it/webhook/requests.txt";
const COMMAND: &str = "KUBE_UNIONS_UPDATE=1 cargo test --all-features --test it -- webhook::requests";

/// The lines of a request to the webhook port, without the last two headers, and its body.
const WEBHOOK: &[(&str, &str)] = &[
    ("GET / HTTP/1.1", ""),
    ("GET /mutate HTTP/1.1", ""),
    ("HEAD /mutate HTTP/1.1", ""),
    ("OPTIONS /mutate HTTP/1.1", ""),
    ("OPTIONS * HTTP/1.1", ""),
    ("PUT /validate HTTP/1.1", "{}"),
    ("BREW /mutate HTTP/1.1", "{}"),
    ("CONNECT x:443 HTTP/1.1", ""),
    ("POST /mutate HTTP/1.1", "{}"),
    ("POST /mutate HTTP/1.1|Content-Type: application/json", ""),
    ("POST /mutate HTTP/1.1|Content-Type: application/json", "REVIEW"),
    ("POST /mutate HTTP/1.0|Content-Type: application/json", "REVIEW"),
    ("POST /mutate?timeout=5s HTTP/1.1|Content-Type: application/json|Expect: 100-continue", "REVIEW"),
    ("POST /mutate HTTP/1.1|Content-Type: application/json|Expect: 200-ok", "REVIEW"),
    ("POST /mutate HTTP/1.1|Content-Type: application/json|Upgrade: h2c|HTTP2-Settings: AAMAAABk", "REVIEW"),
    ("GET /mutate HTTP/1.1|Upgrade: websocket|Sec-WebSocket-Key: x|Sec-WebSocket-Version: 13", ""),
    ("POST https://x/mutate HTTP/1.1|Content-Type: application/json", "REVIEW"),
    ("POST /mutate/ HTTP/1.1|Content-Type: application/json", "REVIEW"),
    ("POST //mutate HTTP/1.1|Content-Type: application/json", "REVIEW"),
    ("POST /mutate//x HTTP/1.1|Content-Type: application/json", "REVIEW"),
    ("POST /./mutate HTTP/1.1|Content-Type: application/json", "REVIEW"),
    ("POST /%6dutate HTTP/1.1|Content-Type: application/json", "REVIEW"),
    ("POST /mutate%2F HTTP/1.1|Content-Type: application/json", "REVIEW"),
    ("POST /Mutate HTTP/1.1|Content-Type: application/json", "REVIEW"),
    ("POST /mut%FFate HTTP/1.1|Content-Type: application/json", "REVIEW"),
    ("POST /{token} HTTP/1.1|Content-Type: application/json", "REVIEW"),
    ("POST /mutate?QUERY HTTP/1.1|Content-Type: application/json", "REVIEW"),
    ("POST /mutate?timeout=%31s&timeout=x HTTP/1.1|Content-Type: application/json", "REVIEW"),
    ("POST /mutate# HTTP/1.1|Content-Type: application/json", "REVIEW"),
    ("POST /validate/inspect HTTP/1.1|Content-Type: application/json", "REVIEW"),
    ("POST /validate/inspect/ HTTP/1.1|Content-Type: application/json", "REVIEW"),
    ("GET /validate/inspect/x HTTP/1.1", ""),
    ("POST /validate/inspect/%00 HTTP/1.1|Content-Type: application/json", "REVIEW"),
    ("POST /validate/inspect/x/y HTTP/1.1|Content-Type: application/json", "REVIEW"),
    ("POST /mutate HTTP/1.1|Content-Type: text/json", "REVIEW"),
    ("POST /mutate HTTP/1.1|Content-Type: application/json|Content-Type: application/yaml", "REVIEW"),
    ("POST /mutate HTTP/1.1|Content-Type: application/json|Content-Encoding: gzip", "REVIEW"),
    ("POST /mutate HTTP/1.1|Content-Type: application/json|Transfer-Encoding: gzip", "REVIEW"),
    ("POST /mutate HTTP/1.1|Content-Type: application/json|Transfer-Encoding: chunked", "REVIEW"),
    ("POST /mutate HTTP/1.1|Content-Type: application/json|Content-Length: 1", "REVIEW"),
    ("POST /mutate HTTP/1.1|Content-Type: application/json|Content-Length: -1", ""),
    ("POST /mutate HTTP/1.1|Content-Type: application/json|Content-Length: 9000000|Expect: 100-continue", ""),
    ("POST /mutate HTTP/2.0|Content-Type: application/json", "REVIEW"),
    ("POST /mutate", "REVIEW"),
    ("\u{16}\u{3}\u{1}", ""),
];

const OPS: &[(&str, &str)] = &[
    ("GET / HTTP/1.1", ""),
    ("GET /livez HTTP/1.1", ""),
    ("HEAD /livez HTTP/1.1", ""),
    ("HEAD /readyz HTTP/1.1", ""),
    ("GET /readyz?verbose HTTP/1.1", ""),
    ("GET /readyz?verbose=1&x HTTP/1.1", ""),
    ("GET /readyz/ HTTP/1.1", ""),
    ("GET //readyz HTTP/1.1", ""),
    ("GET /%72eadyz HTTP/1.1", ""),
    ("GET /livez?QUERY HTTP/1.1", ""),
    ("HEAD /metrics HTTP/1.1|X-Length: varies", ""),
    ("POST /readyz HTTP/1.1", "{}"),
    ("POST /metrics HTTP/1.1", ""),
    ("DELETE /livez HTTP/1.1", ""),
    ("OPTIONS /readyz HTTP/1.1", ""),
    ("OPTIONS * HTTP/1.1", ""),
    ("CONNECT x:443 HTTP/1.1", ""),
    ("GET /livez HTTP/1.1|Upgrade: websocket", ""),
    ("GET /livez HTTP/1.1|Expect: 100-continue", "{}"),
    ("POST /mutate HTTP/1.1|Content-Type: application/json", "REVIEW"),
    ("GET /livez HTTP/2.0", ""),
];

const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

#[tokio::test(flavor = "multi_thread")]
async fn unusual_requests_get_the_answers_of_the_page() {
    let server = Running::start().await;
    let mut page = String::new();
    for (head, body) in WEBHOOK {
        record(&mut page, &mut server.connect().await, "webhook", head, body).await;
    }
    for (head, body) in OPS {
        record(&mut page, &mut Wire::plain(server.addresses.ops).await, "ops", head, body).await;
    }
    for (port, mut wire) in [("webhook", server.connect().await), ("ops", Wire::plain(server.addresses.ops).await)] {
        wire.write(HTTP2_PREFACE).await;
        let _ = writeln!(page, "{port}: the preface of HTTP/2\n{}", shown(&wire.rest().await));
    }
    for name in ["admission_reviews_total", "admission_refused_total", "panics_total"] {
        let text = server.ops("/metrics").await.body;
        let mut series: Vec<&str> =
            text.lines().filter(|line| line.starts_with(&format!("kube_unions_{name}"))).collect();
        series.sort_unstable();
        for line in series {
            page.extend([line, "\n"]);
        }
    }
    assert_generated(PATH, &page, COMMAND);
}

/// Sends the request on a connection of its own, and writes the request and the answer.
async fn record(page: &mut String, wire: &mut Wire, port: &str, head: &str, body: &str) {
    let query = format!("{}&verbose", "x".repeat(8 * 1024));
    let body = if body == "REVIEW" { review("u") } else { body.to_owned() };
    let lines = head.replace("QUERY", &query).replace('|', "\r\n");
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let request = format!("{lines}\r\nHost: x\r\nConnection: close\r\n{length}\r\n{body}");
    wire.write(request.as_bytes()).await;
    let _ = writeln!(page, "{port}: {}\n{}", head.escape_default(), shown(&wire.rest().await));
}

/// Shows an answer without what varies: the date, the length and the body of the metrics.
fn shown(answer: &[u8]) -> String {
    let text = String::from_utf8_lossy(answer);
    let varies = text.contains("openmetrics");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with("date: "));
    let lines = lines.filter(|line| !varies || !line.starts_with("content-length: "));
    lines.flat_map(|line| ["    ", line, "\n"]).collect()
}
