//! The content that this replica wants in the configurations, whatever is stored.

use super::error::{ConfigurationError, request};
use super::rules::RegistrationRules;
use super::settings::{Registering, Registration, Signals};
use super::wanted::InspectedKinds;
use crate::controllers::handover::Coverage;
use crate::controllers::object::Owner;
use crate::controllers::reconciler::LogOnce;
use crate::controllers::trust::Trust;
use kube::Client;
use kube_unions_core::catalog::Catalog;
use kube_unions_core::names::GroupVersionKind;
use std::collections::BTreeSet;
use std::sync::Arc;

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

/// The inputs of earlier intents.
#[derive(Debug, Default)]
pub(super) struct KnownInputs {
    /// The rules of the catalog and of the coverage that were read last.
    rules: Option<(Arc<Catalog>, Coverage, Arc<RegistrationRules>)>,
    /// Kinds whose exclusion was logged.
    logged_kinds: BTreeSet<GroupVersionKind>,
    owner_failure: LogOnce,
}

impl KnownInputs {
    /// Returns the current intent; `None` until its inputs are known.
    ///
    /// `declarable`: the cluster has the CRD of `UnionDeclaration`. `namespace_ends`: no object is to be sent to the Service, whose
    /// namespace is being deleted.
    pub(super) async fn intent(
        &mut self,
        client: &Client,
        registration: &Registration,
        signals: &Signals,
        declarable: bool,
        namespace_ends: bool,
    ) -> Result<Option<Intent>, ConfigurationError> {
        let Some(trust) = signals.trust.borrow().clone() else { return Ok(None) };
        let (rules, inspections) = (Arc::default(), InspectedKinds::default());
        let mut intent = Intent { rules, keeps_rules: false, inspections, trust, owner: None };
        if registration.registering == Registering::Bundles {
            return Ok(Some(intent));
        }
        let Some(catalog) = signals.catalogs.borrow().clone() else { return Ok(None) };
        intent.owner = self.read_owner(client, registration).await?;
        let coverage = signals.coverage.borrow().clone();
        if !namespace_ends && coverage != Coverage::Everything {
            intent.keeps_rules = coverage == Coverage::Unknown;
            intent.inspections = InspectedKinds { declarations: declarable, definitions: true };
            intent.rules = self.rules_of(catalog, coverage, registration.enforcing);
        }
        Ok(Some(intent))
    }

    fn rules_of(&mut self, catalog: Arc<Catalog>, coverage: Coverage, enforcing: bool) -> Arc<RegistrationRules> {
        if let Some((known, covered, rules)) = &self.rules
            && Arc::ptr_eq(known, &catalog)
            && *covered == coverage
        {
            return Arc::clone(rules);
        }
        let rules = match &coverage {
            _ if !enforcing => RegistrationRules::default(),
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
    async fn read_owner(
        &mut self,
        client: &Client,
        registration: &Registration,
    ) -> Result<Option<Owner>, ConfigurationError> {
        let Some(name) = &registration.owner else { return Ok(None) };
        let read = Owner::read(client, name).await;
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
