//! `verify`: checks that a cluster enforces unions. [`trial`] carries out the steps; this module prints them.

mod trial;

use self::trial::{Trial, TrialStep, VerifyError};
use crate::cli::input::connection::ClusterArgs;
use crate::cli::report::{Verdict, output};
use crate::cli::serve;
use crate::cli::signals::StopSignals;
use anyhow::bail;
use clap::Args;
use std::fmt::Display;
use std::time::Duration;

/// Arguments of `verify`.
#[derive(Debug, Args)]
#[command(after_help = "\
Installs a CRD with a union, sends an object that must be rejected and one that must be normalised, and deletes the CRD \
again, even when a step fails or the command is interrupted. Prints a line for each step. `helm test` runs this command.

The kind is `Probe` of verify.kube-unions.dev. It is cluster-scoped, so exempt namespaces do not matter.

Exit codes:
  0  the cluster enforces unions
  1  the cluster does not enforce unions
  2  verification failed: no API server, missing rights, an interrupt, or the CRD was not deleted

Example:
  kube-unions verify --timeout 2m")]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Time that the webhook has to learn of the CRD and to be called
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = serve::duration)]
    timeout: Duration,
}

pub(super) fn run(arguments: &VerifyArgs) -> anyhow::Result<Verdict> {
    arguments.cluster.run(async |client| {
        let mut signals = StopSignals::new()?;
        let trial = Trial::new(client, arguments.timeout);
        let outcome = tokio::select! {
            outcome = steps(&trial) => outcome,
            _ = signals.next() => Err(anyhow::anyhow!("interrupted")),
        };
        if trial.has_left_traces() {
            let cleaned = trial.clean_up().await;
            line(cleaned.as_ref().err(), "the CRD is deleted again")?;
            if cleaned.is_err() && outcome.is_ok() {
                bail!("cannot delete the CRD");
            }
        }
        outcome
    })
}

async fn steps(trial: &Trial) -> anyhow::Result<Verdict> {
    for step in TrialStep::ALL {
        let outcome = trial.step(step).await;
        line(outcome.as_ref().err(), step.promise())?;
        match outcome {
            Ok(()) => {}
            Err(VerifyError::NotEnforced(_)) => return Ok(Verdict::Rejected),
            Err(VerifyError::Untried(_) | VerifyError::Refused(_)) => bail!("cannot verify the cluster"),
        }
    }
    Ok(Verdict::Accepted)
}

fn line(failure: Option<&impl Display>, promise: &str) -> anyhow::Result<()> {
    output::tell(match failure {
        None => format!("ok      {promise}\n"),
        Some(reason) => output::line(&format!("failed  {promise}: {reason}")).into_owned() + "\n",
    })
}
