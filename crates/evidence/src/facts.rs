//! The facts about a partly known object: which fields are set, and some values.

use crate::node::SchemaNode;
use kube_unions_core::schema::PlaceStep;
use kube_unions_core::schema::cel_name::unescape;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// An object with some known fields.
#[derive(Debug)]
pub(crate) struct PartialObject<'s> {
    pub(crate) node: SchemaNode<'s>,
    pub(crate) fields: BTreeMap<Cow<'s, str>, KnownField<'s>>,
}

/// The knowledge of the content of a value that is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// Nothing is known.
    Any,
    /// It is not `false`, `0`, `""`, `{}` or `[]`.
    NotEmpty,
}

#[derive(Debug)]
pub(crate) enum KnownField<'s> {
    Absent,
    /// The field is set, and more is known of its content only if it is not empty.
    Present(Content),
    Value(Value),
    /// The field is an object with some known fields.
    Object(Box<PartialObject<'s>>),
    /// The field is a list or a map with one known item.
    Around(Box<Around<'s>>),
}

/// A list or a map with one known item. Nothing else is known.
#[derive(Debug)]
pub(crate) struct Around<'s> {
    pub(crate) node: SchemaNode<'s>,
    pub(crate) item: KnownField<'s>,
    /// False for a map.
    pub(crate) is_list: bool,
}

/// The knowledge of a value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fact<'f, 's> {
    Absent,
    /// The whole value is known.
    Value(&'f Value, Option<SchemaNode<'s>>),
    /// Some fields of the object are known.
    Object(&'f PartialObject<'s>),
    /// One item of the list or map is known.
    Around(&'f Around<'s>),
    /// The value is set, and more is known of its content only if it is not empty.
    Present(Option<SchemaNode<'s>>, Content),
    /// It is not known if the value is set.
    Maybe(Option<SchemaNode<'s>>),
    /// The schema does not have the field, so the API server would refuse the rule.
    Nowhere,
}

/// The knowledge of the value at the end of a path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reached<'f, 's> {
    pub(crate) fact: Fact<'f, 's>,
    /// True if a field before the last one may not be set.
    pub(crate) parent_maybe: bool,
    /// True if a field before the last one is not set.
    pub(crate) parent_absent: bool,
}

impl<'f, 's> Fact<'f, 's> {
    /// Follows a path of names as CEL writes them.
    pub(crate) fn follow(self, path: &[&str]) -> Reached<'f, 's> {
        let mut reached = Reached { fact: self, parent_maybe: false, parent_absent: false };
        for name in path {
            match reached.fact {
                Fact::Absent => reached.parent_absent = true,
                Fact::Maybe(_) => reached.parent_maybe = true,
                Fact::Value(..) | Fact::Object(_) | Fact::Around(_) | Fact::Present(..) | Fact::Nowhere => {}
            }
            reached.fact = reached.fact.field(name);
        }
        reached
    }

    /// Returns the knowledge of a field, named as in CEL.
    fn field(self, name: &str) -> Self {
        if !self.node().is_some_and(SchemaNode::has_properties) {
            return self.plain_field(name);
        }
        let fact = unescape(name).map_or(Self::Nowhere, |plain| self.plain_field(&plain));
        // CEL has no null in an object with named fields: the field counts as missing.
        if matches!(fact, Self::Value(Value::Null, _)) { Self::Absent } else { fact }
    }

    pub(crate) fn plain_field(self, name: &str) -> Self {
        let node = self.node();
        let below = node.and_then(|node| node.field(name));
        let is_known = matches!(self, Self::Value(value, _) if value.get(name).is_some());
        if let Some(node) = node
            && !is_known
            && below.is_none()
            && !node.is_open()
            && (node.has_properties() || node.get("additionalProperties").is_none())
        {
            return Self::Nowhere;
        }
        match self {
            Self::Absent => Self::Absent,
            Self::Nowhere => Self::Nowhere,
            Self::Present(Some(node), content)
                if node.always_has(name) || (content == Content::NotEmpty && node.is_only_field(name)) =>
            {
                Self::Present(below, Content::Any)
            }
            Self::Maybe(_) | Self::Present(..) | Self::Around(_) => Self::Maybe(below),
            Self::Value(value, _) => value.get(name).map_or(Self::Absent, |value| Self::Value(value, below)),
            Self::Object(object) => match object.fields.get(name) {
                Some(field) => field.fact(below),
                None if object.node.always_has(name) => Self::Present(below, Content::Any),
                None => Self::Maybe(below),
            },
        }
    }

    /// Returns the knowledge of the value at a step.
    pub(crate) fn below(self, step: &PlaceStep) -> Self {
        match (step, self) {
            (PlaceStep::Property(name), _) => self.plain_field(name),
            (PlaceStep::Items | PlaceStep::Values, Self::Around(around)) => around.item.fact(around.node.below(step)),
            (PlaceStep::Items | PlaceStep::Values, _) => Self::Nowhere,
        }
    }

    pub(crate) fn node(self) -> Option<SchemaNode<'s>> {
        match self {
            Self::Absent | Self::Nowhere => None,
            Self::Value(_, node) | Self::Present(node, _) | Self::Maybe(node) => node,
            Self::Object(object) => Some(object.node),
            Self::Around(around) => Some(around.node),
        }
    }
}

impl<'s> KnownField<'s> {
    /// Returns the knowledge of the field, whose schema is `node`.
    pub(crate) fn fact<'f>(&'f self, node: Option<SchemaNode<'s>>) -> Fact<'f, 's> {
        match self {
            Self::Absent => Fact::Absent,
            Self::Present(content) => Fact::Present(node, *content),
            Self::Value(value) => Fact::Value(value, node),
            Self::Object(object) => Fact::Object(object),
            Self::Around(around) => Fact::Around(around),
        }
    }
}
