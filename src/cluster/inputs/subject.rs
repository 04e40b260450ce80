//! The unit of rebuilding.

use super::StoredDefinition;
use kube_unions_core::declaration::{Declaration, OpenApi};
use kube_unions_core::names::GroupKind;
use std::fmt;
use std::sync::Arc;

/// A CRD or a built-in kind: the unit of rebuilding. Displays as the name of its row in the working set of the catalog.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::cluster) enum Subject {
    /// A CRD, by name.
    Definition(Box<str>),
    /// A built-in kind.
    Builtin(GroupKind),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Definition(name) => f.write_str(name),
            Self::Builtin(kind) => kind.fmt(f),
        }
    }
}

/// The inputs of a subject.
#[derive(Debug, Clone)]
pub(in crate::cluster) enum SubjectInputs {
    /// A CRD, and the declarations that target the kind that it defines, ordered by name.
    Definition { name: Box<str>, definition: Arc<StoredDefinition>, declarations: Vec<Arc<Declaration>> },
    /// The OpenAPI documents of a built-in kind's group, whether the unions that they publish count, and the declarations that
    /// target the kind, ordered by name.
    Builtin { kind: GroupKind, documents: Vec<Arc<OpenApi>>, published: bool, declarations: Vec<Arc<Declaration>> },
}
