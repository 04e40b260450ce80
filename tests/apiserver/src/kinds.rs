//! The content of built-in kinds: their fields, defaults, and the parts that a write may change.

use crate::resource::{BuiltinKind, ResourceInfo};
use crate::schema;
use k8s_openapi::api::admissionregistration::v1 as admission;
use k8s_openapi::api::{apps::v1 as apps, coordination::v1 as coordination, core::v1 as core, rbac::v1 as rbac};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use k8s_openapi::serde::Serialize;
use k8s_openapi::serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// An object as it was sent, without the fields that its kind does not have.
#[derive(Debug)]
pub(crate) struct DecodedObject {
    pub(crate) object: Value,
    /// The paths of the dropped fields.
    pub(crate) unknown: Vec<String>,
}

/// Reads an object, with the defaults of its kind. The error says which type is wrong.
pub(crate) fn decode(resource: &ResourceInfo, sent: Value) -> Result<DecodedObject, String> {
    let mut unknown = Vec::new();
    let mut object = match resource.builtin {
        Some(kind) => {
            let typed = typed(kind, sent.clone())?;
            dropped(&sent, &typed, "", &mut unknown);
            typed
        }
        None => custom(resource, sent, &mut unknown)?,
    };
    tidy_metadata(&mut object);
    set_defaults(resource, &mut object);
    unknown.sort();
    Ok(DecodedObject { object, unknown })
}

fn custom(resource: &ResourceInfo, mut object: Value, unknown: &mut Vec<String>) -> Result<Value, String> {
    if let Some(metadata) = object.get_mut("metadata") {
        let typed = through::<ObjectMeta>(metadata.take())?;
        dropped(metadata, &typed, "metadata", unknown);
        *metadata = typed;
    }
    if let Some(custom) = &resource.custom {
        let schema = custom.version.pointer("/schema/openAPIV3Schema").cloned().unwrap_or_default();
        let keeps_all = custom.definition.pointer("/spec/preserveUnknownFields") == Some(&Value::Bool(true));
        // The schema is of one kind: an object of another one is refused later, whole.
        let is_of_kind = object.get("kind").and_then(Value::as_str) == Some(&resource.kind);
        if is_of_kind && !keeps_all {
            schema::prune(&schema, &mut object, unknown);
        }
    }
    Ok(object)
}

/// Reads and writes a value by its type.
fn through<T: Serialize + DeserializeOwned>(value: Value) -> Result<Value, String> {
    let typed: T = serde_json::from_value(value).map_err(|error| error.to_string())?;
    serde_json::to_value(typed).map_err(|error| error.to_string())
}

fn typed(kind: BuiltinKind, object: Value) -> Result<Value, String> {
    match kind {
        BuiltinKind::Namespace => through::<core::Namespace>(object),
        BuiltinKind::Secret => through::<core::Secret>(object),
        BuiltinKind::ConfigMap => through::<core::ConfigMap>(object),
        BuiltinKind::Service => through::<core::Service>(object),
        BuiltinKind::ServiceAccount => through::<core::ServiceAccount>(object),
        BuiltinKind::ClusterRole => through::<rbac::ClusterRole>(object),
        BuiltinKind::Deployment => through::<apps::Deployment>(object),
        BuiltinKind::Lease => through::<coordination::Lease>(object),
        BuiltinKind::CustomResourceDefinition => through::<CustomResourceDefinition>(object),
        BuiltinKind::ApiService => through::<APIService>(object),
        BuiltinKind::MutatingWebhookConfiguration => through::<admission::MutatingWebhookConfiguration>(object),
        BuiltinKind::ValidatingWebhookConfiguration => through::<admission::ValidatingWebhookConfiguration>(object),
        BuiltinKind::MutatingAdmissionPolicy => through::<admission::MutatingAdmissionPolicy>(object),
        BuiltinKind::MutatingAdmissionPolicyBinding => through::<admission::MutatingAdmissionPolicyBinding>(object),
        BuiltinKind::ValidatingAdmissionPolicy => through::<admission::ValidatingAdmissionPolicy>(object),
        BuiltinKind::ValidatingAdmissionPolicyBinding => through::<admission::ValidatingAdmissionPolicyBinding>(object),
    }
}

