//! How the lists and maps of a kind are merged: by which keys, or as a whole.

use crate::resource::ResourceInfo;
use serde_json::Value;

/// A place in the objects of a kind.
#[derive(Debug, Clone)]
pub(crate) struct FieldType<'r> {
    /// The schema of a custom resource at this place.
    schema: Option<&'r Value>,
    is_custom: bool,
    /// The fields from the root, without items of lists: `.spec.ports`.
    path: String,
}

/// How a list is merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListType {
    /// As a whole.
    Atomic,
    /// As a set of its items.
    Set,
    /// By these fields of the items.
    Keyed(Vec<String>),
}

/// Lists of the table's kinds by their keys.
const KEYED: [(&str, &[&str]); 17] = [
    (".metadata.ownerReferences", &["uid"]),
    (".webhooks", &["name"]),
    (".webhooks.matchConditions", &["name"]),
    (".spec.matchConditions", &["name"]),
    (".spec.variables", &["name"]),
    (".spec.template.spec.containers", &["name"]),
    (".spec.template.spec.initContainers", &["name"]),
    (".spec.template.spec.volumes", &["name"]),
    (".spec.template.spec.containers.env", &["name"]),
    (".spec.template.spec.initContainers.env", &["name"]),
    (".spec.template.spec.containers.ports", &["containerPort", "protocol"]),
    (".spec.template.spec.containers.volumeMounts", &["mountPath"]),
    (".spec.template.spec.imagePullSecrets", &["name"]),
    (".spec.ports", &["port", "protocol"]),
    (".secrets", &["name"]),
    (".imagePullSecrets", &["name"]),
    (".status.conditions", &["type"]),
];

/// Maps of the table's kinds that are replaced as a whole.
const ATOMIC: [&str; 10] = [
    ".spec.selector",
    ".metadata.ownerReferences",
    ".webhooks.namespaceSelector",
    ".webhooks.objectSelector",
    ".spec.matchConstraints",
    ".spec.matchResources",
    ".spec.paramRef",
    ".spec.paramKind",
    ".aggregationRule",
    ".spec.template.spec.nodeSelector",
];

impl<'r> FieldType<'r> {
    pub(crate) fn root(resource: &'r ResourceInfo) -> Self {
        let custom = resource.custom.as_ref();
        let schema = custom.and_then(|custom| custom.version.pointer("/schema/openAPIV3Schema"));
        Self { schema, is_custom: custom.is_some(), path: String::new() }
    }

    pub(crate) fn field(&self, name: &str) -> Self {
        let of = self.schema.and_then(|schema| {
            let property = schema.get("properties").and_then(|properties| properties.get(name));
            property.or_else(|| schema.get("additionalProperties"))
        });
        Self { schema: of, is_custom: self.is_custom, path: format!("{}.{name}", self.path) }
    }

    /// Returns the place of the items of a list.
    pub(crate) fn item(&self) -> Self {
        Self { schema: self.schema.and_then(|schema| schema.get("items")), ..self.clone() }
    }

    pub(crate) fn list(&self) -> ListType {
        let is_builtin_set = !self.is_custom && self.path == ".spec.validationActions";
        if is_builtin_set || self.path == ".metadata.finalizers" {
            return ListType::Set;
        }
        if self.is_custom && !self.path.starts_with(".metadata.") {
            return self.list_of_schema();
        }
        let keyed = KEYED.iter().find(|(path, _)| *path == self.path);
        keyed.map_or(ListType::Atomic, |(_, keys)| ListType::Keyed(keys.iter().map(|&it| it.to_owned()).collect()))
    }

    fn list_of_schema(&self) -> ListType {
        let text = |field: &str| self.schema.and_then(|schema| schema.get(field)?.as_str());
        match text("x-kubernetes-list-type") {
            Some("set") => ListType::Set,
            Some("map") => {
                let keys = self.schema.and_then(|schema| schema.get("x-kubernetes-list-map-keys")?.as_array());
                ListType::Keyed(keys.into_iter().flatten().filter_map(|it| it.as_str().map(str::to_owned)).collect())
            }
            Some(_) | None => ListType::Atomic,
        }
    }

    /// Returns true if a map is replaced as a whole.
    pub(crate) fn is_atomic_map(&self) -> bool {
        if self.is_custom && !self.path.starts_with(".metadata.") {
            let of = self.schema.and_then(|schema| schema.get("x-kubernetes-map-type")?.as_str());
            return of == Some("atomic");
        }
        ATOMIC.contains(&&*self.path)
    }
}

/// Returns what identifies an item of a list, in the notation of managed fields. `None`: the list is merged as a whole.
pub(crate) fn item_name(of: &ListType, item: &Value) -> Option<String> {
    match of {
        ListType::Atomic => None,
        ListType::Set => Some(format!("v:{item}")),
        ListType::Keyed(keys) => {
            let mut keys: Vec<&String> = keys.iter().collect();
            keys.sort();
            let pairs: Vec<String> = keys
                .iter()
                .map(|key| {
                    let default = if **key == "protocol" { Value::from("TCP") } else { Value::Null };
                    let value = item.get(&***key).unwrap_or(&default);
                    format!("{}:{value}", Value::from(&***key))
                })
                .collect();
            Some(format!("k:{{{}}}", pairs.join(",")))
        }
    }
}
