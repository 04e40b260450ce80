//! The match conditions of a policy: false for a request of which the policy has nothing to say, so that an ordinary write costs a few
//! comparisons.
//!
//! The checker of an API server takes time in proportion to the square of the length of an expression, so a policy with many unions
//! compares whole fields.
//!
//! [`touched`](crate::touched) compiles the condition of the webhook from the same plans. The two share how fields are compared, and no more,
//! because they promise different things. A mutating policy asks whether there is something to do in the new object alone, so it skips most
//! creates as well. Its objects have the types of the schema, or the policy is ignored, so its condition is short enough to be read. The
//! webhook has to see every create and every change of a union, for its warnings and its words, and its condition may not fail whatever the
//! types are. So it looks at each type first and into each list, which makes it longer than the checker and a reader of a policy bear.

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

/// The conditions of the unions of a policy, of which one has to be true.
#[derive(Default)]
pub(crate) struct Conditions<'p> {
    /// The fields to the objects in which paths begin.
    roots: Vec<Vec<&'p str>>,
    custom: bool,
    all: Vec<RequestCondition>,
    tests: Vec<UnionTest<'p>>,
    /// The outermost field, list or map of each union, which its condition is about.
    fields: BTreeSet<Vec<&'p str>>,
    deduces: bool,
}

impl<'p> Conditions<'p> {
    pub(crate) fn new(root: &Root<'p>, custom: bool) -> Self {
        Self { roots: root.fields.clone(), custom, ..Self::default() }
    }

    /// Adds the condition of a union that is normalised.
    pub(crate) fn of_mutation(&mut self, group: &PlaceGroup<'p>, union: &'p Union) {
        let members = Members::inline(union, group.typed);
        let outermost = self.outermost(group);
        self.fields.extend(outermost.iter().cloned());
        let algorithm = Algorithm::of(members.union);
        self.deduces |= matches!(algorithm, Algorithm::Discriminated(_));
        let is_plain = group.typed && members.ownerless().is_none() && self.begins_at_object();
        if let (Algorithm::Map(discriminator), Some(names), true) = (algorithm, group.single(), is_plain) {
            self.add(&format!("{discriminator}-changed"), members.value_differs(&names));
        } else if group.typed {
            self.tests.push(UnionTest { members, group: group.clone(), custom: self.custom });
        } else {
            // Where nothing is known of types, an expression may fail, and one of another union with it.
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
        let value = union.discriminator().map(|_| format!(" || {}", members.value_differs(&[])));
        let differs = members.differ() + &value.unwrap_or_default();
        self.add("the-choice-changed", format!("oldObject == null || {differs}"));
    }

    fn begins_at_object(&self) -> bool {
        self.roots.iter().all(Vec::is_empty)
    }

    /// Returns the fields before the first list or map of the places; of one without a schema only the first.
    fn outermost(&self, group: &PlaceGroup<'p>) -> Vec<Vec<&'p str>> {
        let most = if group.typed { usize::MAX } else { 1 };
        let fields = group.leading_fields().map(|names| names.into_iter().take(most).collect());
        let fields: Vec<Vec<&str>> = fields.collect();
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
        self.add(&format!("{name}-changed"), changed(names));
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
        let names = self.tests.iter().map(UnionTest::name).chain(self.all.iter().map(|it| it.name.clone()));
        let name = names.reduce(|one, other| if one == other { one } else { "a-union-may-change".to_owned() })?;
        let conditions = self.all.iter().map(|condition| condition.expression.clone());
        let expressions: Vec<String> = conditions.chain(self.tested()).collect();
        Some(RequestCondition { name, expression: fold(&expressions.join(" ||\n")) })
    }

    /// Returns true if a test holds. `None` without tests.
    fn tested(&self) -> Option<String> {
        let tests = self.tests.iter().flat_map(|it| it.group.paths.iter().map(move |steps| (it, steps)));
        let tests: Vec<PlacedTest<'_, 'p>> = tests.map(|(test, steps)| PlacedTest { steps, test }).collect();
        tests.first()?;
        if self.begins_at_object() {
            return Some(any_holds(&tests, &UserValue::new("object"), "object"));
        }
        let roots = self.roots.iter().map(|fields| UserValue::new("object").follow(fields).item());
        let inner = any_holds(&tests, &UserValue::new("pod"), "pod").replace('\n', "\n  ");
        Some(format!("[{}].exists(pod,\n  {inner})", roots.collect::<Vec<_>>().join(", ")))
    }
}

/// Returns the condition that an update changes what is at the end of these fields. Comparisons of values of any type never fail.
pub(crate) fn changed(names: &[&str]) -> String {
    let [now, was] = ["object", "oldObject"].map(|object| UserValue::new(object).follow(names));
    format!("{} != {}", now.text(), was.text())
}

/// The test of the objects of a union that is normalised.
struct UnionTest<'p> {
    members: Members<'p>,
    group: PlaceGroup<'p>,
    custom: bool,
}

impl UnionTest<'_> {
    fn name(&self) -> String {
        match self.members.union.discriminator() {
            None => "two-members-are-set".to_owned(),
            Some(discriminator) => hyphenated(&format!("a-member-without-its-{discriminator}")),
        }
    }

