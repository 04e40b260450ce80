//! The content that this replica wants in the configurations, whatever is stored.

use super::configurations::{ConfigurationError, Configurations};
use super::rules::RegistrationRules;
use super::wanted::{InspectedKinds, Owner};
use super::{Registering, Registration, Signals};
use crate::api::reason;
use crate::controllers::handover::Coverage;
use crate::controllers::trust::Trust;
use kube_unions_core::catalog::Catalog;
use kube_unions_core::names::GroupVersionKind;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::watch;

/// The wanted content.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Intent {
    pub(super) rules: Arc<RegistrationRules>,
    /// The stored rules stay as they are, because it is not known yet which kinds policies enforce.
    pub(super) keeps_rules: bool,
    pub(super) inspections: InspectedKinds,
    pub(super) trust: Trust,
    pub(super) owner: Option<Owner>,
}

/// The inputs of an [`Intent`].
pub(super) struct IntentSource {
    catalogs: watch::Receiver<Option<Arc<Catalog>>>,
    trust: watch::Receiver<Option<Trust>>,
    coverage: watch::Receiver<Coverage>,
    /// True while the cluster has the CRD of `UnionDeclaration`.
    declarable: watch::Receiver<bool>,
    configurations: Configurations,
    registering: Registering,
    enforcing: bool,
    /// Name of the `ClusterRole` that owns the configurations.
    owner: Option<String>,
    /// The failure to read the owner that was logged last.
    owner_failure: Option<String>,
    /// The rules of the catalog and of the coverage that were read last.
    rules: Option<(Arc<Catalog>, Coverage, Arc<RegistrationRules>)>,
    /// Kinds whose exclusion was logged.
    logged_kinds: BTreeSet<GroupVersionKind>,
    /// True if the API server keeps `matchConditions`; `None` until that is known.
    keeps_conditions: Option<bool>,
}

impl IntentSource {
    pub(super) fn new(
        registration: &Registration,
        signals: &Signals,
        configurations: Configurations,
        declarable: watch::Receiver<bool>,
    ) -> Self {
        Self {
            catalogs: signals.catalogs.clone(),
            trust: signals.trust.clone(),
            coverage: signals.coverage.clone(),
            declarable,
            configurations,
            registering: registration.registering,
            enforcing: registration.enforcing,
            owner: registration.owner.clone(),
            owner_failure: None,
            rules: None,
            logged_kinds: BTreeSet::new(),
            keeps_conditions: None,
        }
    }

    /// Returns the current intent; `None` until its inputs are known.
    ///
    /// `namespace_ends`: the Service's namespace is being deleted, so no object is to be sent to it.
    pub(super) async fn current(&mut self, namespace_ends: bool) -> Result<Option<Intent>, ConfigurationError> {
        let Some(trust) = self.trust.borrow().clone() else { return Ok(None) };
        let mut intent = Intent {
            rules: Arc::default(),
            keeps_rules: false,
            inspections: InspectedKinds::default(),
            trust,
            owner: None,
        };
        if self.registering == Registering::Bundles {
            return Ok(Some(intent));
        }
        let Some(catalog) = self.catalogs.borrow().clone() else { return Ok(None) };
        intent.owner = self.read_owner().await?;
        let coverage = self.coverage.borrow().clone();
        if !namespace_ends && coverage != Coverage::Everything {
            intent.keeps_rules = coverage == Coverage::Unknown;
            let definitions = match self.keeps_conditions {
                Some(known) => known,
                None => *self.keeps_conditions.insert(self.configurations.keeps_conditions().await?),
            };
            intent.inspections = InspectedKinds { declarations: *self.declarable.borrow(), definitions };
            intent.rules = self.rules_of(catalog, coverage);
        }
        Ok(Some(intent))
    }

    /// Returns the name of the `ClusterRole` that is to own the configurations.
    pub(super) fn owner(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    /// Stops setting an owner, because the API server does not permit it.
    pub(super) fn give_up_owner(&mut self) {
        if self.owner.take().is_some() {
            tracing::warn!(
                "the API server permits an owner only to users who may delete the object, so the webhook configurations get \
                 none; grant `delete` of both by name, or delete them yourself after an uninstallation"
            );
        }
    }

    fn rules_of(&mut self, catalog: Arc<Catalog>, coverage: Coverage) -> Arc<RegistrationRules> {
        if let Some((known, covered, rules)) = &self.rules
            && Arc::ptr_eq(known, &catalog)
            && *covered == coverage
        {
            return Arc::clone(rules);
        }
        let rules = match &coverage {
            _ if !self.enforcing => RegistrationRules::default(),
            Coverage::Kinds(covered) => RegistrationRules::without(covered, &catalog),
            Coverage::Unknown => RegistrationRules::of(&catalog),
            Coverage::Everything => RegistrationRules::default(),
        };
        for (kind, reason) in &rules.excluded {
            if self.logged_kinds.insert(kind.clone()) {
                tracing::warn!(%kind, reason, "this kind has unions but is never registered");
            }
        }
        let rules = Arc::new(rules);
        self.rules = Some((catalog, coverage, Arc::clone(&rules)));
        rules
    }

    /// Returns the owner with its current UID; `None` if there is none to set.
    async fn read_owner(&mut self) -> Result<Option<Owner>, ConfigurationError> {
        let Some(name) = self.owner.clone() else { return Ok(None) };
        let failure = match self.configurations.cluster_role(&name).await {
            Ok(Some(uid)) => {
                self.owner_failure = None;
                return Ok(Some(Owner { name, uid }));
            }
            Ok(None) => "it does not exist".to_owned(),
            Err(error) if error.is_answer() => reason(&error),
            Err(error) => return Err(error),
        };
        if self.owner_failure.as_ref() != Some(&failure) {
            tracing::warn!(
                cluster_role = name,
                reason = failure,
                "cannot read the ClusterRole that owns the webhook configurations: existing ones are kept without it, and none \
                 is created"
            );
            self.owner_failure = Some(failure);
        }
        Ok(None)
    }
}
