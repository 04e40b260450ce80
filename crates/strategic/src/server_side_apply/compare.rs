//! Compares two objects field by field, for ownership.

use super::field_set::{FieldSet, SetNode};
use super::path::PathElement;
use super::types::{ApplyTypes, Handling, ListType, TypeFault, TypeRef};
use crate::error::BrokenAt;
use crate::value::{FieldLookup, Value, canonical_number};
use kube_unions_core::field_path::Segment;
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
    fn add(&mut self, element: &PathElement, inner: Self) {
        let Self { removed, set } = inner;
        if !removed.is_empty() {
            self.removed.children.add(element.clone(), removed);
        }
        if !set.is_empty() {
            self.set.children.add(element.clone(), set);
        }
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
        match handling {
            Handling::Map(map) if !map.atomic => {
                let before = old.and_then(Value::entries).unwrap_or_default();
                let after = new.and_then(Value::entries).unwrap_or_default();
                let (mut known, mut next) = (FieldLookup::of(before), FieldLookup::of(after));
                let removed = before.iter().map(|(name, old)| (name, Some(*old), next.get(name).map(|(_, new)| new)));
                let removed: Vec<_> = removed.collect();
                let added = after.iter().filter(|(name, _)| known.get(name).is_none());
                for (name, old, new) in removed.into_iter().chain(added.map(|(name, new)| (name, None, Some(*new)))) {
                    let Some(of) = map.field(name) else { continue };
                    let mut inner = NodeChanges::default();
                    self.compare_values(old, new, of, &mut inner)
                        .map_err(|broken| broken.inside(Segment::Field((*name).into())))?;
                    changes.add(&PathElement::Field((*name).into()), inner);
                }
                if !before.is_empty() || !after.is_empty() {
                    return Ok(());
                }
            }
            Handling::List(list) if !list.is_atomic() => {
                let (before, after) = (by_element(list, old)?, by_element(list, new)?);
                self.compare_items(list, &before, &after, changes)?;
                if !before.is_empty() || !after.is_empty() {
                    return Ok(());
                }
            }
            Handling::Scalar | Handling::Map(_) | Handling::List(_) => {}
        }
        if let (Some(old), Some(new)) = (old, new) {
            changes.set.member |= !equal(old, new);
        }
        Ok(())
    }

    /// Compares items by their identities. Duplicates have one owner, and count as one value.
    fn compare_items(
        &self,
        list: &ListType,
        before: &Items<'_>,
        after: &Items<'_>,
        changes: &mut NodeChanges,
    ) -> Result<(), BrokenAt<TypeFault>> {
        let none = Vec::new();
        for element in before.keys().chain(after.keys().filter(|element| !before.contains_key(element))) {
            let (old, new) = (before.get(element).unwrap_or(&none), after.get(element).unwrap_or(&none));
            let mut inner = NodeChanges::default();
            let mut compare = |old: Option<&(usize, Value<'_>)>, new: Option<&(usize, Value<'_>)>| {
                let (old, new, position) = (
                    old.map(|(_, old)| *old),
                    new.map(|(_, new)| *new),
                    new.or(old).map_or(0, |(position, _)| *position),
                );
                self.compare_values(old, new, list.items, &mut inner)
                    .map_err(|broken| broken.inside(Segment::Index(position)))
            };
            match (old.as_slice(), new.as_slice()) {
                ([] | [_], [] | [_]) => compare(old.first(), new.first())?,
                ([_, _, ..], [_, _, ..]) => {
                    let same =
                        old.len() == new.len() && old.iter().zip(new).all(|((_, old), (_, new))| equal(*old, *new));
                    inner.set.member = !same;
                }
                ([_, _, ..], _) => {
                    if !new.is_empty() {
                        compare(None, new.first())?;
                    }
                    inner.removed.member = true;
                }
                (_, [_, _, ..]) => {
                    if !old.is_empty() {
                        compare(old.first(), None)?;
                    }
                    inner.set.member = true;
                }
            }
            changes.add(element, inner);
        }
        Ok(())
    }
}

/// Returns true if the API server stores two values alike.
pub(super) fn equal(old: Value<'_>, new: Value<'_>) -> bool {
    old.equals(new, |left, right| left == right || canonical_number(left) == canonical_number(right))
}

/// The items of a list with their positions, by identity.
type Items<'a> = BTreeMap<PathElement, Vec<(usize, Value<'a>)>>;

fn by_element<'a>(list: &ListType, value: Option<Value<'a>>) -> Result<Items<'a>, BrokenAt<TypeFault>> {
    let mut found = Items::new();
    for (position, item) in value.and_then(Value::items).unwrap_or_default().iter().enumerate() {
        let element = list.element(*item).map_err(|fault| BrokenAt::from(fault).inside(Segment::Index(position)))?;
        found.entry(element).or_default().push((position, *item));
    }
    Ok(found)
}
