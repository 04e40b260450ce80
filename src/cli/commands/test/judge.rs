//! Judges one test: the webhook's code answers its write, and the answer is compared with the expected one.

use super::diff;
use super::format::CauseManifest;
use super::read;
use super::suite::{TestedObject, TestedWrite, Want, single};
use crate::cli::input::kinds::Assembly;
use crate::cli::input::manifest::{self, Document, Problem};
use crate::cli::input::values::Subresource;
use kube_unions_core::admission::{Phase, Review, ReviewOutcome};
use kube_unions_core::causes::with_causes;
use kube_unions_core::declaration::Severity;
use kube_unions_core::union::Part;
use kube_unions_manifests::misspelt::KnownKinds;
use kube_unions_manifests::normalized::edits_below;
use kube_unions_manifests::request::ReviewedObject;
use serde_json::Value;
use std::collections::BTreeSet;
use std::error::Error;

/// The answer was not the expected one.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) message: String,
    /// The lines of a diff: `-` is expected and absent, `+` is there and not expected. It shows the objects of the test to
    /// their author.
    pub(super) difference: Vec<String>,
}

/// Judges a write with the unions of an assembly. `None`: the answer is the expected one.
pub(super) fn judge(write: &TestedWrite, kinds: &Assembly) -> Result<Option<Failure>, Problem> {
    let new = write.new.read()?;
    let old = write.old.as_ref().map(TestedObject::read).transpose()?;
    if let Some(old) = &old {
        check_identity(old, &new)?;
    }
    let want = Expected::of(&write.want)?;
    if let Some(failure) = without_union(write, &new, kinds) {
        return Ok(Some(failure));
    }
    let completed =
        |document: &Document| kinds.completed_document(document).map_err(|error| problem_of(document, &error));
    let (completed_new, old) = (completed(&new)?, old.as_ref().map(completed).transpose()?);
    let kind = new.group_version_kind();
    let subresource = write.subresource.map(Subresource::name);
    let object = ReviewedObject { kind: &kind, new: &completed_new, old: old.as_ref(), subresource, manifest: None };
    let review = object
        .review(&kinds.catalog, Phase::Both, write.ratcheting)
        .map_err(|error| Problem::of_document(&new, "", error.to_string()))?;
    let answer = ReviewedWrite { review: &review, new: &completed_new, kinds };
    match want {
        Expected::Accepted(warnings) => answer.is_object(&completed_new, Some(warnings), "accepted unchanged"),
        Expected::Normalized(want, warnings) => answer.is_object(&completed(&want)?, warnings, "accepted"),
        Expected::Rejected(causes) => Ok(answer.is_rejection(&causes)),
    }
}

/// The expected answer, with its objects.
enum Expected<'w> {
    Accepted(&'w [String]),
    Normalized(Box<Document>, Option<&'w [String]>),
    Rejected(Vec<CauseManifest>),
}

impl<'w> Expected<'w> {
    fn of(want: &'w Want) -> Result<Self, Problem> {
        Ok(match want {
            Want::Accepted { warnings } => Self::Accepted(warnings),
            Want::Normalized { object, warnings } => Self::Normalized(object.read()?.into(), warnings.as_deref()),
            Want::Rejected(causes) => Self::Rejected(causes.clone()),
            Want::File(file) => {
                let document = single(file)?;
                if document.kind.is_none() && document.api_version.is_none() {
                    Self::Rejected(read::rejection(&document)?)
                } else {
                    Self::Normalized(TestedObject::Inline(document).read()?.into(), None)
                }
            }
        })
    }
}

/// An update keeps the kind and the name of its object.
fn check_identity(old: &Document, new: &Document) -> Result<(), Problem> {
    let differing = old.identity().into_iter().zip(new.identity()).find(|(old, new)| old != new);
    let Some((before, after)) = differing else { return Ok(()) };
    let shown = |value: Option<&str>| value.map_or("none".to_owned(), |value| format!("`{value}`"));
    let message = format!(
        "`{}` is {} in the new object and {} in the old one: an update keeps it",
        after.name,
        shown(after.value),
        shown(before.value)
    );
    Err(Problem::of_document(new, after.pointer, message))
}

/// Returns a failure if no union could judge the object. Every expectation but a rejection would hold.
fn without_union(write: &TestedWrite, new: &Document, kinds: &Assembly) -> Option<Failure> {
    let gvk = new.group_version_kind();
    let (kind, api_version) = (&gvk.kind, new.api_version.as_deref().unwrap_or_default());
    let part = write.subresource.map_or(Part::Main, |_| Part::Status);
    let message = match kinds.catalog.lookup(&gvk.group, &gvk.version, &gvk.kind) {
        Some(entry) if entry.plan().has(part) => return None,
        Some(_) => match part {
            Part::Main => {
                format!("all unions of `{kind}` of `{api_version}` are in `status`: add `subresource: status`")
            }
            Part::Status => format!("`{kind}` of `{api_version}` has no union in `status`, or no status subresource"),
        },
        None => {
            let near = KnownKinds::new(kinds.kinds()).meant(new);
            let near = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
            let faults = kinds.catalog.faults().iter().filter(|fault| fault.severity() == Severity::Error);
            let faults =
                if faults.count() > 0 { "; `kube-unions lint` shows the faults of the declarations" } else { "" };
            format!("`{kind}` of `{api_version}` has no union here{near}{faults}")
        }
    };
    Some(Failure { message, difference: Vec::new() })
}

fn problem_of(document: &Document, error: &dyn Error) -> Problem {
    Problem::of_document(document, "", with_causes(error))
}

/// The answer to a write.
struct ReviewedWrite<'a> {
    review: &'a Review,
    /// The new object, with its defaults.
    new: &'a Document,
    kinds: &'a Assembly,
}

