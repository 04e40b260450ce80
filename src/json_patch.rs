//! JSON Patch operations (RFC 6902), as far as normalisation emits them: fields of objects are removed or set, list items
//! never move.

use crate::field_path::{FieldPath, Segment};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

/// One operation on a field of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Removes a field that is there.
    Remove(FieldPath),
    /// Sets a field to a string, whether it was there or not (`add` does both for members of objects, RFC 6902 section 4.1).
    Set(FieldPath, Box<str>),
}

impl Operation {
    /// The field it works on.
    pub fn path(&self) -> &FieldPath {
        match self {
            Self::Remove(path) | Self::Set(path, _) => path,
        }
    }
}

impl Serialize for Operation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::Remove(path) => {
                map.serialize_entry("op", "remove")?;
                map.serialize_entry("path", &path.to_pointer())?;
            }
            Self::Set(path, value) => {
                map.serialize_entry("op", "add")?;
                map.serialize_entry("path", &path.to_pointer())?;
                map.serialize_entry("value", value)?;
            }
        }
        map.end()
    }
}

/// Applies operations to the object they were made for, in order.
///
/// An operation whose place is not there is passed over; none that normalisation made for `object` is.
pub fn apply(operations: &[Operation], object: &mut Value) {
    for operation in operations {
        let Some((Segment::Field(last) | Segment::Key(last), parents)) = operation.path().segments().split_last()
        else {
            continue;
        };
        let Some(Value::Object(parent)) = descend(object, parents) else { continue };
        match operation {
            Operation::Remove(_) => {
                parent.shift_remove(&**last);
            }
            Operation::Set(_, value) => {
                parent.insert(last.to_string(), Value::String(value.to_string()));
            }
        }
    }
}

fn descend<'v>(object: &'v mut Value, segments: &[Segment]) -> Option<&'v mut Value> {
    segments.iter().try_fold(object, |at, segment| match segment {
        Segment::Field(name) | Segment::Key(name) => at.get_mut(&**name),
        Segment::Index(index) => at.get_mut(*index),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field_path::{Step, Trail};
    use serde_json::json;

    #[test]
    fn operations_are_written_as_rfc_6902_has_them_and_do_what_they_say() {
        let list = Trail::ROOT.then(Step::Field("list"));
        let item = list.then(Step::Index(1));
        let operations = [Operation::Remove(item.field("a/b")), Operation::Set(Trail::ROOT.field("type"), "X".into())];
        assert_eq!(
            json!(operations),
            json!([{"op": "remove", "path": "/list/1/a~1b"}, {"op": "add", "path": "/type", "value": "X"}])
        );
        let mut object = json!({"list": [{}, {"a/b": 1, "c": 2}], "type": null});
        apply(&operations, &mut object);
        assert_eq!(object, json!({"list": [{}, {"c": 2}], "type": "X"}));
    }
}
