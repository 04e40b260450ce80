//! The custom resource `UnionDeclaration` (`kube-unions.dev/v1alpha1`), which declares unions of kinds that others define.
//!
//! The wire types are those of the custom resource. A [`Declaration`] is the checked form: places and extensions, ready to
//! be grafted onto the schema of the target.

use super::declared_union::DeclaredUnion;
use super::{Actions, DefinitionError, Fault, FaultKind, Normalization, wire};
use crate::names::GroupKind;
#[cfg(feature = "kube")]
use crate::schema::structural;
use crate::schema::{Declared, Origin, Place};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The `apiVersion` of a `UnionDeclaration`.
pub(super) const API_VERSION: &str = "kube-unions.dev/v1alpha1";

/// Declares which fields of a kind are unions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "kube", derive(kube::CustomResource, schemars::JsonSchema))]
#[cfg_attr(
    feature = "kube",
    kube(
        group = "kube-unions.dev",
        version = "v1alpha1",
        kind = "UnionDeclaration",
        doc = "Declares which fields of a kind are unions, for kinds that somebody else owns: built-in types and CRDs of others.",
        derive = "PartialEq",
        status = "UnionDeclarationStatus",
        shortname = "ud",
        category = "kube-unions",
        printcolumn = r#"{"name": "Group", "type": "string", "jsonPath": ".spec.target.group"}"#,
        printcolumn = r#"{"name": "Target", "type": "string", "jsonPath": ".spec.target.kind"}"#,
        printcolumn = r#"{"name": "Unions", "type": "string", "jsonPath": ".status.unions",
            "description": "Unions in force, of those declared"}"#,
        printcolumn = r#"{"name": "Accepted", "type": "string",
            "jsonPath": ".status.conditions[?(@.type==\"Accepted\")].status"}"#,
        printcolumn = r#"{"name": "Reason", "type": "string", "priority": 1,
            "jsonPath": ".status.conditions[?(@.type==\"Accepted\")].reason"}"#,
        printcolumn = r#"{"name": "InForce", "type": "string",
            "jsonPath": ".status.conditions[?(@.type==\"InForce\")].status"}"#,
        printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
    ),
    schemars(transform = structural, extend("x-kubernetes-validations" = [{
        "rule": "has(self.unions) && self.unions.size() > 0 || has(self.podTemplates) && self.podTemplates.size() > 0",
        "message": "declare at least one union, or a pod template",
        "reason": "FieldValueRequired",
        "fieldPath": ".unions"
    }]))
)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "the spec of a UnionDeclaration")]
pub struct UnionDeclarationSpec {
    /// The kind whose fields are declared. Its schema comes from the cluster.
    pub target: Target,
    /// The treatment of an object that normalisation would change. `Enabled`, the default, clears the members that a write did
    /// not choose, and deduces discriminators. `Disabled` changes nothing: objects are only judged. Use it for a kind whose
    /// controller sets several members itself.
    #[serde(default, skip_serializing_if = "Normalization::is_enabled")]
    pub normalization: Normalization,
    /// The actions for an object that violates a union, as in a `ValidatingAdmissionPolicyBinding`: `Deny` rejects it, `Warn`
    /// accepts it with a warning, `Audit` counts it in a metric and writes an audit annotation. `Deny` and `Warn` exclude each
    /// other.
    #[serde(default = "deny", skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "kube", schemars(
        length(min = 1, max = 3),
        extend("x-kubernetes-list-type" = "set", "x-kubernetes-validations" = [{
            "rule": "!('Deny' in self && 'Warn' in self)",
            "message": "must not contain both Deny and Warn: a denial already says what a warning would repeat",
        }])
    ))]
    pub validation_actions: Vec<ValidationAction>,
    /// The unions. They may be left out if there are `podTemplates`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "kube", schemars(length(max = 256), extend("x-kubernetes-list-type" = "atomic")))]
    pub unions: Vec<DeclaredUnion>,
    /// The places of pod templates, for example `spec.template`. Declares all unions of a pod there: the volumes, and of
    /// containers the environment variables, handlers and security profiles. The schema need not describe them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "kube", schemars(length(max = 16), extend("x-kubernetes-list-type" = "set")))]
    pub pod_templates: Vec<String>,
}

/// The status of a `UnionDeclaration`, written by the webhook.
#[cfg(feature = "kube")]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", expecting = "the status of a UnionDeclaration")]
pub struct UnionDeclarationStatus {
    /// Conditions. `Accepted` is `True` if every union is valid, and `Unknown` if the cluster does not have the target.
    /// `InForce` is `True` if at least one union is in force; its message names what the schema of the target lacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition>,
    /// The number of unions in force and of those declared, for example `3/4`. A union counts if it is in force in one of the
    /// served versions to which the declaration applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unions: Option<String>,
}

/// A kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = structural))]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a target with `group` and `kind`")]
pub struct Target {
    /// The API group, empty for the core group.
    #[serde(default)]
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The versions to which the declaration applies. If empty, it applies to all versions that are served.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "kube", schemars(length(max = 32), extend("x-kubernetes-list-type" = "set")))]
    pub versions: Vec<String>,
}

/// The action for an object that violates a union.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
pub enum ValidationAction {
    /// Reject the object.
    Deny,
    /// Accept the object with a warning.
    Warn,
    /// Count the violation and write it to the audit log.
    Audit,
}

