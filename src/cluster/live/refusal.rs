//! What the API server says when it says no, as kubectl prints it.

use kube::core::Status;
use std::fmt;

/// The cause that a `Status` has when a request failed for what is in its body, and not for what the object would become.
const UNEXPECTED: &str = "UnexpectedServerResponse";

/// The API server's answer to a request that it does not carry out.
#[derive(Debug, Clone)]
pub struct Refusal {
    status: Status,
}

impl Refusal {
    pub(super) fn new(status: Status) -> Self {
        Self { status }
    }

    /// From the body of an answer, which is a `Status` if it comes from an API server.
    pub(super) fn read(code: u16, body: &str) -> Self {
        match serde_json::from_str::<Status>(body) {
            Ok(status) if status.is_failure() => Self::new(status),
            _ => Self::new(Status::failure(body.trim(), "").with_code(code)),
        }
    }

    /// The HTTP status.
    pub fn code(&self) -> u16 {
        self.status.code
    }

    /// Where a list that has expired can be taken up again all the same, on newer data.
    pub(super) fn continuation(&self) -> Option<&str> {
        let token = self.status.metadata.as_ref()?.continue_.as_deref()?;
        Some(token).filter(|token| !token.is_empty())
    }

    /// Whether the object may have been changed between reading and patching it: a conflict, or a JSON Patch whose `test`
    /// failed. The API server answers that with 422 and nothing that tells it from other faults of a patch; what is wrong
    /// with an object has a cause.
    pub fn may_be_stale(&self) -> bool {
        let mut causes = self.status.details.iter().flat_map(|details| &details.causes);
        self.status.code == 409 || (self.status.code == 422 && causes.all(|cause| cause.reason == UNEXPECTED))
    }

    /// Whether the request was understood and is refused, and not lost on the way.
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

impl fmt::Display for Refusal {
    /// As `kubectl` has it in `cmd/util.checkErr`.
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
        assert_eq!(Refusal::read(500, &status.to_string()).to_string(), words);
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
        assert_eq!(Refusal::read(502, "bad gateway\n").to_string(), "Error from server: bad gateway");
    }

    #[test]
    fn only_what_another_writer_can_cause_may_be_stale() {
        let read = |code: u16, reason: &str| {
            let causes = json!([{"reason": reason, "message": "m", "field": "f"}]);
            let body = json!({"status": "Failure", "code": code, "details": {"causes": causes}});
            Refusal::read(code, &body.to_string())
        };
        assert!(read(409, "").may_be_stale() && read(422, UNEXPECTED).may_be_stale());
        let failed = r#"{"status": "Failure", "code": 422, "reason": "Invalid", "details": {}}"#;
        assert!(Refusal::read(422, failed).may_be_stale());
        assert!(!read(422, "FieldValueForbidden").may_be_stale() && !read(403, UNEXPECTED).may_be_stale());
        assert!(read(422, "").is_final() && !read(429, "").is_final() && !read(503, "").is_final());
    }
}
