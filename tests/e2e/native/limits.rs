//! Large kinds and large objects: policies are accepted, and the cost of their evaluation stays within the API server's
//! budget, or the request is denied.

use serde_json::{Map, Value, json};

use super::agreement::{Outcome, Subject, differences};
use super::{Native, policy_message, warning};
use crate::support::cluster::{say, some_or_all};
use fixtures::crds::{annotated, version};

const GROUP: &str = "limits.example";

/// Items that policies judge at least, in a list with one union of two members for each item. The guide tells it.
const JUDGED_ITEMS: usize = 1000;

/// More items than the API server's budget is enough for.
const BEYOND: usize = 10 * JUDGED_ITEMS;

/// The form of a union in a limit.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    /// The 2022 form.
    Map,
    /// The 2022 form, with two values for each member.
    TwoValues,
    /// The 2019 form without a discriminator.
    List,
    /// The 2019 form with a discriminator.
    Discriminated,
}

/// Returns an object with a union over members with this name and a number. A value is the name in upper case.
pub(super) fn union(shape: Shape, name: &str, members: usize) -> Value {
    let names = || (0..members).map(|number| format!("{name}{number}"));
    let mut properties: Map<_, _> = names().map(|name| (name, json!({"type": "string"}))).collect();
    properties.insert("type".to_owned(), json!({"type": "string"}));
    let mut list = None;
    match shape {
        Shape::Map | Shape::TwoValues => {
            let mut values: Map<_, _> = names().map(|name| (name.to_uppercase(), json!({"name": name}))).collect();
            if matches!(shape, Shape::TwoValues) {
                values.extend(names().map(|name| (format!("B{name}"), json!({"name": name, "optional": true}))));
            }
            properties["type"]["x-kubernetes-unions"] = json!({"fieldMembers": values});
        }
        Shape::List | Shape::Discriminated => {
            let values: Map<_, _> = names().map(|name| (name.clone(), name.to_uppercase().into())).collect();
            let mut union = json!({"fields-to-discriminateBy": values});
            if matches!(shape, Shape::Discriminated) {
                union["discriminator"] = "type".into();
            }
            list = Some(json!([union]));
        }
    }
    let mut schema = json!({"type": "object", "properties": properties});
    if let Some(list) = list {
        schema["x-kubernetes-unions"] = list;
    }
    schema
}

/// Returns an object with a union of the 2022 form over so many members.
fn map_form(members: usize) -> Value {
    union(Shape::Map, "m", members)
}

/// Returns a kind with a union of 64 values and 128 members, in which each value selects all members but one.
pub(super) fn table(group: &str) -> Value {
    let names = || (0..128).map(|number| format!("m{number}"));
    let mut properties: Map<_, _> = names().map(|name| (name, json!({"type": "string"}))).collect();
    properties.insert("type".to_owned(), json!({"type": "string"}));
    let selected = |value: usize| {
        let fields = names().enumerate().filter(|(number, _)| *number != value);
        json!({"fields": fields.map(|(_, name)| (name, json!({"optional": true}))).collect::<Map<_, _>>()})
    };
    let choices: Map<_, _> = (0..64).map(|value| (format!("V{value}"), selected(value))).collect();
    let union = json!({"/properties/spec/properties/type": {"fieldMembers": choices}});
    let schema = spec(&json!({"type": "object", "properties": properties}));
    annotated(group, "Table", &[version("v1", &schema)], &json!({"v1": union}).to_string())
}

/// Returns the schema of twenty different unions, each in three places.
fn sixty() -> Value {
    let fields: Map<_, _> = (0..60).map(|number| (format!("p{number}"), map_form(2 + number % 20))).collect();
    spec(&json!({"type": "object", "properties": fields}))
}

fn spec(schema: &Value) -> Value {
    json!({"type": "object", "properties": {"spec": schema}})
}

