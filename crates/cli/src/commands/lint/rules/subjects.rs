//! The unions to compare, each with the schema of its object.

use crate::input::crd;
use crate::input::kinds::Assembly;
use crate::input::manifest::Document;
use kube_unions_core::catalog::{Catalog, CatalogEntry};
use kube_unions_core::field_path::{FieldPath, pointer};
use kube_unions_core::schema::{Place, PlaceStep};
use kube_unions_core::union::{Part, Union, UnionStep};
use kube_unions_evidence::UnionFields;
use serde_json::{Map, Value, json};

#[derive(Debug)]
pub(crate) struct ReadDefinition<'d> {
    pub(crate) document: &'d Document,
    pub(crate) crd: Value,
}

/// A union, and the schema of its object.
#[derive(Debug)]
pub(crate) struct CheckedUnion<'s> {
    pub(crate) document: &'s Document,
    pub(crate) catalog: &'s Catalog,
    pub(crate) entry: &'s CatalogEntry,
    pub(crate) union: &'s Union,
    pub(crate) part: Part,
    /// The schema of the version.
    pub(crate) schema: &'s Value,
    /// The JSON Pointer of `schema` in the CRD.
    pub(crate) pointer: String,
    /// The place of the union's object in `schema`.
    pub(crate) place: Place,
    steps: Vec<UnionStep<'s>>,
}

/// Returns the CRDs among documents.
pub(crate) fn definitions(assembly: &Assembly) -> Vec<ReadDefinition<'_>> {
    let read = |document| Some(ReadDefinition { document, crd: serde_json::from_str(&document.text).ok()? });
    assembly.definitions().filter_map(read).collect()
}

/// Returns the unions of a catalog whose kinds these CRDs define, in the order of the catalog.
pub(crate) fn of<'s>(
    catalog: &'s Catalog,
    definitions: &'s [ReadDefinition<'s>],
) -> impl Iterator<Item = CheckedUnion<'s>> {
    catalog.entries().iter().flat_map(move |entry| {
        let definition = definitions.iter().find(|definition| definition.defines(entry));
        definition.into_iter().flat_map(move |definition| definition.subjects(catalog, entry))
    })
}

impl ReadDefinition<'_> {
    pub(crate) fn defines(&self, entry: &CatalogEntry) -> bool {
        let text = |pointer: &str| self.crd.pointer(pointer).and_then(Value::as_str);
        let kind = entry.gvk();
        (text("/spec/group"), text("/spec/names/kind")) == (Some(&*kind.group), Some(&*kind.kind))
    }

    fn subjects<'s>(&'s self, catalog: &'s Catalog, entry: &'s CatalogEntry) -> Vec<CheckedUnion<'s>> {
        let version = crd::schemas(&self.crd).find(|(_, name, _)| *name == &*entry.gvk().version);
        let Some((index, _, root)) = version else { return Vec::new() };
        let mut subjects = Vec::new();
        for part in [Part::Main, Part::Status] {
            for place in entry.plan().places(part) {
                let object: Place = place.steps.iter().map(schema_step).collect();
                subjects.extend(place.unions.iter().map(|union| CheckedUnion {
                    document: self.document,
                    catalog,
                    entry,
                    union,
                    part,
                    schema: root,
                    pointer: format!("/spec/versions/{index}/schema/openAPIV3Schema"),
                    place: object.clone(),
                    steps: place.steps.clone(),
                }));
            }
        }
        subjects
    }
}

pub(crate) fn schema_step(step: &UnionStep<'_>) -> PlaceStep {
    match step {
        UnionStep::Field(name) => PlaceStep::Property((*name).into()),
        UnionStep::Items { .. } => PlaceStep::Items,
        UnionStep::Values => PlaceStep::Values,
    }
}

pub(crate) fn fields_of(union: &Union) -> UnionFields {
    let values = union.choices().iter().map(|choice| choice.value().to_owned());
    UnionFields {
        discriminator: union.discriminator().map(str::to_owned),
        values: values.filter(|it| !it.is_empty()).collect(),
        members: union.members().map(str::to_owned).collect(),
        empty_is_unset: union.empty_is_unset().map(str::to_owned).collect(),
    }
}

impl CheckedUnion<'_> {
    pub(crate) fn fields(&self) -> UnionFields {
        fields_of(self.union)
    }

    /// Returns the JSON Pointer of the place's schema in the CRD.
    pub(crate) fn place_pointer(&self) -> String {
        format!("{}{}", self.pointer, self.place.to_pointer())
    }

    /// Returns the schema of the object with the union.
    pub(crate) fn node(&self) -> Option<&Value> {
        self.schema.pointer(&self.place.to_pointer())
    }

    /// Returns a whole object with an object at the place. A union above the place selects the member that leads to it.
    pub(crate) fn whole(&self, object: Value) -> Value {
        let places = self.entry.plan().places(self.part);
        let mut whole = object;
        for (length, step) in self.steps.iter().enumerate().rev() {
            whole = match step {
                UnionStep::Field(name) => {
                    let mut fields = Map::from_iter([((*name).to_owned(), whole)]);
                    let above = places.iter().filter(|place| self.steps.get(..length) == Some(&place.steps));
                    for union in above.flat_map(|place| place.unions) {
                        let choice = union.choices().iter().find(|choice| choice.selected(name).is_some());
                        fields.extend(
                            union
                                .discriminator()
                                .zip(choice)
                                .map(|(field, choice)| (field.to_owned(), json!(choice.value()))),
                        );
                    }
                    Value::Object(fields)
                }
                UnionStep::Items { .. } => json!([whole]),
                UnionStep::Values => json!({"x": whole}),
            };
        }
        whole
    }

    /// Returns true for the place in [`Self::whole`], and for a field of the union there.
    pub(crate) fn is_at_place(&self, path: &FieldPath) -> bool {
        let place = pointer(self.steps.iter().map(|step| match step {
            UnionStep::Field(name) => name,
            UnionStep::Items { .. } => "0",
            UnionStep::Values => "x",
        }));
        let changed = path.to_pointer();
        let is_field = |name: &str| format!("{place}{}", pointer([name])) == changed;
        changed == place || self.union.discriminator().into_iter().chain(self.union.members()).any(is_field)
    }
}
