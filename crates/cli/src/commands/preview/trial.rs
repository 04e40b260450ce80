//! Applies the renderings of one object in one way, and finds the unions that are invalid before and afterwards.

use super::apply_way::ApplyWay;
use super::duplicates;
use super::hooks::ObjectRefusal;
use super::kind_rules::{ApiServerAnswer, PreviewedKind};
use super::nulls::{nulled, removed_nulls};
use super::rendered_object::Rendering;
use super::transitions::RefusedChange;
use crate::input::manifest::Document;
use anyhow::Context;
use kube_unions_core::admission::{ApplyMethod, Review};
use kube_unions_core::declaration::LAST_APPLIED;
use kube_unions_core::field_path::FieldPath;
use kube_unions_core::union::{LetThrough, Violation};
use kube_unions_manifests::request::AppliedManifest;
use kube_unions_offline::{InvalidUnion, LeftOver};
use serde::Serialize;
use serde_json::Value;
use strategic_merge_patch::{ApplyEngines, ApplyError, ApplySides, MixedItem, ServerSideError, TypeFault};

/// The documents of one object.
#[derive(Debug, Clone, Copy)]
pub(super) struct ObjectRenderings<'d> {
    /// `None`: only the new rendering has the object.
    pub(super) old: Option<&'d Document>,
    pub(super) new: &'d Document,
    /// The object as a cluster has it. `None`: predict it from the old rendering.
    pub(super) live: Option<&'d Document>,
    /// True for a hook that the client runs.
    pub(super) is_hook: bool,
    /// Set if the client refuses the object before its unions matter.
    pub(super) refusal: Option<ObjectRefusal>,
}

/// The result of the same apply on a cluster with kube-unions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum WithKubeUnions {
    /// Normalisation makes the union valid.
    Mended,
    /// The apply is refused.
    Refused,
    /// The object is stored as it is, with a warning.
    Stored,
}

/// The object after an apply.
#[derive(Debug)]
pub(super) enum AttemptedApply {
    /// With the defaults of the API server.
    Complete(Value),
    Refused(RefusedNulls),
}

/// The nulls that a server-side apply leaves in a custom resource, and that its schema refuses.
#[derive(Debug)]
pub(super) struct RefusedNulls {
    /// The object with the nulls.
    pub(super) asked: Value,
    /// At least one path.
    pub(super) paths: Vec<FieldPath>,
}

impl AttemptedApply {
    /// Returns the object. `None`: the API server refuses it for a null.
    pub(super) fn complete(self) -> Option<Value> {
        match self {
            Self::Complete(object) => Some(object),
            Self::Refused(_) => None,
        }
    }
}

/// One apply, and everything that is tried about it.
#[derive(Debug)]
pub(super) struct PreviewTrial<'t, 'd> {
    pub(super) kind: PreviewedKind<'t>,
    pub(super) documents: ObjectRenderings<'d>,
    pub(super) way: ApplyWay,
    /// The field manager that applies.
    manager: String,
    pub(super) old: Option<Rendering>,
    pub(super) new: Rendering,
    /// `None`: the apply creates the object.
    pub(super) live: Option<Value>,
}

impl<'t, 'd> PreviewTrial<'t, 'd> {
    /// Reads the objects. `manager` is the field manager that applies, if it is known.
    pub(super) fn new(
        kind: PreviewedKind<'t>,
        way: ApplyWay,
        manager: Option<&str>,
        documents: ObjectRenderings<'d>,
    ) -> anyhow::Result<Self> {
        let new = Rendering::read(kind, documents.new)?;
        let old = match documents.live.filter(|_| way.is_client_side_apply()) {
            // kubectl does not know the old rendering.
            Some(live) => last_applied(live),
            None => documents.old.cloned(),
        };
        let old =
            old.map(|old| Rendering::read(kind, &old)).transpose().context("the manifest that was applied last")?;
        let client = way.server_side();
        let applier = client.map_or("", |client| client.manager);
        let live = match (documents.live, &old) {
            (Some(live), _) => Some(kind.completed(kind.read(live)?)?),
            (None, Some(old)) if client.is_some() => {
                let first = kind.engines().first_applied(&old.written, old.completed.clone(), applier);
                // No server-side apply has stored duplicates, so somebody else has.
                Some(if first.as_ref().is_err_and(|error| duplicate(error).is_some()) {
                    old.completed.clone()
                } else {
                    first?
                })
            }
            (None, old) => old.as_ref().map(|old| old.completed.clone()),
        };
        let manager = match (manager, client, &live) {
            (None, Some(client), Some(live)) => {
                let nearest = kind.engines().applier(sides(old.as_ref(), &new.written, live), applier)?;
                if (client.may_be)(&nearest) { nearest } else { applier.to_owned() }
            }
            (manager, ..) => manager.unwrap_or(applier).to_owned(),
        };
        Ok(Self { kind, documents, way, manager, old, new, live })
    }

