//! The flags that choose a cluster, and connections for commands that end.

use crate::cluster::live::Live;
use crate::cluster::{self, ConnectError, Link};
use anyhow::Context;
use clap::Args;
use kube::Client;
use prometheus_client::metrics::gauge::Gauge;
use std::path::PathBuf;

/// The flags of commands that administer a cluster.
#[derive(Debug, Args)]
pub(super) struct ClusterArgs {
    /// The cluster's kubeconfig [default: `KUBECONFIG` or ~/.kube/config, else the pod's own cluster]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

/// The flags of commands that work on objects, as in kubectl.
#[derive(Debug, Args)]
pub(super) struct ContextArgs {
    /// The cluster's kubeconfig [default: `KUBECONFIG` or ~/.kube/config, else the pod's own cluster]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig [default: its current one]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

impl ContextArgs {
    /// Reads the configuration. Sends no request.
    pub(super) async fn connect(&self) -> Result<Live, ConnectError> {
        Live::connect(self.kubeconfig.as_deref(), self.context.as_deref()).await
    }

    /// Returns true if a flag was given.
    pub(super) fn is_given(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }
}

impl ClusterArgs {
    /// Runs `work` with a client of the cluster.
    pub(super) fn run<T>(&self, work: impl AsyncFnOnce(Client) -> anyhow::Result<T>) -> anyhow::Result<T> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
        runtime.block_on(async {
            // Commands do not watch, so the gauge has no reader.
            let client = match cluster::connect(self.kubeconfig.as_deref(), &Link::new(Gauge::default())).await {
                Err(ConnectError::NoCluster(reason)) => {
                    return Err(anyhow::Error::new(reason).context("no cluster: give --kubeconfig, or set KUBECONFIG"));
                }
                client => client?,
            };
            work(client).await
        })
    }
}
