//! `unregister`: removes the webhook's registration from a cluster, and the policies that `serve` keeps there.
//!
//! A running webhook recreates its configurations and policies, so its right to write them is deleted first. A write in flight
//! at that moment may still succeed, so the objects are deleted until they stay away.

use super::attempts::Attempts;
use super::serve;
use crate::controllers::{NAME, PolicyResource, SELECTOR, ServiceReference, named_installation, other_installation};
use anyhow::bail;
use clap::Args;
use hyper::Method;
use kube::Client;
use kube_unions_api::{self as api, ObjectPath, RequestError};
use kube_unions_command::connection::ClusterArgs;
use kube_unions_command::{Verdict, output};
use serde_json::Value;
use std::fmt;
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
pub struct UnregisterArgs {
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
pub fn run(arguments: &UnregisterArgs) -> anyhow::Result<Verdict> {
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

/// Page size of a list. Deleted objects leave the next page at the beginning.
const PAGE: u32 = 100;

/// The removal of policies, over all attempts.
#[derive(Debug, Default)]
struct PolicyRemoval {
    /// The reason why policies cannot be listed. They are not looked for again.
    unlistable: Option<String>,
    /// True if a policy was deleted.
    deleted: bool,
}

/// The result of one attempt.
#[derive(Debug, Default)]
struct RemovalAttempt {
    /// An object that was there.
    found: Option<Registered>,
    /// The first failure.
    failure: Option<(Registered, RequestError)>,
}

impl PolicyRemoval {
    /// Deletes all policies, and adds the result to `round`. `rights_are_settled`: a missing right will not come any more.
    async fn attempt(
        &mut self,
        round: &mut RemovalAttempt,
        client: &Client,
        installation: Option<&ServiceReference>,
        rights_are_settled: bool,
    ) {
        // Bindings and rejecting policies first.
        for resource in PolicyResource::ALL.into_iter().rev() {
            for version in ["v1", "v1beta1"] {
                if self.unlistable.is_some() {
                    return;
                }
                match self.delete_page(round, client, resource, version, installation).await {
                    Ok(()) => break,
                    // This API server does not serve the version.
                    Err(refused) if refused.is_not_found() => {}
                    Err(refused) if refused.is_forbidden() && rights_are_settled => {
                        self.unlistable = Some(refused.to_string());
                    }
                    Err(refused) => {
                        round.fail(registered(resource, "*".to_owned()), refused);
                        break;
                    }
                }
            }
        }
    }

    /// Deletes the objects of one page. Returns an error if they cannot be listed.
    async fn delete_page(
        &mut self,
        round: &mut RemovalAttempt,
        client: &Client,
        resource: PolicyResource,
        version: &str,
        installation: Option<&ServiceReference>,
    ) -> Result<(), RequestError> {
        let collection = resource.path(version);
        let selector = SELECTOR.replace('=', "%3D").replace('/', "%2F");
        let mut from = String::new();
        loop {
            let path = format!("{collection}?labelSelector={selector}&limit={PAGE}{from}");
            let list = api::send(client, Method::GET, &path).await?;
            for item in list.get("items").and_then(Value::as_array).into_iter().flatten() {
                let metadata = |field: &str| item.get("metadata").and_then(|metadata| metadata.get(field));
                let Some(name) = metadata("name").and_then(Value::as_str) else { continue };
                let owner = named_installation(item);
                let is_another = |own: &ServiceReference| owner.is_some_and(|owner| owner != own.installation());
                if installation.is_some_and(is_another) {
                    continue;
                }
                let object = registered(resource, name.to_owned());
                match ObjectPath::new(&collection, name).delete(client, None).await {
                    Ok(true) => {
                        output::note(format_args!("deleted {object}"));
                        self.deleted = true;
                        round.found = Some(object);
                    }
                    Ok(false) => {}
                    Err(refused) => round.fail(object, refused),
                }
            }
            match list.pointer("/metadata/continue").and_then(Value::as_str).filter(|token| !token.is_empty()) {
                Some(token) => from = format!("&continue={token}"),
                None => return Ok(()),
            }
        }
    }
}

impl RemovalAttempt {
    /// Keeps the first failure.
    fn fail(&mut self, object: Registered, refused: RequestError) {
        self.failure.get_or_insert((object, refused));
    }
}

fn registered(resource: PolicyResource, name: String) -> Registered {
    Registered { kind: resource.kind(), resource: resource.plural(), group: ADMISSION, name }
}

/// API group of webhook configurations and policies.
const ADMISSION: &str = "admissionregistration.k8s.io";

/// An object of the registration, or a policy. Displays as its kind and name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Registered {
    kind: &'static str,
    resource: &'static str,
    group: &'static str,
    name: String,
}

impl Registered {
    /// Returns the objects in the order of their deletion.
    fn all(binding: &str) -> [Self; 3] {
        let new = |kind, resource, group, name: &str| Self { kind, resource, group, name: name.to_owned() };
        [
            new("ClusterRoleBinding", "clusterrolebindings", "rbac.authorization.k8s.io", binding),
            new("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", ADMISSION, NAME),
            new("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", ADMISSION, NAME),
        ]
    }

    /// Deletes the object, unless another installation than `installation` keeps it. Returns true if it was deleted.
    async fn delete(&self, client: &Client, installation: Option<&ServiceReference>) -> Result<bool, RequestError> {
        let path = ObjectPath::new(format!("/apis/{}/v1/{}", self.group, self.resource), &self.name);
        if let Some(installation) = installation.filter(|_| self.group == ADMISSION) {
            let stored = path.read(client).await?;
            if stored.is_none_or(|stored| other_installation(&stored, installation).is_some()) {
                return Ok(false);
            }
        }
        path.delete(client, None).await
    }
}

impl fmt::Display for Registered {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} `{}`", self.kind, self.name)
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
