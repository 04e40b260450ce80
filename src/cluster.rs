//! All talk to the API server.
//!
//! What is learnt of a cluster leaves this module as a [`Catalog`] through a channel. It knows nothing of who serves it.
//!
//! Three things are read: CRDs and `UnionDeclaration`s, which are watched, and the OpenAPI documents of built-in types,
//! which are read when a declaration is about one. One thing is written: the status of `UnionDeclaration`s. Apart from that
//! stands [`live`], which reads and patches one object when a user asks for it.

mod connection;
mod inspect;
mod known;
pub mod live;
mod raw;
mod rounds;
mod schemas;
mod state;
mod status;
mod watch;

pub use connection::{ConnectError, Link, connect};
pub use inspect::InspectError;
pub use schemas::SchemaError;

use crate::catalog::Catalog;
use crate::declaration::Fault;
use known::Known;
use kube::Client;
use schemas::Schemas;
use std::fmt;
use std::sync::{Arc, Mutex};
use tokio::sync::watch as channel;

/// A cluster and what is known of it.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    schemas: Arc<Schemas>,
    known: Arc<Mutex<Known>>,
    builtin_unions: BuiltinUnions,
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
        Self { client, schemas, known: Arc::default(), builtin_unions }
    }

    /// Follows the cluster until nobody receives `catalogs` any more.
    pub async fn follow(&self, link: Link, catalogs: channel::Sender<Option<Arc<Catalog>>>) {
        watch::follow(self, link, catalogs).await;
    }

    /// Everything that would be wrong with a `UnionDeclaration`, given as the JSON text of the whole object, if it were
    /// applied now. A target that the cluster does not have is a warning: it may come.
    pub async fn inspect(&self, object: &str) -> Result<Vec<Fault>, InspectError> {
        let published = self.builtin_unions == BuiltinUnions::OpenApi;
        inspect::inspect(&self.schemas, &self.known, published, object).await
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Cluster").field("builtin_unions", &self.builtin_unions).finish_non_exhaustive()
    }
}
