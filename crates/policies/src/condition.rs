//! The match conditions of a policy: false for a request of which the policy has nothing to say, so that an ordinary write costs a few
//! comparisons.
//!
//! The checker of an API server takes time in proportion to the square of the length of an expression, so a policy with many unions
//! compares whole fields.

use crate::cel::{chain, lists, maybe, singular, table, texts};
use crate::group::{PlaceGroup, Step, trunk};
use crate::layout::fold;
use crate::members::{Algorithm, Members};
use crate::root::Root;
use kube_unions_core::union::Union;
use std::collections::BTreeSet;

/// Most unions that a condition looks into.
const MOST: usize = 8;

/// The longest condition of an item on the line of its list, in bytes.
const WIDTH: usize = 100;

/// A match condition.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RequestCondition {
    /// The reason for which the policy looks at a request, in words with hyphens.
    pub(crate) name: String,
    pub(crate) expression: String,
}

/// The conditions of the unions of a policy, of which one has to be true.
#[derive(Debug)]
pub(crate) struct Conditions<'p> {
    /// The fields to the roots of the ways.
    trunks: Vec<Vec<&'p str>>,
    all: Vec<RequestCondition>,
    /// Those about the roots of the ways, if they are not the object.
    of_roots: Vec<RequestCondition>,
    /// The outermost field, list or map of each union, which its condition is about.
    fields: BTreeSet<Vec<&'p str>>,
    deduces: bool,
}

impl<'p> Conditions<'p> {
    pub(crate) fn new(root: &Root<'p>) -> Self {
        Self {
            trunks: root.trunks.clone(),
            all: Vec::new(),
            of_roots: Vec::new(),
            fields: BTreeSet::new(),
            deduces: false,
        }
    }

    /// Adds the condition of a union that is normalised.
    pub(crate) fn of_mutation(&mut self, group: &PlaceGroup<'p>, union: &Union) {
        let members = Members::inline(union, group.typed);
        let outermost = self.outermost(group);
        self.fields.extend(outermost.iter().cloned());
        let algorithm = Algorithm::of(members.union);
        self.deduces |= matches!(algorithm, Algorithm::Discriminated(_));
        let single = group.single().filter(|_| group.typed && self.trunks.iter().all(Vec::is_empty));
        if let (Algorithm::Map(discriminator), Some(names)) = (algorithm, single) {
            let side = |object: &str| members.value_in(&chain(object, &names), true);
            self.add(&format!("{discriminator}-changed"), format!("{} != {}", side("object"), side("oldObject")));
            return;
        }
        let (name, expression) = match algorithm {
            Algorithm::Undiscriminated => {
                let several = |object: &str| format!("{}.size() > 1", members.set_in(object));
                ("two-members-are-set".to_owned(), self.exists(group, &several))
            }
            Algorithm::Map(discriminator) | Algorithm::Discriminated(discriminator) => {
                let all: Vec<(&str, Vec<&str>)> =
                    members.union.members().map(|member| (member, members.values(member))).collect();
                let is_other = |object: &str| {
                    let value = members.value_in(object, true);
                    let set = members.is_set(object);
                    if all.iter().all(|(_, values)| values.len() == 1) {
                        let value_of = table(all.iter().map(|(member, values)| (*member, values.concat())));
                        return format!("{value_of}.exists(m, v, {set} && {value} != v)");
                    }
                    let values = lists(all.iter().map(|(member, values)| (*member, texts(values.iter().copied()))));
                    format!("{values}.exists(m, values, {set} && !({value} in values))")
                };
                (format!("a-member-without-its-{discriminator}"), self.exists(group, &is_other))
            }
        };
        // Where nothing is known of types, an expression may fail, and one of another union with it.
        if group.typed && self.trunks.iter().any(|trunk| !trunk.is_empty()) {
            self.of_roots.push(RequestCondition { name: hyphenated(&name), expression });
        } else if group.typed {
            self.add(&name, expression);
        } else {
            for names in &outermost {
                self.add_change(names);
            }
        }
    }

    /// Adds the condition of a union that is validated: what is around it changed.
    pub(crate) fn of_validation(&mut self, group: &PlaceGroup<'p>, union: &Union) {
        let outermost = self.outermost(group);
        if outermost.iter().all(|names| !names.is_empty()) {
            self.fields.extend(outermost);
            return;
        }
        let members = Members::inline(union, group.typed);
        let differ = members.differ();
        let value = union.discriminator().map(|_| {
            let side = |object: &str| members.value_in(object, true);
            format!(" || {} != {}", side("object"), side("oldObject"))
        });
        self.add("the-choice-changed", format!("oldObject == null || {differ}{}", value.unwrap_or_default()));
    }

