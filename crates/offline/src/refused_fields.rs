//! What the API server refuses of an object of a built-in kind beside its invalid unions: values of a wrong type where a union is
//! ([`field_types`](crate::field_types)), and fields that do not go with others ([`field_rules`](crate::field_rules)).

use crate::field_rules;
use crate::field_types::wrong_types;
use crate::refused_field::RefusedField;
use kube_unions_core::catalog::CatalogEntry;
use kube_unions_core::schema::Schema;
use kube_unions_manifests::is_built_in_group;
use serde_json::Value;

/// Returns the refused fields of an object that has its defaults. Nothing but types is judged if one is wrong. `old` is the object before an
/// update.
pub fn refused_fields(entry: &CatalogEntry, schema: &Schema, old: Option<&Value>, new: &Value) -> Vec<RefusedField> {
    if !is_built_in_group(&entry.gvk().group) {
        return Vec::new();
    }
    let types = wrong_types(entry, schema, new);
    if types.is_empty() { field_rules::refused_fields(entry.gvk(), old, new) } else { types }
}
