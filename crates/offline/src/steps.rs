//! Finds the places of unions in an object.

use kube_unions_core::field_path::{FieldPath, Segment};
use kube_unions_core::union::UnionStep;
use serde_json::Value;

/// Calls a function with each value at the end of steps, and with each text on the way there.
pub fn each_at(steps: &[UnionStep<'_>], value: &Value, path: &FieldPath, found: &mut impl FnMut(&FieldPath, &Value)) {
    let Some((step, rest)) = steps.split_first().filter(|_| !value.is_string()) else {
        found(path, value);
        return;
    };
    let mut enter = |segment: Segment, value: &Value| {
        let mut path = path.clone();
        path.push(segment);
        each_at(rest, value, &path, found);
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
