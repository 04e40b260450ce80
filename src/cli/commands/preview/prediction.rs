//! Predicts what becomes of the unions of one object.

use super::kind_rules::{ApiServerAnswer, ApplyWay, Kinds, UnionAt, union_at};
use crate::cli::input::manifest::Document;
use kube_unions_core::admission::{Phase, Ratcheting, Review};
use kube_unions_core::catalog::CatalogEntry;
use kube_unions_core::field_path::{Segment, pointer};
use kube_unions_core::names::GroupVersionKind;
use kube_unions_core::union::{LetThrough, UnionStep, Violation, ViolationKind};
use kube_unions_manifests::request::ReviewedObject;
use serde::Serialize;
use serde_json::{Map, Value, json};
use strategic_merge_patch::{ApplySides, server_side_manifest};

/// The documents of one object.
#[derive(Debug, Clone, Copy)]
pub(super) struct ObjectRenderings<'d> {
    pub(super) old: &'d Document,
    pub(super) new: &'d Document,
    /// The object as a cluster has it. `None`: predict it from the old rendering.
    pub(super) live: Option<&'d Document>,
}

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

/// Something that makes the apply succeed. Each was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Remedy {
    /// Remove a member from the new rendering, which sets several.
    KeepOne,
    /// Write nulls for these members into the new rendering.
    Null(Vec<String>),
    /// Run this command once, before the apply.
    Once(String),
    /// Install kube-unions, with this preset for a built-in kind.
    KubeUnions(Option<String>),
    /// Delete the object, and create it from the new rendering.
    Recreate,
}

/// One apply, with everything that is tried about it.
struct PreviewTrial<'t> {
    kinds: &'t Kinds,
    entry: &'t CatalogEntry,
    way: ApplyWay,
    documents: ObjectRenderings<'t>,
    old: Value,
    new: Value,
    live: Value,
    after: Value,
}

/// Predicts what becomes of an object. Returns the unions that are not valid afterwards.
pub(super) fn predict<'d>(
    kinds: &Kinds,
    entry: &CatalogEntry,
    way: ApplyWay,
    documents: ObjectRenderings<'d>,
) -> anyhow::Result<Vec<PredictedUnion<'d>>> {
    let kind = entry.gvk();
    let ObjectRenderings { old, new, live } = documents;
    // An apply does not write the status.
    let read = |document: &Document| -> anyhow::Result<Value> {
        let mut object: Map<String, Value> = serde_json::from_str(&document.text)?;
        object.remove("status");
        Ok(Value::Object(object))
    };
    let mut held = read(live.unwrap_or(old))?;
    kinds.complete(kind, &mut held)?;
    let (old, new_object) = (read(old)?, read(new)?);
    let apply = ApplySides { old: &old, new: &new_object, live: &held, is_stored: live.is_some() };
    let after = kinds.applied(kind, way, apply)?;
    let trial = PreviewTrial { kinds, entry, way, documents, old, new: new_object, live: held, after };
    let violations = trial.violations(&trial.after)?;
    if violations.is_empty() {
        return Ok(Vec::new());
    }
    let before = trial.violations(&trial.live)?;
    let mended = trial.review(&trial.after, Phase::Both, Ratcheting::Enabled, Some(&trial.live))?;
    let mut predicted: Vec<PredictedUnion<'d>> = Vec::new();
    for violation in violations {
        let Some(at) = union_at(entry, violation.path.segments()) else { continue };
        predicted.push(trial.predicted(new, &violation, &at, &before, &mended)?);
    }
    Ok(predicted)
}

