//! A cluster, for commands that are done with it when they end.

use crate::cluster::live::Live;
use crate::cluster::{self, ConnectError, Link};
use anyhow::Context;
use clap::Args;
use kube::Client;
use prometheus_client::metrics::gauge::Gauge;
use std::path::PathBuf;

/// Which cluster.
#[derive(Debug, Args)]
pub(super) struct ClusterArgs {
    /// The cluster [default: that of `KUBECONFIG` or ~/.kube/config, else the pod's own]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

/// Which cluster, for commands that work on objects as kubectl does.
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
    /// Nothing is sent yet.
    pub(super) async fn connect(&self) -> Result<Live, ConnectError> {
        Live::connect(self.kubeconfig.as_deref(), self.context.as_deref()).await
    }

    /// Whether one was asked for.
    pub(super) fn is_given(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }
}

impl ClusterArgs {
    /// Does work with a client of the cluster, to its end.
    pub(super) fn run<T>(&self, work: impl AsyncFnOnce(Client) -> anyhow::Result<T>) -> anyhow::Result<T> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
        runtime.block_on(async {
            // Nothing is watched here, and nobody reads the gauge.
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
