//! The types of a kind as server-side apply sees them: which values each allows, and who can own which part of them.
//!
//! `build` reads them from a schema.

mod build;

use super::path::{Literal, PathElement};
use crate::error::BrokenAt;
use crate::value::{MapEntry, Value, ValueKind};
use hashbrown::HashMap;
use kube_unions_core::field_path::Segment;
use std::collections::BTreeSet;

/// All types of a kind.
#[derive(Debug)]
pub(crate) struct ApplyTypes {
    // INVARIANT: every `TypeRef` in it is a position.
    types: Vec<ApplyType>,
}

/// The position of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TypeRef(usize);

/// The values that a type allows: of one kind, or of every kind.
#[derive(Debug, Default)]
pub(crate) struct ApplyType {
    scalar: Option<ScalarType>,
    list: Option<ListType>,
    map: Option<MapType>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScalarType {
    Any,
    Number,
    String,
    Boolean,
}

#[derive(Debug)]
pub(super) struct ListType {
    pub(super) items: TypeRef,
    pub(super) topology: ListTopology,
}

/// The way in which the items of a list are owned.
#[derive(Debug)]
pub(super) enum ListTopology {
    /// All together.
    Atomic,
    /// Each by its value.
    Set,
    /// Each by its keys, with the value of an absent key.
    Map(Vec<(Box<str>, Option<Literal>)>),
}

#[derive(Debug)]
pub(super) struct MapType {
    fields: HashMap<Box<str>, TypeRef>,
    /// The type of all other fields. `None` forbids them.
    values: Option<TypeRef>,
    pub(super) atomic: bool,
}

/// The handling of a value: its type, reduced to the kind of the value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Handling<'t> {
    Scalar,
    List(&'t ListType),
    Map(&'t MapType),
}

/// A part of a value that can be owned alone: a field of an object, or an item of a list.
#[derive(Debug)]
pub(super) struct ValuePart<'a> {
    element: Result<PathElement, TypeFault>,
    pub(super) step: Segment,
    pub(super) value: Value<'a>,
    pub(super) of: TypeRef,
}

/// A value that does not fit its type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages name the fields")]
#[non_exhaustive]
pub enum TypeFault {
    /// The value has another type.
    #[error("the value is {found}, but the schema declares {wanted}")]
    WrongType {
        found: ValueKind,
        /// The declared type.
        wanted: &'static str,
    },
    /// The schema does not have the field.
    #[error("field not declared in schema")]
    UnknownField,
    /// An item has no identity.
    #[error("the list has {found} as an item; it must be {wanted}")]
    Item {
        found: ValueKind,
        /// The types that have an identity.
        wanted: &'static str,
    },
    /// An item has none of the keys of its list.
    #[error("the item omits all key fields of its list: set {0}")]
    NoKeys(Box<str>),
    /// A key is a list or an object.
    #[error("the key `{key}` is {found}; it must be a scalar")]
    KeyType { key: Box<str>, found: ValueKind },
    /// Two items have the same identity.
    #[error("duplicate entries: an earlier item of the list has the same {0}")]
    Duplicate(&'static str),
}

impl TypeRef {
    /// Scalars, lists and objects that are owned as a whole.
    const ATOMIC: Self = Self(0);
    /// Scalars, lists that are owned as a whole, and objects with such fields: what a schema does not describe.
    const DEDUCED: Self = Self(1);
    /// Any scalar.
    const SCALAR: Self = Self(2);
    const STRING: Self = Self(3);
    /// The object of the kind.
    pub(super) const ROOT: Self = Self(4);
}

impl MapType {
    /// Returns true if the schema names the field.
    pub(super) fn names(&self, field: &str) -> bool {
        self.fields.contains_key(field)
    }

    pub(super) fn field(&self, name: &str) -> Option<TypeRef> {
        self.fields.get(name).copied().or(self.values)
    }

    /// Returns the type of fields that the schema does not name.
    pub(super) fn values(&self) -> Option<TypeRef> {
        self.values
    }
}

impl ListType {
    /// Returns the identity of an item.
    pub(super) fn element(&self, item: Value<'_>) -> Result<PathElement, TypeFault> {
        let wrong = |wanted| TypeFault::Item { found: item.kind(), wanted };
        let ListTopology::Map(names) = &self.topology else {
            let literal = Literal::of(item).filter(|literal| *literal != Literal::Null);
            return Ok(PathElement::Value(literal.ok_or_else(|| wrong("a scalar"))?));
        };
        item.entries().ok_or_else(|| wrong("an object"))?;
        let mut keys = Vec::with_capacity(names.len());
        for (name, default) in names {
            let literal = match item.get(name) {
                None => default.clone(),
                Some(value) => {
                    let fault = || TypeFault::KeyType { key: name.clone(), found: value.kind() };
                    Some(Literal::of(value).ok_or_else(fault)?)
                }
            };
            keys.extend(literal.map(|literal| (name.clone(), literal)));
        }
        if keys.is_empty() {
            let names: Vec<String> = names.iter().map(|(name, _)| format!("`{name}`")).collect();
            return Err(TypeFault::NoKeys(names.join(" or ").into()));
        }
        Ok(PathElement::keys(keys))
    }

    /// Returns the identity of an item, also of one that lost its keys.
    pub(super) fn element_or_none(&self, item: Value<'_>) -> PathElement {
        self.element(item).unwrap_or_else(|_| PathElement::keys(Vec::new()))
    }

