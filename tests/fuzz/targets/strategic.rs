//! Creates and applies patches of any texts, separated by NUL. The schema has every strategy and a type that refers to itself.
#![no_main]

use strategic_merge_patch::{Conflicts, Patcher, ThreeWay};

const SCHEMA: &str = r##"{"$ref": "#/definitions/T", "definitions": {"T": {"type": "object", "properties": {
    "k": {"type": "string"}, "n": {"type": "integer"}, "t": {"$ref": "#/definitions/T"}, "open": {"type": "object"},
    "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-patch-strategy": "merge"},
    "whole": {"allOf": [{"$ref": "#/definitions/T"}], "x-kubernetes-patch-strategy": "replace"},
    "union": {"allOf": [{"$ref": "#/definitions/T"}], "x-kubernetes-patch-strategy": "retainKeys"},
    "atomic": {"type": "array", "items": {"$ref": "#/definitions/T"}},
    "list": {"type": "array", "items": {"$ref": "#/definitions/T"}, "x-kubernetes-patch-strategy": "merge,retainKeys",
        "x-kubernetes-patch-merge-key": "k"},
    "keys": {"type": "array", "items": {"$ref": "#/definitions/T"}, "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k", "n"]}}}}}"##;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let patcher = Patcher::from_json_schema("T", SCHEMA).expect("the schema is valid");
    let mut texts = text.split('\0');
    let (original, modified, current) =
        (texts.next().unwrap_or("{}"), texts.next().unwrap_or("{}"), texts.next().unwrap_or("{}"));
    let _ = patcher.create_two_way(original, modified);
    if let Ok(patched) = patcher.apply(original, modified) {
        assert_eq!(patcher.apply(&*patched, "{}").expect("the engine reads its own output"), patched);
    }
    for conflicts in [Conflicts::Refuse, Conflicts::Overwrite] {
        let _ = patcher.create_three_way(&ThreeWay { original, modified, current, conflicts });
    }
});
