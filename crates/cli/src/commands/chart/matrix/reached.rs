//! The unions of a rendering, and those that an override reaches.

use super::overrides::NaiveOverride;
use super::unions::{RenderedUnion, unions_of};
use crate::commands::chart::values::ValuesPath;
use crate::commands::preview::Kinds;
use crate::input::kinds::entry_of;
use crate::input::manifest::Document;
use kube_unions_core::field_path::{FieldPath, pointer};
use kube_unions_core::schema::Schema;
use kube_unions_offline::InvalidUnion;
use std::collections::BTreeMap;
use std::ptr;

/// The object, the union and the place in the values of a row.
pub(super) type RowKey<'d> = ([Option<String>; 4], FieldPath, Option<&'d str>, ValuesPath);

/// The changes with which a user makes a choice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ChoiceOutcome {
    /// The override alone.
    Works,
    /// The override, with these values null.
    NeedsNulls(Vec<ValuesPath>),
    /// Another template: the default stays.
    DefaultStays,
}

/// The object of a document with unions.
pub(super) struct DefaultObject<'d> {
    pub(super) document: &'d Document,
    pub(super) schema: &'d Schema,
    pub(super) unions: Vec<RenderedUnion<'d>>,
}

/// A union of the default rendering that has the choice of an override, and had not before.
pub(super) struct ReachedUnion<'o, 'd> {
    pub(super) union: &'o RenderedUnion<'d>,
    /// The same in the rendering with the override.
    pub(super) now: RenderedUnion<'d>,
    pub(super) is_valid: bool,
}

/// The objects with unions of a rendering.
pub(super) type DefaultObjects<'d> = BTreeMap<[Option<String>; 4], DefaultObject<'d>>;

pub(super) fn row_key<'d>(object: &DefaultObject<'d>, union: &RenderedUnion<'d>, naive: &NaiveOverride) -> RowKey<'d> {
    (identity(object.document), union.path.clone(), union.union.members().next(), naive.path.clone())
}

pub(super) fn identity(document: &Document) -> [Option<String>; 4] {
    document.identity().map(|field| field.value.map(str::to_owned))
}

/// Returns the unions of a document that have a member or a value. `None`: its kind has no unions.
pub(super) fn judged<'d>(kinds: &'d Kinds, document: &'d Document) -> anyhow::Result<Option<DefaultObject<'d>>> {
    let Some(entry) = entry_of(&kinds.assembly.catalog, document) else { return Ok(None) };
    let kind = kinds.kind(entry)?;
    let written = kind.read(document)?;
    let completed = kind.completed(written.clone())?;
    let mut unions = unions_of(entry, &written, &completed);
    unions.retain(|union| !union.members.is_empty() || union.writes_value);
    Ok(Some(DefaultObject { document, schema: kind.schema(), unions }))
}

/// Returns the unions that an override reaches in a document.
pub(super) fn reached<'o, 'd>(
    kinds: &'d Kinds,
    object: &'o DefaultObject<'d>,
    document: &Document,
    naive: &NaiveOverride,
) -> anyhow::Result<Vec<ReachedUnion<'o, 'd>>> {
    let Some(entry) = entry_of(&kinds.assembly.catalog, document) else { return Ok(Vec::new()) };
    let kind = kinds.kind(entry)?;
    let written = kind.read(document)?;
    let completed = kind.completed(written.clone())?;
    let now = unions_of(entry, &written, &completed);
    let mut reached = Vec::new();
    for union in object.unions.iter().filter(|union| !naive.is_chosen_by(union)) {
        let is_same = |now: &&RenderedUnion<'_>| now.address == union.address && ptr::eq(now.union, union.union);
        if let Some(now) = now.iter().find(is_same).filter(|now| naive.is_chosen_by(now)) {
            reached.push(ReachedUnion { union, now: now.clone(), is_valid: true });
        }
    }
    if reached.is_empty() {
        return Ok(reached);
    }
    let invalid = kind.invalid(document, &completed)?;
    for ReachedUnion { now, is_valid, .. } in &mut reached {
        let is_of = |it: &InvalidUnion<'_>| {
            ptr::eq(it.union, now.union) && pointer(it.address.tokens(&completed)) == now.path.to_pointer()
        };
        *is_valid = !invalid.iter().any(|it| it.has_too_many() && is_of(it));
    }
    Ok(reached)
}
