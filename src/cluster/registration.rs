//! Keeps the two webhook configurations true to the catalog that is in force: the API server sends here what has unions,
//! and nothing else.
//!
//! Every replica does this. They come to the same words from the same objects, so whoever is first spares the others the
//! write. What is stored is compared field by field with what is wanted, and written only where it differs, by
//! server-side apply.
//!
//! # What may not happen
//!
//! An entry that fails writes must not stand before somebody answers: the first registration waits until this replica has
//! been ready for a while, and a rule comes after the catalog that answers it. Whom the API server does not trust cannot
//! answer either, so that nothing is registered without a bundle.

mod bundle;
mod configurations;
mod entries;
mod pace;
mod registrar;
mod rules;
mod stored;
mod trouble;

use super::Cluster;
use super::trust::{Held, ServiceReference, Trust};
use crate::admission::InspectionToken;
use crate::catalog::Catalog;
use crate::telemetry::RegistrationWrites;
use configurations::Configurations;
use futures::StreamExt;
use prometheus_client::metrics::gauge::Gauge;
use registrar::Registrar;
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
    /// Namespaces left alone, beside kube-system and the service's own.
    pub excluded_namespaces: Vec<String>,
    /// Whether objects are sent here at all.
    pub enforcing: bool,
    /// How long this replica must have been ready before the first registration.
    pub delay: Duration,
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
    /// 1 while the configurations are as they are to be.
    pub registered: Gauge,
    /// Counts writes.
    pub writes: RegistrationWrites,
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
    let mut changes = configurations.changes();
    if registration.registering == Registering::Everything && !registration.enforcing {
        tracing::warn!("enforcement is off: no object is sent here, and every object is left alone");
    }
    let mut registrar = Registrar::new(registration, signals, configurations, cluster.declarable.subscribe());
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
        }
    }
}

/// Never, once nobody can change it any more.
async fn changed<T>(receiver: &mut watch::Receiver<T>) {
    if receiver.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}
