//! What a plan needs to know of one object, read from its JSON text in one pass.
//!
//! Only what the plan names is built: which members are set, discriminators, list and map keys. Everything else is skipped
//! as bytes, so that its depth and size cost a scan and no memory.

use super::MemberSet;
use super::plan::{Node, NodeId, ObjectNode, Part, Plan, Role};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// The unions of one object as they stand.
#[derive(Debug, Default)]
pub struct Projection<'a> {
    pub(super) root: Shape<'a>,
}

impl Projection<'_> {
    /// Whether the object was a JSON object at all.
    pub fn is_object(&self) -> bool {
        matches!(self.root, Shape::Object(_))
    }

    /// Whether it was missing or `null`.
    pub fn is_null(&self) -> bool {
        matches!(self.root, Shape::Null)
    }
}

/// What stands at a place that the plan names.
#[derive(Debug, Default)]
pub(super) enum Shape<'a> {
    /// Missing or null.
    #[default]
    Null,
    /// A value of a type that the plan does not expect there: left to the schema's own validation.
    Other,
    Object(ObjectShape<'a>),
    /// Every item, whatever its type: lists keep their positions.
    List(Vec<Shape<'a>>),
    /// The entries, sorted by key.
    Map(Vec<(Cow<'a, str>, Shape<'a>)>),
}

#[derive(Debug, Default)]
pub(super) struct ObjectShape<'a> {
    /// One for each union of the object.
    pub(super) states: Vec<State<'a>>,
    /// What stands in fields that lead further, by the field's position in its node, sorted.
    pub(super) children: Vec<(usize, Shape<'a>)>,
    /// The keys of the list this object is an item of.
    pub(super) keys: Vec<Scalar<'a>>,
}

/// One union of one object: what its discriminator says and which members are set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct State<'a> {
    pub(super) discriminator: Scalar<'a>,
    pub(super) members: MemberSet,
}

/// A value that is read as a discriminator or as a list key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) enum Scalar<'a> {
    /// Missing or null.
    #[default]
    Absent,
    Text(Cow<'a, str>),
    /// A number or boolean, as it is written.
    Literal(&'a str),
    /// A list or a map: no discriminator and no key.
    Unfit,
}

impl State<'_> {
    /// The discriminator's value: the string, or the empty string when it is missing, null or not a string.
    pub(super) fn value(&self) -> &str {
        match &self.discriminator {
            Scalar::Text(value) => value,
            Scalar::Absent | Scalar::Literal(_) | Scalar::Unfit => "",
        }
    }

    /// Whether something other than a string stands where the discriminator belongs.
    pub(super) fn is_wrong_type(&self) -> bool {
        matches!(self.discriminator, Scalar::Literal(_) | Scalar::Unfit)
    }

    /// The same choice: neither the discriminator's value nor which members are set differs.
    pub(super) fn same_choice(&self, other: &State<'_>) -> bool {
        self.members == other.members && self.value() == other.value()
    }
}

/// Reads a [`Projection`] from any place in a JSON text.
#[derive(Debug, Clone, Copy)]
pub struct ProjectionSeed<'p> {
    plan: &'p Plan,
    part: Part,
}

impl<'p> ProjectionSeed<'p> {
    /// Reads what `plan` names of one part of an object.
    pub fn new(plan: &'p Plan, part: Part) -> Self {
        Self { plan, part }
    }
}

impl<'de> DeserializeSeed<'de> for ProjectionSeed<'_> {
    type Value = Projection<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let node = self.plan.root(self.part).and_then(|id| self.plan.node(id));
        let root = ShapeSeed { plan: self.plan, node }.deserialize(deserializer)?;
        Ok(Projection { root })
    }
}

/// Reads what stands at one node of the plan. Recursion is bounded by the plan's depth, never by the text's.
#[derive(Clone, Copy)]
struct ShapeSeed<'p> {
    plan: &'p Plan,
    /// `None` where the plan names nothing: whether it is an object is all that counts.
    node: Option<&'p Node>,
}

impl<'de> DeserializeSeed<'de> for ShapeSeed<'_> {
    type Value = Shape<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ShapeSeed<'_> {
    type Value = Shape<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Shape::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Shape::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Shape::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Shape::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Shape::Other)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(Shape::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let Some(Node::List(node)) = self.node else {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(Shape::Other);
        };
        let items = ShapeSeed { plan: self.plan, node: self.plan.node(node.items) };
        let mut shapes = Vec::new();
        while let Some(shape) = list.next_element_seed(items)? {
            shapes.push(shape);
        }
        Ok(Shape::List(shapes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        match self.node {
            Some(Node::Object(node)) => self.read_object(node, map).map(Shape::Object),
            Some(Node::Map(values)) => self.read_map(*values, map).map(Shape::Map),
            other => {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(if other.is_none() { Shape::Object(ObjectShape::default()) } else { Shape::Other })
            }
        }
    }
}

impl ShapeSeed<'_> {
    fn read_object<'de, A: MapAccess<'de>>(self, node: &ObjectNode, mut map: A) -> Result<ObjectShape<'de>, A::Error> {
        let mut object = ObjectShape {
            states: vec![State::default(); usize::from(node.union_count)],
            children: Vec::new(),
            keys: vec![Scalar::Absent; usize::from(node.key_count)],
        };
        while let Some(position) = map.next_key_seed(FieldSeed(node))? {
            let Some((position, field)) = position.and_then(|at| node.fields.get(at).map(|field| (at, field))) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let present = if let Some(child) = field.child {
                let shape = map.next_value_seed(ShapeSeed { plan: self.plan, node: self.plan.node(child) })?;
                let present = !matches!(shape, Shape::Null);
                object.put_child(position, shape);
                present
            } else if field.key.is_none() && matches!(field.role, Role::Member { .. }) {
                map.next_value::<Option<IgnoredAny>>()?.is_some()
            } else {
                let scalar = Scalar::read(map.next_value::<&RawValue>()?);
                if let Some(key) = field.key.and_then(|key| object.keys.get_mut(usize::from(key))) {
                    key.clone_from(&scalar);
                }
                let present = scalar != Scalar::Absent;
                if let Role::Discriminator { union } = field.role
                    && let Some(state) = object.states.get_mut(usize::from(union))
                {
                    state.discriminator = scalar;
                }
                present
            };
            if let Role::Member { union, index } = field.role
                && let Some(state) = object.states.get_mut(usize::from(union))
            {
                state.members.put(index, present);
            }
        }
        object.children.sort_unstable_by_key(|(position, _)| *position);
        Ok(object)
    }

    fn read_map<'de, A: MapAccess<'de>>(
        self,
        values: NodeId,
        mut map: A,
    ) -> Result<Vec<(Cow<'de, str>, Shape<'de>)>, A::Error> {
        let seed = ShapeSeed { plan: self.plan, node: self.plan.node(values) };
        let mut entries: Vec<(Cow<'de, str>, Shape<'de>)> = Vec::new();
        while let Some(key) = map.next_key_seed(TextSeed)? {
            entries.push((key, map.next_value_seed(seed)?));
        }
        // Reversed first: the sort is stable, so that of equal keys the one read last comes first and is kept.
        entries.reverse();
        entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        entries.dedup_by(|(next, _), (kept, _)| next == kept);
        Ok(entries)
    }
}

