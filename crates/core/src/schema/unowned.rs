//! The values of a field that no field manager owns: server-side apply leaves no trace of them in `metadata.managedFields`.

use super::Schema;
use crate::json::{TextReader, Unreadable};
use crate::meter::Unmetered;
use std::collections::BTreeMap;

/// The value of a field that nobody can own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unowned {
    /// An empty list, of which field managers own each item and not the list.
    EmptyList,
    /// An object with one of these fields or more and no other, each of which has such a value.
    Object(BTreeMap<Box<str>, Unowned>),
}

impl Unowned {
    /// Returns the value of a field with this schema that nobody can own. `None`: each has an owner.
    pub(crate) fn of(schema: &Schema) -> Option<Self> {
        if schema.has_owned_items() {
            return Some(Self::EmptyList);
        }
        if schema.untyped || !schema.is_object() || schema.is_atomic() {
            return None;
        }
        // The API server drops the empty lists of an object's metadata.
        let fields = schema.properties.iter().filter(|(name, _)| &***name != "metadata");
        let fields: BTreeMap<_, _> =
            fields.filter_map(|(name, property)| Some((name.clone(), Self::of(property)?))).collect();
        (!fields.is_empty()).then_some(Self::Object(fields))
    }

    /// Returns true for the text of a JSON value that nobody can own. Reads as far as the first field with an owner.
    pub(crate) fn is(&self, text: &str) -> bool {
        let mut reader = TextReader::new(text, &Unmetered);
        self.reads(&mut reader).unwrap_or(false)
    }

    fn reads(&self, reader: &mut TextReader<'_>) -> Result<bool, Unreadable> {
        match (self, reader.peek()?) {
            (Self::EmptyList, b'[') => {
                let mut items = reader.enter();
                Ok(!reader.item(&mut items)?)
            }
            (Self::Object(known), b'{') => {
                let mut fields = reader.enter();
                let mut any = false;
                while let Some(name) = reader.name(&mut fields)? {
                    let Some(field) = reader.unicode(name, |name| known.get(name))? else { return Ok(false) };
                    if !field.reads(reader)? {
                        return Ok(false);
                    }
                    any = true;
                }
                Ok(any)
            }
            _ => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Unowned;
    use crate::schema::Schema;
    use serde_json::json;

    #[test]
    fn nobody_owns_an_empty_list_of_owned_items_nor_an_object_with_nothing_but_such_lists() {
        let set = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
        let schema: Schema = serde_json::from_value(json!({"type": "object", "properties": {
            "set": set, "text": {"type": "string"}, "list": {"type": "array", "items": {"type": "string"}},
            "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"set": set}}},
            "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"set": set}},
            "claim": {"type": "object", "properties": {"metadata": {"type": "object", "properties": {"finalizers": set}}}},
            "in": {"type": "object", "properties": {"set": set, "text": {"type": "string"}}}}}))
        .unwrap();
        let unowned = Unowned::of(&schema).unwrap();
        let inside = Unowned::Object([("set".into(), Unowned::EmptyList)].into());
        assert_eq!(unowned, Unowned::Object([("set".into(), Unowned::EmptyList), ("in".into(), inside)].into()));
        for text in [r#"{"set":[]}"#, r#"{ "in" : { "set" : [ ] } }"#, r#"{"in":{"s\u0065t":[]},"set":[]}"#] {
            assert!(unowned.is(text), "{text}");
        }
        for text in [
            "{}",
            "[]",
            "null",
            "true",
            r#"{"set":null}"#,
            r#"{"set":["x"]}"#,
            r#"{"set":{}}"#,
            r#"{"list":[]}"#,
            r#"{"in":{}}"#,
            r#"{"in":{"text":"","set":[]}}"#,
            r#"{"set":[],"x":[]}"#,
            r#"{"map":{"a":{"set":[]}}}"#,
            r#"{"whole":{"set":[]}}"#,
            r#"{"set":[]"#,
            r#"{"\ud800":[]}"#,
        ] {
            assert!(!unowned.is(text), "{text}");
        }
        for name in ["text", "list", "map", "whole", "claim"] {
            assert_eq!(Unowned::of(&schema.properties[name]), None, "{name}");
        }
    }
}
