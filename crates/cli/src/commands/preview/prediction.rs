//! Predicts what becomes of one object: the unions that are invalid afterwards, and the nulls for which it is refused.

use super::hooks::ObjectRefusal;
use super::kind_rules::ApiServerAnswer;
use super::left_behind::LeftBehind;
use super::nulls::OLD_EMPTY;
use super::remedies::Remedy;
use super::trial::{AttemptedApply, PreviewTrial, RefusedNulls, WithKubeUnions};
use crate::input::builtin::said;
use crate::input::manifest::{Document, applied};
use kube_unions_core::admission::ReviewOutcome;
use kube_unions_core::field_path::FieldPath;
use kube_unions_manifests::request::edits_below;
use kube_unions_offline::{HelpPage, InvalidUnion, RefusedField};

/// The note about items with the same keys.
const MERGED: &str =
    "the new rendering has items with the same keys: a patch merges what changes into the first of them";

/// The reason for which an apply creates an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Creation {
    /// Only the new rendering has it.
    New,
    /// It is a hook.
    Hook,
}

/// A union that the apply leaves invalid, or a null or a change that the API server refuses.
#[derive(Debug)]
pub(super) struct PredictedFault<'d> {
    pub(super) document: &'d Document,
    /// The JSON Pointer of the union's object or of the null in the document, or of its nearest parent.
    pub(super) pointer: String,
    /// The path of the violation in the object.
    pub(super) field: String,
    pub(super) violation: String,
    pub(super) enforcement: ApiServerAnswer,
    pub(super) help: HelpPage,
    /// The members that the new rendering does not set.
    pub(super) left_behind: Vec<LeftBehind>,
    /// One more sentence for the user.
    pub(super) note: Option<String>,
    /// True if nothing declares the union.
    pub(super) is_proposed: bool,
    /// `None`: the apply updates the object.
    pub(super) creation: Option<Creation>,
    /// True if the old object is invalid in the same way.
    pub(super) already: bool,
    pub(super) with_kube_unions: WithKubeUnions,
    pub(super) remedies: Vec<Remedy>,
}

