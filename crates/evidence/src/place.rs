//! The validations that reach a place: those of the object with the union, and those of the objects around it.

use crate::answer::{Evidence, EvidenceKind, EvidenceState, UnionFields};
use crate::env::{CelEnv, Parsed};
use crate::facts::{Around, Fact, KnownField, PartialObject};
use crate::limits::{MOST_EVIDENCE, MOST_LEVELS, TOO_MANY_STEPS};
use crate::node::SchemaNode;
use crate::outcome::Outcomes;
use crate::rule::{ValidationRule, mentions};
use crate::scene::Scene;
use crate::validation::{SchemaLevel, check_keyword};
use kube_unions_core::schema::cel_name::escape;
use kube_unions_core::schema::{Place, PlaceStep};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

#[derive(Debug)]
pub(crate) struct PlaceValidations<'s> {
    place: Place,
    /// The schemas on the way. The last one is that of the place.
    nodes: Vec<SchemaNode<'s>>,
    validations: Vec<PlacedValidation<'s>>,
    env: Rc<CelEnv>,
    /// True if there were more validations than are considered.
    pub(crate) cut: bool,
}

#[derive(Debug)]
struct PlacedValidation<'s> {
    /// The position in `nodes`.
    level: usize,
    pointer: String,
    /// The number of steps to judge it once.
    size: usize,
    body: Body<'s>,
}

#[derive(Debug)]
enum Body<'s> {
    Rule(ValidationRule<'s>),
    /// A keyword and its argument. The field is the discriminator whose `enum` it is.
    Keyword(Option<String>, &'s str, &'s Value),
}

/// Keywords whose meaning spans several fields.
const SPANNING: [&str; 6] = ["allOf", "anyOf", "maxProperties", "minProperties", "not", "oneOf"];

impl<'s> PlaceValidations<'s> {
    /// Finds the validations. Returns `None` if the schema does not have the place.
    pub(crate) fn find(schema: &'s Value, place: &Place, union: &UnionFields, env: &Rc<CelEnv>) -> Option<Self> {
        let mut nodes = vec![SchemaNode(schema)];
        for step in place.steps() {
            nodes.push(nodes.last().and_then(|node| node.below(step))?);
        }
        let mut found = Self { place: place.clone(), nodes, validations: Vec::new(), env: Rc::clone(env), cut: false };
        found.collect(union);
        Some(found)
    }

