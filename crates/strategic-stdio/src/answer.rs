//! The messages that a client receives: the answer to a request, with a result or an error.

use kube_unions_core::causes::with_causes;
use serde::Serialize;
use serde_json::value::RawValue;
use std::io::{Result as IoResult, Write};
use strategic_merge_patch::{DocumentRole, PatchError};

#[derive(Serialize, Debug)]
pub(crate) struct ErrorObject {
    code: i16,
    message: String,
    data: FaultData,
}

/// The parts of an error.
#[derive(Serialize, Debug)]
struct FaultData {
    reason: FaultReason,
    /// The document at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<&'static str>,
    /// The place in the object, empty for the whole.
    #[serde(skip_serializing_if = "String::is_empty")]
    path: String,
}

/// The class of an error, with its code.
#[derive(Serialize, Debug, Clone, Copy)]
#[repr(i16)]
pub(crate) enum FaultReason {
    /// The line is not JSON.
    ParseError = -32700,
    /// The line is not a request of JSON-RPC 2.0.
    InvalidRequest = -32600,
    /// The method is unknown.
    MethodNotFound = -32601,
    /// The parameters do not fit the method.
    InvalidParams = -32602,
    /// No schema has the name, or it was dropped.
    UnknownSchema = 1,
    /// The schema is unreadable, lacks the kind or contradicts itself.
    InvalidSchema = 2,
    /// A document is not JSON.
    Unreadable = 3,
    /// A document is not an object.
    NotAnObject = 4,
    /// A document breaks a rule of the format or of the schema.
    Refused = 5,
    /// Both sides changed a field differently.
    Conflict = 6,
    /// The patch would change `apiVersion`, `kind` or `metadata.name`.
    Precondition = 7,
}

impl ErrorObject {
    pub(crate) fn new(reason: FaultReason, message: impl Into<String>) -> Self {
        let data = FaultData { reason, document: None, path: String::new() };
        Self { code: reason as i16, message: message.into(), data }
    }
}

impl From<PatchError> for ErrorObject {
    fn from(error: PatchError) -> Self {
        let message = with_causes(&error);
        let (reason, document, path) = match error {
            PatchError::Unreadable { document, .. } => (FaultReason::Unreadable, Some(document), String::new()),
            PatchError::NotAnObject { document, .. } => (FaultReason::NotAnObject, Some(document), String::new()),
            PatchError::Refused { path, .. } => (FaultReason::Refused, None, path.to_string()),
            PatchError::Conflict { path, .. } => (FaultReason::Conflict, None, path.to_string()),
            PatchError::Precondition { field } => (FaultReason::Precondition, None, field.to_owned()),
        };
        Self { code: reason as i16, message, data: FaultData { reason, document: document.map(parameter), path } }
    }
}

/// Writes the answer to a request on one line. The `id` is that of the request, or `None` if it could not be read. A result is
/// JSON text without line breaks.
pub(crate) fn write_answer(
    output: &mut impl Write,
    id: Option<&RawValue>,
    outcome: Result<String, ErrorObject>,
) -> IoResult<()> {
    let id = id.map_or("null", RawValue::get);
    let (member, text) = match outcome {
        Ok(result) => ("result", result),
        Err(fault) => ("error", serde_json::to_string(&fault)?),
    };
    writeln!(output, r#"{{"jsonrpc":"2.0","id":{id},"{member}":{text}}}"#)?;
    output.flush()
}

/// Returns the name of the parameter with the document.
fn parameter(document: DocumentRole) -> &'static str {
    match document {
        DocumentRole::Original => "original",
        DocumentRole::Modified => "modified",
        DocumentRole::Current => "current",
        DocumentRole::Patch => "patch",
        _ => "document",
    }
}
