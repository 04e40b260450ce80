//! The match conditions of a policy: false for a request of which the policy has nothing to say, so that an ordinary write costs a few
//! comparisons.
//!
//! The checker of an API server takes time in proportion to the square of the length of an expression, so a policy with many unions
//! compares whole fields.

use crate::cel::{fold, identifier, lists, singular, table, text, texts};
use crate::group::{PlaceGroup, Step, leading_fields};
use crate::members::{Algorithm, Members};
use crate::root::Root;
use crate::value::UserValue;
use kube_unions_core::union::Union;
use std::collections::BTreeSet;

/// Most unions that a condition looks into.
const MOST: usize = 8;

/// Most members that a condition names, where it can count fields instead.
const MOST_NAMES: usize = 4;

/// The longest condition of an item on the line of its list, in bytes.
const WIDTH: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RequestCondition {
    /// The reason for which the policy looks at a request, in words with hyphens.
    pub(crate) name: String,
    pub(crate) expression: String,
}

/// The test of an object of a union, which may be an optional value.
type Test<'p> = Box<dyn Fn(&UserValue) -> String + 'p>;

/// The conditions of the unions of a policy, of which one has to be true.
pub(crate) struct Conditions<'p> {
    /// The fields to the roots of the paths.
    roots: Vec<Vec<&'p str>>,
    custom: bool,
    all: Vec<RequestCondition>,
    /// Tests of objects: the name of the condition, and the paths to the objects.
    tests: Vec<(String, Vec<Vec<Step<'p>>>, Test<'p>)>,
    /// The outermost field, list or map of each union, which its condition is about.
    fields: BTreeSet<Vec<&'p str>>,
    deduces: bool,
}

impl<'p> Conditions<'p> {
    pub(crate) fn new(root: &Root<'p>, custom: bool) -> Self {
        Self {
            roots: root.fields.clone(),
            custom,
            all: Vec::new(),
            tests: Vec::new(),
            fields: BTreeSet::new(),
            deduces: false,
        }
    }

