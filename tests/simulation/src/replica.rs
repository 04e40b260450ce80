//! A replica of the webhook as the program runs it, without its sockets.

use crate::network::{Link, Network};
use crate::service::Endpoint;
use clap::Parser;
use kube::client::Body;
use kube_unions_api::ServerClock;
use kube_unions_webhook::commands::serve::{CatalogSource, Replica, ServeArgs};
use kube_unions_webhook::supervision::{Supervised, TaskEnded};
use kube_unions_webhook::telemetry::Metrics;
use prometheus_client::metrics::gauge::Gauge;
use simulated_apiserver::ResponseBody;
use std::sync::Arc;
use std::time::SystemTime;
use tower::{BoxError, Service};

/// The Service of the replicas.
pub const SERVICE: &str = "kube-unions/kube-unions";

/// The Secret that they share.
pub const SECRET: &str = "kube-unions-tls";

/// The `ClusterRole` that owns their configurations.
pub const OWNER: &str = "kube-unions";

/// A version of the program. An upgrade changes what it registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// The version before.
    Old,
    /// The next one.
    New,
}

/// A replica that runs. It ends when this is dropped.
pub struct Running {
    /// Its side that the Service calls.
    pub endpoint: Endpoint,
    tasks: Vec<Supervised>,
}

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    serve: ServeArgs,
}

impl Running {
    /// Starts a replica. `clock` is the clock of its machine.
    pub fn start<S>(
        version: Version,
        server: S,
        link: &Arc<Link>,
        clock: impl Fn() -> SystemTime + Send + Sync + 'static,
    ) -> anyhow::Result<Self>
    where
        S: Service<
                hyper::Request<Body>,
                Response = hyper::Response<ResponseBody>,
                Error: Into<BoxError>,
                Future: Send + 'static,
            > + Clone
            + Send
            + 'static,
    {
        let (service, secret, owner) =
            (format!("--service={SERVICE}"), format!("--tls-secret={SECRET}"), format!("--owner-cluster-role={OWNER}"));
        let mut arguments = vec!["serve", &service, &secret, &owner];
        if version == Version::New {
            arguments.push("--exclude-namespace=lab");
        }
        let arguments = Arguments::try_parse_from(arguments)?.serve;
        let clock = ServerClock::new(clock, Gauge::default());
        let client = kube_unions_api::client_of(Network { inner: server, link: Arc::clone(link) }, &clock);
        let replica = Replica::new(CatalogSource::Cluster(client, clock), &arguments, None, Metrics::new(), None)?;
        let Replica { state, catalogs, tasks, writers } = replica;
        let state = Arc::new(state);
        let tasks = vec![state.start(catalogs), tasks.into_iter().collect(), writers.into_iter().collect()];
        let is_ready = Arc::new(state.readiness());
        Ok(Self { endpoint: Endpoint { state, is_ready }, tasks })
    }

    /// Waits for a task that ends, which none does.
    pub async fn ended(&mut self) -> TaskEnded {
        let ends = self.tasks.iter_mut().map(|tasks| Box::pin(tasks.ended()));
        futures::future::select_all(ends).await.0
    }
}
