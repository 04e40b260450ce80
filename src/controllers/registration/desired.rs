//! The desired object of a configuration: a pure function of the stored object and the wanted content.
//!
//! Foreign parts of the stored object are written back unchanged: entries, labels, annotations and owners of other writers,
//! and fields that this version does not know. Our own parts are set regardless of `managedFields`. The object is replaced
//! whole, so no other field manager can keep a part of it. Every field of an entry that the API server would default is written
//! out: another field manager could own an omitted field.

use super::options::{EntryOptions, FailurePolicy, LabelSelector};
use super::rules::{EntryConditions, EntryRules, RegistrationRules, rule};
use super::stored::{
    BUILTIN, ConfigurationKind, ConfigurationPair, DECLARATIONS, DEFINITIONS, DOMAIN, MUTATE, NAME, VALIDATE,
    bundle_of, calls, entries, inspection_token, is_of_class, is_ours, name_of, ours,
};
use crate::controllers::ServiceReference;
use crate::controllers::handover::Trust;
use crate::controllers::object::{INSTALLATION, Owner, merge_metadata, object_at, set};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kube_unions_core::admission::InspectionToken;
use kube_unions_core::catalog::Catalog;
use kube_unions_core::declaration::ANNOTATION;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Annotation that makes cert-manager write `caBundle`.
const INJECT: &str = "cert-manager.io/inject-ca-from";

/// Timeout of an inspection, in seconds.
const INSPECTION_TIMEOUT: u8 = 5;

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

/// Extent of the registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registering {
    /// Both configurations.
    Everything,
    /// Only the `caBundle` of entries that have our names and were registered by other means.
    Bundles,
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

/// The fields of a wanted entry, but for its bundle.
type WantedEntry = Map<String, Value>;

/// Returns the object to write, `None` if the stored one is as wanted. `bundle`: PEM; `None` if cert-manager writes it.
pub(super) fn desired(
    kind: ConfigurationKind,
    stored: Option<&Value>,
    intent: &Intent,
    bundle: Option<&str>,
) -> Option<Value> {
    if !intent.is_whole {
        let Trust::Agreed(pem) = &intent.trust else { return None };
        return with_bundle(stored?, pem);
    }
    let before = stored.unwrap_or(&Value::Null);
    let wanted = intent.entries(kind, before);
    if stored.is_none() && wanted.is_empty() {
        return None;
    }
    let mut object = before.as_object().cloned().unwrap_or_default();
    let mut metadata = object_at(&object, "metadata");
    set(&mut metadata, json!({"name": NAME}));
    let installation = intent.settings.service.installation();
    let annotations = if let Trust::InjectedFrom(certificate) = &intent.trust {
        json!({INSTALLATION: installation, INJECT: &**certificate})
    } else {
        metadata.get_mut("annotations").and_then(Value::as_object_mut).and_then(|stored| stored.shift_remove(INJECT));
        json!({INSTALLATION: installation})
    };
    let labels = json!({"app.kubernetes.io/name": NAME, "app.kubernetes.io/managed-by": NAME});
    let ours = json!({"labels": labels, "annotations": annotations});
    merge_metadata(&mut metadata, &ours, intent.owner.as_ref());
    let (version, kind) = ("admissionregistration.k8s.io/v1", kind.kind());
    set(&mut object, json!({"apiVersion": version, "kind": kind, "metadata": metadata}));
    let webhooks = webhooks(before, wanted, intent, bundle);
    // The API server omits an empty list.
    if webhooks.is_empty() && is_set(object.get("webhooks")) {
        object.shift_remove("webhooks");
    } else if !webhooks.is_empty() {
        set(&mut object, json!({"webhooks": webhooks}));
    }
    let desired = Value::from(object);
    (desired != *before).then_some(desired)
}

impl Intent {
    /// Returns both configurations to write, the mutating one first; `None` for one that is in sync.
    pub(super) fn writes(&self, stored: &ConfigurationPair, bundle: Option<&str>) -> ConfigurationPair {
        let [mutating, validating] = stored.each_ref();
        [(ConfigurationKind::Mutating, mutating), (ConfigurationKind::Validating, validating)]
            .map(|(kind, stored)| desired(kind, stored.as_ref(), self, bundle))
    }

