//! What is answered to a review, from what was judged: a patch, warnings, or a denial.

use super::answer::{Annotations, Answer, Cause, Denial, Warnings};
use super::request::{Operation, Request};
use super::{Outcome, Phase};
use crate::field_path::Printable;
use crate::union::{Change, ChangeReason, Judgement, LetThrough, Violation};
use serde::Deserialize;

/// Longest discriminator value that an audit annotation shows, in bytes.
const LONGEST_VALUE: usize = 64;

/// The answer to one review.
#[derive(Debug)]
pub struct Review {
    uid: String,
    operation: Operation,
    ordinal: Option<usize>,
    outcome: Outcome,
    warnings: Vec<String>,
    changes: Vec<Change>,
    violations: Vec<Violation>,
    let_through: Vec<(Violation, LetThrough)>,
    denial: Option<Denial>,
    annotations: Annotations,
}

impl Review {
    /// Nothing to say.
    pub(super) fn allow(request: &Request<'_>) -> Self {
        Self {
            uid: request.uid.to_string(),
            operation: request.operation,
            ordinal: request.ordinal,
            outcome: Outcome::Allowed,
            warnings: Vec::new(),
            changes: Vec::new(),
            violations: Vec::new(),
            let_through: Vec::new(),
            denial: None,
            annotations: Annotations::default(),
        }
    }

    /// Allowed, with what normalisation changes and with warnings about it.
    pub(super) fn patch(request: &Request<'_>, phase: Phase, judgement: Judgement) -> Self {
        let mut warnings = Warnings::default();
        let mut annotations = Annotations::default();
        for change in &judgement.changes {
            warnings.push(&change.to_string());
            match &change.reason {
                ChangeReason::Deduced { value, .. } => {
                    let value = Printable::new(value, LONGEST_VALUE);
                    annotations.set.push(format_args!("{}=\"{value}\"", change.path));
                }
                ChangeReason::ClearedByDiscriminator { .. } | ChangeReason::ClearedByMember { .. } => {
                    annotations.cleared.push(&change.path);
                }
            }
        }
        // The API server asks twice; what it is told twice it shows twice.
        if phase != Phase::Mutate {
            for (violation, reason) in &judgement.let_through {
                let (reason, why) = match reason {
                    LetThrough::Unchanged => {
                        ("let through because the union did not change", "the union did not change")
                    }
                    LetThrough::WarnOnly => {
                        ("let through because its declaration only warns", "its declaration only warns")
                    }
                };
                warnings.push(&format!("{violation}; {reason}"));
                annotations.warned.push(format_args!("{}: {} ({why})", violation.path, violation.reason()));
            }
        }
        let warnings = warnings.finish();
        let outcome = match (judgement.changes.is_empty(), warnings.is_empty()) {
            (false, _) => Outcome::Patched,
            (true, false) => Outcome::Warned,
            (true, true) => Outcome::Allowed,
        };
        let Judgement { changes, let_through, .. } = judgement;
        Self { outcome, warnings, changes, let_through, annotations, ..Self::allow(request) }
    }

    /// Denied, with every violation at once.
    pub(super) fn deny(request: &Request<'_>, body: &[u8], judgement: Judgement) -> Self {
        let name = if request.name.is_empty() { name_in(body) } else { request.name.to_string() };
        let causes = judgement.violations.iter().map(|violation| Cause {
            reason: violation.reason(),
            message: violation.message(),
            field: violation.path.to_string(),
        });
        let denial = Denial::new(&request.kind.group, &request.kind.name, name, causes);
        let mut annotations = Annotations::default();
        for violation in &judgement.violations {
            annotations.denied.push(format_args!("{}: {}", violation.path, violation.reason()));
        }
        let Judgement { violations, let_through, .. } = judgement;
        let denied = Self::allow(request);
        Self { outcome: Outcome::Denied, violations, let_through, denial: Some(denial), annotations, ..denied }
    }

    /// The `AdmissionReview` to send back.
    pub fn to_json(&self) -> Vec<u8> {
        let patch: Vec<_> = self.changes.iter().map(Change::operation).collect();
        let answer = Answer {
            uid: &self.uid,
            denial: self.denial.as_ref(),
            patch: &patch,
            warnings: &self.warnings,
            annotations: &self.annotations,
        };
        answer.to_json()
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

    /// Why it is denied: all of it, where [`causes`](Self::causes) stop at what an answer may hold.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// Violations that don't count, and why.
    pub fn let_through(&self) -> &[(Violation, LetThrough)] {
        &self.let_through
    }

    /// The warnings for the user.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The message of a denial.
    pub fn denial(&self) -> Option<&str> {
        self.denial.as_ref().map(Denial::message)
    }

    /// The faults of a denial: path and message of each.
    pub fn causes(&self) -> impl Iterator<Item = (&str, &str)> {
        let causes = self.denial.iter().flat_map(Denial::causes);
        causes.map(|cause| (&*cause.field, &*cause.message))
    }

    /// The paths of a denial, for the log.
    pub fn denied_paths(&self) -> Vec<String> {
        self.causes().map(|(path, _)| path.to_owned()).collect()
    }
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
