//! Finds values of the written object in the inputs.

use crate::inputs::InputName;
use kube_unions_core::field_path::{FieldPath, pointer, pointer_tokens};
use kube_unions_core::union::{UnionPlace, UnionStep};
use kube_unions_manifests::Document;
use serde::Serialize;
use serde_json::Value;
use std::iter;

/// A place in the text of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct InputPlace {
    /// The input.
    pub input: InputName,
    /// Counted from 1, as is the column.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// The origin of an object that an apply made.
pub(crate) struct ObjectOrigin {
    /// The object.
    pub(crate) after: Value,
    /// The new object and the old one.
    pub(crate) sources: [ApplySource; 2],
}

/// An input of an apply.
pub(crate) struct ApplySource {
    pub(crate) input: InputName,
    pub(crate) document: Document,
    pub(crate) value: Value,
}

impl InputPlace {
    /// Returns the place of a value in an input, or of its nearest parent there.
    pub(crate) fn of(input: InputName, document: &Document, pointer: &str) -> Option<Self> {
        document.position(pointer).map(|(line, column)| Self { input, line, column })
    }
}

impl ObjectOrigin {
    /// Returns the place of a value: in the new object, or in the old one if only that has it. If neither has it, the place is that
    /// of its nearest parent.
    pub(crate) fn place(&self, places: &[UnionPlace<'_>], path: &FieldPath) -> Option<InputPlace> {
        let tokens = pointer_tokens(&path.to_pointer())?;
        let steps = steps_to(places, &tokens);
        (0..=tokens.len()).rev().filter_map(|length| tokens.get(..length)).find_map(|tokens| {
            let find = |it: &ApplySource| {
                InputPlace::of(it.input, &it.document, &counterpart(&self.after, &it.value, tokens, steps)?)
            };
            self.sources.iter().find_map(find)
        })
    }
}

/// Returns the steps to the innermost object with unions on a path.
fn steps_to<'p>(places: &'p [UnionPlace<'p>], tokens: &[String]) -> &'p [UnionStep<'p>] {
    let is_on_path = |place: &&UnionPlace<'_>| {
        let mut steps = place.steps.iter().zip(tokens);
        place.steps.len() <= tokens.len()
            && steps.all(|(step, token)| !matches!(step, UnionStep::Field(name) if name != token))
    };
    places.iter().filter(is_on_path).max_by_key(|place| place.steps.len()).map_or(&[], |place| &place.steps)
}

/// Returns the JSON Pointer in another version of an object of a value at a path. An item of a list with keys may have another
/// index there.
fn counterpart(mut object: &Value, mut other: &Value, tokens: &[String], steps: &[UnionStep<'_>]) -> Option<String> {
    let mut names = Vec::new();
    for (token, step) in tokens.iter().zip(steps.iter().map(Some).chain(iter::repeat(None))) {
        object = object.pointer(&pointer([token]))?;
        let name = match (step, other) {
            (Some(UnionStep::Items { keys }), Value::Array(items)) if !keys.is_empty() => {
                // A key that is missing has its default.
                let is_same = |item: &Value| {
                    keys.iter().all(|key| item.get(key.name).is_none_or(|value| object.get(key.name) == Some(value)))
                };
                items.iter().position(is_same)?.to_string()
            }
            _ => token.clone(),
        };
        other = other.pointer(&pointer([&name]))?;
        names.push(name);
    }
    Some(pointer(names))
}
