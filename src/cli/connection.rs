//! A cluster, for commands that are done with it when they end.

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