    /// Adds the condition of a union that is normalised.
    pub(crate) fn of_mutation(&mut self, group: &PlaceGroup<'p>, union: &'p Union) {
        let members = Members::inline(union, group.typed);
        let outermost = self.outermost(group);
        self.fields.extend(outermost.iter().cloned());
        let algorithm = Algorithm::of(members.union);
        self.deduces |= matches!(algorithm, Algorithm::Discriminated(_));
        let single = group.single().filter(|_| group.typed && self.roots.iter().all(Vec::is_empty));
        let single = single.filter(|_| members.ownerless().is_none());
        if let (Algorithm::Map(discriminator), Some(names)) = (algorithm, single) {
            let side = |object: &str| members.value_in(&UserValue::new(object).follow(&names), true, false);
            self.add(&format!("{discriminator}-changed"), format!("{} != {}", side("object"), side("oldObject")));
            return;
        }
        // Where nothing is known of types, an expression may fail, and one of another union with it.
        if !group.typed {
            for names in &outermost {
                self.add_change(names);
            }
            return;
        }
        let custom = self.custom;
        let (name, test): (String, Test<'p>) = match algorithm {
            Algorithm::Undiscriminated => ("two-members-are-set".to_owned(), several_set(members, group, custom)),
            Algorithm::Map(discriminator) | Algorithm::Discriminated(discriminator) => {
                (format!("a-member-without-its-{discriminator}"), Box::new(move |object| is_other(&members, object)))
            }
        };
        self.tests.push((hyphenated(&name), group.paths.clone(), test));
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
            let side = |object: &str| members.value_in(&UserValue::new(object), true, false);
            format!(" || {} != {}", side("object"), side("oldObject"))
        });
        self.add("the-choice-changed", format!("oldObject == null || {differ}{}", value.unwrap_or_default()));
    }

    /// Returns the fields before the first list or map of the places; of one without a schema only the first.
    fn outermost(&self, group: &PlaceGroup<'p>) -> Vec<Vec<&'p str>> {
        let fields =
            group.leading_fields().map(|names| names.into_iter().take(if group.typed { usize::MAX } else { 1 }));
        let fields: Vec<Vec<&str>> = fields.map(Iterator::collect).collect();
        self.roots.iter().flat_map(|root| fields.iter().map(|names| [&root[..], names].concat())).collect()
    }

    fn add(&mut self, name: &str, expression: String) {
        let condition = RequestCondition { name: hyphenated(name), expression };
        if !self.all.contains(&condition) {
            self.all.push(condition);
        }
    }

    fn add_change(&mut self, names: &[&'p str]) {
        let name = names.last().copied().unwrap_or("object");
        let [now, was] = ["object", "oldObject"].map(|object| UserValue::new(object).follow(names));
        let expression = format!("{} != {}", now.text(), was.text());
        self.add(&format!("{name}-changed"), expression);
    }

    /// Returns the condition of a mutating policy.
    pub(crate) fn into_all(mut self) -> Option<RequestCondition> {
        if self.all.len().saturating_add(self.tests.len()) > MOST {
            if self.deduces {
                return None;
            }
            self.all.clear();
            self.tests.clear();
            self.add_changes();
        }
        self.joined()
    }

    /// Returns the condition of a validating policy.
    pub(crate) fn into_changes(mut self) -> Option<RequestCondition> {
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

    fn joined(self) -> Option<RequestCondition> {
        let is_object = self.roots.iter().all(Vec::is_empty);
        let root = if is_object { "object" } else { "pod" };
        let tests: Vec<PlacedTest<'_, 'p>> =
            self.tests.iter().flat_map(|(_, paths, test)| paths.iter().map(move |steps| (&**steps, test))).collect();
        let expression = any_holds(&tests, &UserValue::new(root), root);
        let names = self.tests.iter().map(|(name, ..)| &**name).chain(self.all.iter().map(|it| &*it.name));
        let mut names: Vec<&str> = names.collect();
        names.dedup();
        let name = match names[..] {
            [] => return None,
            [name] => name.to_owned(),
            _ => "a-union-may-change".to_owned(),
        };
        let mut expressions: Vec<String> = self.all.iter().map(|condition| condition.expression.clone()).collect();
        if !is_object && !tests.is_empty() {
            let roots: Vec<String> =
                self.roots.iter().map(|fields| UserValue::new("object").follow(fields).item()).collect();
            let inner = expression.replace('\n', "\n  ");
            expressions.push(format!("[{}].exists(pod,\n  {inner})", roots.join(", ")));
        } else if !tests.is_empty() {
            expressions.push(expression);
        }
        Some(RequestCondition { name, expression: fold(&expressions.join(" ||\n")) })
    }
}

/// Returns the test of an object for several members that are set.
fn several_set<'p>(members: Members<'p>, group: &PlaceGroup<'p>, custom: bool) -> Test<'p> {
    let keys = group.keys();
    let names: Vec<&'p str> = members.union.members().collect();
    // The API server does not store empty values of built-in objects.
    let is_plain = members.union.empty_is_unset().next().is_none() || !custom;
    match names[..] {
        [one, other] if members.present_is_set && is_plain => {
            Box::new(move |object| format!("{} && {}", object.has(&[one]), object.has(&[other])))
        }
        // A built-in object with many members has hardly another field. One that has is looked at in vain.
        _ if (names.len() > MOST_NAMES || !group.has_others) && !custom => {
            Box::new(move |object| format!("{}.size() > {}", object.or("{}").text(), keys.saturating_add(1)))
        }
        _ => Box::new(move |object| format!("{}.size() > 1", members.set_in(object))),
    }
}

/// Returns true if an object has a member that its discriminator does not select.
fn is_other(members: &Members<'_>, object: &UserValue) -> String {
    let all: Vec<(&str, Vec<&str>)> = members.union.members().map(|member| (member, members.values(member))).collect();
    let value = members.value_in(object, true, false);
    let set = members.is_set(object);
    match &all[..] {
        [(member, values)]
            if values.len() == 1 && members.present_is_set && members.union.empty_is_unset().next().is_none() =>
        {
            format!("{} && {value} != {}", object.find(member).is_there(), text(&values.concat()))
        }
        all if all.iter().all(|(_, values)| values.len() == 1) => {
            let value_of = table(all.iter().map(|(member, values)| (*member, values.concat())));
            format!("{value_of}.exists(m, v, {set} && {value} != v)")
        }
        all => {
            let values = lists(all.iter().map(|(member, values)| (*member, texts(values.iter().copied()))));
            format!("{values}.exists(m, values, {set} && !({value} in values))")
        }
    }
}

/// A test, and the rest of the steps to its objects.
type PlacedTest<'t, 'p> = (&'t [Step<'p>], &'t Test<'p>);

/// Returns true if a test holds for an object at the end of its steps.
fn any_holds(tests: &[PlacedTest<'_, '_>], root: &UserValue, word: &str) -> String {
    let mut alternatives: Vec<String> = Vec::new();
    // A test of both the root and the items of its lists is written once: the root stands beside the items.
    let is_item = |(own, same): &PlacedTest<'_, '_>| {
        let is_own = |(steps, test): &PlacedTest<'_, '_>| {
            std::ptr::eq(*test, *same) && matches!(steps, [Step::AnyOf(_), Step::Items(_), rest @ ..] if rest == *own)
        };
        tests.iter().any(is_own)
    };
    let (own, mut rest): (Vec<PlacedTest<'_, '_>>, Vec<_>) = tests.iter().copied().partition(is_item);
    while let Some((steps, test)) = rest.first().copied() {
        let fields = leading_fields(steps);
        let found = root.follow(&fields);
        let Some(step) = steps.get(fields.len()) else {
            alternatives.push(test(&found));
            rest.remove(0);
            continue;
        };
        // Those of the same list are looked for together.
        let end = fields.len().saturating_add(1);
        let (alike, others): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|(other, _)| other.get(..end) == steps.get(..end));
        let inside: Vec<PlacedTest<'_, '_>> =
            alike.iter().map(|(steps, test)| (steps.get(end..).unwrap_or_default(), *test)).collect();
        let with_root = fields.is_empty()
            && inside.iter().any(|(steps, test)| {
                own.iter().any(|(own, same)| std::ptr::eq(*test, *same) && steps.get(1..) == Some(*own))
            });
        let word = fields.last().copied().unwrap_or(word);
        alternatives.push(any_of_items(step, &inside, (root, with_root), &found, word));
        rest = others;
    }
    let mut told: Vec<String> = Vec::new();
    for alternative in alternatives {
        if !told.contains(&alternative) {
            told.push(alternative);
        }
    }
    told.join(" ||\n")
}

