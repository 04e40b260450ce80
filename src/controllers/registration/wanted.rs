//! The wanted content of the two configurations. [`super::desired`] merges it with a stored object.
//!
//! Every field that the API server would default is written out: another field manager could own an omitted field.

use super::options::{EntryOptions, FailurePolicy, LabelSelector};
use super::rules::{RegistrationRule, RegistrationRules};
use super::stored::{ConfigurationKind, DECLARATIONS, DEFINITIONS, NAME, ours};
use crate::controllers::ServiceReference;
use crate::controllers::object::{INSTALLATION, Owner};
use kube_unions_core::admission::InspectionToken;
use kube_unions_core::declaration::ANNOTATION;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Annotation that makes cert-manager write `caBundle`.
pub(super) const INJECT: &str = "cert-manager.io/inject-ca-from";

/// Timeout of an inspection, in seconds.
const INSPECTION_TIMEOUT: u8 = 5;

/// The wanted content of one configuration. Without entries it is not created.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Wanted {
    pub(super) phase: ConfigurationKind,
    pub(super) service: ServiceReference,
    pub(super) annotations: Map<String, Value>,
    pub(super) labels: Map<String, Value>,
    /// Owner of the configuration; `None` keeps the stored owners.
    pub(super) owner: Option<Owner>,
    pub(super) ca: BundleSource,
    /// Token for inspections if no well-formed one is stored.
    pub(super) fresh: InspectionToken,
    /// In the order of their names.
    pub(super) entries: Vec<WantedEntry>,
}

/// One wanted entry.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WantedEntry {
    pub(super) name: &'static str,
    /// Path that the API server calls; `None` for the path of inspections.
    pub(super) path: Option<&'static str>,
    /// Policy of an entry that has a bundle. Without a bundle the policy is `Ignore`.
    pub(super) failure_policy: FailurePolicy,
    /// The other fields, except `name` and `clientConfig`.
    pub(super) fields: Map<String, Value>,
}

/// Settings that all entries share.
#[derive(Debug, Clone)]
pub(super) struct EntryTemplate {
    pub(super) service: ServiceReference,
    options: EntryOptions,
    /// Sorted, distinct.
    excluded: BTreeSet<String>,
}

/// Source of `caBundle`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BundleSource {
    /// This bundle, PEM.
    Ours(String),
    /// cert-manager, from this Certificate.
    Injected(String),
}

/// Inspections to register.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct InspectedKinds {
    /// Inspect `UnionDeclaration`s.
    pub(super) declarations: bool,
    /// Inspect CRDs that have the annotation.
    pub(super) definitions: bool,
}

impl Wanted {
    /// Leaves the rules for objects as they are stored.
    pub(super) fn keep_rules(&mut self, stored: Option<&Value>) {
        self.entries.retain_mut(|entry| {
            if entry.path.is_none() {
                return true;
            }
            let entries = || stored.into_iter().flat_map(ours);
            let rules = entries().find(|(name, _)| *name == entry.name).and_then(|(_, stored)| stored.get("rules"));
            let Some(rules) = rules.filter(|rules| rules.as_array().is_some_and(|rules| !rules.is_empty())) else {
                return false;
            };
            put(&mut entry.fields, "rules", rules.clone());
            true
        });
    }
}

impl EntryTemplate {
    /// Exempts the excluded namespaces, kube-system and the Service's own.
    pub(super) fn new(service: ServiceReference, options: EntryOptions, excluded: &[String]) -> Self {
        let mut all: BTreeSet<String> = excluded.iter().cloned().collect();
        all.insert("kube-system".to_owned());
        all.insert(service.namespace.to_string());
        Self { service, options, excluded: all }
    }

