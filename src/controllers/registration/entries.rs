//! The wanted entries of the two configurations. [`super::desired`] merges them with the stored ones.
//!
//! Every field that the API server would default is written out: another field manager could own an omitted field.

use super::intent::Intent;
use super::options::{FailurePolicy, LabelSelector};
use super::rules::RegistrationRule;
use super::stored::{ConfigurationKind, DECLARATIONS, DEFINITIONS, ours};
use kube_unions_core::declaration::ANNOTATION;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Timeout of an inspection, in seconds.
const INSPECTION_TIMEOUT: u8 = 5;

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

impl Intent {
    /// Returns the wanted entries of a configuration, in the order of their names. Without entries it is not created.
    pub(super) fn entries(&self, kind: ConfigurationKind, stored: &Value) -> Vec<WantedEntry> {
        let options = &self.settings.entries;
        let (path, custom, builtin) = match kind {
            ConfigurationKind::Mutating => ("/mutate", "mutate.kube-unions.dev", "mutate.builtin.kube-unions.dev"),
            ConfigurationKind::Validating => {
                ("/validate", "validate.kube-unions.dev", "validate.builtin.kube-unions.dev")
            }
        };
        let mut entries = Vec::new();
        for (name, rules, failure_policy) in
            [(custom, &self.rules.custom, options.custom), (builtin, &self.rules.builtin, options.builtin)]
        {
            let mut rules = json!(rules);
            if self.keeps_rules && !is_empty(&rules) {
                let kept = ours(stored).find(|(of, _)| *of == name).and_then(|(_, entry)| entry.get("rules"));
                rules = kept.cloned().unwrap_or_default();
            }
            if is_empty(&rules) {
                continue;
            }
            let mut fields = self.fields(rules, options.timeout_seconds, &options.namespace_selector);
            put(&mut fields, "objectSelector", json!(options.object_selector));
            if !options.match_conditions.is_empty() {
                put(&mut fields, "matchConditions", json!(options.match_conditions));
            }
            if kind == ConfigurationKind::Mutating {
                put(&mut fields, "reinvocationPolicy", "IfNeeded".into());
            }
            entries.push(WantedEntry { name, path: Some(path), failure_policy, fields });
        }
        if kind == ConfigurationKind::Mutating {
            return entries;
        }
        if self.inspects_declarations {
            entries.push(self.inspection(DECLARATIONS, "kube-unions.dev", "v1alpha1", "uniondeclarations"));
        }
        if self.inspects_definitions {
            let mut entry = self.inspection(DEFINITIONS, "apiextensions.k8s.io", "v1", "customresourcedefinitions");
            // The API server evaluates this expression instead of calling for a CRD without the annotation.
            let expression =
                format!("has(object.metadata.annotations) && \"{ANNOTATION}\" in object.metadata.annotations");
            let conditions = json!([{"name": "declares-unions", "expression": expression}]);
            put(&mut entry.fields, "matchConditions", conditions);
            entries.push(entry);
        }
        entries
    }

    /// Returns an entry for inspections. It never fails a write: a declaration that was not inspected is judged when it is
    /// read, and its condition reports faults.
    fn inspection(&self, name: &'static str, group: &str, version: &str, plural: &str) -> WantedEntry {
        let rule = RegistrationRule::new(((group, vec![version], "Cluster"), [plural.to_owned()].into()));
        let fields = self.fields(json!([rule]), INSPECTION_TIMEOUT, &LabelSelector::default());
        WantedEntry { name, path: None, failure_policy: FailurePolicy::Ignore, fields }
    }

    fn fields(&self, rules: Value, timeout_seconds: u8, namespaces: &LabelSelector) -> Map<String, Value> {
        let exempt: BTreeSet<&str> = self.settings.exempt_namespaces().collect();
        // The API server ignores the selector for cluster-scoped objects, and matches a Namespace by its own labels.
        let namespaces = namespaces.excluding([
            ("kubernetes.io/metadata.name", exempt.into_iter().map(str::to_owned).collect()),
            ("kube-unions.dev/enforcement", vec!["disabled".to_owned()]),
        ]);
        let fields = [
            ("rules", rules),
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

fn is_empty(rules: &Value) -> bool {
    rules.as_array().is_none_or(Vec::is_empty)
}

fn put(object: &mut Map<String, Value>, key: &str, value: Value) {
    object.insert(key.to_owned(), value);
}
