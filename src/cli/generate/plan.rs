//! What has to change in one CRD for it to declare what its Go types mark.

use crate::cli::crd::EditableCrd;
use crate::cli::manifest::{Document, Edit};
use kube_unions_core::declaration::AnnotationContent;
use kube_unions_go::{Derivation, FindingReason, GoFinding, Severity};
use std::collections::BTreeMap;

/// The edits of one CRD, and what there is to say about them.
#[derive(Debug, Default)]
pub(super) struct GeneratePlan {
    /// Empty where the CRD declares all of it already.
    pub(super) edits: Vec<Edit>,
    pub(super) findings: Vec<GoFinding>,
}

impl GeneratePlan {
    pub(super) fn of(
        document: &Document,
        outcomes: &[(Box<str>, Derivation)],
        in_schema: bool,
    ) -> anyhow::Result<Self> {
        let marked: AnnotationContent = outcomes
            .iter()
            .map(|(version, outcome)| {
                let places = outcome.declarations().into_iter().map(|(place, value)| (place.to_pointer(), value));
                (version.to_string(), places.collect())
            })
            .collect();
        let crd = EditableCrd::read(document)?;
        let before = match &crd.annotation {
            Ok(before) => before,
            Err(objection) => return Ok(Self { edits: Vec::new(), findings: vec![error(objection.clone())] }),
        };
        if in_schema { extend(&crd, before, &marked) } else { annotate(&crd, before, &marked) }
    }
}

/// Everything into the annotation. Markers have the last word, then the schema.
fn annotate(crd: &EditableCrd, before: &AnnotationContent, marked: &AnnotationContent) -> anyhow::Result<GeneratePlan> {
    let mut plan = GeneratePlan::default();
    let mut after = before.clone();
    for extended in &crd.extensions {
        let of_version = after.entry(extended.version.clone()).or_default();
        of_version.insert(extended.pointer.clone(), extended.value.clone());
        plan.edits.extend(crd.remove_extension(&extended.version, &extended.pointer));
    }
    for (version, places) in marked.iter().filter(|(_, places)| !places.is_empty()) {
        after.entry(version.clone()).or_default().extend(places.clone());
    }
    if after != *before {
        plan.findings.extend(crd.annotation_overflow(&after)?.map(error));
        plan.edits.push(crd.set_annotation(&after)?);
    }
    Ok(plan)
}

/// What is marked into the schema, and out of the annotation.
fn extend(crd: &EditableCrd, before: &AnnotationContent, marked: &AnnotationContent) -> anyhow::Result<GeneratePlan> {
    let mut plan = GeneratePlan::default();
    let mut after = before.clone();
    for (version, places) in marked {
        for (pointer, value) in places {
            let known = crd.extensions.iter().find(|it| it.version == *version && it.pointer == *pointer);
            if known.is_none_or(|known| known.value != *value) {
                plan.edits.extend(crd.set_extension(version, pointer, value.clone()));
            }
            if let Some(of_version) = after.get_mut(version) {
                of_version.remove(pointer);
            }
        }
    }
    after.retain(|version, places| !places.is_empty() || before.get(version).is_some_and(BTreeMap::is_empty));
    if after != *before {
        plan.edits.push(crd.set_annotation(&after)?);
    }
    Ok(plan)
}

fn error(message: String) -> GoFinding {
    GoFinding { position: None, path: String::new(), severity: Severity::Error, reason: FindingReason::Fault, message }
}