    pub(super) fn is_atomic(&self) -> bool {
        matches!(self.topology, ListTopology::Atomic)
    }
}

impl Handling<'_> {
    /// Returns the parts of a value, `None` if it is owned as a whole.
    pub(super) fn parts<'a>(&self, value: Value<'a>) -> Option<Vec<ValuePart<'a>>> {
        match self {
            Self::Map(map) if !map.atomic => {
                let part = |(name, value): &MapEntry<'a>| {
                    let (element, step) = (Ok(PathElement::Field((*name).into())), Segment::Field((*name).into()));
                    Some(ValuePart { element, step, value: *value, of: map.field(name)? })
                };
                Some(value.entries().unwrap_or_default().iter().filter_map(part).collect())
            }
            Self::List(list) if !list.is_atomic() => {
                let part = |(position, value): (usize, &Value<'a>)| {
                    let (element, step) = (list.element(*value), Segment::Index(position));
                    ValuePart { element, step, value: *value, of: list.items }
                };
                Some(value.items().unwrap_or_default().iter().enumerate().map(part).collect())
            }
            Self::Map(_) | Self::List(_) | Self::Scalar => None,
        }
    }
}

impl ValuePart<'_> {
    /// Returns the identity of the part. Fails for an item without one.
    pub(super) fn element(&self) -> Result<PathElement, BrokenAt<TypeFault>> {
        self.element.clone().map_err(|fault| BrokenAt::from(fault).inside(self.step.clone()))
    }

    /// Returns the identity of the part, also of an item that lost its keys.
    pub(super) fn element_or_none(&self) -> PathElement {
        self.element.clone().unwrap_or_else(|_| PathElement::keys(Vec::new()))
    }
}

impl ApplyType {
    pub(super) fn map(&self) -> Option<&MapType> {
        self.map.as_ref()
    }

    pub(super) fn list(&self) -> Option<&ListType> {
        self.list.as_ref()
    }
}

impl ApplyTypes {
    /// Returns true for an object of which the schema describes neither fields nor values.
    pub(super) fn is_deduced(&self, map: &MapType) -> bool {
        let values = map.values.filter(|values| ![TypeRef::ATOMIC, TypeRef::SCALAR].contains(values));
        let values = values.and_then(|values| self.get(values));
        map.fields.is_empty() && values.is_some_and(|values| values.scalar == Some(ScalarType::Any))
    }

    pub(super) fn get(&self, of: TypeRef) -> Option<&ApplyType> {
        self.types.get(of.0)
    }

    /// Returns the handling of a value. An absent value and a null fit every type.
    pub(super) fn handling(&self, of: TypeRef, value: Option<Value<'_>>) -> Handling<'_> {
        let Some(known) = self.get(of) else { return Handling::Scalar };
        let (map, list) = (known.map().map(Handling::Map), known.list().map(Handling::List));
        let scalar = known.scalar.map(|_| Handling::Scalar);
        let own = match value.map(Value::kind) {
            None | Some(ValueKind::Null) => None,
            Some(ValueKind::Object) => map,
            Some(ValueKind::List) => list,
            Some(ValueKind::Boolean | ValueKind::Number | ValueKind::String) => scalar,
        };
        own.or(map).or(scalar).or(list).unwrap_or(Handling::Scalar)
    }

    /// Refuses a value that does not fit its type. Only an applied configuration must have no duplicate items.
    pub(super) fn check(&self, value: Value<'_>, of: TypeRef, duplicates: bool) -> Result<(), BrokenAt<TypeFault>> {
        let found = value.kind();
        let wanted = match (self.handling(of, Some(value)), value) {
            (_, Value::Null) => return Ok(()),
            (Handling::Map(map), Value::Map(fields)) => return self.check_fields(map, fields, duplicates),
            (Handling::List(list), Value::List(items)) => return self.check_items(list, items, duplicates),
            (Handling::Map(_), _) => "an object",
            (Handling::List(_), _) => "a list",
            (Handling::Scalar, _) => {
                let wanted = self.get(of).and_then(|known| known.scalar).unwrap_or(ScalarType::Any);
                match (wanted, found) {
                    (_, ValueKind::Object | ValueKind::List) => "a scalar",
                    (ScalarType::Number, ValueKind::Boolean | ValueKind::String) => "a number",
                    (ScalarType::String, ValueKind::Boolean | ValueKind::Number) => "a string",
                    (ScalarType::Boolean, ValueKind::Number | ValueKind::String) => "a boolean",
                    _ => return Ok(()),
                }
            }
        };
        Err(TypeFault::WrongType { found, wanted }.into())
    }

    fn check_fields(
        &self,
        map: &MapType,
        fields: &[MapEntry<'_>],
        duplicates: bool,
    ) -> Result<(), BrokenAt<TypeFault>> {
        for (name, value) in fields {
            let checked = match map.field(name) {
                Some(of) => self.check(*value, of, duplicates),
                None => Err(TypeFault::UnknownField.into()),
            };
            checked.map_err(|broken| broken.inside(Segment::Field((*name).into())))?;
        }
        Ok(())
    }

    fn check_items(&self, list: &ListType, items: &[Value<'_>], duplicates: bool) -> Result<(), BrokenAt<TypeFault>> {
        let mut seen = BTreeSet::new();
        for (position, item) in items.iter().enumerate() {
            let checked = match &list.topology {
                ListTopology::Atomic => Ok(()),
                ListTopology::Set | ListTopology::Map(_) => list.element(*item).and_then(|element| {
                    let is_new = seen.insert(element) || duplicates;
                    let identity = if matches!(list.topology, ListTopology::Set) { "value" } else { "keys" };
                    if is_new { Ok(()) } else { Err(TypeFault::Duplicate(identity)) }
                }),
            };
            let checked = checked.map_err(BrokenAt::from).and_then(|()| self.check(*item, list.items, duplicates));
            checked.map_err(|broken| broken.inside(Segment::Index(position)))?;
        }
        Ok(())
    }
}
