//! `unregister`: removes the webhook's registration and the policies from a cluster.

use crate::cli::input::connection::ClusterArgs;
use crate::cli::report::{Verdict, output};
use crate::cli::serve;
use crate::cluster;
use crate::controllers::ServiceReference;
use clap::Args;
use std::time::Duration;

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

pub(super) fn run(arguments: &UnregisterArgs) -> anyhow::Result<Verdict> {
    let UnregisterArgs { cluster, registration_binding, installation, keep_policies, timeout } = arguments;
    cluster.run(async |client| {
        let mut anything = false;
        let deleted = |object: &cluster::Registered| {
            anything = true;
            output::note(format_args!("deleted {object}"));
        };
        let removal = cluster::Removal {
            binding: registration_binding,
            installation: installation.as_ref(),
            policies: !keep_policies,
            within: *timeout,
        };
        let ended = cluster::unregister(&client, removal, deleted).await?;
        if let Some(reason) = ended.unlistable {
            output::note(format_args!("admission policies were not looked for: {reason}"));
        }
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
