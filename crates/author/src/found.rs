//! Collects the unions of a schema.

use super::mark::Mark;
use kube_unions_core::schema::{EXTENSION, Place, PlaceStep};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The unions of one schema.
#[derive(Debug, Clone, Default)]
pub(super) struct DeclaredUnions {
    /// Values of `x-kubernetes-unions`, by schema node.
    pub(super) declared: BTreeMap<Place, Value>,
    /// Unions without their discriminator, in the 2019 form. They are declared only to find all of their faults.
    pub(super) doubtful: BTreeMap<Place, Value>,
    pub(super) faults: Vec<(Place, String)>,
}

impl DeclaredUnions {
    /// Collects the unions of a schema.
    pub(super) fn of(schema: &Value) -> Self {
        let mut unions = Self::default();
        unions.read(schema, &Place::root());
        unions
    }

    fn read(&mut self, node: &Value, place: &Place) {
        let Some(keywords) = node.as_object() else { return };
        let properties = keywords.get("properties").and_then(Value::as_object);
        for (keyword, value) in keywords {
            match keyword.as_str() {
                EXTENSION => self.declare(place, value),
                "properties" => {
                    for (name, property) in properties.into_iter().flatten() {
                        self.read(property, &place.property(name));
                    }
                }
                "items" if value.is_object() => self.read(value, &place.then(PlaceStep::Items)),
                "additionalProperties" => self.read(value, &place.then(PlaceStep::Values)),
                "allOf" | "anyOf" | "oneOf" | "not" | "items" | "patternProperties" => {
                    if has_union(value) {
                        let message = format!(
                            "the union is below `{keyword}`, where a CRD has no fields; put it on the type around it, or for a \
                             variant on the enum"
                        );
                        self.faults.push((place.clone(), message));
                    }
                }
                "$ref" => {
                    let message = "a CRD cannot have `$ref`; generate the schema with `inline_subschemas`, and write the \
                                   schema of a recursive type by hand";
                    self.faults.push((place.clone(), message.to_owned()));
                }
                _ => match Mark::from_keyword(keyword) {
                    None => {}
                    Some(Ok(mark)) => {
                        let has = |name: &str| properties.is_some_and(|properties| properties.contains_key(name));
                        self.add(&mark, place, has);
                    }
                    Some(Err(error)) => {
                        let message = format!(
                            "invalid union ({error}); use one version of kube-unions-author for the types and for the CRD"
                        );
                        self.faults.push((place.clone(), message));
                    }
                },
            }
        }
    }

    /// Adds the union of an object. `has` tells if the object has a field.
    fn add(&mut self, mark: &Mark, place: &Place, has: impl Fn(&str) -> bool) {
        match mark {
            Mark::Union(union) => {
                let (value, duplicates) = union.extension();
                let at = if has(union.discriminator()) {
                    let at = place.property(union.discriminator());
                    self.declare(&at, &value);
                    at
                } else {
                    append(
                        self.doubtful.entry(place.clone()).or_insert_with(|| json!([])),
                        &json!([union.by_fields()]),
                    );
                    place.clone()
                };
                self.refuse_duplicates("value", duplicates, &at);
            }
            Mark::AtMostOne(union) => {
                let (value, duplicates) = union.extension();
                self.declare(place, &json!([value]));
                self.refuse_duplicates("member", duplicates, place);
            }
            Mark::Refused(message) => self.faults.push((place.clone(), message.clone())),
        }
    }

    fn declare(&mut self, place: &Place, value: &Value) {
        if let Some(before) = self.declared.get_mut(place) {
            if !append(before, value) && before != value {
                let message = "two unions have this field as their discriminator; keep one".to_owned();
                self.faults.push((place.clone(), message));
            }
        } else {
            self.declared.insert(place.clone(), value.clone());
        }
    }

    fn refuse_duplicates(&mut self, what: &str, names: Vec<&str>, place: &Place) {
        let message = |name| format!("duplicate {what} `{name}`; keep one");
        self.faults.extend(names.into_iter().map(|name| (place.clone(), message(name))));
    }
}

/// Adds the unions to a list that it lacks. Returns true if both values are lists.
pub(super) fn append(list: &mut Value, more: &Value) -> bool {
    let (Some(list), Some(more)) = (list.as_array_mut(), more.as_array()) else { return false };
    for union in more {
        if !list.contains(union) {
            list.push(union.clone());
        }
    }
    true
}

fn has_union(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.iter().any(|(keyword, value)| Mark::is_keyword(keyword) || has_union(value)),
        Value::Array(items) => items.iter().any(has_union),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