impl PreviewTrial<'_> {
    /// Returns the object after another apply.
    fn applied(&self, way: ApplyWay, new: &Value) -> anyhow::Result<Value> {
        let is_stored = self.documents.live.is_some();
        self.kinds.applied(self.kind(), way, ApplySides { old: &self.old, new, live: &self.live, is_stored })
    }

    fn kind(&self) -> &GroupVersionKind {
        self.entry.gvk()
    }

    fn review(
        &self,
        object: &Value,
        phase: Phase,
        ratcheting: Ratcheting,
        old: Option<&Value>,
    ) -> anyhow::Result<Review> {
        let document = |value: &Value| self.documents.new.with_text(value.to_string());
        let (new, old) = (document(object), old.map(document));
        let manifest = (old.is_some() && self.way.tells_manifest()).then(|| self.manifest());
        let manifest = manifest.as_deref();
        let reviewed = ReviewedObject { kind: self.kind(), new: &new, old: old.as_ref(), subresource: None, manifest };
        Ok(reviewed.review(&self.kinds.assembly.catalog, phase, ratcheting)?)
    }

    /// Returns the fields that the author sets, as admission sees them: with server-side apply, the manager owns a null.
    fn manifest(&self) -> String {
        if self.way == ApplyWay::Ssa { server_side_manifest(&self.new).to_string() } else { self.new.to_string() }
    }

    /// Returns the violations of an object, whatever its declarations do about them.
    fn violations(&self, object: &Value) -> anyhow::Result<Vec<Violation>> {
        let review = self.review(object, Phase::Validate, Ratcheting::Disabled, None)?;
        let let_through = review.let_through().kept().iter().map(|(violation, _)| violation);
        let all = review.violations().kept().iter().chain(let_through).chain(review.observed().kept());
        let mut all: Vec<Violation> = all.cloned().collect();
        all.sort();
        all.dedup();
        Ok(all)
    }

    fn predicted<'d>(
        &self,
        document: &'d Document,
        violation: &Violation,
        at: &UnionAt<'_>,
        before: &[Violation],
        mended: &Review,
    ) -> anyhow::Result<PredictedUnion<'d>> {
        let path = violation.path.segments().get(..at.steps.len()).unwrap_or_default();
        let object = path.iter().try_fold(&self.after, |value, segment| child(value, &segment.to_token()));
        let value_of = |name: &str| object?.get(name);
        let members: Vec<&str> =
            at.union.members().filter(|name| value_of(name).is_some_and(|value| !value.is_null())).collect();
        let value = at.union.discriminator().and_then(value_of);
        let value = value.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        let (tokens, in_new) = counterpart(path, &at.steps, &self.after, &self.new);
        let pointer = pointer(tokens);
        let (_, in_old) = counterpart(path, &at.steps, &self.after, &self.old);
        let sets = |object: Option<&Value>, name: &str| {
            object.and_then(|object| object.get(name)).is_some_and(|value| !value.is_null())
        };
        // A member that a discriminator does not select is blamed alone.
        let blamed = violation.path.segments().get(at.steps.len()).map(Segment::to_token);
        let blamed = blamed.filter(|_| matches!(violation.kind, ViolationKind::NotSelected { .. }));
        let is_blamed = |name: &str| blamed.as_ref().is_none_or(|blamed| blamed == name);
        let left_behind: Vec<(String, MemberOrigin)> = members
            .iter()
            .filter(|name| is_blamed(name) && !sets(in_new, name))
            .map(|name| {
                let origin = match (sets(in_old, name), self.documents.live) {
                    (true, _) => MemberOrigin::OldRendering,
                    (false, Some(_)) => MemberOrigin::LiveObject,
                    (false, None) => MemberOrigin::Default,
                };
                ((*name).to_owned(), origin)
            })
            .collect();
        let with_kube_unions = self.with_kube_unions(mended, path, at);
        let remedies = if left_behind.is_empty() && self.is_invalid(&self.recreated()?, path, at)? {
            vec![Remedy::KeepOne]
        } else {
            self.remedies(path, &pointer, at, value.as_deref(), &left_behind, with_kube_unions)?
        };
        Ok(PredictedUnion {
            document,
            pointer,
            field: violation.path.to_string(),
            violation: violation.message(),
            enforcement: self.kinds.enforcement(self.kind(), at, value.as_deref(), &members),
            left_behind,
            already: before.iter().any(|other| self.is_about(other, path, at)),
            with_kube_unions,
            remedies,
        })
    }

    fn with_kube_unions(&self, review: &Review, path: &[Segment], at: &UnionAt<'_>) -> WithKubeUnions {
        let is_here = |violation: &Violation| self.is_about(violation, path, at);
        let mut let_through = review.let_through().kept().iter().filter(|(violation, _)| is_here(violation));
        if review.violations().kept().iter().any(is_here) {
            return WithKubeUnions::Refused;
        }
        match let_through.next() {
            // The presets leave the refusal to the API server.
            Some((_, LetThrough::WarnOnly)) if self.kinds.is_built_in(self.kind()) => WithKubeUnions::Refused,
            Some(_) => WithKubeUnions::Stored,
            None => WithKubeUnions::Mended,
        }
    }

    fn remedies(
        &self,
        path: &[Segment],
        pointer: &str,
        at: &UnionAt<'_>,
        value: Option<&str>,
        left_behind: &[(String, MemberOrigin)],
        with_kube_unions: WithKubeUnions,
    ) -> anyhow::Result<Vec<Remedy>> {
        let mut remedies = Vec::new();
        let names: Vec<String> = left_behind.iter().map(|(name, _)| name.clone()).collect();
        let mut with_nulls = self.new.clone();
        if let Some(object) = with_nulls.pointer_mut(pointer).and_then(Value::as_object_mut) {
            object.extend(names.iter().map(|name| (name.clone(), Value::Null)));
            if !self.is_invalid(&self.applied(self.way, &with_nulls)?, path, at)? {
                remedies.push(Remedy::Null(names.clone()));
            }
        }
        remedies.extend(self.once(path, at, value, &names)?);
        if with_kube_unions == WithKubeUnions::Mended {
            let preset = at.union.declaration().filter(|_| self.kinds.is_built_in(self.kind()));
            remedies.push(Remedy::KubeUnions(preset.map(str::to_owned)));
        }
        if !self.is_invalid(&self.recreated()?, path, at)? {
            remedies.push(Remedy::Recreate);
        }
        Ok(remedies)
    }

    /// Returns the command that switches the union, if its discriminator alone does.
    fn once(
        &self,
        path: &[Segment],
        at: &UnionAt<'_>,
        value: Option<&str>,
        left_behind: &[String],
    ) -> anyhow::Result<Option<Remedy>> {
        let in_object = at.steps.iter().all(|step| matches!(step, UnionStep::Field(_)));
        let (Some(discriminator), Some(value), true) = (at.union.discriminator(), value, in_object) else {
            return Ok(None);
        };
        let mut fields = Map::from_iter([(discriminator.to_owned(), json!(value))]);
        fields.extend(left_behind.iter().map(|name| (name.clone(), Value::Null)));
        let merged = path.iter().rev().fold(Value::Object(fields), |inner, step| json!({step.to_token(): inner}));
        if self.is_invalid(&self.applied(ApplyWay::Merge, &merged)?, path, at)? {
            return Ok(None);
        }
        let new = self.documents.new;
        let (name, namespace) = (new.name.as_deref().unwrap_or_default(), new.namespace.as_deref());
        // A shell would read other characters.
        let is_plain = |text: &str| text.bytes().all(|it| it.is_ascii_alphanumeric() || b"-._".contains(&it));
        if ![name, namespace.unwrap_or_default(), value].into_iter().all(is_plain) {
            return Ok(None);
        }
        let group = if self.kinds.is_built_in(self.kind()) { String::new() } else { format!(".{}", self.kind().group) };
        let resource = format!("{}{group}", self.kind().kind.to_lowercase());
        let namespace = namespace.map(|namespace| format!(" -n {namespace}")).unwrap_or_default();
        Ok(Some(Remedy::Once(format!("kubectl patch {resource} {name}{namespace} --type=merge -p '{merged}'"))))
    }

    /// Returns the new rendering as the API server stores it, if nothing is there before.
    fn recreated(&self) -> anyhow::Result<Value> {
        let mut object = self.new.clone();
        self.kinds.complete(self.kind(), &mut object)?;
        Ok(object)
    }

    /// Returns true if a union is invalid in the object at a path.
    fn is_invalid(&self, object: &Value, path: &[Segment], at: &UnionAt<'_>) -> anyhow::Result<bool> {
        Ok(self.violations(object)?.iter().any(|violation| self.is_about(violation, path, at)))
    }

    /// Returns true if a violation is about a union in the object at a path. An object can have several unions.
    fn is_about(&self, violation: &Violation, path: &[Segment], at: &UnionAt<'_>) -> bool {
        let own = violation.path.segments();
        own.starts_with(path) && union_at(self.entry, own).is_some_and(|other| std::ptr::eq(other.union, at.union))
    }
}

