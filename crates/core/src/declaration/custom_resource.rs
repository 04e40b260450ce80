//! The custom resource `UnionDeclaration` (`kube-unions.dev/v1alpha1`), which declares unions of kinds that others define.
//!
//! The wire types are those of the custom resource. A [`Declaration`] is the checked form: places and extensions, ready to
//! be grafted onto the schema of the target.

use super::{Actions, Fault, FaultKind, Normalization, Source, wire};
use crate::field_path::Printable;
use crate::names::GroupKind;
use crate::near::nearest;
use crate::schema::{Declared, Origin, Place, UnionOptions};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
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
        printcolumn = r#"{"name": "InForce", "type": "string", "priority": 1,
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

/// A union.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = structural))]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a union with `path`")]
pub struct DeclaredUnion {
    /// The object with the fields, for example `spec.strategy`. Use `spec.volumes[*]` for the items of a list,
    /// `spec.steps.*` for the values of a map, and the empty string for the whole object.
    pub path: String,
    /// The string field that names the member which is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discriminator: Option<String>,
    /// The 2022 form: the values of the discriminator and the fields that they select. List every value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_members: Option<BTreeMap<String, DeclaredMember>>,
    /// The 2019 form: the fields and the discriminator value of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields_to_discriminate_by: Option<BTreeMap<String, String>>,
    /// True if an object at the path must have a member set. In the 2022 form a value that selects no member, or an optional
    /// one, is enough. An object that is missing is not checked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// The members that count as not set if they are `false`, `0`, `""`, `{}` or `[]`. Such a value is never cleared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "kube", schemars(length(max = 128), extend("x-kubernetes-list-type" = "set")))]
    pub empty_is_unset: Vec<String>,
    /// True if the schema need not describe the fields, because it keeps unknown fields
    /// (`x-kubernetes-preserve-unknown-fields`) at the path or on the way to it. Fields that it does describe are checked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub schemaless: bool,
    /// With `schemaless`: the fields that identify an item, of each list on the way that the schema does not describe, for
    /// example `spec.template.spec.volumes: [name]`. Nothing can be cleared in a list without keys.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "kube", schemars(extend("maxProperties" = 16), transform = super::untyped::sets_of_keys))]
    pub list_keys: BTreeMap<String, Vec<String>>,
}

/// The field that a discriminator value selects.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = structural))]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a member: a map with `name`, or an empty one")]
pub struct DeclaredMember {
    /// The name of the field. A value without a name selects no field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// True if the field may be missing while it is selected.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

/// A document is not a `UnionDeclaration`.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages name the fields")]
#[non_exhaustive]
pub enum DeclarationError {
    /// The document is not JSON, or does not have the shape of a `UnionDeclaration`.
    #[error("not a readable UnionDeclaration: `{path}`: {message}")]
    Malformed {
        /// The path of the error.
        path: String,
        message: String,
    },
    /// The document is of another kind or version.
    #[error("not a UnionDeclaration of kube-unions.dev/v1alpha1: apiVersion is `{api_version}`, kind is `{kind}`")]
    NotADeclaration { api_version: String, kind: String },
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

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "a UnionDeclaration")]
struct WireDeclaration {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    metadata: wire::Metadata,
    spec: Value,
}

impl Declaration {
    /// Reads a `UnionDeclaration` from its JSON text. Returns it with the faults of the parts that were left out.
    pub fn from_json(text: &str) -> Result<(Self, Vec<Fault>), DeclarationError> {
        let document: WireDeclaration = wire::read(text, "")?;
        if (&*document.api_version, &*document.kind) != (API_VERSION, "UnionDeclaration") {
            let (api_version, kind) = (document.api_version, document.kind);
            return Err(DeclarationError::NotADeclaration { api_version, kind });
        }
        let spec: UnionDeclarationSpec = serde_path_to_error::deserialize(document.spec).map_err(|error| {
            let inner = error.path().to_string();
            let path = if inner == "." { "spec".to_owned() } else { format!("spec.{inner}") };
            DeclarationError::Malformed { path, message: error.inner().to_string() }
        })?;
        Ok(Self::from_spec(&document.metadata.name, &spec))
    }

