//! Judges the write with the code of the webhook.

use crate::inputs::{InputName, PlaygroundInputs, PlaygroundProblem};
use kube_unions_core::admission::{Phase, Ratcheting, Review, ReviewOutcome};
use kube_unions_core::declaration::Severity;
use kube_unions_core::field_path::FieldPath;
use kube_unions_core::union::Change;
use kube_unions_manifests::normalized::own_edits;
use kube_unions_manifests::request::ReviewedObject;
use kube_unions_manifests::{Document, edit};
use serde::Serialize;

/// The verdict on a write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlaygroundVerdict {
    /// `create` or `update`.
    pub operation: &'static str,
    /// True if the API server would store the object.
    pub allowed: bool,
    /// The message of the API server, if it denies the write.
    pub message: Option<String>,
    /// The causes of a denial.
    pub causes: Vec<VerdictCause>,
    /// The warnings that a client prints.
    pub warnings: Vec<String>,
    /// The violations that only the audit log has.
    pub audit: Vec<String>,
}

/// A violation, with its place in the new object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VerdictCause {
    /// The field.
    pub path: String,
    /// The message without the field.
    pub message: String,
    /// Line and column in the new object, counted from 1.
    pub line: Option<usize>,
    /// The column.
    pub column: Option<usize>,
}

/// The object after normalisation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NormalizedObject {
    /// The text of the new object with the changes.
    pub text: String,
    /// The changes.
    pub changes: Vec<MarkedChange>,
    /// True if the text lost its comments, because anchors reach the changed fields.
    pub rewritten: bool,
}

/// A change, with its place in the new object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MarkedChange {
    /// The field.
    pub path: String,
    /// The reason, for example "cleared because `type` changed".
    pub reason: String,
    /// The line in the new object, counted from 1.
    pub line: Option<usize>,
}

/// The results of a review.
pub(crate) struct Reviewed {
    pub(crate) normalized: NormalizedObject,
    pub(crate) verdict: PlaygroundVerdict,
    pub(crate) json_patch: String,
}

/// Reviews the write. `None` without a new object.
pub(crate) fn review(inputs: &PlaygroundInputs) -> Option<Result<Reviewed, PlaygroundProblem>> {
    let new = inputs.new.as_ref()?;
    let fail = |input: InputName, document: &Document, message: String| {
        PlaygroundProblem::of_document(input, Severity::Error, document, "", message)
    };
    let completed = |input: InputName, document: &Document| {
        inputs.kinds.completed_document(document).map_err(|error| fail(input, document, error.to_string()))
    };
    let reviewed = || {
        let old = inputs.old.as_ref().map(|old| completed(InputName::Old, old)).transpose()?;
        let object = completed(InputName::New, new)?;
        let kind = new.group_version_kind();
        let written =
            ReviewedObject { kind: &kind, new: &object, old: old.as_ref(), subresource: None, manifest: None };
        let answer = |phase: Phase| {
            written
                .review(&inputs.kinds.catalog, phase, Ratcheting::Enabled)
                .map_err(|error| fail(InputName::New, new, error.to_string()))
        };
        let both = answer(Phase::Both)?;
        // A denial has no changes. The mutating phase shows those that precede it.
        let mutated = (both.outcome() == ReviewOutcome::Denied).then(|| answer(Phase::Mutate)).transpose()?;
        let mutated = mutated.as_ref().unwrap_or(&both);
        Ok(Reviewed {
            normalized: normalized(new, mutated)?,
            json_patch: json_patch(mutated),
            verdict: verdict(new, inputs.old.is_some(), &both),
        })
    };
    Some(reviewed())
}

fn normalized(new: &Document, review: &Review) -> Result<NormalizedObject, PlaygroundProblem> {
    let edits = own_edits(new, review);
    let changes = review.changes().map(|change| marked(new, &change)).collect();
    if edits.is_empty() {
        return Ok(NormalizedObject { text: new.section.text.clone(), changes, rewritten: false });
    }
    let edited = edit(&new.section, &edits)
        .map_err(|error| PlaygroundProblem::of_document(InputName::New, Severity::Error, new, "", error.to_string()))?;
    Ok(NormalizedObject { text: edited.text, changes, rewritten: edited.rewritten })
}

fn marked(new: &Document, change: &Change) -> MarkedChange {
    let line = new.position(&change.path.to_pointer()).map(|(line, _)| line);
    MarkedChange { path: change.path.to_string(), reason: change.reason.to_string(), line }
}

/// Returns the JSON Patch of the webhook's answer.
fn json_patch(review: &Review) -> String {
    let operations: Vec<_> = review.changes().map(|change| change.operation()).collect();
    if operations.is_empty() { String::new() } else { serde_json::to_string_pretty(&operations).unwrap_or_default() }
}

fn verdict(new: &Document, is_update: bool, review: &Review) -> PlaygroundVerdict {
    let cause = |path: &FieldPath, message: String| {
        let (line, column) = new.position(&path.to_pointer()).unzip();
        VerdictCause { path: path.to_string(), message, line, column }
    };
    PlaygroundVerdict {
        operation: if is_update { "update" } else { "create" },
        allowed: review.outcome() != ReviewOutcome::Denied,
        message: review.denial().map(str::to_owned),
        causes: review.violations().kept().iter().map(|it| cause(&it.path, it.message())).collect(),
        warnings: review.warnings().to_vec(),
        audit: review.observed().kept().iter().map(ToString::to_string).collect(),
    }
}
