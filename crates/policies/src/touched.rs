//! The condition of an entry of a webhook configuration: false for an update that leaves all unions of a kind as they were, so that the
//! API server does not ask the webhook.
//!
//! A review of such an update finds nothing to clear and refuses nothing: a fault that the request does not change is let through. The one
//! exception is the 2019 form, which deduces a discriminator from members that are as they were, so a condition looks for that as well.
//!
//! An API server evaluates a condition of mutating admission before it looks at the schema, and refuses the write if the condition fails. So
//! nothing is taken to have a type: each step looks at the type of a value first. [`condition`](crate::condition) says why policies have
//! conditions of their own.

use crate::cel::{EMPTY, text, texts};
use crate::condition::changed;
use crate::members::Algorithm;
use kube_unions_core::union::{Part, Plan, Union, UnionStep};
use std::collections::{BTreeMap, BTreeSet};

/// Most items of a list that a condition looks into. A longer list is compared as a whole.
const MOST_ITEMS: usize = 64;

/// The cost of an evaluation for one object. An API server grants a million units for both, and beyond them refuses the write.
const MOST_COST: usize = 490_000;

/// The cost of a look at a field that is compared as a whole, and at one that is looked into. Measured on an API server: 33, and 43 to 58.
const OF_WHOLE: usize = 36;
const OF_PARTS: usize = 60;

/// The longest expression, in bytes. An API server compiles each whenever its configuration changes, before the next write of the kind goes on,
/// and takes longer the deeper it is: up to half a second for this length.
const LONGEST: usize = 4 << 10;

/// Most fields of the root that a condition compares as a whole.
const MOST_FIELDS: usize = 64;

/// The condition of a write that the webhook has to review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TouchCondition {
    expression: String,
    /// The fields of the root with unions. `None`: to compare them is not enough.
    fields: Option<BTreeSet<String>>,
    looks_into_fields: bool,
}

/// The reason why every write of a kind has to be reviewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum EveryWrite {
    /// A declaration counts each write of an invalid object.
    #[error("a declaration has the action `Audit`")]
    Audited,
    /// A condition cannot look there for a discriminator that is to be deduced.
    #[error("a discriminator is deduced in a map, or in a list in a list")]
    Deduced,
    /// The condition would be too long, or cost too much.
    #[error("its unions are too many for a condition")]
    TooMany,
}

impl TouchCondition {
    /// Returns the condition of a kind, whose versions have these plans.
    pub fn of<'p>(plans: impl IntoIterator<Item = &'p Plan>) -> Result<Self, EveryWrite> {
        let mut root = WatchedParts::default();
        let mut is_complete = true;
        for plan in plans {
            if plan.unions().iter().any(|union| union.actions().audits()) {
                return Err(EveryWrite::Audited);
            }
            for place in [Part::Main, Part::Status].into_iter().flat_map(|part| plan.places(part)) {
                is_complete &= root.add(&place.steps, place.unions, false);
            }
        }
        if !is_complete {
            return Err(EveryWrite::Deduced);
        }
        root.simplify();
        let fields = || root.fields.keys().map(|name| (*name).to_owned()).collect();
        let coarse = if root.deduces() { None } else { Self::of_fields(fields()) };
        let is_coarse = coarse.is_some() && root.fields.values().all(|field| *field == WatchedParts::all());
        if is_coarse || root.cost() > MOST_COST {
            return coarse.ok_or(EveryWrite::TooMany);
        }
        let expression = differs(&root);
        if expression.len() > LONGEST {
            return coarse.ok_or(EveryWrite::TooMany);
        }
        Ok(Self { expression, fields: coarse.and_then(|it| it.fields), looks_into_fields: true })
    }

    /// Returns the condition of an update that changes one of these fields of the root. `None`: they are too many.
    pub fn of_fields(fields: BTreeSet<String>) -> Option<Self> {
        if fields.is_empty() || fields.len() > MOST_FIELDS {
            return None;
        }
        let changes = fields.iter().map(|name| format!(" || {}", changed(&[name])));
        let expression = format!("{CREATES}{}", changes.collect::<String>());
        (expression.len() <= LONGEST).then_some(Self { expression, fields: Some(fields), looks_into_fields: false })
    }

    /// Returns the expression in CEL. It reads `request`, `object` and `oldObject`.
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// Returns the fields of the root to which the condition of [`of_fields`](Self::of_fields) applies instead. `None`: it would skip too
    /// much.
    pub fn fields(&self) -> Option<&BTreeSet<String>> {
        self.fields.as_ref()
    }

    /// Returns false if fields of the root are compared as a whole, so that an update of something beside a union is sent.
    pub fn looks_into_fields(&self) -> bool {
        self.looks_into_fields
    }
}

