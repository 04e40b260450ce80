//! Changes of an object: a replacement, a JSON Patch, a merge patch, a server-side apply.

use crate::error::{ApiError, FieldError};
use crate::instance::Instance;
use crate::kinds;
use crate::managed;
use crate::write::{Target, WriteOptions, decoded};
use serde_json::{Value, json};
use tokio::time::Instant;

/// A change.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    Replace(Value),
    /// RFC 6902.
    Json(json_patch::Patch),
    /// RFC 7386.
    Merge(Value),
    Apply {
        configuration: Value,
        force: bool,
    },
}

impl Change {
    /// Reads the body of a PATCH request.
    pub(crate) fn patch(media_type: &str, body: &[u8], is_custom: bool, force: bool) -> Result<Self, ApiError> {
        let decoding = |error: serde_json::Error| ApiError::bad_request(format!("error decoding patch: {error}"));
        match media_type {
            "application/json-patch+json" => serde_json::from_slice(body).map(Self::Json).map_err(decoding),
            "application/merge-patch+json" => serde_json::from_slice(body).map(Self::Merge).map_err(decoding),
            "application/apply-patch+yaml" => {
                // JSON is YAML.
                let configuration = serde_json::from_slice(body);
                let configuration =
                    configuration.map_err(|error| ApiError::bad_request(format!("error decoding YAML: {error}")))?;
                Ok(Self::Apply { configuration, force })
            }
            other => {
                let strategic = if is_custom { "" } else { "application/strategic-merge-patch+json, " };
                Err(ApiError::unsupported_media_type(format!(
                    "the body of the request was in an unknown format - accepted media types include: \
                     application/json-patch+json, application/merge-patch+json, {strategic}application/apply-patch+yaml\
                     {}",
                    if other.is_empty() { "" } else { ", application/apply-patch+cbor" }
                )))
            }
        }
    }
}

impl Instance {
    /// Returns the object that a change makes of a stored one.
    pub(crate) fn changed(
        &self,
        target: &Target,
        change: &Change,
        old: &Value,
        options: &WriteOptions,
    ) -> Result<Value, ApiError> {
        let patched = match change {
            Change::Replace(body) => {
                let mut object = decoded(target, body.clone(), options)?;
                self.manage_update(target, Some(old), &mut object, options);
                return Ok(object);
            }
            Change::Json(patch) => {
                let mut patched = old.clone();
                json_patch::patch(&mut patched, patch).map_err(|error| json_patch_fault(&error))?;
                patched
            }
            Change::Merge(patch) => {
                let mut patched = old.clone();
                json_patch::merge(&mut patched, patch);
                patched
            }
            Change::Apply { configuration, force } => {
                return self.applied(target, configuration, *force, old, options);
            }
        };
        let mut object = decoded_patch(target, patched, options)?;
        self.manage_update(target, Some(old), &mut object, options);
        Ok(object)
    }
}

fn decoded_patch(target: &Target, patched: Value, options: &WriteOptions) -> Result<Value, ApiError> {
    let text = patched.to_string();
    let is_malformed = |error: &ApiError| error.code == 400 && error.message.contains("cannot be handled as");
    match decoded(target, patched, options) {
        Err(error) if is_malformed(&error) => {
            let reason = error.message.split_once(": ").map_or(&*error.message, |(_, reason)| reason);
            let error = FieldError::invalid("patch", &json!(text), reason);
            Err(ApiError::invalid("", "", "", &[error]))
        }
        decoded => decoded,
    }
}

/// The API server answers a patch that cannot be applied with its library's words.
fn json_patch_fault(error: &json_patch::PatchError) -> ApiError {
    let message = if matches!(error.kind, json_patch::PatchErrorKind::TestFailed) {
        format!("testing value {} failed: test failed", error.path)
    } else {
        format!("{} operation does not apply: doc is missing path", error.operation)
    };
    ApiError::new(422, "Invalid", "the server rejected our request due to an error in our request")
        .with_details(json!({"causes": [{"reason": "UnexpectedServerResponse", "message": message}]}))
}

impl Instance {
    /// Returns the object that a server-side apply makes of a stored one.
    fn applied(
        &self,
        target: &Target,
        configuration: &Value,
        force: bool,
        old: &Value,
        options: &WriteOptions,
    ) -> Result<Value, ApiError> {
        let mut configuration = configuration.clone();
        check_applied(target, &mut configuration)?;
        check_fields(target, &configuration)?;
        let object = managed::apply(target, &configuration, force, old, options, &self.time())?;
        decoded(target, object, options)
    }

    /// Notes the manager of the fields that a write changes.
    pub(crate) fn manage_update(
        &self,
        target: &Target,
        old: Option<&Value>,
        object: &mut Value,
        options: &WriteOptions,
    ) {
        managed::update(target, old, object, options, &self.time());
    }

    fn time(&self) -> Value {
        self.shared.state().timestamp(Instant::now())
    }

    /// Returns the object that a server-side apply creates.
    pub(crate) fn applied_new(
        &self,
        target: &Target,
        configuration: &Value,
        options: &WriteOptions,
    ) -> Result<Value, ApiError> {
        self.applied(target, configuration, true, &json!({}), options)
    }
}

/// An applied configuration names its kind, and has no managed fields.
fn check_applied(target: &Target, configuration: &mut Value) -> Result<(), ApiError> {
    crate::write::check_kind(&target.resource, configuration)?;
    crate::write::check_admitted_kind(&target.resource, configuration)?;
    let managed = configuration.pointer("/metadata/managedFields").and_then(Value::as_array);
    if managed.is_some_and(|managed| !managed.is_empty()) {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    Ok(())
}

/// An applied configuration has no unknown fields.
fn check_fields(target: &Target, configuration: &Value) -> Result<(), ApiError> {
    let resource = &target.resource;
    let Ok(decoded) = kinds::decode(resource, configuration.clone()) else { return Ok(()) };
    let lines: Vec<String> =
        decoded.unknown.iter().map(|field| format!(".{field}: field not declared in schema")).collect();
    let reason = match lines.as_slice() {
        [] => return Ok(()),
        [line] => line.clone(),
        lines => format!("errors:\n{}", lines.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")),
    };
    let text = |pointer: &str| configuration.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
    let (version, kind) = (resource.api_version(), &resource.kind);
    let message = format!("failed to create typed patch object ({namespace}/{name}; {version}, Kind={kind}): {reason}");
    Err(ApiError::new(500, "", message))
}
