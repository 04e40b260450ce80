//! From a schema with declarations on it to a [`Plan`], with every check that can be made beforehand.
//!
//! A declaration that fails a check is left out and reported; no other is touched by it.

mod check;
mod fault;

pub use fault::{PlaceFault, PlaceFaultKind};

use super::Union;
use super::plan::{FieldNode, ListNode, Node, NodeId, ObjectNode, Plan, Role};
use crate::schema::{Declared, DefaultValue, Extension, Place, PlaceStep, Schema};
use check::Checked;
use std::collections::BTreeMap;

/// What becomes of a schema: the plan of all that is sound in it, and what is not.
#[derive(Debug, Default)]
pub struct Compiled {
    /// The unions that are in force.
    pub plan: Plan,
    /// What is wrong with declarations, by place.
    pub faults: Vec<PlaceFault>,
}

/// Compiles the unions declared on a schema.
///
/// With `status_subresource`, what is below `.status` is apart: it is changed by the status subresource only, and that
/// changes nothing else.
pub fn compile(schema: &Schema, status_subresource: bool) -> Compiled {
    let mut compiler = Compiler::default();
    compiler.refuse_outside_properties(schema, &Place::root());
    let main = compiler.object(schema, &Surroundings::default(), status_subresource);
    let status = schema.properties.get("status").filter(|_| status_subresource).and_then(|status| {
        let child = compiler.node(status, &Surroundings::default().inwards(PlaceStep::Property("status".into())))?;
        let field = FieldNode { name: "status".into(), role: Role::Bystander, key: None, child: Some(child) };
        let node = ObjectNode { fields: Box::new([field]), first_union: 0, union_count: 0, key_count: 0 };
        Some(compiler.add(Node::Object(node)))
    });
    let Compiler { nodes, unions, mut faults } = compiler;
    faults.sort();
    Compiled { plan: Plan { nodes: nodes.into(), unions: unions.into(), main, status }, faults }
}

#[derive(Default)]
struct Compiler {
    nodes: Vec<Node>,
    unions: Vec<Union>,
    faults: Vec<PlaceFault>,
}

/// Where the compiler stands, and what that means for unions.
#[derive(Debug, Clone, Default)]
struct Surroundings {
    place: Place,
    /// The keys of the list that the node is the item of.
    keys: Vec<Box<str>>,
    /// The outermost list without keys that the node is in.
    keyless: Option<Place>,
}

impl Surroundings {
    fn inwards(&self, step: PlaceStep) -> Self {
        Self { place: self.place.then(step), keys: Vec::new(), keyless: self.keyless.clone() }
    }
}

impl Compiler {
    fn add(&mut self, node: Node) -> NodeId {
        let id = NodeId::try_from(self.nodes.len()).unwrap_or(NodeId::MAX);
        self.nodes.push(node);
        id
    }

    fn fault(&mut self, place: &Place, declared: &Declared, kind: PlaceFaultKind) {
        let (source, origin) = (declared.source, declared.origin.clone());
        self.faults.push(PlaceFault { place: place.clone(), source, origin, kind });
    }

    /// Compiles what is at and below a node; `None` where there is no union. A 2022 form that stands on the node itself belongs
    /// to the object around it and is compiled there.
    fn node(&mut self, schema: &Schema, at: &Surroundings) -> Option<NodeId> {
        if schema.embedded_resource {
            self.report_unreachable(schema, &at.place);
            return None;
        }
        if !schema.properties.is_empty() {
            return self.object(schema, at, false);
        }
        // Without fields no declaration here can be right; this only says why.
        self.declare(schema, at, &mut BTreeMap::new());
        if let Some(items) = &schema.items {
            let mut inside = at.inwards(PlaceStep::Items);
            inside.keys = schema.list_keys().to_vec();
            let keyed = !inside.keys.is_empty();
            if !keyed && inside.keyless.is_none() {
                inside.keyless = Some(at.place.clone());
            }
            self.refuse_outside_properties(items, &inside.place);
            let items = self.node(items, &inside)?;
            return Some(self.add(Node::List(ListNode { items, keyed })));
        }
        let values = schema.additional_properties.as_deref()?;
        let inside = at.inwards(PlaceStep::Values);
        self.refuse_outside_properties(values, &inside.place);
        let values = self.node(values, &inside)?;
        Some(self.add(Node::Map(values)))
    }

