//! Applies the renderings of one object in one way, and finds the unions that are invalid before and afterwards.

use super::apply_way::ApplyWay;
use super::invalid_union::{InvalidUnion, sets};
use super::kind_rules::PreviewedKind;
use crate::input::manifest::Document;
use anyhow::Context;
use kube_unions_core::admission::{ApplyMethod, Review};
use kube_unions_core::field_path::{FieldPath, Segment, pointer};
use kube_unions_core::union::{LetThrough, Violation};
use kube_unions_manifests::request::AppliedManifest;
use serde::Serialize;
use serde_json::Value;
use strategic_merge_patch::ApplySides;

/// The documents of one object.
#[derive(Debug, Clone, Copy)]
pub(super) struct ObjectRenderings<'d> {
    /// `None`: only the new rendering has the object.
    pub(super) old: Option<&'d Document>,
    pub(super) new: &'d Document,
    /// The object as a cluster has it. `None`: predict it from the old rendering.
    pub(super) live: Option<&'d Document>,
}

/// The reason why a member is in the live object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum MemberOrigin {
    /// The old rendering sets it.
    OldRendering,
    /// The API server added it to the old rendering.
    Default,
    /// The live object has it, and the old rendering does not.
    LiveObject,
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
    way: ApplyWay,
    /// The field manager that applies.
    manager: String,
    old: Option<Rendering>,
    pub(super) new: Rendering,
    /// `None`: the apply creates the object.
    pub(super) live: Option<Value>,
}

/// A manifest of an object.
#[derive(Debug)]
pub(super) struct Rendering {
    pub(super) written: Value,
    /// With the defaults of the API server: the object that a create stores.
    pub(super) completed: Value,
}

impl Rendering {
    fn read(kind: PreviewedKind<'_>, document: &Document) -> anyhow::Result<Self> {
        let written = kind.read(document)?;
        Ok(Self { completed: kind.completed(written.clone())?, written })
    }

    /// Returns the JSON Pointer of the union's object, or of its nearest parent.
    pub(super) fn pointer(&self, invalid: &InvalidUnion<'_>) -> String {
        // Keys of items can be defaults.
        pointer(invalid.address.tokens(&self.completed))
    }

    /// Returns the JSON Pointer of a null in the manifest and true, or that of its nearest parent and false. Items of lists may have other
    /// positions in an object.
    pub(super) fn null_pointer(&self, path: &FieldPath) -> (String, bool) {
        let whole = path.to_pointer();
        if self.written.pointer(&whole).is_some_and(Value::is_null) {
            return (whole, true);
        }
        let (mut at, mut tokens) = (&self.written, Vec::new());
        for segment in path.segments() {
            match (segment, at.get(segment.to_token())) {
                (Segment::Field(_) | Segment::Key(_), Some(inner)) => at = inner,
                _ => break,
            }
            tokens.push(segment.to_token());
        }
        (pointer(tokens), false)
    }

    /// Returns true if the manifest itself sets a member of the union.
    fn sets(&self, invalid: &InvalidUnion<'_>, member: &str) -> bool {
        let is_there = invalid.address.find(&self.completed).is_some();
        is_there && sets(self.written.pointer(&self.pointer(invalid)), member)
    }
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
        let old = documents.old.map(|old| Rendering::read(kind, old)).transpose()?;
        let live = match (documents.live, &old) {
            (Some(live), _) => Some(kind.completed(kind.read(live)?)?),
            (None, Some(old)) if way == ApplyWay::Ssa => {
                Some(kind.engines().first_applied(&old.written, old.completed.clone())?)
            }
            (None, old) => old.as_ref().map(|old| old.completed.clone()),
        };
        let manager = match (manager, &live) {
            (Some(manager), _) => manager.to_owned(),
            (None, Some(live)) if way == ApplyWay::Ssa => {
                kind.engines().applier(sides(old.as_ref(), &new.written, live))?
            }
            (None, _) => String::new(),
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
        self.written(self.way, manifest)
    }

    /// Returns the object after a merge patch.
    pub(super) fn merged(&self, patch: &Value) -> anyhow::Result<AttemptedApply> {
        self.written(ApplyWay::Merge, patch)
    }

    fn written(&self, way: ApplyWay, new: &Value) -> anyhow::Result<AttemptedApply> {
        let asked = match &self.live {
            Some(live) => way.apply(self.kind.engines(), sides(self.old.as_ref(), new, live), &self.manager)?,
            None => new.clone(),
        };
        let completed = self.kind.completed(asked.clone())?;
        if way != ApplyWay::Ssa || self.kind.is_built_in() {
            return Ok(AttemptedApply::Complete(completed));
        }
        let paths = removed_nulls(&asked, &completed);
        Ok(if paths.is_empty() {
            AttemptedApply::Complete(completed)
        } else {
            AttemptedApply::Refused(RefusedNulls { asked, paths })
        })
    }

