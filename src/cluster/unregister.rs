//! Takes the webhook's registration away, for good.
//!
//! A webhook that runs keeps its two configurations true, so deleting them is not enough: its right to write them goes
//! first. What it was writing at that moment may still come through, so they are deleted until they stay away.

use super::ServiceReference;
use super::call::{self, Refused};
use super::registration::other_installation;
use hyper::Method;
use kube::Client;
use std::fmt;
use std::time::Duration;
use tokio::time::Instant;

/// What both configurations are called.
const NAME: &str = "kube-unions";

/// The API group of both.
const ADMISSION: &str = "admissionregistration.k8s.io";

/// From one look to the next.
const INTERVAL: Duration = Duration::from_secs(1);

/// So often in a row nothing has to be there.
const QUIET_LOOKS: usize = 3;

/// Rights that were granted a moment ago reach an API server within so long.
const RIGHTS_SETTLE: Duration = Duration::from_secs(5);

/// An object that makes up the registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    kind: &'static str,
    resource: &'static str,
    group: &'static str,
    name: String,
}

/// Why the registration is not known to be gone.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnregisterError {
    /// Rights are missing.
    #[error(
        "may not delete {object}: {reason}; grant `delete` of `{resource}` by this name",
        resource = object.resource
    )]
    Forbidden {
        /// Which object.
        object: Registered,
        /// In the API server's words.
        reason: String,
    },
    /// The time has passed and the API server refused until the end.
    #[error("{object} could not be deleted within {within:?}: {reason}")]
    Refused {
        /// Which object.
        object: Registered,
        /// How long it was tried.
        within: Duration,
        /// What came last.
        reason: String,
    },
    /// It was deleted, and was there again.
    #[error(
        "{object} comes back whenever it is deleted: something else than the right that was taken away writes it; find out by \
         its `managedFields`"
    )]
    ComesBack {
        /// Which object.
        object: Registered,
    },
}

impl Registered {
    /// What has to go, in this order.
    fn all(binding: &str) -> [Self; 3] {
        let new = |kind, resource, group, name: &str| Self { kind, resource, group, name: name.to_owned() };
        [
            new("ClusterRoleBinding", "clusterrolebindings", "rbac.authorization.k8s.io", binding),
            new("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", ADMISSION, NAME),
            new("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", ADMISSION, NAME),
        ]
    }

    /// Deletes it, unless it is another installation's than `installation`. Returns whether it was there and was deleted.
    async fn delete(&self, client: &Client, installation: Option<&ServiceReference>) -> Result<bool, Refused> {
        let path = format!("/apis/{}/v1/{}/{}", self.group, self.resource, self.name);
        if let Some(installation) = installation.filter(|_| self.group == ADMISSION) {
            match call::send(client, Method::GET, &path).await {
                Ok(stored) if other_installation(&stored, installation).is_some() => return Ok(false),
                Ok(_) => {}
                Err(refused) if refused.is_not_found() => return Ok(false),
                Err(refused) => return Err(refused),
            }
        }
        match call::send(client, Method::DELETE, &path).await {
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

/// Deletes the `ClusterRoleBinding` named `binding`, then both webhook configurations, until they stay away. What is not
/// there is done already. `deleted` hears of each object once. With an `installation`, given by its Service, configurations
/// that another one keeps are left alone.
///
/// While the API server does not answer it is asked again, until `within` has passed.
pub async fn unregister(
    client: &Client,
    binding: &str,
    installation: Option<&ServiceReference>,
    within: Duration,
    mut deleted: impl FnMut(&Registered),
) -> Result<(), UnregisterError> {
    let started = Instant::now();
    let mut told = [false; 3];
    let mut quiet = 0;
    loop {
        let mut trouble = None;
        let mut found = None;
        for (object, told) in Registered::all(binding).into_iter().zip(&mut told) {
            match object.delete(client, installation).await {
                Ok(false) => {}
                Ok(true) => {
                    if !std::mem::replace(told, true) {
                        deleted(&object);
                    }
                    found = Some(object);
                }
                // The others are tried all the same: each that goes is one less in the way.
                Err(refused) => trouble = trouble.or(Some((object, refused))),
            }
        }
        quiet = if trouble.is_none() && found.is_none() { quiet + 1 } else { 0 };
        if quiet == QUIET_LOOKS {
            return Ok(());
        }
        let waited = started.elapsed();
        match (trouble, found) {
            (Some((object, refused)), _) if refused.is_forbidden() && waited >= RIGHTS_SETTLE.min(within) => {
                return Err(UnregisterError::Forbidden { object, reason: refused.to_string() });
            }
            (Some((object, refused)), _) if waited >= within => {
                return Err(UnregisterError::Refused { object, within, reason: refused.to_string() });
            }
            (None, Some(object)) if waited >= within => return Err(UnregisterError::ComesBack { object }),
            // Gone, and not yet seen to stay away: the few looks that are missing are no longer than a moment.
            _ => {}
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
