//! The remains of a value that was read.

use crate::union::arena::NodeAt;

/// A value after reading.
#[derive(Debug, Clone, Copy)]
pub(super) enum Read {
    /// The value is missing or null.
    Null,
    /// Nothing is stored: the value has an unexpected type, or no part of it matters.
    Other { empty: bool },
    /// A stored node. `judged` is true if a union in it must be judged: a member or a discriminator is set, or the union is
    /// required.
    Node { at: NodeAt, judged: bool, empty: bool },
}

impl Read {
    /// Returns true for `false`, zero, `""`, `{}` and `[]`.
    pub(super) fn is_empty(self) -> bool {
        matches!(self, Self::Other { empty: true } | Self::Node { empty: true, .. })
    }
}
