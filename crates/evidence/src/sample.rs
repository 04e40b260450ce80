//! Smallest objects with a combination, and if the validations of a place accept them.

use crate::answer::{Combination, UnionFields};
use crate::env::{CelEnv, Parsed};
use crate::facts::Fact;
use crate::limits::{DEEPEST_SCHEMA, MOST_SAMPLES};
use crate::node::SchemaNode;
use crate::rule::ValidationRule;
use crate::scene::Scene;
use crate::validation::{SchemaLevel, check};
use crate::value;
use serde_json::{Map, Value, json};

/// Strings that match many patterns.
const STRINGS: &str =
    "x a A 1 xx abc a-b example.com https://example.com a/b 1s 10% /x xxxxxxxx 192.0.2.1 192.0.2.0/24";

/// An object with a combination.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// The object at the place. Fields with defaults are left out.
    pub object: Value,
    /// True if every validation of the object and of its contents accepts it.
    pub accepted: bool,
}

#[derive(Debug)]
pub(crate) struct Sampler<'s> {
    env: &'s CelEnv,
    /// The number of objects that may still be tried.
    left: usize,
}

impl<'s> Sampler<'s> {
    pub(crate) fn new(env: &'s CelEnv) -> Self {
        Self { env, left: MOST_SAMPLES }
    }

    /// Returns the smallest object found with a combination, if possible one that is accepted.
    pub(crate) fn sample(&mut self, node: SchemaNode<'s>, union: &UnionFields, combination: &Combination) -> Sample {
        let sample = self.with_members(node, union, combination, false);
        if sample.accepted || combination.members.iter().all(|member| union.empty_is_unset.contains(member)) {
            return sample;
        }
        // A rule may accept members that are empty.
        let with_empty = self.with_members(node, union, combination, true);
        if with_empty.accepted { with_empty } else { sample }
    }

    fn with_members(
        &mut self,
        node: SchemaNode<'s>,
        union: &UnionFields,
        combination: &Combination,
        empty: bool,
    ) -> Sample {
        let mut base = Map::new();
        if let (Some(discriminator), Some(value)) = (&union.discriminator, &combination.value) {
            let field = node.property(discriminator).unwrap_or(SchemaNode(&Value::Null));
            base.insert(discriminator.clone(), field.discriminator_value(value));
        }
        for member in &combination.members {
            let field = node.property(member);
            let value = match self.value(field, 1) {
                value if union.empty_is_unset.contains(member) => self.not_empty(field, value),
                value if empty => self.emptied(field, value),
                value => value,
            };
            base.insert(member.clone(), value);
        }
        let is_free = |name: &str| !union.fields().any(|field| field == name);
        for name in node.required().filter(|name| is_free(name)) {
            base.insert(name.to_owned(), self.value(node.property(name), 1));
        }
        let others: Vec<&str> = node.properties().map(|(name, _)| name).filter(|name| is_free(name)).collect();
        let (object, accepted) = self.complete(node, base, &others, 0);
        Sample { object, accepted }
    }

    /// Returns the empty value of the same type, if the schema accepts it.
    fn emptied(&mut self, node: Option<SchemaNode<'s>>, value: Value) -> Value {
        let empty = match &value {
            Value::Null => Value::Null,
            Value::Bool(_) => json!(false),
            Value::Number(_) => json!(0),
            Value::String(_) => json!(""),
            Value::Array(_) => json!([]),
            Value::Object(_) => json!({}),
        };
        if node.is_some_and(|node| self.accepts(node, &empty, 1)) { empty } else { value }
    }

    /// Returns a value with one item or field, if it has none.
    fn not_empty(&mut self, node: Option<SchemaNode<'s>>, value: Value) -> Value {
        let Some(node) = node else { return value };
        if value.as_array().is_some_and(Vec::is_empty) {
            return json!([self.value(node.items(), 2)]);
        }
        if value.as_object().is_some_and(Map::is_empty) {
            let first = node.properties().next();
            let (name, field) = first.map_or(("x", node.map_values()), |(name, field)| (name, Some(field)));
            return json!({name: self.value(field, 2)});
        }
        value
    }

    /// Returns the smallest value found, if possible one that the node accepts.
    fn value(&mut self, node: Option<SchemaNode<'s>>, depth: usize) -> Value {
        let Some(node) = node.filter(|_| depth <= DEEPEST_SCHEMA) else { return json!({}) };
        if let Some(first) = node.list("enum").iter().find(|value| !value.is_null()) {
            return first.clone();
        }
        if node.flag("x-kubernetes-int-or-string") {
            return json!(1);
        }
        match node.type_name() {
            Some("string") => json!(string(node)),
            Some("boolean") => json!(true),
            Some("integer" | "number") => number(node),
            Some("array") => {
                let items = node.items();
                let least = node.get("minItems").and_then(Value::as_u64).unwrap_or(0).min(8);
                (0..least).map(|_| self.value(items, depth.saturating_add(1))).collect()
            }
            _ => self.object(node, depth),
        }
    }

    fn object(&mut self, node: SchemaNode<'s>, depth: usize) -> Value {
        let below = depth.saturating_add(1);
        let base = node.required().map(|name| (name.to_owned(), self.value(node.property(name), below)));
        let base: Map<String, Value> = base.collect();
        let others: Vec<&str> = node.properties().map(|(name, _)| name).collect();
        self.complete(node, base, &others, depth).0
    }

