//! Requests and answers as JSON-RPC 2.0 has them, and every class of error.

use super::{answers, answers_to, fault, json_schema};
use serde_json::{Value, json};

/// Parameters of `define` for a pod whose containers merge by name.
fn pod() -> (&'static str, Value) {
    let document = json!({"type": "object", "properties": {"containers": {"type": "array", "items": {"type": "object"},
        "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name"}}});
    ("define", json_schema("pod", &document))
}

#[test]
fn a_result_is_text_as_it_was_written() {
    let lines = br#"{"jsonrpc":"2.0","id":"a","method":"define","params":{"schema":"t","source":{"jsonSchema":{"name":"T","document":{}}}}}
{"jsonrpc":"2.0","id":"b","method":"apply","params":{"schema":"t","original":{"z":1.10,"\u0061":"<&>\u00e9\ud83d\ude00"},"patch":{"n":123456789012345678901234567890,"e":1E400}}}
"#;
    let mut output = Vec::new();
    strategic_merge_patch_stdio::serve(&lines[..], &mut output).unwrap();
    assert_eq!(
        String::from_utf8(output).unwrap(),
        concat!(
            r#"{"jsonrpc":"2.0","id":"a","result":{"warnings":[]}}"#,
            "\n",
            r#"{"jsonrpc":"2.0","id":"b","result":{"z":1.10,"a":"<&>é😀","n":123456789012345678901234567890,"e":1E400}}"#,
            "\n"
        )
    );
}

#[test]
fn version_tells_the_protocol() {
    let answers = answers(&[("version", json!({}))]);
    assert_eq!(answers[0]["result"], json!({"protocol": 1, "version": env!("CARGO_PKG_VERSION")}));
}

#[test]
fn requests_are_answered_in_order_and_notifications_are_not() {
    let lines = br#"
{"jsonrpc":"2.0","method":"define","params":{"schema":"t","source":{"jsonSchema":{"name":"T","document":{}}}}}

{"jsonrpc":"2.0","id":7,"method":"apply","params":{"schema":"t","original":null,"patch":{"a":1}}}
{"jsonrpc":"2.0","method":"no such method"}
{"jsonrpc":"2.0","id":null,"method":"createTwoWay","params":{"schema":"t","original":{"a":1},"modified":{"a":2}}}
{"jsonrpc":"2.0","id":-1.5,"method":"createThreeWay","params":{"schema":"t","original":{"a":1},"modified":{"a":2},"current":{"a":1,"b":1},"conflicts":"refuse"}}"#;
    assert_eq!(
        answers_to(lines),
        [
            json!({"jsonrpc": "2.0", "id": 7, "result": {"a": 1}}),
            json!({"jsonrpc": "2.0", "id": null, "result": {"a": 2}}),
            json!({"jsonrpc": "2.0", "id": -1.5, "result": {"a": 2}}),
        ]
    );
}

