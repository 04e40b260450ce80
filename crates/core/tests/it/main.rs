//! Tests of the public interface of the crate, in one binary.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that meets what it did not expect is meant to stop there"
)]

mod applies;
mod audit;
mod bad_input;
mod declarations;
mod hostile;
mod invariants;
mod json;
mod matrix;
mod revisions;
mod transitions;
mod unions;
mod versions;
mod workspace;

use fixtures::reviews::catalog_of;
use kube_unions_core::catalog::Catalog;
use serde_json::json;

/// Returns a catalog of a kind with a union of the 2022 form in `spec`, unions of the 2019 form at every sort of place, and `data`, which
/// no plan names.
fn things() -> Catalog {
    let members = json!({"a": {"type": "object", "properties": {"n": {"type": "integer"}}}, "b": {"type": "string"}, "type": {"type": "string"}});
    let union = json!({"type": "object", "properties": members,
        "x-kubernetes-unions": [{"discriminator": "type", "fields-to-discriminateBy": {"a": "A", "b": "B"}}]});
    let mut item = union.clone();
    item["properties"]["name"] = json!({"type": "string"});
    item["required"] = json!(["name"]);
    let step = json!({"type": "object",
        "x-kubernetes-unions": [{"discriminator": "kind", "fields-to-discriminateBy": {"x/y": "X", "x~z": "Z"}}],
        "properties": {"kind": {"type": "string", "enum": ["X", "Z"]}, "x/y": {"type": "string"}, "x~z": {"type": "string"}}});
    let mut spec = json!({"type": "object", "properties": members});
    spec["properties"]["type"] = json!({"type": "string", "enum": ["A", "B", "None"],
        "x-kubernetes-unions": {"fieldMembers": {"A": {"name": "a"}, "B": {"name": "b"}, "None": null}}});
    spec["properties"]["one"] = union.clone();
    spec["properties"]["list"] = json!({"type": "array", "items": union});
    spec["properties"]["map"] = json!({"type": "object", "additionalProperties": union});
    spec["properties"]["keyed"] = json!({"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]});
    catalog_of(
        &json!({"type": "object", "properties": {"spec": spec, "steps": {"type": "object", "additionalProperties": step},
        "data": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}),
    )
}