fn child<'v>(value: &'v Value, token: &str) -> Option<&'v Value> {
    match value.as_array() {
        Some(items) => items.get(token.parse::<usize>().ok()?),
        None => value.get(token),
    }
}

/// Follows a path of one object in another one: items of a list correspond by their keys, or by position if the list has none. Returns
/// the path there as far as it goes, and the value if it goes to the end.
fn counterpart<'v>(
    path: &[Segment],
    steps: &[UnionStep<'_>],
    from: &Value,
    to: &'v Value,
) -> (Vec<String>, Option<&'v Value>) {
    let (mut tokens, mut here, mut there) = (Vec::new(), Some(from), to);
    for (segment, step) in path.iter().zip(steps) {
        let item = here.and_then(|value| child(value, &segment.to_token()));
        let token = match step {
            UnionStep::Items { keys } if !keys.is_empty() => {
                let is_same = |other: &Value| {
                    keys.iter().all(|key| item.is_some_and(|it| it.get(key.name) == other.get(key.name)))
                };
                let position = there.as_array().and_then(|items| items.iter().position(is_same));
                position.map(|position| position.to_string())
            }
            UnionStep::Field(_) | UnionStep::Items { .. } | UnionStep::Values => Some(segment.to_token()),
        };
        let next = token.as_ref().and_then(|token| child(there, token));
        let (Some(token), Some(next)) = (token, next) else { return (tokens, None) };
        tokens.push(token);
        (here, there) = (item, next);
    }
    (tokens, Some(there))
}