    /// Returns true if the apply creates the object.
    pub(super) fn creates(&self) -> bool {
        self.live.is_none()
    }

    /// Returns the object after the apply, and the answer of kube-unions.
    ///
    /// # Errors
    /// The API server refuses a null.
    pub(super) fn written_with_kube_unions(&self) -> anyhow::Result<(Value, Review)> {
        let after = self.applied(&self.new.written)?.complete().context("the schema refuses a null of the apply")?;
        let review = self.review(&after)?;
        Ok((after, review))
    }

    /// Returns the object after an apply of a manifest in place of the new rendering.
    pub(super) fn applied(&self, manifest: &Value) -> anyhow::Result<AttemptedApply> {
        self.written(self.way, manifest, self.live.as_ref())
    }

    /// Returns the object after the same apply to the object that an apply of the old rendering leads to. `None`: that apply may be refused,
    /// or the client takes no fields over by it.
    pub(super) fn applied_after_old(&self) -> anyhow::Result<Option<AttemptedApply>> {
        let (Some(old), Some(live), Some(client)) = (&self.old, &self.live, self.way.server_side()) else {
            return Ok(None);
        };
        if ApplyEngines::taken_over(live, &self.manager, client.takes_later)?.is_none() {
            return Ok(None);
        }
        let Some(between) = self.applied(&old.written)?.complete() else { return Ok(None) };
        let is_accepted = !self.may_be_refused(&between)?;
        is_accepted.then(|| self.written(self.way, &self.new.written, Some(&between))).transpose()
    }

    /// Returns the object after a merge patch.
    pub(super) fn merged(&self, patch: &Value) -> anyhow::Result<AttemptedApply> {
        self.written(ApplyWay::Merge, patch, self.live.as_ref())
    }

    fn written(&self, way: ApplyWay, new: &Value, live: Option<&Value>) -> anyhow::Result<AttemptedApply> {
        let Some(live) = live else { return self.completed(way, new.clone(), None) };
        let write = |live: &Value| {
            let mut sides = sides(self.old.as_ref(), new, live);
            let merged = self.without_duplicates(way, sides);
            if let Some([old, new, live]) = &merged {
                sides = ApplySides { old, new, live };
            }
            self.completed(way, way.apply(self.kind.engines(), sides, &self.manager)?, Some(live))
        };
        let Some(client) = way.server_side() else { return write(live) };
        let taken_first = ApplyEngines::taken_over(live, &self.manager, client.takes_first)?;
        let live = taken_first.as_ref().unwrap_or(live);
        let first = write(live)?;
        let AttemptedApply::Complete(after) = &first else { return Ok(first) };
        let base = if client.is_tried { live } else { after };
        match ApplyEngines::taken_over(base, &self.manager, client.takes_later)? {
            Some(taken) if !self.may_be_refused(after)? => write(&taken),
            Some(_) | None => Ok(first),
        }
    }

    /// Returns the sides of a strategic merge patch without the items that it merges into another of the same keys.
    fn without_duplicates(&self, way: ApplyWay, sides: ApplySides<'_>) -> Option<[Value; 3]> {
        let is_strategic = (way == ApplyWay::Helm || way.is_client_side_apply()) && self.kind.is_built_in();
        let ApplySides { old, new, live } = sides;
        is_strategic.then(|| duplicates::merged(&self.kind.places(), [old, new, live])).flatten()
    }

