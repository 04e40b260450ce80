//! The faults of declarations at the places of a schema.

use crate::declaration::FaultKind;
use crate::field_path::pointer;
use crate::near::nearest;
use crate::schema::{Declared, Origin, Place, Schema, Severity, Source};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;

/// The key of the members in the 2019 form.
const FIELDS: &str = "fields-to-discriminateBy";

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
    /// The JSON Pointer of the faulty entry, from the declaration on.
    pub entry: String,
    /// The message, with advice for the author of the declaration.
    pub message: String,
}

/// A fault of a declaration, whatever its place.
#[derive(Debug, Clone)]
pub(super) struct Flaw {
    pub(super) kind: FaultKind,
    pub(super) member: Option<Box<str>>,
    pub(super) entry: String,
    pub(super) message: String,
}

impl Flaw {
    pub(super) fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self { kind, member: None, entry: String::new(), message: message.into() }
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
        let Self { kind, member, entry, message } = self;
        PlaceFault { place, source, origin, kind, member, entry, message }
    }

    /// Returns the flaw with its entry in a declaration, of which it concerns the union at a position.
    pub(super) fn within(self, declared: &Declared, position: usize) -> Self {
        let union = declared.value.get(position).unwrap_or(&declared.value);
        let (own, fields) = match declared.source {
            Source::Declaration => (String::new(), "fieldsToDiscriminateBy"),
            Source::Schema | Source::Annotation | Source::LastApplied | Source::Published => {
                (if declared.value.is_array() { format!("/{position}") } else { String::new() }, FIELDS)
            }
        };
        // The 2022 form stands on its discriminator.
        let names_discriminator = declared.value.is_array() || declared.source == Source::Declaration;
        let is_discriminator =
            names_discriminator && matches!(self.kind, FaultKind::UnknownDiscriminator | FaultKind::DiscriminatorType);
        let keys = match self.member.as_deref() {
            Some(member) if union.get(FIELDS).is_some_and(|all| all.get(member).is_some()) => Some([fields, member]),
            Some(member) => {
                let mut values = union.get("fieldMembers").and_then(Value::as_object).into_iter().flatten();
                let selects = |value: &Value| value["name"] == member || value["fields"].get(member).is_some();
                values.find(|(_, selected)| selects(selected)).map(|(value, _)| ["fieldMembers", &**value])
            }
            None => is_discriminator.then_some(["discriminator", ""]),
        };
        let keys = keys.into_iter().flatten().filter(|key| !key.is_empty());
        Self { entry: own + &pointer(keys), ..self }
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
pub(super) fn did_you_mean(near: Option<&str>) -> String {
    near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default()
}

/// Looks for a property that `name` was perhaps meant to be. It is none of those that are `declared` as well.
pub(super) fn near_property<'s>(name: &str, schema: &'s Schema, declared: &BTreeSet<&str>) -> Option<&'s str> {
    nearest(name, schema.properties.keys().map(AsRef::as_ref).filter(|name| !declared.contains(name)))
}
