//! Parses any text as a Go file and derives unions beside a schema: the schema allows every derived union.
#![no_main]

use kube_unions_core::declaration::{Declared, Definition, Severity, Source};
use kube_unions_core::union::compile;
use kube_unions_go::{GoParser, KindVersion, Packages};
use std::path::Path;
use std::sync::Arc;

/// A kind `K` with the fields of the corpus: names of one letter, in objects, lists and maps.
const CRD: &str = r#"{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "ks.e"},
  "spec": {"group": "e", "names": {"kind": "K", "plural": "ks"}, "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {
    "type": "object", "properties": {"s": {"type": "object", "required": ["r"], "properties": {
      "t": {"type": "string", "enum": ["A", "B", ""]}, "u": {"type": "string"}, "r": {"type": "object"},
      "a": {"type": "object", "properties": {"t": {"type": "string"}, "b": {"type": "object"}}}, "b": {"type": "object"},
      "c": {"type": "string", "default": "x"},
      "l": {"type": "array", "items": {"type": "object", "properties": {"t": {"type": "string"}, "a": {"type": "object"}}}},
      "m": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "object"}, "b": {"type": "object"}}}}
    }}}}}}]}}"#;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut parser = GoParser::new().unwrap();
    let Ok(file) = parser.parse(&Arc::from(Path::new("k.go")), bytes) else { return };
    let mut packages = Packages::default();
    packages.add(Path::new("/k"), Some("e/k"), vec![file]);
    let _ = packages.misplaced_markers(None);

    let versions = || Definition::from_json(CRD).unwrap().take_versions().into_iter();
    let kind = KindVersion { group: "e", kind: "K", version: "v1", versions: &["v1"] };
    let json: serde_json::Value = serde_json::from_str(CRD).unwrap();
    let schema = &json["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let derivation = packages.unions(kind, versions().next().unwrap(), schema);
    let _ = packages.unreached_structs(&[&derivation]);
    let mut version = versions().next().unwrap();
    for (place, value) in derivation.declarations() {
        version.put(&place, vec![Declared::new(value, Source::Annotation)]);
    }
    let compiled = compile(&version.schema, version.status_subresource);
    assert!(compiled.faults.iter().all(|fault| fault.severity() == Severity::Warning), "{:?}", compiled.faults);
    assert_eq!(compiled.plan.unions().len(), derivation.unions.len());
});
