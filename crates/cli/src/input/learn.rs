//! Learns the unions of a cluster.

use super::kinds::BuiltinUnionsArg;
use crate::report::progress;
use anyhow::Context;
use kube::Client;
use kube_unions_webhook::follow::{self, Learnt};

/// Learns the unions of a cluster, and shows the progress.
pub(crate) async fn learn(client: &Client, builtin: BuiltinUnionsArg) -> anyhow::Result<Learnt> {
    let progress = progress::bar(None, "definitions read");
    let learnt = follow::learn(client, builtin.into(), || progress.inc(1)).await;
    learnt.context("the cluster's unions cannot be learnt")
}
