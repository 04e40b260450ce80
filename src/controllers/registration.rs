//! Registration: keeps the two webhook configurations in line with the catalog in force, so that the API server sends the
//! webhook exactly the resources that have unions.
//!
//! Every replica reconciles the configurations. Replicas compute the same objects from the same inputs, so the first write
//! spares the others theirs. There is one writer with one shape: the pure function [`desired`] makes the whole object from
//! the stored one, and a replica replaces the object under the `resourceVersion` that it read. After a conflict it reads
//! again. Only a missing configuration is created, by server-side apply.
//!
//! It must not know how certificates are made or reviews are answered. Start at [`desired`] for the object, [`intent`] for
//! its inputs, [`pace`] for the times of writes, [`registrar`] for the loop.
//!
//! # Invariants
//!
//! - Never register a `Fail` entry before a replica can answer it: the first registration waits until this replica has been
//!   ready for a while, a rule follows the catalog that answers it, and an entry without a CA bundle says `Ignore`. Bundle
//!   and policy change in one write.
//! - A configuration does not outlive the webhook: the chart's `ClusterRole` owns it, none is created while that role is
//!   missing, and all entries go when the Service's namespace is being deleted.
//! - Two installations do not alternate: a configuration of another installation is left alone.

mod configurations;
mod desired;
mod differences;
mod divergence;
mod failures;
mod foreign;
mod intent;
mod options;
mod pace;
mod registrar;
mod rules;
mod stored;
mod wanted;

pub(crate) use divergence::Divergence;
pub use options::{EntryOptions, FailurePolicy, LabelSelector, MatchCondition, MatchConditions, OptionError};
pub(crate) use pace::Pace;
pub(crate) use stored::{named_installation, other_installation};
pub(crate) use wanted::{INSTALLATION, NAME, Owner};

use super::ServiceReference;
use super::handover::{Coverage, RegisteredKinds};
use super::trust::{RegisteredBundle, Trust};
use super::watch_channel::changed;
use crate::api::ServerClock;
use crate::telemetry::RegistrationMetrics;
use configurations::Configurations;
use desired::desired;
use futures::StreamExt;
use futures::stream::pending;
use kube::Client;
use kube_unions_core::admission::InspectionToken;
use kube_unions_core::catalog::Catalog;
use registrar::Registrar;
use rules::RegistrationRules;
use rustls::crypto::ring::default_provider;
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use wanted::{BundleSource, ConfigurationKind, EntryTemplate, InspectedKinds};

/// Both stored configurations, `None` for a missing one.
type StoredPair = [(ConfigurationKind, Option<Value>); 2];

/// The objects to write, in the order of [`ConfigurationKind::BOTH`]; `None` for one that is in sync.
type Writes = [Option<Value>; 2];

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
        let template = EntryTemplate::new(self.service.clone(), self.entries.clone(), &self.excluded_namespaces);
        let inspections = InspectedKinds { declarations: true, definitions: true };
        let [mutating, validating] = stored;
        [(ConfigurationKind::Mutating, mutating), (ConfigurationKind::Validating, validating)].map(|(phase, stored)| {
            let ca = BundleSource::Ours(ca.to_owned());
            let owner = self.owner.clone().map(|name| Owner { name, uid: owner.to_owned() });
            let wanted = template.wanted(phase, &RegistrationRules::of(catalog), inspections, ca, owner, fresh.clone());
            desired(stored, &wanted)
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
    let (mut catalogs, mut trust) = (signals.catalogs.clone(), signals.trust.clone());
    let mut coverage = signals.coverage.clone();
    let mut declared = declarable.clone();
    let configurations = Configurations::new(client);
    let everything = registration.registering == Registering::Everything;
    let mut changes = configurations.changes();
    let mut end =
        if everything { configurations.namespace_end(&registration.service.namespace) } else { pending().boxed() };
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
    let mut registrar = Registrar::new(registration, signals, configurations, declarable, fresh);
    let mut next = Instant::now();
    loop {
        tokio::select! {
            () = tokio::time::sleep_until(next.into()) => next = registrar.reconcile().await,
            outcome = catalogs.changed() => match outcome {
                Ok(()) => next = registrar.soon(next),
                Err(_) => return,
            },
            () = changed(&mut trust) => next = registrar.soon(next),
            () = changed(&mut coverage) => next = registrar.soon(next),
            () = changed(&mut declared) => next = registrar.soon(next),
            Some(change) = changes.next() => {
                registrar.heard(change);
                next = registrar.soon(next);
            }
            Some(event) = end.next() => {
                registrar.heard(Ok(event));
                next = registrar.soon(next);
            }
        }
    }
}

/// Returns a random token; `None` if the operating system provides no random numbers.
fn fresh_token() -> Option<InspectionToken> {
    let mut random = [0; 16];
    default_provider().secure_random.fill(&mut random).ok()?;
    Some(InspectionToken::from_random(random))
}
