//! Names and values that need care in an expression, a JSON Pointer, a path or the name of a policy; unions at unusual
//! places; and objects whose types the schema does not allow.
//!
//! Policies work on each, or `compile` refuses and names the place. A policy never fails at admission.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::agreement::{Subject, differences};
use super::player::loose;
use super::{Native, compile_all, warning};
use fixtures::crds::crd;
use fixtures::reviews::{catalog, version};
use kube_unions_core::catalog::Builder;
use kube_unions_core::declaration::Definition;
use kube_unions_policies::{PolicyOptions, RefusalReason};

const GROUP: &str = "names.example";

/// Reserved words of expressions as field names.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Field names that a policy can carry.
const NAMES: [&str; 25] = [
    "size",
    "map",
    "object",
    "oldObject",
    "variables",
    "p",
    "m",
    "a-b",
    "a.b",
    "a/b",
    "a__b",
    "__dash__",
    "a~b",
    "~0",
    "~1",
    "$x",
    "${x}",
    "a b",
    " ",
    "ünï",
    "日本",
    "\"",
    "'",
    "\\",
    "-",
];

/// Field names that no JSON Patch of a policy can carry.
const UNPRINTABLE: [&str; 4] = ["", "\n", "a\tb", "\u{7f}"];

/// Values of a discriminator.
const VALUES: [&str; 14] =
    ["true", "a\"b", "a\\b", "a\\", "a\nb", "a\tb", "${x}", "'", "`", "日本", " ", "a; b", "%s", "\u{1f600}"];

/// Returns an object with a union of the 2022 form over two members.
fn map_form(discriminator: &str, members: [&str; 2], values: [&str; 2], keys: &[&str]) -> Value {
    let mut properties = json!({members[0]: {"type": "string"}, members[1]: {"type": "string"}});
    properties[discriminator] = json!({"type": "string", "x-kubernetes-unions": {
        "fieldMembers": {values[0]: {"name": members[0]}, values[1]: {"name": members[1], "optional": true}}}});
    with_keys(json!({"type": "object", "properties": properties}), keys)
}

/// Returns an object with a union of the 2019 form over two members.
fn list_form(discriminator: Option<&str>, members: [&str; 2], values: [&str; 2]) -> Value {
    let mut union = json!({"fields-to-discriminateBy": {members[0]: values[0], members[1]: values[1]}});
    let mut properties = json!({members[0]: {"type": "string"}, members[1]: {"type": "string"}});
    if let Some(name) = discriminator {
        union["discriminator"] = name.into();
        properties[name] = json!({"type": "string"});
    }
    json!({"type": "object", "properties": properties, "x-kubernetes-unions": [union]})
}

fn with_keys(mut schema: Value, keys: &[&str]) -> Value {
    for key in keys {
        schema["properties"][key] = json!({"type": "string"});
        schema["required"] = json!(keys);
    }
    schema
}

/// Returns the schema of a kind with these fields in its `spec`.
fn spec(properties: &Map<String, Value>) -> Value {
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}})
}

/// Adds writes of a union of the 2022 form inside `wrap`: a switch, a contradiction, and an old fault.
fn switch(subject: &mut Subject, about: &str, at: [&str; 3], values: [&str; 2], wrap: &dyn Fn(Value) -> Value) {
    let [discriminator, a, b] = at;
    let object = |value: &str, members: &[&str]| {
        let mut object = json!({discriminator: value});
        for member in members {
            object[member] = "v".into();
        }
        wrap(object)
    };
    let (is, will) = (values[0], values[1]);
    subject.write(&format!("{about}: a switch"), Some(object(is, &[a])), object(will, &[a]));
    subject.write(&format!("{about}: a contradiction"), None, object(is, &[a, b]));
    subject.write(&format!("{about}: a missing member"), None, object(is, &[]));
    subject.write(&format!("{about}: an old fault"), Some(object(will, &[a, b])), object(will, &[a, b]));
}

