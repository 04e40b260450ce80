//! The question of the page: its inputs, as texts, and the way of the write.

use serde::Deserialize;

/// The longest input, in bytes. etcd accepts objects of at most 1.5 MiB.
pub const LARGEST_INPUT: usize = 2 << 20;

/// The inputs of the page.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// CRDs, `UnionDeclaration`s and OpenAPI documents, as YAML or JSON.
    pub definitions: String,
    /// The stored object of an update, or the manifest that was applied last. Empty for a create.
    pub old: String,
    /// The object or the manifest that is written.
    pub new: String,
    /// How it is written.
    #[serde(default)]
    pub way: WriteWay,
}

/// A way to write an object over an old one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WriteWay {
    /// As a whole, as `kubectl replace` does.
    #[default]
    Replace,
    /// As a JSON merge patch.
    Merge,
    /// By client-side apply.
    Csa,
    /// By server-side apply.
    Ssa,
}
