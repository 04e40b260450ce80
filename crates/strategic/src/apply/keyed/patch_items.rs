//! The items of a patch for a list of objects, by their effect.

use super::list_rules::ListRules;
use crate::directive::{PATCH_MERGE_KEY, PatchMode};
use crate::error::{BrokenAt, BrokenRule, PatchMergeKeyFault, PatchSide};
use crate::keys::{DEFAULT_KEY, KeySet, KeyTuple};
use crate::value::{MapEntry, Value};
use kube_unions_core::field_path::Segment;

#[derive(Debug, Clone, Copy)]
pub(super) struct PatchItem<'a> {
    /// The item without `$patchMergeKey`.
    pub(super) value: Value<'a>,
    pub(super) tuple: KeyTuple<'a>,
    /// The keys that `$patchMergeKey` lists. Without it the default key, and the first match counts.
    pub(super) keys: KeySet,
    /// The listed keys that are null in the patch: the patch removes them from the item.
    pub(super) removed: KeySet,
}

/// The items of a patch by their effect.
#[derive(Debug, Default)]
pub(super) struct PatchItems<'a> {
    pub(super) merge: Vec<PatchItem<'a>>,
    pub(super) delete: Vec<PatchItem<'a>>,
    /// The items replace the list.
    pub(super) replace: bool,
    /// The items list the keys by which they match.
    pub(super) list_keys: bool,
}

impl<'a> PatchItems<'a> {
    /// Reads the items of a patch. In a literal list, `$patch` has no meaning.
    pub(super) fn read(list: &ListRules<'a>, items: &'a [Value<'a>], literal: bool) -> Result<Self, BrokenAt> {
        let list_keys = lists_keys(items);
        let mut all = Self { list_keys, ..Self::default() };
        for (position, item) in items.iter().enumerate() {
            all.add(list, *item, literal).map_err(|rule| rule.at(Segment::Index(position)))?;
        }
        Ok(all)
    }

    fn add(&mut self, list: &ListRules<'a>, value: Value<'a>, literal: bool) -> Result<(), BrokenRule> {
        let ListRules { context, keys, .. } = list;
        let directive = if literal { None } else { PatchMode::of_item(value)? };
        if directive == Some(PatchMode::Replace) {
            self.replace = true;
            return Ok(());
        }
        let tuple = keys.tuple(value, PatchSide::Patch, context)?;
        let mut item = PatchItem { value, tuple, keys: DEFAULT_KEY, removed: 0 };
        match value.get(PATCH_MERGE_KEY) {
            None if self.list_keys => return Err(BrokenRule::PatchMergeKey(PatchMergeKeyFault::Mixed)),
            None => {}
            Some(listed) => {
                item.keys = keys.listed(listed)?;
                for (bit, key) in keys.all().iter().enumerate() {
                    if item.keys & (1 << bit) != 0 && matches!(value.get(&key.name), Some(Value::Null)) {
                        if directive.is_some() {
                            let fault = PatchMergeKeyFault::NullInDelete(key.name.clone());
                            return Err(BrokenRule::PatchMergeKey(fault));
                        }
                        item.removed |= 1 << bit;
                    }
                }
                let is_field = |entry: &&MapEntry<'a>| entry.0 != PATCH_MERGE_KEY;
                let fields: Vec<_> = value.entries().unwrap_or_default().iter().filter(is_field).copied().collect();
                item.value = context.map(&fields);
            }
        }
        if directive.is_some() {
            self.delete.push(item);
        } else {
            self.merge.push(item);
        }
        Ok(())
    }
}

/// Returns true if the items of a patch list the keys by which they match.
pub(in crate::apply) fn lists_keys(items: &[Value<'_>]) -> bool {
    items.iter().any(|item| item.get(PATCH_MERGE_KEY).is_some())
}
