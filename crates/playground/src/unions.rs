//! The unions of the kinds, as the page shows them in a tree.

use kube_unions_core::catalog::Catalog;
use kube_unions_core::union::Union;
use kube_unions_manifests::union_details;
use serde_json::{Value, json};

/// Returns the unions of each kind of a catalog, in its order.
pub(crate) fn of_catalog(catalog: &Catalog) -> Vec<Value> {
    let entries = catalog.entries().iter();
    let kinds = entries.map(|entry| {
        let unions: Vec<Value> = entry.plan().unions().iter().map(union).collect();
        json!({"kind": entry.gvk().kind, "api_version": entry.gvk().api_version(), "unions": unions})
    });
    kinds.collect()
}

/// Returns a union with its details as `kube-unions explain` shows them, and the values of its discriminator, or its members if it
/// has no discriminator.
fn union(union: &Union) -> Value {
    let choices: Vec<Value> = if union.discriminator().is_none() {
        union.members().map(|member| json!({"value": null, "member": member, "optional": false})).collect()
    } else {
        let choices = union.choices().iter().map(|choice| {
            let optional = union_details::is_shown_optional(union, choice);
            json!({"value": choice.value(), "member": choice.member(), "optional": optional})
        });
        choices.collect()
    };
    json!({"path": union.path(), "details": union_details::details(union), "choices": choices})
}
