//! A stored webhook configuration, read: our entries, their bundles, the inspection token, the installation that owns it.
//!
//! Any JSON may be stored, so nothing here assumes a shape. [`super::desired`] writes.

use super::wanted::{INSTALLATION, is_ours};
use crate::controllers::ServiceReference;
use crate::controllers::bundle::CaBundle;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kube_unions_core::admission::InspectionToken;
use serde_json::Value;
use std::collections::BTreeSet;

/// Returns the installation, by its Service, that keeps a stored configuration, if it is not that of `service`.
///
/// A configuration is ours if its annotation says so or if an entry of our names calls our Service: a user may have edited
/// one of the two. Without the annotation, which earlier versions did not write, the entries decide alone.
pub(crate) fn other_installation(stored: &Value, service: &ServiceReference) -> Option<String> {
    let own = format!("{}/{}", service.namespace, service.name);
    let named = named_installation(stored);
    let called: BTreeSet<String> = ours(stored).filter_map(|(_, entry)| service_of(entry)).collect();
    if named == Some(own.as_str()) || called.contains(&own) {
        return None;
    }
    named.map(str::to_owned).or_else(|| called.into_iter().next())
}

/// Returns the installation that the annotation of a stored object names. An empty or blank name is nobody's.
pub(crate) fn named_installation(stored: &Value) -> Option<&str> {
    let named = stored.pointer("/metadata/annotations")?.get(INSTALLATION)?.as_str()?;
    (!named.trim().is_empty()).then_some(named)
}

/// Returns the entries that have one of our names.
pub(super) fn ours(stored: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let named = entries(stored).iter().filter_map(|entry| Some((name_of(entry)?, entry)));
    named.filter(|(name, _)| is_ours(name))
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
    CaBundle::from_pem(pem().unwrap_or_default())
}

pub(super) fn name_of(entry: &Value) -> Option<&str> {
    entry.get("name")?.as_str()
}

pub(super) fn calls(entry: &Value, service: &ServiceReference) -> bool {
    service_of(entry).is_some_and(|called| called == format!("{}/{}", service.namespace, service.name))
}

/// Returns the Service that an entry calls, as `namespace/name`.
fn service_of(entry: &Value) -> Option<String> {
    let service = entry.pointer("/clientConfig/service")?;
    Some(format!("{}/{}", service.get("namespace")?.as_str()?, service.get("name")?.as_str()?))
}
