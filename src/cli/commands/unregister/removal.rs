//! Deletes the objects of the registration, and the policies and bindings that `serve` keeps, found by their label.

use crate::api::{self, ObjectPath, RequestError};
use crate::cli::report::output;
use crate::controllers::{NAME, PolicyResource, SELECTOR, ServiceReference, named_installation, other_installation};
use hyper::Method;
use kube::Client;
use serde_json::Value;
use std::fmt;

/// Page size of a list. Deleted objects leave the next page at the beginning.
const PAGE: u32 = 100;

/// The removal of policies, over all attempts.
#[derive(Debug, Default)]
pub(super) struct PolicyRemoval {
    /// The reason why policies cannot be listed. They are not looked for again.
    pub(super) unlistable: Option<String>,
    /// True if a policy was deleted.
    pub(super) deleted: bool,
}

/// The result of one attempt.
#[derive(Debug, Default)]
pub(super) struct RemovalAttempt {
    /// An object that was there.
    pub(super) found: Option<Registered>,
    /// The first failure.
    pub(super) failure: Option<(Registered, RequestError)>,
}

impl PolicyRemoval {
    /// Deletes all policies, and adds the result to `round`. `rights_are_settled`: a missing right will not come any more.
    pub(super) async fn attempt(
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
    pub(super) fn fail(&mut self, object: Registered, refused: RequestError) {
        self.failure.get_or_insert((object, refused));
    }
}

fn registered(resource: PolicyResource, name: String) -> Registered {
    Registered { kind: resource.kind(), resource: resource.plural(), group: ADMISSION, name }
}

/// API group of webhook configurations and policies.
pub(super) const ADMISSION: &str = "admissionregistration.k8s.io";

/// An object of the registration, or a policy. Displays as its kind and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Registered {
    pub(super) kind: &'static str,
    pub(super) resource: &'static str,
    pub(super) group: &'static str,
    pub(super) name: String,
}

impl Registered {
    /// Returns the objects in the order of their deletion.
    pub(super) fn all(binding: &str) -> [Self; 3] {
        let new = |kind, resource, group, name: &str| Self { kind, resource, group, name: name.to_owned() };
        [
            new("ClusterRoleBinding", "clusterrolebindings", "rbac.authorization.k8s.io", binding),
            new("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", ADMISSION, NAME),
            new("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", ADMISSION, NAME),
        ]
    }

    /// Deletes the object, unless another installation than `installation` keeps it. Returns true if it was deleted.
    pub(super) async fn delete(
        &self,
        client: &Client,
        installation: Option<&ServiceReference>,
    ) -> Result<bool, RequestError> {
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