/// Notes the fields that are in `sent` and not in `kept`.
fn dropped(sent: &Value, kept: &Value, path: &str, unknown: &mut Vec<String>) {
    match (sent, kept) {
        (Value::Object(sent), Value::Object(kept)) => {
            for (name, value) in sent {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                match kept.get(name) {
                    Some(kept) => dropped(value, kept, &path, unknown),
                    None if value.is_null() => {}
                    None => unknown.push(path),
                }
            }
        }
        (Value::Array(sent), Value::Array(kept)) => {
            for (index, (sent, kept)) in sent.iter().zip(kept).enumerate() {
                dropped(sent, kept, &format!("{path}[{index}]"), unknown);
            }
        }
        _ => {}
    }
}

/// Removes what the API server does not write: empty maps and lists of metadata.
fn tidy_metadata(object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    metadata.retain(|name, value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Number(number) => name != "generation" || number.as_i64() != Some(0),
        Value::Bool(_) => true,
    });
    metadata.remove("selfLink");
}

fn child<'o>(object: &'o mut Value, name: &str) -> Option<&'o mut Map<String, Value>> {
    object.as_object_mut()?.entry(name).or_insert_with(|| json!({})).as_object_mut()
}

fn items<'o>(object: &'o mut Map<String, Value>, name: &str) -> impl Iterator<Item = &'o mut Map<String, Value>> {
    let all = object.get_mut(name).and_then(Value::as_array_mut);
    all.into_iter().flatten().filter_map(Value::as_object_mut)
}

fn default_to(object: &mut Map<String, Value>, fields: Value) {
    let Value::Object(fields) = fields else { return };
    for (name, value) in fields {
        let is_unset = object.get(&name).is_none_or(|it| it.is_null() || it == "");
        if is_unset {
            object.insert(name, value);
        }
    }
}

fn drop_if_empty(object: &mut Value, names: &[&str]) {
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|name, value| {
            let is_empty = value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty);
            !(is_empty && names.contains(&&**name))
        });
    }
}

fn set_defaults(resource: &ResourceInfo, object: &mut Value) {
    let Some(kind) = resource.builtin else {
        if let Some(custom) = &resource.custom {
            schema::set_defaults(custom.version.pointer("/schema/openAPIV3Schema").unwrap_or(&Value::Null), object);
        }
        return;
    };
    match kind {
        BuiltinKind::Namespace => {
            let name = object.pointer("/metadata/name").cloned().filter(|name| name != "");
            if let (Some(name), Some(metadata)) = (name, child(object, "metadata")) {
                let labels = metadata.entry("labels").or_insert_with(|| json!({}));
                if let Some(labels) = labels.as_object_mut() {
                    labels.insert("kubernetes.io/metadata.name".to_owned(), name);
                }
            }
            if let Some(spec) = child(object, "spec") {
                drop_fields_if_empty(spec, &["finalizers"]);
            }
            child(object, "status");
        }
        BuiltinKind::Secret => {
            let texts = object.as_object_mut().and_then(|fields| fields.remove("stringData"));
            if let Some(Value::Object(texts)) = texts
                && let Some(data) = child(object, "data")
            {
                for (name, text) in texts {
                    let text = text.as_str().unwrap_or_default().as_bytes().to_vec();
                    data.insert(name, encoded(&text).into());
                }
            }
            drop_if_empty(object, &["data"]);
            if let Some(fields) = object.as_object_mut() {
                default_to(fields, json!({"type": "Opaque"}));
            }
        }
        BuiltinKind::ConfigMap => drop_if_empty(object, &["data", "binaryData"]),
        BuiltinKind::ServiceAccount => drop_if_empty(object, &["secrets", "imagePullSecrets"]),
        BuiltinKind::ClusterRole => {
            if let Some(fields) = object.as_object_mut() {
                fields.entry("rules").or_insert(Value::Null);
            }
        }
        BuiltinKind::Lease => {
            child(object, "spec");
        }
        BuiltinKind::Service => default_service(object),
        BuiltinKind::Deployment => default_deployment(object),
        BuiltinKind::CustomResourceDefinition => default_definition(object),
        BuiltinKind::ApiService => {
            child(object, "spec");
            child(object, "status");
        }
        BuiltinKind::MutatingWebhookConfiguration | BuiltinKind::ValidatingWebhookConfiguration => {
            drop_if_empty(object, &["webhooks"]);
            let is_mutating = kind == BuiltinKind::MutatingWebhookConfiguration;
            if let Some(fields) = object.as_object_mut() {
                items(fields, "webhooks").for_each(|webhook| default_webhook(webhook, is_mutating));
            }
        }
        BuiltinKind::MutatingAdmissionPolicy
        | BuiltinKind::MutatingAdmissionPolicyBinding
        | BuiltinKind::ValidatingAdmissionPolicy
        | BuiltinKind::ValidatingAdmissionPolicyBinding => default_policy(kind, object),
    }
}

