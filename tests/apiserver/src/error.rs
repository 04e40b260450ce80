//! The errors of the API server, as `Status` objects in its own words.

use crate::resource::ResourceInfo;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt::Display;

/// A refusal.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ApiError {
    pub(crate) code: u16,
    pub(crate) reason: Cow<'static, str>,
    pub(crate) message: String,
    details: Option<Box<Value>>,
    /// The token with which a list that expired can be continued.
    continue_token: Option<String>,
    /// True if the answer is the text of a server that has nothing at the path.
    pub(crate) is_page: bool,
}

/// Words of a write under a version that is not the stored one.
pub(crate) const OPTIMISTIC_LOCK: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

const CONTINUE_EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new \
list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing \
with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first \
chunk was returned and now may show up in the list.";

/// One reason for which an object is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldError {
    pub(crate) field: String,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl FieldError {
    pub(crate) fn invalid(field: &str, value: &Value, message: impl Display) -> Self {
        let message = format!("Invalid value: {value}: {message}");
        Self { field: field.to_owned(), reason: "FieldValueInvalid", message }
    }

    pub(crate) fn required(field: &str, message: &str) -> Self {
        let message =
            if message.is_empty() { "Required value".to_owned() } else { format!("Required value: {message}") };
        Self { field: field.to_owned(), reason: "FieldValueRequired", message }
    }

    pub(crate) fn forbidden(field: &str, message: &str) -> Self {
        Self { field: field.to_owned(), reason: "FieldValueForbidden", message: format!("Forbidden: {message}") }
    }

    pub(crate) fn not_supported(field: &str, value: &Value, supported: &[&str]) -> Self {
        let all: Vec<String> = supported.iter().map(|it| format!("\"{it}\"")).collect();
        let message = format!("Unsupported value: {value}: supported values: {}", all.join(", "));
        Self { field: field.to_owned(), reason: "FieldValueNotSupported", message }
    }
}

impl ApiError {
    pub(crate) fn new(code: u16, reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self {
            code,
            reason: reason.into(),
            message: message.into(),
            details: None,
            continue_token: None,
            is_page: false,
        }
    }

    pub(crate) fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details.into());
        self
    }

    /// Adds a cause to the details.
    pub(crate) fn with_cause(mut self, cause: Value) -> Self {
        let details = self.details.get_or_insert_with(|| json!({}).into());
        if let Some(fields) = details.as_object_mut() {
            let causes = fields.entry("causes").or_insert_with(|| json!([]));
            if let Some(causes) = causes.as_array_mut() {
                causes.push(cause);
            }
        }
        self
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(crate) fn not_found(resource: &ResourceInfo, name: &str) -> Self {
        Self::of_object(404, "NotFound", resource, name, format!("{} \"{name}\" not found", resource.group_resource()))
    }

    /// Nothing is served at the path.
    pub(crate) fn no_path() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource").with_details(json!({}))
    }

    /// No API is served at the path.
    pub(crate) fn no_page() -> Self {
        Self { is_page: true, ..Self::no_path() }
    }

    pub(crate) fn already_exists(resource: &ResourceInfo, name: &str, is_being_deleted: bool) -> Self {
        let prefix = if is_being_deleted { "object is being deleted: " } else { "" };
        let message = format!("{prefix}{} \"{name}\" already exists", resource.group_resource());
        Self::of_object(409, "AlreadyExists", resource, name, message)
    }

    pub(crate) fn conflict(resource: &ResourceInfo, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", resource.group_resource());
        Self::of_object(409, "Conflict", resource, name, message)
    }

    pub(crate) fn forbidden(resource: &ResourceInfo, name: &str, why: &str) -> Self {
        let named = if name.is_empty() { String::new() } else { format!(" \"{name}\"") };
        let message = format!("{}{named} is forbidden: {why}", resource.group_resource());
        Self::of_object(403, "Forbidden", resource, name, message)
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
            .with_details(json!({}))
    }

    pub(crate) fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(415, "UnsupportedMediaType", message)
    }

    pub(crate) fn internal(message: impl Display) -> Self {
        Self::new(500, "InternalError", format!("Internal error occurred: {message}"))
            .with_details(json!({"causes": [{"message": message.to_string()}]}))
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// A continue token is older than the history. `token` continues at the present.
    pub(crate) fn continue_expired(token: String) -> Self {
        Self { continue_token: Some(token), ..Self::expired(CONTINUE_EXPIRED) }
    }

    pub(crate) fn too_large_version(asked: u64, current: u64, retry_after: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let mut details = json!({
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        });
        if let Some(fields) = details.as_object_mut().filter(|_| retry_after > 0) {
            fields.insert("retryAfterSeconds".to_owned(), retry_after.into());
        }
        Self::new(504, "Timeout", message).with_details(details)
    }

    /// The object breaks rules. `kind` may be a resource instead, as in some answers of the API server.
    pub(crate) fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        let mut lines: Vec<String> = Vec::new();
        for line in errors.iter().map(|error| format!("{}: {}", error.field, error.message)) {
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        let all = match lines.as_slice() {
            [] => String::new(),
            [line] => line.clone(),
            lines => format!("[{}]", lines.join(", ")),
        };
        let dot = if group.is_empty() { "" } else { "." };
        let message = format!("{kind}{dot}{group} \"{name}\" is invalid: {all}");
        let causes: Vec<Value> = errors
            .iter()
            .map(|error| json!({"reason": error.reason, "message": error.message, "field": error.field}))
            .collect();
        let mut details = json!({"name": name, "group": group, "kind": kind, "causes": causes});
        drop_empty(&mut details);
        Self::new(422, "Invalid", message).with_details(details)
    }

    fn of_object(code: u16, reason: &'static str, resource: &ResourceInfo, name: &str, message: String) -> Self {
        let mut details = json!({"name": name, "group": resource.group, "kind": resource.plural});
        drop_empty(&mut details);
        Self::new(code, reason, message).with_details(details)
    }

    /// Returns the `Status` object.
    pub(crate) fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        });
        if let (Some(token), Some(metadata)) = (&self.continue_token, status.pointer_mut("/metadata")) {
            *metadata = json!({"continue": token});
        }
        if let Some(fields) = status.as_object_mut() {
            if !self.reason.is_empty() {
                fields.insert("reason".to_owned(), self.reason.clone().into());
            }
            if let Some(details) = &self.details {
                fields.insert("details".to_owned(), (**details).clone());
            }
            fields.insert("code".to_owned(), self.code.into());
        }
        status
    }
}

/// Removes the fields with empty texts and lists.
fn drop_empty(details: &mut Value) {
    if let Some(fields) = details.as_object_mut() {
        fields.retain(|_, value| value != "" && value.as_array().is_none_or(|items| !items.is_empty()));
    }
}