    /// Returns the fields before the first list or map of the places; of one without a schema only the first.
    fn outermost(&self, group: &PlaceGroup<'p>) -> Vec<Vec<&'p str>> {
        let fields = group.trunks().map(|names| names.into_iter().take(if group.typed { usize::MAX } else { 1 }));
        let fields: Vec<Vec<&str>> = fields.map(Iterator::collect).collect();
        self.trunks.iter().flat_map(|trunk| fields.iter().map(|names| [&trunk[..], names].concat())).collect()
    }

    /// Returns true if a condition holds for an object of a group.
    fn exists(&self, group: &PlaceGroup<'_>, condition: &dyn Fn(&str) -> String) -> String {
        let is_object = self.trunks.iter().all(Vec::is_empty);
        let (root, is_optional) = if is_object { ("object", false) } else { ("pod", true) };
        let ways: Vec<String> = group.ways.iter().map(|way| exists(way, root, is_optional, root, condition)).collect();
        ways.join(" ||\n  ")
    }

    fn add(&mut self, name: &str, expression: String) {
        let condition = RequestCondition { name: hyphenated(name), expression };
        if !self.all.contains(&condition) {
            self.all.push(condition);
        }
    }

    fn add_change(&mut self, names: &[&'p str]) {
        let name = names.last().copied().unwrap_or("object");
        let side = |object: &str| chain(object, names);
        let expression = format!("{} != {}", side("object"), side("oldObject"));
        self.add(&format!("{name}-changed"), expression);
    }

    /// Returns the conditions of a mutating policy, of which all have to be true.
    pub(crate) fn into_all(mut self) -> Vec<RequestCondition> {
        if self.all.len().saturating_add(self.of_roots.len()) > MOST {
            if self.deduces {
                return Vec::new();
            }
            self.all.clear();
            self.of_roots.clear();
            self.add_changes();
        }
        self.joined()
    }

    /// Returns the conditions of a validating policy.
    pub(crate) fn into_changes(mut self) -> Vec<RequestCondition> {
        self.add_changes();
        self.joined()
    }

    /// Adds a condition for each field, without those that are in another one.
    fn add_changes(&mut self) {
        let mut fields = std::mem::take(&mut self.fields);
        if fields.len() > MOST {
            fields = fields.into_iter().map(|names| names.into_iter().take(1).collect()).collect();
        }
        let is_inside =
            |names: &[&str]| (0..names.len()).any(|end| names.get(..end).is_some_and(|it| fields.contains(it)));
        let outer: Vec<_> = fields.iter().filter(|names| !is_inside(names)).cloned().collect();
        for names in &outer {
            self.add_change(names);
        }
    }

    fn joined(mut self) -> Vec<RequestCondition> {
        if let Some(RequestCondition { name, expression }) = any(&self.of_roots, " ||\n") {
            let roots: Vec<String> = self.trunks.iter().map(|trunk| chain("object", trunk)).collect();
            let inner = expression.replace('\n', "\n  ");
            let expression = format!("[{}].exists(pod,\n  {inner})", roots.join(", "));
            self.all.push(RequestCondition { name, expression });
        }
        any(&self.all, " ||\n").into_iter().collect()
    }
}

/// Returns the condition that is true if one of several is.
fn any(conditions: &[RequestCondition], or: &str) -> Option<RequestCondition> {
    let name = match conditions {
        [] => return None,
        [first, others @ ..] if others.iter().all(|other| other.name == first.name) => &first.name,
        _ => "a-union-may-change",
    };
    let expressions: Vec<&str> = conditions.iter().map(|condition| &*condition.expression).collect();
    Some(RequestCondition { name: name.to_owned(), expression: fold(&expressions.join(or)) })
}

/// Returns true if a condition holds for an object at the end of a way. `is_optional`: `root` is an optional value.
fn exists(way: &[Step<'_>], root: &str, is_optional: bool, word: &str, condition: &dyn Fn(&str) -> String) -> String {
    let fields = trunk(way);
    let word = fields.last().copied().unwrap_or(word);
    let found = chain(root, &fields);
    let Some((step, rest)) = way.get(fields.len()..).and_then(<[_]>::split_first) else { return condition(&found) };
    let item_of = |word: &str| {
        let mut item = singular(word);
        item.push_str(&"2".repeat(usize::from(root == item)));
        item
    };
    let of_items = |source: &str, key: &str, item: &str, is_optional: bool, word: &str| {
        let inner = exists(rest, item, is_optional, word, condition);
        let begin = format!("{source}.exists({key}{item},");
        if begin.len().saturating_add(inner.len()) < WIDTH {
            format!("{begin} {inner})")
        } else {
            format!("{begin}\n  {})", inner.replace('\n', "\n  "))
        }
    };
    let is_optional = is_optional || !fields.is_empty();
    match step {
        Step::AnyOf(names) => {
            let list: Vec<String> = names.iter().map(|name| maybe(&found, name)).collect();
            let word = step.word().unwrap_or_else(|| word.to_owned());
            let item = if matches!(rest.first(), Some(Step::Items(_))) { "list".to_owned() } else { item_of(&word) };
            of_items(&format!("[{}]", list.join(", ")), "", &item, true, &word)
        }
        Step::Values | Step::Items(_) | Step::Field(_) => {
            let (empty, key) = if *step == Step::Values { ("{}", "name, ") } else { ("[]", "") };
            let source = if is_optional { format!("{found}.orValue({empty})") } else { found };
            of_items(&source, key, &item_of(word), false, word)
        }
    }
}

/// Returns a name of a condition: letters, digits and hyphens.
fn hyphenated(name: &str) -> String {
    let mut hyphenated = String::new();
    for it in name.chars().map(|it| if it.is_ascii_alphanumeric() { it.to_ascii_lowercase() } else { '-' }) {
        if it != '-' || !hyphenated.ends_with('-') {
            hyphenated.push(it);
        }
    }
    let name: String = hyphenated.trim_matches('-').chars().take(60).collect();
    name.trim_matches('-').to_owned()
}