/// Returns kinds of each form with unions at fields of these names, and writes of them.
fn kinds_of_names(number: usize, names: &[&str]) -> Vec<Subject> {
    let other = |name: &str| format!("{name}2");
    let subject = |kind: &str, schema: &dyn Fn(&str) -> Value| {
        let properties = names.iter().enumerate().map(|(number, name)| (format!("p{number}"), schema(name)));
        Subject::new(GROUP, &format!("{kind}{number}"), &spec(&properties.collect()))
    };
    let mut members = subject("Members", &|name| map_form("type", [name, &other(name)], ["A", "B"], &[]));
    let mut discriminators = subject("Discriminators", &|name| map_form(name, ["x1", "x2"], ["A", "B"], &[]));
    let structs = names.iter().map(|name| ((*name).to_owned(), map_form("type", ["a", "b"], ["A", "B"], &[])));
    let mut structs = Subject::new(GROUP, &format!("Structs{number}"), &spec(&structs.collect()));
    let mut keys = subject("Keys", &|name| {
        json!({"type": "array", "items": map_form("the-type", ["a1", "b1"], ["A", "B"], &[name]),
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [name]})
    });
    let mut additions = subject("Additions", &|name| list_form(None, [name, &other(name)], ["A", "B"]));
    let mut deductions = subject("Deductions", &|name| list_form(Some(name), ["a1", "b1"], ["A", "B"]));
    for (number, name) in names.iter().enumerate() {
        let field = format!("p{number}");
        let wrap = |value: Value| json!({"spec": {&field: value}});
        let about = format!("{name:?}");
        switch(&mut members, &about, ["type", name, &other(name)], ["A", "B"], &wrap);
        switch(&mut discriminators, &about, [name, "x1", "x2"], ["A", "B"], &wrap);
        switch(&mut structs, &about, ["type", "a", "b"], ["A", "B"], &|value| json!({"spec": {*name: value}}));
        switch(&mut keys, &about, ["the-type", "a1", "b1"], ["A", "B"], &|mut value| {
            value[*name] = "k".into();
            json!({"spec": {&field: [value]}})
        });
        let (one, two) = (json!({*name: "v"}), json!({*name: "v", &other(name): "v"}));
        additions.write(&about, Some(wrap(one)), wrap(two.clone()));
        additions.write(&about, None, wrap(two));
        deductions.write(&about, None, wrap(json!({"a1": "v"})));
        deductions.write(&about, None, wrap(json!({"a1": "v", *name: "B"})));
    }
    let kinds = vec![members, discriminators, structs, keys, additions, deductions];
    assert!(kinds.iter().all(|subject| subject.telling() >= names.len() * 2));
    kinds
}

#[test]
fn fields_with_unusual_names_are_judged_as_by_the_webhook() {
    let Some(native) = Native::shared() else { return };
    // An API server takes longer for each union of a policy.
    let names = NAMES.chunks(12).enumerate().flat_map(|(number, names)| kinds_of_names(number, names));
    // All forms select a field in the same way, so each form has some of the reserved words.
    let reserved = RESERVED.chunks(4).enumerate();
    let reserved = reserved.filter_map(|(number, names)| kinds_of_names(10 + number, names).into_iter().nth(number));
    let subjects: Vec<_> = names.chain(reserved).collect();
    let found = differences(native, &subjects, &warning());
    assert!(found.is_empty(), "{} writes differ:\n{}", found.len(), found.join("\n"));
}

#[test]
fn discriminators_with_unusual_values_are_judged_as_by_the_webhook() {
    let Some(native) = Native::shared() else { return };
    let fields = |schema: &dyn Fn(&str) -> Value| -> Value {
        spec(&VALUES.iter().enumerate().map(|(number, value)| (format!("p{number}"), schema(value))).collect())
    };
    let mut maps = Subject::new(GROUP, "Maps", &fields(&|value| map_form("type", ["a", "b"], [value, "B"], &[])));
    let mut lists = Subject::new(GROUP, "Lists", &fields(&|value| list_form(Some("type"), ["a", "b"], [value, "B"])));
    for (number, value) in VALUES.iter().enumerate() {
        let field = format!("p{number}");
        let wrap = |value: Value| json!({"spec": {&field: value}});
        let about = format!("{value:?}");
        switch(&mut maps, &about, ["type", "a", "b"], [value, "B"], &wrap);
        switch(&mut maps, &format!("not {about}"), ["type", "a", "b"], ["B", value], &wrap);
        maps.write("an unknown value", None, wrap(json!({"type": format!("{value}?"), "a": "v"})));
        lists.write(&about, None, wrap(json!({"a": "v"})));
        lists.write(&about, Some(wrap(json!({"type": value, "a": "v"}))), wrap(json!({"type": "B", "a": "v"})));
        lists.write(&about, None, wrap(json!({"type": value, "b": "v"})));
    }
    let found = differences(native, &[maps, lists], &warning());
    assert!(found.is_empty(), "{} writes differ:\n{}", found.len(), found.join("\n"));
}

