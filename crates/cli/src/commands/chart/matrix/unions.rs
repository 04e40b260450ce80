//! Finds the unions of an object, with what they have set.

use kube_unions_core::catalog::CatalogEntry;
use kube_unions_core::field_path::{FieldPath, Segment};
use kube_unions_core::union::{Part, Union, UnionStep};
use kube_unions_offline::{UnionAddress, sets};
use serde_json::Value;

/// A union of an object.
#[derive(Debug, Clone)]
pub(super) struct RenderedUnion<'c> {
    pub(super) union: &'c Union,
    /// The steps to the union's object.
    pub(super) steps: Vec<UnionStep<'c>>,
    pub(super) path: FieldPath,
    /// The way to the same object of every rendering.
    pub(super) address: UnionAddress,
    /// The members that the object has.
    pub(super) members: Vec<&'c str>,
    /// The value of the discriminator, which may be a default of the API server.
    pub(super) value: Option<String>,
    /// True if the rendering has the value.
    pub(super) writes_value: bool,
    /// The union's object.
    pub(super) object: Value,
}

impl RenderedUnion<'_> {
    /// Returns the name of the field that has the union's object. `None`: it is an item, or the whole object.
    pub(super) fn own_name(&self) -> Option<&str> {
        match self.path.segments().last()? {
            Segment::Field(name) => Some(name),
            Segment::Key(_) | Segment::Index(_) => None,
        }
    }
}

/// Returns the unions of an object. `completed` is the object with the defaults of the API server.
pub(super) fn unions_of<'c>(entry: &'c CatalogEntry, written: &Value, completed: &Value) -> Vec<RenderedUnion<'c>> {
    let mut found = Vec::new();
    for place in entry.plan().places(Part::Main) {
        let mut add = |path: &FieldPath, object: &Value| {
            let completed = completed.pointer(&path.to_pointer()).unwrap_or(object);
            found.extend(place.unions.iter().map(|union| {
                let value = union.discriminator().and_then(|name| completed.get(name)).filter(|value| !value.is_null());
                RenderedUnion {
                    union,
                    steps: place.steps.clone(),
                    path: path.clone(),
                    address: UnionAddress::of(path.segments(), &place.steps, written),
                    members: union.members().filter(|name| sets(Some(object), name)).collect(),
                    value: value.map(text_of),
                    writes_value: union.discriminator().is_some_and(|name| sets(Some(object), name)),
                    object: object.clone(),
                }
            }));
        };
        walk(&place.steps, written, &FieldPath::root(), &mut add);
    }
    found
}

/// Returns the text of a scalar, as a discriminator has it.
pub(super) fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn walk(steps: &[UnionStep<'_>], value: &Value, path: &FieldPath, found: &mut impl FnMut(&FieldPath, &Value)) {
    let Some((step, rest)) = steps.split_first() else {
        if value.is_object() {
            found(path, value);
        }
        return;
    };
    let mut enter = |segment: Segment, value: &Value| {
        let mut path = path.clone();
        path.push(segment);
        walk(rest, value, &path, found);
    };
    match step {
        UnionStep::Field(name) => {
            if let Some(value) = value.get(name) {
                enter(Segment::Field((*name).into()), value);
            }
        }
        UnionStep::Values => {
            for (name, value) in value.as_object().into_iter().flatten() {
                enter(Segment::Key(name.as_str().into()), value);
            }
        }
        UnionStep::Items { .. } => {
            for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                enter(Segment::Index(index), item);
            }
        }
    }
}
