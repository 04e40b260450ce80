//! A node of a structural schema, as JSON.

use kube_unions_core::schema::PlaceStep;
use serde_json::{Map, Value};

/// A node of a structural schema. Anything that is not an object has no keywords.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SchemaNode<'s>(pub(crate) &'s Value);

impl<'s> SchemaNode<'s> {
    pub(crate) fn get(self, keyword: &str) -> Option<&'s Value> {
        self.0.get(keyword)
    }

    fn object(self, keyword: &str) -> Option<&'s Map<String, Value>> {
        self.get(keyword).and_then(Value::as_object)
    }

    pub(crate) fn list(self, keyword: &str) -> &'s [Value] {
        self.get(keyword).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn text(self, keyword: &str) -> Option<&'s str> {
        self.get(keyword).and_then(Value::as_str)
    }

    pub(crate) fn flag(self, keyword: &str) -> bool {
        self.get(keyword).and_then(Value::as_bool).unwrap_or(false)
    }

    pub(crate) fn type_name(self) -> Option<&'s str> {
        self.text("type")
    }

    pub(crate) fn properties(self) -> impl Iterator<Item = (&'s str, SchemaNode<'s>)> {
        self.object("properties").into_iter().flatten().map(|(name, node)| (name.as_str(), SchemaNode(node)))
    }

    pub(crate) fn property(self, name: &str) -> Option<SchemaNode<'s>> {
        self.object("properties").and_then(|properties| properties.get(name)).map(SchemaNode)
    }

    /// Returns true for an object with named fields, whose names CEL escapes.
    pub(crate) fn has_properties(self) -> bool {
        self.get("properties").is_some()
    }

    pub(crate) fn map_values(self) -> Option<SchemaNode<'s>> {
        self.get("additionalProperties").filter(|values| values.is_object()).map(SchemaNode)
    }

    /// Returns the schema of a field of an object, or of a value of a map.
    pub(crate) fn field(self, name: &str) -> Option<SchemaNode<'s>> {
        self.property(name).or(self.map_values())
    }

    /// Returns true for a list or a map, whose contents may be merged with those of another one.
    pub(crate) fn is_collection(self) -> bool {
        self.type_name() == Some("array") || self.map_values().is_some()
    }

    pub(crate) fn items(self) -> Option<SchemaNode<'s>> {
        self.get("items").map(SchemaNode)
    }

    pub(crate) fn below(self, step: &PlaceStep) -> Option<SchemaNode<'s>> {
        match step {
            PlaceStep::Property(name) => self.property(name),
            PlaceStep::Items => self.items(),
            PlaceStep::Values => self.map_values(),
        }
    }

    pub(crate) fn required(self) -> impl Iterator<Item = &'s str> {
        self.list("required").iter().filter_map(Value::as_str)
    }

    pub(crate) fn requires(self, name: &str) -> bool {
        self.required().any(|required| required == name)
    }

    pub(crate) fn default(self) -> Option<&'s Value> {
        self.get("default").filter(|default| !default.is_null())
    }

    /// Returns true if every valid object has the field.
    pub(crate) fn always_has(self, name: &str) -> bool {
        self.requires(name) || self.property(name).is_some_and(|field| field.default().is_some())
    }

    /// Returns the greatest number of fields that a valid object has, if the schema bounds it.
    pub(crate) fn most_properties(self) -> Option<usize> {
        let parts = self.list("allOf").iter().map(SchemaNode);
        let bounds = [self].into_iter().chain(parts).filter_map(|node| node.get("maxProperties")?.as_u64());
        bounds.min().and_then(|most| usize::try_from(most).ok())
    }

    /// Returns true if a valid object can have no other field than this one.
    pub(crate) fn is_only_field(self, name: &str) -> bool {
        !self.is_open() && self.properties().map(|(name, _)| name).eq([name])
    }

    /// Returns each `enum`, with its position in `allOf`, where controller-gen puts those of a field and of its type.
    pub(crate) fn enums(self) -> impl Iterator<Item = (Option<usize>, &'s Value)> {
        let parts = self.list("allOf").iter().enumerate().map(|(part, node)| (Some(part), SchemaNode(node)));
        [(None, self)].into_iter().chain(parts).filter_map(|(part, node)| Some((part, node.get("enum")?)))
    }

    /// Returns the values that each `enum` has. `None` without an enum.
    pub(crate) fn values(self) -> Option<Vec<&'s Value>> {
        let mut lists = self.enums().filter_map(|(_, values)| values.as_array());
        let first: Vec<&Value> = lists.next()?.iter().collect();
        Some(lists.fold(first, |values, list| values.into_iter().filter(|value| list.contains(value)).collect()))
    }

    /// Returns true if the description says, as Go's does, that the field is deprecated.
    pub(crate) fn is_deprecated(self) -> bool {
        self.text("description").is_some_and(|text| text.contains("Deprecated:"))
    }

    pub(crate) fn may_discriminate(self) -> bool {
        !self.discriminator_values().is_empty()
    }

    /// Returns the values that the field has as a discriminator.
    pub(crate) fn discriminator_values(self) -> Vec<String> {
        match self.type_name() {
            Some("string") => {
                let values = self.values().into_iter().flatten();
                values.filter_map(Value::as_str).map(str::to_owned).collect()
            }
            Some("boolean") => ["false", "true"].map(str::to_owned).to_vec(),
            _ => Vec::new(),
        }
    }

    /// Returns the value of the field that a value of the discriminator stands for.
    pub(crate) fn discriminator_value(self, value: &str) -> Value {
        match (self.type_name(), value) {
            (Some("boolean"), "true") => Value::Bool(true),
            (Some("boolean"), "false") => Value::Bool(false),
            _ => Value::String(value.to_owned()),
        }
    }

    /// Returns true if the object may have fields that the schema does not name.
    pub(crate) fn is_open(self) -> bool {
        self.flag("x-kubernetes-preserve-unknown-fields") || self.flag("x-kubernetes-embedded-resource")
    }
}
