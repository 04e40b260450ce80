//! Invalid documents and schemas give an error with the path and the rule, whatever their depth and size.

use serde_json::{Value, json};
use std::error::Error;
use strategic_merge_patch::{Conflicts, PatchError, Patcher, ThreeWay};

fn patcher() -> Patcher {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "ports": {"type": "array", "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "port",
                "items": {"type": "object", "properties": {"port": {"type": "integer"}, "to": {"type": "string"}}}},
            "unkeyed": {"type": "array", "x-kubernetes-patch-strategy": "merge", "items": {"type": "object"}},
            "set": {"type": "array", "x-kubernetes-patch-strategy": "merge", "items": {"type": "string"}},
            "text": {"type": "string"},
            "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "object"}}}}}}}});
    Patcher::from_json_schema("Thing", &schema.to_string()).unwrap()
}

/// Returns the message of an error with its causes.
fn message(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

#[test]
fn refuses_an_invalid_patch_with_the_path_and_the_rule() {
    // The rows of `tests/cases/strategic` and their answers have most of the rules.
    let live = r#"{"spec": {"ports": [{"port": 1}], "set": ["a"], "unkeyed": [{"a": 1}], "text": {"a": {}}, "more": {"a": {}},
        "map": {"k": {"a": {"x": {}}, "b": {"x": {}}}}}}"#;
    let rows = r#"
