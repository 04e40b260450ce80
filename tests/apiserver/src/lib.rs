//! A simulated Kubernetes API server for tests: one process, no socket, no thread, and the time that the test sets.
//!
//! An [`ApiServer`] is the storage of a cluster, and each [`Instance`] a kube-apiserver process in front of it, with a cache that may
//! lag behind. An instance is a [`tower::Service`], and gives a [`kube::Client`]. The same requests in the same order at the same times
//! of tokio get the same answers, byte for byte: time is that of tokio (pause it), and the clock is the caller's.
//!
//! ```
//! # async fn example() -> kube::Result<()> {
//! use k8s_openapi::api::core::v1::Namespace;
//! use simulated_apiserver::ApiServer;
//! use std::sync::Arc;
//! use std::time::SystemTime;
//!
//! let server = ApiServer::new(Arc::new(SystemTime::now));
//! let client = server.instance().client();
//! let namespaces = kube::Api::<Namespace>::all(client).list(&Default::default()).await?;
//! assert_eq!(namespaces.items.len(), 4);
//! # Ok(())
//! # }
//! ```
//!
//! # What is served
//! Namespaces, Secrets, `ConfigMap`s, Services, `ServiceAccount`s, `ClusterRole`s, Deployments, Leases, CRDs and what they define,
//! `APIService`s, webhook configurations, admission policies and their bindings; discovery, `/version`, `/readyz`, and OpenAPI documents
//! that the caller gives. The verbs get, list, watch, create, update, patch, delete and deletecollection, with dry runs, the subresources
//! `status`, `scale` and `finalize`, and admission by webhooks. Namespaces and CRDs end, and garbage is collected, at times that
//! [`Settings`] says.
//!
//! # What is not
//! - There is no authentication and no authorisation: every request is that of [`Instance::as_user`], with all rights.
//! - Admission policies and their bindings are stored and have no effect.
//! - Custom resources are pruned and get the defaults of their schema, and are not validated. The content of built-in kinds has to have
//!   the right types, and few other rules are checked.
//! - Deployments have no controller, Services no endpoints.
//! - Versions of a CRD are converted by their `apiVersion` alone. There are no conversion webhooks and no aggregated API servers.
//! - Strategic merge patches, YAML, protobuf, tables, streaming lists and watches of single deprecated paths are refused.
//! - A bookmark has the version of the whole storage, as if etcd reported its progress at once.

mod admission;
mod answer;
mod clock;
mod conditions;
mod controllers;
mod delete;
mod discovery;
mod error;
mod field_types;
mod instance;
mod kinds;
mod managed;
mod patch;
mod query;
mod read;
mod resource;
mod scale;
mod schema;
mod selector;
mod service;
mod state;
mod storage;
mod validate;
mod watch;
mod webhooks;
mod write;

pub use admission::{CallError, WebhookAddress, WebhookCall, WebhookService, Webhooks};
pub use answer::ResponseBody;
pub use instance::Instance;
pub use state::{Settings, Snapshot};

use serde_json::Value;
use state::Shared;
use std::sync::Arc;
use std::time::SystemTime;
use tokio::time::Instant;

/// The API servers of a cluster, and their storage. Clones share it.
#[derive(Clone)]
pub struct ApiServer {
    shared: Arc<Shared>,
}

/// The fate of open watches when the storage is restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenWatches {
    /// They end, as when the API servers restart.
    End,
    /// They stay open until their time is over, and have no events any more.
    Hang,
}

impl ApiServer {
    /// Returns a new cluster, with the objects that a control plane makes for itself. `clock`: the time in objects and in the header
    /// `Date`.
    pub fn new(clock: Arc<dyn Fn() -> SystemTime + Send + Sync>) -> Self {
        Self { shared: Arc::new(Shared::new(clock)) }
    }

    /// Calls webhooks by this from now on. Without it, no call is answered.
    #[must_use]
    pub fn with_webhooks(self, webhooks: Arc<dyn Webhooks>) -> Self {
        self.shared.state().webhooks = Some(webhooks);
        self
    }

    /// Changes settings.
    #[must_use]
    pub fn with_settings(self, settings: Settings) -> Self {
        self.set(settings);
        self
    }

    /// Changes settings. Work that was planned keeps its time.
    pub fn set(&self, settings: Settings) {
        self.shared.state().set(settings, Instant::now());
        self.shared.notify();
    }

    /// Starts a kube-apiserver. Its cache has the present: a watch from an earlier version has expired there.
    pub fn instance(&self) -> Instance {
        Instance::new(Arc::clone(&self.shared))
    }

    /// Serves an OpenAPI document, for example at `apis/apps/v1`. The index lists it with a hash of its text.
    pub fn openapi(&self, path: &str, text: &str) {
        self.shared.state().documents.insert(path.to_owned(), text.to_owned());
    }

    /// Serves an OpenAPI document no longer.
    pub fn without_openapi(&self, path: &str) {
        self.shared.state().documents.remove(path);
    }

    /// Returns the last revision of the storage.
    pub fn revision(&self) -> u64 {
        self.shared.state().storage.revision()
    }

    /// Forgets the history: a watch or a list from an earlier version is answered with 410. Open watches go on.
    pub fn compact(&self) {
        self.shared.state().storage.compact();
    }

    /// Returns the storage as it is.
    pub fn snapshot(&self) -> Snapshot {
        self.shared.state().snapshot()
    }

    /// Replaces the storage by an earlier one: revisions go back, and begin again from there.
    pub fn restore(&self, snapshot: &Snapshot, watches: OpenWatches) {
        self.shared.state().restore(snapshot, watches == OpenWatches::Hang, Instant::now());
        self.shared.notify();
    }

    /// Returns the stored objects of a resource, in the order of namespaces and names: `objects("", "secrets")`.
    pub fn objects(&self, group: &str, plural: &str) -> Vec<Arc<Value>> {
        let state = self.shared.state();
        state.storage.objects(&format!("{group}/{plural}")).map(|(_, stored)| Arc::clone(&stored.object)).collect()
    }

    /// Returns a stored object. The namespace of a cluster-scoped one is empty.
    pub fn object(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let state = self.shared.state();
        let key = storage::key_of(namespace, name);
        state.get(&format!("{group}/{plural}"), &key).map(|stored| Arc::clone(&stored.object))
    }
}
