//! `verify`: whether unions are enforced on a cluster, seen by trying.

use super::connection::ClusterArgs;
use super::{Verdict, output, serve};
use crate::cluster::{Step, Trial, VerifyError};
use anyhow::{Context, bail};
use clap::Args;
use std::fmt::Display;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// Arguments of `verify`.
#[derive(Debug, Args)]
#[command(after_help = "\
Installs a definition with a union, sends an object that must be rejected and one that must be normalised, and deletes the \
definition again, also when a step fails or the command is interrupted. Each step prints a line. `helm test` runs this.

The kind is `Probe` of verify.kube-unions.dev. It has no namespace, so it is enforced whatever namespaces are left alone.

Exit codes:
  0  unions are enforced
  1  they are not
  2  it could not be tried: no API server, missing rights, an interrupt; or the definition could not be deleted")]
pub(super) struct VerifyArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
    /// How long to wait for the webhook to learn of the definition and to be asked
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = serve::duration)]
    timeout: Duration,
}

pub(super) fn run(arguments: &VerifyArgs) -> anyhow::Result<Verdict> {
    arguments.cluster.run(async |client| {
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
        let mut terminate = signal(SignalKind::terminate()).context("cannot listen for signals")?;
        let trial = Trial::new(client, arguments.timeout);
        let tried = tokio::select! {
            tried = steps(&trial) => tried,
            _ = interrupt.recv() => Err(anyhow::anyhow!("interrupted")),
            _ = terminate.recv() => Err(anyhow::anyhow!("interrupted")),
        };
        // Whatever came of it.
        if trial.has_left_traces() {
            let cleaned = trial.clean_up().await;
            line(cleaned.as_ref().err(), "what was made is deleted again")?;
            if cleaned.is_err() && tried.is_ok() {
                bail!("the definition could not be deleted");
            }
        }
        tried
    })
}

async fn steps(trial: &Trial) -> anyhow::Result<Verdict> {
    for step in Step::ALL {
        let outcome = trial.step(step).await;
        line(outcome.as_ref().err(), step.promise())?;
        match outcome {
            Ok(()) => {}
            Err(VerifyError::NotEnforced(_)) => return Ok(Verdict::Rejected),
            Err(VerifyError::Untried(_)) => bail!("it could not be tried"),
        }
    }
    Ok(Verdict::Accepted)
}

fn line(failure: Option<&impl Display>, promise: &str) -> anyhow::Result<()> {
    output::print(match failure {
        None => format!("ok      {promise}\n"),
        Some(reason) => format!("failed  {promise}: {reason}\n"),
    })
}
