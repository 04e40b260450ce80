//! Registration: keeps the two webhook configurations in line with the catalog in force, so that the API server sends the
//! webhook exactly the resources that have unions.
//!
//! Every replica reconciles the configurations. Replicas compute the same objects from the same inputs, so the first write
//! spares the others theirs. There is one writer with one shape: the pure function [`desired`] makes the whole object from
//! the stored one, and a replica replaces the object under the `resourceVersion` that it read. After a conflict it reads
//! again. Only a missing configuration is created, by server-side apply.
//!
//! It must not know how certificates are made or reviews are answered. Start at [`desired`] for the object, [`intent`] for
//! its inputs, [`registrar`] for a step, [`reconciler`](super::reconciler) for the loop.
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
mod intent;
mod options;
mod registrar;
mod rules;
mod stored;
mod wanted;

pub use options::{EntryOptions, FailurePolicy, LabelSelector, MatchCondition, MatchConditions, OptionError};
pub(crate) use stored::{NAME, other_installation};

use super::ServiceReference;
use super::handover::{Coverage, RegisteredKinds};
use super::object::Owner;
use super::reconciler::{changes, merged, news, run};
use super::trust::{RegisteredBundle, Trust};
use crate::api::{ObjectSelection, ServerClock, list_and_watch};
use crate::telemetry::RegistrationMetrics;
use desired::desired;
use futures::StreamExt;
use futures::future::ready;
use futures::stream::BoxStream;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::core::v1::Namespace;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::Event;
use kube::{Api, Client};
use kube_unions_core::admission::InspectionToken;
use kube_unions_core::catalog::Catalog;
use registrar::{Registrar, RegistrationEvent};
use rules::RegistrationRules;
use rustls::crypto::ring::default_provider;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;
use stored::ConfigurationKind;
use tokio::sync::watch;
use wanted::{BundleSource, EntryTemplate, InspectedKinds};

/// Time between two resyncs while the watch works.
pub(super) const RESYNC: Duration = Duration::from_secs(5);

/// Settings of the registration.
#[derive(Debug, Clone)]
pub struct Registration {
    /// Extent of the registration.
    pub registering: Registering,
    /// Service that the API server calls.
    pub service: ServiceReference,
    /// Settings of the entries for objects.
    pub entries: EntryOptions,
    /// Name of the `ClusterRole` that owns the configurations. They are deleted with it.
    pub owner: Option<String>,
    /// Namespaces that are exempt, beside kube-system and the Service's own.
    pub excluded_namespaces: Vec<String>,
    /// False registers no entry for objects, only those for inspections.
    pub enforcing: bool,
    /// Time for which this replica must have been ready before it registers for the first time.
    pub delay: Duration,
}

impl Registration {
    fn template(&self) -> EntryTemplate {
        EntryTemplate::new(self.service.clone(), self.entries.clone(), &self.excluded_namespaces)
    }

    /// Returns both webhook configurations to write, the mutating one first; `None` for one that is in sync.
    ///
    /// `ca`: the CA to register, PEM. `owner`: UID of the owner. `fresh`: token for inspections if none is stored. `stored`:
    /// the stored configurations, `None` for a missing one.
    pub fn written(
        &self,
        catalog: &Catalog,
        ca: &str,
        owner: &str,
        fresh: &InspectionToken,
        stored: [Option<&Value>; 2],
    ) -> [Option<Value>; 2] {
        let template = self.template();
        let inspections = InspectedKinds { declarations: true, definitions: true };
        let rules = RegistrationRules::of(catalog);
        let owner = self.owner.clone().map(|name| Owner { name, uid: owner.to_owned() });
        let [mutating, validating] = stored;
        [(ConfigurationKind::Mutating, mutating), (ConfigurationKind::Validating, validating)].map(|(kind, stored)| {
            let ca = BundleSource::Ours(ca.to_owned());
            desired(stored, &template.wanted(kind, &rules, inspections, ca, owner.clone(), fresh.clone()))
        })
    }
}

/// Extent of the registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registering {
    /// Both configurations.
    Everything,
    /// Only the `caBundle` of entries that have our names and were registered by other means.
    Bundles,
}

/// Inputs and outputs of the registration.
pub struct Signals {
    /// Catalog in force.
    pub catalogs: watch::Receiver<Option<Arc<Catalog>>>,
    /// CAs to register. Nothing is registered before they are known.
    pub trust: watch::Receiver<Option<Trust>>,
    /// Kinds that policies enforce.
    pub coverage: watch::Receiver<Coverage>,
    /// Receives the kinds that are registered.
    pub registered: watch::Sender<RegisteredKinds>,
    /// Receives the CAs that the configurations hold.
    pub held: watch::Sender<RegisteredBundle>,
    /// Receives the registered token of the path for inspections; `None` while no entry has a well-formed one.
    pub inspection: watch::Sender<Option<InspectionToken>>,
    /// Returns true while this replica can answer.
    pub ready: Box<dyn Fn() -> bool + Send + Sync>,
    /// Clock by which certificates expire.
    pub clock: ServerClock,
    /// Metrics of the registration.
    pub metrics: RegistrationMetrics,
}

/// Keeps the configurations in sync until the sender of catalogs is dropped.
///
/// `declarable`: true while the cluster has the CRD of `UnionDeclaration`.
pub async fn register(client: Client, declarable: watch::Receiver<bool>, registration: Registration, signals: Signals) {
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
    let inputs = [news(&signals.catalogs), news(&signals.trust), news(&signals.coverage), news(&declarable)];
    let inputs = inputs.map(|input| input.map(|()| RegistrationEvent::Changed).boxed());
    let watches = [
        watched(Api::<PartialObjectMeta<MutatingWebhookConfiguration>>::all(client.clone())),
        watched(Api::<PartialObjectMeta<ValidatingWebhookConfiguration>>::all(client.clone())),
    ];
    let end = everything.then(|| namespace_end(&client, &registration.service.namespace));
    let events = merged(&signals.catalogs, inputs.into_iter().chain(watches).chain(end));
    run(&mut Registrar::new(client, registration, signals, declarable, fresh), events).await;
}

/// Yields an event for each change of a configuration, and when its watch fails.
fn watched<K>(api: Api<K>) -> BoxStream<'static, RegistrationEvent>
where
    K: kube::Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let events = list_and_watch(api, ObjectSelection::by_name(NAME), || {});
    events.filter_map(|event| ready(changes(event).map(RegistrationEvent::Watched))).boxed()
}

/// Yields an event when the namespace is being deleted. Without the right to watch it, it never yields.
fn namespace_end(client: &Client, namespace: &str) -> BoxStream<'static, RegistrationEvent> {
    let namespaces = Api::<PartialObjectMeta<Namespace>>::all(client.clone());
    let events = list_and_watch(namespaces, ObjectSelection::by_name(namespace), || {});
    let ends = events.filter_map(|event| async {
        let Ok(Event::InitApply(object) | Event::Apply(object)) = event else { return None };
        object.metadata.deletion_timestamp.map(|_| RegistrationEvent::NamespaceEnds)
    });
    ends.boxed()
}

/// Returns a random token; `None` if the operating system provides no random numbers.
fn fresh_token() -> Option<InspectionToken> {
    let mut random = [0; 16];
    default_provider().secure_random.fill(&mut random).ok()?;
    Some(InspectionToken::from_random(random))
}
