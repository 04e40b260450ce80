//! Writing the answer: an `AdmissionReview` with a patch, with warnings, or with a denial that reads like the API server's own.

use super::request::{Operation, Request};
use super::{Outcome, Phase};
use crate::field_path::cut;
use crate::union::{Change, Judgement, LetThrough, Violation};
use base64::Engine;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// The API server cuts longer warnings.
const LONGEST_WARNING: usize = 256;
/// Past this many bytes of warnings the API server cuts them all.
const LONGEST_WARNINGS: usize = 4096;
/// What is kept free of that for a last warning that says how many are left out.
const RESERVED: usize = 64;
/// An object with more faults than this is told so; no one reads more.
const MOST_CAUSES: usize = 256;
/// Longest message of a denial and longest audit annotation, in bytes. The causes hold the rest.
const LONGEST_MESSAGE: usize = 8192;

/// The answer to one review.
#[derive(Debug)]
pub struct Review {
    uid: String,
    operation: Operation,
    ordinal: Option<usize>,
    outcome: Outcome,
    warnings: Vec<String>,
    changes: Vec<Change>,
    denial: Option<Denial>,
}

/// The `Status` of a denial.
#[derive(Debug, Serialize)]
struct Denial {
    status: &'static str,
    code: u16,
    reason: &'static str,
    message: String,
    details: Details,
}

#[derive(Debug, Serialize)]
struct Details {
    name: String,
    group: String,
    kind: String,
    causes: Vec<Cause>,
}

#[derive(Debug, Serialize)]
struct Cause {
    reason: &'static str,
    message: String,
    field: String,
}

/// Builds reviews.
pub(super) struct Answer;

impl Answer {
    /// Nothing to say.
    pub(super) fn allow(request: &Request<'_>) -> Review {
        Review {
            uid: request.uid.to_string(),
            operation: request.operation,
            ordinal: request.ordinal,
            outcome: Outcome::Allowed,
            warnings: Vec::new(),
            changes: Vec::new(),
            denial: None,
        }
    }

    /// Allowed, with what normalisation changes and with warnings about it.
    pub(super) fn patch(request: &Request<'_>, phase: Phase, judgement: Judgement) -> Review {
        let mut warnings = Warnings::default();
        judgement.changes.iter().for_each(|change| warnings.push(&change.to_string()));
        // The API server asks twice; what it is told twice it shows twice.
        if phase != Phase::Mutate {
            for (violation, reason) in &judgement.let_through {
                let reason = match reason {
                    LetThrough::Unchanged => "let through because the union did not change",
                    LetThrough::WarnOnly => "let through because its declaration only warns",
                };
                warnings.push(&format!("{violation}; {reason}"));
            }
        }
        let warnings = warnings.finish();
        let outcome = match (judgement.changes.is_empty(), warnings.is_empty()) {
            (false, _) => Outcome::Patched,
            (true, false) => Outcome::Warned,
            (true, true) => Outcome::Allowed,
        };
        Review { outcome, warnings, changes: judgement.changes, ..Self::allow(request) }
    }

    /// Denied, with every violation at once.
    pub(super) fn deny(request: &Request<'_>, body: &[u8], judgement: &Judgement) -> Review {
        let violations = &judgement.violations;
        let name = if request.name.is_empty() { name_in(body) } else { request.name.to_string() };
        let (group, kind) = (request.kind.group.to_string(), request.kind.name.to_string());
        let message = message(&group, &kind, &name, violations);
        let mut causes: Vec<_> = violations.iter().take(MOST_CAUSES).map(Cause::of).collect();
        if let Some(more) = violations.len().checked_sub(MOST_CAUSES).filter(|more| *more > 0) {
            let message = format!("and {more} more");
            causes.push(Cause { reason: "FieldValueInvalid", message, field: String::new() });
        }
        let details = Details { name, group, kind, causes };
        let denial = Denial { status: "Failure", code: 422, reason: "Invalid", message, details };
        Review { outcome: Outcome::Denied, denial: Some(denial), ..Self::allow(request) }
    }
}

impl Review {
    /// The `AdmissionReview` to send back.
    pub fn to_json(&self) -> Vec<u8> {
        let operations: Vec<_> = self.changes.iter().map(Change::operation).collect();
        let patch = (!operations.is_empty()).then(|| base64::prelude::BASE64_STANDARD.encode(json(&operations)));
        json(&Envelope {
            api_version: "admission.k8s.io/v1",
            kind: "AdmissionReview",
            response: Response {
                uid: &self.uid,
                allowed: self.denial.is_none(),
                status: self.denial.as_ref(),
                patch_type: patch.as_ref().map(|_| "JSONPatch"),
                patch,
                warnings: &self.warnings,
                audit_annotations: (!self.changes.is_empty())
                    .then(|| AuditAnnotations { normalized: self.changed_paths() }),
            },
        })
    }

