//! The places that kustomize merges in another way than the schema asks for.
//!
//! kustomize knows neither `retainKeys` nor atomic objects. In a list with several keys, it loses a change if an item has
//! fewer keys than another, in the resource or in the patch.

use super::document::CustomKind;
use kube_unions_core::names::GroupKind;
use kube_unions_core::schema::{PlaceStep, Schema};
use std::collections::BTreeMap;
use strategic_merge_patch::{MergeRule, MergeStrategy};

/// The places, each with the versions of its kind.
#[derive(Debug, Default)]
pub(super) struct KustomizeLimits {
    places: BTreeMap<(GroupKind, String, String), Vec<Box<str>>>,
}

impl KustomizeLimits {
    /// Adds the places of a kind.
    pub(super) fn add(&mut self, custom: &CustomKind<'_>, schema: &Schema) {
        for rule in &custom.rules {
            for limit in limits(rule, schema) {
                let place = (custom.definition.group_kind().clone(), rule.place.to_string(), limit);
                self.places.entry(place).or_default().push(custom.kind.version.clone());
            }
        }
    }

    /// Returns a line for each place, sorted by kind and path.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        self.places.iter().map(|((kind, place, limit), versions)| {
            let place = if place.is_empty() { "the root" } else { place };
            format!("{kind} {}: {place}: {limit}", versions.join(", "))
        })
    }
}

/// Returns the limits that a rule meets.
fn limits(rule: &MergeRule, schema: &Schema) -> Vec<String> {
    let mut limits = Vec::new();
    if rule.retain_keys {
        limits.push(
            "kustomize does not clear the other members of a union: set the old member to null in the patch, or write \
             `$patch: replace` in the object"
                .to_owned(),
        );
    }
    if rule.strategy == MergeStrategy::Replace {
        limits.push(
            "kustomize merges this object, although it is atomic: write `$patch: replace` in the object of the patch"
                .to_owned(),
        );
    }
    if let MergeStrategy::Keys(keys) = &rule.strategy
        && keys.len() > 1
    {
        let items = schema.at(&rule.place.then(PlaceStep::Items));
        let required = |key: &str| items.is_some_and(|items| items.required.iter().any(|field| **field == *key));
        let optional: Vec<String> =
            keys.iter().filter(|key| !required(key.as_ref())).map(|key| format!("`{key}`")).collect();
        if !optional.is_empty() {
            limits.push(format!(
                "kustomize loses the change of an item that lacks a key which another item has: write {} in each item, of the \
                 resource and of the patch",
                optional.join(" and ")
            ));
        }
    }
    limits
}