    /// Adds optional fields until the node accepts the object: none, each alone, then pairs.
    fn complete(
        &mut self,
        node: SchemaNode<'s>,
        base: Map<String, Value>,
        others: &[&'s str],
        depth: usize,
    ) -> (Value, bool) {
        let base = Value::Object(base);
        if self.accepts(node, &base, depth) {
            return (base, true);
        }
        let free: Vec<&str> = others.iter().copied().filter(|name| base.get(name).is_none()).collect();
        let singles = free.iter().map(|&name| vec![name]);
        let pairs = free.iter().enumerate().flat_map(|(position, &one)| {
            free.iter().skip(position.saturating_add(1)).map(move |&other| vec![one, other])
        });
        for names in singles.chain(pairs) {
            if self.left == 0 {
                break;
            }
            self.left = self.left.saturating_sub(1);
            let mut object = base.clone();
            if let Some(fields) = object.as_object_mut() {
                for name in names {
                    fields.insert(name.to_owned(), self.value(node.property(name), depth.saturating_add(1)));
                }
            }
            if self.accepts(node, &object, depth) {
                return (object, true);
            }
        }
        (base, false)
    }

    /// Returns true if every validation of a node and of the nodes below it accepts a value.
    fn accepts(&mut self, node: SchemaNode<'s>, value: &Value, depth: usize) -> bool {
        let value = with_defaults(node, value, depth);
        let fact = Fact::Value(&value, Some(node));
        check(node, fact, SchemaLevel::ROOT).accepts() && self.rules_accept(node, &value, depth)
    }

    fn rules_accept(&mut self, node: SchemaNode<'s>, value: &Value, depth: usize) -> bool {
        if depth > DEEPEST_SCHEMA {
            return false;
        }
        let scene = Scene { object: Fact::Value(value, Some(node)), old: None, env: self.env, bound: None };
        let holds = ValidationRule::of(node, self.env).iter().all(|rule| match &*rule.parsed {
            Parsed::Expression(expression) => scene.judge(expression).accepts(),
            Parsed::Transition => true,
            Parsed::Unreadable(_) => false,
        });
        let below = depth.saturating_add(1);
        holds
            && match value {
                Value::Object(fields) => fields.iter().all(|(name, value)| {
                    let node = node.field(name);
                    node.is_none_or(|node| self.rules_accept(node, value, below))
                }),
                Value::Array(items) => {
                    let node = node.items();
                    items.iter().all(|item| node.is_none_or(|node| self.rules_accept(node, item, below)))
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
            }
    }
}

/// Returns a value with the defaults of its schema, as the API server stores it.
fn with_defaults(node: SchemaNode<'_>, value: &Value, depth: usize) -> Value {
    let below = depth.saturating_add(1);
    match value {
        _ if depth > DEEPEST_SCHEMA => value.clone(),
        Value::Object(fields) => {
            let mut fields = fields.clone();
            for (name, field) in node.properties() {
                if let Some(default) = field.default()
                    && !fields.contains_key(name)
                {
                    fields.insert(name.to_owned(), default.clone());
                }
            }
            for (name, value) in &mut fields {
                if let Some(field) = node.field(name) {
                    *value = with_defaults(field, value, below);
                }
            }
            Value::Object(fields)
        }
        Value::Array(items) => {
            let node = node.items();
            items
                .iter()
                .map(|item| node.map_or_else(|| item.clone(), |node| with_defaults(node, item, below)))
                .collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn string(node: SchemaNode<'_>) -> String {
    if let Some(known) = node.text("format").and_then(value::of_format) {
        return known.to_owned();
    }
    let count = |keyword: &str| node.get(keyword).and_then(Value::as_u64).and_then(|count| usize::try_from(count).ok());
    let least = count("minLength").unwrap_or(0).min(1024);
    let mut padded = STRINGS.split(' ').map(|text| format!("{text}{}", "x".repeat(least.saturating_sub(text.len()))));
    let pattern = node.text("pattern").and_then(value::pattern);
    let fits = |text: &String| {
        count("maxLength").is_none_or(|most| text.len() <= most) && pattern.as_ref().is_none_or(|it| it.is_match(text))
    };
    padded.find(fits).unwrap_or_else(|| "x".to_owned())
}

fn number(node: SchemaNode<'_>) -> Value {
    let bound = |keyword: &str| node.get(keyword).and_then(Value::as_f64);
    let exclusive = |keyword: &str| if node.flag(keyword) { 1.0 } else { 0.0 };
    let least = bound("minimum").map(|least| least + exclusive("exclusiveMinimum"));
    let most = bound("maximum").map(|most| most - exclusive("exclusiveMaximum"));
    let step = node.get("multipleOf").and_then(Value::as_f64).unwrap_or(1.0);
    let value = least.map_or(step, |least| least.max(step));
    let value = most.map_or(value, |most| value.min(most)).ceil();
    // A bound that is no integer of 64 bits makes an unfit sample, which is not accepted.
    format!("{value:.0}").parse::<i64>().map_or_else(|_| json!(1), |value| json!(value))
}
