//! The JSON Patch operations (RFC 6902) that normalisation emits. They remove or set fields of objects and never move list
//! items.

use crate::field_path::FieldPath;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

/// One operation on a field of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatchOperation {
    /// Removes a field that exists.
    Remove(FieldPath),
    /// Sets a field to a string or a boolean. The operation is `add`, which creates or replaces a member of an object (RFC 6902, section
    /// 4.1).
    Set(FieldPath, Value),
}

impl PatchOperation {
    /// Returns the field that the operation changes.
    pub fn path(&self) -> &FieldPath {
        match self {
            Self::Remove(path) | Self::Set(path, _) => path,
        }
    }
}

impl Serialize for PatchOperation {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field_path::Segment::{Field, Index};
    use serde_json::json;

    #[test]
    fn operations_are_written_as_rfc_6902_has_them() {
        let removed = FieldPath::from_iter([Field("list".into()), Index(1), Field("a/b".into())]);
        let set = FieldPath::from_iter([Field("type".into())]);
        let operations = [PatchOperation::Remove(removed), PatchOperation::Set(set, "X".into())];
        assert_eq!(
            json!(operations),
            json!([{"op": "remove", "path": "/list/1/a~1b"}, {"op": "add", "path": "/type", "value": "X"}])
        );
    }
}