    fn object(&mut self, schema: &Schema, at: &Surroundings, without_status: bool) -> Option<NodeId> {
        let first_union = u32::try_from(self.unions.len()).unwrap_or(u32::MAX);
        let mut roles = BTreeMap::new();
        self.declare(schema, at, &mut roles);
        let union_count = self.unions.len().saturating_sub(usize::try_from(first_union).unwrap_or(usize::MAX));
        let mut fields = BTreeMap::new();
        for (name, role) in &roles {
            fields.insert(name.clone(), FieldNode { name: name.clone(), role: *role, key: None, child: None });
        }
        for (name, property) in &schema.properties {
            if without_status && &**name == "status" {
                continue;
            }
            if let Some(child) = self.node(property, &at.inwards(PlaceStep::Property(name.clone()))) {
                bystander(&mut fields, name).child = Some(child);
            }
        }
        if fields.is_empty() {
            return None;
        }
        for (position, key) in (0_u8..).zip(&at.keys) {
            bystander(&mut fields, key).key = Some(position);
        }
        Some(self.add(Node::Object(ObjectNode {
            fields: fields.into_values().collect(),
            first_union,
            union_count: u8::try_from(union_count).unwrap_or(u8::MAX),
            key_count: u8::try_from(at.keys.len()).unwrap_or(u8::MAX),
        })))
    }

    /// Compiles the unions of one object. Sources are taken best first, and `UnionDeclaration`s by name, so that of two
    /// declarations that want the same field the better one has it.
    fn declare(&mut self, schema: &Schema, at: &Surroundings, roles: &mut BTreeMap<Box<str>, Role>) {
        let own = schema.unions.iter().filter(|declared| !declared.value.is_object()).map(|declared| (None, declared));
        let of_properties = schema.properties.iter().flat_map(|(name, property)| {
            let maps = property.unions.iter().filter(|declared| declared.value.is_object());
            maps.map(move |declared| (Some(name), declared))
        });
        let mut all: Vec<_> = own.chain(of_properties).collect();
        all.sort_by(|(_, one), (_, other)| (one.source, &one.origin).cmp(&(other.source, &other.origin)));
        let first = self.unions.len();
        for (discriminator, declared) in all {
            let place = discriminator.map_or_else(|| at.place.clone(), |name| at.place.property(name));
            let parsed = match Extension::parse(&declared.value) {
                Ok(parsed) => parsed,
                Err(error) => {
                    self.fault(&place, declared, PlaceFaultKind::Malformed(error.to_string()));
                    continue;
                }
            };
            let checks: Vec<_> = match (parsed, discriminator) {
                (Extension::List(unions), _) if unions.is_empty() => vec![Err(vec![PlaceFaultKind::NoMembers])],
                (Extension::List(unions), _) => unions
                    .into_iter()
                    .map(|union| match union {
                        Ok(union) => check::list(&union, schema),
                        Err(error) => Err(vec![PlaceFaultKind::Malformed(error.to_string())]),
                    })
                    .collect(),
                (Extension::Map(union), Some(name)) => vec![check::map(&union, name, schema)],
                (Extension::Map(_), None) => vec![Err(vec![PlaceFaultKind::NotAProperty])],
            };
            for checked in checks {
                let checked = checked.and_then(|checked| check::published(checked, declared.source, schema));
                let taken = checked.and_then(|checked| check::free(&checked, roles).map(|()| checked));
                match taken {
                    Ok(checked) => {
                        let number = u8::try_from(self.unions.len().saturating_sub(first));
                        let Ok(number) = number else {
                            self.fault(&place, declared, PlaceFaultKind::TooManyUnions);
                            continue;
                        };
                        self.warn(&checked, schema, &place, declared, at);
                        checked.claim(number, roles);
                        self.unions.push(checked.into_union(at.place.to_string(), declared));
                    }
                    Err(kinds) => kinds.into_iter().for_each(|kind| self.fault(&place, declared, kind)),
                }
            }
        }
    }

