//! Renders a chart with the `helm` of the user. Its errors go to standard error as they are: a message of ours has no value.

use crate::input::manifest;
use anyhow::{Context, bail};
use kube_unions_command::connection::block_on;
use kube_unions_manifests::ManifestFile;
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

/// Longest run of helm. It may fetch a chart.
const DEADLINE: Duration = Duration::from_mins(2);

/// Largest output of helm in bytes: the limit of a file.
const LARGEST: u64 = 256 << 20;

/// The most charts inside each other whose values are read.
const DEEPEST: usize = 8;

/// A chart, and what the user gives to `helm template`.
#[derive(Debug)]
pub(super) struct HelmChart<'a> {
    pub(super) chart: &'a OsStr,
    /// Flags that say where the chart is, and in which version.
    pub(super) source: Vec<OsString>,
    /// Other flags of both renderings.
    pub(super) flags: &'a [OsString],
    /// Flags with the values of the user.
    pub(super) values: Vec<OsString>,
}

impl HelmChart<'_> {
    /// Renders the chart with its defaults.
    pub(super) fn with_defaults(&self) -> anyhow::Result<ManifestFile> {
        self.rendered(&[], HelmInput::None)
    }

    /// Renders the chart with the values of the user.
    pub(super) fn with_values(&self) -> anyhow::Result<ManifestFile> {
        self.rendered(&self.values, HelmInput::None)
    }

    /// Renders the chart with one more file of values, which comes last. Values of flags win over those of files.
    pub(super) fn with_more_values(&self, more: &Value) -> anyhow::Result<ManifestFile> {
        self.rendered(&[&*self.values, &["--values".into(), "-".into()]].concat(), HelmInput::Values(more))
    }

    /// Returns the default values of the chart itself, without those of its subcharts.
    pub(super) fn default_values(&self) -> anyhow::Result<Vec<u8>> {
        let arguments = [&["show".into(), "values".into(), self.chart.to_owned()], &*self.source].concat();
        printed_by_helm(&arguments, HelmInput::Quiet)
    }

    /// Returns the files with the default values of the subcharts in a folder, and the names below which the parents' values have them.
    pub(super) fn values_of_subcharts(&self) -> Vec<(Vec<String>, PathBuf)> {
        let (mut found, mut folders) = (Vec::new(), vec![(Vec::new(), PathBuf::from(self.chart))]);
        while let Some((names, folder)) = folders.pop() {
            let Ok(charts) = fs::read_dir(folder.join("charts")) else { continue };
            for chart in charts.flatten().filter(|_: &fs::DirEntry| names.len() < DEEPEST) {
                let names = [&*names, &[chart.file_name().to_string_lossy().into_owned()]].concat();
                let values = chart.path().join("values.yaml");
                if values.is_file() {
                    found.push((names.clone(), values));
                }
                folders.push((names, chart.path()));
            }
        }
        found.sort();
        found
    }

    fn rendered(&self, values: &[OsString], input: HelmInput<'_>) -> anyhow::Result<ManifestFile> {
        let arguments = [&["template".into(), self.chart.to_owned()], &*self.source, self.flags, values].concat();
        Ok(manifest::file(Path::new("the rendering"), printed_by_helm(&arguments, input)?)?)
    }
}

/// The standard input of helm, and the place of its errors.
enum HelmInput<'v> {
    /// Nothing. Errors go to standard error.
    None,
    /// Nothing. Errors are not shown.
    Quiet,
    /// Values. Errors are not shown: those of the same chart were.
    Values(&'v Value),
}

/// Returns the helm that runs this program as a plugin, else the one on the PATH.
fn helm_program() -> OsString {
    std::env::var_os("HELM_BIN").filter(|program| !program.is_empty()).unwrap_or_else(|| "helm".into())
}

fn printed_by_helm(arguments: &[OsString], input: HelmInput<'_>) -> anyhow::Result<Vec<u8>> {
    let verb = arguments.first().map(|verb| verb.to_string_lossy().into_owned()).unwrap_or_default();
    block_on(async {
        let mut command = Command::new(helm_program());
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        if !matches!(input, HelmInput::None) {
            command.stderr(Stdio::null());
        }
        if matches!(input, HelmInput::Values(_)) {
            command.stdin(Stdio::piped());
        }
        let mut helm = command.spawn().context("cannot run `helm`: install Helm 3 or 4, or give --old and --new")?;
        let (stdin, stdout) = (helm.stdin.take(), helm.stdout.take());
        let writing = async {
            if let (Some(mut stdin), HelmInput::Values(values)) = (stdin, input) {
                // Helm may end before it has read them.
                let _ = stdin.write_all(values.to_string().as_bytes()).await;
            }
        };
        let reading = async {
            let mut printed = Vec::new();
            if let Some(stdout) = stdout {
                stdout.take(LARGEST + 1).read_to_end(&mut printed).await?;
            }
            if printed.len() as u64 > LARGEST {
                bail!("`helm {verb}` printed more than {LARGEST} bytes");
            }
            Ok((printed, helm.wait().await?))
        };
        let run = async { tokio::join!(writing, reading).1 };
        let run = tokio::time::timeout(DEADLINE, run).await;
        let (printed, status) =
            run.with_context(|| format!("`helm {verb}` has not ended after {} s", DEADLINE.as_secs()))??;
        if !status.success() {
            bail!("`helm {verb}` failed: {status}");
        }
        Ok(printed)
    })
}