/// True for a request without an old object.
const CREATES: &str = "request.operation == \"CREATE\"";

/// Returns the condition that something watched differs, or that a discriminator is to be deduced.
fn differs(root: &WatchedParts<'_>) -> String {
    let parts = root.of_fields("o", 0);
    let sides = if root.deduces() {
        format!("[0, 1].map({SIDE}, [[object, oldObject][{SIDE}]].map(o, {parts}))")
    } else {
        format!("[object, oldObject].map(o, {parts})")
    };
    format!("{CREATES} || [{sides}].exists(both, both[0] != both[1])")
}

/// The variable of 0 for the new object, and 1 for the old one: what is made of it differs.
const SIDE: &str = "side";

/// The parts of a value that a review depends on.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct WatchedParts<'p> {
    /// All of it.
    whole: bool,
    /// Parts of the fields of an object.
    fields: BTreeMap<&'p str, WatchedParts<'p>>,
    /// Parts of the items of a list.
    items: Option<Box<WatchedParts<'p>>>,
    /// The discriminators of an object that may have to be deduced.
    deductions: BTreeSet<Deduction<'p>>,
}

/// A member, and the value that its discriminator gets.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Deduction<'p> {
    discriminator: &'p str,
    is_boolean: bool,
    value: &'p str,
    member: &'p str,
    is_unset_when_empty: bool,
}

impl<'p> WatchedParts<'p> {
    fn all() -> Self {
        Self { whole: true, ..Self::default() }
    }