impl<'t, 'd> PreviewTrial<'t, 'd> {
    /// Returns the refusal of a write for what is at a place of the new rendering. Nothing helps.
    pub(super) fn refusal(
        &self,
        pointer: String,
        field: String,
        violation: String,
        enforcement: ApiServerAnswer,
        help: HelpPage,
    ) -> PredictedFault<'d> {
        PredictedFault {
            document: self.documents.new,
            pointer,
            field,
            violation,
            enforcement,
            help,
            left_behind: Vec::new(),
            note: None,
            is_proposed: false,
            creation: self.creation(),
            already: false,
            with_kube_unions: WithKubeUnions::Refused,
            remedies: Vec::new(),
        }
    }

    /// Returns what the API server refuses beside the unions, at its place in the new rendering. Nothing helps but another manifest.
    fn refused_field(&self, refused: RefusedField) -> PredictedFault<'d> {
        let is_server_side = self.way.server_side().is_some();
        let words = if is_server_side { &refused.words_to_apply } else { refused.words() };
        let note = said(words);
        let RefusedField { path, message, help, .. } = refused;
        let whole = path.to_pointer();
        let is_written = self.new.written.pointer(&whole).is_some();
        let pointer = if is_written { whole } else { self.new.null_pointer(&path).0 };
        PredictedFault {
            note: Some(note),
            ..self.refusal(pointer, path.to_string(), message, ApiServerAnswer::Refused, help)
        }
    }

    /// Returns why the client refuses the object, or the unions that are invalid after the apply.
    pub(super) fn predict(&self) -> anyhow::Result<Vec<PredictedFault<'d>>> {
        let Some(refusal) = self.documents.refusal else { return self.invalid_after() };
        let mut faults = if refusal.is_after_a_create() { self.invalid_after()? } else { Vec::new() };
        faults.retain(|it| matches!(it.enforcement, ApiServerAnswer::Refused | ApiServerAnswer::RefusedNull));
        if faults.is_empty() {
            faults.push(self.refused_object(refusal));
        }
        Ok(faults)
    }

    /// Returns the unions that are invalid after the apply, and the fields that the API server refuses. It judges nothing but types if one is
    /// wrong. If the schema refuses nulls, the API server judges nothing else.
    fn invalid_after(&self) -> anyhow::Result<Vec<PredictedFault<'d>>> {
        let wrong_types = self.kind.wrong_types(&self.new.written);
        if !wrong_types.is_empty() {
            return Ok(wrong_types.into_iter().map(|field| self.refused_field(field)).collect());
        }
        if let Some(path) = self.duplicate() {
            return Ok(vec![self.refused_duplicate(&path)]);
        }
        let after = match self.applied(&self.new.written)? {
            AttemptedApply::Complete(after) => after,
            AttemptedApply::Refused(nulls) => return self.refused_nulls(&nulls),
        };
        if let Some(fault) = self.immutable(&after)? {
            return Ok(vec![fault]);
        }
        let left_over = self.left_over_before()?;
        let mut invalid: Vec<InvalidUnion<'t>> = Vec::new();
        for one in self.invalid(&after)? {
            // The violation of one member names all that are set.
            let is_told = |first: &InvalidUnion<'_>| first.is_too_many() && one.is_too_many() && first.is_same(&one);
            if !invalid.iter().any(is_told) && !left_over.iter().any(|it| it.is_of(one.union, &one.address)) {
                invalid.push(one);
            }
        }
        let refused = self.refused_transitions(&after);
        let fields = self.kind.refused_fields(self.live.as_ref(), &after);
        let refused_fields = fields.into_iter().map(|field| self.refused_field(field));
        if invalid.is_empty() && refused.is_empty() {
            return Ok(refused_fields.collect());
        }
        let before = self.live.as_ref().map_or(Ok(Vec::new()), |live| self.invalid(live))?;
        let review = self.review(&after)?;
        // A switch that kube-unions completes may be one that a rule refuses.
        let still_refused = self.refused_transitions(&applied(after.clone(), &edits_below(&[], &review)));
        let is_denied = review.outcome() == ReviewOutcome::Denied;
        let of_rules = if is_denied || still_refused.iter().any(|change| change.undecided.is_none()) {
            WithKubeUnions::Refused
        } else {
            WithKubeUnions::Mended
        };
        let is_merged = self.merges_duplicates();
        let predicted = |invalid: &InvalidUnion<'t>| {
            let left_behind = self.left_behind(invalid, &after);
            let with_kube_unions = match self.with_kube_unions(&review, &after, invalid) {
                WithKubeUnions::Mended => of_rules,
                otherwise @ (WithKubeUnions::Refused | WithKubeUnions::Stored) => otherwise,
            };
            let is_mended = with_kube_unions == WithKubeUnions::Mended && still_refused.is_empty() && !is_merged;
            let words = self.kind.server_words(invalid).map(said);
            let merged = is_merged.then(|| MERGED.to_owned());
            let (field, violation) = (invalid.violation.path.to_string(), invalid.violation.message());
            PredictedFault {
                note: merged.or(words),
                is_proposed: self.kind.is_proposed(invalid),
                already: before.iter().any(|other| other.is_same(invalid)),
                remedies: self.remedies(invalid, &left_behind, is_mended),
                with_kube_unions,
                left_behind,
                ..self.refusal(
                    self.new.pointer(invalid),
                    field,
                    violation,
                    self.kind.enforcement(invalid),
                    self.kind.help(invalid),
                )
            }
        };
        let mut faults: Vec<_> = invalid.iter().map(predicted).chain(refused_fields).collect();
        let remedies = self.remedies_of_change(!is_denied && still_refused.is_empty());
        faults.extend(refused.into_iter().map(|change| {
            let (pointer, _) = self.new.null_pointer(&change.field);
            let answer = change.undecided.map_or(ApiServerAnswer::Immutable, ApiServerAnswer::Unknown);
            PredictedFault {
                with_kube_unions: of_rules,
                remedies: remedies.clone(),
                ..self.refusal(pointer, change.field.to_string(), change.message, answer, HelpPage::IMMUTABLE)
            }
        }));
        Ok(faults)
    }

    fn creation(&self) -> Option<Creation> {
        let creation = if self.documents.is_hook { Creation::Hook } else { Creation::New };
        self.creates().then_some(creation)
    }

    /// Returns the refusal of an object by the client.
    fn refused_object(&self, refusal: ObjectRefusal) -> PredictedFault<'d> {
        let [field, pointer, violation, advice] = refusal.words(self.documents.new).map(str::to_owned);
        PredictedFault {
            note: Some(advice),
            ..self.refusal(pointer, field, violation, ApiServerAnswer::RefusedObject, HelpPage::HOOKS)
        }
    }

    /// Returns the refusal of a server-side apply whose manifest has two items with the same keys.
    fn refused_duplicate(&self, path: &FieldPath) -> PredictedFault<'d> {
        let violation = "duplicate entries: an earlier item of the list has the same keys".to_owned();
        self.refusal(path.to_pointer(), path.to_string(), violation, ApiServerAnswer::Refused, HelpPage::JUDGED)
    }

    fn refused_nulls(&self, nulls: &RefusedNulls) -> anyhow::Result<Vec<PredictedFault<'d>>> {
        let review = self.review(&nulls.asked)?;
        let changes = review.changes().filter(|_| review.outcome() != ReviewOutcome::Denied);
        let replaced: Vec<String> = changes.map(|change| change.path.to_pointer() + "/").collect();
        let predicted = |path: &FieldPath| {
            let null = format!("{}/", path.to_pointer());
            let is_gone = replaced.iter().any(|replaced| null.starts_with(replaced));
            let with_kube_unions = if is_gone { WithKubeUnions::Mended } else { WithKubeUnions::Refused };
            let (pointer, _) = self.new.null_pointer(path);
            let field = path.to_string();
            let wanted = self.kind.type_of(path).unwrap_or("another type");
            let violation = format!("Invalid value: \"null\": {field} in body must be of type {wanted}: \"null\"");
            PredictedFault {
                note: (!self.creates() && ["object", "array"].contains(&wanted)).then(|| OLD_EMPTY.to_owned()),
                remedies: self.remedies_of_null(path, with_kube_unions),
                with_kube_unions,
                ..self.refusal(pointer, field, violation, ApiServerAnswer::RefusedNull, HelpPage::NULL)
            }
        };
        Ok(nulls.paths.iter().map(predicted).collect())
    }
}