#[test]
fn unions_at_unusual_places_are_judged_as_by_the_webhook() {
    let Some(native) = Native::shared() else { return };
    let mut root = map_form("type", ["a", "b"], ["A", "B"], &[]);
    root["properties"]["other"] = json!({"type": "string"});
    let mut root = Subject::new(GROUP, "Root", &root);
    switch(&mut root, "at the root", ["type", "a", "b"], ["A", "B"], &|value| value);

    let mut open = map_form("type", ["a", "b"], ["A", "B"], &[]);
    open["x-kubernetes-preserve-unknown-fields"] = true.into();
    let open = json!({"type": "object", "properties": {"spec": {"type": "object",
        "x-kubernetes-preserve-unknown-fields": true, "properties": {"open": open}}}});
    let mut open = Subject::new(GROUP, "Open", &open);
    switch(&mut open, "beside unknown fields", ["type", "a", "b"], ["A", "B"], &|mut value| {
        value["unknown"] = json!({"type": "B", "a": [null, {"x": 1}]});
        json!({"spec": {"open": value, "unknown": [1]}})
    });

    // The API server takes no CRD whose schemas have no types, but declarations can stand on such schemas.
    let mut untyped = map_form("type", ["a", "b"], ["A", "B"], &[]);
    untyped.as_object_mut().unwrap().remove("type");
    let mut untyped = Subject::new(GROUP, "Untyped", &json!({"properties": {"spec": {"properties": {"x": untyped}}}}));
    untyped.definition = loose(&untyped.definition);
    switch(&mut untyped, "in schemas without types", ["type", "a", "b"], ["A", "B"], &|it| json!({"spec": {"x": it}}));
    for (about, value) in [("text", json!("x")), ("a list", json!([{"type": "A"}])), ("a number", json!(7))] {
        untyped.write(about, Some(json!({"spec": {"x": {"type": "A", "a": "v"}}})), json!({"spec": {"x": value}}));
        untyped.write(about, Some(json!({"spec": {"x": value}})), json!({"spec": {"x": {"type": "B", "a": "v"}}}));
        untyped.write(about, None, json!({"spec": value}));
        let discriminator = json!({"spec": {"x": {"type": value, "a": "v"}}});
        untyped.write(about, Some(json!({"spec": {"x": {"type": "A", "a": "v"}}})), discriminator);
    }
    let found = differences(native, &[root, open, untyped], &warning());
    assert!(found.is_empty(), "{} writes differ:\n{}", found.len(), found.join("\n"));
}

#[test]
fn a_discriminator_of_two_types_is_refused_by_its_declaration() {
    let mut both = map_form("type", ["a", "b"], ["1", "B"], &[]);
    both["properties"]["type"] = json!({"x-kubernetes-int-or-string": true,
        "x-kubernetes-unions": both["properties"]["type"]["x-kubernetes-unions"]});
    let definition = crd(GROUP, "Both", &[version("v1", &json!({"type": "object", "properties": {"x": both}}), false)]);
    let mut builder = Builder::new();
    builder.apply(Definition::from_json(&definition.to_string()).unwrap());
    let catalog = builder.build();
    let faults: Vec<_> = catalog.faults().iter().map(ToString::to_string).collect();
    let told =
        "boths.names.example v1 x.type: the discriminator `type` must be of type string, it is of no declared type";
    assert_eq!(faults, [told]);
    assert!(compile_all(&catalog, &PolicyOptions::default()).is_empty());
}

#[test]
fn names_that_no_policy_can_carry_are_refused_with_their_place() {
    let union = |name: &str| map_form("type", [name, "b"], ["A", "B"], &[]);
    let place = |number: usize| format!("p{number}");
    let fields = UNPRINTABLE.iter().enumerate().map(|(number, name)| (place(number), union(name)));
    let fields: Map<_, _> = fields.chain([("good".to_owned(), union("a"))]).collect();
    let definition = crd(GROUP, "Unprintable", &[version("v1", &spec(&fields), false)]);
    let catalog = catalog(&[&definition]);
    let [compiled] = &compile_all(&catalog, &PolicyOptions::default())[..] else { panic!("one kind") };
    let refused: Vec<_> =
        compiled.refusals.iter().map(|refusal| (refusal.place.clone(), refusal.reason.clone())).collect();
    let wanted = UNPRINTABLE.iter().enumerate().map(|(number, name)| {
        (Some(format!("spec.{}", place(number))), RefusalReason::UnprintableName((*name).to_owned()))
    });
    assert_eq!(refused, wanted.collect::<Vec<_>>());
    assert!(!compiled.objects.is_empty(), "the other union has its policies");
}

