//! The webhook as a process, with the samples and without a cluster: what it makes of bad input, slow clients and SIGTERM.

use fixtures::reviews;
use std::io::{ErrorKind, Read as _, Write as _};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::http::{Answer, Client};
use crate::kind::samples;
use crate::load::causes;
use crate::tls::{self, Connection};
use crate::webhook::Webhook;
use fixtures::wait::eventually;

/// The longest time limit that the webhook sets a client, with room for a loaded machine.
const TIME_LIMIT: Duration = Duration::from_secs(10);
const ROOM: Duration = Duration::from_secs(15);

const PHASES: [&str; 2] = ["/mutate", "/validate"];

#[test]
fn what_is_no_review_is_answered_with_400_and_says_why() {
    let mut webhook = serve(&[]);
    let good = review("UPDATE", &rollout(&rolling()), &rollout(&rolling()));
    let text = good.to_string();
    let with = |pointer: &str, value: Value| {
        let mut review = good.clone();
        *review.pointer_mut(pointer).unwrap() = value;
        review.to_string().into_bytes()
    };
    let without = |field: &str| {
        let mut review = good.clone();
        review["request"].as_object_mut().unwrap().remove(field).unwrap();
        review.to_string().into_bytes()
    };
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("not JSON", b"this is not JSON".to_vec(), "AdmissionReview"),
        ("truncated", text.as_bytes()[..text.len() / 2].to_vec(), "AdmissionReview"),
        ("more after the end", format!("{text}}}").into_bytes(), "AdmissionReview"),
        ("empty", Vec::new(), "empty"),
        ("white space", b" \n".to_vec(), "empty"),
        ("a null", b"null".to_vec(), "AdmissionReview"),
        ("an array", b"[]".to_vec(), "AdmissionReview"),
        ("a number", b"1e999".to_vec(), "AdmissionReview"),
        ("not UTF-8", [text.as_bytes(), b"\xed\xa0\x80"].concat(), "UTF-8"),
        ("no request", br#"{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}"#.to_vec(), "`request`"),
        ("a null request", with("/request", Value::Null), "`request`"),
        ("a request that is a string", with("/request", json!("request")), "AdmissionReview"),
        ("v1beta1", with("/apiVersion", json!("admission.k8s.io/v1beta1")), "v1beta1"),
        ("an unknown version", with("/apiVersion", json!("admission.k8s.io/v7")), "v7"),
        ("another kind", with("/kind", json!("Pod")), "`Pod`"),
        ("an empty uid", with("/request/uid", json!("")), "`request.uid`"),
        ("no uid", without("uid"), "`request.uid`"),
        ("a uid that is a number", with("/request/uid", json!(7)), "AdmissionReview"),
        ("no kind", without("kind"), "`request.kind`"),
        ("a kind that is a string", with("/request/kind", json!("Rollout")), "AdmissionReview"),
        ("an unknown operation", with("/request/operation", json!("PATCH")), "`PATCH`"),
        ("a null object", with("/request/object", Value::Null), "`request.object`"),
        ("an object that is an array", with("/request/object", json!([1])), "`request.object`"),
        ("an object that is a string", with("/request/object", json!("object")), "`request.object`"),
    ];
    for (case, body, word) in cases {
        for path in PHASES {
            let answer = webhook.client().send("POST", path, "application/json", &body).expect(case);
            assert_refused(&answer, 400, word, case);
            assert_unharmed(&mut webhook);
        }
    }
}

