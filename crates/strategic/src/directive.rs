//! The directives of a patch: keys that start with `$` and say what to do instead of what to store.

use crate::error::{Fault, Reason};
use crate::schema::{Meta, NodeId};
use crate::value::{Entry, Value, find};

pub(super) const PATCH: &str = "$patch";
pub(super) const RETAIN_KEYS: &str = "$retainKeys";
pub(super) const PATCH_MERGE_KEY: &str = "$patchMergeKey";
pub(super) const SET_ELEMENT_ORDER: &str = "$setElementOrder";
pub(super) const DELETE_FROM_PRIMITIVE_LIST: &str = "$deleteFromPrimitiveList";

/// A key that is a directive wherever it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Directive<'k> {
    /// `$patch`
    Patch,
    /// `$retainKeys`
    RetainKeys,
    /// `$setElementOrder/f`
    Order(&'k str),
    /// `$deleteFromPrimitiveList/f`
    Delete(&'k str),
}

/// The value of `$patch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whole {
    /// The value replaces the one that is there.
    Replace,
    /// The value is deleted.
    Delete,
}

impl<'k> Directive<'k> {
    /// Reads a key.
    pub(super) fn read(key: &'k str) -> Result<Option<Self>, Reason> {
        if !key.starts_with('$') {
            return Ok(None);
        }
        let list =
            |rest: &'k str, prefix| rest.strip_prefix('/').ok_or_else(|| Reason::DirectiveName(key.into(), prefix));
        Ok(if key == PATCH {
            Some(Self::Patch)
        } else if key == RETAIN_KEYS {
            Some(Self::RetainKeys)
        } else if let Some(rest) = key.strip_prefix(SET_ELEMENT_ORDER) {
            Some(Self::Order(list(rest, SET_ELEMENT_ORDER)?))
        } else if let Some(rest) = key.strip_prefix(DELETE_FROM_PRIMITIVE_LIST) {
            Some(Self::Delete(list(rest, DELETE_FROM_PRIMITIVE_LIST)?))
        } else {
            None
        })
    }
}

/// What `$patch` says of a map, if it is there.
pub(super) fn whole(entries: &[Entry<'_>]) -> Result<Option<Whole>, Reason> {
    match find(entries, PATCH) {
        None => Ok(None),
        Some(Value::String("replace")) => Ok(Some(Whole::Replace)),
        Some(Value::String("delete")) => Ok(Some(Whole::Delete)),
        Some(Value::String(other)) => Err(Reason::Patch(
            format!("{:?}", kube_unions_core::field_path::Printable::new(other, 64).to_string()).into(),
        )),
        Some(other) => Err(Reason::Patch(other.kind().to_string().into())),
    }
}

/// Refuses a key that looks like a directive and is none, unless the schema has such a field.
pub(super) fn known(meta: &Meta, node: NodeId, key: &str) -> Result<(), Fault> {
    if key.starts_with('$') && meta.is_closed_to(node, key) {
        return Err(Reason::UnknownDirective(key.into()).at([meta.step(node, key)]));
    }
    Ok(())
}

/// The items of a directive that must be a list.
pub(super) fn list<'a>(key: &str, value: Value<'a>) -> Result<&'a [Value<'a>], Reason> {
    let wrong = || Reason::DirectiveType { directive: key.into(), found: value.kind(), wanted: "a list" };
    value.items().ok_or_else(wrong)
}

/// The keys that `$retainKeys` of a patch lists, once every other key that the patch sets is found among them; `None` if it has
/// no such directive.
pub(super) fn retained<'a>(patch: &'a [Entry<'a>], beside: &[&str]) -> Result<Option<Retained<'a>>, Reason> {
    let Some(value) = find(patch, RETAIN_KEYS) else { return Ok(None) };
    let mut keys = Vec::new();
    let wanted = "a list of strings; invalid patch format of retainKeys";
    let wrong = |found: Value<'_>| Reason::DirectiveType { directive: RETAIN_KEYS.into(), found: found.kind(), wanted };
    let Value::List(items) = value else { return Err(wrong(value)) };
    for item in items {
        let Value::String(key) = item else { return Err(wrong(*item)) };
        keys.push(*key);
    }
    keys.sort_unstable();
    let retained = Retained(keys);
    for (key, value) in patch {
        if matches!(value, Value::Null) || Directive::read(key)?.is_some() || beside.contains(key) {
            continue;
        }
        if !retained.has(key) {
            return Err(Reason::NotRetained((*key).into()));
        }
    }
    Ok(Some(retained))
}

/// The keys of a `$retainKeys`.
#[derive(Debug)]
pub(super) struct Retained<'a>(Vec<&'a str>);

impl Retained<'_> {
    pub(super) fn has(&self, key: &str) -> bool {
        self.0.binary_search(&key).is_ok()
    }
}
