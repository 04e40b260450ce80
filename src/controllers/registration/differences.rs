//! The differences between stored and desired configurations: their reason, by which [`pace`](crate::controllers::pace) waits,
//! and for the log the names of entries and fields, never values.

use super::desired::with_bundle;
use super::stored::{ConfigurationKind, ConfigurationPair, bundle_of, entries, name_of, ours};
use crate::controllers::handover::{Trust, ca_bundle};
use crate::controllers::pace::Divergence;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Returns the reason for `writes`. `trust` is this replica's current trust.
pub(super) fn divergence(
    intent_is_new: bool,
    trust: &Trust,
    stored: &ConfigurationPair,
    writes: &ConfigurationPair,
) -> Divergence {
    if intent_is_new {
        return Divergence::Intent;
    }
    let Trust::Agreed(pem) = trust else { return Divergence::Drift };
    let agreed = ca_bundle(&**pem);
    let has_extra_only = stored.iter().zip(writes).all(|pair| match pair {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(stored), Some(write)) => {
            with_bundle(stored, pem).as_ref() == Some(write)
                && ours(stored).all(|(_, entry)| bundle_of(entry).is_superset(&agreed))
        }
    });
    if has_extra_only { Divergence::ExtraAuthorities } else { Divergence::Drift }
}

/// Returns the parts in which a stored configuration differs from the desired one.
pub(super) fn differences(kind: ConfigurationKind, stored: Option<&Value>, desired: &Value) -> Vec<String> {
    let Some(stored) = stored else { return vec![format!("{} is missing", kind.kind())] };
    let mut found = Vec::new();
    for part in ["labels", "annotations"] {
        let of = |object: &Value| object.pointer(&format!("/metadata/{part}")).cloned().unwrap_or_default();
        for key in changed(&of(stored), &of(desired)) {
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

/// Returns the keys whose values differ.
fn changed(before: &Value, after: &Value) -> BTreeSet<String> {
    let empty = Map::new();
    let (before, after) = (before.as_object().unwrap_or(&empty), after.as_object().unwrap_or(&empty));
    let keys = before.keys().chain(after.keys()).filter(|key| before.get(*key) != after.get(*key));
    keys.cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;
    use rcgen::{CertificateParams, KeyPair};
    use serde_json::json;

    fn certificate() -> String {
        CertificateParams::default().self_signed(&KeyPair::generate().unwrap()).unwrap().pem()
    }

    fn configuration(pem: &str, policy: &str) -> Value {
        let client = json!({"caBundle": BASE64_STANDARD.encode(pem)});
        json!({"webhooks": [{"name": "mutate.kube-unions.dev", "clientConfig": client, "failurePolicy": policy}]})
    }

    #[test]
    fn a_divergence_is_of_the_intent_drift_or_extra_authorities() {
        let (agreed, extra) = (certificate(), certificate());
        let more = format!("{agreed}{extra}");
        let trust = Trust::Agreed(agreed.as_str().into());
        let local = Trust::Local(agreed.as_str().into());
        let want = configuration(&agreed, "Fail");
        let rows = [
            ("a new intent", true, &trust, Some(configuration(&more, "Fail")), Divergence::Intent),
            ("one CA more", false, &trust, Some(configuration(&more, "Fail")), Divergence::ExtraAuthorities),
            ("another CA instead", false, &trust, Some(configuration(&extra, "Fail")), Divergence::Drift),
            ("no CA", false, &trust, Some(configuration("", "Fail")), Divergence::Drift),
            ("one CA more and another policy", false, &trust, Some(configuration(&more, "Ignore")), Divergence::Drift),
            ("a deleted configuration", false, &trust, None, Divergence::Drift),
            ("one CA more than a local bundle", false, &local, Some(configuration(&more, "Fail")), Divergence::Drift),
        ];
        for (row, intent_is_new, trust, stored, want_divergence) in rows {
            let found = divergence(intent_is_new, trust, &[stored, None], &[Some(want.clone()), None]);
            assert_eq!(found, want_divergence, "{row}");
        }
    }
}