/// Returns a list whose items are identified by name.
fn keyed(mut item: Value) -> Value {
    item["properties"]["name"] = json!({"type": "string"});
    item["required"] = json!(["name"]);
    json!({"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]})
}

/// Adds a switch and a contradiction of a union of the 2022 form.
fn switch(subject: &mut Subject, wrap: impl Fn(Value) -> Value) {
    let before = wrap(json!({"type": "M0", "m0": "v"}));
    subject.write("a switch", Some(before), wrap(json!({"type": "M1", "m0": "v", "m1": "v"})));
    subject.write("a contradiction", None, wrap(json!({"type": "M0", "m0": "v", "m1": "v"})));
}

#[test]
fn policies_of_large_kinds_are_accepted_and_work() {
    let Some(native) = Native::start() else { return };
    let mut subjects = Vec::new();
    for members in [64, 128] {
        let mut subject = Subject::new(GROUP, &format!("Wide{members}"), &spec(&map_form(members)));
        switch(&mut subject, |value| json!({"spec": value}));
        subjects.push(subject);
        let mut subject =
            Subject::new(GROUP, &format!("Many{members}"), &spec(&union(Shape::Discriminated, "m", members)));
        subject.write("a deduction", None, json!({"spec": {"m7": "v"}}));
        subject.write("two members", None, json!({"spec": {"m7": "v", "m8": "v"}}));
        subject.write("an addition", Some(json!({"spec": {"m7": "v"}})), json!({"spec": {"m7": "v", "m8": "v"}}));
        subjects.push(subject);
    }
    let mut selecting = Subject::of_definition(table(GROUP));
    let before = json!({"spec": {"type": "V0", "m1": "v", "m5": "v"}});
    selecting.write("a switch", Some(before), json!({"spec": {"type": "V1", "m1": "v", "m5": "v"}}));
    selecting.write("a contradiction", None, json!({"spec": {"type": "V63", "m62": "v", "m63": "v", "m64": "v"}}));
    subjects.push(selecting);
    let mut sixty = Subject::new(GROUP, "Sixty", &sixty());
    for number in [0, 20, 59] {
        let field = format!("p{number}");
        switch(&mut sixty, |value| json!({"spec": {&field: value}}));
    }
    subjects.push(sixty);
    let wrap = |value: Value, depth: usize| (0..depth).fold(value, |inner, _| json!({"d": inner}));
    let deep = (0..50).fold(map_form(2), |inner, _| json!({"type": "object", "properties": {"d": inner}}));
    let mut deep = Subject::new(GROUP, "Deep", &spec(&deep));
    switch(&mut deep, |value| json!({"spec": wrap(value, 50)}));
    subjects.push(deep);
    let lists = (0..3).fold(map_form(2), |inner, _| json!({"type": "array", "items": inner}));
    let mut lists = Subject::new(GROUP, "Lists", &json!({"type": "object", "properties": {"lists": lists}}));
    switch(&mut lists, |value| json!({"lists": [[], [[], [value]]]}));
    subjects.push(lists);
    let nested = (0..3).fold(map_form(2), |inner, _| {
        let mut outer = map_form(2);
        outer["properties"]["inner"] = keyed(inner);
        outer
    });
    let mut nested = Subject::new(GROUP, "Nested", &spec(&nested));
    switch(&mut nested, |value| {
        let value = (0..3).fold(value, |inner, depth| {
            let mut item = inner;
            item["name"] = format!("n{depth}").into();
            json!({"inner": [item]})
        });
        json!({"spec": value})
    });
    subjects.push(nested);
    let found = differences(&native, &subjects, &warning());
    assert!(found.is_empty(), "{} writes differ:\n{}", found.len(), found.join("\n"));
}

#[test]
fn long_lists_are_judged_or_denied_and_never_judged_in_part() {
    let Some(native) = Native::start() else { return };
    let forms = [
        ("Map", keyed(map_form(2)), true),
        ("Discriminated", keyed(union(Shape::Discriminated, "m", 2)), true),
        ("Undiscriminated", keyed(union(Shape::List, "m", 2)), false),
        ("Unkeyed", json!({"type": "array", "items": map_form(2)}), true),
    ];
    let subjects = forms.map(|(kind, list, discriminator)| {
        let mut subject = Subject::new(GROUP, kind, &json!({"type": "object", "properties": {"list": list}}));
        let few = |switched: bool| items(kind, 3, discriminator, switched);
        subject.write("few items", Some(few(false)), few(true));
        let mut faulty = few(false);
        faulty["list"][1]["m1"] = "v".into();
        subject.write("a fault among few items", None, faulty);
        (subject, discriminator)
    });
    let (kinds, discriminators): (Vec<_>, Vec<_>) = subjects.into_iter().unzip();
    let mut stored = Vec::new();
    for (subject, &discriminator) in kinds.iter().zip(&discriminators) {
        native.apply(&subject.definition);
        native.wait_until_served(&subject.api.path(""));
        // The costliest form stands for those whose items have keys, and for those that the API server has no budget for.
        let some = match subject.kind() {
            "Discriminated" => &[JUDGED_ITEMS, BEYOND][..],
            "Unkeyed" => &[JUDGED_ITEMS],
            _ => &[],
        };
        for &count in some_or_all(some, &[100, JUDGED_ITEMS, BEYOND]) {
            let old = items(subject.kind(), count, discriminator, false);
            let object = subject.store(&native, &format!("items{count}"), &old);
            stored.push((subject, count, discriminator, old, object));
        }
    }
    let found = differences(&native, &kinds, &warning());
    assert!(found.is_empty(), "{} writes differ:\n{}", found.len(), found.join("\n"));
    cuts_the_message_about_many_faults(&native, &kinds[0]);
    for (subject, count, discriminator, old, object) in stored {
        let kind = subject.kind();
        let new = items(kind, count, discriminator, true);
        // A request is judged completely, or it fails because it costs too much. It is never judged in part.
        let outcome = match subject.try_ask(&native, Some(&object), "", &new) {
            Err(_) => "takes longer than a client waits".to_owned(),
            Ok(answer) if Outcome::of_answer(&answer, "").as_ref() == Ok(&subject.expected(Some(&old), &new)) => {
                "judged".to_owned()
            }
            Ok(answer) => {
                assert!(!answer.is_success(), "{kind}, {count} items: let through as {}", answer.body);
                format!("denied: {}", answer.body["message"])
            }
        };
        say(&format!("{count} items of {kind}: {outcome}"));
        assert!(outcome == "judged" || count > JUDGED_ITEMS, "{kind}, {count} items");
        if kind != "Unkeyed" && some_or_all(count <= JUDGED_ITEMS, true) {
            let is_judged = is_applied(&native, subject, &object.name, &new);
            assert!(is_judged || count > JUDGED_ITEMS, "{kind}, an apply of {count} items");
        }
    }
}

/// Sends a long list in which every item is at fault: the message is cut.
fn cuts_the_message_about_many_faults(native: &Native, map_form: &Subject) {
    let mut faulty = items("Map", JUDGED_ITEMS, true, false);
    faulty["list"].as_array_mut().expect("a list").iter_mut().for_each(|item| item["m1"] = "v".into());
    let fault = |number| format!("list[{number}].m1: Forbidden: may only be specified when `type` is \"M1\"");
    let whole = (0..JUDGED_ITEMS).map(fault).collect::<Vec<_>>().join("; ");
    let answer = map_form.ask(native, None, &faulty);
    assert_eq!(answer.status, 422, "{}", answer.body);
    let message = policy_message(&answer).expect("a policy denies it");
    // The API server replaces a message of more than 5 KiB by the text of the expression.
    let begin = message.strip_suffix('…').unwrap_or_else(|| panic!("not cut: {message}"));
    assert!(message.len() <= 5000 && begin.len() > 1000 && whole.starts_with(begin), "{message}");
}

/// Applies a manifest of all items, of which one sets the new member alone: the member of another client is
/// cleared. Returns false if it is denied, or takes longer than a client waits.
fn is_applied(native: &Native, subject: &Subject, name: &str, new: &Value) -> bool {
    let mut manifest = new.clone();
    for item in manifest["list"].as_array_mut().expect("a list").iter_mut().filter(|item| item.get("m1").is_some()) {
        item.as_object_mut().expect("an item").remove("m0");
    }
    let Ok(answer) = subject.try_apply(native, name, &manifest) else { return false };
    if answer.is_success() {
        assert_eq!(answer.body["list"], manifest["list"], "the member of another client is cleared");
    }
    answer.is_success()
}

/// Returns a list of items. The one in the middle is switched.
fn items(kind: &str, count: usize, discriminator: bool, switched: bool) -> Value {
    let item = |number: usize| {
        let is_switched = switched && number == count / 2;
        let mut item = json!({"m0": "v"});
        if discriminator {
            item["type"] = if is_switched { "M1" } else { "M0" }.into();
        }
        if is_switched {
            item["m1"] = "v".into();
        }
        if kind != "Unkeyed" {
            item["name"] = format!("item-{number}").into();
        } else if is_switched {
            item.as_object_mut().expect("an item").remove("m0");
        }
        item
    };
    json!({"list": (0..count).map(item).collect::<Vec<_>>()})
}
