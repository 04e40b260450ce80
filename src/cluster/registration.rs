//! Keeps the two webhook configurations true to the catalog that is in force: the API server sends here what has unions,
//! and nothing else.
//!
//! Every replica does this. They come to the same words from the same objects, so the first one spares the others the write.
//! There is one writer with one shape: a pure function, [`desired`], makes the whole object from the one that is stored, and
//! where the two differ, the object is replaced on condition that its `resourceVersion` is still the one that was read. A
//! conflict means to look again. Only a configuration that is not there yet is created, by server-side apply.
//!
//! # What may not happen
//!
//! - A `Fail` entry must not stand before a replica can answer it: the first registration waits until this replica has been
//!   ready for a while, a rule comes after the catalog that answers it, and without a CA bundle an entry says `Ignore`. Bundle
//!   and policy change in one write.
//! - A configuration must not outlive the webhook: it is owned by the `ClusterRole` that the chart installs, none is created
//!   while that is not there, and when the namespace of the Service is being deleted all entries go.
//! - Two installations must not take turns: a configuration of another one is left alone.

mod bundle;
mod configurations;
mod desired;
mod entries;
mod options;
mod pace;
mod registrar;
mod report;
mod rules;
mod trouble;

pub(super) use desired::other_installation;
pub use options::{EntryOptions, FailurePolicy, LabelSelector, MatchCondition, MatchConditions, OptionError};

use super::Cluster;
use super::trust::{Held, ServiceReference, Trust};
use crate::telemetry::RegistrationMetrics;
use configurations::Configurations;
use desired::desired;
use entries::{CaBundle, Frame, Inspections, Owner, Phase};
use futures::StreamExt;
use futures::stream::pending;
use kube_unions_core::admission::InspectionToken;
use kube_unions_core::catalog::Catalog;
use registrar::Registrar;
use rules::Rules;
use rustls::crypto::ring::default_provider;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// What to register.
#[derive(Debug, Clone)]
pub struct Registration {
    /// How much of the configurations is kept.
    pub registering: Registering,
    /// What the API server calls.
    pub service: ServiceReference,
    /// Settings of the entries for objects.
    pub entries: EntryOptions,
    /// The `ClusterRole` that is to own the configurations, so that they go when it goes.
    pub owner: Option<String>,
    /// Namespaces left alone, beside kube-system and the service's own.
    pub excluded_namespaces: Vec<String>,
    /// Whether objects are sent here at all.
    pub enforcing: bool,
    /// How long this replica must have been ready before the first registration.
    pub delay: Duration,
}

impl Registration {
    /// Returns both webhook configurations, the mutating one first, as they are written for the unions of a catalog and for this
    /// CA (PEM), given those that are stored; `None` where one is as it should be. Their owner has this UID.
    pub fn written(
        &self,
        catalog: &Catalog,
        ca: &str,
        owner: &str,
        fresh: &InspectionToken,
        stored: [Option<&Value>; 2],
    ) -> [Option<Value>; 2] {
        let frame = Frame::new(self.service.clone(), self.entries.clone(), &self.excluded_namespaces);
        let inspections = Inspections { declarations: true, definitions: true };
        let [mutating, validating] = stored;
        [(Phase::Mutating, mutating), (Phase::Validating, validating)].map(|(phase, stored)| {
            let ca = CaBundle::Ours(ca.to_owned());
            let owner = self.owner.clone().map(|name| Owner { name, uid: owner.to_owned() });
            let wanted = frame.wanted(phase, &Rules::of(catalog), inspections, ca, owner, fresh.clone());
            desired(stored, &wanted)
        })
    }
}

/// How much of the configurations is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registering {
    /// All of them.
    Everything,
    /// The `caBundle` of entries that somebody else has registered under our names, where it is ours to say.
    Bundles,
}

/// What registration hears, and says.
pub struct Signals {
    /// The catalog that is in force.
    pub catalogs: watch::Receiver<Option<Arc<Catalog>>>,
    /// Whom the API server is to trust; nothing is registered before that is known.
    pub trust: watch::Receiver<Option<Trust>>,
    /// Told what the configurations hold.
    pub held: watch::Sender<Held>,
    /// The token in the path under which the API server asks for inspections, as it is registered; `None` while there is
    /// no entry with a well-formed one.
    pub inspection: watch::Sender<Option<InspectionToken>>,
    /// Whether this replica can be asked now.
    pub ready: Box<dyn Fn() -> bool + Send + Sync>,
    /// Tells how it goes.
    pub metrics: RegistrationMetrics,
}

impl fmt::Debug for Signals {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Signals").finish_non_exhaustive()
    }
}

/// Keeps the configurations true until no more catalogs can come.
pub(super) async fn follow(cluster: &Cluster, registration: Registration, signals: Signals) {
    let (mut catalogs, mut trust) = (signals.catalogs.clone(), signals.trust.clone());
    let mut declarable = cluster.declarable.subscribe();
    let configurations = Configurations::new(cluster.client.clone());
    let everything = registration.registering == Registering::Everything;
    let mut changes = configurations.changes();
    let mut end = if everything { configurations.end_of(&registration.service.namespace) } else { pending().boxed() };
    if everything && !registration.enforcing {
        tracing::warn!("enforcement is off: no object is sent here, and every object is left alone");
    }
    if everything && registration.owner.is_none() {
        tracing::info!("no --owner-cluster-role: the webhook configurations stay until somebody deletes them");
    }
    let declarations = cluster.declarable.subscribe();
    let Some(fresh) = fresh_token() else {
        tracing::error!("the operating system gives no random numbers: nothing is registered");
        return;
    };
    signals.metrics.registering.set(1);
    let mut registrar = Registrar::new(registration, signals, configurations, declarations, fresh);
    let mut next = Instant::now();
    loop {
        tokio::select! {
            () = tokio::time::sleep_until(next.into()) => next = registrar.look().await,
            outcome = catalogs.changed() => match outcome {
                Ok(()) => next = registrar.soon(next),
                Err(_) => return,
            },
            () = changed(&mut trust) => next = registrar.soon(next),
            () = changed(&mut declarable) => next = registrar.soon(next),
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

/// A token that nobody can guess, `None` if the operating system gives no random numbers.
fn fresh_token() -> Option<InspectionToken> {
    let mut random = [0; 16];
    default_provider().secure_random.fill(&mut random).ok()?;
    Some(InspectionToken::from_random(random))
}

/// Never, once nobody can change it any more.
async fn changed<T>(receiver: &mut watch::Receiver<T>) {
    if receiver.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}
