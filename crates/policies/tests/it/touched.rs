//! The conditions of entries: `touched.txt` has them as they are compiled. The laws of every review hold each to its promise.

use super::rows::kinds;
use super::{catalog, declared, thing, union};
use fixtures::cel::check_policy;
use fixtures::crds::{crd, version};
use fixtures::dice::Dice;
use fixtures::files::assert_generated;
use fixtures::kinds::{GeneratedKind, KINDS};
use fixtures::reviews::thing as object;
use fixtures::skips::{condition_of, is_sent};
use kube_unions_core::catalog::Catalog;
use kube_unions_policies::{EveryWrite, TouchCondition};
use serde_json::{Value, json};

fn condition(catalog: &Catalog) -> Result<TouchCondition, EveryWrite> {
    TouchCondition::of(catalog.entries().iter().map(|entry| &**entry.plan()))
}

#[track_caller]
fn expression(catalog: &Catalog) -> String {
    let condition = condition(catalog).unwrap();
    let policy = json!({"metadata": {"name": "it"},
        "spec": {"matchConditions": [{"name": "it", "expression": condition.expression()}]}});
    check_policy(&policy).unwrap_or_else(|error| panic!("{error}"));
    condition.expression().to_owned()
}

#[test]
fn each_kind_of_place_has_its_condition() {
    let mut all = String::new();
    let mut known = Vec::new();
    for (title, _, catalog) in kinds() {
        let text =
            condition(&catalog).map_or_else(|why| format!("every write is sent: {why}"), |_| expression(&catalog));
        if !known.contains(&title) {
            all.extend([format!("# {title}\n\n{text}\n\n")]);
            known.push(title);
        }
    }
    let command = "KUBE_UNIONS_UPDATE=1 cargo test --locked -p kube-unions-policies --test it touched::";
    assert_generated("crates/policies/tests/it/touched.txt", &all, command);
}

