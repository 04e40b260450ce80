//! Changes of an object: a replacement, a JSON Patch, a merge patch, a server-side apply.

use crate::answer::Answer;
use crate::error::{ApiError, FieldError};
use crate::instance::Instance;
use crate::managed;
use crate::write::{Target, WriteOptions};
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
        answer: &mut Answer,
    ) -> Result<Value, ApiError> {
        let patched = match change {
            Change::Replace(body) => {
                let mut object = self.decoded(target, body.clone(), options, answer)?;
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
                return self.applied(target, configuration, *force, old, options, answer);
            }
        };
        let mut object = self.decoded_patch(target, patched, options, answer)?;
        self.manage_update(target, Some(old), &mut object, options);
        Ok(object)
    }

    fn decoded_patch(
        &self,
        target: &Target,
        patched: Value,
        options: &WriteOptions,
        answer: &mut Answer,
    ) -> Result<Value, ApiError> {
        let text = patched.to_string();
        let is_malformed = |error: &ApiError| error.code == 400 && error.message.contains("cannot be handled as");
        match self.decoded(target, patched, options, answer) {
            Err(error) if is_malformed(&error) => {
                let reason = error.message.split_once(": ").map_or(&*error.message, |(_, reason)| reason);
                let error = FieldError::invalid("patch", &json!(text), reason);
                Err(ApiError::invalid("", "", "", &[error]))
            }
            decoded => decoded,
        }
    }
}

/// The API server answers a patch that cannot be applied with its library's words.
fn json_patch_fault(error: &json_patch::PatchError) -> ApiError {
    let message = match error.kind {
        json_patch::PatchErrorKind::TestFailed => {
            format!("testing value {} failed: test failed", error.path)
        }
        _ => format!("{} operation does not apply: doc is missing path", error.operation),
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
        answer: &mut Answer,
    ) -> Result<Value, ApiError> {
        let mut configuration = configuration.clone();
        check_applied(target, &mut configuration)?;
        let object = managed::apply(target, &configuration, force, old, options, &self.time())?;
        self.decoded(target, object, options, answer)
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
        answer: &mut Answer,
    ) -> Result<Value, ApiError> {
        self.applied(target, configuration, true, &json!({}), options, answer)
    }
}

/// An applied configuration names its kind, and has no managed fields.
fn check_applied(target: &Target, configuration: &mut Value) -> Result<(), ApiError> {
    crate::write::check_kind(&target.resource, configuration)?;
    let managed = configuration.pointer("/metadata/managedFields").and_then(Value::as_array);
    if managed.is_some_and(|managed| !managed.is_empty()) {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    Ok(())
}
