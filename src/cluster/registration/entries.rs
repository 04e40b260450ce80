//! What the two configurations are to say.
//!
//! Every field that the API server would fill in is written out: what is not said could be anybody's.

use super::rules::{Rule, Rules};
use crate::cluster::ServiceReference;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The name of both configurations.
pub(super) const NAME: &str = "kube-unions";

/// Has cert-manager write `caBundle`.
pub(super) const INJECT: &str = "cert-manager.io/inject-ca-from";

/// The names of all entries that there can be.
const ENTRIES: [&str; 5] = [
    "mutate.kube-unions.dev",
    "mutate.builtin.kube-unions.dev",
    "validate.kube-unions.dev",
    "validate.builtin.kube-unions.dev",
    "declarations.kube-unions.dev",
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
    pub(super) annotations: Map<String, Value>,
    pub(super) labels: Map<String, Value>,
    /// In the order of [`ENTRIES`].
    pub(super) webhooks: Vec<Value>,
}

/// What entries say, whatever they are about.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    pub(super) service: ServiceReference,
    /// Sorted, distinct.
    excluded: BTreeSet<Box<str>>,
}

/// Where `caBundle` comes from in the configurations as they are now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CaBundle {
    /// From us: PEM.
    Ours(String),
    /// From cert-manager, of this Certificate. The entries that hold one already are named.
    Injected { from: String, held_by: BTreeSet<String> },
    /// Whatever it is.
    Any,
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

/// Whether an entry of that name is ours.
pub(super) fn is_ours(name: &str) -> bool {
    ENTRIES.contains(&name)
}

impl Frame {
    /// Beside kube-system and the service's own these namespaces are left alone.
    pub(super) fn new(service: ServiceReference, excluded: &[String]) -> Self {
        let mut all: BTreeSet<Box<str>> = excluded.iter().map(|name| name.as_str().into()).collect();
        all.insert("kube-system".into());
        all.insert(service.namespace.clone());
        Self { service, excluded: all }
    }

    /// The configuration of a phase; `declarations` says whether there are declarations to check.
    pub(super) fn wanted(&self, phase: Phase, rules: &Rules, declarations: bool, ca: &CaBundle) -> Wanted {
        let path = match phase {
            Phase::Mutating => "mutate",
            Phase::Validating => "validate",
        };
        let mut webhooks = Vec::new();
        for (name, rules, failure_policy) in [
            (format!("{path}.kube-unions.dev"), &rules.custom, "Fail"),
            (format!("{path}.builtin.kube-unions.dev"), &rules.builtin, "Ignore"),
        ] {
            if !rules.is_empty() {
                let mut webhook = self.webhook(&name, path, rules, failure_policy, ca);
                if phase == Phase::Mutating {
                    put(&mut webhook, "reinvocationPolicy", "IfNeeded".into());
                }
                webhooks.push(webhook);
            }
        }
        if declarations && phase == Phase::Validating {
            let rules = [Rule::of_declarations()];
            // What nobody checks here, its condition tells.
            webhooks.push(self.webhook("declarations.kube-unions.dev", path, &rules, "Ignore", ca));
        }
        let mut annotations = Map::new();
        if let CaBundle::Injected { from, .. } = ca {
            annotations.insert(INJECT.to_owned(), from.as_str().into());
        }
        let labels = [("app.kubernetes.io/name", NAME), ("app.kubernetes.io/managed-by", NAME)];
        let labels = labels.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect();
        Wanted { annotations, labels, webhooks }
    }

    fn webhook(&self, name: &str, path: &str, rules: &[Rule], failure_policy: &str, ca: &CaBundle) -> Value {
        let ServiceReference { namespace, name: service, port } = &self.service;
        let mut client = json!({
            "service": {"namespace": namespace, "name": service, "path": format!("/{path}"), "port": port},
        });
        let mut failure_policy = failure_policy;
        match ca {
            CaBundle::Ours(pem) => put(&mut client, "caBundle", BASE64_STANDARD.encode(pem).into()),
            // Nobody can be called yet: that must block nothing.
            CaBundle::Injected { held_by, .. } if !held_by.contains(name) => failure_policy = "Ignore",
            CaBundle::Injected { .. } | CaBundle::Any => {}
        }
        // To an object in no namespace the API server asks no selector of namespaces; to a namespace, its own labels.
        json!({
            "name": name,
            "clientConfig": client,
            "rules": rules,
            "failurePolicy": failure_policy,
            "matchPolicy": "Equivalent",
            "namespaceSelector": {"matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": self.excluded},
                {"key": "kube-unions.dev/enforcement", "operator": "NotIn", "values": ["disabled"]},
            ]},
            "objectSelector": {},
            "sideEffects": "None",
            "timeoutSeconds": 5,
            "admissionReviewVersions": ["v1"],
        })
    }
}

impl Wanted {
    /// The object to apply. With the version that it is meant for it creates nothing and writes over nothing newer.
    pub(super) fn object(&self, phase: Phase, version: Option<&str>) -> Value {
        let mut object = envelope(phase, version, &self.webhooks);
        if let Some(metadata) = object.get_mut("metadata") {
            put(metadata, "labels", Value::Object(self.labels.clone()));
            if !self.annotations.is_empty() {
                put(metadata, "annotations", Value::Object(self.annotations.clone()));
            }
        }
        object
    }
}

/// A configuration with nothing but these entries.
pub(super) fn envelope(phase: Phase, version: Option<&str>, webhooks: &[Value]) -> Value {
    let mut metadata = json!({"name": NAME});
    if let Some(version) = version {
        put(&mut metadata, "resourceVersion", version.into());
    }
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": phase.kind(),
        "metadata": metadata,
        "webhooks": webhooks,
    })
}

fn put(object: &mut Value, key: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        object.insert(key.to_owned(), value);
    }
}
