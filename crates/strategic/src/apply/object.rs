//! Merges patches into one object: one patch, or the patches of all list items that have the same keys.
//!
//! One pass merges all patches. A patch costs its own size, not the size of the object, so many patches of one object stay
//! linear. A field that merges becomes a task with all its patches. This file knows nothing about lists; see `keyed`.

use super::field::{field_change, field_patches};
use super::task::{FieldState, MergeTask};
use crate::context::Context;
use crate::directive::{PatchMode, RetainedKeys};
use crate::error::BrokenAt;
use crate::schema::NodeId;
use crate::strip_directives::{StripMode, strip_directives};
use crate::value::{FieldLookup, MapEntry, Value};
use hashbrown::HashMap;

/// An object into which patches are being merged.
pub(super) struct MergingObject<'a> {
    node: NodeId,
    /// The fields in order, including the removed ones.
    pub(super) fields: Vec<(&'a str, FieldState<'a>)>,
    lookup: Lookup<'a>,
    /// Fields that had patches to merge before a later patch replaced them. Errors in these patches still count.
    pub(super) replaced: Vec<(&'a str, Value<'a>, MergeTask<'a>)>,
}

/// Finds the position of a field.
enum Lookup<'a> {
    /// The positions are those of the live object.
    InOrder(FieldLookup<'a>),
    Hashed(HashMap<&'a str, usize>),
}

impl<'a> MergingObject<'a> {
    /// Merges patches, in order, into an object. The fields that merge are left as tasks.
    pub(super) fn merge(
        context: &Context<'a>,
        live: &'a [MapEntry<'a>],
        patches: &[&'a [MapEntry<'a>]],
        node: NodeId,
    ) -> Result<Self, BrokenAt> {
        let mut object = Self {
            node,
            fields: live.iter().map(|(key, value)| (*key, FieldState::Set(*value))).collect(),
            lookup: Lookup::InOrder(FieldLookup::of(live)),
            replaced: Vec::new(),
        };
        for (position, patch) in patches.iter().enumerate() {
            if position > 0 {
                object.index();
            }
            object.add_patch(context, patch)?;
        }
        Ok(object)
    }

    /// Switches to a hash table, which also finds fields that a patch added.
    fn index(&mut self) {
        if matches!(self.lookup, Lookup::InOrder(_)) {
            self.compact(|_| true);
        }
    }

    /// Drops the removed fields and the ones that are not to be kept, and switches to a hash table.
    fn compact(&mut self, keep: impl Fn(&str) -> bool) {
        let mut fields = Vec::with_capacity(self.fields.len());
        for (key, state) in std::mem::take(&mut self.fields) {
            match state {
                FieldState::Removed => {}
                state if keep(key) => fields.push((key, state)),
                FieldState::Set(_) => {}
                FieldState::Merging(live, task) => self.replaced.push((key, live, task)),
            }
        }
        self.lookup = Lookup::Hashed(fields.iter().enumerate().map(|(position, (key, _))| (*key, position)).collect());
        self.fields = fields;
    }

    fn add_patch(&mut self, context: &Context<'a>, patch: &'a [MapEntry<'a>]) -> Result<(), BrokenAt> {
        match PatchMode::of(patch)? {
            Some(PatchMode::Delete) => {
                self.compact(|_| false);
                return Ok(());
            }
            Some(PatchMode::Replace) => {
                let new = strip_directives(context, Value::Map(patch), Some(self.node), StripMode::Literal)?;
                self.compact(|_| false);
                for (key, value) in new.and_then(Value::entries).unwrap_or_default() {
                    self.add(key, FieldState::Set(*value));
                }
                return Ok(());
            }
            None => {}
        }
        if let Some(retained) = RetainedKeys::of(patch, None)? {
            self.retain(&retained);
        }
        for (key, patch) in field_patches(context, patch, self.node)? {
            let found = self.find(key);
            let live = found.and_then(|position| self.fields.get(position)).and_then(|(_, state)| state.value());
            let change = field_change(context, self.node, key, live, patch)
                .map_err(|broken| broken.inside(context.schema.step(self.node, key)))?;
            let Some(state) = change else { continue };
            match found {
                Some(position) => self.put(position, state),
                None if matches!(state, FieldState::Removed) => {}
                None => self.add(key, state),
            }
        }
        Ok(())
    }

    fn retain(&mut self, retained: &RetainedKeys<'_>) {
        if matches!(self.lookup, Lookup::Hashed(_)) {
            self.compact(|key| retained.has(key));
            return;
        }
        // The fields keep their positions, because the lookup in order finds them by position.
        for (key, state) in &mut self.fields {
            if !retained.has(key) {
                *state = FieldState::Removed;
            }
        }
    }

    /// Returns the position of a field, unless it is removed.
    fn find(&mut self, key: &str) -> Option<usize> {
        let position = match &mut self.lookup {
            Lookup::InOrder(fields) => fields.get(key)?.0,
            Lookup::Hashed(positions) => *positions.get(key)?,
        };
        self.fields.get(position).filter(|(_, state)| !matches!(state, FieldState::Removed)).map(|_| position)
    }

    /// Replaces a field, or adds patches to the ones that wait to be merged into it.
    fn put(&mut self, position: usize, state: FieldState<'a>) {
        use FieldState::Merging;
        use MergeTask::{Lists, Objects};
        let Some((key, old)) = self.fields.get_mut(position) else { return };
        match (old, state) {
            (Merging(_, Objects(_, waiting)), Merging(_, Objects(_, patches))) => waiting.extend(patches),
            (Merging(_, Lists(_, waiting)), Merging(_, Lists(_, patches))) => waiting.extend(patches),
            (old, state) => {
                if let Merging(live, task) = std::mem::replace(old, state) {
                    self.replaced.push((key, live, task));
                }
            }
        }
    }

    fn add(&mut self, key: &'a str, state: FieldState<'a>) {
        if let Lookup::Hashed(positions) = &mut self.lookup {
            positions.insert(key, self.fields.len());
        }
        self.fields.push((key, state));
    }
}

impl<'a> FieldState<'a> {
    /// Returns the value, or one of the same type while patches wait to be merged into it.
    fn value(&self) -> Option<Value<'a>> {
        match self {
            Self::Removed => None,
            Self::Set(value) | Self::Merging(value @ (Value::Map(_) | Value::List(_)), _) => Some(*value),
            // A patch adds the list.
            Self::Merging(..) => Some(Value::List(&[])),
        }
    }
}