impl<'a> ObjectShape<'a> {
    /// Of a field that stands twice, the last one counts, as it does for the API server.
    fn put_child(&mut self, position: usize, shape: Shape<'a>) {
        match self.children.iter_mut().find(|(known, _)| *known == position) {
            Some((_, kept)) => *kept = shape,
            None => self.children.push((position, shape)),
        }
    }
}

/// Reads the name of a field as bytes, which need not be Unicode, and looks it up.
struct FieldSeed<'p>(&'p ObjectNode);

impl<'de> DeserializeSeed<'de> for FieldSeed<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_bytes(self)
    }
}

impl Visitor<'_> for FieldSeed<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_bytes<E>(self, name: &[u8]) -> Result<Self::Value, E> {
        Ok(self.0.position(name))
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.position(name.as_bytes()))
    }
}

/// Reads a string, borrowed where it has no escapes.
struct TextSeed;

impl<'de> DeserializeSeed<'de> for TextSeed {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for TextSeed {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

impl<'a> Scalar<'a> {
    fn read(raw: &'a RawValue) -> Self {
        let text = raw.get();
        match text.as_bytes().first() {
            Some(b'"') => {
                let mut string = serde_json::Deserializer::from_str(text);
                // With lone surrogates it is not Unicode: it stands for itself as it is written, quotes included, and so
                // for a value that nobody declared.
                Self::Text(TextSeed.deserialize(&mut string).unwrap_or(Cow::Borrowed(text)))
            }
            Some(b'[' | b'{') => Self::Unfit,
            _ if text == "null" => Self::Absent,
            _ => Self::Literal(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schema;
    use serde_json::json;

    fn plan() -> Plan {
        let schema: Schema = serde_json::from_value(json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"type": {"type": "string"}, "a": {"type": "object"}, "b": {"type": "object"}},
                "x-kubernetes-unions": [{"discriminator": "type", "fields-to-discriminateBy": {"a": "A", "b": "B"}}]}}}))
        .unwrap();
        super::super::compile(&schema, false).plan
    }

    fn spec_of(text: &str) -> Option<(String, Vec<u8>)> {
        let plan = plan();
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let projection = ProjectionSeed::new(&plan, Part::Main).deserialize(&mut deserializer).unwrap();
        let Shape::Object(root) = projection.root else { return None };
        let Some((_, Shape::Object(spec))) = root.children.into_iter().next() else { return None };
        let state = &spec.states[0];
        Some((state.value().to_owned(), state.members.iter().collect()))
    }

    #[test]
    fn reads_presence_and_discriminator_and_nothing_else() {
        assert_eq!(spec_of(r#"{"x": [1], "spec": {"type": "A", "a": 0, "b": null}}"#), Some(("A".into(), vec![0])));
        assert_eq!(spec_of(r#"{"spec": {"type": 5, "b": ""}}"#), Some((String::new(), vec![1])));
        assert_eq!(spec_of(r#"{"spec": {"\u0061": {}, "t\u0079pe": "\u0041"}}"#), Some(("A".into(), vec![0])));
        assert_eq!(spec_of(r#"{"spec": null}"#), None);
        assert_eq!(spec_of(r#"{"spec": [1, {"a": 1}]}"#), None);
    }

    #[test]
    fn of_a_field_that_stands_twice_the_last_counts() {
        assert_eq!(spec_of(r#"{"spec": {"a": 1, "a": null, "b": null, "b": 1}}"#), Some((String::new(), vec![1])));
        assert_eq!(spec_of(r#"{"spec": {"a": 1}, "spec": {"b": 1}}"#), Some((String::new(), vec![1])));
    }

    #[test]
    fn what_is_skipped_may_be_of_any_depth_and_any_size() {
        let deep = "[".repeat(9000) + &"]".repeat(9000);
        let text = format!(r#"{{"spec": {{"a": {deep}, "x": 123456789012345678901234567890}}}}"#);
        assert_eq!(spec_of(&text), Some((String::new(), vec![0])));
        let lone = r#"{"spec": {"\ud800": 1, "a": "\ud800", "type": "\ud800"}}"#;
        assert_eq!(spec_of(lone), Some((r#""\ud800""#.to_owned(), vec![0])));
    }
}
