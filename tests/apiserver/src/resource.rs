//! The resources that are served: those of this crate's own table, and those that CRDs define.

use serde_json::Value;
use std::sync::Arc;

/// The group of webhook configurations and policies.
pub(crate) const ADMISSION: &str = "admissionregistration.k8s.io";

/// The collection of CRDs in the storage.
pub(crate) const DEFINITIONS: &str = "apiextensions.k8s.io/customresourcedefinitions";
/// The collection of namespaces in the storage.
pub(crate) const NAMESPACES: &str = "/namespaces";
/// The collection of `APIService`s in the storage.
pub(crate) const SERVICES: &str = "apiregistration.k8s.io/apiservices";

/// A kind of this crate's own table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BuiltinKind {
    Namespace,
    Secret,
    ConfigMap,
    Service,
    ServiceAccount,
    ClusterRole,
    Deployment,
    Lease,
    CustomResourceDefinition,
    ApiService,
    MutatingWebhookConfiguration,
    ValidatingWebhookConfiguration,
    MutatingAdmissionPolicy,
    MutatingAdmissionPolicyBinding,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
}

/// A resource at one version.
#[derive(Debug, Clone)]
pub(crate) struct ResourceInfo {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) namespaced: bool,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) subresources: Vec<&'static str>,
    /// `None` for a custom resource.
    pub(crate) builtin: Option<BuiltinKind>,
    /// The CRD and the version's part of it.
    pub(crate) custom: Option<CustomVersion>,
}

/// The part of a CRD about one of its versions.
#[derive(Debug, Clone)]
pub(crate) struct CustomVersion {
    pub(crate) definition: Arc<Value>,
    /// The entry of `spec.versions`.
    pub(crate) version: Value,
    pub(crate) is_terminating: bool,
}

struct Row {
    group: &'static str,
    version: &'static str,
    plural: &'static str,
    kind: &'static str,
    builtin: BuiltinKind,
    namespaced: bool,
    short_names: &'static [&'static str],
    categories: &'static [&'static str],
    subresources: &'static [&'static str],
}

macro_rules! rows {
    ($($group:literal $version:literal $plural:literal $kind:literal $builtin:ident $namespaced:literal
        $short:expr, $categories:expr, $sub:expr;)*) => {
        &[$(Row {
            group: $group, version: $version, plural: $plural, kind: $kind, builtin: BuiltinKind::$builtin,
            namespaced: $namespaced, short_names: &$short, categories: &$categories, subresources: &$sub,
        }),*]
    };
}

const ROWS: &[Row] = rows! {
    "" "v1" "configmaps" "ConfigMap" ConfigMap true ["cm"], [], [];
    "" "v1" "namespaces" "Namespace" Namespace false ["ns"], [], ["finalize", "status"];
    "" "v1" "secrets" "Secret" Secret true [], [], [];
    "" "v1" "serviceaccounts" "ServiceAccount" ServiceAccount true ["sa"], [], [];
    "" "v1" "services" "Service" Service true ["svc"], ["all"], ["status"];
    "admissionregistration.k8s.io" "v1" "mutatingadmissionpolicies" "MutatingAdmissionPolicy" MutatingAdmissionPolicy false
        [], ["api-extensions"], [];
    "admissionregistration.k8s.io" "v1" "mutatingadmissionpolicybindings" "MutatingAdmissionPolicyBinding"
        MutatingAdmissionPolicyBinding false [], ["api-extensions"], [];
    "admissionregistration.k8s.io" "v1" "mutatingwebhookconfigurations" "MutatingWebhookConfiguration"
        MutatingWebhookConfiguration false [], ["api-extensions"], [];
    "admissionregistration.k8s.io" "v1" "validatingadmissionpolicies" "ValidatingAdmissionPolicy"
        ValidatingAdmissionPolicy false [], ["api-extensions"], ["status"];
    "admissionregistration.k8s.io" "v1" "validatingadmissionpolicybindings" "ValidatingAdmissionPolicyBinding"
        ValidatingAdmissionPolicyBinding false [], ["api-extensions"], [];
    "admissionregistration.k8s.io" "v1" "validatingwebhookconfigurations" "ValidatingWebhookConfiguration"
        ValidatingWebhookConfiguration false [], ["api-extensions"], [];
    "apiextensions.k8s.io" "v1" "customresourcedefinitions" "CustomResourceDefinition" CustomResourceDefinition false
        ["crd", "crds"], ["api-extensions"], ["status"];
    "apiregistration.k8s.io" "v1" "apiservices" "APIService" ApiService false [], ["api-extensions"], ["status"];
    "apps" "v1" "deployments" "Deployment" Deployment true ["deploy"], ["all"], ["scale", "status"];
    "coordination.k8s.io" "v1" "leases" "Lease" Lease true [], [], [];
    "rbac.authorization.k8s.io" "v1" "clusterroles" "ClusterRole" ClusterRole false [], [], [];
};