    /// Returns true if the apply merges items of the new rendering into others of the same keys.
    pub(super) fn merges_duplicates(&self) -> bool {
        let sides = self.live.as_ref().map(|live| sides(self.old.as_ref(), &self.new.written, live));
        sides.is_some_and(|sides| self.without_duplicates(self.way, sides).is_some())
    }

    /// Returns the items of the new rendering that the apply does not store as they are written.
    pub(super) fn mixed_items(&self) -> Vec<MixedItem> {
        let is_strategic = self.way == ApplyWay::Helm || self.way.is_client_side_apply();
        let patcher = self.kind.engines().strategic.as_ref().filter(|_| is_strategic);
        let (Some(patcher), Some(live)) = (patcher, &self.live) else { return Vec::new() };
        patcher.mixed_items(sides(self.old.as_ref(), &self.new.written, live))
    }

    /// Returns an object as the API server stores it in place of the live one, or the nulls that the schema refuses.
    fn completed(&self, way: ApplyWay, asked: Value, live: Option<&Value>) -> anyhow::Result<AttemptedApply> {
        let completed = match live {
            Some(live) => self.kind.updated(live, asked.clone())?,
            None => self.kind.completed(asked.clone())?,
        };
        if way.server_side().is_none() || self.kind.is_built_in() {
            return Ok(AttemptedApply::Complete(completed));
        }
        let paths = removed_nulls(&asked, &completed);
        Ok(if paths.is_empty() {
            AttemptedApply::Complete(completed)
        } else {
            AttemptedApply::Refused(RefusedNulls { asked, paths })
        })
    }

    /// Returns true if the API server refuses an object for a union or a change of one, or if that is not known.
    fn may_be_refused(&self, after: &Value) -> anyhow::Result<bool> {
        let is_stored = |invalid: &InvalidUnion<'_>| self.kind.enforcement(invalid) == ApiServerAnswer::Stored;
        Ok(self.changes_immutable_part(after)
            || !self.kind.refused_fields(self.live.as_ref(), after).is_empty()
            || !self.refused_transitions(after).is_empty()
            || !self.invalid(after)?.iter().all(is_stored))
    }