#[test]
fn what_http_does_not_allow_here_is_refused_with_its_own_status() {
    let mut webhook = serve(&[]);
    let good = review("CREATE", &rollout(&rolling()), &Value::Null).to_string().into_bytes();
    // White space that JSON allows: only its size is wrong.
    let large = [b" ".repeat(8 * 1024 * 1024), good.clone()].concat();
    let mut refused = |case, method, path, content_type, body: &[u8], status, word| {
        let answer = webhook.client().send(method, path, content_type, body).expect(case);
        assert_refused(&answer, status, word, case);
        assert_unharmed(&mut webhook);
    };
    refused("8 MiB", "POST", "/mutate", "application/json", &large, 413, "longer");
    refused("another content type", "POST", "/mutate", "text/plain", &good, 415, "application/json");
    refused("no content type", "POST", "/validate", "", &good, 415, "application/json");
    refused("GET", "GET", "/mutate", "", b"", 405, "POST");
    refused("PUT", "PUT", "/validate", "application/json", &good, 405, "POST");
    refused("an unknown path", "POST", "/convert", "application/json", &good, 404, "/mutate");
    refused("the root", "GET", "/", "", b"", 404, "/mutate");
    refused("a path of the ops port", "GET", "/metrics", "", b"", 404, "/mutate");
    let answer = webhook.client().send("POST", "/mutate", "application/json; charset=utf-8", &good).unwrap();
    assert_eq!(answer.status, 200, "a content type may have parameters");
}