/// Groups and versions of the table, with the priorities of their `APIService`s, best first.
pub(crate) const BUILTIN_GROUPS: [(&str, &str, u64, u64); 6] = [
    ("", "v1", 18000, 1),
    ("apiregistration.k8s.io", "v1", 18000, 15),
    ("apps", "v1", 17800, 15),
    ("rbac.authorization.k8s.io", "v1", 17000, 15),
    ("admissionregistration.k8s.io", "v1", 16700, 15),
    ("apiextensions.k8s.io", "v1", 16700, 15),
];

/// The group of leases, behind the others.
pub(crate) const LEASES: (&str, &str, u64, u64) = ("coordination.k8s.io", "v1", 16500, 15);

impl Row {
    fn info(&self) -> ResourceInfo {
        let texts = |all: &[&str]| all.iter().map(|&it| it.to_owned()).collect();
        ResourceInfo {
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            plural: self.plural.to_owned(),
            singular: self.kind.to_lowercase(),
            kind: self.kind.to_owned(),
            list_kind: format!("{}List", self.kind),
            namespaced: self.namespaced,
            short_names: texts(self.short_names),
            categories: texts(self.categories),
            subresources: self.subresources.to_vec(),
            builtin: Some(self.builtin),
            custom: None,
        }
    }
}

/// Returns a resource of the table.
pub(crate) fn builtin(group: &str, version: &str, plural: &str) -> Option<ResourceInfo> {
    let row = ROWS.iter().find(|row| row.group == group && row.version == version && row.plural == plural)?;
    Some(row.info())
}

/// Returns the resources of a group and version of the table.
pub(crate) fn builtins_of(group: &str, version: &str) -> Vec<ResourceInfo> {
    ROWS.iter().filter(|row| row.group == group && row.version == version).map(Row::info).collect()
}

/// Returns true if the API server serves a group from its own code.
pub(crate) fn is_builtin_group(group: &str) -> bool {
    ROWS.iter().any(|row| row.group == group)
}

/// Returns the namespaced collections of the table.
pub(crate) fn namespaced_collections() -> impl Iterator<Item = String> {
    ROWS.iter().filter(|row| row.namespaced).map(|row| format!("{}/{}", row.group, row.plural))
}

/// Returns the resource that a CRD defines at a version, if it is served and its names are accepted.
pub(crate) fn defined(definition: &Arc<Value>, version: &str) -> Option<ResourceInfo> {
    let spec = definition.get("spec")?;
    let text = |pointer: &str| spec.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let entry = spec.get("versions")?.as_array()?.iter().find(|it| {
        it.get("name").and_then(Value::as_str) == Some(version) && it.get("served") == Some(&Value::Bool(true))
    })?;
    if !has_condition(definition, "NamesAccepted") && !has_condition(definition, "Established") {
        return None;
    }
    let list = |pointer: &str| {
        let all = spec.pointer(pointer).and_then(Value::as_array);
        all.into_iter().flatten().filter_map(|it| it.as_str().map(str::to_owned)).collect()
    };
    let mut subresources = Vec::new();
    for name in ["scale", "status"] {
        if entry.pointer(&format!("/subresources/{name}")).is_some_and(Value::is_object) {
            subresources.push(name);
        }
    }
    Some(ResourceInfo {
        group: text("/group"),
        version: version.to_owned(),
        plural: text("/names/plural"),
        singular: text("/names/singular"),
        kind: text("/names/kind"),
        list_kind: text("/names/listKind"),
        namespaced: text("/scope") == "Namespaced",
        short_names: list("/names/shortNames"),
        categories: list("/names/categories"),
        subresources,
        builtin: None,
        custom: Some(CustomVersion {
            definition: Arc::clone(definition),
            version: entry.clone(),
            is_terminating: has_condition(definition, "Terminating"),
        }),
    })
}

