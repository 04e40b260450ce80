//! Writes the answer to an inspection, in the form of the API server's own answers.

use super::finding::InspectionFinding;
use super::request::{InspectionRequest, SubjectKind};
use kube_unions_core::admission::response::{AdmissionResponse, Annotations, Denial, DenialCause, Warnings};
use kube_unions_core::admission::{Operation, ReviewOutcome};
use std::collections::HashSet;

/// The reason of every cause, as the API has it (`metav1.CauseType`).
const INVALID: &str = "FieldValueInvalid";

#[derive(Debug)]
pub(super) enum InspectionResult {
    /// The findings with their effect. No finding allows the object.
    Findings(Vec<(InspectionFinding, FindingEffect)>),
    /// The object was not inspected, for this reason.
    Unchecked(String),
}

/// The effect of a finding on the object that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FindingEffect {
    /// The object is denied.
    Denied,
    /// The object is allowed with a warning, because its old version has the same fault.
    Old,
    /// The object is allowed with a warning, because it takes effect in a surprising way.
    Surprising,
    /// The object is allowed with a warning, because the user should know something about it.
    Noted,
}

/// The answer to one inspection.
#[derive(Debug)]
pub(in crate::webhook) struct Inspected {
    pub(in crate::webhook) json: Vec<u8>,
    pub(in crate::webhook) uid: String,
    pub(in crate::webhook) operation: Operation,
    pub(in crate::webhook) outcome: ReviewOutcome,
    /// The label `outcome` of the inspection counter.
    pub(super) label: &'static str,
    /// Group and kind of the object.
    pub(in crate::webhook) kind: (&'static str, &'static str),
    /// The paths of a denial.
    pub(in crate::webhook) denied: Vec<String>,
}

impl Inspected {
    /// Denies if a finding denies, with all findings that do. Otherwise allows, with a warning for each finding.
    pub(super) fn new(request: InspectionRequest, judgement: &InspectionResult) -> Self {
        let findings = match judgement {
            InspectionResult::Findings(findings) => findings,
            InspectionResult::Unchecked(reason) => return Self::unchecked(request, reason),
        };
        let denied: Vec<_> = findings.iter().filter(|(_, effect)| *effect == FindingEffect::Denied).collect();
        if !denied.is_empty() {
            return Self::denied(request, denied.into_iter().map(|(finding, _)| finding));
        }
        let warnings = findings.iter().map(|(finding, effect)| {
            let why = match effect {
                FindingEffect::Old => "the fault is an old one",
                FindingEffect::Noted => "a note",
                FindingEffect::Denied | FindingEffect::Surprising => "may surprise",
            };
            (finding.warning(), format!("{} ({why})", finding.field))
        });
        Self::allowed(request, warnings)
    }

    /// Allows, with a warning that the object was not inspected.
    fn unchecked(request: InspectionRequest, reason: &str) -> Self {
        let name = request.subject.as_ref().map_or("", |subject| &subject.name);
        let (_, kind) = group_kind(&request);
        tracing::warn!(reason, kind, name, "an object that declares unions was allowed without a check");
        let later = match request.subject.as_ref().map(|subject| subject.kind) {
            Some(SubjectKind::Definition) => "`kube-unions lint` tells whether its unions are in force",
            Some(SubjectKind::Declaration) | None => "its condition will tell whether it is in force",
        };
        let warning = format!("not checked, {later}: {reason}");
        let allowed = Self::allowed(request, [(warning, "not checked".to_owned())]);
        Self { label: "unchecked", ..allowed }
    }

    /// Allows with warnings, each with its note for the audit log. The versions of a kind often have the same warning.
    fn allowed(request: InspectionRequest, findings: impl IntoIterator<Item = (String, String)>) -> Self {
        let (mut warnings, mut annotations) = (Warnings::default(), Annotations::default());
        let (mut warned, mut noted) = (HashSet::new(), HashSet::new());
        for (warning, note) in findings {
            if !warned.contains(&warning) {
                warnings.push(&warning);
                warned.insert(warning);
            }
            if !noted.contains(&note) {
                annotations.warned.push(&note);
                noted.insert(note);
            }
        }
        let (outcome, label) =
            if warned.is_empty() { (ReviewOutcome::Allowed, "allowed") } else { (ReviewOutcome::Warned, "warned") };
        Self::write(request, outcome, label, None, &warnings.finish(), &annotations)
    }

    fn denied<'f>(request: InspectionRequest, findings: impl Iterator<Item = &'f InspectionFinding>) -> Self {
        let mut annotations = Annotations::default();
        // The versions of a target often have the same fault.
        let mut seen = HashSet::new();
        let causes: Vec<DenialCause> = findings
            .filter(|finding| seen.insert(*finding))
            .map(|finding| DenialCause { reason: INVALID, message: finding.cause(), field: finding.field.clone() })
            .collect();
        let mut denied: Vec<String> = causes.iter().map(|cause| cause.field.clone()).collect();
        denied.dedup();
        for field in &denied {
            annotations.denied.push(format_args!("{field}: {INVALID}"));
        }
        let (group, kind) = group_kind(&request);
        let name = request.subject.as_ref().map(|subject| subject.name.clone()).unwrap_or_default();
        let denial = Denial::new(group, kind, name, causes);
        let answer = Self::write(request, ReviewOutcome::Denied, "denied", Some(&denial), &[], &annotations);
        Self { denied, ..answer }
    }

    fn write(
        request: InspectionRequest,
        outcome: ReviewOutcome,
        label: &'static str,
        denial: Option<&Denial>,
        warnings: &[String],
        annotations: &Annotations,
    ) -> Self {
        let kind = group_kind(&request);
        let InspectionRequest { uid, operation, .. } = request;
        let json = AdmissionResponse { uid: &uid, denial, patch: None, warnings, annotations }.to_json();
        Self { json, uid, operation, outcome, label, kind, denied: Vec::new() }
    }
}

fn group_kind(request: &InspectionRequest) -> (&'static str, &'static str) {
    request.subject.as_ref().map_or(("other", "other"), |subject| subject.kind.group_kind())
}