#[test]
fn a_malformed_request_is_answered_and_the_next_one_too() {
    let malformed: [(&[u8], &str, i64); 13] = [
        (b"not JSON", "ParseError", -32700),
        (br#"{"jsonrpc":"2.0","id":1,"method":"version""#, "ParseError", -32700),
        (b"\"\xff\"", "ParseError", -32700),
        (b"[]", "InvalidRequest", -32600),
        (br#"[{"jsonrpc":"2.0","id":1,"method":"version"}]"#, "InvalidRequest", -32600),
        (br#"["2.0",1,"version"]"#, "InvalidRequest", -32600),
        (br#"{"jsonrpc":"2.0","id":1}"#, "InvalidRequest", -32600),
        (br#"{"jsonrpc":"2.0","id":1,"method":"version","more":1}"#, "InvalidRequest", -32600),
        (br#"{"jsonrpc":"2.0","id":{},"method":"version"}"#, "InvalidRequest", -32600),
        (br#"{"jsonrpc":"1.0","id":1,"method":"version"}"#, "InvalidRequest", -32600),
        (br#"{"jsonrpc":"2.0","id":1,"method":"verison"}"#, "MethodNotFound", -32601),
        (br#"{"jsonrpc":"2.0","id":1,"method":"apply"}"#, "InvalidParams", -32602),
        (br#"{"jsonrpc":"2.0","id":1,"method":"apply","params":["s",{},{}]}"#, "InvalidParams", -32602),
    ];
    for (line, reason, code) in malformed {
        let shown = String::from_utf8_lossy(line);
        let lines = [line, b"\n", br#"{"jsonrpc":"2.0","id":2,"method":"version"}"#].concat();
        let answers = answers_to(&lines);
        assert_eq!(answers.len(), 2, "{shown}");
        let (found_reason, found_code, _, data) = fault(&answers[0]);
        assert_eq!((found_reason, found_code, data), (reason, code, json!({})), "{shown}");
        assert_eq!(answers[1]["id"], 2, "{shown}");
        assert_eq!(answers[1]["result"]["protocol"], 1, "{shown}");
    }
}

#[test]
fn parameters_are_strict() {
    let rows = r#"
define {"schema": "x"} => missing field `source`
define {"schema": "x", "source": {"crd": {}}} => unknown variant `crd`
define {"schema": "x", "source": {"openapi": {"document": {}, "kind": "K"}}} => missing field `version`
define {"schema": "x", "source": {"jsonSchema": {"document": {}, "name": "K", "kind": "K"}}} => unknown field `kind`
apply {"schema": "pod", "original": {}} => missing field `patch`
apply {"schema": "pod", "original": {}, "patch": {}, "modified": {}} => unknown field `modified`
createTwoWay {"schema": "pod", "original": {}, "patch": {}} => unknown field `patch`
createThreeWay {"schema": "pod", "original": {}, "modified": {}, "current": {}} => missing field `conflicts`
createThreeWay {"schema": "pod", "original": {}, "modified": {}, "current": {}, "conflicts": "keep"} => unknown variant `keep`
"#;
    for (request, message) in rows.lines().filter_map(|row| row.split_once(" => ")) {
        let (method, params) = request.split_once(' ').unwrap();
        let answers = answers(&[pod(), (method, serde_json::from_str(params).unwrap())]);
        let (reason, code, found, _) = fault(&answers[1]);
        assert_eq!((reason, code), ("InvalidParams", -32602), "{params}");
        assert!(found.contains(message), "{params}: {found}");
    }
}

#[test]
fn errors_of_documents_name_the_document_or_the_path() {
    let rows = r#"
apply {"original": [], "patch": {}} => NotAnObject 4 {"document": "original"} => the original is a list; it must be an object
apply {"original": {}, "patch": "x"} => NotAnObject 4 {"document": "patch"} => the patch is a string; it must be an object
createTwoWay {"original": {}, "modified": 1} => NotAnObject 4 {"document": "modified"} => the modified object is a number; it must be an object
apply {"original": {"containers": []}, "patch": {"containers": [{"image": "a"}]}} => Refused 5 {"path": "containers[0]"} => containers[0]: the patch has a list item without the merge key `name`
apply {"original": {}, "patch": {"$patch": "x"}} => Refused 5 {} => `$patch` is "x"; it must be "replace" or "delete"
createThreeWay {"original": {"kind": "A", "a": 1}, "modified": {"kind": "A", "a": 2}, "current": {"kind": "A", "a": 3}, "conflicts": "refuse"} => Conflict 6 {"path": "a"} => a: conflict:
createThreeWay {"original": {"kind": "A", "a": 1}, "modified": {"kind": "B", "a": 2}, "current": {"kind": "A", "a": 3}, "conflicts": "overwrite"} => Precondition 7 {"path": "kind"} => a patch cannot change `kind`: it identifies the object
"#;
    let params = |params: &str| {
        let mut params: Value = serde_json::from_str(params).unwrap();
        params["schema"] = json!("pod");
        params
    };
    for row in rows.lines().skip(1) {
        let [request, wanted, message] = row.splitn(3, " => ").collect::<Vec<_>>()[..] else { panic!("{row}") };
        let (method, written) = request.split_once(' ').unwrap();
        let answers = answers(&[pod(), (method, params(written))]);
        let (reason, code, found, data) = fault(&answers[1]);
        let (kind, wanted_data) = wanted.split_at(wanted.find('{').unwrap());
        assert_eq!(format!("{reason} {code} "), kind, "{row}: {found}");
        assert_eq!(data, serde_json::from_str::<Value>(wanted_data).unwrap(), "{row}: {found}");
        assert!(found.starts_with(message), "{row}: {found}");
    }
    let three = r#"{"original": {"kind": "A", "a": 1}, "modified": {"kind": "A", "a": 2}, "current": {"kind": "A", "a": 3}, "conflicts": "overwrite"}"#;
    let overwritten = answers(&[pod(), ("createThreeWay", params(three))]);
    assert_eq!(overwritten[1]["result"], json!({"a": 2}));
}
