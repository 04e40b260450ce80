//! Bodies that no API server should send, and unusual ones that it may send. Each has its error or its response.

use crate::things;
use fixtures::reviews::{GROUP, Verdict, Write, admit, answer, apply, catalog_of, review_text, thing};
use kube_unions_core::admission::{Operation, Phase, Ratcheting, ReviewOutcome, review};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

const PHASES: [Phase; 3] = [Phase::Mutate, Phase::Validate, Phase::Both];

/// Returns the text of an update with these fields. Text can contain what no JSON writer produces.
fn update(old: &str, new: &str) -> String {
    let object = |fields: &str| {
        format!(r#"{{"apiVersion":"cases.example.com/v1","kind":"Thing","metadata":{{"name":"example"}},{fields}}}"#)
    };
    review_text([GROUP, "v1", "Thing"], "UPDATE", &object(new), &object(old))
}

/// A valid review, for tests that spoil it.
fn good() -> Value {
    serde_json::from_str(&update(r#""spec":{"type":"A","a":{}}"#, r#""spec":{"type":"None","a":{}}"#)).unwrap()
}

fn spoilt(pointer: &str, value: Value) -> Vec<u8> {
    let mut review = good();
    *review.pointer_mut(pointer).unwrap() = value;
    review.to_string().into_bytes()
}

/// Returns a review with other fields of its request.
fn request(fields: &Value) -> Vec<u8> {
    let mut review = good();
    for (name, value) in fields.as_object().unwrap() {
        review["request"][name] = value.clone();
    }
    review.to_string().into_bytes()
}

fn without(pointer: &str) -> Vec<u8> {
    let mut review = good();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    review.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name).unwrap();
    review.to_string().into_bytes()
}

#[test]
fn a_review_that_cannot_be_read_is_refused_with_the_reason() {
    let text = good().to_string();
    let table: Vec<(&str, Vec<u8>, &[&str])> = vec![
        ("empty", Vec::new(), &["empty"]),
        ("white space", b" \n\t".to_vec(), &["empty"]),
        ("not JSON", b"uid: 7".to_vec(), &["line 1 column 1"]),
        ("truncated", text.as_bytes()[..text.len() / 2].to_vec(), &["EOF"]),
        ("truncated by one byte", text.as_bytes()[..text.len() - 1].to_vec(), &["EOF"]),
        ("something behind it", [text.as_bytes(), b"{}"].concat(), &["trailing characters"]),
        ("not UTF-8", b"{\"kind\":\"\xff\"}".to_vec(), &["UTF-8"]),
        ("a list", b"[]".to_vec(), &["AdmissionReview"]),
        ("null", b"null".to_vec(), &["AdmissionReview"]),
        ("a string", b"\"AdmissionReview\"".to_vec(), &["AdmissionReview"]),
        ("an empty object", b"{}".to_vec(), &["AdmissionReview", "admission.k8s.io/v1"]),
        (
            "v1beta1",
            spoilt("/apiVersion", json!("admission.k8s.io/v1beta1")),
            &["`admission.k8s.io/v1beta1`", "send an AdmissionReview of admission.k8s.io/v1"],
        ),
        ("an unknown version", spoilt("/apiVersion", json!("admission.k8s.io/v7")), &["`admission.k8s.io/v7`"]),
        ("another kind", spoilt("/kind", json!("ConversionReview")), &["`ConversionReview`"]),
        ("no apiVersion", without("/apiVersion"), &["AdmissionReview of admission.k8s.io/v1"]),
        ("no kind", without("/kind"), &["AdmissionReview of admission.k8s.io/v1"]),
        ("no request", without("/request"), &["`request`"]),
        ("a null request", spoilt("/request", Value::Null), &["`request`"]),
        ("a request that is a string", spoilt("/request", json!("x")), &["request"]),
        ("no uid", without("/request/uid"), &["uid"]),
        ("an empty uid", spoilt("/request/uid", json!("")), &["uid"]),
        ("a uid that is a number", spoilt("/request/uid", json!(7)), &["expected a string", "line 1 column"]),
        ("no kind of the object", without("/request/kind"), &["request.kind"]),
        ("no operation", without("/request/operation"), &["operation"]),
        ("an unknown operation", spoilt("/request/operation", json!("PATCH")), &["operation", "`PATCH`"]),
        ("an operation in small letters", spoilt("/request/operation", json!("update")), &["operation", "`update`"]),
        ("no object", without("/request/object"), &["request.object"]),
        ("a null object", spoilt("/request/object", Value::Null), &["request.object"]),
        ("an object that is a list", spoilt("/request/object", json!([{}])), &["request.object"]),
        ("an object that is a string", spoilt("/request/object", json!("{}")), &["request.object"]),
        ("an object that is a number", spoilt("/request/object", json!(7)), &["request.object"]),
        ("an old object that is a list", spoilt("/request/oldObject", json!([])), &["request.oldObject"]),
    ];
    let catalog = things();
    for (name, body, says) in table {
        for phase in PHASES {
            let refused = review(&catalog, phase, Ratcheting::Enabled, &body);
            let message = match refused {
                Ok(answered) => panic!("{name}: {}", String::from_utf8_lossy(&answered.to_json())),
                Err(error) => error.to_string(),
            };
            assert!(says.iter().all(|word| message.contains(word)), "{name}: {message}");
            assert!(!message.contains("struct ") && !message.contains("::"), "{name}: no type names: {message}");
        }
    }
}

#[test]
fn a_review_is_answered_whatever_byte_of_it_is_spoilt() {
    let catalog = things();
    let steps =
        |fields: &str| format!(r#""spec":{{"type":"A","a":{{}}}},"steps":{{"a\n":{{{fields}}},"b":[null,-1.5e3]}}"#);
    let body = update(&steps(r#""kind":"X","x/y":"1""#), &steps(r#""kind":"Z","x/y":"1","x~z":"2""#)).into_bytes();
    for at in 0..body.len() {
        for with in ["", "\"", "{", "]", ":", ",", "\\", "\0", "7", "null", "\"\":"] {
            // Before a byte, and in its place.
            for rest in [&body[at..], &body[at + 1..]] {
                let spoilt = [&body[..at], with.as_bytes(), rest].concat();
                for phase in PHASES {
                    let Ok(answer) = review(&catalog, phase, Ratcheting::Enabled, &spoilt) else { continue };
                    let json = answer.to_json();
                    assert!(
                        serde_json::from_slice::<IgnoredAny>(&json).is_ok(),
                        "{}",
                        String::from_utf8_lossy(&spoilt)
                    );
                }
            }
        }
    }
}

#[test]
fn what_an_error_repeats_of_the_body_is_short_and_printable() {
    let catalog = things();
    let long = "x".repeat(100_000);
    for body in [
        spoilt("/apiVersion", json!(long)),
        spoilt("/kind", json!(format!("\u{1b}[31m{long}"))),
        spoilt("/request/operation", json!(format!("a\nb{long}"))),
        spoilt("/request/uid", json!({long.clone(): 1})),
    ] {
        let message = review(&catalog, Phase::Both, Ratcheting::Enabled, &body).unwrap_err().to_string();
        assert!(message.len() < 1_000, "{} bytes", message.len());
        assert!(!message.chars().any(char::is_control), "{message:?}");
    }
}

#[test]
fn what_is_not_ours_is_allowed_untouched() {
    let table = [
        ("a kind that nobody declared", spoilt("/request/kind/kind", json!("Other"))),
        ("a group that nobody declared", spoilt("/request/kind/group", json!("other.example.com"))),
        ("a version that nobody declared", spoilt("/request/kind/version", json!("v2"))),
        (
            "an undeclared kind whose object is a list",
            request(&json!({"kind": {"group": "cases.example.com", "version": "v1", "kind": "Other"}, "object": []})),
        ),
        ("a delete", request(&json!({"operation": "DELETE", "object": null}))),
        (
            "a connect",
            request(&json!({"operation": "CONNECT", "object": {"kind": "PodExecOptions"}, "oldObject": null})),
        ),
        ("a subresource that is neither the object nor its status", request(&json!({"subResource": "scale"}))),
    ];
    let catalog = things();
    for (name, body) in table {
        for phase in PHASES {
            let answer =
                answer(&catalog, phase, Ratcheting::Disabled, &body).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(answer.verdict, Verdict::Allowed(None), "{name}");
            assert!(answer.operations.is_empty() && answer.warnings.is_empty(), "{name}: {answer:?}");
        }
    }
}

#[test]
fn an_update_without_an_old_object_has_no_old_so_nothing_is_cleared() {
    let catalog = things();
    for body in [without("/request/oldObject"), spoilt("/request/oldObject", Value::Null)] {
        let answer = answer(&catalog, Phase::Both, Ratcheting::Enabled, &body).unwrap();
        let Verdict::Denied(causes) = answer.verdict else { panic!("{answer:?}") };
        assert_eq!(causes.len(), 1, "{causes:?}");
        assert_eq!((causes[0].field.as_str(), causes[0].reason.as_str()), ("spec.a", "FieldValueForbidden"));
    }
}

#[test]
fn an_old_object_on_a_create_is_no_old() {
    let body = spoilt("/request/operation", json!("CREATE"));
    let answer = answer(&things(), Phase::Both, Ratcheting::Enabled, &body).unwrap();
    assert!(matches!(answer.verdict, Verdict::Denied(_)) && answer.operations.is_empty(), "{answer:?}");
}

#[test]
fn the_answer_tells_for_metrics_only_kinds_that_the_catalog_knows() {
    let catalog = things();
    let known = review(&catalog, Phase::Mutate, Ratcheting::Enabled, good().to_string().as_bytes()).unwrap();
    assert_eq!(
        (known.ordinal(), known.outcome(), known.operation()),
        (Some(0), ReviewOutcome::Patched, Operation::Update)
    );
    let unknown = spoilt("/request/kind/kind", json!("Other"));
    let unknown = review(&catalog, Phase::Mutate, Ratcheting::Enabled, &unknown).unwrap();
    assert_eq!((unknown.ordinal(), unknown.outcome()), (None, ReviewOutcome::Allowed));
}

/// Returns the operations of the patch for an update, which must be allowed.
fn operations(old: &str, new: &str) -> Vec<Value> {
    let body = update(old, new);
    let answer = answer(&things(), Phase::Both, Ratcheting::Enabled, body.as_bytes()).unwrap();
    assert_eq!(answer.verdict, Verdict::Allowed(None));
    answer.operations
}

#[test]
fn the_order_in_which_a_review_is_written_does_not_matter() {
    let expected = json!([{"op": "remove", "path": "/spec/a"}]);
    let mut keys: Vec<String> = good()["request"].as_object().unwrap().keys().cloned().collect();
    for _ in 0..keys.len() {
        keys.rotate_left(1);
        let request: serde_json::Map<_, _> =
            keys.iter().map(|key| (key.clone(), good()["request"][key].clone())).collect();
        let bodies = [
            json!({"request": request, "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}),
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}),
        ];
        for body in bodies {
            let answer = answer(&things(), Phase::Both, Ratcheting::Enabled, body.to_string().as_bytes()).unwrap();
            assert_eq!(json!(answer.operations), expected, "{body}");
        }
    }
}

#[test]
fn numbers_that_no_machine_type_holds_are_not_touched() {
    let data =
        r#""data":{"n":123456789012345678901234567890,"f":1e400,"m":-0,"d":0.1000000000000000055511151231257827}"#;
    let patch = operations(
        &format!(r#""spec":{{"type":"A","a":{{"n":99999999999999999999}}}},{data}"#),
        &format!(r#""spec":{{"type":"B","a":{{"n":99999999999999999999}},"b":"x"}},{data}"#),
    );
    assert_eq!(json!(patch), json!([{"op": "remove", "path": "/spec/a"}]), "no operation carries a number");
}

#[test]
fn keys_are_escaped_in_pointers_and_applied_by_others() {
    let key = r"a/b~c\u0000\ud83d\ude00";
    let patch = operations(
        &format!(r#""steps":{{"{key}":{{"kind":"X","x/y":"1"}}}}"#),
        &format!(r#""steps":{{"{key}":{{"kind":"Z","x/y":"1","x~z":"2"}}}}"#),
    );
    assert_eq!(json!(patch), json!([{"op": "remove", "path": "/steps/a~1b~0c\0😀/x~1y"}]));
    let mut object = thing(&json!({"steps": {"a/b~c\0😀": {"kind": "Z", "x/y": "1", "x~z": "2"}}}));
    apply(&patch, &mut object);
    assert_eq!(object["steps"]["a/b~c\0😀"], json!({"kind": "Z", "x~z": "2"}));
}

#[test]
fn values_of_a_user_are_cut_and_made_printable() {
    let catalog = things();
    let long = "v".repeat(100_000);
    for value in [format!("{long}\u{1b}[31m"), format!("\n\r\t\u{7f}\u{1b}[31m{long}"), "\"quoted\"\\".to_owned()] {
        let new = format!(r#""spec":{{"type":{},"a":{{}}}}"#, json!(value));
        let denied = answer(
            &catalog,
            Phase::Both,
            Ratcheting::Enabled,
            update(r#""spec":{"type":"A","a":{}}"#, &new).as_bytes(),
        )
        .unwrap();
        let Verdict::Denied(causes) = denied.verdict else { panic!("{value:.20?} is not supported") };
        assert!(causes.iter().all(|cause| cause.message.len() < 512), "{causes:?}");
    }
    // Many and long keys. The warnings stay within the limits of the API server, and the patch is complete.
    let steps = |fields: &str| {
        let step = |number: usize| format!(r#""{number}{long}":{{{fields}}}"#);
        format!(r#""steps":{{{}}}"#, (0..40).map(step).collect::<Vec<_>>().join(","))
    };
    let patch = operations(&steps(r#""kind":"X","x/y":"1""#), &steps(r#""kind":"Z","x/y":"1","x~z":"2""#));
    assert_eq!(patch.len(), 40);
}

/// Returns an update that turns the type to `None` and keeps `a`, with this metadata of the new object and these options.
fn applied(metadata: &str, options: &str) -> String {
    let object = |metadata: &str, kind: &str| {
        format!(
            r#"{{"apiVersion":"cases.example.com/v1","kind":"Thing","metadata":{metadata},"spec":{{"type":"{kind}","a":{{}}}}}}"#
        )
    };
    let old = object(r#"{"name":"example"}"#, "A");
    let review = review_text([GROUP, "v1", "Thing"], "UPDATE", &object(metadata, "None"), &old);
    review.replace(r#""options":null"#, &format!(r#""options":{options}"#))
}

fn entry(field_set: &str) -> String {
    format!(r#"{{"manager":"own","operation":"Apply","apiVersion":"cases.example.com/v1","fieldsV1":{field_set}}}"#)
}

#[test]
fn evidence_that_cannot_be_read_is_no_evidence() {
    let contradiction = r#"{"f:spec":{"f:type":{},"f:a":{}}}"#;
    let update = r#"{"manager":"own","operation":"Update","apiVersion":"cases.example.com/v1","fieldsV1":{"f:metadata":{"f:annotations":{"f:kubectl.kubernetes.io/last-applied-configuration":{}}}}}"#;
    let annotation = |text: &str| {
        let text = Value::from(text);
        format!(
            r#"{{"annotations":{{"kubectl.kubernetes.io/last-applied-configuration":{text}}},"managedFields":[{update}]}}"#
        )
    };
    let managed = |entries: &str| format!(r#"{{"managedFields":{entries}}}"#);
    let alone = |entry: &str| managed(&format!("[{entry}]"));
    let of = |field_set: &str| alone(&entry(field_set));
    let changed = |from: &str, to: &str| alone(&entry(contradiction).replace(from, to));
    let manifest = r#"{"apiVersion":"cases.example.com/v1","kind":"Thing","spec":{"type":"None","a":{}}}"#;
    let deep = |levels| format!("{}{{}}{}", r#"{"f:spec":"#.repeat(levels), "}".repeat(levels));
    let long = format!(r#"{{"f:spec":{{"f:type":{{}},"f:a":{{}},"f:{}":{{}}}}}}"#, "x".repeat(3 << 20));
    let many: Vec<_> = (0..10_000).map(|number| entry(contradiction).replace("own", &format!("m{number}"))).collect();
    let with_own: Vec<_> = many.iter().cloned().chain([entry(contradiction)]).collect();
    let rows: Vec<(&str, String, bool)> = vec![
        ("the evidence of a contradiction", of(contradiction), true),
        ("no metadata", "{}".to_owned(), false),
        ("metadata of another type", "[1]".to_owned(), false),
        ("no entries", managed("[]"), false),
        ("entries of another type", managed(r#"{"own": 1}"#), false),
        ("entries that are null", managed("[null]"), false),
        (
            "garbage before the entry",
            managed(&format!(r#"[1, "x", {{"manager": 7}}, {}]"#, entry(contradiction))),
            true,
        ),
        ("an entry of another manager", changed("own", "other"), false),
        ("an entry of another group", changed("cases.example", "other.example"), false),
        ("an entry of a version that nobody knows", changed("/v1", "/v2"), true),
        ("an entry of a version of another type", changed(r#""cases.example.com/v1""#, "7"), false),
        ("an entry without a version", changed(r#""apiVersion":"cases.example.com/v1","#, ""), false),
        ("an entry of a subresource", changed("}}}}", "}}},\"subresource\":\"status\"}"), false),
        ("an entry of updates", changed("Apply", "Update"), false),
        ("a manager of another type", changed("\"own\"", "[\"own\"]"), false),
        ("a field set that is null", of("null"), false),
        ("a field set that is a list", of("[]"), false),
        ("a field set with scalars", of(r#"{"f:spec":{"f:type":1,"f:a":{}}}"#), false),
        ("a field set with broken keys", of(r#"{"f:spec":{"k:{":{},"f:a":{}}}"#), false),
        ("a field set of 100 levels", of(&deep(100)), false),
        ("a field set of 1,000 levels", of(&deep(1000)), false),
        ("a field set of 3 MiB", of(&long), true),
        ("10,000 entries", alone(&many.join(",")), false),
        ("10,000 entries before the own one", alone(&with_own.join(",")), true),
        ("an annotation", annotation(manifest), true),
        ("an annotation that is not JSON", annotation("spec: {type: None}"), false),
        ("an annotation that was cut", annotation(&manifest[..manifest.len() - 1]), false),
        ("an annotation of another kind", annotation(&manifest.replace("Thing", "Other")), false),
        ("an annotation of another group", annotation(&manifest.replace("cases.example", "other.example")), false),
        ("an annotation of a version that nobody knows", annotation(&manifest.replace("/v1", "/v2")), true),
        ("an annotation that is a list", annotation("[]"), false),
        ("an empty annotation", annotation(""), false),
        (
            "an annotation of another type",
            annotation(manifest).replace(&Value::from(manifest).to_string(), "{}"),
            false,
        ),
        (
            "an annotation with 1,000 levels",
            annotation(&manifest.replace("\"a\":{}", &format!("\"a\":{}{}", "[".repeat(1000), "]".repeat(1000)))),
            true,
        ),
        ("an annotation that the manager does not own", annotation(manifest).replace(update, ""), false),
    ];
    let catalog = things();
    for (name, metadata, counts) in rows {
        let body = applied(&metadata, r#"{"kind":"UpdateOptions","fieldManager":"own"}"#);
        let review = review(&catalog, Phase::Both, Ratcheting::Enabled, body.as_bytes()).unwrap();
        let expected = if counts { ReviewOutcome::Denied } else { ReviewOutcome::Patched };
        assert_eq!(review.outcome(), expected, "{name}: {:?}", review.denial());
    }
}

#[test]
fn options_of_any_shape_are_answered() {
    let catalog = things();
    let managed = format!(r#"{{"managedFields":[{}]}}"#, entry(r#"{"f:spec":{"f:type":{},"f:a":{}}}"#));
    for options in [
        "null",
        "{}",
        "[]",
        "7",
        "\"own\"",
        r#"{"fieldManager":null}"#,
        r#"{"fieldManager":["own"]}"#,
        r#"{"fieldManager":""}"#,
    ] {
        let body = applied(&managed, options);
        let review = review(&catalog, Phase::Both, Ratcheting::Enabled, body.as_bytes()).unwrap();
        assert_eq!(review.outcome(), ReviewOutcome::Patched, "{options}");
    }
}

#[test]
fn an_item_with_as_many_as_127_keys_is_normalised_and_one_with_more_is_judged() {
    for count in [1, 63, 64, 127, 128, 255, 256, 300] {
        let keys: Vec<String> = (0..count).map(|number| format!("k{number}")).collect();
        let mut fields: serde_json::Map<String, Value> =
            keys.iter().map(|key| (key.clone(), json!({"type": "string"}))).collect();
        fields.extend(["a", "b"].map(|member| (member.to_owned(), json!({"type": "object"}))));
        let unions = json!([{"fields-to-discriminateBy": {"a": "A", "b": "B"}}]);
        let items = json!({"type": "object", "required": keys, "properties": fields, "x-kubernetes-unions": unions});
        let list = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys, "items": items});
        let catalog = catalog_of(&json!({"type": "object", "properties": {"list": list}}));
        let item = |members: &[&str]| {
            let keys = keys.iter().map(|key| (key.clone(), json!("x")));
            keys.chain(members.iter().map(|member| ((*member).to_owned(), json!({})))).collect::<Value>()
        };
        let object = |members: &[&str]| thing(&json!({"list": [item(members)]}));
        let answer = admit(&catalog, &Write::new(Some(object(&["a"])), object(&["a", "b"])));
        match count {
            ..128 => assert_eq!(answer.verdict, Verdict::Allowed(Some(object(&["b"]))), "{count} keys"),
            _ => assert!(matches!(answer.verdict, Verdict::Denied(_)), "{count} keys: {answer:?}"),
        }
    }
}
