//! Patches an object whose list has two keys, with no other crate of the project in its manifest.

use serde_json::{Value, json};
use strategic_merge_patch::Patcher;

const SCHEMA: &str = r#"{"type": "object", "properties": {"ports": {
    "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"],
    "items": {"type": "object", "properties": {
        "port": {"type": "integer"}, "protocol": {"type": "string"}, "name": {"type": "string"}}}}}}"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let patcher = Patcher::from_json_schema("Service", SCHEMA)?;
    let original = json!({"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]});
    let modified = json!({"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP", "name": "dns"}]});
    let patch: Value = patcher.create_two_way(&original, &modified)?;
    println!("patch:   {patch}");

    let live = json!({"replicas": 3, "ports": [{"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]});
    println!("patched: {}", patcher.apply(&live, &patch)?);
    Ok(())
}
