//! Generated schemas with unions, and objects of them.

use fixtures::reviews::{GROUP, catalog, declaration, declared_catalog, definition, lift_unions, version};
use kube_unions_core::catalog::Catalog;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::ops::Range;

/// A schema node.
#[derive(Debug, Clone)]
enum Node {
    Text,
    Set,
    Object(Fields),
    KeyedList(Fields),
    AtomicList(Fields),
    Map(Fields),
}

/// The fields of an object, with at most one union of each form. Names tell the role of a field: members of the 2019 form
/// are `l0`, `l1`, … with the discriminator `lt`, those of the 2022 form `m0`, `m1`, … with `mt`, other fields `f0`, `f1`,
/// …
#[derive(Debug, Clone)]
pub(crate) struct Fields {
    plain: Vec<Node>,
    list: Option<(bool, Vec<Node>)>,
    map: Option<(Empty, bool, Vec<Node>)>,
    options: [Options; 2],
    /// The first and the last member of the 2019 form are a group, and each value of the 2022 form selects the next member as well.
    groups: bool,
}

/// The options that a `UnionDeclaration` gives a union.
#[derive(Debug, Clone, Copy)]
struct Options {
    required: bool,
    /// A bit for each member whose empty values count as not set.
    empty_is_unset: u8,
}

impl Options {
    fn put_into(self, union: &mut Value, prefix: &str, members: usize) {
        let named = (0..members.min(8)).filter(|position| self.empty_is_unset >> position & 1 == 1);
        union["required"] = self.required.into();
        union["emptyIsUnset"] = named.map(|position| format!("{prefix}{position}")).collect();
    }
}

fn options() -> impl Strategy<Value = Options> {
    let required = prop_oneof![3 => Just(false), 1 => Just(true)];
    let empty_is_unset = prop_oneof![1 => Just(0), 1 => any::<u8>()];
    (required, empty_is_unset).prop_map(|(required, empty_is_unset)| Options { required, empty_is_unset })
}

/// The empty member of a union of the 2022 form.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Empty {
    Missing,
    Named,
    /// The empty value.
    None,
}

fn node(depth: u32) -> BoxedStrategy<Node> {
    if depth == 0 {
        return prop_oneof![2 => Just(Node::Text), 1 => Just(Node::Set)].boxed();
    }
    prop_oneof![
        2 => Just(Node::Text),
        1 => Just(Node::Set),
        2 => fields(depth - 1, 1..4).prop_map(Node::Object),
        1 => fields(depth - 1, 1..4).prop_map(Node::KeyedList),
        1 => fields(depth - 1, 1..4).prop_map(Node::AtomicList),
        1 => fields(depth - 1, 1..4).prop_map(Node::Map),
    ]
    .boxed()
}

/// Returns the fields of an object so many levels above the innermost, with so many members of a union.
pub(crate) fn fields(depth: u32, members: Range<usize>) -> impl Strategy<Value = Fields> {
    let empty = prop_oneof![Just(Empty::Missing), Just(Empty::Named), Just(Empty::None)];
    (
        vec(node(depth), 0..2),
        option::of((any::<bool>(), vec(node(depth), members.clone()))),
        option::of((empty, any::<bool>(), vec(node(depth), members))),
        [options(), options()],
        any::<bool>(),
    )
        .prop_map(|(plain, list, map, options, groups)| Fields { plain, list, map, options, groups })
}

impl Node {
    fn schema(&self) -> Value {
        match self {
            Self::Text => json!({"type": "string"}),
            Self::Set => json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
            Self::Object(fields) => fields.schema(),
            Self::Map(fields) => json!({"type": "object", "additionalProperties": fields.schema()}),
            Self::AtomicList(fields) => {
                json!({"type": "array", "x-kubernetes-list-type": "atomic", "items": fields.schema()})
            }
            Self::KeyedList(fields) => {
                let mut items = fields.schema();
                items["properties"]["k"] = json!({"type": "string"});
                items["required"] = json!(["k"]);
                json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": items})
            }
        }
    }

    /// Generates values, with `misfits` sometimes null, of another type, or with two items of one key.
    fn value(&self, misfits: bool) -> BoxedStrategy<Value> {
        let key = prop_oneof![Just("k0"), Just("k1"), Just("a/b~c")];
        let right = match self {
            Self::Text => prop_oneof![Just(json!("")), Just(json!("x")), Just(json!("y"))].boxed(),
            Self::Set => {
                prop_oneof![3 => Just(json!([])), 1 => Just(json!(["x"])), 1 => Just(json!(["y", "x"]))].boxed()
            }
            Self::Object(fields) => fields.value(misfits),
            Self::AtomicList(fields) => vec(fields.value(misfits), 0..3).prop_map(Value::Array).boxed(),
            Self::Map(fields) => {
                let entry = (key.prop_map(ToOwned::to_owned), fields.value(misfits));
                vec(entry, 0..3).prop_map(|entries| Value::Object(entries.into_iter().collect())).boxed()
            }
            Self::KeyedList(fields) => {
                let item = (key, fields.value(misfits)).prop_map(|(key, mut item)| {
                    item["k"] = json!(key);
                    item
                });
                let unique = move |mut items: Vec<Value>| {
                    items.dedup_by(|item, before| !misfits && item["k"] == before["k"]);
                    Value::Array(items)
                };
                vec(item, 0..3).prop_map(unique).boxed()
            }
        };
        if !misfits {
            return right;
        }
        prop_oneof![80 => right, 1 => Just(Value::Null), 1 => Just(json!(7)), 1 => Just(json!([])), 1 => Just(json!({}))].boxed()
    }
}

