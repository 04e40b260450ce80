//! Judges the write with the code of the webhook.

use crate::inputs::{InputName, PlaygroundInputs, PlaygroundProblem};
use crate::write::Write;
use kube_unions_core::admission::{Phase, Ratcheting, Review, ReviewOutcome};
use kube_unions_core::declaration::Severity;
use kube_unions_core::names::GroupVersionKind;
use kube_unions_core::union::{Part, UnionPlace};
use kube_unions_manifests::edit;
use kube_unions_manifests::request::{ReviewedObject, own_edits};
use serde::Serialize;
use serde_json::{Value, json};

/// The results of a review, all missing without a write. A change and a cause have an [`InputPlace`](crate::InputPlace).
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reviewed {
    /// The object that an apply asks the API server to store, as YAML. `None` if the new object is written as it is.
    pub applied: Option<String>,
    /// The object as the webhook normalises it, with the changes.
    pub normalized: Option<Value>,
    /// The verdict of the unions in force.
    #[serde(skip)]
    pub verdict: Option<ReviewVerdict>,
    /// The JSON Patch of the webhook, indented; empty without a change.
    pub json_patch: Option<String>,
}

/// The answer of the API server and the client to the write.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReviewVerdict {
    /// The fate of the write.
    pub outcome: PlaygroundOutcome,
    /// True if there is an old object.
    pub is_update: bool,
    /// The words of the denial, or the reason why nothing is judged.
    pub message: Option<String>,
    /// The violations, with their places.
    pub causes: Vec<Value>,
    /// The warnings for the client.
    pub warnings: Vec<String>,
    /// The violations that only the audit log has.
    pub audit: Vec<String>,
}

/// The fate of a write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum PlaygroundOutcome {
    /// No union forbids it.
    Allowed,
    /// A union forbids it.
    Denied,
    /// There is nothing to judge by, or not everything.
    #[default]
    NotJudged,
}

impl ReviewVerdict {
    /// Returns the verdict that a page shows: a write is allowed only if everything could be judged.
    pub(crate) fn shown(verdict: Option<Self>, inputs: &PlaygroundInputs, problems: &[PlaygroundProblem]) -> Self {
        match (why_not_judged(verdict.as_ref(), inputs, problems), verdict) {
            (None, Some(verdict)) => verdict,
            (why, verdict) => Self {
                message: why,
                outcome: PlaygroundOutcome::NotJudged,
                causes: Vec::new(),
                ..verdict.unwrap_or_default()
            },
        }
    }
}

/// Returns the reason why a verdict would say too much.
fn why_not_judged(
    verdict: Option<&ReviewVerdict>,
    inputs: &PlaygroundInputs,
    problems: &[PlaygroundProblem],
) -> Option<String> {
    let is_error = |problem: &&PlaygroundProblem| problem.severity == Severity::Error.name();
    let faulty = |input: InputName| problems.iter().filter(is_error).find(|problem| problem.input == input);
    if let Some(problem) = faulty(InputName::New).or_else(|| faulty(InputName::Old)) {
        return Some(problem.to_string());
    }
    let undefined = faulty(InputName::Definitions).map(ToString::to_string);
    let Some(new) = &inputs.new else { return undefined.or_else(|| Some("give a new object".to_owned())) };
    let kind = new.group_version_kind();
    let in_force = inputs.kinds.catalog.lookup(&kind.group, &kind.version, &kind.kind).is_some();
    if in_force && verdict.is_some_and(|verdict| verdict.outcome == PlaygroundOutcome::Denied) {
        return None;
    }
    if undefined.is_some() {
        return undefined;
    }
    let warned = problems.iter().find(|problem| problem.input == InputName::New);
    (!in_force).then(|| {
        warned.map_or_else(|| "no union of this kind is in force".to_owned(), |problem| problem.message.clone())
    })
}

/// Reviews the write. `None` without a new object.
pub(crate) fn review(inputs: &PlaygroundInputs) -> Option<Result<Reviewed, PlaygroundProblem>> {
    let new = inputs.new.as_ref()?;
    let reviewed = Write::of(inputs)?.and_then(|write| reviewed(inputs, &new.group_version_kind(), &write));
    Some(reviewed.map_err(|message| PlaygroundProblem::of_document(InputName::New, Severity::Error, new, "", message)))
}

fn reviewed(inputs: &PlaygroundInputs, kind: &GroupVersionKind, write: &Write) -> Result<Reviewed, String> {
    let (old, manifest) = (write.old.as_ref(), write.manifest());
    let written = ReviewedObject { kind, new: &write.new, old, subresource: None, manifest };
    let answer = |phase: Phase| {
        let review = written.review(&inputs.kinds.catalog, phase, Ratcheting::Enabled);
        review.map_err(|error| error.to_string())
    };
    let both = answer(Phase::Both)?;
    // A denial has no changes. The mutating phase shows those that precede it.
    let mutated = (both.outcome() == ReviewOutcome::Denied).then(|| answer(Phase::Mutate)).transpose()?;
    let mutated = mutated.as_ref().unwrap_or(&both);
    let entry = inputs.kinds.catalog.lookup(&kind.group, &kind.version, &kind.kind);
    let places = entry.map(|entry| entry.plan().places(Part::Main)).unwrap_or_default();
    Ok(Reviewed {
        applied: write.applied.is_some().then(|| write.shown.section.text.clone()),
        normalized: Some(normalized(write, &places, mutated)?),
        json_patch: Some(json_patch(mutated)),
        verdict: Some(verdict(write, &places, &both)),
    })
}

/// Returns the object with the changes. It is rewritten, without its comments, if anchors reach the changed fields.
fn normalized(write: &Write, places: &[UnionPlace<'_>], review: &Review) -> Result<Value, String> {
    let object = &write.shown;
    let edits = own_edits(object, review);
    let changes = review.changes().map(|change| {
        let place = write.place(places, &change.path);
        json!({"path": change.path.to_string(), "reason": change.reason.to_string(), "place": place})
    });
    let changes: Vec<Value> = changes.collect();
    if edits.is_empty() {
        return Ok(json!({"text": object.section.text, "changes": changes, "rewritten": false}));
    }
    let edited = edit(&object.section, &edits).map_err(|error| error.to_string())?;
    Ok(json!({"text": edited.text, "changes": changes, "rewritten": edited.rewritten}))
}

/// Returns the JSON Patch of the webhook's answer.
fn json_patch(review: &Review) -> String {
    let operations: Vec<_> = review.changes().map(|change| change.operation()).collect();
    if operations.is_empty() { String::new() } else { serde_json::to_string_pretty(&operations).unwrap_or_default() }
}

fn verdict(write: &Write, places: &[UnionPlace<'_>], review: &Review) -> ReviewVerdict {
    let causes = review.violations().kept().iter().map(
        |it| json!({"path": it.path.to_string(), "message": it.message(), "place": write.place(places, &it.path)}),
    );
    let is_denied = review.outcome() == ReviewOutcome::Denied;
    ReviewVerdict {
        outcome: if is_denied { PlaygroundOutcome::Denied } else { PlaygroundOutcome::Allowed },
        is_update: write.old.is_some(),
        message: review.denial().map(str::to_owned),
        causes: causes.collect(),
        warnings: review.warnings().to_vec(),
        audit: review.observed().kept().iter().map(ToString::to_string).collect(),
    }
}