fn default_webhook(webhook: &mut Map<String, Value>, is_mutating: bool) {
    default_to(
        webhook,
        json!({
            "failurePolicy": "Fail", "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {},
            "timeoutSeconds": 10,
        }),
    );
    if is_mutating {
        default_to(webhook, json!({"reinvocationPolicy": "Never"}));
    }
    items(webhook, "rules").for_each(|rule| default_to(rule, json!({"scope": "*"})));
    let service = webhook.get_mut("clientConfig").and_then(|config| config.get_mut("service")?.as_object_mut());
    if let Some(service) = service {
        default_to(service, json!({"port": 443}));
    }
    drop_fields_if_empty(webhook, &["rules", "matchConditions"]);
}

fn drop_fields_if_empty(object: &mut Map<String, Value>, names: &[&str]) {
    object.retain(|name, value| !(value.as_array().is_some_and(Vec::is_empty) && names.contains(&&**name)));
}

fn default_match(resources: &mut Map<String, Value>) {
    default_to(resources, json!({"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}));
    for rules in ["resourceRules", "excludeResourceRules"] {
        items(resources, rules).for_each(|rule| default_to(rule, json!({"scope": "*"})));
    }
}

fn default_policy(kind: BuiltinKind, object: &mut Value) {
    let is_validating = kind == BuiltinKind::ValidatingAdmissionPolicy;
    let is_policy = is_validating || kind == BuiltinKind::MutatingAdmissionPolicy;
    let Some(spec) = child(object, "spec") else { return };
    let field = if is_policy { "matchConstraints" } else { "matchResources" };
    if let Some(resources) = spec.get_mut(field).and_then(Value::as_object_mut) {
        default_match(resources);
    }
    if is_policy {
        default_to(spec, json!({"failurePolicy": "Fail"}));
    }
    if is_validating {
        child(object, "status");
    }
}

fn default_definition(object: &mut Value) {
    let Some(spec) = child(object, "spec") else { return };
    default_to(spec, json!({"conversion": {"strategy": "None"}}));
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        default_to(names, json!({"singular": kind.to_lowercase()}));
        if !kind.is_empty() {
            default_to(names, json!({"listKind": format!("{kind}List")}));
        }
    }
    // It is no longer written as false.
    spec.retain(|name, value| !(name == "preserveUnknownFields" && value == &Value::Bool(false)));
}

fn default_service(object: &mut Value) {
    let Some(spec) = child(object, "spec") else { return };
    default_to(spec, json!({"sessionAffinity": "None", "type": "ClusterIP"}));
    if spec.get("type").and_then(Value::as_str) != Some("ExternalName") {
        default_to(spec, json!({"internalTrafficPolicy": "Cluster"}));
    }
    items(spec, "ports").for_each(|port| {
        let number = port.get("port").cloned().unwrap_or_default();
        default_to(port, json!({"protocol": "TCP", "targetPort": number}));
    });
    if let Some(status) = child(object, "status") {
        default_to(status, json!({"loadBalancer": {}}));
    }
}

fn default_deployment(object: &mut Value) {
    if let Some(status) = child(object, "status") {
        // A number that is 0 is not written.
        status.retain(|_, value| value != &Value::from(0));
    }
    let Some(spec) = child(object, "spec") else { return };
    spec.retain(|name, value| name != "paused" || value != &Value::Bool(false));
    default_to(
        spec,
        json!({
            "replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
            "strategy": {"type": "RollingUpdate"},
        }),
    );
    if let Some(strategy) = spec.get_mut("strategy").and_then(Value::as_object_mut) {
        default_to(strategy, json!({"type": "RollingUpdate"}));
        if strategy.get("type").and_then(Value::as_str) == Some("RollingUpdate") {
            default_to(strategy, json!({"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}));
        }
    }
    let template = spec.get_mut("template").and_then(Value::as_object_mut);
    let Some(pod) = template.and_then(|template| template.get_mut("spec")?.as_object_mut()) else { return };
    default_to(
        pod,
        json!({
            "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler",
            "securityContext": {}, "terminationGracePeriodSeconds": 30,
        }),
    );
    for containers in ["containers", "initContainers"] {
        items(pod, containers).for_each(|container| {
            let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
            let file = image.rsplit('/').next().unwrap_or_default();
            let is_latest = (!file.contains(':') && !file.contains('@')) || file.ends_with(":latest");
            let pull = if is_latest { "Always" } else { "IfNotPresent" };
            default_to(
                container,
                json!({
                    "resources": {}, "imagePullPolicy": pull, "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                }),
            );
            items(container, "ports").for_each(|port| default_to(port, json!({"protocol": "TCP"})));
        });
    }
}

/// Returns an object of a kind in which nothing is set. The fields of built-in kinds that are no pointers in Go are there all the same.
pub(crate) fn empty(resource: &ResourceInfo) -> Value {
    match resource.builtin {
        Some(BuiltinKind::Namespace | BuiltinKind::ApiService | BuiltinKind::ValidatingAdmissionPolicy) => {
            json!({"spec": {}, "status": {}})
        }
        Some(BuiltinKind::Service) => json!({"spec": {}, "status": {"loadBalancer": {}}}),
        Some(BuiltinKind::Deployment) => {
            json!({"spec": {"strategy": {}, "template": {"metadata": {}, "spec": {}}}, "status": {}})
        }
        Some(BuiltinKind::CustomResourceDefinition) => {
            json!({"spec": {"names": {}}, "status": {"acceptedNames": {"plural": "", "kind": ""}}})
        }
        Some(
            BuiltinKind::Lease
            | BuiltinKind::MutatingAdmissionPolicy
            | BuiltinKind::MutatingAdmissionPolicyBinding
            | BuiltinKind::ValidatingAdmissionPolicyBinding,
        ) => json!({"spec": {}}),
        Some(
            BuiltinKind::Secret
            | BuiltinKind::ConfigMap
            | BuiltinKind::ServiceAccount
            | BuiltinKind::ClusterRole
            | BuiltinKind::MutatingWebhookConfiguration
            | BuiltinKind::ValidatingWebhookConfiguration,
        )
        | None => json!({}),
    }
}

/// Prepares a new object: what the client may not set, and the first generation.
pub(crate) fn prepare_create(resource: &ResourceInfo, object: &mut Value) {
    let Some(kind) = resource.builtin else {
        if resource.has_status()
            && let Some(fields) = object.as_object_mut()
        {
            fields.remove("status");
        }
        set_generation(object, 1);
        return;
    };
    match kind {
        BuiltinKind::Namespace => {
            set(object, "status", json!({"phase": "Active"}));
            if let Some(spec) = child(object, "spec") {
                let all = spec.entry("finalizers").or_insert_with(|| json!([]));
                if let Some(all) = all.as_array_mut().filter(|all| !all.iter().any(|it| it == "kubernetes")) {
                    all.push("kubernetes".into());
                }
            }
        }
        BuiltinKind::Service => set(object, "status", json!({"loadBalancer": {}})),
        BuiltinKind::Deployment | BuiltinKind::ValidatingAdmissionPolicy => {
            set(object, "status", json!({}));
            set_generation(object, 1);
        }
        BuiltinKind::CustomResourceDefinition => {
            set(object, "status", json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}}));
            store_version(object);
            set_generation(object, 1);
        }
        BuiltinKind::ApiService => set(object, "status", json!({})),
        BuiltinKind::MutatingWebhookConfiguration
        | BuiltinKind::ValidatingWebhookConfiguration
        | BuiltinKind::MutatingAdmissionPolicy
        | BuiltinKind::MutatingAdmissionPolicyBinding
        | BuiltinKind::ValidatingAdmissionPolicyBinding => set_generation(object, 1),
        BuiltinKind::Secret
        | BuiltinKind::ConfigMap
        | BuiltinKind::ServiceAccount
        | BuiltinKind::ClusterRole
        | BuiltinKind::Lease => {}
    }
}

/// Adds the stored version of a CRD to those that its status lists.
fn store_version(definition: &mut Value) {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    let storage = versions.into_iter().flatten().find(|it| it.get("storage") == Some(&Value::Bool(true)));
    let Some(name) = storage.and_then(|it| it.get("name")).cloned() else { return };
    let Some(status) = child(definition, "status") else { return };
    let all = status.entry("storedVersions").or_insert_with(|| json!([]));
    if let Some(all) = all.as_array_mut().filter(|all| !all.contains(&name)) {
        all.push(name);
    }
}

/// Prepares a changed object: restores the parts that this write may not change, and counts the generation.
pub(crate) fn prepare_update(resource: &ResourceInfo, subresource: &str, object: &mut Value, old: &Value) {
    if subresource == "status" {
        return prepare_status_update(resource, object, old);
    }
    if subresource == "finalize" {
        return keep(object, old, "status");
    }
    let Some(kind) = resource.builtin else {
        if resource.has_status() {
            keep(object, old, "status");
        }
        let is_same = is_same_but_metadata(object, old);
        return count_generation(object, old, is_same);
    };
    let is_same = |field: &str| object.get(field) == old.get(field);
    match kind {
        BuiltinKind::Namespace => {
            keep(object, old, "status");
            if let Some(spec) = child(object, "spec") {
                spec.remove("finalizers");
                if let Some(finalizers) = old.pointer("/spec/finalizers") {
                    spec.insert("finalizers".to_owned(), finalizers.clone());
                }
            }
        }
        BuiltinKind::Secret => {
            if let (Some(fields), Some(of)) = (object.as_object_mut(), old.get("type")) {
                default_to(fields, json!({"type": of}));
            }
        }
        BuiltinKind::Service | BuiltinKind::ApiService => keep(object, old, "status"),
        BuiltinKind::Deployment => {
            let annotations = |it: &Value| it.pointer("/metadata/annotations").cloned();
            let is_same = is_same("spec") && annotations(object) == annotations(old);
            keep(object, old, "status");
            count_generation(object, old, is_same);
        }
        BuiltinKind::CustomResourceDefinition => {
            let is_same = is_same("spec");
            keep(object, old, "status");
            store_version(object);
            count_generation(object, old, is_same);
        }
        BuiltinKind::ValidatingAdmissionPolicy => {
            let is_same = is_same("spec");
            keep(object, old, "status");
            count_generation(object, old, is_same);
        }
        BuiltinKind::MutatingAdmissionPolicy
        | BuiltinKind::MutatingAdmissionPolicyBinding
        | BuiltinKind::ValidatingAdmissionPolicyBinding => {
            let is_same = is_same("spec");
            count_generation(object, old, is_same);
        }
        BuiltinKind::MutatingWebhookConfiguration | BuiltinKind::ValidatingWebhookConfiguration => {
            let is_same = is_same("webhooks");
            count_generation(object, old, is_same);
        }
        BuiltinKind::ConfigMap | BuiltinKind::ServiceAccount | BuiltinKind::ClusterRole | BuiltinKind::Lease => {}
    }
}

fn prepare_status_update(resource: &ResourceInfo, object: &mut Value, old: &Value) {
    let of_metadata: &[&str] = match resource.builtin {
        None => {
            let status = object.get("status").cloned();
            let managed = object.pointer("/metadata/managedFields").cloned();
            *object = old.clone();
            set_or_remove(object, "status", status);
            if let (Some(managed), Some(metadata)) = (managed, child(object, "metadata")) {
                metadata.insert("managedFields".to_owned(), managed);
            }
            return;
        }
        Some(kind) => kept_by_status(kind),
    };
    keep(object, old, "spec");
    for field in of_metadata {
        let stored = old.pointer(&format!("/metadata/{field}")).cloned();
        if let Some(metadata) = object.get_mut("metadata") {
            set_or_remove(metadata, field, stored);
        }
    }
}

/// Returns the metadata that a write of the status does not change.
pub(crate) fn kept_by_status(kind: BuiltinKind) -> &'static [&'static str] {
    if kind == BuiltinKind::Deployment {
        &["labels"]
    } else if matches!(kind, BuiltinKind::ApiService | BuiltinKind::ValidatingAdmissionPolicy) {
        &["labels", "annotations", "finalizers", "ownerReferences"]
    } else {
        &[]
    }
}

fn is_same_but_metadata(object: &Value, old: &Value) -> bool {
    let rest = |it: &Value| {
        let mut fields = it.as_object().cloned().unwrap_or_default();
        fields.remove("metadata");
        fields
    };
    rest(object) == rest(old)
}

fn count_generation(object: &mut Value, old: &Value, is_same: bool) {
    let generation = old.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or_default();
    set_generation(object, if is_same { generation } else { generation + 1 });
}

fn set_generation(object: &mut Value, generation: i64) {
    if let Some(metadata) = child(object, "metadata") {
        if generation == 0 {
            metadata.remove("generation");
        } else {
            metadata.insert("generation".to_owned(), generation.into());
        }
    }
}

fn keep(object: &mut Value, old: &Value, field: &str) {
    set_or_remove(object, field, old.get(field).cloned());
}

fn set(object: &mut Value, field: &str, value: Value) {
    set_or_remove(object, field, Some(value));
}

/// Sets a field of an object, or removes it.
pub(crate) fn set_or_remove(object: &mut Value, field: &str, value: Option<Value>) {
    let Some(fields) = object.as_object_mut() else { return };
    match value {
        Some(value) => {
            fields.insert(field.to_owned(), value);
        }
        None => {
            fields.remove(field);
        }
    }
}

fn encoded(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::prelude::BASE64_STANDARD.encode(bytes)
}
