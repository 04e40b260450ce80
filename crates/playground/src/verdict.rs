//! Judges the write with the code of the webhook.

use crate::inputs::{InputName, PlaygroundInputs, PlaygroundProblem};
use kube_unions_core::admission::{Phase, Ratcheting, Review, ReviewOutcome};
use kube_unions_core::declaration::Severity;
use kube_unions_manifests::normalized::own_edits;
use kube_unions_manifests::request::ReviewedObject;
use kube_unions_manifests::{Document, edit};
use serde::Serialize;
use serde_json::{Value, json};

/// The results of a review, all missing without a write. A change and a cause have their places in the new object.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reviewed {
    /// The object as the webhook normalises it, with the changes.
    pub normalized: Option<Value>,
    /// The verdict: what the API server and the client tell of the write.
    pub verdict: Option<Value>,
    /// The JSON Patch of the webhook, indented; empty without a change.
    pub json_patch: Option<String>,
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
            normalized: Some(normalized(new, mutated)?),
            json_patch: Some(json_patch(mutated)),
            verdict: Some(verdict(new, inputs.old.is_some(), &both)),
        })
    };
    Some(reviewed())
}

/// Returns the new object with the changes. It is rewritten, without its comments, if anchors reach the changed fields.
fn normalized(new: &Document, review: &Review) -> Result<Value, PlaygroundProblem> {
    let edits = own_edits(new, review);
    let changes = review.changes().map(|change| {
        let line = new.position(&change.path.to_pointer()).map(|(line, _)| line);
        json!({"path": change.path.to_string(), "reason": change.reason.to_string(), "line": line})
    });
    let changes: Vec<Value> = changes.collect();
    if edits.is_empty() {
        return Ok(json!({"text": new.section.text, "changes": changes, "rewritten": false}));
    }
    let edited = edit(&new.section, &edits)
        .map_err(|error| PlaygroundProblem::of_document(InputName::New, Severity::Error, new, "", error.to_string()))?;
    Ok(json!({"text": edited.text, "changes": changes, "rewritten": edited.rewritten}))
}

/// Returns the JSON Patch of the webhook's answer.
fn json_patch(review: &Review) -> String {
    let operations: Vec<_> = review.changes().map(|change| change.operation()).collect();
    if operations.is_empty() { String::new() } else { serde_json::to_string_pretty(&operations).unwrap_or_default() }
}

fn verdict(new: &Document, is_update: bool, review: &Review) -> Value {
    let causes = review.violations().kept().iter().map(|it| {
        let (line, column) = new.position(&it.path.to_pointer()).unzip();
        json!({"path": it.path.to_string(), "message": it.message(), "line": line, "column": column})
    });
    json!({
        "operation": if is_update { "update" } else { "create" },
        "allowed": review.outcome() != ReviewOutcome::Denied,
        "message": review.denial(),
        "causes": causes.collect::<Vec<_>>(),
        "warnings": review.warnings(),
        // The violations that only the audit log has.
        "audit": review.observed().kept().iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}
