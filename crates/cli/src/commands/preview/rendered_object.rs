//! An object of a rendering, as it is written and with the defaults of the API server.

use super::kind_rules::PreviewedKind;
use crate::input::manifest::Document;
use kube_unions_core::field_path::{FieldPath, Segment, pointer};
use kube_unions_offline::{InvalidUnion, sets};
use serde_json::Value;

/// A manifest of an object.
#[derive(Debug)]
pub(super) struct Rendering {
    pub(super) written: Value,
    /// With the defaults of the API server: the object that a create stores.
    pub(super) completed: Value,
}

impl Rendering {
    pub(super) fn read(kind: PreviewedKind<'_>, document: &Document) -> anyhow::Result<Self> {
        let written = kind.read(document)?;
        Ok(Self { completed: kind.completed(written.clone())?, written })
    }

    /// Returns the JSON Pointer of the union's object, or of its nearest parent.
    pub(super) fn pointer(&self, invalid: &InvalidUnion<'_>) -> String {
        // Keys of items can be defaults.
        pointer(invalid.address.tokens(&self.completed))
    }

    /// Returns the JSON Pointer of a null in the manifest and true, or that of its nearest parent and false. Items of lists may have other
    /// positions in an object.
    pub(super) fn null_pointer(&self, path: &FieldPath) -> (String, bool) {
        let whole = path.to_pointer();
        if self.written.pointer(&whole).is_some_and(Value::is_null) {
            return (whole, true);
        }
        let (mut at, mut tokens) = (&self.written, Vec::new());
        for segment in path.segments() {
            match (segment, at.get(segment.to_token())) {
                (Segment::Field(_) | Segment::Key(_), Some(inner)) => at = inner,
                _ => break,
            }
            tokens.push(segment.to_token());
        }
        (pointer(tokens), false)
    }

    /// Returns true if the manifest itself sets a member of the union.
    pub(super) fn sets(&self, invalid: &InvalidUnion<'_>, member: &str) -> bool {
        let is_there = invalid.address.find(&self.completed).is_some();
        is_there && sets(self.written.pointer(&self.pointer(invalid)), member)
    }
}
