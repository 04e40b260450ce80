//! Creates the patch that turns one object into another.
//!
//! Two-way and three-way patches are one walk. The user removed the fields that are in `original` and not in `modified`. The user
//! changed or added the fields in which `modified` differs from `current`. For a two-way patch, `original` and `current` are the
//! same object. `lists` compares lists, `pairs` finds the items that belong together, and `conflicts` checks a three-way patch.

pub(crate) mod conflicts;
mod lists;
mod options;
mod pairs;
mod repeated;
mod sides;

pub(crate) use self::options::CreateOptions;
pub(crate) use self::sides::CreateSides;

use crate::context::Context;
use crate::directive::{DELETE_FROM_PRIMITIVE_LIST, PATCH, RETAIN_KEYS, SET_ELEMENT_ORDER};
use crate::error::{BrokenAt, BrokenRule, PatchError};
use crate::schema::{NodeId, Strategy};
use crate::value::{MapEntry, Value, ValueKind, by_name};
use lists::{ComparedLists, ListChange};

/// Returns the patch.
pub(crate) fn create<'a>(
    context: &Context<'a>,
    sides: CreateSides<'a, MapEntry<'a>>,
    options: CreateOptions,
) -> Result<Value<'a>, PatchError> {
    let root = ObjectComparison::new(options, NodeId::ROOT, false, sides);
    Ok(root.compare(context)?.unwrap_or(Value::EMPTY))
}

/// Objects that are being compared, and the patch so far.
struct ObjectComparison<'a> {
    options: CreateOptions,
    node: NodeId,
    retain_keys: bool,
    sides: CreateSides<'a, MapEntry<'a>>,
    patch: Vec<MapEntry<'a>>,
}

impl<'a> ObjectComparison<'a> {
    fn new(options: CreateOptions, node: NodeId, retain_keys: bool, sides: CreateSides<'a, MapEntry<'a>>) -> Self {
        Self { options, node, retain_keys, sides, patch: Vec::new() }
    }

    /// Returns the patch of the object, or `None` if nothing changed.
    fn compare(mut self, context: &Context<'a>) -> Result<Option<Value<'a>>, BrokenAt> {
        let (original, current) = (by_name(self.sides.original.unwrap_or_default()), by_name(self.sides.current));
        for &(key, modified) in self.sides.modified {
            let (original, current) = (original.get(key).copied(), current.get(key).copied());
            if key == PATCH
                && let Some(current) = current
                && let Some(wrong) = [current, modified].into_iter().find(|value| value.kind() != ValueKind::String)
            {
                return Err(BrokenRule::Patch(wrong.kind().to_string().into()).into());
            }
            self.field(context, key, original, current, modified)?;
        }
        Ok(self.finish(context))
    }

    /// Compares one field.
    fn field(
        &mut self,
        context: &Context<'a>,
        key: &'a str,
        original: Option<Value<'a>>,
        current: Option<Value<'a>>,
        modified: Value<'a>,
    ) -> Result<(), BrokenAt> {
        let kind = modified.kind();
        let of_kind = |value: Option<Value<'a>>| value.filter(|value| value.kind() == kind);
        let (original, current) = (of_kind(original), of_kind(current));
        let is_scalar = !matches!(kind, ValueKind::Object | ValueKind::List);
        // An object or a list that is not there now is added as it is: an API server stores some directives and nulls of a change.
        let Some(now) = current.filter(|_| !is_scalar) else { return self.replace(context, key, current, modified) };
        let inside = |broken: BrokenAt| broken.inside(context.schema.step(self.node, key));
        let field = match context.schema.field(self.node, key, kind) {
            Ok(field) => field,
            // An unknown field only matters if it changed.
            Err(_) if original.is_none_or(|value| value.same(modified)) && now.same(modified) => {
                return self.replace(context, key, current, modified);
            }
            Err(rule) => return Err(inside(rule.into())),
        };
        let options = self.options;
        match (modified, field.strategy) {
            (Value::Map(modified), Strategy::Unsaid | Strategy::Merge) => {
                let (original, current) = (original.and_then(Value::entries), now.entries().unwrap_or_default());
                let sides = CreateSides { original, current, modified };
                let objects = Self::new(options, field.object, field.retain_keys, sides);
                let patch = objects.compare(context).map_err(inside)?;
                self.patch.extend(patch.map(|patch| (key, patch)));
                Ok(())
            }
            (Value::List(modified), Strategy::Merge) => {
                let (original, current) = (original.and_then(Value::items), now.items().unwrap_or_default());
                let mut item = |sides| Self::new(options, field.items, field.retain_keys, sides).compare(context);
                let lists = CreateSides { original, current, modified };
                match lists.compare(context, field, options, &mut item).map_err(inside)? {
                    ComparedLists::Whole => self.put(context, key, Value::List(modified)),
                    ComparedLists::Changed(change) => {
                        self.take(context, key, &change);
                        Ok(())
                    }
                }
            }
            _ => self.replace(context, key, current, modified),
        }
    }

    /// Puts a changed value into the patch as a whole.
    fn replace(
        &mut self,
        context: &Context<'a>,
        key: &'a str,
        current: Option<Value<'a>>,
        modified: Value<'a>,
    ) -> Result<(), BrokenAt> {
        if current.is_none_or(|current| !current.same(modified)) {
            self.put(context, key, modified)?;
        }
        Ok(())
    }

    fn put(&mut self, context: &Context<'a>, key: &'a str, value: Value<'a>) -> Result<(), BrokenAt> {
        self.patch.extend(self.options.whole(context, value)?.map(|value| (key, value)));
        Ok(())
    }

    /// Takes the change of a list.
    fn take(&mut self, context: &Context<'a>, key: &'a str, change: &ListChange<'a>) {
        let named = |directive: &str| &*context.arena.alloc_str(&format!("{directive}/{key}"));
        self.patch.extend(change.order.map(|order| (named(SET_ELEMENT_ORDER), order)));
        self.patch.extend(change.delete.map(|delete| (named(DELETE_FROM_PRIMITIVE_LIST), delete)));
        self.patch.extend(change.items.map(|items| (key, items)));
    }

    fn finish(mut self, context: &Context<'a>) -> Option<Value<'a>> {
        let CreateSides { original, current, modified } = self.sides;
        let kept = by_name(modified);
        let gone = |side: &'a [MapEntry<'a>]| side.iter().filter(|(key, _)| !kept.contains_key(key));
        let is_set = |(_, value): &&MapEntry<'a>| !matches!(value, Value::Null);
        let original = original.unwrap_or_default();
        self.patch.extend(gone(original).map(|(key, _)| (*key, Value::Null)));
        if self.retain_keys {
            // A field that is not null goes away, so that retained keys must be stated even if nothing else changed.
            let loses_field = gone(original).chain(gone(current)).any(|field| is_set(&field));
            let mut keys: Vec<&'a str> = modified.iter().filter(is_set).map(|(key, _)| *key).collect();
            if !keys.is_empty() && (!self.patch.is_empty() || loses_field) {
                keys.sort_unstable();
                let keys: Vec<Value<'a>> = keys.into_iter().map(Value::String).collect();
                self.patch.insert(0, (RETAIN_KEYS, context.list(&keys)));
            }
        }
        (!self.patch.is_empty()).then(|| context.map(&self.patch))
    }
}
