//! Rules that every object keeps: its names, and what may not change. The content of kinds is checked where this crate needs it.

use crate::controllers::{finalizers, is_being_deleted};
use crate::error::FieldError;
use crate::resource::{BuiltinKind, DEFINITIONS, ResourceInfo};
use serde_json::Value;
use std::collections::BTreeSet;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start \
and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with \
an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

/// Returns what is wrong with a new object.
pub(crate) fn new_object(resource: &ResourceInfo, object: &Value) -> Vec<FieldError> {
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let mut errors = content(resource, object);
    if name.is_empty() {
        errors.push(FieldError::required("metadata.name", "name or generateName is required"));
    } else if let Some(reason) = name_fault(resource, name) {
        errors.push(FieldError::invalid("metadata.name", &name.into(), reason));
    }
    errors
}

/// Returns what is wrong with a changed object.
pub(crate) fn changed_object(resource: &ResourceInfo, object: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = changed_metadata(object, old);
    // The registry checks metadata, and so does each kind.
    errors.extend(changed_metadata(object, old));
    if let Some(BuiltinKind::Secret | BuiltinKind::ConfigMap) = resource.builtin {
        errors.extend(immutable_data(resource, object, old));
    }
    errors.extend(content(resource, object));
    errors
}

fn changed_metadata(object: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in ["name", "uid"] {
        let pointer = format!("/metadata/{field}");
        let value = object.pointer(&pointer).cloned().unwrap_or_default();
        if object.pointer(&pointer) != old.pointer(&pointer) {
            errors.push(FieldError::invalid(&format!("metadata.{field}"), &value, "field is immutable"));
        }
    }
    if is_being_deleted(old) {
        let before: BTreeSet<&str> = finalizers(old).collect();
        let added: Vec<String> =
            finalizers(object).filter(|it| !before.contains(it)).map(|it| format!("\"{it}\"")).collect();
        if !added.is_empty() {
            let found = added.join(", ");
            let message = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{found}}}"
            );
            errors.push(FieldError::forbidden("metadata.finalizers", &message));
        }
    }
    errors
}

/// A Secret keeps its type, and an object that says so keeps its data.
fn immutable_data(resource: &ResourceInfo, object: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let of =
        |field: &str| (object.get(field).cloned().unwrap_or_default(), old.get(field).cloned().unwrap_or_default());
    if resource.builtin == Some(BuiltinKind::Secret) {
        let (new, old) = of("type");
        if new != old {
            errors.push(FieldError::invalid("type", &new, "field is immutable"));
        }
    }
    if old.get("immutable") == Some(&Value::Bool(true)) {
        if object.get("immutable") != Some(&Value::Bool(true)) {
            errors.push(FieldError::forbidden("immutable", "field is immutable when `immutable` is set"));
        }
        for field in ["data", "binaryData"] {
            let (new, old) = of(field);
            if new != old {
                errors.push(FieldError::forbidden(field, "field is immutable when `immutable` is set"));
            }
        }
    }
    errors
}

fn content(resource: &ResourceInfo, object: &Value) -> Vec<FieldError> {
    if resource.collection() == DEFINITIONS {
        return definition(object);
    }
    match resource.builtin {
        Some(BuiltinKind::Service) => service(object),
        Some(BuiltinKind::Secret) => secret(object),
        Some(_) | None => Vec::new(),
    }
}

/// A Secret with a certificate has both parts of it.
fn secret(object: &Value) -> Vec<FieldError> {
    if object.get("type").and_then(Value::as_str) != Some("kubernetes.io/tls") {
        return Vec::new();
    }
    let has = |key: &str| object.get("data").is_some_and(|data| data.get(key).is_some());
    let missing = ["tls.crt", "tls.key"].into_iter().filter(|key| !has(key));
    missing.map(|key| FieldError::required(&format!("data[{key}]"), "")).collect()
}

/// A Service has ports, each with a name if there are several.
fn service(object: &Value) -> Vec<FieldError> {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let text = |field: &str| spec.get(field).and_then(Value::as_str).unwrap_or_default();
    let ports = spec.get("ports").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if ports.is_empty() && text("type") != "ExternalName" && text("clusterIP") != "None" {
        return vec![FieldError::required("spec.ports", "")];
    }
    let is_unnamed = |port: &Value| port.get("name").and_then(Value::as_str).unwrap_or_default().is_empty();
    let unnamed = ports.iter().enumerate().filter(|(_, port)| ports.len() > 1 && is_unnamed(port));
    unnamed.map(|(index, _)| FieldError::required(&format!("spec.ports[{index}].name"), "")).collect()
}

/// A CRD is named by its plural and group, and stores one of its versions.
fn definition(object: &Value) -> Vec<FieldError> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let mut errors = Vec::new();
    let wanted = format!("{}.{}", text("/spec/names/plural"), text("/spec/group"));
    if text("/metadata/name") != wanted {
        let name = object.pointer("/metadata/name").cloned().unwrap_or_default();
        errors.push(FieldError::invalid("metadata.name", &name, "must be spec.names.plural+\".\"+spec.group"));
    }
    let versions = object.pointer("/spec/versions").and_then(Value::as_array);
    let stored = versions.into_iter().flatten().filter(|it| it.get("storage") == Some(&Value::Bool(true))).count();
    if stored != 1 {
        let versions = object.pointer("/spec/versions").cloned().unwrap_or_default();
        let message = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid("spec.versions", &versions, message));
    }
    errors
}

fn name_fault(resource: &ResourceInfo, name: &str) -> Option<&'static str> {
    match resource.builtin {
        Some(BuiltinKind::ClusterRole) => path_segment_fault(name),
        Some(BuiltinKind::Namespace | BuiltinKind::Service) => (!is_label(name)).then_some(LABEL),
        Some(_) | None => (!is_subdomain(name)).then_some(SUBDOMAIN),
    }
}

fn path_segment_fault(name: &str) -> Option<&'static str> {
    match name {
        "." => Some("may not be '.'"),
        ".." => Some("may not be '..'"),
        name if name.contains('/') => Some("may not contain '/'"),
        name if name.contains('%') => Some("may not contain '%'"),
        _ => None,
    }
}

fn is_label(name: &str) -> bool {
    let is_inner = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-';
    !name.is_empty() && name.len() <= 63 && name.chars().all(is_inner) && !name.starts_with('-') && !name.ends_with('-')
}

fn is_subdomain(name: &str) -> bool {
    let is_part = |part: &str| {
        let is_inner = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
        !part.is_empty() && part.chars().all(is_inner) && !part.starts_with('-') && !part.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(is_part)
}
