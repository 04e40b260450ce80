//! Registration: keeps the two webhook configurations in line with the catalog in force, so that the API server sends the
//! webhook exactly the resources that have unions.
//!
//! There is one writer with one shape: the pure function [`desired`] makes the whole object from the stored one, and a replica
//! replaces the object. Only a missing configuration is created, by server-side apply.
//!
//! It must not know how certificates are made or reviews are answered. Start at [`desired`] for the object, [`registrar`] for a
//! step, [`reconciler`](super::reconciler) for the loop.
//!
//! # Invariants
//!
//! - Never register a `Fail` entry before a replica can answer it: the first registration waits until this replica has been
//!   ready for a while, a rule follows the catalog that answers it, and an entry without a CA bundle says `Ignore`. Bundle
//!   and policy change in one write.
//! - A configuration does not outlive the webhook: the chart's `ClusterRole` owns it, none is created while that role is
//!   missing, and all entries go when the Service's namespace is being deleted.
//! - Two installations do not alternate: a configuration of another installation is left alone.

mod desired;
mod differences;
mod foreign;
mod options;
mod refused;
mod registrar;
mod rules;
mod stored;

pub use desired::{Registering, Registration};
pub use options::{EntryOptions, FailurePolicy, LabelSelector, MatchCondition, MatchConditions};
#[cfg(test)]
pub(super) use registrar::RESYNC;
pub use registrar::Signals;
pub(crate) use stored::{NAME, other_installation, skips_untouched};

use super::reconciler::{changes, merged, news, run};
use futures::StreamExt;
use futures::future::ready;
use futures::stream::BoxStream;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Client, Resource};
use kube_unions_api::{WatchChange, by_name, list_and_watch};
use kube_unions_core::admission::InspectionToken;
use registrar::{Registrar, RegistrationEvent};
use rustls::crypto::ring::default_provider;
use serde_json::Value;
use stored::ConfigurationKind;

/// Keeps the configurations in sync until the sender of catalogs is dropped.
pub async fn register(client: Client, registration: Registration, signals: Signals) {
    let everything = registration.registering == Registering::Everything;
    if everything && !registration.enforcing {
        tracing::warn!("enforcement is off: no object is sent to the webhook");
    }
    if everything && registration.owner.is_none() {
        tracing::info!(
            "no --owner-cluster-role: the webhook configurations stay after an uninstallation until they are deleted"
        );
    }
    let Some(fresh) = fresh_token() else {
        tracing::error!("cannot register: the operating system provides no random numbers");
        return;
    };
    signals.metrics.registering.set(1);
    let inputs = [news(&signals.catalogs), news(&signals.trust), news(&signals.coverage), news(&signals.declarable)];
    let inputs = inputs.map(|input| input.map(|()| RegistrationEvent::Changed).boxed());
    let watches = ConfigurationKind::BOTH.map(|kind| {
        let events = list_and_watch(&client, kind.collection(), by_name(NAME), || {});
        events.filter_map(|event| ready(changes(event).map(RegistrationEvent::Watched))).boxed()
    });
    let end = everything.then(|| namespace_end(&client, &registration.service.namespace));
    let events = merged(&signals.catalogs, inputs.into_iter().chain(watches).chain(end));
    run(&mut Registrar::new(client, registration, signals, fresh), events).await;
}

/// Yields an event when the namespace is being deleted. Without the right to watch it, it never yields.
fn namespace_end(client: &Client, namespace: &str) -> BoxStream<'static, RegistrationEvent> {
    let events = list_and_watch(client, Namespace::url_path(&(), None), by_name(namespace), || {});
    let ends = events.filter_map(|change| {
        let Ok(WatchChange::Set { text, .. }) = change else { return ready(None) };
        let namespace: Value = serde_json::from_str(&text).unwrap_or_default();
        ready(namespace.pointer("/metadata/deletionTimestamp").map(|_| RegistrationEvent::NamespaceEnds))
    });
    ends.boxed()
}

/// Returns a random token; `None` if the operating system provides no random numbers.
fn fresh_token() -> Option<InspectionToken> {
    let mut random = [0; 16];
    default_provider().secure_random.fill(&mut random).ok()?;
    Some(InspectionToken::from_random(random))
}
