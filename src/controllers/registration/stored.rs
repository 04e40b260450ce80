//! A stored webhook configuration, read: our entries, their bundles, the inspection token, the installation that owns it.
//!
//! Any JSON may be stored, so nothing here assumes a shape. [`super::desired`] has the object to write.

use crate::controllers::ServiceReference;
use crate::controllers::handover::{CaBundle, ca_bundle};
use crate::controllers::object::named_installation;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kube_unions_api::ObjectPath;
use kube_unions_core::admission::InspectionToken;
use serde_json::Value;
use std::collections::BTreeSet;

/// Name of both configurations.
pub(crate) const NAME: &str = "kube-unions";

pub(super) const DECLARATIONS: &str = "declarations.kube-unions.dev";
pub(super) const DEFINITIONS: &str = "definitions.kube-unions.dev";

/// The name of our condition.
pub(super) const TOUCHES: &str = "touches-a-union.kube-unions.dev";

/// The beginnings of the names of entries for objects.
pub(super) const MUTATE: &str = "mutate";
pub(super) const VALIDATE: &str = "validate";

/// The second part of the names of entries for built-in types.
pub(super) const BUILTIN: &str = ".builtin";

/// The end of the names of all entries.
pub(super) const DOMAIN: &str = ".kube-unions.dev";

/// One of the two configurations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConfigurationKind {
    Mutating,
    Validating,
}

/// Something of each configuration, in the order of [`ConfigurationKind::BOTH`]. A missing one has no stored object, and one
/// that is in sync no object to write.
pub(super) type ConfigurationPair = [Option<Value>; 2];

impl ConfigurationKind {
    pub(super) const BOTH: [Self; 2] = [Self::Mutating, Self::Validating];

    /// Returns the kind, and its name in paths.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Mutating => ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
            Self::Validating => ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
        }
    }

    pub(super) fn kind(self) -> &'static str {
        self.names().0
    }

    /// Returns the path of all configurations of this kind.
    pub(super) fn collection(self) -> String {
        format!("/apis/admissionregistration.k8s.io/v1/{}", self.names().1)
    }

    pub(super) fn path(self) -> ObjectPath {
        ObjectPath::new(self.collection(), NAME)
    }
}

/// Returns true if `name` is a name of our entries.
pub(super) fn is_ours(name: &str) -> bool {
    let is_of = |phase| is_of_class(name, phase, "") || is_of_class(name, phase, BUILTIN);
    name == DECLARATIONS || name == DEFINITIONS || is_of(MUTATE) || is_of(VALIDATE)
}

/// Returns true for the name of an entry for objects: those of built-in types, or of custom resources if `class` is empty.
pub(super) fn is_of_class(name: &str, phase: &str, class: &str) -> bool {
    let inside = name.strip_prefix(phase).and_then(|rest| rest.strip_suffix(DOMAIN));
    let of_builtin =
        |inside: &str| inside.strip_prefix(BUILTIN).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    inside
        .is_some_and(|inside| (inside.is_empty() || inside.starts_with('.')) && of_builtin(inside) != class.is_empty())
}

/// Returns the installation, by its Service, that keeps a stored configuration, if it is not that of `service`.
///
/// A configuration is ours if its annotation says so or if an entry of our names calls our Service: a user may have edited
/// one of the two. Without the annotation, which earlier versions did not write, the entries decide alone.
pub(crate) fn other_installation(stored: &Value, service: &ServiceReference) -> Option<String> {
    let own = service.installation();
    let named = named_installation(stored);
    let called: BTreeSet<String> = ours(stored).filter_map(|(_, entry)| service_of(entry)).collect();
    if named == Some(own.as_str()) || called.contains(&own) {
        return None;
    }
    named.map(str::to_owned).or_else(|| called.into_iter().next())
}

/// Returns the entries that have one of our names.
pub(super) fn ours(stored: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let named = entries(stored).iter().filter_map(|entry| Some((name_of(entry)?, entry)));
    named.filter(|(name, _)| is_ours(name))
}

/// Returns the entries of both configurations that have one of our names.
pub(super) fn our_entries(stored: &ConfigurationPair) -> impl Iterator<Item = &Value> {
    stored.iter().flatten().flat_map(ours).map(|(_, entry)| entry)
}

/// Returns whether the entry for objects of a group has our condition, in a stored mutating configuration. `None`: it has no such entry.
pub(crate) fn skips_untouched(stored: &Value, group: &str) -> Option<bool> {
    let names = |rule: &Value| {
        rule.get("apiGroups").is_some_and(|groups| groups.as_array().is_some_and(|it| it.iter().any(|it| it == group)))
    };
    let of_group =
        |entry: &Value| entry.get("rules").and_then(Value::as_array).is_some_and(|rules| rules.iter().any(names));
    let (_, entry) = ours(stored).find(|(name, entry)| name.starts_with(MUTATE) && of_group(entry))?;
    let conditions = entry.get("matchConditions").and_then(Value::as_array);
    Some(conditions.is_some_and(|all| all.iter().any(|condition| name_of(condition) == Some(TOUCHES))))
}

pub(super) fn entries(stored: &Value) -> &[Value] {
    stored.get("webhooks").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the token in the path of the entries for inspections, if one is well-formed.
pub(super) fn inspection_token(stored: &Value) -> Option<InspectionToken> {
    ours(stored).find_map(|(_, entry)| InspectionToken::of_path(entry.pointer("/clientConfig/service/path")?.as_str()?))
}

/// Returns the CAs of an entry.
pub(super) fn bundle_of(entry: &Value) -> CaBundle {
    let pem = || BASE64_STANDARD.decode(entry.pointer("/clientConfig/caBundle")?.as_str()?).ok();
    ca_bundle(pem().unwrap_or_default())
}

pub(super) fn name_of(entry: &Value) -> Option<&str> {
    entry.get("name")?.as_str()
}

pub(super) fn calls(entry: &Value, service: &ServiceReference) -> bool {
    service_of(entry).is_some_and(|called| called == service.installation())
}

/// Returns the Service that an entry calls, as `namespace/name`.
fn service_of(entry: &Value) -> Option<String> {
    let service = entry.pointer("/clientConfig/service")?;
    Some(format!("{}/{}", service.get("namespace")?.as_str()?, service.get("name")?.as_str()?))
}
