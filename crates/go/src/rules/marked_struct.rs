//! A struct with its markers and its schema: the input of the rules.

use crate::finding::GoFinding;
use crate::finding_kind::FindingKind;
use crate::marker::{Marker, Meaning};
use crate::packages::{Scope, ScopedType};
use crate::position::Position;
use crate::types::Field;
use kube_unions_core::schema::{Place, Schema};
use serde_json::Value;

/// A struct at a place in the schema.
#[derive(Debug)]
pub(crate) struct MarkedStruct<'p, 's> {
    /// Name with the package, for messages: `v1.Strategy`.
    pub(crate) title: String,
    pub(crate) at: &'p Position,
    pub(crate) markers: Vec<&'p Marker>,
    /// Fields that JSON has, in the order of the sources.
    pub(crate) fields: Vec<StructField<'p, 's>>,
    pub(crate) place: &'s Place,
    /// The JSON of the whole schema, with the validation rules that somebody wrote by hand.
    pub(crate) json: &'s Value,
}

/// A field of the struct.
#[derive(Debug)]
pub(crate) struct StructField<'p, 's> {
    pub(crate) field: &'p Field,
    /// The meanings of the markers that count for the field, with their positions.
    pub(crate) meanings: Vec<(&'p Meaning, &'p Position)>,
    /// JSON name.
    pub(crate) name: &'p str,
    pub(crate) scope: Scope<'p>,
    /// `None` if the schema does not have the field.
    pub(crate) schema: Option<&'s Schema>,
    /// True if the schema requires the field.
    pub(crate) required: bool,
}

impl<'p> StructField<'p, '_> {
    pub(super) fn at(&self) -> &'p Position {
        &self.field.at
    }

    pub(super) fn typed(&self) -> ScopedType<'p> {
        ScopedType { written: &self.field.written, scope: self.scope.clone() }
    }

    /// Returns true if the schema says that the field is a boolean.
    pub(super) fn is_boolean(&self) -> bool {
        self.schema.is_some_and(|schema| schema.type_name.as_deref() == Some("boolean"))
    }

    /// Returns the finding that the schema lacks the field. It may be in another version, or behind a feature gate.
    pub(super) fn left_out(&self, role: &str) -> GoFinding {
        let message = format!("the {role} `{}` is not in the schema", self.name);
        GoFinding::left_out(self.at(), FindingKind::MissingField, message)
    }
}

impl<'p, 's> MarkedStruct<'p, 's> {
    /// Returns true if the struct itself is marked as a union.
    pub(super) fn is_union(&self) -> bool {
        self.markers.iter().any(|marker| marker.meaning == Meaning::Union)
    }

    /// Returns the fields that a value names, except for letter case: by their Go names, or else by their JSON names.
    pub(super) fn named<'m>(&'m self, value: &str, discriminator: &str) -> Vec<&'m StructField<'p, 's>> {
        let others = || self.fields.iter().filter(|field| field.name != discriminator);
        let by_go_name: Vec<_> = others().filter(|field| same_letters(&field.field.name, value)).collect();
        if by_go_name.is_empty() {
            others().filter(|field| same_letters(field.name, value)).collect()
        } else {
            by_go_name
        }
    }
}

/// Compares two names without letter case.
pub(super) fn same_letters(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other) || one.to_lowercase() == other.to_lowercase()
}
