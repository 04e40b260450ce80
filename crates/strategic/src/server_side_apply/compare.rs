//! Compares two objects field by field, for ownership.

use super::field_set::{FieldSet, SetNode};
use super::path::PathElement;
use super::types::{ApplyTypes, Handling, TypeFault, TypeRef, ValuePart};
use crate::error::BrokenAt;
use crate::value::{Value, canonical_number};
use std::collections::BTreeMap;

/// The fields in which two objects differ.
#[derive(Debug, Default)]
pub(super) struct FieldChanges {
    pub(super) removed: FieldSet,
    /// Fields that are new or have another value.
    pub(super) set: FieldSet,
}

/// The changes at one path and below it.
#[derive(Debug, Default)]
struct NodeChanges {
    removed: SetNode,
    set: SetNode,
}

impl NodeChanges {
    fn add(&mut self, element: PathElement, inner: Self) {
        if !inner.removed.is_empty() {
            self.removed.children.add(element.clone(), inner.removed);
        }
        self.set.children.add(element, inner.set);
    }
}

impl ApplyTypes {
    /// Returns the changes from one object to another.
    ///
    /// # Errors
    /// An item of the new object without an identity: it lost its keys.
    pub(super) fn compare(&self, old: Value<'_>, new: Value<'_>) -> Result<FieldChanges, BrokenAt<TypeFault>> {
        let mut changes = NodeChanges::default();
        self.compare_values(Some(old), Some(new), TypeRef::ROOT, &mut changes)?;
        Ok(FieldChanges { removed: changes.removed.children, set: changes.set.children })
    }

    fn compare_values(
        &self,
        old: Option<Value<'_>>,
        new: Option<Value<'_>>,
        of: TypeRef,
        changes: &mut NodeChanges,
    ) -> Result<(), BrokenAt<TypeFault>> {
        let (before, after) = (self.handling(of, old), self.handling(of, new));
        if old.is_some() && new.is_some() && std::mem::discriminant(&before) != std::mem::discriminant(&after) {
            self.compare_as(before, old, new, changes)?;
        }
        self.compare_as(if new.is_some() { after } else { before }, old, new, changes)?;
        changes.set.member |= old.is_none();
        changes.removed.member |= new.is_none();
        Ok(())
    }

    fn compare_as(
        &self,
        handling: Handling<'_>,
        old: Option<Value<'_>>,
        new: Option<Value<'_>>,
        changes: &mut NodeChanges,
    ) -> Result<(), BrokenAt<TypeFault>> {
        let mut all = BTreeMap::<PathElement, (Vec<ValuePart<'_>>, Vec<ValuePart<'_>>)>::new();
        let parts = |value: Option<_>| value.and_then(|value| handling.parts(value)).unwrap_or_default();
        for part in parts(old) {
            all.entry(part.element()?).or_default().0.push(part);
        }
        for part in parts(new) {
            all.entry(part.element()?).or_default().1.push(part);
        }
        if let (true, Some(old), Some(new)) = (all.is_empty(), old, new) {
            changes.set.member |= !equal(old, new);
        }
        for (element, (old, new)) in all {
            let mut inner = NodeChanges::default();
            match (old.as_slice(), new.as_slice()) {
                ([] | [_], [] | [_]) => self.compare_parts(old.first(), new.first(), &mut inner)?,
                // Duplicate items have one owner, and count as one value.
                ([_, _, ..], [_, _, ..]) => {
                    let mut pairs = old.iter().zip(&new);
                    inner.set.member = old.len() != new.len() || pairs.any(|(old, new)| !equal(old.value, new.value));
                }
                ([_, _, ..], _) => {
                    self.compare_parts(None, new.first(), &mut inner)?;
                    inner.removed.member = true;
                }
                (_, [_, _, ..]) => {
                    self.compare_parts(old.first(), None, &mut inner)?;
                    inner.set.member = true;
                }
            }
            changes.add(element, inner);
        }
        Ok(())
    }

    fn compare_parts(
        &self,
        old: Option<&ValuePart<'_>>,
        new: Option<&ValuePart<'_>>,
        changes: &mut NodeChanges,
    ) -> Result<(), BrokenAt<TypeFault>> {
        let Some(ValuePart { of, step, .. }) = new.or(old) else { return Ok(()) };
        let compared = self.compare_values(old.map(|part| part.value), new.map(|part| part.value), *of, changes);
        compared.map_err(|broken| broken.inside(step.clone()))
    }
}

/// Returns true if the API server stores two values alike.
pub(super) fn equal(old: Value<'_>, new: Value<'_>) -> bool {
    old.equals(new, |left, right| left == right || canonical_number(left) == canonical_number(right))
}