[] => the patch is a list; it must be an object
7 => the patch is a number; it must be an object
{ => cannot read the patch as JSON: EOF while parsing an object at line 1 column 1
{}{} => trailing characters at line 1 column 3
{"a": 01} => invalid number at line 1 column 8
{"a": "\ud800"} => unexpected end of hex escape at line 1 column 14
{"spec": {"$patch": 1}} => spec: `$patch` is a number
{"spec": {"$setElementOrder/set": ["a"], "set": "a"}} => spec.set: `$setElementOrder` needs a list, but the patch has a string
{"spec": {"ports": [1]}} => spec.ports[0]: list element types are not identical: an object and a number
{"spec": {"unkeyed": [{"a": 2}]}} => spec.unkeyed: cannot merge lists without merge key
{"spec": {"text": {"a": {}}}} => spec.text: both sides are an object, but the schema declares a scalar
{"spec": {"map": {"k": {"b": {"x": {}}}}}} => spec.map[k].b: unable to find api field `b` in `Thing`
{"spec": {"ports": [{"port": 1, "more": [1]}, {"port": 1, "more": [2]}]}} => spec.ports[0].more: unable to find
"#;
    let rows = rows.lines().filter_map(|row| row.split_once(" => "));
    for (patch, wanted) in rows.chain([("{\n \"a\": tru}", "expected ident at line 2 column 10")]) {
        let error = patcher().apply(live, patch).expect_err(patch);
        assert!(message(&error).contains(wanted), "{patch}: {}", message(&error));
    }
    patcher().apply(live, r#"{"spec": {"ports": [{"port": 1, "more": [1]}]}}"#).unwrap();
}

#[test]
fn refuses_an_invalid_schema_with_the_place() {
    let rows = r##"
7 => cannot read the schema
{"$ref": "#/definitions/None"} => the reference `#/definitions/None` does not resolve to a schema in the document
{"properties": {"a": {"items": {"$ref": "elsewhere.json"}}}} => a[*]: the reference `elsewhere.json` does not resolve to a schema
{"$ref": "#"} => the reference `#` resolves only to itself
{"properties": {"a": {"allOf": [{"$ref": "#/$defs/A"}]}}, "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}} => a: the reference `#/$defs/A` resolves only to itself
{"properties": {"a": {"x-kubernetes-patch-strategy": "join"}}} => a: unexpected patch strategy `join`
{"properties": {"a": {"x-kubernetes-patch-strategy": "merge,replace"}}} => a: unexpected patch strategy
{"properties": {"a": {"x-kubernetes-patch-merge-key": "b", "x-kubernetes-recommended-patch-merge-key": "a,b"}}} => a: the recommended merge keys `a,b` must be distinct, few, and start with the merge key `b`
"##;
    for (schema, wanted) in rows.lines().filter_map(|row| row.split_once(" => ")) {
        let error = Patcher::from_json_schema("Thing", schema).unwrap_err();
        assert!(message(&error).contains(wanted), "{schema}: {}", message(&error));
    }
    let (document, kind) = (r#"{"components": {"schemas": {}}}"#, r#"{"group": "", "version": "v1", "kind": "Pod"}"#);
    let document = kube_unions_core::schema::OpenApi::parse(document).unwrap();
    let error = Patcher::from_openapi(&document, &serde_json::from_str(kind).unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "the document does not describe the kind `Pod`");
}

#[test]
fn documents_may_be_nested_512_levels_deep_on_the_stack_of_a_thread() {
    const DEPTH: usize = 509;
    let work = || {
        let types = r##"{"$ref": "#/definitions/T", "definitions": {"T": {"type": "object", "properties": {
            "m": {"$ref": "#/definitions/T"}, "v": {"type": "integer"},
            "l": {"type": "array", "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "k",
                  "items": {"allOf": [{"$ref": "#/definitions/T"}], "properties": {"k": {"type": "string"}}}}}}}}"##;
        let patcher = Patcher::from_json_schema("T", types).unwrap();
        let maps = |leaf: &str| format!("{}{leaf}{}", r#"{"m":"#.repeat(DEPTH), "}".repeat(DEPTH));
        let lists = |leaf: &str| format!("{}{leaf}{}", r#"{"k":"a","l":["#.repeat(DEPTH / 2), "]}".repeat(DEPTH / 2));
        for nest in [&maps as &dyn Fn(&str) -> String, &lists] {
            let (before, after) = (nest(r#"{"k":"a","v":1}"#), nest(r#"{"k":"a","v":2,"l":[{"k":"b","v":null}]}"#));
            let (before, after) = (before.as_str(), after.as_str());
            let patch = patcher.create_two_way(before, after).unwrap();
            let result = patcher.apply(before, &*patch).unwrap();
            assert_eq!(
                result,
                patcher
                    .apply(after, "{}")
                    .unwrap()
                    .replace(",\"l\":[{\"k\":\"b\",\"v\":null}]", ",\"l\":[{\"k\":\"b\"}]")
            );
            let sides = ThreeWay { original: before, modified: after, current: before, conflicts: Conflicts::Refuse };
            assert_eq!(patcher.create_three_way(&sides).unwrap(), patch);
            patcher.apply("{}", before).unwrap();
        }
        let nested = |levels: usize| format!("{}1{}", r#"{"m":"#.repeat(levels), "}".repeat(levels));
        let open = Patcher::from_json_schema("T", "{}").unwrap();
        assert_eq!(open.apply("{}", &*nested(512)).unwrap(), nested(512));
        let error = open.apply(&*nested(513), "{}").unwrap_err();
        assert!(
            message(&error).ends_with("nested deeper than 512 levels at line 1 column 2561"),
            "{}",
            message(&error)
        );
        // The macro `json!` would copy what is inside at each level.
        let json = |levels| {
            (0..levels).fold(json!(1), |inner, _| Value::Object([("m".to_owned(), inner)].into_iter().collect()))
        };
        assert_eq!(open.apply(&json!({}), &json(512)).unwrap().to_string(), nested(512));
        let error = open.apply(&json(513), &json!({})).unwrap_err();
        assert!(matches!(&error, PatchError::Refused { path, .. } if path.segments().len() == 512), "{error}");
        assert!(error.to_string().ends_with(": nested deeper than 512 levels"), "{error}");
        // A type that refers to itself is as deep as the documents.
        let error = patcher.apply(&*maps("[1]"), &*maps("{\"$patch\": 1}")).unwrap_err();
        assert!(matches!(&error, PatchError::Refused { path, .. } if path.segments().len() == DEPTH), "{error}");
    };
    std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(work).unwrap().join().unwrap();
}