#[test]
fn odd_reviews_that_can_be_read_are_answered() {
    let mut webhook = serve(&[]);
    let recreate = |more: &str| {
        let old = r#"{"metadata":{"name":"x"},"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{}}}}"#;
        let new = format!(
            r#"{{"metadata":{{"name":"x"}},{more}"spec":{{"strategy":{{"type":"Recreate","rollingUpdate":{{}}}}}}}}"#
        );
        review_text("UPDATE", "Rollout", &new, old)
    };
    let cleared = json!([{"op": "remove", "path": "/spec/strategy/rollingUpdate"}]);
    let deep = format!("\"deep\":{}1{},", "[".repeat(9_000), "]".repeat(9_000));
    let deep_objects = format!("\"deep\":{}1{},", "{\"a\":".repeat(9_000), "}".repeat(9_000));
    let wrong =
        |strategy: &str| review_text("CREATE", "Rollout", &format!(r#"{{"spec":{{"strategy":{strategy}}}}}"#), "null");
    let cases: Vec<(&str, String, Value)> = vec![
        ("nothing odd", recreate(""), cleared.clone()),
        ("arrays 9,000 deep", recreate(&deep), cleared.clone()),
        ("objects 9,000 deep", recreate(&deep_objects), cleared.clone()),
        ("an integer above u64", recreate("\"big\":123456789012345678901234567890,"), cleared.clone()),
        ("a number without a finite value", recreate("\"big\":1e999,"), cleared.clone()),
        ("a lone surrogate in a value", recreate(r#""odd":"\ud800","#), cleared.clone()),
        ("a lone surrogate in a key", recreate(r#""\udfff":1,"#), cleared.clone()),
        ("a key twice, elsewhere", recreate("\"twice\":1,\"twice\":2,"), cleared.clone()),
        (
            "an unknown field of the request",
            recreate("").replacen("\"uid\"", "\"future\":[{}],\"uid\"", 1),
            cleared.clone(),
        ),
        ("a dry run", recreate("").replacen("\"dryRun\":false", "\"dryRun\":true", 1), cleared),
        ("a union's object that is a string", wrong("\"x\""), Value::Null),
        ("a union's object that is an array", wrong("[{\"type\":\"Canary\"}]"), Value::Null),
        ("a union's object that is null", wrong("null"), Value::Null),
        ("a discriminator that is a number", wrong("{\"type\":7}"), Value::Null),
        ("a discriminator that is an object", wrong("{\"type\":{}}"), Value::Null),
        ("DELETE", review_text("DELETE", "Rollout", "null", r#"{"spec":{"strategy":{"type":"Canary"}}}"#), Value::Null),
        ("CONNECT", review_text("CONNECT", "Rollout", r#"{"kind":"PodExecOptions"}"#, "null"), Value::Null),
        (
            "a kind nobody declared",
            review_text("CREATE", "Nobody", r#"{"spec":{"strategy":{"type":"Canary"}}}"#, "null"),
            Value::Null,
        ),
    ];
    for (case, body, patch) in cases {
        assert_eq!(mutate(&webhook, &body, case), patch, "{case}");
        let answer = webhook.client().send("POST", "/validate", "application/json", body.as_bytes()).expect(case);
        assert_eq!(answer.status, 200, "{case}: {answer:?}");
        assert_unharmed(&mut webhook);
    }
}

#[test]
fn keys_with_a_slash_and_a_tilde_are_escaped_in_the_patch() {
    let webhook = serve(&[]);
    let old = r#"{"spec":{"steps":{"a/b~c":{"script":"make"}}}}"#;
    let new = r#"{"spec":{"steps":{"a/b~c":{"script":"make","container":{"image":"i"}}}}}"#;
    let patch = mutate(&webhook, &review_text("UPDATE", "Pipeline", new, old), "escaping");
    assert_eq!(patch, json!([{"op": "remove", "path": "/spec/steps/a~1b~0c/script"}]));
}

#[test]
fn of_a_key_that_stands_twice_the_last_one_counts_as_it_does_for_the_api_server() {
    let mut webhook = serve(&[]);
    let object = r#"{"spec":{"strategy":{"type":"Canary","type":"Recreate","canary":{"weight":1}}}}"#;
    let review = review_text("CREATE", "Rollout", object, "null");
    assert_eq!(mutate(&webhook, &review, "a key twice"), Value::Null);
    let answer = webhook.client().send("POST", "/validate", "application/json", review.as_bytes()).unwrap();
    assert_eq!(
        causes(&answer.body["response"]["status"]),
        ["spec.strategy.canary: Forbidden: may only be specified when `type` is \"Canary\""]
    );
    assert_unharmed(&mut webhook);
}

#[test]
fn control_characters_are_never_echoed() {
    let webhook = serve(&[]);
    let invalid = rollout(&json!({"type": "Bogus\u{0}\u{1b}[31m\n"}));
    let answer = webhook.client().post("/validate", &review("CREATE", &invalid, &Value::Null)).unwrap();
    let [cause] = causes(&answer.body["response"]["status"]).try_into().expect("one cause");
    assert!(cause.starts_with("spec.strategy.type: Unsupported value: \"Bogus"), "{cause}");
    assert!(!cause.chars().any(char::is_control), "{cause:?}");
}

#[test]
fn a_denial_is_a_status_as_the_api_server_writes_it() {
    let webhook = serve(&[]);
    let invalid = rollout(&json!({"type": "Canary", "rollingUpdate": {}}));
    let answer = webhook.client().post("/validate", &review("CREATE", &invalid, &Value::Null)).unwrap();
    assert_eq!(answer.status, 200);
    assert_eq!(answer.body["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(answer.body["kind"], "AdmissionReview");
    let response = &answer.body["response"];
    assert_eq!((&response["uid"], &response["allowed"]), (&json!("the-uid"), &json!(false)));
    assert_eq!(response.get("patch"), None);
    let status = &response["status"];
    assert_eq!((&status["code"], &status["reason"]), (&json!(422), &json!("Invalid")));
    assert_eq!(
        status["details"],
        json!({
            "name": "x",
            "group": "samples.kube-unions.dev",
            "kind": "Rollout",
            "causes": [
                {
                    "reason": "FieldValueRequired",
                    "message": "Required value: must be specified when `type` is \"Canary\"",
                    "field": "spec.strategy.canary",
                },
                {
                    "reason": "FieldValueForbidden",
                    "message": "Forbidden: may only be specified when `type` is \"RollingUpdate\"",
                    "field": "spec.strategy.rollingUpdate",
                },
            ],
        })
    );
}

#[test]
fn a_certificate_made_by_the_webhook_itself_is_good_for_loopback() {
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.crt");
    let webhook = Webhook::self_signed(&samples(), &ca).unwrap_or_else(|message| panic!("{message}"));
    let ca = std::fs::read_to_string(ca).expect("the webhook writes its CA where it is told to");
    let client = Client::tls(format!("https://127.0.0.1:{}", webhook.port()), &ca, None);
    let answer = client.post("/validate", &review("CREATE", &rollout(&rolling()), &Value::Null)).unwrap();
    assert_eq!(answer.body["response"]["allowed"], true);
}

#[test]
fn an_idle_connection_outlives_every_other_time_limit() {
    let webhook = serve(&[]);
    let body = review("CREATE", &rollout(&rolling()), &Value::Null).to_string();
    let mut connection = Connection::open(&webhook);
    connection.post("/validate", &body);
    assert_eq!(connection.answer().unwrap().status, 200);
    // Being idle is what is tested here: no condition could be waited for instead.
    thread::sleep(TIME_LIMIT + Duration::from_secs(3));
    connection.post("/validate", &body);
    assert_eq!(connection.answer().expect("the connection is still open").status, 200);
}

#[test]
fn a_client_that_never_finishes_its_handshake_is_cut_off_and_delays_nobody() {
    let mut webhook = serve(&[]);
    let mut silent = tls::tcp(webhook.port());
    let mut slow = tls::tcp(webhook.port());
    slow.write_all(b"\x16\x03\x01").unwrap();
    assert_unharmed(&mut webhook);
    for stream in [&mut silent, &mut slow] {
        stream.set_nonblocking(true).unwrap();
        let open = stream.read(&mut [0; 64]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        assert!(open, "others are answered meanwhile");
        stream.set_nonblocking(false).unwrap();
    }
    for stream in [&mut silent, &mut slow] {
        let end = stream.read(&mut [0; 64]);
        assert!(
            matches!(&end, Ok(0)) || end.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset),
            "it is cut off"
        );
    }
}

#[test]
fn a_body_that_never_comes_is_answered_with_408() {
    let mut webhook = serve(&[]);
    let mut connection = Connection::open(&webhook);
    connection.write(Connection::head("/mutate", 1_000).as_bytes()).unwrap();
    connection.write(b"{").unwrap();
    assert_unharmed(&mut webhook);
    assert_eq!(connection.answer().expect("an answer, not a broken connection").status, 408);
}

#[test]
fn sigterm_finishes_what_is_in_flight_and_ends_well() {
    let mut webhook = serve(&["--shutdown-delay=5s"]);
    let body = review("CREATE", &rollout(&rolling()), &Value::Null).to_string();
    let (begun, rest) = body.split_at(body.len() / 2);
    let mut in_flight = Connection::open(&webhook);
    in_flight.write(Connection::head("/mutate", body.len()).as_bytes()).unwrap();
    in_flight.write(begun.as_bytes()).unwrap();
    let mut idle = Connection::open(&webhook);
    idle.post("/validate", &body);
    let answer = idle.answer().unwrap();
    assert_eq!((answer.status, answer.header("connection")), (200, None));

    let ops = webhook.ops();
    webhook.process().terminate();
    assert!(eventually(ROOM, || ops.get("/readyz").is_ok_and(|answer| answer.status == 503)), "unready at once");
    assert_eq!(ops.get("/livez").unwrap().status, 200, "and alive");
    // It serves on meanwhile, and asks to be left.
    idle.post("/validate", &body);
    let answer = idle.answer().expect("what was connected is still answered");
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
    let mut late = Connection::open(&webhook);
    late.post("/validate", &body);
    assert_eq!(late.answer().expect("who still comes is answered").status, 200);

    in_flight.write(rest.as_bytes()).unwrap();
    assert_eq!(in_flight.answer().expect("what is in flight is finished").status, 200);
    let status = webhook.process().wait_for_exit(ROOM);
    assert!(status.success(), "{status}");
}

#[test]
fn a_second_sigterm_ends_it_at_once() {
    let mut webhook = serve(&["--shutdown-delay=60s"]);
    let ops = webhook.ops();
    webhook.process().terminate();
    assert!(eventually(ROOM, || ops.get("/readyz").is_ok_and(|answer| answer.status == 503)));
    webhook.process().terminate();
    webhook.process().wait_for_exit(ROOM);
}

#[test]
fn the_ops_port_says_what_it_is_ready_for_and_what_it_did() {
    let webhook = serve(&[]);
    let ops = webhook.ops();
    assert_eq!(ops.get("/livez").unwrap().status, 200);
    let verbose = ops.get("/readyz?verbose").unwrap();
    assert_eq!(verbose.status, 200);
    assert!(verbose.text().lines().count() > 1, "each condition has a line: {verbose:?}");

    webhook.client().post("/validate", &review("CREATE", &rollout(&json!({"type": "Canary"})), &Value::Null)).unwrap();
    let metrics = ops.get("/metrics").unwrap();
    let counted = metrics.text().lines().any(|line| {
        line.starts_with("kube_unions_admission_reviews_total{")
            && [
                "group=\"samples.kube-unions.dev\"",
                "kind=\"Rollout\"",
                "operation=\"CREATE\"",
                "phase=\"validate\"",
                "outcome=\"denied\"",
            ]
            .iter()
            .all(|label| line.contains(label))
            && line.ends_with(" 1")
    });
    assert!(counted, "{}", metrics.text());
}

fn serve(more: &[&str]) -> Webhook {
    Webhook::of_files(&samples(), more).unwrap_or_else(|message| panic!("{message}"))
}

fn rolling() -> Value {
    json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}})
}

fn rollout(strategy: &Value) -> Value {
    json!({
        "apiVersion": "samples.kube-unions.dev/v1",
        "kind": "Rollout",
        "metadata": {"name": "x", "namespace": "default"},
        "spec": {"strategy": strategy},
    })
}

fn review(operation: &str, object: &Value, old: &Value) -> Value {
    serde_json::from_str(&review_text(operation, "Rollout", &object.to_string(), &old.to_string())).unwrap()
}

/// Returns a review of a sample's kind as text.
fn review_text(operation: &str, kind: &str, object: &str, old: &str) -> String {
    reviews::review_text(["samples.kube-unions.dev", "v1", kind], operation, object, old)
}

/// The patch that `/mutate` answers with, null where there is none; fails unless the review is answered and allowed.
#[track_caller]
fn mutate(webhook: &Webhook, review: &str, case: &str) -> Value {
    use base64::Engine as _;
    let answer = webhook.client().send("POST", "/mutate", "application/json", review.as_bytes()).expect(case);
    assert_eq!(answer.status, 200, "{case}: {answer:?}");
    let response = &answer.body["response"];
    assert_eq!((&response["uid"], &response["allowed"]), (&json!("the-uid"), &json!(true)), "{case}: {answer:?}");
    let Some(patch) = response["patch"].as_str() else {
        assert_eq!(response.get("patchType"), None, "{case}");
        return Value::Null;
    };
    assert_eq!(response["patchType"], "JSONPatch", "{case}");
    let patch = base64::engine::general_purpose::STANDARD.decode(patch).expect("a patch is base64");
    serde_json::from_slice(&patch).expect("a patch is JSON")
}

#[track_caller]
fn assert_refused(answer: &Answer, status: u16, word: &str, case: &str) {
    assert_eq!(answer.status, status, "{case}: {answer:?}");
    let body = &answer.body;
    assert_eq!(
        (&body["kind"], &body["status"], &body["code"]),
        (&json!("Status"), &json!("Failure"), &json!(status)),
        "{case}"
    );
    let message = body["message"].as_str().unwrap_or_default();
    assert!(message.contains(word), "{case}: `{message}` does not say `{word}`");
}

/// Fails unless the process is up, live, has not panicked, and still answers a review.
#[track_caller]
fn assert_unharmed(webhook: &mut Webhook) {
    webhook.process().assert_running();
    let ops = webhook.ops();
    assert_eq!(ops.get("/livez").expect("the ops port answers").status, 200);
    assert_eq!(webhook.metric("kube_unions_panics_total"), 0, "it has panicked:\n{}", webhook.log());
    let answer = webhook.client().post("/validate", &review("CREATE", &rollout(&rolling()), &Value::Null));
    assert_eq!(answer.expect("the webhook answers").body["response"]["allowed"], true);
}
