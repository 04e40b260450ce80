//! The desired object of a configuration: a pure function of the stored object and the wanted content.
//!
//! Foreign parts of the stored object are written back unchanged: entries, labels, annotations and owners of other writers,
//! and fields that this version does not know. Our own parts are set regardless of `managedFields`. The object is replaced
//! whole, so no other field manager can keep a part of it.

use super::entries::WantedEntry;
use super::intent::Intent;
use super::rules::RegistrationRules;
use super::settings::Registration;
use super::stored::{
    ConfigurationKind, ConfigurationPair, NAME, bundle_of, calls, entries, inspection_token, is_ours, name_of,
};
use crate::controllers::ServiceReference;
use crate::controllers::handover::Trust;
use crate::controllers::object::{INSTALLATION, Owner, merge_metadata, object_at};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kube_unions_core::admission::InspectionToken;
use kube_unions_core::catalog::Catalog;
use serde_json::{Value, json};
use std::sync::Arc;

/// Annotation that makes cert-manager write `caBundle`.
const INJECT: &str = "cert-manager.io/inject-ca-from";

/// Returns the object to write, `None` if the stored one is as wanted. `bundle`: PEM; `None` if cert-manager writes it.
pub(super) fn desired(
    kind: ConfigurationKind,
    stored: Option<&Value>,
    intent: &Intent,
    bundle: Option<&str>,
) -> Option<Value> {
    if !intent.is_whole {
        let Trust::Agreed(pem) = &intent.trust else { return None };
        return with_bundle(stored?, pem);
    }
    let before = stored.unwrap_or(&Value::Null);
    let wanted = intent.entries(kind, before);
    if stored.is_none() && wanted.is_empty() {
        return None;
    }
    let mut object = before.as_object().cloned().unwrap_or_default();
    object.insert("apiVersion".to_owned(), "admissionregistration.k8s.io/v1".into());
    object.insert("kind".to_owned(), kind.kind().into());
    let mut metadata = object_at(&object, "metadata");
    metadata.insert("name".to_owned(), NAME.into());
    let installation = intent.settings.service.installation();
    let annotations = if let Trust::InjectedFrom(certificate) = &intent.trust {
        json!({INSTALLATION: installation, INJECT: &**certificate})
    } else {
        metadata.get_mut("annotations").and_then(Value::as_object_mut).and_then(|stored| stored.shift_remove(INJECT));
        json!({INSTALLATION: installation})
    };
    let labels = json!({"app.kubernetes.io/name": NAME, "app.kubernetes.io/managed-by": NAME});
    let ours = json!({"labels": labels, "annotations": annotations});
    merge_metadata(&mut metadata, &ours, intent.owner.as_ref());
    object.insert("metadata".to_owned(), metadata.into());
    let webhooks = webhooks(before, wanted, intent, bundle);
    // The API server omits an empty list.
    if webhooks.is_empty() && is_set(object.get("webhooks")) {
        object.shift_remove("webhooks");
    } else if !webhooks.is_empty() {
        object.insert("webhooks".to_owned(), webhooks.into());
    }
    let desired = Value::from(object);
    (desired != *before).then_some(desired)
}

impl Intent {
    /// Returns both configurations to write, the mutating one first; `None` for one that is in sync.
    pub(super) fn writes(&self, stored: &ConfigurationPair, bundle: Option<&str>) -> ConfigurationPair {
        let [mutating, validating] = stored.each_ref();
        [(ConfigurationKind::Mutating, mutating), (ConfigurationKind::Validating, validating)]
            .map(|(kind, stored)| desired(kind, stored.as_ref(), self, bundle))
    }
}

impl Registration {
    /// Returns both webhook configurations to write for all kinds of a catalog, the mutating one first; `None` for one that is in
    /// sync.
    ///
    /// `ca`: the CA to register, PEM. `owner`: UID of the owner. `fresh`: token for inspections if none is stored. `stored`:
    /// the stored configurations, `None` for a missing one.
    pub fn written(
        &self,
        catalog: &Catalog,
        ca: &str,
        owner: &str,
        fresh: &InspectionToken,
        stored: &[Option<Value>; 2],
    ) -> [Option<Value>; 2] {
        let mut intent = Intent::empty(self.clone(), Trust::Agreed(ca.into()), fresh.clone());
        intent.rules = Arc::new(RegistrationRules::of(catalog));
        (intent.inspects_declarations, intent.inspects_definitions) = (true, true);
        intent.owner = self.owner.clone().map(|name| Owner { name, uid: owner.to_owned() });
        intent.writes(stored, Some(ca))
    }
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

/// Returns all entries: the stored ones in their order, then the missing ones.
fn webhooks(stored: &Value, mut missing: Vec<WantedEntry>, intent: &Intent, bundle: Option<&str>) -> Vec<Value> {
    let inspections = inspection_token(stored).as_ref().unwrap_or(&intent.fresh).path();
    let completed = |stored: &Value, entry| completed(stored, entry, &intent.settings.service, bundle, &inspections);
    let mut webhooks = Vec::new();
    for entry in entries(stored) {
        let name = name_of(entry).unwrap_or_default();
        if let Some(position) = missing.iter().position(|wanted| wanted.name == name) {
            webhooks.push(completed(entry, missing.remove(position)));
        // A foreign entry that calls our Service would send us objects that we do not expect.
        } else if !is_ours(name) && !calls(entry, &intent.settings.service) {
            webhooks.push(entry.clone());
        }
    }
    webhooks.extend(missing.into_iter().map(|entry| completed(&Value::Null, entry)));
    webhooks
}

fn completed(
    stored: &Value,
    entry: WantedEntry,
    service: &ServiceReference,
    bundle: Option<&str>,
    inspections: &str,
) -> Value {
    let mut fields = stored.as_object().cloned().unwrap_or_default();
    fields.insert("name".to_owned(), entry.name.into());
    // The only field that is not always written out. A stored one would narrow the rules.
    if !entry.fields.contains_key("matchConditions") && is_set(fields.get("matchConditions")) {
        fields.shift_remove("matchConditions");
    }
    fields.extend(entry.fields);
    let mut client = object_at(&fields, "clientConfig");
    if is_set(client.get("url")) {
        client.shift_remove("url");
    }
    let ServiceReference { namespace, name, port } = service;
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
    // Without a bundle of ours, the stored one stays until cert-manager writes another one.
    if let Some(pem) = bundle {
        client.insert("caBundle".to_owned(), BASE64_STANDARD.encode(pem).into());
    }
    let is_trusted = bundle.is_some() || !bundle_of(stored).is_empty();
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
