//! All talk to the API server.
//!
//! What is learnt of a cluster leaves this module as a [`Catalog`] through a channel. It knows nothing of who serves it.
//!
//! Four things are read: CRDs, `UnionDeclaration`s and `APIService`s, which are watched, and the OpenAPI documents of built-in
//! types, which are read when a declaration is about one. Written are the status of `UnionDeclaration`s, the
//! two webhook configurations, and the Secret with the certificate that the replicas agree on. Apart from that stands
//! [`live`], which reads and patches one object, or lists all of a kind, when a user asks for it.

mod backoff;
mod bundle;
mod call;
mod certificates;
mod coalesce;
mod compact;
mod connection;
mod documents;
mod inputs;
mod inspect;
pub mod live;
mod queue;
mod raw;
mod reason;
mod rebuild;
mod registration;
mod schemas;
mod service_reference;
mod services;
mod state;
mod status;
mod trust;
mod unregister;
mod verdict;
mod verify;
mod watch;
mod watch_channel;

pub use bundle::CaBundle;
pub use certificates::{Agreement, Timing, renewed};
pub use connection::{ConnectError, Link, connect};
pub use inspect::InspectError;
pub use registration::{
    EntryOptions, FailurePolicy, LabelSelector, MatchCondition, MatchConditions, OptionError, Registering,
    Registration, Signals,
};
pub use schemas::SchemaError;
pub use service_reference::{ServiceReference, ServiceReferenceError};
pub use trust::{Held, Trust};
pub use unregister::{Registered, UnregisterError, unregister};
pub use verify::{Step, Trial, VerifyError};

use inputs::Inputs;
use kube::Client;
use kube_unions_core::catalog::Catalog;
use kube_unions_core::declaration::Fault;
use prometheus_client::metrics::gauge::Gauge;
use schemas::Schemas;
use std::fmt;
use std::sync::{Arc, Mutex};
use tokio::sync::watch as channel;

/// A cluster and what is known of it.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    schemas: Arc<Schemas>,
    inputs: Arc<Mutex<Inputs>>,
    requests: Arc<inspect::Requests>,
    builtin_unions: BuiltinUnions,
    /// Whether there is the CRD of `UnionDeclaration`.
    declarable: channel::Sender<bool>,
    /// 1 while it is known which groups the API server serves from its own code.
    own_groups_known: Gauge,
}

/// Whether unions count that the server's own OpenAPI documents declare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BuiltinUnions {
    /// They do not: some of them are wrong.
    #[default]
    Ignored,
    /// They do, where their values can be checked and are right.
    OpenApi,
}

impl Cluster {
    /// Nothing is known yet.
    pub fn new(client: Client, builtin_unions: BuiltinUnions) -> Self {
        let schemas = Arc::new(Schemas::new(client.clone()));
        Self {
            client,
            schemas,
            inputs: Arc::default(),
            requests: Arc::default(),
            builtin_unions,
            declarable: channel::Sender::new(false),
            own_groups_known: Gauge::default(),
        }
    }

    /// Has `gauge` tell whether it is known which groups the API server serves from its own code.
    #[must_use]
    pub fn telling(self, gauge: Gauge) -> Self {
        Self { own_groups_known: gauge, ..self }
    }

    /// Follows the cluster until nobody receives `catalogs` any more.
    pub async fn follow(&self, link: Link, catalogs: channel::Sender<Option<Arc<Catalog>>>) {
        watch::follow(self, link, catalogs).await;
    }

    /// Keeps the webhook configurations true to the catalogs that come through `signals`. Ends when they do.
    pub async fn register(&self, registration: Registration, signals: Signals) {
        registration::follow(self, registration, signals).await;
    }

    /// Everything that would be wrong with a `UnionDeclaration`, given as the JSON text of the whole object, if it were
    /// applied now. A target that the cluster does not have is a warning: it may come.
    pub async fn inspect(&self, object: &str) -> Result<Vec<Fault>, InspectError> {
        let published = self.builtin_unions == BuiltinUnions::OpenApi;
        inspect::inspect(&self.requests, &self.schemas, &self.inputs, published, object).await
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Cluster").field("builtin_unions", &self.builtin_unions).finish_non_exhaustive()
    }
}
