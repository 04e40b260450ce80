//! Compares two objects field by field, for ownership.

use super::field_set::{FieldSet, SetNode};
use super::path::PathElement;
use super::types::{ApplyTypes, Handling, ListType, MapType, TypeFault, TypeRef};
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
        let has_parts = match handling {
            Handling::Map(map) if !map.atomic => self.compare_fields(map, old, new, changes)?,
            Handling::List(list) if !list.is_atomic() => self.compare_items(list, old, new, changes)?,
            Handling::Scalar | Handling::Map(_) | Handling::List(_) => false,
        };
        if let (false, Some(old), Some(new)) = (has_parts, old, new) {
            changes.set.member |= !equal(old, new);
        }
        Ok(())
    }

    /// Compares fields by their names. Returns false if there are none.
    fn compare_fields(
        &self,
        map: &MapType,
        old: Option<Value<'_>>,
        new: Option<Value<'_>>,
        changes: &mut NodeChanges,
    ) -> Result<bool, BrokenAt<TypeFault>> {
        let before = old.and_then(Value::entries).unwrap_or_default();
        let after = new.and_then(Value::entries).unwrap_or_default();
        let (mut known, mut next) = (FieldLookup::of(before), FieldLookup::of(after));
        for (name, old) in before {
            self.compare_field(map, name, Some(*old), next.get(name).map(|(_, new)| new), changes)?;
        }
        for (name, new) in after.iter().filter(|(name, _)| known.get(name).is_none()) {
            self.compare_field(map, name, None, Some(*new), changes)?;
        }
        Ok(!before.is_empty() || !after.is_empty())
    }

    fn compare_field(
        &self,
        map: &MapType,
        name: &str,
        old: Option<Value<'_>>,
        new: Option<Value<'_>>,
        changes: &mut NodeChanges,
    ) -> Result<(), BrokenAt<TypeFault>> {
        let Some(of) = map.field(name) else { return Ok(()) };
        let mut inner = NodeChanges::default();
        let compared = self.compare_values(old, new, of, &mut inner);
        compared.map_err(|broken| broken.inside(Segment::Field(name.into())))?;
        changes.add(PathElement::Field(name.into()), inner);
        Ok(())
    }

    /// Compares items by their identities. Duplicates have one owner, and count as one value. Returns false if there are none.
    fn compare_items(
        &self,
        list: &ListType,
        old: Option<Value<'_>>,
        new: Option<Value<'_>>,
        changes: &mut NodeChanges,
    ) -> Result<bool, BrokenAt<TypeFault>> {
        let mut items = BTreeMap::<PathElement, (Vec<PlacedItem<'_>>, Vec<PlacedItem<'_>>)>::new();
        for (element, item) in with_elements(list, old)? {
            items.entry(element).or_default().0.push(item);
        }
        for (element, item) in with_elements(list, new)? {
            items.entry(element).or_default().1.push(item);
        }
        let is_empty = items.is_empty();
        for (element, (old, new)) in items {
            let mut inner = NodeChanges::default();
            match (old.as_slice(), new.as_slice()) {
                ([] | [_], [] | [_]) => self.compare_item(list, old.first(), new.first(), &mut inner)?,
                ([_, _, ..], [_, _, ..]) => {
                    let same = old.len() == new.len() && old.iter().zip(&new).all(|(old, new)| equal(old.1, new.1));
                    inner.set.member = !same;
                }
                ([_, _, ..], _) => {
                    self.compare_item(list, None, new.first(), &mut inner)?;
                    inner.removed.member = true;
                }
                (_, [_, _, ..]) => {
                    self.compare_item(list, old.first(), None, &mut inner)?;
                    inner.set.member = true;
                }
            }
            changes.add(element, inner);
        }
        Ok(!is_empty)
    }

    fn compare_item(
        &self,
        list: &ListType,
        old: Option<&PlacedItem<'_>>,
        new: Option<&PlacedItem<'_>>,
        changes: &mut NodeChanges,
    ) -> Result<(), BrokenAt<TypeFault>> {
        let Some((position, _)) = new.or(old) else { return Ok(()) };
        let compared = self.compare_values(old.map(|item| item.1), new.map(|item| item.1), list.items, changes);
        compared.map_err(|broken| broken.inside(Segment::Index(*position)))
    }
}

/// An item of a list with its position.
type PlacedItem<'a> = (usize, Value<'a>);

fn with_elements<'a>(
    list: &ListType,
    value: Option<Value<'a>>,
) -> Result<Vec<(PathElement, PlacedItem<'a>)>, BrokenAt<TypeFault>> {
    let items = value.and_then(Value::items).unwrap_or_default().iter().enumerate();
    let with_element = |(position, item): (usize, &Value<'a>)| match list.element(*item) {
        Ok(element) => Ok((element, (position, *item))),
        Err(fault) => Err(BrokenAt::from(fault).inside(Segment::Index(position))),
    };
    items.map(with_element).collect()
}

/// Returns true if the API server stores two values alike.
pub(super) fn equal(old: Value<'_>, new: Value<'_>) -> bool {
    old.equals(new, |left, right| left == right || canonical_number(left) == canonical_number(right))
}
