//! The unions of the kinds, as the page shows them in a tree.

use kube_unions_core::catalog::Catalog;
use kube_unions_core::union::{Choice, SelectedMember, Union};
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
        let member = |name| json!({"name": name, "optional": false});
        union.groups().map(|group| json!({"value": null, "members": group.map(member).collect::<Vec<_>>()})).collect()
    } else {
        let member =
            |it: &SelectedMember| json!({"name": it.name(), "optional": union_details::is_shown_optional(union, it)});
        let choices = union.choices().iter();
        let members = |choice: &Choice| choice.members().iter().map(member).collect::<Vec<_>>();
        choices.map(|choice| json!({"value": choice.value(), "members": members(choice)})).collect()
    };
    json!({"path": union.path(), "details": union_details::details(union), "choices": choices})
}
