//! Smallest objects with a combination, and if the validations of a place accept them.

use crate::answer::UnionFields;
use crate::combination::{Combination, UnsetValue};
use crate::env::{CelEnv, Parsed};
use crate::facts::{Fact, KnownField};
use crate::limits::{DEEPEST_SCHEMA, MOST_FIELDS_TRIED, MOST_SAMPLES};
use crate::node::SchemaNode;
use crate::outcome::Outcomes;
use crate::place::PlaceValidations;
use crate::rule::ValidationRule;
use crate::scene::Scene;
use crate::validation::{SchemaLevel, check};
use crate::value;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// An object with a combination.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// The object at the place. Fields with defaults are left out.
    pub object: Value,
    /// True if every validation of the object and of its contents accepts it.
    pub accepted: bool,
}

/// The contents of the members of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SampledContent {
    Smallest,
    /// `false`, `0`, `""`, `{}` or `[]`, where the schema accepts it and it counts as set.
    Empty,
    /// A list with an item, or an object with the field at this position of its schema.
    NotEmpty(usize),
}

impl SampledContent {
    /// The contents with which a rule may accept an object, in the order in which they are tried.
    const ALL: [Self; 3] = [Self::Smallest, Self::Empty, Self::NotEmpty(0)];
}

/// A validation of a value that a sample has to pass.
type SampleCheck<'s> = fn(&mut Sampler<'s>, SchemaNode<'s>, &Value, usize) -> bool;

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
        // A rule may accept members that are empty, or only others.
        for content in SampledContent::ALL {
            if let Ok(object) = self.object_with(node, union, combination, content, Self::accepts) {
                return Sample { object, accepted: true };
            }
        }
        let object = self.object_with(node, union, combination, SampledContent::Smallest, Self::fits);
        Sample { object: object.unwrap_or_else(|incomplete| incomplete), accepted: false }
    }

    /// Returns an object with a combination for which a rule fails, and the position of the rule among the validations of the place.
    pub(crate) fn failing(
        &mut self,
        place: &PlaceValidations<'s>,
        union: &UnionFields,
        combination: &Combination,
    ) -> Option<(Value, usize)> {
        let node = place.node();
        let fails = |object: &Value| {
            let stored = with_defaults(node, object, 0);
            let field = |name: &str| stored.get(name).cloned().map_or(KnownField::Absent, KnownField::Value);
            let fields = node.properties().map(|(name, _)| (Cow::Borrowed(name), field(name))).collect();
            place.judge(fields).iter().position(Outcomes::is_error)
        };
        let fields_of = |member: &String| node.property(member).map_or(0, |member| member.properties().count());
        let most = combination.members.iter().map(fields_of).max().unwrap_or_default().clamp(1, MOST_FIELDS_TRIED);
        let contents = [SampledContent::Smallest, SampledContent::Empty].into_iter();
        let contents = contents.chain((0..most).map(SampledContent::NotEmpty));
        let objects = contents.filter_map(|it| self.object_with(node, union, combination, it, Self::fits).ok());
        let objects: Vec<Value> = objects.collect();
        if let Some(found) = objects.iter().find_map(|object| Some((object.clone(), fails(object)?))) {
            return Some(found);
        }
        // A rule may fail only beside another field.
        let is_other = |name: &&str| !union.fields().any(|field| field == *name) && !place.about(name).is_empty();
        let others = node.properties().map(|(name, _)| name).filter(is_other).take(MOST_FIELDS_TRIED);
        let mut pairs = others.flat_map(|name| objects.iter().map(move |object| (name, object)));
        pairs.find_map(|(name, object)| {
            let object = self.with_field(node, object, name)?;
            fails(&object).map(|rule| (object, rule))
        })
    }

    /// Returns the object with one more field, if it lacks it and then fits.
    fn with_field(&mut self, node: SchemaNode<'s>, object: &Value, name: &str) -> Option<Value> {
        let mut object = object.clone();
        let fields = object.as_object_mut().filter(|fields| !fields.contains_key(name))?;
        fields.insert(name.to_owned(), self.value(node.property(name), 1));
        self.fits(node, &object, 0).then_some(object)
    }

    /// Returns true if the API server stores a value as it is.
    pub(crate) fn keeps(&mut self, node: SchemaNode<'s>, value: &Value) -> bool {
        with_defaults(node, value, 1) == *value && self.accepts(node, value, 1)
    }

    /// Returns the fields of a combination, and those that every object has.
    fn base(
        &mut self,
        node: SchemaNode<'s>,
        union: &UnionFields,
        combination: &Combination,
        content: SampledContent,
    ) -> Map<String, Value> {
        let mut base = Map::new();
        if let (Some(discriminator), Some(value)) = (&union.discriminator, &combination.value) {
            let field = node.property(discriminator).unwrap_or(SchemaNode(&Value::Null));
            base.insert(discriminator.clone(), field.discriminator_value(value));
        }
        for member in &combination.members {
            let field = node.property(member);
            let counts_if_empty = !union.empty_is_unset.contains(member);
            let value = match (self.value(field, 1), content) {
                (value, SampledContent::NotEmpty(position)) => self.not_empty(field, value, position),
                (value, _) if !counts_if_empty => self.not_empty(field, value, 0),
                (value, SampledContent::Empty) => self.emptied(field, value),
                (value, SampledContent::Smallest) => value,
            };
            base.insert(member.clone(), value);
        }
        for (name, unset) in &combination.unset {
            base.insert(name.clone(), unset.of(node.property(name).map(|field| field.0)));
        }
        let is_free = |name: &str| !union.fields().any(|field| field == name);
        for name in node.required().filter(|name| is_free(name)) {
            base.insert(name.to_owned(), self.value(node.property(name), 1));
        }
        base
    }

    /// Returns an object with a combination. Fails with one that is not accepted.
    fn object_with(
        &mut self,
        node: SchemaNode<'s>,
        union: &UnionFields,
        combination: &Combination,
        content: SampledContent,
        is_accepted: SampleCheck<'s>,
    ) -> Result<Value, Value> {
        let base = self.base(node, union, combination, content);
        let is_free = |name: &str| !union.fields().any(|field| field == name);
        let others: Vec<&str> = node.properties().map(|(name, _)| name).filter(|name| is_free(name)).collect();
        self.complete(node, base, &others, 0, is_accepted)
    }

    /// Returns the empty value of the same type, if the schema accepts it.
    fn emptied(&mut self, node: Option<SchemaNode<'s>>, value: Value) -> Value {
        let Some(node) = node else { return value };
        let empty = UnsetValue::Empty.of(Some(node.0));
        if self.accepts(node, &empty, 1) { empty } else { value }
    }

    /// Returns a value with one item or field, if it has none. A position beyond the last field is the first one.
    fn not_empty(&mut self, node: Option<SchemaNode<'s>>, value: Value, position: usize) -> Value {
        let Some(node) = node else { return value };
        if value.as_array().is_some_and(Vec::is_empty) {
            return json!([self.value(node.items(), 2)]);
        }
        if value.as_object().is_some_and(Map::is_empty) {
            let chosen = node.properties().nth(position).or_else(|| node.properties().next());
            let (name, field) = chosen.map_or(("x", node.map_values()), |(name, field)| (name, Some(field)));
            return json!({name: self.value(field, 2)});
        }
        value
    }

    /// Returns the smallest value found, if possible one that the node accepts.
    fn value(&mut self, node: Option<SchemaNode<'s>>, depth: usize) -> Value {
        let Some(node) = node.filter(|_| depth <= DEEPEST_SCHEMA) else { return json!({}) };
        if let Some(first) = node.values().into_iter().flatten().find(|value| !value.is_null()) {
            return first.clone();
        }
        if node.flag("x-kubernetes-int-or-string") {
            return json!(1);
        }
        match node.type_name() {
            Some("string") => json!(value::text(node)),
            Some("boolean") => json!(true),
            Some("integer" | "number") => value::number(node),
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
        self.complete(node, base, &others, depth, Self::accepts).unwrap_or_else(|base| base)
    }

    /// Adds optional fields until the object is accepted: none, each alone, then pairs. Fails with the object as it was.
    fn complete(
        &mut self,
        node: SchemaNode<'s>,
        base: Map<String, Value>,
        others: &[&'s str],
        depth: usize,
        is_accepted: SampleCheck<'s>,
    ) -> Result<Value, Value> {
        let base = Value::Object(base);
        if is_accepted(self, node, &base, depth) {
            return Ok(base);
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
            if is_accepted(self, node, &object, depth) {
                return Ok(object);
            }
        }
        Err(base)
    }

    /// Returns true if every validation of a node and of the nodes below it accepts a value.
    pub(crate) fn accepts(&mut self, node: SchemaNode<'s>, value: &Value, depth: usize) -> bool {
        let value = with_defaults(node, value, depth);
        let fact = Fact::Value(&value, Some(node));
        check(node, fact, SchemaLevel::ROOT).accepts() && self.rules_accept(node, &value, depth)
    }

    /// Returns true if every validation but the rules of the node itself accepts a value.
    fn fits(&mut self, node: SchemaNode<'s>, value: &Value, depth: usize) -> bool {
        let value = with_defaults(node, value, depth);
        let fact = Fact::Value(&value, Some(node));
        check(node, fact, SchemaLevel::ROOT).accepts() && self.rules_below_accept(node, &value, depth)
    }

    fn rules_accept(&mut self, node: SchemaNode<'s>, value: &Value, depth: usize) -> bool {
        if depth > DEEPEST_SCHEMA {
            return false;
        }
        // No rule judges a null.
        if value.is_null() {
            return true;
        }
        let scene = Scene { object: Fact::Value(value, Some(node)), old: None, env: self.env, bound: None };
        let holds = ValidationRule::of(node, self.env).iter().all(|rule| match &*rule.parsed {
            Parsed::Expression(expression) => scene.judge(expression).accepts(),
            Parsed::Transition => true,
            Parsed::Unreadable(_) => false,
        });
        holds && self.rules_below_accept(node, value, depth)
    }

    fn rules_below_accept(&mut self, node: SchemaNode<'s>, value: &Value, depth: usize) -> bool {
        let below = depth.saturating_add(1);
        match value {
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