    pub(crate) fn node(&self) -> SchemaNode<'s> {
        self.nodes.last().copied().unwrap_or(SchemaNode(&Value::Null))
    }

    /// Returns the validations, not judged yet.
    pub(crate) fn evidence(&self) -> Vec<Evidence> {
        let evidence = self.validations.iter().map(|validation| {
            let (kind, text, message, state) = match &validation.body {
                Body::Keyword(_, keyword, _) => {
                    (EvidenceKind::Keyword((*keyword).to_owned()), "", None, EvidenceState::Elsewhere)
                }
                Body::Rule(rule) => {
                    let state = match &*rule.parsed {
                        Parsed::Expression(_) => EvidenceState::Elsewhere,
                        Parsed::Transition => EvidenceState::Transition,
                        Parsed::Unreadable(why) => EvidenceState::Unreadable(why.clone()),
                    };
                    (EvidenceKind::Rule(rule.index), rule.text, rule.message, state)
                }
            };
            let message = message.map(str::to_owned);
            Evidence { kind, pointer: validation.pointer.clone(), text: text.to_owned(), message, state }
        });
        evidence.collect()
    }

    /// Returns the positions of the validations that may be about a field.
    pub(crate) fn about(&self, field: &str) -> BTreeSet<usize> {
        let union = UnionFields::of_members(&[field]);
        let is_about = |body: &Body<'_>| match body {
            Body::Rule(rule) => is_named(rule.text, field),
            Body::Keyword(_, "maxProperties" | "minProperties", _) => true,
            Body::Keyword(_, "required", _) | Body::Keyword(Some(_), ..) => false,
            Body::Keyword(None, _, argument) => names_members(argument, &union),
        };
        let about = self.validations.iter().enumerate().filter(|(_, validation)| is_about(&validation.body));
        about.map(|(position, _)| position).collect()
    }

    /// Judges every validation on a place with these fields. The results are in the order of [`Self::evidence`].
    pub(crate) fn judge(&self, fields: BTreeMap<Cow<'s, str>, KnownField<'s>>) -> Vec<Outcomes> {
        let mut whole = KnownField::Object(Box::new(PartialObject { node: self.node(), fields }));
        for (node, step) in self.nodes.iter().zip(self.place.steps()).rev() {
            whole = match step {
                PlaceStep::Property(name) => {
                    let fields = BTreeMap::from([(Cow::Owned(name.to_string()), whole)]);
                    KnownField::Object(Box::new(PartialObject { node: *node, fields }))
                }
                PlaceStep::Items | PlaceStep::Values => {
                    let is_list = *step == PlaceStep::Items;
                    KnownField::Around(Box::new(Around { node: *node, item: whole, is_list }))
                }
            };
        }
        let root = whole.fact(self.nodes.first().copied());
        let at = |level: usize| self.place.steps().iter().take(level).fold(root, Fact::below);
        // Even a place without validations takes time.
        self.env.take(self.nodes.len());
        let judge = |validation: &PlacedValidation<'s>| {
            let object = at(validation.level);
            if !self.env.take(validation.size) {
                return Outcomes::beyond(TOO_MANY_STEPS);
            }
            match &validation.body {
                Body::Keyword(field, keyword, argument) => {
                    let node = self.nodes.get(validation.level).copied().unwrap_or(self.node());
                    let fact = field.as_ref().map_or(object, |field| object.plain_field(field));
                    check_keyword(node, keyword, argument, fact, SchemaLevel::ROOT)
                }
                Body::Rule(rule) => match &*rule.parsed {
                    Parsed::Expression(expression) => {
                        Scene { object, old: None, env: &self.env, bound: None }.judge(expression)
                    }
                    Parsed::Transition => Outcomes::certain(true),
                    Parsed::Unreadable(why) => Outcomes::beyond(why.as_str()),
                },
            }
        };
        self.validations.iter().map(judge).collect()
    }

    fn collect(&mut self, union: &UnionFields) {
        let last = self.nodes.len().saturating_sub(1);
        let steps = self.place.steps();
        let mut found = Vec::new();
        for (level, node) in self.nodes.iter().enumerate().skip(last.saturating_sub(MOST_LEVELS)) {
            let object: Place = steps.iter().take(level).cloned().collect();
            found.extend(self.at_level(level, *node, &object, steps.get(level), union));
        }
        self.cut = found.len() > MOST_EVIDENCE || self.env.is_exhausted();
        // Those of the place itself matter most.
        found.reverse();
        found.truncate(MOST_EVIDENCE);
        found.reverse();
        self.validations = found;
    }

    fn at_level(
        &self,
        level: usize,
        node: SchemaNode<'s>,
        object: &Place,
        next: Option<&PlaceStep>,
        union: &UnionFields,
    ) -> Vec<PlacedValidation<'s>> {
        let mut found = Vec::new();
        let pointer = object.to_pointer();
        let validation = |pointer: &str, body: Body<'s>| {
            // The steps of a rule are counted when it is evaluated.
            let size = if let Body::Keyword(_, _, argument) = &body { size(argument) } else { 1 };
            PlacedValidation { level, pointer: pointer.to_owned(), size, body }
        };
        let searched = union.members.len().saturating_add(1);
        for (keyword, argument) in node.0.as_object().into_iter().flatten() {
            let spans = SPANNING.contains(&keyword.as_str());
            if spans && next.is_some() && !self.env.take(size(argument).saturating_mul(searched)) {
                continue;
            }
            // Validations above the place matter if they look into it.
            let counts = matches!(keyword.as_str(), "maxProperties" | "minProperties");
            let matters = match next {
                None => spans || keyword == "required",
                Some(_) => spans && !counts && names_members(argument, union),
            };
            if matters {
                found.push(validation(&pointer, Body::Keyword(None, keyword, argument)));
            }
        }
        if next.is_none()
            && let Some(field) = &union.discriminator
        {
            let pointer = object.property(field).to_pointer();
            for (part, values) in node.property(field).into_iter().flat_map(SchemaNode::enums) {
                let pointer = part.map_or_else(|| pointer.clone(), |part| format!("{pointer}/allOf/{part}"));
                found.push(validation(&pointer, Body::Keyword(Some(field.clone()), "enum", values)));
            }
        }
        let is_wanted = |text: &str| {
            if !self.env.take(text.len().saturating_mul(searched) / 64) {
                return false;
            }
            let leads_here = match next {
                Some(PlaceStep::Property(name)) => is_named(text, name),
                Some(PlaceStep::Items | PlaceStep::Values) | None => true,
            };
            leads_here && union.fields().any(|name| is_named(text, name))
        };
        let rules = ValidationRule::of_those(node, &self.env, MOST_EVIDENCE.saturating_add(1), is_wanted);
        found.extend(rules.into_iter().map(|rule| validation(&pointer, Body::Rule(rule))));
        found
    }
}

/// Returns true if a rule may have a field, as CEL writes it or in quotes.
fn is_named(rule: &str, field: &str) -> bool {
    mentions(rule, &escape(field).unwrap_or_else(|| field.to_owned())) || mentions(rule, field)
}

fn size(value: &Value) -> usize {
    let below: usize = match value {
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(fields) => fields.values().map(size).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    };
    below.saturating_add(1)
}

/// Returns true if a validation requires a member somewhere, or restricts one.
fn names_members(validation: &Value, union: &UnionFields) -> bool {
    match validation {
        Value::Object(fields) => {
            fields.iter().any(|(name, below)| union.fields().any(|field| field == name) || names_members(below, union))
        }
        Value::Array(items) => items.iter().any(|item| names_members(item, union)),
        Value::String(text) => union.fields().any(|field| field == text),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
