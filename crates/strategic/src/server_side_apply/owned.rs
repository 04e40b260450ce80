//! Sets of fields and the schema: the fields that an object sets, and sets that were written for an older schema.

use super::field_set::{FieldSet, SetNode};
use super::path::PathElement;
use super::types::{ApplyTypes, Handling, ListType, MapType, TypeRef};
use crate::value::{MapEntry, Value};
use std::collections::BTreeMap;

impl ApplyTypes {
    /// Returns the fields that an object sets.
    pub(super) fn field_set(&self, object: Value<'_>) -> FieldSet {
        self.set_node(object, TypeRef::ROOT).children
    }

    fn set_node(&self, value: Value<'_>, of: TypeRef) -> SetNode {
        match self.handling(of, Some(value)) {
            Handling::Map(map) if !map.atomic => {
                SetNode { member: false, children: self.fields_set(map, value.entries().unwrap_or_default()) }
            }
            Handling::List(list) if !list.is_atomic() => {
                SetNode { member: false, children: self.items_set(list, value.items().unwrap_or_default()) }
            }
            Handling::Scalar | Handling::List(_) | Handling::Map(_) => SetNode::LEAF,
        }
    }

    fn fields_set(&self, map: &MapType, fields: &[MapEntry<'_>]) -> FieldSet {
        let mut set = FieldSet::default();
        for (name, value) in fields {
            let Some(of) = map.field(name) else { continue };
            let mut node = self.set_node(*value, of);
            node.member |= !map.names(name) || matches!(value, Value::Null | Value::Map([]));
            set.add(PathElement::Field((*name).into()), node);
        }
        set
    }

    /// Returns the set of items. Duplicates are owned together, without what is in them.
    fn items_set(&self, list: &ListType, items: &[Value<'_>]) -> FieldSet {
        let mut known = BTreeMap::<PathElement, Option<Value<'_>>>::new();
        for item in items {
            known.entry(list.element_or_none(*item)).and_modify(|item| *item = None).or_insert(Some(*item));
        }
        let mut set = FieldSet::default();
        for (element, item) in known {
            let children = item.map(|item| self.set_node(item, list.items).children).unwrap_or_default();
            set.add(element, SetNode { member: true, children });
        }
        set
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
