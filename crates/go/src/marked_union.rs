//! Unions that markers declare.

use super::finding::Position;
use kube_unions_core::schema::{Place, SelectedFields};
use kube_unions_core::union::Form;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A union that markers declare.
#[derive(Debug)]
pub struct MarkedUnion {
    /// The object that has the discriminator and the members.
    pub place: Place,
    /// The 2019 or the 2022 form.
    pub form: Form,
    /// JSON name of the discriminator.
    pub discriminator: Option<Box<str>>,
    /// The members that each value selects. Only a mode of declarative validation selects several.
    pub choices: Choices,
    /// One member must be set.
    pub required: bool,
    /// JSON names of the members that count as not set if they are empty.
    pub empty_is_unset: BTreeSet<Box<str>>,
    /// Name of the struct with its package, for example `v1.Strategy`.
    pub go_type: String,
    /// Position of the discriminator. Without one, that of the first member or of the marker that lists the members.
    pub source: Position,
    /// The way in which the members were found.
    pub found_by: FoundBy,
    /// Position of each member, by JSON name.
    pub(super) members: BTreeMap<Box<str>, Position>,
}

/// The way in which the members of a union were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum FoundBy {
    /// Each member has a marker.
    Markers,
    /// The names of fields are values of the discriminator.
    Names,
    /// `+kubebuilder:validation:ExactlyOneOf` or `AtMostOneOf` on the struct lists the members.
    OneOf,
}

/// A member that a value selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// JSON name of the member.
    pub name: Box<str>,
    /// The member may be missing although its value is set.
    pub optional: bool,
    /// The validation rules of the CRD require the member. Always false for marked members, whose markers say so.
    pub by_rule: bool,
}

/// The members that each value selects.
pub(super) type Choices = BTreeMap<Box<str>, Vec<Selection>>;

impl MarkedUnion {
    /// Returns the JSON names of the members, in the order of the sources.
    pub fn members(&self) -> Vec<&str> {
        let mut members: Vec<_> = self.members.iter().collect();
        members.sort_by_key(|(_, at)| (at.line, at.column));
        members.into_iter().map(|(name, _)| &**name).collect()
    }

    /// Returns the position of a member, or of the union if `name` is not a member.
    pub(super) fn position_of(&self, name: Option<&str>) -> &Position {
        name.and_then(|name| self.members.get(name)).unwrap_or(&self.source)
    }

    /// Returns the schema node that carries `x-kubernetes-unions`: the discriminator in the 2022 form, else the object.
    pub fn declared_at(&self) -> Place {
        match (self.form, &self.discriminator) {
            (Form::Map, Some(name)) => self.place.property(name),
            (Form::Map, None) | (Form::List, _) => self.place.clone(),
        }
    }

    /// Returns the value of `x-kubernetes-unions` for this union; in the 2019 form, its item of the list.
    pub fn value(&self) -> Value {
        let mut value = Map::new();
        match self.form {
            Form::Map => {
                let members = self.choices.iter().map(|(value, selected)| {
                    let selected = selected.iter().map(|member| (&*member.name, member.optional));
                    (value.to_string(), SelectedFields::to_value(selected))
                });
                value.insert("fieldMembers".to_owned(), members.collect::<Map<_, _>>().into());
            }
            Form::List => {
                let selected = self.choices.iter().flat_map(|(value, selected)| {
                    selected.iter().map(|selected| (selected.name.to_string(), Value::from(&**value)))
                });
                value.insert("fields-to-discriminateBy".to_owned(), selected.collect::<Map<_, _>>().into());
                value.extend(self.discriminator.iter().map(|name| ("discriminator".to_owned(), (&**name).into())));
            }
        }
        if self.required {
            value.insert("required".to_owned(), true.into());
        }
        if !self.empty_is_unset.is_empty() {
            value.insert("emptyIsUnset".to_owned(), json!(self.empty_is_unset));
        }
        value.into()
    }

    /// Adds the union to the value at its node. Only a list has room for several.
    pub(super) fn add_to(&self, value: &mut Option<Value>) {
        let own = self.value();
        match (self.form, value) {
            (Form::List, Some(Value::Array(unions))) => unions.push(own),
            (Form::List, value) => *value = Some(Value::Array(vec![own])),
            (Form::Map, value) => *value = Some(own),
        }
    }
}
