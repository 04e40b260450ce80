//! The content that this replica wants in the configurations, whatever is stored: its settings, its inputs, and the intent that
//! follows from them.

use super::options::EntryOptions;
use super::rules::RegistrationRules;
use crate::api::ServerClock;
use crate::controllers::ServiceReference;
use crate::controllers::handover::{Coverage, RegisteredBundle, RegisteredKinds, Trust};
use crate::controllers::object::Owner;
use crate::telemetry::RegistrationMetrics;
use kube_unions_core::admission::InspectionToken;
use kube_unions_core::catalog::Catalog;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Settings of the registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// Extent of the registration.
    pub registering: Registering,
    /// Service that the API server calls.
    pub service: ServiceReference,
    /// Settings of the entries for objects.
    pub entries: EntryOptions,
    /// Name of the `ClusterRole` that owns the configurations. They are deleted with it.
    pub owner: Option<String>,
    /// Namespaces that are exempt, beside kube-system and the Service's own.
    pub excluded_namespaces: Vec<String>,
    /// False registers no entry for objects, only those for inspections.
    pub enforcing: bool,
    /// Time for which this replica must have been ready before it registers for the first time.
    pub delay: Duration,
}

impl Registration {
    /// Returns the namespaces that are exempt.
    pub(super) fn exempt_namespaces(&self) -> impl Iterator<Item = &str> {
        let always = ["kube-system", &*self.service.namespace];
        self.excluded_namespaces.iter().map(String::as_str).chain(always)
    }
}

/// Extent of the registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registering {
    /// Both configurations.
    Everything,
    /// Only the `caBundle` of entries that have our names and were registered by other means.
    Bundles,
}

/// Inputs and outputs of the registration.
pub struct Signals {
    /// Catalog in force.
    pub catalogs: watch::Receiver<Option<Arc<Catalog>>>,
    /// True while the cluster has the CRD of `UnionDeclaration`.
    pub declarable: watch::Receiver<bool>,
    /// CAs to register. Nothing is registered before they are known.
    pub trust: watch::Receiver<Option<Trust>>,
    /// Kinds that policies enforce.
    pub coverage: watch::Receiver<Coverage>,
    /// Receives the kinds that are registered.
    pub registered: watch::Sender<RegisteredKinds>,
    /// Receives the CAs that the configurations hold.
    pub held: watch::Sender<RegisteredBundle>,
    /// Receives the registered token of the path for inspections; `None` while no entry has a well-formed one.
    pub inspection: watch::Sender<Option<InspectionToken>>,
    /// Returns true while this replica can answer.
    pub ready: Box<dyn Fn() -> bool + Send + Sync>,
    /// Clock by which certificates expire.
    pub clock: ServerClock,
    /// Metrics of the registration.
    pub metrics: RegistrationMetrics,
}

/// The wanted content of both configurations.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "any combination of them can be wanted")]
pub(super) struct Intent {
    pub(super) settings: Registration,
    /// Write whole configurations. False: only the agreed bundle, into existing entries.
    pub(super) is_whole: bool,
    pub(super) rules: Arc<RegistrationRules>,
    /// The stored rules stay as they are, because it is not known yet which kinds policies enforce.
    pub(super) keeps_rules: bool,
    /// Inspect `UnionDeclaration`s.
    pub(super) inspects_declarations: bool,
    /// Inspect CRDs that have the annotation.
    pub(super) inspects_definitions: bool,
    pub(super) trust: Trust,
    /// Owner of the configurations; `None` keeps the stored owners.
    pub(super) owner: Option<Owner>,
    /// Token for inspections if no well-formed one is stored.
    pub(super) fresh: InspectionToken,
}

impl Intent {
    /// Returns an intent without entries.
    pub(super) fn empty(settings: Registration, trust: Trust, fresh: InspectionToken) -> Self {
        Self {
            is_whole: settings.registering == Registering::Everything,
            settings,
            rules: Arc::default(),
            keeps_rules: false,
            inspects_declarations: false,
            inspects_definitions: false,
            trust,
            owner: None,
            fresh,
        }
    }
}
