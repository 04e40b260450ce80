//! Errors of the API server, as kubectl prints them.

use kube::core::Status;
use std::fmt;

/// The cause in a `Status` if the request itself failed, rather than the resulting object.
const UNEXPECTED: &str = "UnexpectedServerResponse";

/// The `Status` with which the API server refused a request.
#[derive(Debug, Clone)]
pub struct StatusError {
    status: Status,
}

impl StatusError {
    pub(super) fn new(status: Status) -> Self {
        Self { status }
    }

    /// Reads the body of an answer. It is not a `Status` if a proxy answered.
    pub(super) fn read(code: u16, body: &str) -> Self {
        match serde_json::from_str::<Status>(body) {
            Ok(status) if status.is_failure() => Self::new(status),
            _ => Self::new(Status::failure(body.trim(), "").with_code(code)),
        }
    }

    /// Returns the HTTP status.
    pub fn code(&self) -> u16 {
        self.status.code
    }

    /// Returns the token with which an expired list continues on newer data.
    pub(super) fn continuation(&self) -> Option<&str> {
        let token = self.status.metadata.as_ref()?.continue_.as_deref()?;
        Some(token).filter(|token| !token.is_empty())
    }

    /// Returns true if the object may have changed between reading and patching it: a conflict, or a JSON Patch whose `test`
    /// failed. The API server answers the latter with 422 like other errors of a patch, but an invalid object has causes.
    pub fn may_be_stale(&self) -> bool {
        let mut causes = self.status.details.iter().flat_map(|details| &details.causes);
        self.status.code == 409 || (self.status.code == 422 && causes.all(|cause| cause.reason == UNEXPECTED))
    }

    /// Returns true if retrying the request is useless.
    pub fn is_final(&self) -> bool {
        (400..500).contains(&self.status.code) && self.status.code != 429
    }

    fn causes(&self) -> Vec<String> {
        let mut causes = Vec::new();
        for cause in self.status.details.iter().flat_map(|details| &details.causes) {
            let line = format!("{}: {}", cause.field, cause.message);
            if !causes.contains(&line) {
                causes.push(line);
            }
        }
        causes
    }
}

impl fmt::Display for StatusError {
    /// Formats like `cmd/util.checkErr` of kubectl.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Status { message, reason, details, .. } = &self.status;
        if reason != "Invalid" {
            let kind = if reason.is_empty() || reason == "Unknown" { String::new() } else { format!(" ({reason})") };
            return write!(f, "Error from server{kind}: {message}");
        }
        let causes = self.causes();
        let named = details.as_ref().filter(|details| !details.kind.is_empty() || !details.name.is_empty());
        match named {
            Some(details) => write!(f, "The {} \"{}\" is invalid", details.kind, details.name)?,
            None if causes.is_empty() && !message.is_empty() => return write!(f, "The request is invalid: {message}"),
            None => f.write_str("The request is invalid")?,
        }
        match causes.as_slice() {
            [] => Ok(()),
            [cause] => write!(f, ": {cause}"),
            several => {
                f.write_str(": ")?;
                several.iter().try_for_each(|cause| write!(f, "\n* {cause}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[track_caller]
    fn says(status: &Value, words: &str) {
        assert_eq!(StatusError::read(500, &status.to_string()).to_string(), words);
    }

    #[test]
    fn a_refusal_reads_as_kubectl_prints_it() {
        let cause = |field: &str| json!({"field": field, "message": "Forbidden: no", "reason": "FieldValueForbidden"});
        let invalid = |causes: &[Value]| {
            json!({"status": "Failure", "code": 422, "reason": "Invalid", "message": "long",
                   "details": {"kind": "Widget", "name": "foo", "causes": causes}})
        };
        says(&invalid(&[cause("spec.a")]), "The Widget \"foo\" is invalid: spec.a: Forbidden: no");
        says(
            &invalid(&[cause("spec.a"), cause("spec.b"), cause("spec.a")]),
            "The Widget \"foo\" is invalid: \n* spec.a: Forbidden: no\n* spec.b: Forbidden: no",
        );
        says(&invalid(&[]), "The Widget \"foo\" is invalid");
        says(
            &json!({"status": "Failure", "code": 422, "reason": "Invalid", "message": "so"}),
            "The request is invalid: so",
        );
        says(
            &json!({"status": "Failure", "code": 404, "reason": "NotFound", "message": "widgets \"a\" not found"}),
            "Error from server (NotFound): widgets \"a\" not found",
        );
        assert_eq!(StatusError::read(502, "bad gateway\n").to_string(), "Error from server: bad gateway");
    }

    #[test]
    fn only_errors_that_another_writer_can_cause_may_be_stale() {
        let read = |code: u16, reason: &str| {
            let causes = json!([{"reason": reason, "message": "m", "field": "f"}]);
            let body = json!({"status": "Failure", "code": code, "details": {"causes": causes}});
            StatusError::read(code, &body.to_string())
        };
        assert!(read(409, "").may_be_stale() && read(422, UNEXPECTED).may_be_stale());
        let failed = r#"{"status": "Failure", "code": 422, "reason": "Invalid", "details": {}}"#;
        assert!(StatusError::read(422, failed).may_be_stale());
        assert!(!read(422, "FieldValueForbidden").may_be_stale() && !read(403, UNEXPECTED).may_be_stale());
        assert!(read(422, "").is_final() && !read(429, "").is_final() && !read(503, "").is_final());
    }
}
