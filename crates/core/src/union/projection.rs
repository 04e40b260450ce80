//! Projections: the parts of an object that a plan names, read from its JSON text in one pass.
//!
//! A projection stores which members are set, discriminators, and the keys of lists and maps. Everything else is skipped,
//! so that its depth and size cost a scan and no memory. Memory is charged before it is allocated, and is a small multiple
//! of the text.
//!
//! This module must not judge. `node` reads values, `drafts` stores objects, [`arena`](super::arena) keeps the nodes.

mod drafts;
mod emptiness;
mod node;
mod read;
mod repeats;

pub(crate) use drafts::Projector;
pub use emptiness::is_empty_value;

use super::arena::{Arena, NodeRef};
use crate::json::{TextReader, Unreadable};
use drafts::Slot;
use read::Read;

/// The unions of one object. An [`Arena`] has them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Projected<'a> {
    root: Read,
    metadata: &'a str,
}

impl<'a> Projected<'a> {
    /// Returns true if the value is a JSON object.
    pub(crate) fn is_object(&self) -> bool {
        matches!(self.root, Read::Node { .. })
    }

    /// Returns true if the value is missing or null.
    pub(crate) fn is_null(&self) -> bool {
        matches!(self.root, Read::Null)
    }

    /// Returns the JSON text of `metadata`, empty if there is none.
    pub(crate) fn metadata(&self) -> &'a str {
        self.metadata
    }

    /// Returns the node of the object. The arena is that of its projector.
    pub(crate) fn root<'s>(&self, arena: &'s Arena<'s>) -> Option<NodeRef<'s>> {
        match self.root {
            Read::Node { at, .. } => Some(NodeRef { arena, at }),
            Read::Null | Read::Other { .. } => None,
        }
    }
}

/// The unions of the only object of a text.
#[derive(Debug)]
pub(crate) struct Projection<'a> {
    arena: Arena<'a>,
    object: Projected<'a>,
}

impl Projection<'_> {
    /// Returns true if the value is a JSON object.
    pub(crate) fn is_object(&self) -> bool {
        self.object.is_object()
    }

    pub(crate) fn root(&self) -> Option<NodeRef<'_>> {
        self.object.root(&self.arena)
    }
}

