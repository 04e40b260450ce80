//! What has to change in one CRD for its unions to stand in the annotation.

use crate::cli::manifest::{Document, Edit};
use crate::cli::standing::Standing;

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
        let standing = Standing::of(document)?;
        if standing.in_schema.is_empty() {
            return Ok(None);
        }
        let before = match &standing.annotation {
            Ok(before) => before,
            Err(objection) => return Ok(Some(Self { edits: Vec::new(), objections: vec![objection.clone()] })),
        };
        let mut plan = Self::default();
        // The schema has the last word; that they contradict each other is for the compiler to report.
        let mut after = before.clone();
        for extended in &standing.in_schema {
            let of_version = after.entry(extended.version.clone()).or_default();
            of_version.insert(extended.pointer.clone(), extended.value.clone());
            plan.edits.extend(standing.remove(&extended.version, &extended.pointer));
        }
        if after != *before {
            plan.objections.extend(standing.excess(&after)?);
            plan.edits.push(standing.annotate(&after)?);
        }
        Ok(Some(plan))
    }
}
