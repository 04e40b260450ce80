//! Renders a chart with the `helm` of the user. Its errors go to standard error as they are: a message of ours has no value.

use anyhow::{Context, anyhow, bail};
use kube_unions_command::connection::block_on;
use kube_unions_manifests::RenderedFile;
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

/// Largest output of helm in bytes: the limit of a file.
const LARGEST: u64 = 256 << 20;

/// The name of a rendering in messages.
const RENDERING: &str = "the rendering";

/// The end of the reason why helm is not run any more. A helm that hangs may do so again.
pub(super) const NOT_TRIED: &str = "other values were not tried";

/// Helm ended without success.
#[derive(Debug, thiserror::Error)]
#[error("`helm {verb}` failed: {status}")]
struct HelmRefusal {
    verb: String,
    status: ExitStatus,
}

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
    /// Longest run of helm.
    pub(super) deadline: Duration,
}

impl HelmChart<'_> {
    /// Renders the chart with its defaults. `None`: it cannot be rendered with them.
    pub(super) fn with_defaults(&self) -> anyhow::Result<Option<RenderedFile>> {
        match self.rendered(&[], HelmInput::None) {
            Err(error) if error.is::<HelmRefusal>() => Ok(None),
            rendered => rendered.map(Some),
        }
    }

    /// Renders the chart with the values of the user.
    pub(super) fn with_values(&self) -> anyhow::Result<RenderedFile> {
        self.rendered(&self.values, HelmInput::None)
    }

    /// Renders the chart with one more file of values, which comes last. Values of flags win over those of files. `None`: the chart cannot be
    /// rendered with them.
    pub(super) fn with_more_values(&self, more: &Value) -> anyhow::Result<Option<RenderedFile>> {
        let values = [&*self.values, &["--values".into(), "-".into()]].concat();
        match self.printed(&values, HelmInput::Values(more)) {
            Ok(printed) => Ok(RenderedFile::read(Path::new(RENDERING), printed).ok()),
            Err(error) if error.is::<HelmRefusal>() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns what `helm show` prints of the chart itself, without its subcharts.
    pub(super) fn shown(&self, what: &str) -> anyhow::Result<Vec<u8>> {
        self.shown_of(what, self.chart, &self.source)
    }

    /// Returns what `helm show` prints of another chart.
    pub(super) fn shown_of(&self, what: &str, chart: &OsStr, source: &[OsString]) -> anyhow::Result<Vec<u8>> {
        let arguments = [&["show".into(), what.into(), chart.to_owned()], source].concat();
        printed_by_helm(&arguments, HelmInput::Quiet, self.deadline)
    }

    /// Returns the files of values that the user gives.
    pub(super) fn values_files(&self) -> impl Iterator<Item = &Path> {
        let pairs = self.values.iter().zip(self.values.iter().skip(1)).step_by(2);
        let files = pairs.filter(|(flag, _)| *flag == "--values").map(|(_, files)| files);
        // Helm splits a list.
        files.flat_map(|files| match files.to_str() {
            Some(files) => files.split(',').map(Path::new).collect(),
            None => vec![Path::new(files)],
        })
    }

    fn rendered(&self, values: &[OsString], input: HelmInput<'_>) -> anyhow::Result<RenderedFile> {
        Ok(RenderedFile::read(Path::new(RENDERING), self.printed(values, input)?)?)
    }

    fn printed(&self, values: &[OsString], input: HelmInput<'_>) -> anyhow::Result<Vec<u8>> {
        let arguments = [&["template".into(), self.chart.to_owned()], &*self.source, self.flags, values].concat();
        printed_by_helm(&arguments, input, self.deadline)
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

fn printed_by_helm(arguments: &[OsString], input: HelmInput<'_>, deadline: Duration) -> anyhow::Result<Vec<u8>> {
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
        let run = tokio::time::timeout(deadline, run).await;
        let (printed, status) =
            run.map_err(|_elapsed| anyhow!("`helm {verb}` has not ended after {} s", deadline.as_secs()))??;
        if !status.success() {
            bail!(HelmRefusal { verb, status });
        }
        Ok(printed)
    })
}
