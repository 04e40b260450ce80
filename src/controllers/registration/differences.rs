//! The differences between stored and desired configurations, for the log: names of entries and fields, never values.

use super::divergence::Divergence;
use super::rules::RegistrationRules;
use super::stored::{entries, name_of};
use super::{StoredPair, Writes};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

pub(super) fn log_write(divergence: Divergence, rules: &RegistrationRules, differences: &[String]) {
    let (custom, builtin) = (rules.custom.len(), rules.builtin.len());
    let differences = shortened(differences);
    match divergence {
        Divergence::Intent => tracing::info!(custom, builtin, differences, "the webhook configurations were written"),
        Divergence::Drift | Divergence::ExtraAuthorities => {
            tracing::warn!(differences, "the webhook configurations were corrected");
        }
    }
}

/// Returns the differences that writes remove.
pub(super) fn differences_of(stored: &StoredPair, writes: &Writes) -> Vec<String> {
    let mut all = Vec::new();
    for ((phase, stored), write) in stored.iter().zip(writes) {
        match (stored, write) {
            (_, None) => {}
            (None, Some(_)) => all.push(format!("{} is missing", phase.kind())),
            (Some(stored), Some(write)) => all.extend(differences(stored, write)),
        }
    }
    all
}

/// Returns the parts in which two objects differ.
pub(super) fn differences(stored: &Value, desired: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for part in ["labels", "annotations"] {
        let of = |object: &Value| object.pointer("/metadata").and_then(|metadata| metadata.get(part)).cloned();
        for key in changed(&of(stored).unwrap_or_default(), &of(desired).unwrap_or_default()) {
            found.push(format!("{part} `{key}`"));
        }
    }
    if stored.pointer("/metadata/ownerReferences") != desired.pointer("/metadata/ownerReferences") {
        found.push("ownerReferences".to_owned());
    }
    let find = |object: &Value, name: &str| entries(object).iter().find(|entry| name_of(entry) == Some(name)).cloned();
    for entry in entries(desired) {
        let name = name_of(entry).unwrap_or_default();
        match find(stored, name) {
            None => found.push(format!("{name} is missing")),
            Some(before) => found.extend(changed(&before, entry).into_iter().map(|field| format!("{name} {field}"))),
        }
    }
    for entry in entries(stored) {
        let name = name_of(entry).unwrap_or_default();
        if find(desired, name).is_none() {
            found.push(format!("{name} is not wanted"));
        }
    }
    if found.is_empty() {
        found.push("a duplicate entry, or fields of the wrong type".to_owned());
    }
    found
}

/// Returns the first few differences as one text.
pub(super) fn shortened(differences: &[String]) -> String {
    const MOST: usize = 8;
    let mut text = differences.iter().take(MOST).map(String::as_str).collect::<Vec<_>>().join(", ");
    if differences.len() > MOST {
        text.push_str(", …");
    }
    text
}

/// Returns the keys whose values differ.
fn changed(before: &Value, after: &Value) -> BTreeSet<String> {
    let empty = Map::new();
    let (before, after) = (before.as_object().unwrap_or(&empty), after.as_object().unwrap_or(&empty));
    let keys = before.keys().chain(after.keys()).filter(|key| before.get(*key) != after.get(*key));
    keys.cloned().collect()
}
