//! The places of a plan, as data for compilers to other languages.

use super::Union;
use super::plan::{KnownFields, Node, NodeIndex, ObjectNode, Part, Plan};

/// An object in a kind that has unions, with the steps from the root to it.
#[derive(Debug, Clone)]
pub struct UnionPlace<'p> {
    /// The steps from the root of the object, outermost first. Empty for the root itself.
    pub steps: Vec<UnionStep<'p>>,
    /// The unions of the object, in the order of declaration. Never empty.
    pub unions: &'p [Union],
    /// True if the schema describes the object and everything around it, so that their types are known. Otherwise any value may stand
    /// there, or null for a list or an item.
    pub typed: bool,
    /// True if null may stand where the object is.
    pub nullable: bool,
    /// True if the schema names fields of the object that are of no union and do not identify it in its list.
    pub has_others: bool,
    /// The number of steps to the outermost object, list or map around the unions that field managers own as a whole
    /// (`x-kubernetes-map-type: atomic`, `x-kubernetes-list-type: atomic`), the object of the unions included. `None`: there is none.
    pub owned_at: Option<usize>,
}

/// One step of a [`UnionPlace`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnionStep<'p> {
    /// A named field of an object.
    Field(&'p str),
    /// The items of a list. Items with the same values of `keys` are the same item; without keys, items have no identity.
    Items {
        /// The fields that identify an item together, in the order of the schema.
        keys: Vec<ItemKey<'p>>,
    },
    /// The values of a map.
    Values,
}

/// A field that identifies the items of a list, alone or together with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemKey<'p> {
    /// The name of the field.
    pub name: &'p str,
    /// True if the schema says that its value is a string.
    pub is_string: bool,
}

/// The gaps of the schema on the way to a place.
#[derive(Debug, Clone, Copy, Default)]
struct Way {
    /// It does not describe a node.
    untyped: bool,
    /// A node may be null.
    nullable: bool,
    /// The number of steps to the first node that is owned as a whole.
    owned_at: Option<usize>,
}

impl Way {
    /// Returns the way through a list or a map at the end of `steps`.
    fn through(self, nullable: bool, atomic: bool, steps: usize) -> Self {
        Self { nullable: self.nullable || nullable, owned_at: self.owned_at.or(atomic.then_some(steps)), ..self }
    }
}

impl UnionPlace<'_> {
    /// Returns true if the places are the same and have the same unions.
    pub fn are_alike(ones: &[Self], others: &[Self]) -> bool {
        let is_alike =
            |(one, other): (&Self, &Self)| one.steps == other.steps && have_same_unions(one.unions, other.unions);
        ones.len() == others.len() && ones.iter().zip(others).all(is_alike)
    }
}

/// Returns true if two places have the same unions, whoever declares them.
pub fn have_same_unions(ones: &[Union], others: &[Union]) -> bool {
    ones.len() == others.len() && ones.iter().zip(others).all(|(one, other)| is_same_union(one, other))
}

/// Returns true if two unions of the same place say the same, whoever declares them.
fn is_same_union(one: &Union, other: &Union) -> bool {
    one.form() == other.form()
        && one.discriminator() == other.discriminator()
        && one.members().eq(other.members())
        && one.empty_is_unset().eq(other.empty_is_unset())
        && one.nullable_members().eq(other.nullable_members())
        && one.ownerless().eq(other.ownerless())
        && one.choices().iter().eq(other.choices())
        && one.is_boolean() == other.is_boolean()
        && one.has_nullable_discriminator() == other.has_nullable_discriminator()
        && one.is_required() == other.is_required()
        && one.actions() == other.actions()
        && one.normalization() == other.normalization()
}

impl Plan {
    /// Returns true if the other plan has the same unions at the same places.
    pub(crate) fn has_same_unions(&self, other: &Self) -> bool {
        let are_alike = |part| UnionPlace::are_alike(&self.places(part), &other.places(part));
        [Part::Main, Part::Status].into_iter().all(are_alike)
    }

