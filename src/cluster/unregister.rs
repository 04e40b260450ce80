//! Removes the webhook's registration from a cluster, and the policies that `serve` keeps there.
//!
//! A running webhook recreates its configurations and policies, so its right to write them is deleted first. A write in flight
//! at that moment may still succeed, so the objects are deleted until they stay away.

mod policies;

use crate::api::{self, RequestError};
use crate::controllers::{NAME, ServiceReference, other_installation};
use hyper::Method;
use kube::Client;
use policies::PolicyRemoval;
use std::fmt;
use std::time::Duration;
use tokio::time::Instant;

/// API group of both configurations.
const ADMISSION: &str = "admissionregistration.k8s.io";

/// Time between two attempts.
const INTERVAL: Duration = Duration::from_secs(1);

/// Attempts in a row that must find nothing.
const QUIET_ATTEMPTS: usize = 3;

/// Time in which an API server learns of rights that were just granted.
const RIGHTS_SETTLE: Duration = Duration::from_secs(5);

/// An object of the registration, or a policy. Displays as its kind and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    kind: &'static str,
    resource: &'static str,
    group: &'static str,
    name: String,
}

/// The end of a removal that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unregistered {
    /// The reason why policies could not be looked for.
    pub unlistable: Option<String>,
}

/// An error of removing the registration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnregisterError {
    /// The user may not delete an object.
    #[error(
        "cannot delete {object}: {reason}; grant `delete` on `{resource}` with this name",
        resource = object.resource
    )]
    Forbidden { object: Registered, reason: String },
    /// The API server refused every attempt until the timeout.
    #[error("cannot delete {object} within {within:?}: {reason}")]
    Refused { object: Registered, within: Duration, reason: String },
    /// An object was recreated after each deletion.
    #[error(
        "{object} is recreated after each deletion by a writer other than the webhook: find the writer by its `managedFields`"
    )]
    ComesBack { object: Registered },
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
        let path = format!("/apis/{}/v1/{}/{}", self.group, self.resource, self.name);
        if let Some(installation) = installation.filter(|_| self.group == ADMISSION) {
            match api::send(client, Method::GET, &path).await {
                Ok(stored) if other_installation(&stored, installation).is_some() => return Ok(false),
                Ok(_) => {}
                Err(refused) if refused.is_not_found() => return Ok(false),
                Err(refused) => return Err(refused),
            }
        }
        match api::send(client, Method::DELETE, &path).await {
            Ok(_) => Ok(true),
            Err(refused) if refused.is_not_found() => Ok(false),
            Err(refused) => Err(refused),
        }
    }
}

impl fmt::Display for Registered {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} `{}`", self.kind, self.name)
    }
}

/// The objects to remove.
#[derive(Debug, Clone, Copy)]
pub struct Removal<'r> {
    /// Name of the `ClusterRoleBinding` with the right to register.
    pub binding: &'r str,
    /// Service of an installation. Configurations and policies of other installations stay. `None`: all go.
    pub installation: Option<&'r ServiceReference>,
    /// Remove the policies too.
    pub policies: bool,
    /// Time in which failed attempts are repeated.
    pub within: Duration,
}

/// Deletes the `ClusterRoleBinding`, then both webhook configurations and the policies that `serve` keeps, until they stay away.
///
/// `deleted` is called once for each of the first three, and at each deletion of a policy. Without the right to list policies,
/// they stay.
pub async fn unregister(
    client: &Client,
    removal: Removal<'_>,
    mut deleted: impl FnMut(&Registered),
) -> Result<Unregistered, UnregisterError> {
    let Removal { binding, installation, policies, within } = removal;
    let started = Instant::now();
    let mut reported = [false; 3];
    let mut quiet = 0;
    let mut search = PolicyRemoval::default();
    loop {
        let mut failure = None;
        let mut found = None;
        for (object, reported) in Registered::all(binding).into_iter().zip(&mut reported) {
            match object.delete(client, installation).await {
                Ok(false) => {}
                Ok(true) => {
                    if !std::mem::replace(reported, true) {
                        deleted(&object);
                    }
                    found = Some(object);
                }
                // A failure of one object does not prevent the deletion of the others.
                Err(refused) => failure = failure.or(Some((object, refused))),
            }
        }
        let waited = started.elapsed();
        if policies {
            let are_settled = waited >= RIGHTS_SETTLE.min(within);
            let attempt = search.attempt(client, installation, are_settled, &mut deleted).await;
            found = found.or(attempt.found);
            failure = failure.or(attempt.failure);
        }
        quiet = if failure.is_none() && found.is_none() { quiet + 1 } else { 0 };
        if quiet == QUIET_ATTEMPTS {
            return Ok(Unregistered { unlistable: search.unlistable });
        }
        match (failure, found) {
            (Some((object, refused)), _) if refused.is_forbidden() && waited >= RIGHTS_SETTLE.min(within) => {
                return Err(UnregisterError::Forbidden { object, reason: refused.to_string() });
            }
            (Some((object, refused)), _) if waited >= within => {
                return Err(UnregisterError::Refused { object, within, reason: refused.to_string() });
            }
            (None, Some(object)) if waited >= within => return Err(UnregisterError::ComesBack { object }),
            // Deleted, but not yet known to stay away.
            _ => {}
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