    /// What is valid and will surprise.
    fn warn(&mut self, checked: &Checked, schema: &Schema, place: &Place, declared: &Declared, at: &Surroundings) {
        if let Some(list) = &at.keyless {
            self.fault(place, declared, PlaceFaultKind::InsideKeylessList(list.to_string()));
        }
        let Some((name, discriminator)) = checked.discriminator_in(schema) else { return };
        if discriminator.default != DefaultValue::Absent {
            self.fault(place, declared, PlaceFaultKind::DiscriminatorHasDefault(name.into()));
        }
        if discriminator.values.is_none() {
            self.fault(place, declared, PlaceFaultKind::DiscriminatorWithoutEnum(name.into()));
        }
    }

    /// The 2022 form stands on a property; the items of a list and the values of a map have nothing beside them.
    fn refuse_outside_properties(&mut self, schema: &Schema, place: &Place) {
        for declared in schema.unions.iter().filter(|declared| declared.value.is_object()) {
            self.fault(place, declared, PlaceFaultKind::NotAProperty);
        }
    }

    fn report_unreachable(&mut self, schema: &Schema, place: &Place) {
        schema.walk(&mut |inside, node| {
            let place = inside.steps().iter().fold(place.clone(), |at, step| at.then(step.clone()));
            for declared in &node.unions {
                self.fault(&place, declared, PlaceFaultKind::InsideEmbeddedResource);
            }
        });
    }
}

fn bystander<'f>(fields: &'f mut BTreeMap<Box<str>, FieldNode>, name: &str) -> &'f mut FieldNode {
    let new = || FieldNode { name: name.into(), role: Role::Bystander, key: None, child: None };
    fields.entry(name.into()).or_insert_with(new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_plan_holds_nothing_but_the_ways_to_unions() {
        let union = json!({"type": "object", "properties": {"a": {"type": "object"}, "b": {"type": "object"}, "c": {}},
            "x-kubernetes-unions": [{"fields-to-discriminateBy": {"a": "A", "b": "B"}}]});
        let schema: Schema = serde_json::from_value(json!({"type": "object", "properties": {
            "metadata": {"type": "object"},
            "spec": {"type": "object", "properties": {"x": {"type": "object", "properties": {"y": {"type": "string"}}},
                "list": {"type": "array", "items": union}}},
            "status": union}}))
        .unwrap();
        let Compiled { plan, faults } = compile(&schema, true);
        let places: Vec<_> = plan.unions().iter().map(Union::path).collect();
        assert_eq!(places, ["spec.list[*]", "status"]);
        let names: Vec<Vec<&str>> = plan
            .nodes
            .iter()
            .filter_map(|node| match node {
                Node::Object(node) => Some(node.fields.iter().map(|field| &*field.name).collect()),
                Node::List(_) | Node::Map(_) => None,
            })
            .collect();
        assert_eq!(names, [vec!["a", "b"], vec!["list"], vec!["spec"], vec!["a", "b"], vec!["status"]]);
        assert_eq!(faults.len(), 1, "a keyless list is worth a warning: {faults:?}");
    }

    #[test]
    fn a_schema_without_unions_has_an_empty_plan() {
        let schema: Schema =
            serde_json::from_value(json!({"type": "object", "properties": {"spec": {"type": "object"}}})).unwrap();
        let plan = compile(&schema, true).plan;
        assert!(plan.nodes.is_empty() && plan.unions().is_empty());
    }
}
