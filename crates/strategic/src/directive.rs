//! The directives of a patch: keys that start with `$` and say what to do instead of what to store.

use crate::error::{BrokenAt, BrokenRule};
use crate::schema::{MergeSchema, NodeId};
use crate::value::{MapEntry, Value, find};
use kube_unions_core::field_path::Printable;

pub(crate) const PATCH: &str = "$patch";
pub(crate) const RETAIN_KEYS: &str = "$retainKeys";
pub(crate) const PATCH_MERGE_KEY: &str = "$patchMergeKey";
pub(crate) const SET_ELEMENT_ORDER: &str = "$setElementOrder";
pub(crate) const DELETE_FROM_PRIMITIVE_LIST: &str = "$deleteFromPrimitiveList";

/// A directive that may be in any object. `$patchMergeKey` is not one: it has a meaning only in list items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Directive<'k> {
    Patch,
    RetainKeys,
    /// `$setElementOrder/FIELD`
    Order(&'k str),
    /// `$deleteFromPrimitiveList/FIELD`
    Delete(&'k str),
}

/// The value of `$patch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchMode {
    /// The object in the patch replaces the live one.
    Replace,
    /// The live object or item is deleted.
    Delete,
}

impl<'k> Directive<'k> {
    /// Returns the directive that a key is, if it is one.
    pub(crate) fn read(key: &'k str) -> Result<Option<Self>, BrokenRule> {
        if !key.starts_with('$') {
            return Ok(None);
        }
        let list =
            |rest: &'k str, name| rest.strip_prefix('/').ok_or_else(|| BrokenRule::DirectiveName(key.into(), name));
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

impl PatchMode {
    /// Reads the `$patch` of an object, if it has one.
    pub(crate) fn of(entries: &[MapEntry<'_>]) -> Result<Option<Self>, BrokenRule> {
        match find(entries, PATCH) {
            None => Ok(None),
            Some(Value::String("replace")) => Ok(Some(Self::Replace)),
            Some(Value::String("delete")) => Ok(Some(Self::Delete)),
            Some(Value::String(other)) => {
                Err(BrokenRule::Patch(format!("{:?}", Printable::new(other, 64).to_string()).into()))
            }
            Some(other) => Err(BrokenRule::Patch(other.kind().to_string().into())),
        }
    }

    /// Reads the `$patch` of a list item, if it has one.
    pub(crate) fn of_item(item: Value<'_>) -> Result<Option<Self>, BrokenRule> {
        item.entries().map_or(Ok(None), Self::of)
    }
}

/// Refuses a key that starts with `$`, is not a directive, and is not a field of the schema.
pub(crate) fn refuse_unknown(schema: &MergeSchema, node: NodeId, key: &str) -> Result<(), BrokenAt> {
    if key.starts_with('$') && schema.known(node, key).is_none() {
        return Err(BrokenRule::UnknownDirective(key.into()).at(schema.step(node, key)));
    }
    Ok(())
}

/// Returns the items of a directive whose value must be a list.
pub(crate) fn list<'a>(directive: &str, value: Value<'a>) -> Result<&'a [Value<'a>], BrokenRule> {
    let wrong = || BrokenRule::DirectiveType { directive: directive.into(), found: value.kind(), wanted: "a list" };
    value.items().ok_or_else(wrong)
}

/// The keys that a `$retainKeys` lists.
#[derive(Debug)]
pub(crate) struct RetainedKeys<'a> {
    // INVARIANT: sorted.
    keys: Vec<&'a str>,
}

impl<'a> RetainedKeys<'a> {
    /// Reads the `$retainKeys` of an object, if it has one. Refuses an object that sets a key which is not listed. `ignored` is
    /// a key that need not be listed.
    pub(crate) fn of(patch: &'a [MapEntry<'a>], ignored: Option<&str>) -> Result<Option<Self>, BrokenRule> {
        let Some(value) = find(patch, RETAIN_KEYS) else { return Ok(None) };
        let wrong = |found: Value<'_>| BrokenRule::DirectiveType {
            directive: RETAIN_KEYS.into(),
            found: found.kind(),
            wanted: "a list of strings; invalid patch format of retainKeys",
        };
        let Value::List(items) = value else { return Err(wrong(value)) };
        let text = |item: &Value<'a>| if let Value::String(key) = item { Ok(*key) } else { Err(wrong(*item)) };
        let mut keys = items.iter().map(text).collect::<Result<Vec<_>, _>>()?;
        keys.sort_unstable();
        let retained = Self { keys };
        for (key, value) in patch {
            let is_set = !matches!(value, Value::Null) && Directive::read(key)?.is_none() && ignored != Some(*key);
            if is_set && !retained.has(key) {
                return Err(BrokenRule::NotRetained((*key).into()));
            }
        }
        Ok(Some(retained))
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.keys.binary_search(&key).is_ok()
    }
}