    /// Adds a place with its unions. Returns false if a condition cannot look for all that a review may change there.
    fn add(&mut self, steps: &[UnionStep<'p>], unions: &'p [Union], in_list: bool) -> bool {
        match steps.split_first() {
            None => {
                for union in unions {
                    let names = union.members().chain(union.discriminator());
                    names.for_each(|name| self.fields.entry(name).or_default().whole = true);
                    self.deductions.extend(Deduction::of(union));
                }
                true
            }
            Some((UnionStep::Field(name), rest)) => self.fields.entry(name).or_default().add(rest, unions, in_list),
            Some((UnionStep::Items { keys }, rest)) if !in_list => {
                let items = self.items.get_or_insert_default();
                // An item with other keys is another item.
                for key in keys {
                    items.fields.entry(key.name).or_default().whole = true;
                }
                items.add(rest, unions, true)
            }
            // The order of a map is not the same twice, and a list in a list may be long: they are compared as a whole.
            Some((UnionStep::Items { .. } | UnionStep::Values, _)) => {
                self.whole = true;
                !unions.iter().any(deduces)
            }
        }
    }

    /// Removes parts of what is compared as a whole, unless a discriminator may be deduced there.
    fn simplify(&mut self) {
        if self.whole && !self.deduces() {
            *self = Self::all();
        }
        self.fields.values_mut().chain(self.items.as_deref_mut()).for_each(Self::simplify);
    }

    /// Returns true if a discriminator may be deduced.
    fn deduces(&self) -> bool {
        !self.deductions.is_empty() || self.parts().any(Self::deduces)
    }

    fn parts(&self) -> impl Iterator<Item = &Self> {
        self.fields.values().chain(self.items.as_deref())
    }

    /// Returns the most that an evaluation costs.
    fn cost(&self) -> usize {
        let of = |part: &Self| part.cost().saturating_add(if *part == Self::all() { OF_WHOLE } else { OF_PARTS });
        let fields = self.fields.values().map(of).fold(0, usize::saturating_add);
        let items = self.items.as_deref().map_or(0, of).saturating_mul(MOST_ITEMS);
        // It looks at the member twice, and at the discriminator.
        let deductions = self.deductions.len().saturating_mul(3 * OF_WHOLE);
        fields.saturating_add(items).saturating_add(deductions)
    }

    /// Returns what is watched of a value, which is an expression so deep in comprehensions. Two values of which it is equal are the same
    /// for a review.
    fn of_value(&self, value: &str, depth: usize) -> String {
        let mut parts = Vec::new();
        if self.whole {
            parts.push(value.to_owned());
        }
        if !(self.fields.is_empty() && self.deductions.is_empty()) {
            let map = numbered("v", depth);
            parts.push(format!("[{value}].map({map}, type({map}) == map, {})", self.of_fields(&map, depth)));
        }
        if let Some(items) = self.items.as_deref() {
            let (list, item) = (numbered("list", depth), numbered("item", depth));
            // In a long list, something may have to be deduced.
            let long = if items.deduces() { SIDE } else { &list };
            parts.push(format!(
                "[{value}].map({list}, type({list}) == list, {list}.size() > {MOST_ITEMS} ? dyn({long}) : dyn({list}.map({item}, {})))",
                items.of_value(&item, depth.saturating_add(1))
            ));
        }
        together(parts)
    }

    /// Returns what is watched of the fields of a map, which is a variable.
    fn of_fields(&self, map: &str, depth: usize) -> String {
        // Fields with the same parts are looked at together.
        let mut alike: BTreeMap<&Self, Vec<&str>> = BTreeMap::new();
        self.fields.iter().for_each(|(name, part)| alike.entry(part).or_default().push(name));
        let mut alike: Vec<(Vec<&str>, &Self)> = alike.into_iter().map(|(part, names)| (names, part)).collect();
        alike.sort();
        let key = numbered("k", depth);
        let of = |(names, part): (Vec<&str>, &Self)| {
            let inside = part.of_value(&format!("{map}[{key}]"), depth.saturating_add(1));
            let inside = if names.len() == 1 { inside } else { format!("[dyn({key}), dyn({inside})]") };
            format!("{}.map({key}, {key} in {map}, {inside})", texts(names))
        };
        let mut parts: Vec<String> = alike.into_iter().map(of).collect();
        let deductions: Vec<String> = self.deductions.iter().map(|it| it.is_due(map)).collect();
        if !deductions.is_empty() {
            parts.push(format!("[{SIDE}].filter(s, {})", deductions.join(" || ")));
        }
        together(parts)
    }
}

impl<'p> Deduction<'p> {
    /// Returns the deductions of a union.
    fn of(union: &'p Union) -> impl Iterator<Item = Self> {
        let choices = union.choices().iter().filter(|_| deduces(union));
        choices.flat_map(move |choice| {
            choice.members().iter().map(move |member| Self {
                discriminator: union.discriminator().unwrap_or_default(),
                is_boolean: union.is_boolean(),
                value: choice.value(),
                member: member.name(),
                is_unset_when_empty: union.empty_is_unset().any(|name| name == member.name()),
            })
        })
    }

    /// Returns true if the member is set and the discriminator has another value.
    fn is_due(&self, map: &str) -> String {
        let Self { discriminator, is_boolean, value, member, is_unset_when_empty } = self;
        let (discriminator, member) = (text(discriminator), text(member));
        let value = if *is_boolean { (*value).to_owned() } else { text(value) };
        let is_empty = if *is_unset_when_empty { format!(" && !({map}[{member}] in {EMPTY})") } else { String::new() };
        format!(
            "{member} in {map} && {map}[{member}] != null{is_empty} && \
             !({discriminator} in {map} && {map}[{discriminator}] == {value})"
        )
    }
}

/// Returns true if normalisation deduces the discriminator of a union.
fn deduces(union: &Union) -> bool {
    union.is_normalized() && matches!(Algorithm::of(union), Algorithm::Discriminated(_))
}

/// Returns one expression of several.
fn together(parts: Vec<String>) -> String {
    match <[String; 1]>::try_from(parts) {
        Ok([part]) => part,
        Err(parts) => {
            let parts = parts.into_iter().map(|part| format!("dyn({part})"));
            format!("[{}]", parts.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Returns the name of a variable, so deep in comprehensions. A comprehension reads the variables of those around it, so names differ.
fn numbered(word: &str, depth: usize) -> String {
    if depth == 0 { word.to_owned() } else { format!("{word}{}", depth.saturating_add(1)) }
}