    /// Returns the wanted entries of a configuration, in the order of their names. Without entries it is not created.
    fn entries(&self, kind: ConfigurationKind, stored: &Value) -> Vec<WantedEntry> {
        let options = &self.settings.entries;
        let (path, phase) = match kind {
            ConfigurationKind::Mutating => ("/mutate", MUTATE),
            ConfigurationKind::Validating => ("/validate", VALIDATE),
        };
        let mut entries = Vec::new();
        for (class, of_class, policy, timeout_seconds) in [
            ("", &self.rules.custom, options.failure_policy, options.timeout_seconds),
            (BUILTIN, &self.rules.builtin, options.builtin_failure_policy, options.builtin_timeout_seconds()),
        ] {
            let mut add = |name: &str, rules: &Value, conditions: Value| {
                let mut entry = self.entry(name, path, policy, rules, timeout_seconds, &options.namespace_selector);
                set(&mut entry, json!({"objectSelector": options.object_selector}));
                if is_set(Some(&conditions)) {
                    set(&mut entry, json!({"matchConditions": conditions}));
                }
                if kind == ConfigurationKind::Mutating {
                    set(&mut entry, json!({"reinvocationPolicy": "IfNeeded"}));
                }
                entries.push(entry);
            };
            if self.keeps_rules && !of_class.is_empty() {
                for (name, entry) in ours(stored).filter(|(name, _)| is_of_class(name, phase, class)) {
                    let kept = entry.get("rules").filter(|rules| rules.is_array() && is_set(Some(rules)));
                    let Some(kept) = kept else { continue };
                    // The kinds may have other unions by now, of which the stored condition knows nothing.
                    let condition =
                        of_class.iter().find(|now| now.covers(kept)).and_then(|now| now.condition.as_deref());
                    add(name, kept, json!(options.match_conditions.with(condition)));
                }
                continue;
            }
            for EntryRules { label, condition, rules } in of_class {
                let label = label.as_ref().map(|label| format!(".{label}")).unwrap_or_default();
                let conditions = options.match_conditions.with(condition.as_deref());
                add(&format!("{phase}{class}{label}{DOMAIN}"), &json!(rules), json!(conditions));
            }
        }
        if kind == ConfigurationKind::Mutating {
            return entries;
        }
        // An inspection never fails a write: a declaration that was not inspected is judged when it is read, and its condition
        // reports faults.
        let path = inspection_token(stored).as_ref().unwrap_or(&self.fresh).path();
        let inspection = |name: &str, group: &str, version: &str, plural: &str| {
            let rules = json!([rule((group, vec![version], "Cluster"), [plural])]);
            self.entry(name, &path, FailurePolicy::Ignore, &rules, INSPECTION_TIMEOUT, &LabelSelector::default())
        };
        if self.inspects_declarations {
            entries.push(inspection(DECLARATIONS, "kube-unions.dev", "v1alpha1", "uniondeclarations"));
        }
        if self.inspects_definitions {
            let mut entry = inspection(DEFINITIONS, "apiextensions.k8s.io", "v1", "customresourcedefinitions");
            // The API server evaluates this expression instead of calling for a CRD without the annotation.
            let expression =
                format!("has(object.metadata.annotations) && \"{ANNOTATION}\" in object.metadata.annotations");
            let condition = json!({"name": "declares-unions", "expression": expression});
            set(&mut entry, json!({"matchConditions": [condition]}));
            entries.push(entry);
        }
        entries
    }

    fn entry(
        &self,
        name: &str,
        path: &str,
        policy: FailurePolicy,
        rules: &Value,
        timeout_seconds: u8,
        namespaces: &LabelSelector,
    ) -> WantedEntry {
        let ServiceReference { namespace, name: service, port, .. } = &self.settings.service;
        let exempt: BTreeSet<&str> = self.settings.exempt_namespaces().collect();
        // The API server ignores the selector for cluster-scoped objects, and matches a Namespace by its own labels.
        let namespaces = namespaces.excluding([
            ("kubernetes.io/metadata.name", exempt.into_iter().map(str::to_owned).collect()),
            ("kube-unions.dev/enforcement", vec!["disabled".to_owned()]),
        ]);
        let mut entry = WantedEntry::new();
        let fields = json!({
            "name": name,
            "rules": rules,
            "matchPolicy": "Equivalent",
            "namespaceSelector": namespaces,
            "objectSelector": {},
            "sideEffects": "None",
            "timeoutSeconds": timeout_seconds,
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"namespace": namespace, "name": service, "path": path, "port": port}},
            "failurePolicy": policy,
        });
        set(&mut entry, fields);
        entry
    }
}

