//! What has to change in one CRD for its unions to stand in the annotation.

use crate::cli::crd::EditableCrd;
use crate::cli::manifest::{Document, Edit};

/// The edits of one CRD, and what there is to object to.
#[derive(Debug, Default)]
pub(super) struct AnnotatePlan {
    /// Empty where the annotation says it already and the schema says nothing.
    pub(super) edits: Vec<Edit>,
    pub(super) objections: Vec<String>,
}

impl AnnotatePlan {
    /// `None` where the schema declares no unions.
    pub(super) fn of(document: &Document) -> anyhow::Result<Option<Self>> {
        let crd = EditableCrd::read(document)?;
        if crd.extensions.is_empty() {
            return Ok(None);
        }
        let before = match &crd.annotation {
            Ok(before) => before,
            Err(objection) => return Ok(Some(Self { edits: Vec::new(), objections: vec![objection.clone()] })),
        };
        let mut plan = Self::default();
        // The schema has the last word; that they contradict each other is for the compiler to report.
        let mut after = before.clone();
        for extended in &crd.extensions {
            let of_version = after.entry(extended.version.clone()).or_default();
            of_version.insert(extended.pointer.clone(), extended.value.clone());
            plan.edits.extend(crd.remove_extension(&extended.version, &extended.pointer));
        }
        if after != *before {
            plan.objections.extend(crd.annotation_overflow(&after)?);
            plan.edits.push(crd.set_annotation(&after)?);
        }
        Ok(Some(plan))
    }
}
