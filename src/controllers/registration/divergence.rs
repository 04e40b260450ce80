//! The reason why stored configurations differ from the desired ones. [`super::pace`] waits accordingly.

use super::stored::{bundle_of, name_of, ours};
use super::{StoredPair, Writes};
use crate::controllers::bundle::CaBundle;
use crate::controllers::trust::Trust;
use serde_json::Value;

/// Reason for a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Divergence {
    /// This replica's intent has changed.
    Intent,
    /// Another writer has changed the stored objects.
    Drift,
    /// The stored objects hold CAs beyond the agreed ones. They are as safe as the desired objects, and another replica
    /// may know of a newer agreement.
    ExtraAuthorities,
}

impl Divergence {
    /// Returns the reason for `writes`. `trust` is this replica's current trust.
    pub(super) fn of(intent_is_new: bool, trust: &Trust, stored: &StoredPair, writes: &Writes) -> Self {
        if intent_is_new {
            return Self::Intent;
        }
        let Trust::Agreed(pem) = trust else { return Self::Drift };
        let agreed = CaBundle::from_pem(&**pem);
        let has_extra_only = stored.iter().zip(writes).all(|((_, stored), write)| match (stored, write) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(stored), Some(write)) => {
                differs_only_in_bundles(stored, write)
                    && ours(stored).all(|(_, entry)| bundle_of(entry).includes(&agreed))
            }
        });
        if has_extra_only { Self::ExtraAuthorities } else { Self::Drift }
    }
}

/// Returns true if the objects are equal except for the bundles of our entries.
fn differs_only_in_bundles(stored: &Value, desired: &Value) -> bool {
    let mut desired = desired.clone();
    for entry in desired.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
        let bundle = ours(stored)
            .find(|(name, _)| name_of(entry) == Some(name))
            .and_then(|(_, stored)| stored.pointer("/clientConfig/caBundle"));
        if let Some((bundle, client)) = bundle.zip(entry.get_mut("clientConfig").and_then(Value::as_object_mut)) {
            client.insert("caBundle".to_owned(), bundle.clone());
        }
    }
    desired == *stored
}

#[cfg(test)]
mod tests {
    use super::super::wanted::ConfigurationKind;
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
            let stored = [(ConfigurationKind::Mutating, stored), (ConfigurationKind::Validating, None)];
            let found = Divergence::of(intent_is_new, trust, &stored, &[Some(want.clone()), None]);
            assert_eq!(found, want_divergence, "{row}");
        }
    }
}
