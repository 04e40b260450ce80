//! What the two configurations are to say.
//!
//! Every field that the API server would fill in is written out: a field that is left out could be anybody's.

use super::options::{EntryOptions, FailurePolicy, LabelSelector};
use super::rules::{Rule, Rules};
use crate::cluster::ServiceReference;
use kube_unions_core::admission::InspectionToken;
use kube_unions_core::declaration::ANNOTATION;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The name of both configurations.
pub(super) const NAME: &str = "kube-unions";

/// Has cert-manager write `caBundle`.
pub(super) const INJECT: &str = "cert-manager.io/inject-ca-from";

/// Names the installation that keeps a configuration, by its Service.
pub(super) const INSTALLATION: &str = "kube-unions.dev/installation";

/// Seconds that the API server waits for an inspection.
const INSPECTION_TIMEOUT: u8 = 5;

const DECLARATIONS: &str = "declarations.kube-unions.dev";
const DEFINITIONS: &str = "definitions.kube-unions.dev";

/// The names of all entries that there can be.
const ENTRIES: [&str; 6] = [
    "mutate.kube-unions.dev",
    "mutate.builtin.kube-unions.dev",
    "validate.kube-unions.dev",
    "validate.builtin.kube-unions.dev",
    DECLARATIONS,
    DEFINITIONS,
];

/// Which of the two configurations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Mutating,
    Validating,
}

/// One configuration as it is to be. Without entries it need not be there.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Wanted {
    pub(super) phase: Phase,
    pub(super) service: ServiceReference,
    pub(super) annotations: Map<String, Value>,
    pub(super) labels: Map<String, Value>,
    /// The object with which the configuration is to go; `None` leaves the stored owners as they are.
    pub(super) owner: Option<Owner>,
    pub(super) ca: CaBundle,
    /// The token for inspections, unless a well-formed one is stored.
    pub(super) fresh: InspectionToken,
    /// In the order of [`ENTRIES`].
    pub(super) entries: Vec<Entry>,
}

/// One entry as it is to be.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) name: &'static str,
    /// The path that the API server calls; `None` for that of inspections.
    pub(super) path: Option<&'static str>,
    /// Policy once there is a bundle.
    pub(super) failure_policy: FailurePolicy,
    /// Every other field but `name` and `clientConfig`.
    pub(super) fields: Map<String, Value>,
}

/// The `ClusterRole` that owns the configurations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) name: String,
    pub(super) uid: String,
}

/// What entries say, whatever they are about.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    pub(super) service: ServiceReference,
    options: EntryOptions,
    /// Sorted, distinct.
    excluded: BTreeSet<String>,
}

/// Where `caBundle` comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CaBundle {
    /// From us: PEM.
    Ours(String),
    /// From cert-manager, of this Certificate.
    Injected(String),
}

/// Which inspections are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Inspections {
    /// True if the API server is to ask about `UnionDeclaration`s.
    pub(super) declarations: bool,
    /// True if the API server is to ask about definitions with the annotation.
    pub(super) definitions: bool,
}

impl Phase {
    pub(super) const BOTH: [Self; 2] = [Self::Mutating, Self::Validating];

    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Mutating => "MutatingWebhookConfiguration",
            Self::Validating => "ValidatingWebhookConfiguration",
        }
    }

    pub(super) fn plural(self) -> &'static str {
        match self {
            Self::Mutating => "mutatingwebhookconfigurations",
            Self::Validating => "validatingwebhookconfigurations",
        }
    }
}

/// Returns whether an entry of that name is ours.
pub(super) fn is_ours(name: &str) -> bool {
    ENTRIES.contains(&name)
}

impl Owner {
    /// Returns the reference that the garbage collector reads. It does not block the deletion of the owner.
    pub(super) fn reference(&self) -> Value {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "name": self.name,
            "uid": self.uid,
        })
    }
}

impl Frame {
    /// Beside kube-system and the service's own namespace those of `excluded` are left alone.
    pub(super) fn new(service: ServiceReference, options: EntryOptions, excluded: &[String]) -> Self {
        let mut all: BTreeSet<String> = excluded.iter().cloned().collect();
        all.insert("kube-system".to_owned());
        all.insert(service.namespace.to_string());
        Self { service, options, excluded: all }
    }

    /// Returns the configuration of a phase.
    pub(super) fn wanted(
        &self,
        phase: Phase,
        rules: &Rules,
        inspections: Inspections,
        ca: CaBundle,
        owner: Option<Owner>,
        fresh: InspectionToken,
    ) -> Wanted {
        let options = &self.options;
        let (path, custom, builtin) = match phase {
            Phase::Mutating => ("/mutate", "mutate.kube-unions.dev", "mutate.builtin.kube-unions.dev"),
            Phase::Validating => ("/validate", "validate.kube-unions.dev", "validate.builtin.kube-unions.dev"),
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
            if phase == Phase::Mutating {
                put(&mut fields, "reinvocationPolicy", "IfNeeded".into());
            }
            entries.push(Entry { name, path: Some(path), failure_policy, fields });
        }
        if phase == Phase::Validating {
            entries.extend(inspections.declarations.then(|| self.inspection(DECLARATIONS, Rule::of_declarations())));
            entries.extend(inspections.definitions.then(|| {
                let mut entry = self.inspection(DEFINITIONS, Rule::of_definitions());
                // A definition without the annotation costs the API server this expression, and no call.
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
        if let CaBundle::Injected(from) = &ca {
            put(&mut annotations, INJECT, from.as_str().into());
        }
        let labels = [("app.kubernetes.io/name", NAME), ("app.kubernetes.io/managed-by", NAME)];
        let labels = labels.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect();
        let service = self.service.clone();
        Wanted { phase, service, annotations, labels, owner, ca, fresh, entries }
    }

    /// An entry for what is inspected. It never fails a write: a declaration that nobody has inspected is judged when it is
    /// read, and its condition tells.
    fn inspection(&self, name: &'static str, rule: Rule) -> Entry {
        let fields = self.fields(&[rule], INSPECTION_TIMEOUT, &LabelSelector::default());
        Entry { name, path: None, failure_policy: FailurePolicy::Ignore, fields }
    }

    fn fields(&self, rules: &[Rule], timeout_seconds: u8, namespaces: &LabelSelector) -> Map<String, Value> {
        // For an object outside of namespaces the API server asks no namespace selector; for a namespace, its own labels.
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
