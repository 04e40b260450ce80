//! The unit of compiling.

use crate::names::GroupKind;
use std::fmt;

/// A CRD or a built-in kind: the unit of compiling. Displays as its name in the working set of the catalog.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Subject {
    /// A CRD, by name.
    Crd(Box<str>),
    Builtin(GroupKind),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crd(name) => f.write_str(name),
            Self::Builtin(kind) => kind.fmt(f),
        }
    }
}
