//! Marks: unions on their way through a schema.
//!
//! A mark is a keyword beside the fields of its struct, not at the discriminator, where `x-kubernetes-unions` belongs. No other
//! program reads it, so nothing on the way to a CRD loses it: flattening a struct keeps it, even if both structs have one, and it
//! never makes two fields differ that kube compares.

use super::union::{AtMostOne, DiscriminatedUnion};
use kube_unions_core::schema::EXTENSION;
use schemars::Schema;
use schemars::transform::Transform;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Prefix of the keyword. The JSON of the union follows, so that no two unions share a keyword.
const KEYWORD: &str = "x-kube-unions ";

/// A union in a schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a union")]
pub(super) enum Mark {
    Union(DiscriminatedUnion),
    AtMostOne(AtMostOne),
    /// An enum that is no union, with the reason.
    Refused(String),
}

impl Mark {
    /// Returns the union of a keyword, or `None` for other keywords.
    pub(super) fn from_keyword(keyword: &str) -> Option<Result<Self, serde_json::Error>> {
        keyword.strip_prefix(KEYWORD).map(serde_json::from_str)
    }

    /// Returns true if a keyword declares a union, as a mark or as `x-kubernetes-unions`.
    pub(super) fn is_keyword(keyword: &str) -> bool {
        keyword == EXTENSION || keyword.starts_with(KEYWORD)
    }

    pub(super) fn put_on(&self, schema: &mut Schema) {
        // Strings, lists and options always serialize.
        if let Ok(text) = serde_json::to_string(self) {
            schema.insert(format!("{KEYWORD}{text}"), Value::Bool(true));
        }
    }
}

impl Transform for DiscriminatedUnion {
    fn transform(&mut self, schema: &mut Schema) {
        Mark::Union(self.clone()).put_on(schema);
    }
}

impl Transform for AtMostOne {
    fn transform(&mut self, schema: &mut Schema) {
        Mark::AtMostOne(self.clone()).put_on(schema);
    }
}