/// Returns true if a condition of the status is true.
pub(crate) fn has_condition(object: &Value, of_type: &str) -> bool {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| {
        condition.get("type").and_then(Value::as_str) == Some(of_type)
            && condition.get("status").and_then(Value::as_str) == Some("True")
    })
}

impl ResourceInfo {
    /// Returns the name of the collection in the storage, the same for all versions.
    pub(crate) fn collection(&self) -> String {
        format!("{}/{}", self.group, self.plural)
    }

    /// Returns the prefix of the keys in etcd.
    pub(crate) fn storage_prefix(&self) -> String {
        match self.builtin {
            Some(BuiltinKind::Service) => "services/specs".to_owned(),
            Some(BuiltinKind::CustomResourceDefinition | BuiltinKind::ApiService) | None => self.collection(),
            Some(_) => self.plural.clone(),
        }
    }

    /// Returns `deployments.apps`, or `secrets`.
    pub(crate) fn group_resource(&self) -> String {
        let dot = if self.group.is_empty() { "" } else { "." };
        format!("{}{dot}{}", self.plural, self.group)
    }

    pub(crate) fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    pub(crate) fn has_subresource(&self, name: &str) -> bool {
        self.subresources.contains(&name)
    }

    /// Returns true if the status is written apart from the rest.
    pub(crate) fn has_status(&self) -> bool {
        self.has_subresource("status")
    }

    /// Returns true if a replacement may come without a `resourceVersion`.
    pub(crate) fn allows_unconditional_update(&self) -> bool {
        use BuiltinKind::{ClusterRole, ConfigMap, Deployment, Namespace, Secret, Service, ServiceAccount};
        matches!(
            self.builtin,
            Some(Namespace | Secret | ConfigMap | Service | ServiceAccount | Deployment | ClusterRole)
        )
    }

    /// Returns true if a replacement may create the object.
    pub(crate) fn allows_create_on_update(&self) -> bool {
        matches!(self.builtin, Some(BuiltinKind::Lease | BuiltinKind::ClusterRole | BuiltinKind::Service))
    }

    pub(crate) fn has_field_label(&self, field: &str) -> bool {
        let own: &[&str] = match self.builtin {
            Some(BuiltinKind::Namespace) => &["status.phase"],
            Some(BuiltinKind::Secret) => &["type"],
            Some(BuiltinKind::Service) => &["spec.clusterIP", "spec.type"],
            _ => &[],
        };
        field == "metadata.name" || field == "metadata.namespace" || own.contains(&field) || self.is_selectable(field)
    }

    pub(crate) fn unknown_field_label(&self, field: &str) -> String {
        match self.builtin {
            Some(BuiltinKind::Namespace | BuiltinKind::Secret | BuiltinKind::Service) | None => {
                format!("field label not supported: {field}")
            }
            Some(_) => {
                format!("\"{field}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
            }
        }
    }

    /// Returns true if the CRD lists the field in `selectableFields`.
    fn is_selectable(&self, field: &str) -> bool {
        let fields = self.custom.as_ref().and_then(|custom| custom.version.get("selectableFields")?.as_array());
        let path = format!(".{field}");
        fields.into_iter().flatten().any(|it| it.get("jsonPath").and_then(Value::as_str) == Some(&path))
    }
}

/// Returns `group/version`, or `version` for the core group.
pub(crate) fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}
