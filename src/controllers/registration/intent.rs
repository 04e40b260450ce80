//! The content that this replica wants in the configurations, whatever is stored.

use super::error::{ConfigurationError, request};
use super::rules::RegistrationRules;
use super::settings::{Registering, Registration, Signals};
use crate::controllers::handover::Coverage;
use crate::controllers::handover::Trust;
use crate::controllers::object::{Owner, OwnerReader};
use kube::Client;
use kube_unions_core::admission::InspectionToken;
use kube_unions_core::catalog::Catalog;
use kube_unions_core::names::GroupVersionKind;
use std::collections::BTreeSet;
use std::sync::Arc;

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

/// The inputs of earlier intents.
#[derive(Debug)]
pub(super) struct KnownInputs {
    fresh: InspectionToken,
    /// The rules of the catalog and of the coverage that were read last.
    rules: Option<(Arc<Catalog>, Coverage, Arc<RegistrationRules>)>,
    /// Kinds whose exclusion was logged.
    logged_kinds: BTreeSet<GroupVersionKind>,
    owner: OwnerReader,
}

impl KnownInputs {
    pub(super) fn new(fresh: InspectionToken) -> Self {
        let owner =
            OwnerReader::new("the webhook configurations: existing ones are kept without it, and none is created");
        Self { fresh, rules: None, logged_kinds: BTreeSet::new(), owner }
    }

    /// Returns the current intent; `None` until its inputs are known.
    ///
    /// `namespace_ends`: no object is to be sent to the Service, whose namespace is being deleted.
    pub(super) async fn intent(
        &mut self,
        client: &Client,
        settings: &Registration,
        signals: &Signals,
        namespace_ends: bool,
    ) -> Result<Option<Intent>, ConfigurationError> {
        let Some(trust) = signals.trust.borrow().clone() else { return Ok(None) };
        let mut intent = Intent::empty(settings.clone(), trust, self.fresh.clone());
        if !intent.is_whole {
            return Ok(Some(intent));
        }
        let Some(catalog) = signals.catalogs.borrow().clone() else { return Ok(None) };
        if let Some(name) = &settings.owner {
            let doing = || format!("read the ClusterRole `{name}`, the owner of the configurations");
            intent.owner = self.owner.read(client, name).await.map_err(|error| request(doing(), error))?;
        }
        let coverage = signals.coverage.borrow().clone();
        if !namespace_ends && coverage != Coverage::Everything {
            intent.keeps_rules = coverage == Coverage::Unknown;
            (intent.inspects_declarations, intent.inspects_definitions) = (*signals.declarable.borrow(), true);
            intent.rules = self.rules_of(catalog, coverage, settings.enforcing);
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
}