impl Registration {
    /// Returns which conditions entries may have. `refused`: the expressions that an API server refuses. `pem`: the bytes of the CAs.
    pub(super) fn conditions<'r>(&self, refused: &'r BTreeSet<String>, pem: usize) -> EntryConditions<'r> {
        // Base64 has four bytes for three.
        let namespaces = self.excluded_namespaces.iter().map(|name| name.len().saturating_add(3)).sum::<usize>();
        self.entries.conditions(refused, pem.div_ceil(3).saturating_mul(4).saturating_add(namespaces))
    }

    fn exempt_namespaces(&self) -> impl Iterator<Item = &str> {
        let always = ["kube-system", &*self.service.namespace];
        self.excluded_namespaces.iter().map(String::as_str).chain(always)
    }

    /// Returns both webhook configurations to write for all kinds of a catalog, the mutating one first; `None` for one that is in
    /// sync.
    ///
    /// `ca`: the CA to register, PEM. `owner`: UID of the owner. `fresh`: token for inspections if none is stored. `stored`:
    /// the stored configurations, `None` for a missing one.
    pub fn written(
        &self,
        catalog: &Catalog,
        ca: &str,
        owner: &str,
        fresh: &InspectionToken,
        stored: &[Option<Value>; 2],
    ) -> [Option<Value>; 2] {
        let mut intent = Intent::empty(self.clone(), Trust::Agreed(ca.into()), fresh.clone());
        intent.rules = Arc::new(RegistrationRules::of(catalog, self.conditions(&BTreeSet::new(), ca.len())));
        (intent.inspects_declarations, intent.inspects_definitions) = (true, true);
        intent.owner = self.owner.clone().map(|name| Owner { name, uid: owner.to_owned() });
        intent.writes(stored, Some(ca))
    }
}

/// Returns the stored object with this bundle in our entries; `None` if they hold it already.
pub(super) fn with_bundle(stored: &Value, pem: &str) -> Option<Value> {
    let bundle = Value::from(BASE64_STANDARD.encode(pem));
    let mut desired = stored.clone();
    for entry in desired.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
        if name_of(entry).is_some_and(is_ours)
            && let Some(client) = entry.get_mut("clientConfig").and_then(Value::as_object_mut)
        {
            client.insert("caBundle".to_owned(), bundle.clone());
        }
    }
    (desired != *stored).then_some(desired)
}

/// Returns all entries: the stored ones in their order, then the missing ones.
fn webhooks(stored: &Value, mut missing: Vec<WantedEntry>, intent: &Intent, bundle: Option<&str>) -> Vec<Value> {
    let mut webhooks = Vec::new();
    for entry in entries(stored) {
        let name = name_of(entry).unwrap_or_default();
        if let Some(position) = missing.iter().position(|wanted| wanted.get("name").is_some_and(|it| it == name)) {
            webhooks.push(completed(entry, missing.remove(position), bundle));
        // A foreign entry that calls our Service would send us objects that we do not expect.
        } else if !is_ours(name) && !calls(entry, &intent.settings.service) {
            webhooks.push(entry.clone());
        }
    }
    // A new entry begins with the bundle that cert-manager has written into another one.
    let known = ours(stored).map(|(_, entry)| entry).find(|entry| !bundle_of(entry).is_empty());
    let known = known.and_then(|entry| entry.pointer("/clientConfig/caBundle"));
    let new = known.map_or(Value::Null, |bundle| json!({"clientConfig": {"caBundle": bundle}}));
    webhooks.extend(missing.into_iter().map(|entry| completed(&new, entry, bundle)));
    webhooks
}

/// Returns the entry to write in place of a stored one.
fn completed(stored: &Value, wanted: WantedEntry, bundle: Option<&str>) -> Value {
    let mut entry = stored.as_object().cloned().unwrap_or_default();
    let mut client = object_at(&entry, "clientConfig");
    if is_set(client.get("url")) {
        client.shift_remove("url");
    }
    let mut service = object_at(&client, "service");
    service.extend(object_at(&object_at(&wanted, "clientConfig"), "service"));
    set(&mut client, json!({"service": service}));
    // Without a bundle of ours, the stored one stays until cert-manager writes another one.
    if let Some(pem) = bundle {
        set(&mut client, json!({"caBundle": BASE64_STANDARD.encode(pem)}));
    }
    // The only field that is not always written out. A stored one would narrow the rules.
    if !wanted.contains_key("matchConditions") && is_set(entry.get("matchConditions")) {
        entry.shift_remove("matchConditions");
    }
    entry.extend(wanted);
    set(&mut entry, json!({"clientConfig": client}));
    // Without a bundle the API server cannot call the entry, and every write would fail.
    if bundle.is_none() && bundle_of(stored).is_empty() {
        set(&mut entry, json!({"failurePolicy": FailurePolicy::Ignore}));
    }
    entry.into()
}

/// Returns true if a field has a value other than null or an empty list.
fn is_set(value: Option<&Value>) -> bool {
    value.is_some_and(|value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()))
}

#[cfg(test)]
mod tests;