#[test]
fn objects_of_wrong_types_are_refused_by_the_api_server_in_its_own_words() {
    let Some(native) = Native::shared() else { return };
    let item = || map_form("type", ["a", "b"], ["A", "B"], &["name"]);
    let list = json!({"type": "array", "items": item(), "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"]});
    let deducing = list_form(Some("kind"), ["x", "y"], ["X", "Y"]);
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "struct": map_form("type", ["a", "b"], ["A", "B"], &[]), "list": list, "deducing": deducing,
        "map": {"type": "object", "additionalProperties": item()}}}}});
    let mut subject = Subject::new(GROUP, "Typed", &schema);
    let good = json!({"spec": {"struct": {"type": "A", "a": "v"}, "deducing": {"x": "v", "kind": "X"},
        "list": [{"name": "n", "type": "A", "a": "v"}], "map": {"k": {"name": "n", "type": "A", "a": "v"}}}});
    subject.write("in force: mutation", None, json!({"spec": {"deducing": {"x": "v"}}}));
    subject.write("in force: validation", None, json!({"spec": {"struct": {"type": "A", "a": "v", "b": "v"}}}));
    subject.write("in force: let through", Some(good.clone()), good.clone());
    let found = differences(native, std::slice::from_ref(&subject), &warning());
    assert!(found.is_empty(), "{}", found.join("\n"));
    let stored = subject.store(native, "good", &good);
    let pointers = [
        "/spec",
        "/spec/struct",
        "/spec/struct/type",
        "/spec/struct/a",
        "/spec/list",
        "/spec/list/0",
        "/spec/list/0/name",
        "/spec/list/0/type",
        "/spec/map",
        "/spec/map/k",
        "/spec/map/k/a",
        "/spec/deducing",
        "/spec/deducing/kind",
        "/spec/deducing/x",
    ];
    let values = [
        json!("text"),
        json!(7),
        json!(1.5),
        json!(true),
        json!([]),
        json!([[]]),
        json!({}),
        json!({"a": {}}),
        Value::Null,
    ];
    let mut refused = 0;
    for pointer in pointers {
        for value in &values {
            for old in [None, Some(&stored)] {
                let mut new = good.clone();
                *new.pointer_mut(pointer).unwrap() = value.clone();
                let answer = subject.ask(native, old, &new);
                let text = answer.body["message"].as_str().unwrap_or_default();
                let by_policy = text.contains("AdmissionPolicy") || text.contains("CEL") || text.contains("evaluat");
                // A value of the right type may violate the union.
                let is_denial = text.contains("denied request: spec");
                assert!(!by_policy || is_denial, "{pointer} = {value}: {text}");
                assert!(answer.status < 500, "{pointer} = {value}: {text}");
                refused += usize::from(!answer.is_success() && !is_denial);
            }
        }
    }
    assert!(refused > 100, "only {refused} objects were refused");
}

#[test]
fn long_names_of_kinds_lead_to_names_of_policies_that_work() {
    let Some(native) = Native::shared() else { return };
    let group = format!("{}.{}.names.example", "g".repeat(63), "h".repeat(63));
    let schema = json!({"type": "object", "properties": {"spec": map_form("type", ["a", "b"], ["A", "B"], &[])}});
    let subjects = ["x", "y"].map(|end| {
        let kind = format!("K{}{end}", "k".repeat(57));
        let mut subject = Subject::new(&group, &kind, &schema);
        switch(&mut subject, "long names", ["type", "a", "b"], ["A", "B"], &|value| json!({"spec": value}));
        subject
    });
    let found = differences(native, &subjects, &warning());
    assert!(found.is_empty(), "{}", found.join("\n"));
    let objects = subjects.iter().flat_map(|it| compile_all(&it.catalog, &warning()));
    let names: BTreeSet<_> =
        objects.flat_map(|it| it.objects.iter().map(|object| object.name().to_owned()).collect::<Vec<_>>()).collect();
    assert_eq!(names.len(), 2 * 3, "{names:?}");
    assert!(names.iter().all(|name| name.contains(&group) && name.len() <= 253), "{names:?}");
}