/// A checked `UnionDeclaration`. It leaves out unions that are invalid in themselves.
#[derive(Debug, Clone, PartialEq)]
pub struct Declaration {
    name: Arc<str>,
    target: Target,
    unions: Vec<(Place, Declared)>,
    /// The number of declared unions, with those that are invalid in themselves.
    declared: usize,
}

impl Declaration {
    /// Reads a `UnionDeclaration` from its JSON text. Returns it with the faults of the parts that were left out.
    pub fn from_json(text: &str) -> Result<(Self, Vec<Fault>), DefinitionError> {
        const KIND: &str = "UnionDeclaration";
        let document: wire::WireDocument<Value> = wire::read_object(text, (API_VERSION, KIND))?;
        let spec: UnionDeclarationSpec = serde_path_to_error::deserialize(document.spec).map_err(|error| {
            let inner = error.path().to_string();
            let path = if inner == "." { "spec".to_owned() } else { format!("spec.{inner}") };
            let advice = if inner.ends_with(".fieldsToDiscriminateBy") {
                "; write `fieldsToDiscriminateBy: {FIELD: VALUE, …}`, or without a discriminator `members: [FIELD, …]`"
            } else {
                ""
            };
            DefinitionError::Malformed { wanted: KIND, path, message: format!("{}{advice}", error.inner()) }
        })?;
        Ok(Self::from_spec(&document.metadata.name, &spec))
    }

    /// Checks a `UnionDeclaration`, given by name and spec. Returns it with the faults of the unions that were left out.
    pub fn from_spec(name: &str, spec: &UnionDeclarationSpec) -> (Self, Vec<Fault>) {
        let name: Arc<str> = name.into();
        let mut faults = Vec::new();
        let mut report = |kind: FaultKind, path: &str, pointer: String, message: String| {
            let definition = spec.target.group_kind().to_string();
            let fault = Fault::of_declaration(kind, &definition, &name, &pointer, message);
            faults.push(Fault { path: path.to_owned(), ..fault });
        };
        if spec.target.kind.is_empty() {
            report(FaultKind::InvalidTarget, "", "/spec/target/kind".to_owned(), "the target names no kind".to_owned());
        }
        if let Some(name) = first_repeated(&spec.target.versions) {
            let message = format!("`versions` has `{name}` twice; remove one");
            report(FaultKind::InvalidTarget, "", "/spec/target/versions".to_owned(), message);
        }
        let actions = ValidationAction::set_of(&spec.validation_actions).unwrap_or_else(|(actions, message)| {
            report(FaultKind::InvalidActions, "", "/spec/validationActions".to_owned(), message.to_owned());
            actions
        });
        let normalization = spec.normalization;
        if spec.unions.is_empty() && spec.pod_templates.is_empty() {
            report(FaultKind::NoUnions, "", "/spec/unions".to_owned(), "no union is declared".to_owned());
        }
        let mut unions = Vec::new();
        for (entry, union) in spec.entries(&mut report) {
            match union.checked() {
                Ok((place, declared)) => {
                    let origin = Some(Origin { declaration: Arc::clone(&name), entry });
                    unions.push((place, Declared { origin, actions, normalization, ..declared }));
                }
                Err(message) => {
                    report(FaultKind::InvalidUnion, &union.path, entry.pointer(), message);
                }
            }
        }
        let declared = spec.union_count();
        (Self { name: Arc::clone(&name), target: spec.target.clone(), unions, declared }, faults)
    }

    /// Returns the name of the `UnionDeclaration`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the target.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Returns the number of declared unions, with those that are invalid in themselves.
    pub fn declared(&self) -> usize {
        self.declared
    }

    /// Returns the declared unions with their places.
    pub(super) fn unions(&self) -> &[(Place, Declared)] {
        &self.unions
    }
}

impl Target {
    /// Returns the target kind.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind::new(&*self.group, &*self.kind)
    }
}

impl ValidationAction {
    /// Returns the set of these actions, [`Actions::Deny`] if there are none. A list that the API server would refuse is an
    /// error: the strictest set of its actions, and the message of a fault.
    fn set_of(listed: &[Self]) -> Result<Actions, (Actions, &'static str)> {
        let [denies, warns, audit] = [Self::Deny, Self::Warn, Self::Audit].map(|action| listed.contains(&action));
        let actions = match (denies || listed.is_empty(), warns) {
            (true, _) => Actions::Deny { audit },
            (false, true) => Actions::Warn { audit },
            (false, false) => Actions::Audit,
        };
        let distinct = [denies, warns, audit].into_iter().filter(|listed| *listed).count();
        if denies && warns {
            return Err((
                actions,
                "`validationActions` must not contain both Deny and Warn: a denial already says what a warning would \
                 repeat; remove one",
            ));
        }
        if distinct < listed.len() {
            return Err((actions, "`validationActions` contains an action twice; remove one"));
        }
        Ok(actions)
    }
}

/// Returns the first text of a list that stands in it before. The API server refuses such a set.
fn first_repeated(set: &[String]) -> Option<&String> {
    let mut known = BTreeSet::new();
    set.iter().find(|text| !known.insert(*text))
}

fn deny() -> Vec<ValidationAction> {
    vec![ValidationAction::Deny]
}