    /// Returns the unions that are invalid in a state of the object.
    pub(super) fn invalid(&self, object: &Value) -> anyhow::Result<Vec<InvalidUnion<'t>>> {
        self.kind.invalid(self.documents.new, object)
    }

    /// Returns the answer of kube-unions to the apply.
    pub(super) fn review(&self, after: &Value) -> anyhow::Result<Review> {
        let text = self.new.written.to_string();
        let manifest = match self.way {
            ApplyWay::Ssa if self.creates() => Some(AppliedManifest::Given(&text, ApplyMethod::ServerSide)),
            ApplyWay::Ssa => Some(AppliedManifest::ManagedBy(&self.manager)),
            ApplyWay::Csa => Some(AppliedManifest::Given(&text, ApplyMethod::ClientSide)),
            ApplyWay::Helm | ApplyWay::Merge | ApplyWay::Replace => None,
        };
        self.kind.review(self.documents.new, self.live.as_ref(), after, manifest)
    }

    /// Returns the members that the new rendering does not set, and why they are in the live object.
    pub(super) fn left_behind(&self, invalid: &InvalidUnion<'_>) -> Vec<(String, MemberOrigin)> {
        let members = invalid.members.iter().filter(|name| invalid.blames(name) && !self.new.sets(invalid, name));
        let is_old = |name: &str| self.old.as_ref().is_some_and(|old| old.sets(invalid, name));
        let origin = |name: &str| match (is_old(name), self.documents.live) {
            (true, _) => MemberOrigin::OldRendering,
            (false, Some(_)) => MemberOrigin::LiveObject,
            (false, None) => MemberOrigin::Default,
        };
        members.map(|name| ((*name).to_owned(), origin(name))).collect()
    }

    /// Returns what becomes of a union on a cluster with kube-unions, by its answer to the apply.
    pub(super) fn with_kube_unions(
        &self,
        review: &Review,
        after: &Value,
        invalid: &InvalidUnion<'_>,
    ) -> WithKubeUnions {
        let is_here = |violation: &Violation| {
            self.kind.invalid_union(violation, after).is_some_and(|other| other.is_same(invalid))
        };
        let mut let_through = review.let_through().kept().iter().filter(|(violation, _)| is_here(violation));
        if review.violations().kept().iter().any(is_here) {
            return WithKubeUnions::Refused;
        }
        match let_through.next() {
            // The presets leave the refusal to the API server.
            Some((_, LetThrough::WarnOnly)) if self.kind.is_built_in() => WithKubeUnions::Refused,
            Some(_) => WithKubeUnions::Stored,
            None => WithKubeUnions::Mended,
        }
    }
}

/// Returns the sides of an apply to the live object. Without an old rendering, the manifest itself is the last one that was applied, so that
/// nothing is removed.
fn sides<'s>(old: Option<&'s Rendering>, new: &'s Value, live: &'s Value) -> ApplySides<'s> {
    ApplySides { old: old.map_or(new, |old| &old.written), new, live }
}

/// Returns the paths of the nulls that the defaults of the API server do not replace. It removes such a null of a custom resource from
/// every write but a server-side apply, which leaves one also in place of an object or a list that loses its last part.
pub(super) fn removed_nulls(asked: &Value, completed: &Value) -> Vec<FieldPath> {
    let inside = |segment: Segment, rest: Vec<FieldPath>| {
        let path =
            move |rest: FieldPath| [segment.clone()].into_iter().chain(rest.segments().iter().cloned()).collect();
        rest.into_iter().map(path).collect::<Vec<FieldPath>>()
    };
    match (asked, completed) {
        (Value::Object(asked), Value::Object(completed)) => {
            let fields = asked.iter().flat_map(|(name, value)| {
                let rest = completed.get(name).map(|completed| removed_nulls(value, completed));
                inside(Segment::Field(name.as_str().into()), rest.unwrap_or_else(|| vec![FieldPath::root()]))
            });
            fields.collect()
        }
        (Value::Array(asked), Value::Array(completed)) => {
            let pairs = asked.iter().zip(completed).enumerate();
            pairs
                .flat_map(|(at, (asked, completed))| inside(Segment::Index(at), removed_nulls(asked, completed)))
                .collect()
        }
        _ => Vec::new(),
    }
}
