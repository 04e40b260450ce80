//! Addresses of Services.

use crate::kinds::set_or_remove;
use crate::state::State;
use serde_json::{Value, json};

const COLLECTION: &str = "/services";

/// The addresses of a Service, which an update without them keeps.
const FIELDS: [&str; 4] = ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"];

/// Gives a new Service an address that no other one has.
pub(crate) fn allocate(state: &State, service: &mut Value) {
    let Some(spec) = service.get_mut("spec") else { return };
    if spec.get("type").and_then(Value::as_str) == Some("ExternalName") {
        return;
    }
    if spec.get("clusterIP").is_none() {
        let taken: Vec<&str> = state
            .storage
            .objects(COLLECTION)
            .filter_map(|(_, stored)| stored.object.pointer("/spec/clusterIP")?.as_str())
            .collect();
        let free = (2..255_u32).map(|last| format!("10.0.0.{last}")).find(|it| !taken.contains(&&**it));
        set_or_remove(spec, "clusterIP", free.map(Value::from));
    }
    let address = spec.get("clusterIP").cloned().unwrap_or_default();
    if spec.get("clusterIPs").is_none() {
        set_or_remove(spec, "clusterIPs", Some(json!([address])));
    }
    set_families(spec);
}

fn set_families(spec: &mut Value) {
    for (field, value) in [("ipFamilies", json!(["IPv4"])), ("ipFamilyPolicy", json!("SingleStack"))] {
        if spec.get(field).is_none() {
            set_or_remove(spec, field, Some(value));
        }
    }
}

/// Keeps the addresses of a Service that is written without them.
pub(crate) fn keep_allocated(service: &mut Value, old: &Value) {
    let Some(spec) = service.get_mut("spec") else { return };
    for field in FIELDS {
        let stored = old.get("spec").and_then(|spec| spec.get(field)).cloned();
        if spec.get(field).is_none() && stored.is_some() {
            set_or_remove(spec, field, stored);
        }
    }
    if spec.get("type").and_then(Value::as_str) != Some("ExternalName") {
        set_families(spec);
    }
}
