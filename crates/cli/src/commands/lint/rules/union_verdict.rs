//! The judgement of a union on a new object, which the rules beside it are compared with.

use super::subjects::CheckedUnion;
use kube_unions_core::admission::{Phase, Ratcheting, StoredObject, review};
use kube_unions_core::union::{Capped, Part, ViolationKind};
use kube_unions_evidence::{Combination, UnionFields};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The judgement of the union on a new object.
pub(super) enum UnionVerdict {
    Valid,
    /// Normalisation changes the object, so rules never see it like this.
    Normalized,
    Invalid(String),
}

/// Judges a new object with a combination by the union.
pub(super) fn judge(subject: &CheckedUnion<'_>, fields: &UnionFields, combination: &Combination) -> UnionVerdict {
    let mut object: Map<String, Value> = combination.members.iter().map(|member| (member.clone(), json!(1))).collect();
    if let Some(discriminator) = &fields.discriminator {
        let default = || subject.node()?.get("properties")?.get(discriminator)?.get("default").cloned();
        let value = |value: &String| match value.parse() {
            Ok(value) if subject.union.is_boolean() => Value::Bool(value),
            _ => Value::String(value.clone()),
        };
        let value = combination.value.as_ref().map(value).or_else(default);
        object.extend(value.map(|value| (discriminator.clone(), value)));
    }
    for (name, unset) in &combination.unset {
        let field = subject.node().and_then(|node| node.get("properties")?.get(name));
        object.insert(name.clone(), unset.of(field));
    }
    let whole = subject.whole(Value::Object(object));
    if subject.part == Part::Main && is_normalized(subject, &whole) {
        return UnionVerdict::Normalized;
    }
    let stored = match StoredObject::judge(subject.entry, &whole.to_string()) {
        Ok(stored) => stored,
        Err(error) => return UnionVerdict::Invalid(error.to_string()),
    };
    let violations = [stored.violations(), stored.warnings(), stored.observed()];
    let mut violations = violations.into_iter().flat_map(Capped::kept);
    let is_own = |name: &Arc<str>| subject.union.members().any(|own| own == &**name);
    // Another union of the object may require a member, too.
    let is_of_other =
        |kind: &ViolationKind| matches!(kind, ViolationKind::OneRequired { members } if !members.iter().all(is_own));
    let first = violations.find(|it| subject.is_at_place(&it.path) && !is_of_other(&it.kind));
    let first = first.map(|violation| violation.kind.to_string());
    first.map_or(UnionVerdict::Valid, UnionVerdict::Invalid)
}

/// Returns true if the webhook changes an object when it is created.
fn is_normalized(subject: &CheckedUnion<'_>, whole: &Value) -> bool {
    let kind = subject.entry.gvk();
    let request = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"uid": "1", "operation": "CREATE", "object": whole,
            "kind": {"group": &*kind.group, "version": &*kind.version, "kind": &*kind.kind}}});
    let answer = review(subject.catalog, Phase::Mutate, Ratcheting::Enabled, request.to_string().as_bytes());
    answer.is_ok_and(|answer| answer.changes().any(|change| subject.is_at_place(&change.path)))
}
