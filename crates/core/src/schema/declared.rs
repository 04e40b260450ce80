//! A declaration as it stands on a schema, and where it came from.

use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// The value of an `x-kubernetes-unions` extension, not yet checked, and where it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Declared {
    /// What stands there, or would.
    pub value: Value,
    /// Where it was found.
    pub source: Source,
    /// Which `UnionDeclaration` says it, where the source is one.
    pub origin: Option<Origin>,
    /// What becomes of an object that it makes invalid.
    pub action: Action,
}

/// One union of one `UnionDeclaration`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The name of the `UnionDeclaration`.
    pub declaration: Arc<str>,
    /// The position in its `spec.unions`.
    pub union: usize,
}

/// Where a declaration was found. An earlier source wins over a later one for the same place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Source {
    /// `x-kubernetes-unions` in the schema itself.
    Schema,
    /// The CRD's annotation `kube-unions.dev/unions`.
    Annotation,
    /// The CRD as its author sent it, kept by client-side apply in `kubectl.kubernetes.io/last-applied-configuration`.
    LastApplied,
    /// A `UnionDeclaration`.
    Declaration,
    /// `x-kubernetes-unions` in the OpenAPI document of a built-in type.
    Published,
}

/// What becomes of an object that a union makes invalid, as in `ValidatingAdmissionPolicy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Action {
    /// It is rejected.
    #[default]
    Deny,
    /// It is accepted with a warning.
    Warn,
}

/// How bad it is when something is wrong with a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The declaration, or what contradicts another one, is not in force.
    Error,
    /// The declaration is in force and may surprise, or there was none to lose.
    Warning,
}

impl Declared {
    /// A declaration that denies and is no `UnionDeclaration`'s.
    pub fn new(value: Value, source: Source) -> Self {
        Self { value, source, origin: None, action: Action::Deny }
    }

    /// Whether both say the same.
    pub(crate) fn agrees_with(&self, other: &Self) -> bool {
        self.value == other.value && self.action == other.action
    }
}

impl Source {
    /// The name in reports and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Schema => "schema",
            Self::Annotation => "annotation",
            Self::LastApplied => "last-applied",
            Self::Declaration => "declaration",
            Self::Published => "published",
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}
