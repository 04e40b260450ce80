//! An object of the registration, and its deletion.

use crate::api::{ObjectPath, RequestError};
use crate::controllers::{NAME, ServiceReference, other_installation};
use kube::Client;
use std::fmt;

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