impl<'a> Projector<'_, 'a> {
    /// Reads the next value. Parts that repeat an object that was read before are compared and not read.
    pub(crate) fn object(&mut self, reader: &mut TextReader<'a>) -> Result<Projected<'a>, Unreadable> {
        self.metadata = "";
        self.repeats.begin();
        let node = self.plan.root(self.part).and_then(|id| self.plan.node(id));
        let root = self.value(reader, node, Slot::Root)?;
        Ok(Projected { root, metadata: self.metadata })
    }

    /// Reads the next value.
    pub(crate) fn only(mut self, reader: &mut TextReader<'a>) -> Result<Projection<'a>, Unreadable> {
        let object = self.object(reader)?;
        Ok(Projection { arena: self.arena, object })
    }

    /// Returns the arena of the objects.
    pub(crate) fn finish(self) -> Arena<'a> {
        self.arena
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::{Exhausted, Meter, Unmetered};
    use crate::schema::{Place, Schema, Source};
    use crate::union::plan::{Part, Plan};
    use serde_json::json;

    fn plan() -> Plan {
        let schema: Schema = serde_json::from_value(json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"type": {"type": "string"}, "a": {"type": "object"}, "b": {"type": "object"}},
                "x-kubernetes-unions": [{"discriminator": "type", "fields-to-discriminateBy": {"a": "A", "b": "B"}}]}}}))
        .unwrap();
        super::super::compile(&schema, false).plan
    }

    fn read<'a>(plan: &Plan, text: &'a str, meter: &'a dyn Meter) -> Projection<'a> {
        let mut reader = TextReader::new(text, meter);
        Projector::new(plan, Part::Main, &reader).only(&mut reader).unwrap()
    }

    fn spec_of(text: &str) -> Option<(String, Vec<u8>)> {
        let plan = plan();
        let projection = read(&plan, text, &Unmetered);
        let (_, spec) = projection.root()?.object().children().next()?;
        let state = spec.object().state(0);
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

    #[derive(Debug, Default)]
    struct Counting(std::cell::Cell<usize>);

    impl Meter for Counting {
        fn charge(&self, bytes: usize) -> Result<(), Exhausted> {
            self.0.set(self.0.get() + bytes);
            Ok(())
        }

        fn release(&self, bytes: usize) {
            self.0.set(self.0.get() - bytes);
        }
    }

    #[test]
    fn a_projection_takes_four_and_a_half_bytes_at_most_for_a_byte_of_text() {
        let members: serde_json::Map<_, _> = (0..128).map(|at| (format!("m{at}"), json!({}))).collect();
        let values: serde_json::Map<_, _> = (0..128).map(|at| (format!("m{at}"), json!(format!("M{at}")))).collect();
        let mut union = json!({"type": "object", "properties": members, "x-kubernetes-unions": [
            {"discriminator": "t", "fields-to-discriminateBy": values}]});
        union["properties"]["t"] = json!({"type": "string"});
        union["properties"]["k"] = json!({"type": "string"});
        let mut schema: Schema = serde_json::from_value(json!({"type": "object", "properties": {
            "list": {"type": "array", "items": union},
            "lists": {"type": "array", "items": {"type": "array", "items": union}},
            "map": {"type": "object", "additionalProperties": union},
            "keyed": {"type": "array", "items": union, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}}}))
        .unwrap();
        let plan = super::super::compile(&schema, false).plan;
        for (place, item) in [
            (r#""list":["#, "{}"),
            (r#""list":["#, "0"),
            (r#""list":["#, r#"{"t":0}"#),
            (r#""list":["#, r#"{"m9":1}"#),
            (r#""list":["#, r#"{"m127":1,"m0":1,"m64":1,"m33":1}"#),
            (r#""lists":["#, "[]"),
            (r#""lists":["#, r#"[{"m9":1}]"#),
            (r#""map":{"#, r#""":{}"#),
            (r#""map":{"#, r#""":0"#),
            (r#""map":{"#, r#""a":{"m9":1}"#),
            (r#""keyed":["#, r#"{"k":0}"#),
            (r#""keyed":["#, r#"{"k":"","m9":1}"#),
        ] {
            let close = if place.ends_with('[') { "]" } else { "}" };
            let text = format!("{{{place}{}{close}}}", vec![item; 100_000].join(","));
            let meter = Counting::default();
            let projection = read(&plan, &text, &meter);
            let charged = meter.0.get();
            assert!(2 * charged <= 9 * text.len(), "{item}: {charged} bytes for {}", text.len());
            drop(projection);
            assert_eq!(meter.0.get(), 0, "all of it is released");
        }
        // An item of two bytes is stored if its union is required.
        let required = &mut schema.at_mut(&Place::from_path("list[*]").unwrap()).unwrap().unions[0];
        required.value[0]["required"] = true.into();
        required.source = Source::Annotation;
        let plan = super::super::compile(&schema, false).plan;
        let text = format!("{{\"list\":[{}]}}", vec!["{}"; 100_000].join(","));
        let meter = Counting::default();
        let projection = read(&plan, &text, &meter);
        assert!(meter.0.get() <= 5 * text.len(), "{} bytes for {}", meter.0.get(), text.len());
        drop(projection);
        assert_eq!(meter.0.get(), 0, "all of it is released");
    }

    #[test]
    fn empty_values_of_members_that_say_so_are_not_set() {
        let mut schema: Schema = serde_json::from_value(json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"a": {}, "b": {"type": "object", "properties": {"x": {}, "y": {}},
                "x-kubernetes-unions": [{"fields-to-discriminateBy": {"x": "X", "y": "Y"}}]}},
                "x-kubernetes-unions": [{"fields-to-discriminateBy": {"a": "A", "b": "B"}}]}}}))
        .unwrap();
        let spec = schema.at_mut(&Place::from_path("spec").unwrap()).unwrap();
        spec.unions[0].value[0]["emptyIsUnset"] = json!(["a", "b"]);
        spec.unions[0].source = Source::Annotation;
        let plan = super::super::compile(&schema, false).plan;
        let members = |text: &str| {
            let projection = read(&plan, text, &Unmetered);
            let (_, spec) = projection.root().unwrap().object().children().next().unwrap();
            spec.object().state(0).members.iter().collect::<Vec<_>>()
        };
        // The values of `b` are read, because it has a union, and those of `a` are skipped.
        for value in ["null", "false", "0", "-0", "0.0", "0e5", "\"\"", "{}", "{ }", "[]", "[ ]"] {
            assert_eq!(members(&format!(r#"{{"spec": {{"a": {value}, "b": {value}}}}}"#)), [0_u8; 0], "{value}");
        }
        for value in ["true", "1", "0.1", "\" \"", "{\"z\": null}", "{\"x\": null}", "[0]", "[{}]"] {
            assert_eq!(members(&format!(r#"{{"spec": {{"a": {value}, "b": {value}}}}}"#)), [0, 1], "{value}");
        }
        assert_eq!(members(r#"{"spec": {"a": 1, "a": 0, "b": {}, "b": {"x": 1}}}"#), [1], "the last one counts");
    }
}
