//! Sets of fields and the schema: the fields that an object sets, and sets that were written for an older schema.

use super::field_set::{FieldSet, SetNode};
use super::path::PathElement;
use super::types::{ApplyTypes, Handling, TypeRef};
use crate::value::Value;
use std::collections::{BTreeMap, BTreeSet};

impl ApplyTypes {
    /// Returns the fields that an object sets.
    pub(super) fn field_set(&self, object: Value<'_>) -> FieldSet {
        self.set_node(object, TypeRef::ROOT).children
    }

    fn set_node(&self, value: Value<'_>, of: TypeRef) -> SetNode {
        let mut node = SetNode::default();
        match self.handling(of, Some(value)) {
            Handling::Scalar => node.member = true,
            Handling::List(list) if list.is_atomic() => node.member = true,
            Handling::Map(map) if map.atomic => node.member = true,
            Handling::List(list) => {
                let elements: Vec<_> =
                    value.items().unwrap_or_default().iter().map(|item| (list.element_or_none(*item), item)).collect();
                let mut counts = BTreeMap::<&PathElement, usize>::new();
                for (element, _) in &elements {
                    *counts.entry(element).or_default() += 1;
                }
                let repeated: BTreeSet<_> =
                    counts.into_iter().filter(|(_, count)| *count > 1).map(|(element, _)| element.clone()).collect();
                for (element, item) in elements {
                    let mut item =
                        if repeated.contains(&element) { SetNode::LEAF } else { self.set_node(*item, list.items) };
                    item.member = true;
                    node.children.add(element, item);
                }
            }
            Handling::Map(map) => {
                for (name, value) in value.entries().unwrap_or_default() {
                    let mut field = map.field(name).map(|of| self.set_node(*value, of)).unwrap_or_default();
                    let is_empty = matches!(value, Value::Null | Value::Map([]));
                    field.member |= is_empty || !map.names(name);
                    node.children.add(PathElement::Field((*name).into()), field);
                }
            }
        }
        node
    }

    /// Adds the named fields on the way to each path of a set.
    pub(super) fn with_named_fields(&self, mut set: FieldSet) -> FieldSet {
        self.add_named_fields(&mut set, Some(TypeRef::ROOT));
        set
    }

    fn add_named_fields(&self, set: &mut FieldSet, of: Option<TypeRef>) {
        let known = of.and_then(|of| self.get(of));
        let (map, list) = (known.and_then(|known| known.map()), known.and_then(|known| known.list()));
        for (element, node) in set.nodes_mut().filter(|(_, node)| !node.children.is_empty()) {
            let of = match element {
                PathElement::Field(name) => {
                    node.member |= map.is_some_and(|map| map.names(name));
                    map.and_then(|map| map.field(name))
                }
                PathElement::Key(_) => list.map(|list| list.items),
                PathElement::Value(_) | PathElement::Index(_) => None,
            };
            self.add_named_fields(&mut node.children, of);
        }
    }

    /// Gives a list or an object as a whole to the owner of a part of it, where the schema has become atomic.
    pub(super) fn reconcile(&self, set: &mut FieldSet) {
        self.reconcile_part(set, TypeRef::ROOT);
    }

    fn reconcile_part(&self, set: &mut FieldSet, of: TypeRef) {
        let (map, items) = match self.handling(of, None) {
            Handling::Scalar => return,
            Handling::Map(map) if map.atomic || self.is_deduced(map) => return,
            Handling::Map(map) => (Some(map), None),
            Handling::List(list) => (None, Some(list.items)),
        };
        for (element, node) in set.nodes_mut() {
            let field = map.and_then(|map| match element {
                PathElement::Field(name) => map.field(name),
                PathElement::Key(_) | PathElement::Value(_) | PathElement::Index(_) => map.values(),
            });
            let Some(of) = field.or(items) else { continue };
            let atomic = match self.handling(of, None) {
                Handling::Scalar => false,
                Handling::List(list) => list.is_atomic(),
                Handling::Map(map) => map.atomic && !self.is_deduced(map),
            };
            if atomic {
                *node = SetNode::LEAF;
            } else {
                self.reconcile_part(&mut node.children, of);
            }
        }
    }
}