/// Returns true if a test holds below a list, map or choice of fields: `found`, an optional value or not. `with_root`: or for
/// the root itself.
fn any_of_items(
    step: &Step<'_>,
    inside: &[PlacedTest<'_, '_>],
    (root, with_root): (&UserValue, bool),
    found: &UserValue,
    word: &str,
) -> String {
    let item_of = |word: &str| {
        let mut item = singular(word);
        item.push_str(&"2".repeat(usize::from(root.text() == item)));
        item
    };
    let (source, key, item, word) = match step {
        Step::AnyOf(names) => {
            let root = with_root.then(|| format!("dyn([{}])", root.text()));
            let fields = names.iter().map(|name| found.find(name).item());
            let list: Vec<String> = root.into_iter().chain(fields).collect();
            let word = if with_root { "parts".to_owned() } else { step.word().unwrap_or_else(|| word.to_owned()) };
            let is_list = inside.iter().any(|(steps, _)| matches!(steps.first(), Some(Step::Items(_))));
            let item = if is_list { "list".to_owned() } else { item_of(&word) };
            (format!("[{}]", list.join(", ")), "", item, word)
        }
        Step::Values | Step::Items(_) | Step::Field(_) => {
            let (empty, key) = if *step == Step::Values { ("{}", "name, ") } else { ("[]", "") };
            (found.or(empty).text().to_owned(), key, item_of(word), word.to_owned())
        }
    };
    let inner = any_holds(inside, &UserValue::new(&*item), &word);
    let begin = format!("{source}.exists({key}{item},");
    // A list in a list is looked for on the same line.
    if let Some((line, rest)) = inner.split_once('\n')
        && let [(steps, _), ..] = inside
        && matches!(step, Step::AnyOf(_))
        && matches!(steps.first(), Some(Step::Items(_)))
        && line.ends_with(',')
    {
        return format!("{begin} {line}\n{rest})");
    }
    if begin.len().saturating_add(inner.len()) < WIDTH && !inner.contains('\n') {
        format!("{begin} {inner})")
    } else {
        format!("{begin}\n  {})", inner.replace('\n', "\n  "))
    }
}

/// Returns a name of a condition: letters, digits and hyphens.
fn hyphenated(name: &str) -> String {
    let name = identifier(name).to_ascii_lowercase().replace('_', "-");
    let name: String = name.trim_matches('-').chars().take(60).collect();
    name.trim_matches('-').to_owned()
}