impl ReviewedWrite<'_> {
    /// Compares the stored object and the warnings.
    fn is_object(&self, want: &Document, warnings: Option<&[String]>, state: &str) -> Result<Option<Failure>, Problem> {
        if self.review.outcome() == ReviewOutcome::Denied {
            let message = format!("the object is rejected, not {state}");
            let causes: Vec<String> = self.causes().iter().map(line).collect();
            return Ok(Some(Failure { message, difference: diff::texts(&[], &causes) }));
        }
        let parse = |document: &Document| {
            serde_json::from_str::<Value>(&document.text).map_err(|error| problem_of(document, &error))
        };
        let stored = manifest::applied(parse(self.new)?, &edits_below(&[], self.review));
        // The API server sets defaults again after the patch of a webhook.
        let stored = self
            .kinds
            .completed_document(&self.new.with_text(stored.to_string()))
            .map_err(|error| problem_of(self.new, &error))?;
        let (want, stored) = (parse(want)?, parse(&stored)?);
        if want != stored {
            let message = if state == "accepted" {
                "the normalised object is not the expected one".to_owned()
            } else {
                format!("the object is changed, not {state}")
            };
            let difference = diff::values(want, stored).map_err(|error| problem_of(self.new, &*error))?;
            return Ok(Some(Failure { message, difference }));
        }
        let Some(warnings) = warnings.filter(|warnings| *warnings != self.review.warnings()) else { return Ok(None) };
        let message = "the warnings are not the expected ones".to_owned();
        let difference = diff::texts(warnings, self.review.warnings());
        Ok(Some(Failure { message, difference }))
    }

    /// Compares the causes of a rejection, in any order.
    fn is_rejection(&self, want: &[CauseManifest]) -> Option<Failure> {
        let causes = self.causes();
        // A cause with more details matches fewer violations, so it chooses first.
        let mut wanted: Vec<&CauseManifest> = want.iter().collect();
        wanted.sort_by_key(|cause| (cause.message.is_none(), cause.reason.is_none()));
        let (mut found, mut missing) = (BTreeSet::new(), Vec::new());
        for cause in wanted {
            let free = causes.iter().enumerate().filter(|(index, _)| !found.contains(index));
            match free.into_iter().find(|(_, actual)| is(actual, cause)).map(|(index, _)| index) {
                Some(index) => {
                    found.insert(index);
                }
                None => missing.push(cause),
            }
        }
        if missing.is_empty() && found.len() == causes.len() {
            return None;
        }
        let message = if causes.is_empty() {
            "the object is accepted, not rejected"
        } else {
            "the causes of the rejection are not the expected ones"
        };
        let actual: Vec<String> = causes.iter().map(line).collect();
        let expected =
            actual.iter().enumerate().filter(|(index, _)| found.contains(index)).map(|(_, line)| line.clone());
        let expected: Vec<String> = expected.chain(missing.into_iter().map(line)).collect();
        Some(Failure { message: message.to_owned(), difference: diff::texts(&expected, &actual) })
    }

    /// Returns the causes of a rejection.
    fn causes(&self) -> Vec<CauseManifest> {
        // The last cause may count the rest, and is no violation.
        let reasons = self.review.violations().kept().iter().map(|violation| Some(violation.reason().to_owned()));
        let reasons = reasons.chain(std::iter::repeat(None));
        let cause = |((field, message), reason): ((&str, &str), _)| CauseManifest {
            field: field.to_owned(),
            reason,
            message: Some(message.to_owned()),
        };
        self.review.causes().zip(reasons).map(cause).collect()
    }
}

/// Returns true if an actual cause is the wanted one.
fn is(actual: &CauseManifest, want: &CauseManifest) -> bool {
    want.field == actual.field
        && want.message.as_deref().is_none_or(|part| actual.message.as_deref().is_some_and(|it| it.contains(part)))
        && (want.reason.is_none() || want.reason == actual.reason)
}

/// Returns a cause as a line of a diff, for example `spec.oci (FieldValueForbidden): Forbidden: …`.
fn line(CauseManifest { field, reason, message }: &CauseManifest) -> String {
    let field = if field.is_empty() { "the whole object" } else { field };
    let reason = reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    let message = message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
    format!("{field}{reason}{message}")
}