    /// Returns every place of a part that has unions, in the order of paths.
    pub fn places(&self, part: Part) -> Vec<UnionPlace<'_>> {
        let mut found = Vec::new();
        if let Some(root) = self.root(part) {
            self.collect(root, Way::default(), &mut Vec::new(), &mut found);
        }
        found
    }

    fn collect<'p>(
        &'p self,
        node: NodeIndex,
        way: Way,
        steps: &mut Vec<UnionStep<'p>>,
        found: &mut Vec<UnionPlace<'p>>,
    ) {
        match self.node(node) {
            Some(Node::Object(object)) => {
                let unions = self.unions_of(object);
                let way = way.through(object.nullable, object.atomic, steps.len());
                let way = Way { untyped: way.untyped || object.known == KnownFields::Nothing, ..way };
                if !unions.is_empty() {
                    // Members that a declaration names are untyped although their object is not.
                    let typed = !way.untyped && unions.iter().all(Union::is_typed);
                    let in_collection = steps.iter().any(|step| !matches!(step, UnionStep::Field(_)));
                    // Null may stand for a list, or for an item.
                    let typed = typed && !(in_collection && way.nullable);
                    let (nullable, has_others) = (object.nullable, object.known != KnownFields::Unions);
                    let owned_at = way.owned_at;
                    found.push(UnionPlace { steps: steps.clone(), unions, typed, nullable, has_others, owned_at });
                }
                for field in &object.fields {
                    if let Some(child) = field.child {
                        steps.push(UnionStep::Field(&field.name));
                        self.collect(child, way, steps, found);
                        steps.pop();
                    }
                }
            }
            Some(Node::List(list)) => {
                let keys = match self.node(list.items) {
                    Some(Node::Object(item)) if list.keyed => item.keys(),
                    _ => Vec::new(),
                };
                let way = way.through(list.nullable, list.atomic, steps.len());
                steps.push(UnionStep::Items { keys });
                self.collect(list.items, way, steps, found);
                steps.pop();
            }
            Some(Node::Map(map)) => {
                let way = way.through(map.nullable, map.atomic, steps.len());
                steps.push(UnionStep::Values);
                self.collect(map.values, way, steps, found);
                steps.pop();
            }
            None => {}
        }
    }
}

impl ObjectNode {
    /// Returns the fields that identify the object in its list, in the order of the schema.
    fn keys(&self) -> Vec<ItemKey<'_>> {
        let fields = self.fields.iter();
        let mut keys: Vec<_> = fields
            .filter_map(|field| Some((field.key?, ItemKey { name: &field.name, is_string: field.is_string })))
            .collect();
        keys.sort_unstable();
        keys.into_iter().map(|(_, key)| key).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::UnionStep::{Field, Items, Values};
    use super::*;
    use crate::schema::Schema;
    use serde_json::json;

    #[test]
    fn places_are_listed_by_path_with_the_keys_of_their_lists() {
        let union = json!({"type": "object", "properties": {"k": {"type": "string"}, "j": {"type": "string"},
            "a": {"type": "object"}, "b": {"type": "object"}}, "x-kubernetes-unions": [{"fields-to-discriminateBy": {"a": "A", "b": "B"}}]});
        let schema: Schema = serde_json::from_value(json!({"type": "object", "properties": {
            "keyed": {"type": "array", "items": union, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "j"]},
            "atomic": {"type": "array", "items": union},
            "values": {"type": "object", "additionalProperties": union},
            "status": {"type": "object", "properties": {"s": union}}}}))
        .unwrap();
        let plan = crate::union::compile(&schema, true).plan;
        let steps = |part| plan.places(part).into_iter().map(|place| place.steps).collect::<Vec<_>>();
        assert_eq!(
            steps(Part::Main),
            [
                vec![Field("atomic"), Items { keys: vec![] }],
                vec![Field("keyed"), Items { keys: ["k", "j"].map(|name| ItemKey { name, is_string: true }).into() }],
                vec![Field("values"), Values],
            ]
        );
        assert_eq!(steps(Part::Status), [vec![Field("status"), Field("s")]]);
        assert_eq!(plan.places(Part::Status)[0].unions.len(), 1);
    }
}
