//! The content that this replica wants in the configurations, whatever is stored.

use super::Registering;
use super::registrar::{ConfigurationError, Registrar, request};
use super::rules::RegistrationRules;
use super::wanted::InspectedKinds;
use crate::controllers::handover::Coverage;
use crate::controllers::object::{Owner, server_version};
use crate::controllers::trust::Trust;
use kube_unions_core::catalog::Catalog;
use kube_unions_core::names::GroupVersionKind;
use kube_unions_policies::KubernetesVersion;
use std::collections::BTreeSet;
use std::sync::Arc;

/// First Kubernetes version with `matchConditions` enabled by default.
const FIRST_WITH_CONDITIONS: KubernetesVersion = KubernetesVersion::new(1, 28);

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

/// What was read for earlier intents.
#[derive(Debug, Default)]
pub(super) struct KnownInputs {
    /// The rules of the catalog and of the coverage that were read last.
    rules: Option<(Arc<Catalog>, Coverage, Arc<RegistrationRules>)>,
    /// Kinds whose exclusion was logged.
    logged_kinds: BTreeSet<GroupVersionKind>,
    /// True if the API server keeps `matchConditions`; `None` until that is known.
    keeps_conditions: Option<bool>,
}

impl Registrar {
    /// Returns the current intent; `None` until its inputs are known.
    pub(super) async fn intent(&mut self) -> Result<Option<Intent>, ConfigurationError> {
        let Some(trust) = self.signals.trust.borrow().clone() else { return Ok(None) };
        let (rules, inspections) = (Arc::default(), InspectedKinds::default());
        let mut intent = Intent { rules, keeps_rules: false, inspections, trust, owner: None };
        if self.registration.registering == Registering::Bundles {
            return Ok(Some(intent));
        }
        let Some(catalog) = self.signals.catalogs.borrow().clone() else { return Ok(None) };
        intent.owner = self.read_owner().await?;
        let coverage = self.signals.coverage.borrow().clone();
        // No object is to be sent to a Service whose namespace is being deleted.
        if !self.namespace_ends && coverage != Coverage::Everything {
            intent.keeps_rules = coverage == Coverage::Unknown;
            let definitions = self.keeps_conditions().await?;
            intent.inspections = InspectedKinds { declarations: *self.declarable.borrow(), definitions };
            intent.rules = self.rules_of(catalog, coverage);
        }
        Ok(Some(intent))
    }

    /// Returns true if the API server keeps `matchConditions`. Without a readable version it is assumed to.
    async fn keeps_conditions(&mut self) -> Result<bool, ConfigurationError> {
        if let Some(known) = self.known.keeps_conditions {
            return Ok(known);
        }
        let keeps = match server_version(&self.client).await {
            Ok(version) => version.is_none_or(|version| version >= FIRST_WITH_CONDITIONS),
            Err(error) if error.is_final() => true,
            Err(error) => return Err(request("read the API server's version".to_owned(), error)),
        };
        Ok(*self.known.keeps_conditions.insert(keeps))
    }

    fn rules_of(&mut self, catalog: Arc<Catalog>, coverage: Coverage) -> Arc<RegistrationRules> {
        if let Some((known, covered, rules)) = &self.known.rules
            && Arc::ptr_eq(known, &catalog)
            && *covered == coverage
        {
            return Arc::clone(rules);
        }
        let rules = match &coverage {
            _ if !self.registration.enforcing => RegistrationRules::default(),
            Coverage::Kinds(covered) => RegistrationRules::without(covered, &catalog),
            Coverage::Unknown => RegistrationRules::of(&catalog),
            Coverage::Everything => RegistrationRules::default(),
        };
        for (kind, reason) in &rules.excluded {
            if self.known.logged_kinds.insert(kind.clone()) {
                tracing::warn!(%kind, reason, "this kind has unions but is never registered");
            }
        }
        let rules = Arc::new(rules);
        self.known.rules = Some((catalog, coverage, Arc::clone(&rules)));
        rules
    }

    /// Returns the owner with its current UID; `None` if there is none to set.
    async fn read_owner(&mut self) -> Result<Option<Owner>, ConfigurationError> {
        let Some(name) = &self.registration.owner else { return Ok(None) };
        let read = Owner::read(&self.client, name).await;
        let owner = read.map_err(|error| {
            request(format!("read the ClusterRole `{name}`, the owner of the configurations"), error)
        })?;
        match owner {
            Ok(owner) => {
                self.owner_failure.is_over();
                Ok(Some(owner))
            }
            Err(reason) => {
                if self.owner_failure.is_new(&reason) {
                    tracing::warn!(
                        cluster_role = name,
                        reason,
                        "cannot read the ClusterRole that owns the webhook configurations: existing ones are kept without it, \
                         and none is created"
                    );
                }
                Ok(None)
            }
        }
    }
}
