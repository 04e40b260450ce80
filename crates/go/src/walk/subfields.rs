//! Markers behind `+k8s:subfield`: on a type or on a field, for the fields of its struct.

use crate::finding::{FindingKind, GoFinding, Position};
use crate::marker::{Marker, Meaning};
use crate::packages::Scope;
use crate::rules::StructField;
use crate::types::Field;
use kube_unions_core::schema::Schema;
use std::collections::BTreeMap;

/// The fields of an object that are visible in JSON, each with the scope of its type.
pub(super) type VisibleFields<'p> = BTreeMap<&'p str, (&'p Field, Scope<'p>)>;

/// A marker that belongs to a field of a struct.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subfield<'p> {
    /// JSON name of the field.
    pub(super) name: &'p str,
    meaning: &'p Meaning,
    pub(super) at: &'p Position,
}

/// The markers that belong to the fields of an object.
pub(super) struct Subfields<'p> {
    /// Those on its types. They count as if they were on the fields.
    pub(super) of_types: Vec<Subfield<'p>>,
    /// Those on the field with the object. Their unions are apart from those of its types.
    pub(super) of_site: Vec<Subfield<'p>>,
    /// Name of the struct with its package.
    pub(super) title: String,
}

impl<'p> Subfield<'p> {
    pub(super) fn of(marker: &'p Marker) -> Option<Self> {
        let Meaning::Subfield(name, meaning) = &marker.meaning else { return None };
        Some(Self { name, meaning, at: &marker.at })
    }

    pub(super) fn meaning(&self) -> (&'p Meaning, &'p Position) {
        (self.meaning, self.at)
    }
}

impl<'p> Subfields<'p> {
    pub(super) fn all(&self) -> impl Iterator<Item = Subfield<'p>> {
        self.of_types.iter().chain(&self.of_site).copied()
    }

    /// Returns a finding for each marker whose field the object does not have.
    pub(super) fn unknown(&self, visible: &VisibleFields<'p>) -> Vec<GoFinding> {
        let unknown = self.all().filter(|subfield| !visible.contains_key(subfield.name));
        let finding = |Subfield { name, at, .. }: Subfield<'p>| {
            let message = format!("`{name}` is not a field of `{}`: write the JSON name of a field", self.title);
            GoFinding::left_out(at, FindingKind::UnknownField, message)
        };
        unknown.map(finding).collect()
    }

    /// Returns the fields of the object, in the order of the sources, with the markers on the field that has it.
    pub(super) fn marked<'s>(&self, visible: &VisibleFields<'p>, schema: &'s Schema) -> Vec<StructField<'p, 's>> {
        let fields = visible.iter().map(|(name, (field, scope))| {
            let meanings = self.of_site.iter().filter(|it| it.name == *name).map(Subfield::meaning);
            StructField::of((name, field), meanings.collect(), scope, schema)
        });
        let mut fields: Vec<_> = fields.collect();
        fields.sort_by(|one, other| one.field.at.cmp(&other.field.at));
        fields
    }
}
