//! Follows a cluster.
//!
//! It watches CRDs, `UnionDeclaration`s and `APIService`s, and reads the OpenAPI documents of built-in types that a declaration
//! targets. It publishes a catalog of unions through a channel, and writes the status of `UnionDeclaration`s. [`learn()`] and
//! [`described()`] read a cluster once, for a command.
//!
//! Knows nothing of the webhook that serves the catalog. Start with `watch`.

mod documents;
mod inspect;
mod learn;
mod publication;
mod raw;
mod schemas;
mod services;
mod state;
mod status;
mod verdict;
mod watch;

pub use kube_unions_manifests::BuiltinUnions;
pub use learn::{KindDescription, Learnt, described, learn};
pub use schemas::SchemaFetchError;
pub use watch::Link;

use kube::Client;
use kube_unions_core::declaration::BuiltinGroups;
use kube_unions_core::workspace::Workspace;
use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use schemas::Schemas;
use std::sync::Arc;
use tokio::sync::watch as channel;

/// A cluster: a client, and the inputs that were read from it.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    schemas: Arc<Schemas>,
    workspace: Arc<Mutex<Workspace>>,
    requests: Arc<inspect::Requests>,
    builtin_unions: BuiltinUnions,
    /// True if the CRD of `UnionDeclaration` is installed.
    declarable: channel::Sender<bool>,
    /// 1 while the groups that the API server serves from its own code are known.
    own_groups_known: Gauge,
}

impl Cluster {
    /// Returns a cluster before anything was read. `own_groups_known` is 1 while the groups that the API server serves from its own
    /// code are known, else 0.
    pub fn new(client: Client, builtin_unions: BuiltinUnions, own_groups_known: Gauge) -> Self {
        let schemas = Arc::new(Schemas::new(client.clone()));
        Self {
            client,
            schemas,
            workspace: Arc::new(Mutex::new(Workspace::of_cluster(BuiltinGroups::Guessed))),
            requests: Arc::default(),
            builtin_unions,
            declarable: channel::Sender::new(false),
            own_groups_known,
        }
    }

    /// Returns true through a channel while the cluster has the CRD of `UnionDeclaration`.
    pub fn declarable(&self) -> channel::Receiver<bool> {
        self.declarable.subscribe()
    }
}
