//! Predicts what becomes of the unions of one object.

use super::invalid_union::InvalidUnion;
use super::kind_rules::ApiServerAnswer;
use super::remedies::Remedy;
use super::trial::{MemberOrigin, PreviewTrial, WithKubeUnions};
use crate::cli::input::manifest::Document;

/// A union that the apply leaves invalid.
#[derive(Debug)]
pub(super) struct PredictedUnion<'d> {
    pub(super) document: &'d Document,
    /// The JSON Pointer of the union's object in the document, or of its nearest parent.
    pub(super) pointer: String,
    /// The path of the violation in the object.
    pub(super) field: String,
    pub(super) violation: String,
    pub(super) enforcement: ApiServerAnswer,
    /// The members that the new rendering does not set.
    pub(super) left_behind: Vec<(String, MemberOrigin)>,
    /// True if the old object is invalid in the same way.
    pub(super) already: bool,
    pub(super) with_kube_unions: WithKubeUnions,
    pub(super) remedies: Vec<Remedy>,
}

impl<'t, 'd> PreviewTrial<'t, 'd> {
    /// Returns the unions that are invalid after the apply.
    pub(super) fn predict(&self) -> anyhow::Result<Vec<PredictedUnion<'d>>> {
        let after = self.applied(&self.new.written)?;
        let invalid = self.invalid(&after)?;
        if invalid.is_empty() {
            return Ok(Vec::new());
        }
        let (before, review) = (self.invalid(&self.live)?, self.review(&after)?);
        let predicted = |invalid: &InvalidUnion<'t>| {
            let left_behind = self.left_behind(invalid);
            let with_kube_unions = self.with_kube_unions(&review, &after, invalid);
            PredictedUnion {
                document: self.documents.new,
                pointer: self.new.pointer(invalid),
                field: invalid.violation.path.to_string(),
                violation: invalid.violation.message(),
                enforcement: self.kind.enforcement(invalid),
                already: before.iter().any(|other| other.is_same(invalid)),
                remedies: self.remedies(invalid, &left_behind, with_kube_unions),
                with_kube_unions,
                left_behind,
            }
        };
        Ok(invalid.iter().map(predicted).collect())
    }
}
