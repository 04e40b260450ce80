//! Errors of requests, as kubectl prints them.

use super::request::RequestError;
use kube::core::Status;

/// The cause in a `Status` if the request itself failed, rather than the resulting object.
const UNEXPECTED: &str = "UnexpectedServerResponse";

/// An error of a command that reads or patches objects of a cluster.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// The API server refused the request, or did not answer.
    #[error("{}", refused(.0))]
    Request(#[from] RequestError),
    /// A list expired several times in a row; the name of the last object read.
    #[error("the list expires faster than it can be read; the objects behind `{0}` were not seen")]
    Expired(Box<str>),
    /// No resource has this name.
    #[error("the server doesn't have a resource type `{asked}`{}", near.as_deref().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default())]
    NoResource {
        /// The name that was asked for.
        asked: Box<str>,
        /// A name that it resembles.
        near: Option<Box<str>>,
    },
    /// Not a name of an object or a namespace.
    #[error("invalid name `{0}`: it must not be empty, `.` or `..`, or contain `/` or `%`")]
    Name(Box<str>),
}

impl LiveError {
    /// Returns the HTTP status of a refusal.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Request(error) => error.code(),
            Self::Expired(_) | Self::NoResource { .. } | Self::Name(_) => None,
        }
    }
}

impl From<kube::Error> for LiveError {
    fn from(error: kube::Error) -> Self {
        Self::Request(error.into())
    }
}

impl RequestError {
    /// Returns true if the object may have changed between reading and patching it: a conflict, or a JSON Patch whose `test`
    /// failed. The API server answers the latter with 422 like other errors of a patch, but an invalid object has causes.
    pub fn may_be_stale(&self) -> bool {
        let Self::Status(status) = self else { return false };
        let mut causes = status.details.iter().flat_map(|details| &details.causes);
        status.code == 409 || (status.code == 422 && causes.all(|cause| cause.reason == UNEXPECTED))
    }
}

/// Returns the text that kubectl prints for an error, see `cmd/util.checkErr`.
fn refused(error: &RequestError) -> String {
    let status = match error {
        RequestError::Status(status) => status,
        RequestError::Unanswered(reason) => return format!("cannot talk to the API server: {reason}"),
        RequestError::Endless(reason) => return reason.to_string(),
    };
    let Status { message, reason, details, .. } = &**status;
    if reason != "Invalid" {
        let kind = if reason.is_empty() || reason == "Unknown" { String::new() } else { format!(" ({reason})") };
        return format!("Error from server{kind}: {message}");
    }
    let mut causes = Vec::new();
    for cause in details.iter().flat_map(|details| &details.causes) {
        let line = format!("{}: {}", cause.field, cause.message);
        if !causes.contains(&line) {
            causes.push(line);
        }
    }
    let named = details.as_ref().filter(|details| !details.kind.is_empty() || !details.name.is_empty());
    let subject = match named {
        Some(details) => format!("The {} \"{}\" is invalid", details.kind, details.name),
        None if causes.is_empty() && !message.is_empty() => return format!("The request is invalid: {message}"),
        None => "The request is invalid".to_owned(),
    };
    match causes.as_slice() {
        [] => subject,
        [cause] => format!("{subject}: {cause}"),
        several => format!("{subject}: \n* {}", several.join("\n* ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_unions_core::causes::with_causes;
    use serde_json::{Value, json};

    #[track_caller]
    fn says(status: &Value, words: &str) {
        assert_eq!(refused(&RequestError::read(500, &status.to_string())), words);
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
        assert_eq!(refused(&RequestError::read(502, "bad gateway\n")), "Error from server: bad gateway");
    }

    #[test]
    fn only_errors_that_another_writer_can_cause_may_be_stale() {
        let read = |code: u16, reason: &str| {
            let causes = json!([{"reason": reason, "message": "m", "field": "f"}]);
            let body = json!({"status": "Failure", "code": code, "details": {"causes": causes}});
            RequestError::read(code, &body.to_string())
        };
        assert!(read(409, "").may_be_stale() && read(422, UNEXPECTED).may_be_stale());
        let failed = r#"{"status": "Failure", "code": 422, "reason": "Invalid", "details": {}}"#;
        assert!(RequestError::read(422, failed).may_be_stale());
        assert!(!read(422, "FieldValueForbidden").may_be_stale() && !read(403, UNEXPECTED).may_be_stale());
        assert!(read(422, "").is_final() && !read(429, "").is_final() && !read(503, "").is_final());
    }

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read the index")]
    struct Unread(#[source] RequestError);

    #[test]
    fn a_refusal_is_formatted_once_in_the_api_servers_words() {
        let status = Status::failure("foos is forbidden: User \"u\" cannot list", "Forbidden").with_code(403);
        let forbidden = RequestError::from(kube::Error::Api(Box::new(status)));
        assert_eq!(with_causes(&forbidden), "foos is forbidden: User \"u\" cannot list");
        assert_eq!(with_causes(&Unread(forbidden)), "cannot read the index: foos is forbidden: User \"u\" cannot list");
    }
}