/// Rows: the old and the new object of the kind `Thing`, and whether the API server calls.
#[test]
fn an_update_is_sent_if_it_touches_a_union() {
    let keyed = |item: Value| {
        let mut item = item;
        item["properties"]["name"] = json!({"type": "string"});
        item["properties"]["image"] = json!({"type": "string"});
        item["required"] = json!(["name"]);
        json!({"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]})
    };
    let catalog = thing(&json!({"x": union(), "list": keyed(union())}));
    let condition = expression(&catalog);
    let item = |fields: Value| json!({"spec": {"list": [fields]}});
    for (old, new, want) in [
        (json!({"spec": {"n": 1}}), json!({"spec": {"n": 2}}), false),
        (json!({"spec": {"x": {"type": "A", "a": {}}}}), json!({"spec": {"x": {"type": "A", "a": {}, "n": 1}}}), false),
        (json!({"spec": {"x": {"type": "A", "a": {}}}}), json!({"spec": {"x": {"type": "B", "a": {}}}}), true),
        (json!({"spec": {"x": {"type": "A", "a": {}}}}), json!({"spec": {"x": {"type": "A"}}}), true),
        (json!({"spec": {}}), json!({"spec": {"x": {}}}), true),
        (json!({"spec": {}}), json!({"spec": {"x": "text"}}), true),
        (json!({"spec": {"x": {"a": {}}}}), json!({"spec": {"x": "text"}}), true),
        (json!({"spec": {}}), json!({"spec": "text"}), true),
        (item(json!({"name": "n", "image": "1"})), item(json!({"name": "n", "image": "2"})), false),
        (item(json!({"name": "n", "type": "A"})), item(json!({"name": "m", "type": "A"})), true),
        (item(json!({"name": "n", "type": "A"})), item(json!({"name": "n", "type": "B"})), true),
        (item(json!({"name": "n"})), json!({"spec": {"list": {"name": "n"}}}), true),
        (item(json!({"name": "n"})), item(json!(null)), true),
    ] {
        let sent = |new: &Value, old: &Value| is_sent(&condition, "UPDATE", &object(new), &object(old));
        assert_eq!([sent(&new, &old), sent(&old, &new)], [want, want], "{old} and {new}");
        assert!(!sent(&new, &new) && !sent(&old, &old), "{old} and {new}");
        assert!(is_sent(&condition, "CREATE", &object(&new), &Value::Null));
    }
}

/// Lists in lists are compared as a whole: the order of their items tells which is which.
#[test]
fn a_union_four_lists_deep_is_seen() {
    let nest = |inner: Value, list: &dyn Fn(Value) -> Value| (0..4).fold(inner, |inner, _| list(inner));
    let schema = nest(union(), &|inner| {
        let fields = json!({"list": {"type": "array", "items": inner}, "n": {"type": "integer"}});
        json!({"type": "object", "properties": fields})
    });
    let condition = expression(&thing(&json!({"x": schema})));
    let at =
        |fields: Value| json!({"spec": {"x": nest(fields, &|inner| json!({"list": [{}, inner], "n": 1})), "n": 1}});
    let sent = |new: &Value, old: &Value| is_sent(&condition, "UPDATE", &object(new), &object(old));
    let old = at(json!({"type": "A", "a": {}}));
    for (new, want) in
        [(at(json!({"type": "B", "a": {}})), true), (at(json!({"type": "A"})), true), (at(json!([])), true)]
    {
        assert_eq!([sent(&new, &old), sent(&old, &new)], [want, want], "{new}");
    }
    let mut beside = old.clone();
    (beside["spec"]["n"], beside["spec"]["x"]["n"]) = (json!(2), json!(2));
    assert!(!sent(&beside, &old) && !sent(&old, &old), "{condition}");
}

#[test]
fn each_of_128_members_is_seen() {
    let names: Vec<String> = (0..128).map(|number| format!("member{number}")).collect();
    let fields = |value: &dyn Fn(&str) -> Value| -> Value {
        names.iter().map(|name| (name.clone(), value(name))).collect::<serde_json::Map<_, _>>().into()
    };
    let union = json!({"type": "object", "properties": fields(&|_| json!({"type": "object"})),
        "x-kubernetes-unions": [{"fields-to-discriminateBy": fields(&|name| json!(name.to_uppercase()))}]});
    let condition = expression(&thing(&json!({"x": union, "list": {"type": "array", "items": union}})));
    assert!(condition.contains("size() > 64"), "it looks into the list: {condition}");
    for name in &names {
        for place in [json!({"x": {name.clone(): {}}}), json!({"list": [{name.clone(): {}}]})] {
            let [old, new] = [json!({"x": {}, "list": [{}]}), place].map(|spec| object(&json!({"spec": spec})));
            assert!(is_sent(&condition, "UPDATE", &new, &old) && is_sent(&condition, "UPDATE", &old, &new), "{name}");
        }
    }
}

/// An apply of what is stored deduces a discriminator that is missing there.
#[test]
fn a_discriminator_that_is_to_be_deduced_is_seen_in_an_unchanged_object() {
    let list = json!({"type": "array", "items": {"type": "object", "properties": deduced()["properties"],
        "x-kubernetes-unions": deduced()["x-kubernetes-unions"]}});
    let catalog = thing(&json!({"x": deduced(), "list": list}));
    let condition = expression(&catalog);
    let many = |fields: Value| json!({"spec": {"list": vec![fields; 65]}});
    for (fields, want) in [
        (json!({"spec": {"x": {"a": {}}}}), true),
        (json!({"spec": {"x": {"kind": "A", "a": {}}}}), false),
        (json!({"spec": {"x": {"kind": "B", "a": {}}}}), true),
        (json!({"spec": {"x": {"kind": 5, "a": null}}}), false),
        (json!({"spec": {"list": [{"kind": "A", "a": {}}, {"b": {}}]}}), true),
        (json!({"spec": {"list": [{"kind": "A", "a": {}}, {"b": null}]}}), false),
        (many(json!({"kind": "A", "a": {}})), true),
    ] {
        assert_eq!(is_sent(&condition, "UPDATE", &object(&fields), &object(&fields)), want, "{fields}");
    }
}

/// Returns an object with a union of the 2019 form whose discriminator is deduced.
fn deduced() -> Value {
    let text = json!({"type": "string"});
    json!({"type": "object", "properties": {"kind": text, "a": {"type": "object"}, "b": {"type": "object"}},
        "x-kubernetes-unions": [{"discriminator": "kind", "fields-to-discriminateBy": {"a": "A", "b": "B"}}]})
}

#[test]
fn every_write_is_sent_where_a_condition_would_miss_something() {
    let map = json!({"type": "object", "additionalProperties": deduced()});
    assert_eq!(condition(&thing(&json!({"map": map}))), Err(EveryWrite::Deduced));
    let audits = |actions: Value| condition(&declared(&[("one", json!({"validationActions": actions}))]));
    assert!(audits(json!(["Warn"])).is_ok() && audits(json!(["Deny"])).is_ok());
    for actions in [json!(["Audit"]), json!(["Deny", "Audit"]), json!(["Warn", "Audit"])] {
        assert_eq!(audits(actions), Err(EveryWrite::Audited));
    }
}

/// A kind with a great many unions is compared by the fields of its root.
#[test]
fn a_condition_is_bounded() {
    let coarse = "request.operation == \"CREATE\" || object.?spec != oldObject.?spec";
    let many = |count: usize, of: &dyn Fn(String) -> Value| {
        let fields =
            (0..count).map(|number| (format!("a-field-with-a-long-name-{number}"), of(format!("member-{number}"))));
        expression(&thing(&Value::Object(fields.collect())))
    };
    let union_of = |member: String| {
        json!({"type": "object", "properties": {member.clone(): {"type": "object"}, "b": {"type": "object"}},
            "x-kubernetes-unions": [{"fields-to-discriminateBy": {member: "A", "b": "B"}}]})
    };
    let list_of = |member: String| json!({"type": "array", "items": union_of(member)});
    assert_ne!(many(20, &union_of), coarse);
    assert_eq!(many(400, &union_of), coarse, "it would be too long");
    assert_ne!(many(10, &list_of), coarse);
    assert_eq!(many(100, &list_of), coarse, "it would cost too much");
    let lists = (0..100).map(|number| (format!("list-{number}"), json!({"type": "array", "items": deduced()})));
    let lists = condition(&thing(&Value::Object(lists.collect())));
    assert_eq!(lists.err(), Some(EveryWrite::TooMany), "fields of the root do not tell what is to be deduced");
    let roots: Vec<String> = (0..200).map(|number| format!("root-{number}")).collect();
    assert_eq!(TouchCondition::of_fields(roots.into_iter().collect()), None);
}

/// Versions of a kind have one condition, whichever was sent.
#[test]
fn a_condition_covers_every_version_and_subresource() {
    let schema = |field: &str, node: Value| json!({"type": "object", "properties": {field: {"type": "object", "properties": {"x": node}}}});
    let list = json!({"type": "array", "items": union()});
    let versions = [
        version("v1", &schema("spec", union())),
        version("v2", &schema("spec", list)),
        version("v3", &schema("status", union())),
    ];
    let condition = expression(&catalog([crd("example.com", "Thing", &versions)]));
    for (old, new) in [
        (json!({"spec": {"x": {}}}), json!({"spec": {"x": {"type": "A"}}})),
        (json!({"spec": {"x": [{}]}}), json!({"spec": {"x": [{"type": "A"}]}})),
        (json!({"status": {"x": {}}}), json!({"status": {"x": {"type": "A"}}})),
    ] {
        assert!(is_sent(&condition, "UPDATE", &object(&new), &object(&old)), "{old} and {new}");
    }
    assert!(!is_sent(&condition, "UPDATE", &object(&json!({"spec": {"y": 1}})), &object(&json!({"spec": {"y": 2}}))));
}

/// Conditions of generated kinds never fail: whatever the type of each value.
#[test]
fn no_condition_fails_on_values_of_wrong_types() {
    let mut dice = Dice(7);
    for (title, _, catalog) in kinds() {
        let gvk = catalog.entries()[0].gvk();
        let base = json!({"apiVersion": gvk.api_version(), "kind": *gvk.kind, "metadata": {"name": "x"}});
        let Some(condition) = condition_of(&catalog, &base) else { continue };
        for _ in 0..200 {
            let [new, old] = [(); 2].map(|()| {
                let mut object = base.clone();
                object["spec"] = anything(&mut dice, 5);
                object
            });
            for (new, old) in [(&new, &old), (&new, &new)] {
                let sent = is_sent(condition.expression(), "UPDATE", new, old);
                assert!(sent || new == old || new["spec"] != old["spec"], "{title}");
            }
        }
    }
}

/// `KUBE_UNIONS_KINDS_SEED` selects other names.
#[test]
fn conditions_of_generated_kinds_have_the_types_that_an_api_server_wants_and_never_fail() {
    let seed = std::env::var("KUBE_UNIONS_KINDS_SEED").ok().map_or(1, |seed| seed.parse().unwrap());
    let (mut dice, mut conditions, mut coarse) = (Dice(seed), 0, 0);
    for kind in GeneratedKind::all("types.example", seed) {
        let catalog = kind.catalog();
        if condition(&catalog).is_err() {
            continue;
        }
        let condition = expression(&catalog);
        conditions += 1;
        coarse += usize::from(!condition.contains("both"));
        for _ in 0..4 {
            let [new, old] = [(); 2].map(|()| {
                let fields = ["spec", "status", "a", "kind"].map(|name| (name.to_owned(), anything(&mut dice, 4)));
                Value::Object(fields.into_iter().collect())
            });
            is_sent(&condition, "UPDATE", &new, &old);
            is_sent(&condition, "UPDATE", &new, &new);
        }
    }
    println!("seed {seed}: {KINDS} kinds, {conditions} conditions, {coarse} compare fields of the root");
    assert!(conditions > KINDS / 2, "{conditions}");
}

/// Returns any value, with names of fields that kinds have.
fn anything(dice: &mut Dice, depth: usize) -> Value {
    const NAMES: [&str; 15] =
        ["a", "b", "kind", "list", "map", "name", "one", "p", "port", "q", "single", "spec", "u", "whole", "x"];
    match dice.below(if depth == 0 { 6 } else { 12 }) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(-3),
        3 => json!(0.5),
        4 => json!("A"),
        5 => json!(u64::MAX),
        6 | 7 => (0..dice.below(4)).map(|_| anything(dice, depth - 1)).collect(),
        _ => Value::Object(
            (0..dice.below(5)).map(|_| ((*dice.pick(&NAMES)).to_owned(), anything(dice, depth - 1))).collect(),
        ),
    }
}