impl Fields {
    fn named(&self) -> Vec<(String, &Node)> {
        let list = self.list.iter().flat_map(|(_, members)| members);
        let map = self.map.iter().flat_map(|(_, _, members)| members);
        let name = |prefix: &'static str| move |(position, node)| (format!("{prefix}{position}"), node);
        let plain = self.plain.iter().enumerate().map(name("f"));
        plain.chain(list.enumerate().map(name("l"))).chain(map.enumerate().map(name("m"))).collect()
    }

    fn values(members: &[Node]) -> Vec<String> {
        (0..members.len()).map(|position| format!("V{position}")).collect()
    }

    pub(crate) fn schema(&self) -> Value {
        let mut properties: Map<_, _> = self.named().into_iter().map(|(name, node)| (name, node.schema())).collect();
        let mut schema = json!({"type": "object"});
        if let Some((discriminated, members)) = &self.list {
            let mut values: Map<_, _> = Self::values(members)
                .into_iter()
                .enumerate()
                .map(|(position, value)| (format!("l{position}"), json!(value)))
                .collect();
            if self.groups && members.len() > 2 {
                values.insert(format!("l{}", members.len() - 1), json!("V0"));
            }
            let mut union = json!({"fields-to-discriminateBy": values});
            if *discriminated {
                union["discriminator"] = json!("lt");
                properties.insert("lt".to_owned(), json!({"type": "string"}));
            }
            self.options[0].put_into(&mut union, "l", members.len());
            schema["x-kubernetes-unions"] = json!([union]);
        }
        if let Some((empty, optional, members)) = &self.map {
            let mut choices: Map<_, _> = Self::values(members)
                .into_iter()
                .enumerate()
                .map(|(position, value)| {
                    let (name, next) = (format!("m{position}"), format!("m{}", (position + 1) % members.len()));
                    let several = json!({"fields": {&name: {"optional": optional}, &next: {"optional": true}}});
                    let one = json!({"name": name, "optional": optional});
                    (value, if self.groups && name != next { several } else { one })
                })
                .collect();
            match empty {
                Empty::Missing => {}
                Empty::Named => drop(choices.insert("None".to_owned(), Value::Null)),
                Empty::None => drop(choices.insert(String::new(), Value::Null)),
            }
            let mut union = json!({"fieldMembers": choices});
            self.options[1].put_into(&mut union, "m", members.len());
            properties.insert("mt".to_owned(), json!({"type": "string", "x-kubernetes-unions": union}));
        }
        schema["properties"] = Value::Object(properties);
        schema
    }

    pub(crate) fn value(&self, misfits: bool) -> BoxedStrategy<Value> {
        type NamedValue = (String, Option<Value>);
        let mut entries: Vec<BoxedStrategy<NamedValue>> = Vec::new();
        for (name, node) in self.named() {
            // Few members at a time. With all of them set, nearly every write would be denied.
            let often = if name.starts_with('f') { 0.8 } else { 0.35 };
            entries.push(
                option::weighted(often, node.value(misfits)).prop_map(move |value| (name.clone(), value)).boxed(),
            );
        }
        let discriminators =
            [("lt", self.list.as_ref().is_some_and(|(discriminated, _)| *discriminated)), ("mt", self.map.is_some())];
        for (name, _) in discriminators.into_iter().filter(|(_, there)| *there) {
            let value = prop_oneof![
                10 => proptest::sample::select(vec![json!("V0"), json!("V1"), json!("None")]),
                2 => proptest::sample::select(vec![json!("V2"), json!(""), json!("Bogus")]),
                u32::from(misfits) => proptest::sample::select(vec![json!(7), Value::Null]),
            ];
            entries.push(option::of(value).prop_map(move |value| (name.to_owned(), value)).boxed());
        }
        let object =
            |entries: Vec<NamedValue>| entries.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        entries.prop_map(move |entries| Value::Object(object(entries))).boxed()
    }
}

/// Returns the catalog of a schema whose unions a `UnionDeclaration` declares, with their options.
pub(crate) fn catalog_of_lifted(mut schema: Value) -> Catalog {
    let unions = lift_unions(&mut schema);
    let definition = definition(&Map::new(), &[version("v1", &schema, false)]);
    match unions.as_array() {
        Some(all) if all.is_empty() => catalog(&[&definition]),
        _ => declared_catalog(&definition, &[declaration("lifted", GROUP, "Thing", &json!({"unions": unions}))]),
    }
}
