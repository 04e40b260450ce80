//! `--check`: compares compiled policies with those of files or of a cluster.

use super::policies::CompiledKinds;
use crate::cli::Verdict;
use crate::cluster::live::Live;
use anyhow::bail;
use kube_unions_policies::PolicyOptions;
use std::path::Path;

/// Compares policies with those in a file or folder, or with those of the cluster.
#[expect(clippy::unused_async, reason = "it will read from the cluster")]
pub(super) async fn run(
    _compiled: &CompiledKinds,
    _options: &PolicyOptions,
    _path: Option<&Path>,
    _live: Option<&Live>,
) -> anyhow::Result<Verdict> {
    bail!("--check is not available yet")
}