    /// Returns the unions that are invalid in a state of the object.
    pub(super) fn invalid(&self, object: &Value) -> anyhow::Result<Vec<InvalidUnion<'t>>> {
        self.kind.invalid(self.documents.new, object)
    }

    /// Returns what is left over in the new rendering, and in the live object or in the old rendering that it is predicted from, with the
    /// document that has it.
    pub(super) fn left_over(&self) -> anyhow::Result<Vec<(&'d Document, LeftOver<'t>)>> {
        let mut all = Vec::new();
        let new = (Some(self.documents.new), Some(&self.new.completed));
        let before = (self.documents.live.or(self.documents.old), self.live.as_ref());
        for side in [new, before] {
            let (Some(document), Some(object)) = side else { continue };
            for found in self.kind.left_over(document, object)? {
                // One line tells of both renderings.
                if !all.iter().any(|(_, other): &(&Document, LeftOver<'_>)| other.path == found.path) {
                    all.push((document, found));
                }
            }
        }
        Ok(all)
    }

    /// Returns what is left over in the live object or in the old rendering.
    pub(super) fn left_over_before(&self) -> anyhow::Result<Vec<LeftOver<'t>>> {
        self.live.as_ref().map_or(Ok(Vec::new()), |live| self.kind.left_over(self.documents.new, live))
    }

    /// Returns the answer of kube-unions to the apply.
    pub(super) fn review(&self, after: &Value) -> anyhow::Result<Review> {
        let text = self.new.written.to_string();
        let manifest = if self.way.is_client_side_apply() {
            Some(AppliedManifest::Given(&text, ApplyMethod::ClientSide))
        } else if self.way.server_side().is_none() {
            None
        } else if self.creates() {
            Some(AppliedManifest::Given(&text, ApplyMethod::ServerSide))
        } else {
            Some(AppliedManifest::ManagedBy(&self.manager))
        };
        self.kind.review(self.documents.new, self.live.as_ref(), after, manifest)
    }

    /// Returns the changes of unions from the live object that rules of the CRD refuse, or perhaps refuse.
    pub(super) fn refused_transitions(&self, after: &Value) -> Vec<RefusedChange> {
        self.live.as_ref().map_or_else(Vec::new, |live| self.kind.refused_transitions(live, after))
    }

    /// Returns the objects and lists of the live object that a server-side apply makes null, because the schema lets it.
    pub(super) fn nulled(&self) -> Vec<FieldPath> {
        let (Some(live), Some(_)) = (&self.live, self.way.server_side()) else { return Vec::new() };
        // A failure is told by the prediction.
        let after = self.applied(&self.new.written).ok().and_then(AttemptedApply::complete);
        after.map_or_else(Vec::new, |after| nulled(live, &after))
    }

    /// Returns the item for which a server-side apply of the new rendering is refused, because an earlier one has the same keys.
    pub(super) fn duplicate(&self) -> Option<FieldPath> {
        let client = self.way.server_side()?;
        let first = self.kind.engines().first_applied(&self.new.written, Value::Null, client.manager);
        first.err().as_ref().and_then(duplicate).cloned()
    }

    /// Returns true if the apply needs the field managers of the live object, and the document has none.
    pub(super) fn lacks_managers(&self) -> bool {
        let has = |live: &Value| {
            live.pointer("/metadata/managedFields").is_some_and(|list| list != &Value::Array(Vec::new()))
        };
        self.way.server_side().is_some() && self.documents.live.is_some() && !self.live.as_ref().is_some_and(has)
    }

    /// Returns true if kubectl removes nothing, because the live object does not tell what was applied last.
    pub(super) fn lacks_last_applied(&self) -> bool {
        self.way.is_client_side_apply() && self.documents.live.is_some() && self.old.is_none()
    }

    /// Returns what becomes of a union on a cluster with kube-unions, by its answer to the apply.
    pub(super) fn with_kube_unions(
        &self,
        review: &Review,
        after: &Value,
        invalid: &InvalidUnion<'_>,
    ) -> WithKubeUnions {
        if self.kind.is_never_enforced(invalid.union) {
            return WithKubeUnions::Refused;
        }
        let is_here = |violation: &Violation| {
            self.kind.invalid_union(violation, after).is_some_and(|other| other.is_same(invalid))
        };
        let mut let_through = review.let_through().kept().iter().filter(|(violation, _)| is_here(violation));
        if review.violations().kept().iter().any(is_here) {
            return WithKubeUnions::Refused;
        }
        match let_through.next() {
            // The presets leave the refusal to the API server, and other declarations that only warn to the CRD.
            Some((_, LetThrough::WarnOnly))
                if self.kind.is_built_in() || self.kind.enforcement(invalid) == ApiServerAnswer::Refused =>
            {
                WithKubeUnions::Refused
            }
            Some(_) => WithKubeUnions::Stored,
            None => WithKubeUnions::Mended,
        }
    }
}

/// Returns the manifest that `kubectl apply` applied last to a live object.
fn last_applied(live: &Document) -> Option<Document> {
    live.text_at(&["metadata", "annotations", LAST_APPLIED]).map(|manifest| live.with_text(manifest))
}

/// Returns the sides of an apply to the live object. Without an old rendering, the manifest itself is the last one that was applied, so that
/// nothing is removed.
fn sides<'s>(old: Option<&'s Rendering>, new: &'s Value, live: &'s Value) -> ApplySides<'s> {
    ApplySides { old: old.map_or(new, |old| &old.written), new, live }
}

/// Returns the path of the second of two items with the same keys, if an apply fails for them.
fn duplicate(error: &ServerSideError) -> Option<&FieldPath> {
    match error {
        ServerSideError::Apply(ApplyError::Type { path, fault: TypeFault::Duplicate(_), .. }) => Some(path),
        ServerSideError::Apply(_) | ServerSideError::Managers(_) | ServerSideError::NoEngine => None,
    }
}
