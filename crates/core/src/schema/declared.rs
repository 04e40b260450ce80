//! Declarations as they are grafted onto a schema, with their sources.

use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// An unchecked value of `x-kubernetes-unions`, with its source.
#[derive(Debug, Clone, PartialEq)]
pub struct Declared {
    /// The value of the extension.
    pub value: Value,
    /// The source of the declaration.
    pub source: Source,
    /// The `UnionDeclaration` it comes from, if the source is [`Source::Declaration`].
    pub origin: Option<Origin>,
    /// The treatment of an object that violates the union.
    pub action: Action,
}

/// A union of a `UnionDeclaration`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The name of the `UnionDeclaration`.
    pub declaration: Arc<str>,
    /// The position of the union in `spec.unions`.
    pub union: usize,
}

/// The source of a declaration. For the same place an earlier source wins over a later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Source {
    /// `x-kubernetes-unions` in the schema.
    Schema,
    /// The CRD's annotation `kube-unions.dev/unions`.
    Annotation,
    /// The CRD as its author sent it: `kubectl apply` without `--server-side` keeps it in the annotation
    /// `kubectl.kubernetes.io/last-applied-configuration`.
    LastApplied,
    /// A `UnionDeclaration`.
    Declaration,
    /// `x-kubernetes-unions` in the OpenAPI document of a built-in type.
    Published,
}

/// The treatment of an object that violates a union, as in a `ValidatingAdmissionPolicy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Action {
    /// Reject the object.
    #[default]
    Deny,
    /// Accept the object with a warning.
    Warn,
}

/// The severity of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The declaration is not in force.
    Error,
    /// The declaration is in force but may surprise, or nothing was lost.
    Warning,
}

impl Declared {
    /// Returns a declaration that denies and belongs to no `UnionDeclaration`.
    pub fn new(value: Value, source: Source) -> Self {
        Self { value, source, origin: None, action: Action::Deny }
    }

    /// Returns true if both have the same value and action.
    pub(crate) fn agrees_with(&self, other: &Self) -> bool {
        self.value == other.value && self.action == other.action
    }
}

impl Source {
    /// Returns the name for reports and metrics.
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
