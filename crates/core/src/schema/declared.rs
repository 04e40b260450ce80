//! Declarations as they are grafted onto a schema, with their sources.

use super::place::Place;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Most `UnionDeclaration`s that are recorded for declaring the same.
const MOST_REPEATS: usize = 255;

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
    pub actions: Actions,
    /// The treatment of an object that normalisation would change.
    pub normalization: Normalization,
    /// The unions of `UnionDeclaration`s that declare the same at the same place.
    pub repeated_by: Vec<Origin>,
    /// The fields that the schema need not describe, if the declaration allows it.
    pub untyped: Option<Arc<Untyped>>,
}

/// The fields of a union that a schema need not describe, and the keys of lists on the way to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Untyped {
    /// The object with the union.
    pub(crate) object: Place,
    /// True if the schema need not describe the object and its fields.
    pub(crate) schemaless: bool,
    pub(crate) members: Box<[Box<str>]>,
    /// The discriminator, if there is one.
    pub(crate) discriminator: Option<Box<str>>,
    /// True if the discriminator is a boolean: its values are `true` and `false`.
    pub(crate) boolean: bool,
    /// The fields that identify an item, of lists around the object.
    pub(crate) list_keys: BTreeMap<Place, Box<[Box<str>]>>,
}

/// A union of a `UnionDeclaration`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The name of the `UnionDeclaration`.
    pub declaration: Arc<str>,
    /// The entry that declares the union.
    pub entry: OriginEntry,
}

/// An entry of a `UnionDeclaration`, by its position in a list of the spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OriginEntry {
    /// An item of `spec.unions`.
    Union(usize),
    /// An item of `spec.podTemplates`, and the position of the union in the template.
    PodTemplate(usize, usize),
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

/// The treatment of an object that violates a union: the sets of actions that a `ValidatingAdmissionPolicyBinding` may have.
/// There is at least one action, and never both `Deny` and `Warn`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Actions {
    /// Reject the object.
    Deny {
        /// Write the violation to the audit log, too.
        audit: bool,
    },
    /// Accept the object with a warning.
    Warn {
        /// Write the violation to the audit log, too.
        audit: bool,
    },
    /// Accept the object, and write the violation to the audit log.
    Audit,
}

/// The treatment of an object that normalisation would change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
pub enum Normalization {
    /// Clear the members that the request did not choose, and deduce the discriminator.
    #[default]
    Enabled,
    /// Change nothing. The union is only judged.
    Disabled,
}

/// The severity of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The declaration is not in force.
    Error,
    /// The declaration is in force but may surprise, or nothing was lost.
    Warning,
    /// Nothing is wrong. A part of the declaration is not in force, because the schema lacks it, or something is worth
    /// knowing.
    Note,
}

impl OriginEntry {
    /// Returns the JSON Pointer of the entry in the `UnionDeclaration`.
    pub(crate) fn pointer(self) -> String {
        match self {
            Self::Union(position) => format!("/spec/unions/{position}"),
            Self::PodTemplate(position, _) => format!("/spec/podTemplates/{position}"),
        }
    }
}

impl Declared {
    /// Returns a declaration that denies and belongs to no `UnionDeclaration`.
    pub fn new(value: Value, source: Source) -> Self {
        Self {
            value,
            source,
            origin: None,
            actions: Actions::DENY,
            normalization: Normalization::Enabled,
            repeated_by: Vec::new(),
            untyped: None,
        }
    }

    /// Returns the source, and the union if it is a `UnionDeclaration`.
    pub(crate) fn by(&self) -> (Source, Option<&Origin>) {
        (self.source, self.origin.as_ref())
    }

    /// Records a union of a `UnionDeclaration` that declares the same.
    pub(crate) fn repeat(&mut self, origin: Option<Origin>) {
        let room = MOST_REPEATS.saturating_sub(self.repeated_by.len());
        self.repeated_by.extend(origin.into_iter().take(room));
    }

    /// Returns true if both have the same value and treatment.
    pub(crate) fn agrees_with(&self, other: &Self) -> bool {
        let of = |declared: &Self| (declared.actions, declared.normalization);
        self.value == other.value && of(self) == of(other)
    }
}

impl Actions {
    /// All sets.
    pub const ALL: [Self; 5] =
        [Self::DENY, Self::Deny { audit: true }, Self::WARN, Self::Warn { audit: true }, Self::Audit];
    /// Reject the object.
    pub const DENY: Self = Self::Deny { audit: false };
    /// Accept the object with a warning.
    pub const WARN: Self = Self::Warn { audit: false };

    /// Returns true if the object is rejected.
    pub fn denies(self) -> bool {
        matches!(self, Self::Deny { .. })
    }

    /// Returns true if the violation is written to the audit log.
    pub fn audits(self) -> bool {
        match self {
            Self::Deny { audit } | Self::Warn { audit } => audit,
            Self::Audit => true,
        }
    }

    /// Returns the names of the actions, as in `validationActions`.
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Self::Deny { audit: false } => &["Deny"],
            Self::Deny { audit: true } => &["Deny", "Audit"],
            Self::Warn { audit: false } => &["Warn"],
            Self::Warn { audit: true } => &["Warn", "Audit"],
            Self::Audit => &["Audit"],
        }
    }
}

impl Default for Actions {
    fn default() -> Self {
        Self::DENY
    }
}

impl Normalization {
    /// Returns true if objects are normalised.
    pub fn is_enabled(&self) -> bool {
        *self == Self::Enabled
    }

    /// Returns the name, as in `normalization`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Enabled => "Enabled",
            Self::Disabled => "Disabled",
        }
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

impl Severity {
    /// Returns the name for reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
