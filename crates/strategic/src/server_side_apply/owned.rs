//! Sets of fields and the schema: the fields that an object sets, and sets that were written for an older schema.

use super::field_set::{FieldSet, SetNode};
use super::path::PathElement;
use super::types::{ApplyTypes, Handling, TypeRef, ValuePart};
use crate::value::Value;
use std::collections::BTreeMap;

impl ApplyTypes {
    pub(super) fn field_set(&self, object: Value<'_>) -> FieldSet {
        self.set_node(object, TypeRef::ROOT).children
    }

    fn set_node(&self, value: Value<'_>, of: TypeRef) -> SetNode {
        let handling = self.handling(of, Some(value));
        let Some(parts) = handling.parts(value) else { return SetNode::LEAF };
        // Duplicate items are owned together, without what is in them.
        let mut known = BTreeMap::<PathElement, Option<ValuePart<'_>>>::new();
        for part in parts {
            known.entry(part.element_or_none()).and_modify(|part| *part = None).or_insert(Some(part));
        }
        let mut node = SetNode::default();
        for (element, part) in known {
            let is_member = match (&element, handling, &part) {
                (PathElement::Field(name), Handling::Map(map), Some(part)) => {
                    !map.names(name) || matches!(part.value, Value::Null | Value::Map([]))
                }
                _ => true,
            };
            let mut inner = part.map(|part| self.set_node(part.value, part.of)).unwrap_or_default();
            inner.member |= is_member;
            node.children.add(element, inner);
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