    /// The uid of the request.
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// What was asked.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// What came of it.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// The position of the kind in the catalog that was asked, `None` if that does not know the kind.
    pub fn ordinal(&self) -> Option<usize> {
        self.ordinal
    }

    /// What the patch changes, in the order of paths.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// How many members the patch clears.
    pub fn cleared(&self) -> usize {
        self.changes.iter().filter(|change| change.clears()).count()
    }

    /// The warnings for the user.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The message of a denial.
    pub fn denial(&self) -> Option<&str> {
        self.denial.as_ref().map(|denial| &*denial.message)
    }

    /// The faults of a denial: path and message of each.
    pub fn causes(&self) -> impl Iterator<Item = (&str, &str)> {
        let causes = self.denial.iter().flat_map(|denial| &denial.details.causes);
        causes.map(|cause| (&*cause.field, &*cause.message))
    }

    /// The paths of a denial, for the log.
    pub fn denied_paths(&self) -> Vec<String> {
        self.causes().map(|(path, _)| path.to_owned()).collect()
    }

    fn changed_paths(&self) -> String {
        let mut paths = String::new();
        for change in &self.changes {
            let separator = if paths.is_empty() { "" } else { "," };
            // Writing to a string can't fail.
            let _ = write!(paths, "{separator}{}", change.path);
            if paths.len() > LONGEST_MESSAGE {
                return shorten(&paths, LONGEST_MESSAGE);
            }
        }
        paths
    }
}

impl Cause {
    fn of(violation: &Violation) -> Self {
        Self { reason: violation.reason(), message: violation.message(), field: violation.path.to_string() }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    api_version: &'static str,
    kind: &'static str,
    response: Response<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'a Denial>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    audit_annotations: Option<AuditAnnotations>,
}

/// The API server puts the webhook's name before each key.
#[derive(Serialize)]
struct AuditAnnotations {
    normalized: String,
}

/// Warnings within the bounds of the API server.
#[derive(Default)]
struct Warnings {
    all: Vec<String>,
    bytes: usize,
    left_out: usize,
}

impl Warnings {
    fn push(&mut self, text: &str) {
        let warning = shorten(text, LONGEST_WARNING);
        if self.left_out > 0 || self.bytes.saturating_add(warning.len()) > LONGEST_WARNINGS.saturating_sub(RESERVED) {
            self.left_out = self.left_out.saturating_add(1);
        } else {
            self.bytes = self.bytes.saturating_add(warning.len());
            self.all.push(warning);
        }
    }

    fn finish(mut self) -> Vec<String> {
        if self.left_out > 0 {
            self.all.push(format!("and {} more warnings", self.left_out));
        }
        self.all
    }
}

/// At most `longest` bytes of a text, the last ones an ellipsis where some are missing.
fn shorten(text: &str, longest: usize) -> String {
    const ELLIPSIS: &str = "…";
    if text.len() <= longest {
        return text.to_owned();
    }
    format!("{}{ELLIPSIS}", cut(text, longest.saturating_sub(ELLIPSIS.len())))
}

/// As `NewInvalid` of the API machinery words it.
fn message(group: &str, kind: &str, name: &str, violations: &[Violation]) -> String {
    let dot = if group.is_empty() { "" } else { "." };
    let mut message = format!("{kind}{dot}{group} {name:?} is invalid: ");
    let (open, close) = if violations.len() == 1 { ("", "") } else { ("[", "]") };
    message.push_str(open);
    for (position, violation) in violations.iter().enumerate() {
        let separator = if position == 0 { "" } else { ", " };
        // Writing to a string can't fail.
        let _ = write!(message, "{separator}{violation}");
        if message.len() > LONGEST_MESSAGE {
            return shorten(&message, LONGEST_MESSAGE);
        }
    }
    message.push_str(close);
    message
}

/// On CREATE the API server may leave the name to the object. Denials are rare, so the body is simply read again.
fn name_in(body: &[u8]) -> String {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Review {
        request: Request,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Request {
        object: Object,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Object {
        metadata: Metadata,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Metadata {
        name: String,
    }

    serde_json::from_slice::<Review>(body).map(|review| review.request.object.metadata.name).unwrap_or_default()
}

fn json(value: &impl Serialize) -> Vec<u8> {
    // Strings, numbers and lists of them: there is nothing in these types that can't be written.
    serde_json::to_vec(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_keep_within_the_bounds_of_the_api_server() {
        let mut warnings = Warnings::default();
        for _ in 0..1000 {
            warnings.push(&"é".repeat(1000));
        }
        let all = warnings.finish();
        assert!(all.iter().all(|warning| warning.len() <= LONGEST_WARNING));
        assert!(all.iter().map(String::len).sum::<usize>() <= LONGEST_WARNINGS);
        assert_eq!(all.last().map(String::as_str), Some("and 985 more warnings"));
    }
}
