//! The flags that choose a cluster, and connections for commands that end.

use crate::signals::ended_by_signals;
use anyhow::{Context, bail};
use clap::Args;
use kube::Client;
use kube_unions_api::{ClusterAccess, ConnectError, ServerClock};
use std::path::PathBuf;

/// The flags that choose a cluster, as in kubectl.
#[derive(Debug, Args)]
pub struct ClusterArgs {
    /// The cluster's kubeconfig [default: `KUBECONFIG` or ~/.kube/config, else the pod's own cluster]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig [default: its current one]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// Runs a command that talks to a cluster.
pub fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    let done = runtime.block_on(work);
    // A thread may still read a pipe that nobody writes.
    runtime.shutdown_background();
    done
}

impl ClusterArgs {
    /// Returns a client, for a command that signals end. Sends no request.
    pub async fn connect(&self) -> anyhow::Result<Client> {
        let (access, clock) = (self.access().await?, ServerClock::default());
        let has_plugin = access.has_plugin();
        let connecting = access.connect(&clock);
        // Only a plugin has to end before the command does.
        Ok(if has_plugin { ended_by_signals(connecting).await?? } else { connecting.await? })
    }

    /// Returns a client, for a command that handles signals itself, and then drops the future. Sends no request.
    pub async fn client(&self) -> Result<Client, ConnectError> {
        self.access().await?.connect(&ServerClock::default()).await
    }

    async fn access(&self) -> Result<ClusterAccess, ConnectError> {
        let remedy = "give --kubeconfig, or set KUBECONFIG";
        ClusterAccess::read(self.kubeconfig.as_deref(), self.context.as_deref(), remedy).await
    }

    /// Fails if a flag was given beside files.
    pub fn refuse_beside_files(&self) -> anyhow::Result<()> {
        if self.kubeconfig.is_some() || self.context.is_some() {
            bail!("give files, or --kubeconfig and --context: files are read without a cluster");
        }
        Ok(())
    }

    /// Runs `work` with a client of the cluster.
    pub fn run<T>(&self, work: impl AsyncFnOnce(Client) -> anyhow::Result<T>) -> anyhow::Result<T> {
        block_on(async { work(self.connect().await?).await })
    }
}
