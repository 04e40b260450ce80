//! A configuration as it is stored: how it differs from what is wanted, and what puts it right.
//!
//! Applying says what we want and takes over what others have changed of it. What others have *added* it leaves alone:
//! that is removed by a patch of its own, bound to the version that was looked at.

use super::bundle::Bundle;
use super::entries::{INJECT, Phase, Wanted, envelope, is_ours};
use crate::cluster::ServiceReference;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

/// One configuration, read.
#[derive(Debug, Clone)]
pub(super) struct Stored(Value);

/// The next write that brings a configuration closer to what is wanted.
#[derive(Debug, PartialEq)]
pub(super) enum Write {
    /// Server-side apply of this object.
    Apply(Value),
    /// This JSON Patch.
    Patch(Value),
}

/// Fields of an entry that must not be there: they narrow what it is asked, or lead somewhere else.
const FOREIGN: [&str; 2] = ["/matchConditions", "/clientConfig/url"];

impl Stored {
    pub(super) fn new(object: Value) -> Self {
        Self(object)
    }

    /// Its `resourceVersion`.
    fn version(&self) -> Option<&str> {
        self.0.pointer("/metadata/resourceVersion")?.as_str()
    }

    fn webhooks(&self) -> &[Value] {
        self.0.get("webhooks").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// The entries that have one of our names.
    pub(super) fn ours(&self) -> impl Iterator<Item = (&str, &Value)> {
        let named = self.webhooks().iter().filter_map(|webhook| Some((name_of(webhook)?, webhook)));
        named.filter(|(name, _)| is_ours(name))
    }

    /// What differs from what is wanted, for the log; nothing if it is as it should be.
    pub(super) fn differences(&self, wanted: &Wanted, service: &ServiceReference) -> Vec<String> {
        let mut found = Vec::new();
        for (place, stated) in [("labels", &wanted.labels), ("annotations", &wanted.annotations)] {
            for (key, value) in stated {
                if self.0.pointer("/metadata").and_then(|metadata| metadata.get(place)?.get(key)) != Some(value) {
                    found.push(format!("{place} `{key}`"));
                }
            }
        }
        if self.is_injected_unasked(wanted) {
            found.push(format!("annotations `{INJECT}`"));
        }
        for webhook in &wanted.webhooks {
            let Some(name) = name_of(webhook) else { continue };
            let Some((_, stored)) = self.ours().find(|(stored, _)| *stored == name) else {
                found.push(format!("{name} is missing"));
                continue;
            };
            for (field, value) in webhook.as_object().into_iter().flatten() {
                if !stored.get(field).is_some_and(|stored| holds(stored, value)) {
                    found.push(format!("{name} {field}"));
                }
            }
            for pointer in FOREIGN.iter().filter(|pointer| is_there(stored, pointer)) {
                found.push(format!("{name} {}", pointer.trim_start_matches('/')));
            }
        }
        for index in self.surplus(wanted, service) {
            let name = self.webhooks().get(index).and_then(name_of).unwrap_or_default();
            found.push(format!("{name} is not wanted"));
        }
        found
    }

    /// What to write next. `applied`: it is what came of applying, so that what is still there is somebody else's.
    pub(super) fn next(&self, phase: Phase, wanted: &Wanted, service: &ServiceReference, applied: bool) -> Write {
        // An entry that has both is refused, and so is one that has neither: the one takes the other's place in one go.
        let mut operations = self.redirected(wanted);
        if applied {
            operations.extend(self.removals(wanted, service));
        }
        if operations.is_empty() {
            return Write::Apply(wanted.object(phase, self.version()));
        }
        // To the API server this is a condition: it refuses the patch of a newer object as a conflict.
        let mut patch = vec![json!({"op": "replace", "path": "/metadata/resourceVersion", "value": self.version()})];
        patch.extend(operations);
        Write::Patch(Value::Array(patch))
    }

    /// What gives the entries of our names this bundle and changes nothing else, `None` if they hold it.
    pub(super) fn with_bundle(&self, phase: Phase, pem: &str) -> Option<Write> {
        let bundle = BASE64_STANDARD.encode(pem);
        let stored =
            |webhook: &Value| webhook.pointer("/clientConfig/caBundle").and_then(Value::as_str) == Some(&bundle);
        if self.ours().all(|(_, webhook)| stored(webhook)) {
            return None;
        }
        let webhooks = self.ours().map(|(name, _)| json!({"name": name, "clientConfig": {"caBundle": bundle}}));
        Some(Write::Apply(envelope(phase, self.version(), &webhooks.collect::<Vec<_>>())))
    }

    fn redirected(&self, wanted: &Wanted) -> Vec<Value> {
        let redirected =
            self.webhooks().iter().enumerate().filter(|(_, webhook)| is_there(webhook, "/clientConfig/url"));
        let replace = redirected.filter_map(|(index, stored)| {
            let wanted = wanted.webhooks.iter().find(|wanted| name_of(wanted) == name_of(stored))?;
            let client = wanted.get("clientConfig")?;
            Some(json!({"op": "replace", "path": format!("/webhooks/{index}/clientConfig"), "value": client}))
        });
        replace.collect()
    }

    /// The last first, so that none moves another.
    fn removals(&self, wanted: &Wanted, service: &ServiceReference) -> Vec<Value> {
        let remove = |path: String| json!({"op": "remove", "path": path});
        let surplus = self.surplus(wanted, service);
        let mut operations = Vec::new();
        for (index, webhook) in self.webhooks().iter().enumerate().rev() {
            if surplus.contains(&index) {
                operations.push(remove(format!("/webhooks/{index}")));
            } else if name_of(webhook).is_some_and(is_ours) && is_there(webhook, "/matchConditions") {
                operations.push(remove(format!("/webhooks/{index}/matchConditions")));
            }
        }
        if self.is_injected_unasked(wanted) {
            operations.push(remove(format!("/metadata/annotations/{}", INJECT.replace('/', "~1"))));
        }
        operations
    }

    /// The positions of entries that are not wanted: ours by name, or calling our Service under another. What is
    /// somebody else's stays.
    fn surplus(&self, wanted: &Wanted, service: &ServiceReference) -> Vec<usize> {
        let is_wanted = |name| wanted.webhooks.iter().any(|webhook| name_of(webhook) == Some(name));
        let surplus = self.webhooks().iter().enumerate().filter(|(_, webhook)| {
            let name = name_of(webhook).unwrap_or_default();
            !is_wanted(name) && (is_ours(name) || calls(webhook, service))
        });
        surplus.map(|(index, _)| index).collect()
    }

    fn is_injected_unasked(&self, wanted: &Wanted) -> bool {
        !wanted.annotations.contains_key(INJECT)
            && self.0.pointer("/metadata/annotations").is_some_and(|annotations| annotations.get(INJECT).is_some())
    }
}

/// The bundle of an entry.
pub(super) fn bundle_of(webhook: &Value) -> Bundle {
    Bundle::read(pem_of(webhook).unwrap_or_default().as_slice())
}

fn pem_of(webhook: &Value) -> Option<Vec<u8>> {
    BASE64_STANDARD.decode(webhook.pointer("/clientConfig/caBundle")?.as_str()?).ok()
}

fn name_of(webhook: &Value) -> Option<&str> {
    webhook.get("name")?.as_str()
}

fn calls(webhook: &Value, service: &ServiceReference) -> bool {
    let field = |name| webhook.pointer("/clientConfig/service").and_then(|service| service.get(name)?.as_str());
    field("namespace") == Some(&service.namespace) && field("name") == Some(&service.name)
}

/// Whether something stands there that says anything.
fn is_there(webhook: &Value, pointer: &str) -> bool {
    webhook
        .pointer(pointer)
        .is_some_and(|value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()))
}

/// Whether what is stored says what is wanted. Lists and selectors are one value each; in other objects there may be more.
fn holds(stored: &Value, wanted: &Value) -> bool {
    match (stored, wanted) {
        (Value::Object(stored), Value::Object(fields)) if !fields.is_empty() && !is_selector(wanted) => {
            fields.iter().all(|(name, value)| stored.get(name).is_some_and(|stored| holds(stored, value)))
        }
        _ => stored == wanted,
    }
}

fn is_selector(value: &Value) -> bool {
    value.get("matchExpressions").is_some() || value.get("matchLabels").is_some()
}
