//! The question of the page: its inputs, as texts.

use serde::Deserialize;

/// The longest input, in bytes. etcd accepts objects of at most 1.5 MiB.
pub const LARGEST_INPUT: usize = 2 << 20;

/// The inputs of the page.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// CRDs, `UnionDeclaration`s and OpenAPI documents, as YAML or JSON.
    pub definitions: String,
    /// The stored object of an update, empty for a create.
    pub old: String,
    /// The object that is written.
    pub new: String,
}