    /// Checks a `UnionDeclaration`, given by name and spec. Returns it with the faults of the unions that were left out.
    pub fn from_spec(name: &str, spec: &UnionDeclarationSpec) -> (Self, Vec<Fault>) {
        let name: Arc<str> = name.into();
        let mut faults = Vec::new();
        let mut report = |kind: FaultKind, path: &str, pointer: String, message: String| {
            faults.push(Fault {
                declaration: Some(name.to_string()),
                path: path.to_owned(),
                source: Some(Source::Declaration),
                pointer,
                ..Fault::new(kind, &spec.target.group_kind().to_string(), message)
            });
        };
        if spec.target.kind.is_empty() {
            report(FaultKind::InvalidTarget, "", "/spec/target/kind".to_owned(), "the target names no kind".to_owned());
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

    /// Returns true if the target is this kind.
    pub fn targets(&self, group: &str, kind: &str) -> bool {
        (&*self.target.group, &*self.target.kind) == (group, kind)
    }

    /// Returns the versions of the target. If empty, the declaration applies to all versions.
    pub fn versions(&self) -> &[String] {
        &self.target.versions
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

impl DeclaredUnion {
    /// Returns the place in the schema and the extension for it, or the message of a fault.
    pub(super) fn graft(&self) -> Result<(Place, Value), String> {
        let object = Place::from_path(&self.path).map_err(|error| error.to_string())?;
        match (&self.field_members, &self.fields_to_discriminate_by, &self.discriminator) {
            (Some(members), None, Some(discriminator)) => {
                let member = |member: &DeclaredMember| match &member.name {
                    Some(name) => json!({"name": name, "optional": member.optional}),
                    None => Value::Null,
                };
                let members: Map<_, _> = members.iter().map(|(value, field)| (value.clone(), member(field))).collect();
                Ok((object.property(discriminator), json!({"fieldMembers": members})))
            }
            (None, Some(fields), discriminator) => {
                let mut union = json!({"fields-to-discriminateBy": fields});
                if let (Some(name), Some(union)) = (discriminator, union.as_object_mut()) {
                    union.insert("discriminator".to_owned(), name.as_str().into());
                }
                Ok((object, json!([union])))
            }
            (Some(_), None, None) => Err("`fieldMembers` needs the name of its `discriminator`".to_owned()),
            (Some(_), Some(_), _) => Err("has both `fieldMembers` and `fieldsToDiscriminateBy`; keep one".to_owned()),
            (None, None, _) => Err("has neither `fieldMembers` nor `fieldsToDiscriminateBy`; give one".to_owned()),
        }
    }

    /// Returns the rules that the extension cannot state, or the message of a fault.
    pub(super) fn options(&self) -> Result<UnionOptions, String> {
        let selected = self.field_members.iter().flat_map(BTreeMap::values).filter_map(|member| member.name.as_deref());
        let fields = self.fields_to_discriminate_by.iter().flat_map(BTreeMap::keys).map(String::as_str);
        let members: BTreeSet<&str> = selected.chain(fields).collect();
        let mut empty_is_unset: BTreeSet<&str> = BTreeSet::new();
        for name in &self.empty_is_unset {
            if !members.contains(&**name) {
                return Err(not_a_member(name, &members));
            }
            if !empty_is_unset.insert(name) {
                return Err(format!("`emptyIsUnset` has `{}` twice; remove one", Printable::new(name, usize::MAX)));
            }
        }
        let empty_is_unset = empty_is_unset.into_iter().map(Into::into).collect();
        Ok(UnionOptions { required: self.required, empty_is_unset })
    }
}

fn not_a_member(name: &str, members: &BTreeSet<&str>) -> String {
    let quoted = |name: &str| format!("`{}`", Printable::new(name, usize::MAX));
    let advice = match nearest(name, members.iter().copied()) {
        Some(similar) => format!("did you mean {}?", quoted(similar)),
        None => format!("the members are {}", members.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ")),
    };
    format!("`emptyIsUnset` has {}, which is not a member; {advice}", quoted(name))
}

fn deny() -> Vec<ValidationAction> {
    vec![ValidationAction::Deny]
}

/// Removes `additionalProperties: false`, which structural schemas do not have: the API server itself rejects or drops
/// unknown fields.
#[cfg(feature = "kube")]
fn structural(schema: &mut schemars::Schema) {
    schema.remove("additionalProperties");
}