    /// Returns the wanted content of a configuration.
    pub(super) fn wanted(
        &self,
        phase: ConfigurationKind,
        rules: &RegistrationRules,
        inspections: InspectedKinds,
        ca: BundleSource,
        owner: Option<Owner>,
        fresh: InspectionToken,
    ) -> Wanted {
        let options = &self.options;
        let (path, custom, builtin) = match phase {
            ConfigurationKind::Mutating => ("/mutate", "mutate.kube-unions.dev", "mutate.builtin.kube-unions.dev"),
            ConfigurationKind::Validating => {
                ("/validate", "validate.kube-unions.dev", "validate.builtin.kube-unions.dev")
            }
        };
        let mut entries = Vec::new();
        for (name, rules, failure_policy) in
            [(custom, &rules.custom, options.custom), (builtin, &rules.builtin, options.builtin)]
        {
            if rules.is_empty() {
                continue;
            }
            let mut fields = self.fields(rules, options.timeout_seconds, &options.namespace_selector);
            put(&mut fields, "objectSelector", json!(options.object_selector));
            if !options.match_conditions.is_empty() {
                put(&mut fields, "matchConditions", json!(options.match_conditions));
            }
            if phase == ConfigurationKind::Mutating {
                put(&mut fields, "reinvocationPolicy", "IfNeeded".into());
            }
            entries.push(WantedEntry { name, path: Some(path), failure_policy, fields });
        }
        if phase == ConfigurationKind::Validating {
            entries.extend(
                inspections.declarations.then(|| self.inspection(DECLARATIONS, RegistrationRule::of_declarations())),
            );
            entries.extend(inspections.definitions.then(|| {
                let mut entry = self.inspection(DEFINITIONS, RegistrationRule::of_definitions());
                // The API server evaluates this expression instead of calling for a CRD without the annotation.
                let expression =
                    format!("has(object.metadata.annotations) && \"{ANNOTATION}\" in object.metadata.annotations");
                let conditions = json!([{"name": "declares-unions", "expression": expression}]);
                put(&mut entry.fields, "matchConditions", conditions);
                entry
            }));
        }
        let ServiceReference { namespace, name, .. } = &self.service;
        let mut annotations = Map::new();
        put(&mut annotations, INSTALLATION, format!("{namespace}/{name}").into());
        if let BundleSource::Injected(from) = &ca {
            put(&mut annotations, INJECT, from.as_str().into());
        }
        let labels = [("app.kubernetes.io/name", NAME), ("app.kubernetes.io/managed-by", NAME)];
        let labels = labels.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect();
        let service = self.service.clone();
        Wanted { phase, service, annotations, labels, owner, ca, fresh, entries }
    }

    /// Returns an entry for inspections. It never fails a write: a declaration that was not inspected is judged when it is
    /// read, and its condition reports faults.
    fn inspection(&self, name: &'static str, rule: RegistrationRule) -> WantedEntry {
        let fields = self.fields(&[rule], INSPECTION_TIMEOUT, &LabelSelector::default());
        WantedEntry { name, path: None, failure_policy: FailurePolicy::Ignore, fields }
    }

    fn fields(
        &self,
        rules: &[RegistrationRule],
        timeout_seconds: u8,
        namespaces: &LabelSelector,
    ) -> Map<String, Value> {
        // The API server ignores the selector for cluster-scoped objects, and matches a Namespace by its own labels.
        let namespaces = namespaces.excluding([
            ("kubernetes.io/metadata.name", self.excluded.iter().cloned().collect()),
            ("kube-unions.dev/enforcement", vec!["disabled".to_owned()]),
        ]);
        let fields = [
            ("rules", json!(rules)),
            ("matchPolicy", "Equivalent".into()),
            ("namespaceSelector", json!(namespaces)),
            ("objectSelector", json!({})),
            ("sideEffects", "None".into()),
            ("timeoutSeconds", timeout_seconds.into()),
            ("admissionReviewVersions", json!(["v1"])),
        ];
        fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

fn put(object: &mut Map<String, Value>, key: &str, value: Value) {
    object.insert(key.to_owned(), value);
}