    /// Returns true if something may be to do in an object, which may be an optional value.
    fn holds(&self, object: &UserValue) -> String {
        let Self { members, group, custom } = self;
        if members.union.discriminator().is_some() {
            return self.has_other(object);
        }
        let names: Vec<&str> = members.union.members().collect();
        // The API server does not store empty values of built-in objects.
        let is_plain = members.union.empty_is_unset().next().is_none() || !custom;
        match names[..] {
            [one, other] if members.present_is_set && is_plain => {
                format!("{} && {}", object.has(&[one]), object.has(&[other]))
            }
            // A built-in object with many members has hardly another field. One that has is looked at in vain.
            _ if (names.len() > MOST_NAMES || !group.has_others) && !custom => {
                format!("{}.size() > {}", object.or("{}").text(), group.keys().saturating_add(1))
            }
            _ => format!("{}.size() > 1", members.set_in(object)),
        }
    }

    /// Returns true if an object has a member that its discriminator does not select.
    fn has_other(&self, object: &UserValue) -> String {
        let members = &self.members;
        let (value, set) = (members.value_in(object, true, false), members.is_set(object));
        let all: Vec<(&str, Vec<&str>)> = members.union.members().map(|it| (it, members.values(it))).collect();
        let is_plain = members.present_is_set && members.union.empty_is_unset().next().is_none();
        match &all[..] {
            all if all.iter().any(|(_, values)| values.len() != 1) => {
                let values = lists(all.iter().map(|(member, values)| (*member, texts(values.iter().copied()))));
                format!("{values}.exists(m, values, {set} && !({value} in values))")
            }
            [(member, value_of)] if is_plain => {
                format!("{} && {value} != {}", object.find(member).is_there(), text(&value_of.concat()))
            }
            all => {
                let value_of = table(all.iter().map(|(member, values)| (*member, values.concat())));
                format!("{value_of}.exists(m, v, {set} && {value} != v)")
            }
        }
    }
}

/// A test, and the steps to its objects.
#[derive(Clone, Copy)]
struct PlacedTest<'t, 'p> {
    steps: &'t [Step<'p>],
    test: &'t UnionTest<'p>,
}

impl PlacedTest<'_, '_> {
    /// Returns the test behind its first steps.
    fn after(self, steps: usize) -> Self {
        Self { steps: self.steps.get(steps..).unwrap_or_default(), ..self }
    }

    fn is_same(&self, other: &Self) -> bool {
        std::ptr::eq(self.test, other.test) && self.steps == other.steps
    }
}

