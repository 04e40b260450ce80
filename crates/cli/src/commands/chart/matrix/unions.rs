//! Finds the unions of an object, with what they have set.

use kube_unions_core::catalog::CatalogEntry;
use kube_unions_core::field_path::{FieldPath, Segment};
use kube_unions_core::union::{Part, Union, UnionStep};
use kube_unions_offline::{UnionAddress, each_at, sets};
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
            if !object.is_object() {
                return;
            }
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
        each_at(&place.steps, written, &FieldPath::root(), &mut add);
    }
    found
}

/// Returns the text of a scalar, as a discriminator has it.
pub(super) fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
