//! The faults of declarations at the places of a schema.

use crate::declaration::FaultKind;
use crate::schema::{Origin, Place, Severity, Source};
use std::fmt;

/// A fault of a declaration at a place in a schema. Faults are ordered by place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlaceFault {
    /// The place of the declaration.
    pub place: Place,
    /// The source of the declaration.
    pub source: Source,
    /// The `UnionDeclaration`, if the source is one.
    pub origin: Option<Origin>,
    /// The kind of fault, which tells the severity.
    pub kind: FaultKind,
    /// The member that the fault is about, if it is about one.
    pub member: Option<Box<str>>,
    /// The message, with advice for the author of the declaration.
    pub message: String,
}

/// A fault of a declaration, whatever its place.
#[derive(Debug, Clone)]
pub(super) struct Flaw {
    pub(super) kind: FaultKind,
    pub(super) member: Option<Box<str>>,
    pub(super) message: String,
}

impl Flaw {
    pub(super) fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self { kind, member: None, message: message.into() }
    }

    /// Returns a fault that counts others, which are not reported one by one. The worst of them has this severity.
    pub(super) fn more(severity: Severity, count: usize) -> Self {
        let message = match severity {
            Severity::Error => format!("and {count} more; repair those above to see the next"),
            Severity::Warning => format!("and {count} more warnings"),
            Severity::Note => format!("and {count} more notes"),
        };
        Self::new(FaultKind::more(severity), message)
    }

    pub(super) fn at(self, place: Place, source: Source, origin: Option<Origin>) -> PlaceFault {
        let Self { kind, member, message } = self;
        PlaceFault { place, source, origin, kind, member, message }
    }
}

impl PlaceFault {
    /// Returns the severity.
    pub fn severity(&self) -> Severity {
        self.kind.severity()
    }
}

impl fmt::Display for PlaceFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// Returns the question for the name that was perhaps meant.
pub(super) fn guess(near: Option<&str>) -> String {
    near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default()
}
