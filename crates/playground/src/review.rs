//! Judges a write as a cluster with kube-unions does: with the code of the webhook, and then as the API server judges the result.

use crate::described::DescribedKind;
use crate::kinds::PlaygroundKinds;
use crate::server;
use crate::verdict::{PlaygroundOutcome, ReviewVerdict, ShownCause};
use crate::write::Write;
use kube_unions_core::admission::{Phase, Ratcheting, Review, ReviewOutcome};
use kube_unions_core::catalog::CatalogEntry;
use kube_unions_core::union::{Part, UnionPlace};
use kube_unions_manifests::request::{ReviewedObject, edits_below, own_edits};
use kube_unions_manifests::{applied, edit};
use kube_unions_offline::HelpPage;
use serde::Serialize;
use serde_json::{Value, json};

/// The results of a review, all missing without a write that is judged. A change and a cause have an [`InputPlace`](crate::InputPlace).
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reviewed {
    /// The object that an apply asks the API server to store, as YAML. `None` if the new object is written as it is.
    pub applied: Option<String>,
    /// The object as the webhook normalises it, with the changes.
    pub normalized: Option<Value>,
    /// The JSON Patch of the webhook, indented; empty without a change.
    pub json_patch: Option<String>,
}

/// Returns the verdicts on a write, today and with kube-unions, and the other results.
pub(crate) fn judge(
    kinds: &PlaygroundKinds,
    entry: &CatalogEntry,
    described: Option<&DescribedKind>,
    write: &Write,
) -> Result<([ReviewVerdict; 2], Reviewed), String> {
    let today = server::judge(kinds, entry, described, write, &write.new)?;
    let (old, manifest) = (write.old.as_ref(), write.manifest());
    let written = ReviewedObject { kind: entry.gvk(), new: &write.new, old, subresource: None, manifest };
    let answer = |phase: Phase| {
        let review = written.review(&kinds.all.catalog, phase, Ratcheting::Enabled);
        review.map_err(|error| error.to_string())
    };
    let both = answer(Phase::Both)?;
    // A denial has no changes. The mutating phase shows those that precede it.
    let mutated = (both.outcome() == ReviewOutcome::Denied).then(|| answer(Phase::Mutate)).transpose()?;
    let mutated = mutated.as_ref().unwrap_or(&both);
    let places = entry.plan().places(Part::Main);
    let applied = write.applied.is_some().then(|| write.shown.section.text.clone());
    if kinds.is_never_enforced(entry) {
        let (with, text) = (today.clone(), &write.shown.section.text);
        let normalized = json!({"text": text, "changes": [], "rewritten": false});
        return Ok((
            [today, with],
            Reviewed { applied, normalized: Some(normalized), json_patch: Some(String::new()) },
        ));
    }
    let mut with = verdict(write, &places, &both);
    if with.outcome == PlaygroundOutcome::Allowed {
        let object: Value = serde_json::from_str(&write.new.text).map_err(|error| error.to_string())?;
        let object = write.new.with_text(self::applied(object, &edits_below(&[], &both)).to_string());
        // The webhook lets through what the API server itself may refuse.
        let stored = server::judge(kinds, entry, described, write, &object)?;
        if matches!(stored.outcome, PlaygroundOutcome::Denied | PlaygroundOutcome::Undecided) {
            with = ReviewVerdict { warnings: with.warnings, audit: with.audit, ..stored };
        }
    }
    let reviewed = Reviewed {
        applied,
        normalized: Some(normalized(write, &places, mutated)?),
        json_patch: Some(json_patch(mutated)),
    };
    Ok(([today, with], reviewed))
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
    let causes = review.violations().kept().iter().map(|it| ShownCause {
        path: it.path.to_string(),
        message: it.message(),
        place: write.place(places, &it.path),
        help: Some(HelpPage::DENIALS.page()),
    });
    let is_denied = review.outcome() == ReviewOutcome::Denied;
    let verdict = ReviewVerdict {
        outcome: if is_denied { PlaygroundOutcome::Denied } else { PlaygroundOutcome::Allowed },
        is_update: write.old.is_some(),
        message: review.denial().map(str::to_owned),
        causes: causes.collect(),
        warnings: review.warnings().to_vec(),
        audit: review.observed().kept().iter().map(ToString::to_string).collect(),
        ..ReviewVerdict::default()
    };
    verdict.finished()
}
