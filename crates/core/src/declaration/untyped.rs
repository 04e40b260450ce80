//! Reads `schemaless` and `listKeys` of a declared union.

use super::declared_union::{DeclaredMember, DeclaredUnion, MOST_KEYS};
use crate::schema::{Declared, Place, PlaceStep, Source, Untyped};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Most steps of a path whose fields the schema need not describe. Every step becomes a node of the schema.
const MOST_STEPS: usize = 64;

impl DeclaredUnion {
    /// Returns everything that a union declares with its place, or the message of a fault.
    pub(super) fn checked(&self) -> Result<(Place, Declared), String> {
        let (place, value) = self.graft()?;
        let untyped = self.untyped()?;
        Ok((place, Declared { untyped, ..Declared::new(value, Source::Declaration) }))
    }

    /// Returns the fields that the schema need not describe and the keys of lists, if the union has any of them. Returns the message of a
    /// fault otherwise.
    pub(super) fn untyped(&self) -> Result<Option<Arc<Untyped>>, String> {
        if !self.schemaless && self.list_keys.is_empty() {
            return Ok(None);
        }
        let object = Place::from_path(&self.path).map_err(|error| error.to_string())?;
        if self.schemaless && object.steps().len() > MOST_STEPS {
            return Err(format!("the path has more than {MOST_STEPS} steps; without a schema it must be shorter"));
        }
        let of_values = self.field_members.iter().flat_map(BTreeMap::values).flat_map(DeclaredMember::names);
        let of_fields = self.fields_to_discriminate_by.iter().flat_map(BTreeMap::keys).map(String::as_str);
        let listed = self.members.iter().flatten().map(String::as_str);
        let members: Box<[Box<str>]> = of_values.chain(of_fields).chain(listed).map(Into::into).collect();
        let list_keys = self.list_keys.iter().map(|(path, keys)| {
            let list = Place::from_path(path).map_err(|error| format!("`listKeys`: {error}"))?;
            check_keys(&object, &members, path, &list, keys)?;
            Ok((list, keys.iter().map(|key| key.as_str().into()).collect()))
        });
        let list_keys = list_keys.collect::<Result<_, String>>()?;
        let discriminator = self.discriminator.as_deref().map(Into::into);
        let values = self.field_members.iter().flat_map(BTreeMap::keys);
        let values: BTreeSet<&String> =
            values.chain(self.fields_to_discriminate_by.iter().flat_map(BTreeMap::values)).collect();
        let boolean = values.into_iter().filter(|value| !value.is_empty()).eq(["false", "true"]);
        Ok(Some(Arc::new(Untyped { object, schemaless: self.schemaless, members, discriminator, boolean, list_keys })))
    }
}

/// Checks the keys of a list on the way to an object.
fn check_keys(object: &Place, members: &[Box<str>], path: &str, list: &Place, keys: &[String]) -> Result<(), String> {
    let Some([PlaceStep::Items, item @ ..]) = object.steps().strip_prefix(list.steps()) else {
        return Err(format!(
            "`listKeys` has `{path}`, which is not a list on the way to `{object}`; write the path of a list without its `[*]`"
        ));
    };
    if !matches!(item.first(), None | Some(PlaceStep::Property(_))) {
        return Err(format!("`listKeys` has `{path}`, whose items are lists or maps; only objects have keys"));
    }
    let distinct: BTreeSet<_> = keys.iter().filter(|key| !key.is_empty()).collect();
    if distinct.is_empty() || keys.len() > MOST_KEYS || distinct.len() < keys.len() {
        return Err(format!(
            "`listKeys`: name between 1 and {MOST_KEYS} distinct fields that identify an item of `{path}`"
        ));
    }
    let is_member = |key: &&String| members.iter().any(|member| **member == ***key);
    match keys.iter().find(is_member).filter(|_| item.is_empty()) {
        Some(member) => Err(format!(
            "`listKeys`: the member `{member}` can't identify an item of `{path}`, because it may be cleared"
        )),
        None => Ok(()),
    }
}
