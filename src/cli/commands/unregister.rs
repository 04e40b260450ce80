//! `unregister`: removes the webhook's registration from a cluster, and the policies that `serve` keeps there.
//!
//! A running webhook recreates its configurations and policies, so its right to write them is deleted first. A write in flight
//! at that moment may still succeed, so the objects are deleted until they stay away.

mod removal;

use self::removal::{PolicyRemoval, Registered, RemovalAttempt};
use super::attempts::Attempts;
use crate::cli::input::connection::ClusterArgs;
use crate::cli::report::{Verdict, output};
use crate::cli::serve;
use crate::controllers::ServiceReference;
use anyhow::bail;
use clap::Args;
use std::time::Duration;

/// Time between two attempts.
const INTERVAL: Duration = Duration::from_secs(1);

/// Attempts in a row that must find nothing.
const QUIET_ATTEMPTS: usize = 3;

/// Arguments of `unregister`.
#[derive(Debug, Args)]
#[command(after_help = "\
Deletes the ClusterRoleBinding first, because a running webhook recreates its registration. Then deletes the \
MutatingWebhookConfiguration and the ValidatingWebhookConfiguration `kube-unions`, and the admission policies that `serve` keeps \
(label kube-unions.dev/maintained-by=serve), until all have stayed away for some seconds. Objects that do not exist are skipped. The chart runs this command before an uninstallation; in an emergency, run it \
yourself. `helm upgrade`, or applying the manifests again, restores the binding, and the webhook restores the rest.

Exit codes:
  0  nothing is registered
  2  the removal failed; standard error has the reason

Example:
  kube-unions unregister --installation kube-unions/kube-unions")]
pub(crate) struct UnregisterArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
    /// `ClusterRoleBinding` that grants the webhook the right to register itself
    #[arg(long, value_name = "NAME", default_value = "kube-unions-registration", value_parser = name)]
    registration_binding: String,
    /// Keep webhook configurations and policies unless they belong to the installation with this Service
    #[arg(long, value_name = "NAMESPACE/NAME")]
    installation: Option<ServiceReference>,
    /// Keep admission policies
    #[arg(long)]
    keep_policies: bool,
    /// Time to repeat failed attempts
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = serve::duration)]
    timeout: Duration,
}

/// Deletes the binding, then both webhook configurations and the policies, until they stay away.
pub(super) fn run(arguments: &UnregisterArgs) -> anyhow::Result<Verdict> {
    let UnregisterArgs { cluster, registration_binding, installation, keep_policies, timeout } = arguments;
    cluster.run(async |client| {
        let attempts = Attempts::begin(*timeout);
        let (mut told, mut quiet, mut search) = ([false; 3], 0, PolicyRemoval::default());
        loop {
            let (mut found, mut round) = (None, RemovalAttempt::default());
            for (object, told) in Registered::all(registration_binding).into_iter().zip(&mut told) {
                match object.delete(&client, installation.as_ref()).await {
                    Ok(false) => {}
                    Ok(true) => {
                        if !std::mem::replace(told, true) {
                            output::note(format_args!("deleted {object}"));
                        }
                        found = Some(object);
                    }
                    // A failure of one object does not prevent the deletion of the others.
                    Err(refused) => round.fail(object, refused),
                }
            }
            if !keep_policies {
                search.attempt(&mut round, &client, installation.as_ref(), attempts.know_all_rights()).await;
            }
            let found = found.or(round.found);
            quiet = if round.failure.is_none() && found.is_none() { quiet + 1 } else { 0 };
            if quiet == QUIET_ATTEMPTS {
                break;
            }
            match (round.failure, found) {
                (Some((object, refused)), _) if refused.is_forbidden() && attempts.know_all_rights() => {
                    let resource = object.resource;
                    bail!("cannot delete {object}: {refused}; grant `delete` on `{resource}` with this name");
                }
                (Some((object, refused)), _) if attempts.are_over() => {
                    bail!("cannot delete {object} within {timeout:?}: {refused}");
                }
                (None, Some(object)) if attempts.are_over() => bail!(
                    "{object} is recreated after each deletion by a writer other than the webhook: find the writer by its \
                     `managedFields`"
                ),
                // Deleted, but not yet known to stay away.
                _ => {}
            }
            tokio::time::sleep(INTERVAL).await;
        }
        if let Some(reason) = search.unlistable {
            output::note(format_args!("admission policies were not looked for: {reason}"));
        }
        let anything = search.deleted || told.contains(&true);
        output::note(if anything { "nothing is registered any more" } else { "nothing was registered" });
        Ok(Verdict::Accepted)
    })
}

/// Parses the name of a `ClusterRoleBinding`: one segment of a path.
fn name(text: &str) -> Result<String, String> {
    let sound = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '.' | ':' | '_');
    if !text.is_empty() && text != "." && text != ".." && text.chars().all(sound) {
        Ok(text.to_owned())
    } else {
        Err(format!("invalid ClusterRoleBinding name `{text}`: use letters, digits, `-`, `.`, `:` and `_`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_segment_of_a_path() {
        for text in ["kube-unions-registration", "system:a.b_c", "x"] {
            assert_eq!(name(text).as_deref(), Ok(text));
        }
        for text in ["", ".", "..", "a/b", "a?b", "a b", "%2e"] {
            assert!(name(text).is_err_and(|it| it.contains(&format!("`{text}`"))), "{text}");
        }
    }
}