/// Returns true if a test holds for an object at the end of its steps.
fn any_holds(tests: &[PlacedTest<'_, '_>], root: &UserValue, word: &str) -> String {
    let mut alternatives: Vec<String> = Vec::new();
    // A test of both the root and the items of its lists is written once: the root stands beside the items.
    let is_of_items = |own: &PlacedTest<'_, '_>| {
        let is_item = |it: &PlacedTest<'_, '_>| matches!(it.steps, [Step::AnyOf(_), Step::Items(_), ..]);
        tests.iter().any(|it| is_item(it) && it.after(2).is_same(own))
    };
    let (own, mut rest): (Vec<PlacedTest<'_, '_>>, Vec<_>) = tests.iter().copied().partition(is_of_items);
    while let Some(first) = rest.first().copied() {
        let fields = leading_fields(first.steps);
        let found = root.follow(&fields);
        let end = fields.len().saturating_add(1);
        let alternative = if let Some(step) = first.steps.get(fields.len()) {
            // Those of the same list are looked for together.
            let (alike, others): (Vec<_>, Vec<_>) =
                rest.into_iter().partition(|it| it.steps.get(..end) == first.steps.get(..end));
            rest = others;
            let inside: Vec<PlacedTest<'_, '_>> = alike.into_iter().map(|it| it.after(end)).collect();
            let is_own = |it: &PlacedTest<'_, '_>| own.iter().any(|own| it.after(1).is_same(own));
            let with_root = fields.is_empty() && inside.iter().any(is_own);
            any_below(step, &inside, &found, fields.last().copied().unwrap_or(word), root, with_root)
        } else {
            rest.remove(0);
            first.test.holds(&found)
        };
        if !alternatives.contains(&alternative) {
            alternatives.push(alternative);
        }
    }
    alternatives.join(" ||\n")
}

/// Returns true if a test holds below a list, map or choice of fields: `found`, an optional value or not. `with_root`: or for
/// the root itself.
fn any_below(
    step: &Step<'_>,
    tests: &[PlacedTest<'_, '_>],
    found: &UserValue,
    word: &str,
    root: &UserValue,
    with_root: bool,
) -> String {
    let is_list = |it: &PlacedTest<'_, '_>| matches!(it.steps.first(), Some(Step::Items(_)));
    let is_choice = matches!(step, Step::AnyOf(_));
    let (source, own_word) = match step {
        Step::AnyOf(names) => {
            let root = with_root.then(|| format!("dyn([{}])", root.text()));
            let fields = names.iter().map(|name| found.find(name).item());
            let list: Vec<String> = root.into_iter().chain(fields).collect();
            let word = if with_root { Some("parts".to_owned()) } else { step.word() };
            (format!("[{}]", list.join(", ")), word)
        }
        Step::Values => (found.or("{}").text().to_owned(), None),
        Step::Items(_) | Step::Field(_) => (found.or("[]").text().to_owned(), None),
    };
    let word = own_word.unwrap_or_else(|| word.to_owned());
    let item = match singular(&word) {
        _ if is_choice && tests.iter().any(is_list) => "list".to_owned(),
        item if item == root.text() => item + "2",
        item => item,
    };
    let inner = any_holds(tests, &UserValue::new(&*item), &word);
    let key = if *step == Step::Values { "name, " } else { "" };
    let begin = format!("{source}.exists({key}{item},");
    match inner.split_once('\n') {
        // A list in a list is looked for on the same line.
        Some((line, rest)) if is_choice && tests.first().is_some_and(is_list) && line.ends_with(',') => {
            format!("{begin} {line}\n{rest})")
        }
        None if begin.len().saturating_add(inner.len()) < WIDTH => format!("{begin} {inner})"),
        _ => format!("{begin}\n  {})", inner.replace('\n', "\n  ")),
    }
}

/// Returns a name of a condition: letters, digits and hyphens.
fn hyphenated(name: &str) -> String {
    let name = identifier(name).to_ascii_lowercase().replace('_', "-");
    let name: String = name.trim_matches('-').chars().take(60).collect();
    name.trim_matches('-').to_owned()
}
