//! The desired object of a configuration: a pure function of the stored object and the wanted content.
//!
//! Foreign parts of the stored object are written back unchanged: entries, labels, annotations and owners of other writers,
//! and fields that this version does not know. Our own parts are set regardless of `managedFields`. The object is replaced
//! whole, so no other field manager can keep a part of it.

use super::stored::{NAME, bundle_of, calls, entries, inspection_token, is_ours, name_of};
use super::wanted::{BundleSource, INJECT, Wanted, WantedEntry};
use crate::controllers::ServiceReference;
use crate::controllers::object::{merge_metadata, object_at};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

/// Returns the object to write, `None` if the stored one is as wanted.
pub(super) fn desired(stored: Option<&Value>, wanted: &Wanted) -> Option<Value> {
    let Some(stored) = stored else {
        return (!wanted.entries.is_empty()).then(|| complete(&Value::Null, wanted));
    };
    let desired = complete(stored, wanted);
    (desired != *stored).then_some(desired)
}

/// Returns the stored object with this bundle in our entries; `None` if they hold it already.
pub(super) fn with_bundle(stored: &Value, pem: &str) -> Option<Value> {
    let bundle = Value::from(BASE64_STANDARD.encode(pem));
    let mut desired = stored.clone();
    for entry in desired.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
        if name_of(entry).is_some_and(is_ours)
            && let Some(client) = entry.get_mut("clientConfig").and_then(Value::as_object_mut)
        {
            client.insert("caBundle".to_owned(), bundle.clone());
        }
    }
    (desired != *stored).then_some(desired)
}

fn complete(stored: &Value, wanted: &Wanted) -> Value {
    let mut object = stored.as_object().cloned().unwrap_or_default();
    object.insert("apiVersion".to_owned(), "admissionregistration.k8s.io/v1".into());
    object.insert("kind".to_owned(), wanted.phase.kind().into());
    let mut metadata = object_at(&object, "metadata");
    metadata.insert("name".to_owned(), NAME.into());
    if !wanted.annotations.contains_key(INJECT)
        && let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut)
    {
        annotations.shift_remove(INJECT);
    }
    merge_metadata(&mut metadata, &wanted.labels, &wanted.annotations, wanted.owner.as_ref());
    object.insert("metadata".to_owned(), metadata.into());
    let webhooks = webhooks(stored, wanted);
    // The API server omits an empty list.
    if webhooks.is_empty() && is_set(object.get("webhooks")) {
        object.shift_remove("webhooks");
    } else if !webhooks.is_empty() {
        object.insert("webhooks".to_owned(), webhooks.into());
    }
    object.into()
}

/// Returns all entries: the stored ones in their order, then the missing ones.
fn webhooks(stored: &Value, wanted: &Wanted) -> Vec<Value> {
    let inspections = inspection_token(stored).as_ref().unwrap_or(&wanted.fresh).path();
    let mut missing: Vec<&WantedEntry> = wanted.entries.iter().collect();
    let mut webhooks = Vec::new();
    for entry in entries(stored) {
        let name = name_of(entry).unwrap_or_default();
        if let Some(position) = missing.iter().position(|wanted| wanted.name == name) {
            webhooks.push(completed(entry, missing.remove(position), wanted, &inspections));
        // A foreign entry that calls our Service would send us objects that we do not expect.
        } else if !is_ours(name) && !calls(entry, &wanted.service) {
            webhooks.push(entry.clone());
        }
    }
    webhooks.extend(missing.into_iter().map(|entry| completed(&Value::Null, entry, wanted, &inspections)));
    webhooks
}

fn completed(stored: &Value, entry: &WantedEntry, wanted: &Wanted, inspections: &str) -> Value {
    let mut fields = stored.as_object().cloned().unwrap_or_default();
    fields.insert("name".to_owned(), entry.name.into());
    fields.extend(entry.fields.clone());
    // The only field that is not always written out. A stored one would narrow the rules.
    if !entry.fields.contains_key("matchConditions") && is_set(fields.get("matchConditions")) {
        fields.shift_remove("matchConditions");
    }
    let mut client = object_at(&fields, "clientConfig");
    if is_set(client.get("url")) {
        client.shift_remove("url");
    }
    let ServiceReference { namespace, name, port } = &wanted.service;
    let mut service = object_at(&client, "service");
    for (field, value) in [
        ("namespace", json!(namespace)),
        ("name", json!(name)),
        ("path", entry.path.unwrap_or(inspections).into()),
        ("port", json!(port)),
    ] {
        service.insert(field.to_owned(), value);
    }
    client.insert("service".to_owned(), service.into());
    let is_trusted = match &wanted.ca {
        BundleSource::Ours(pem) => {
            client.insert("caBundle".to_owned(), BASE64_STANDARD.encode(pem).into());
            true
        }
        // The stored bundle stays until cert-manager writes another one.
        BundleSource::Injected(_) => !bundle_of(stored).is_empty(),
    };
    fields.insert("clientConfig".to_owned(), client.into());
    // Without a bundle the API server cannot call the entry, and every write would fail.
    let policy = if is_trusted { entry.failure_policy.as_str() } else { "Ignore" };
    fields.insert("failurePolicy".to_owned(), policy.into());
    fields.into()
}

/// Returns true if a field has a value other than null or an empty list.
fn is_set(value: Option<&Value>) -> bool {
    value.is_some_and(|value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()))
}

#[cfg(test)]
mod tests;
