//! The settings of the enforcement by policies, and its inputs and outputs.

use crate::controllers::handover::{Coverage, RegisteredKinds};
use crate::controllers::registration::EntryOptions;
use crate::telemetry::PolicyMetrics;
use kube_unions_core::catalog::Catalog;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Settings of the enforcement by policies.
#[derive(Debug, Clone)]
pub struct PolicyEnforcement {
    /// The treatment of the policies in the cluster.
    pub duty: PolicyDuty,
    /// The beginning of the name of every policy.
    pub name_prefix: String,
    /// Let a violation through if the request did not change the choice of the union.
    pub ratchet: bool,
    /// Namespaces that are exempt.
    pub excluded_namespaces: Vec<String>,
    /// The installation, by its Service. Policies of another installation are left alone.
    pub installation: Option<String>,
    /// Name of the `ClusterRole` that owns the policies. They are deleted with it.
    pub owner: Option<String>,
    /// Conditions and selectors of the objects to enforce.
    pub entries: EntryOptions,
    /// Time in which every API server learns of a change of policies or of webhook configurations.
    pub handover: Duration,
}

/// The treatment of the policies in the cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PolicyDuty {
    /// Policies enforce every kind that they can express, and the webhook the rest.
    #[default]
    BesideWebhook,
    /// Policies enforce what they can express, and the webhook nothing.
    Alone,
    /// Policies are deleted as soon as the webhook is registered for their kind.
    RemoveOnceRegistered,
    /// Policies are deleted.
    Remove,
}

/// Inputs and outputs of the enforcement by policies.
pub struct PolicySignals {
    /// Catalog in force.
    pub catalogs: watch::Receiver<Option<Arc<Catalog>>>,
    /// Kinds that the webhook is registered for.
    pub registered: watch::Receiver<RegisteredKinds>,
    /// Receives the kinds that policies enforce.
    pub coverage: watch::Sender<Coverage>,
    /// Metrics of the policies.
    pub metrics: PolicyMetrics,
}

impl PolicyDuty {
    /// Returns true if policies are kept, false if they are deleted.
    pub fn is_enforcing(self) -> bool {
        matches!(self, Self::BesideWebhook | Self::Alone)
    }

    /// Returns the coverage before anything is known about the policies of the cluster.
    pub fn first_coverage(self) -> Coverage {
        if self.is_enforcing() { Coverage::Unknown } else { Coverage::none() }
    }
}
