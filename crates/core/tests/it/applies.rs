//! The law of applies: a manifest that is applied again changes nothing. Either every apply is refused for the same reasons, or the
//! first is stored and no later one changes the object.

use crate::unions::{Fields, catalog_of_lifted, fields};
use fixtures::applies::{Applied, coerced};
use fixtures::laws::admit_lawfully;
use fixtures::reviews::{Cause, Verdict, Write, thing};
use kube_unions_core::catalog::Catalog;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::{Value, json};
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

/// The times that a manifest is applied.
const APPLIES: usize = 4;

/// The seed of the cases: that of `KUBE_UNIONS_LAW_SEED`, or a random one. A failure prints it.
static SEED: LazyLock<u64> = LazyLock::new(|| {
    let random = |_| RandomState::new().hash_one(());
    std::env::var("KUBE_UNIONS_LAW_SEED").map_or_else(random, |text| text.parse().expect("a number"))
});

#[derive(Debug, Clone)]
struct Apply {
    way: Way,
    manifest: Value,
}

#[derive(Debug, Clone, Copy)]
enum Way {
    ClientSide,
    ServerSide(&'static str),
}

/// The schema of a kind, its unions if they are enforced, and the default of each discriminator.
struct Kind {
    schema: Value,
    catalog: Option<Catalog>,
    default: Option<&'static str>,
    /// True if another webhook patches every object.
    is_patched: bool,
}

/// The result of an apply.
#[derive(Debug, Clone, PartialEq)]
enum Round {
    Stored(Value),
    Refused(Vec<Cause>),
    /// The schema refuses a null.
    Misfit,
}

impl Apply {
    /// Applies the manifest, and stores the object if it is let through.
    fn play(&self, stored: &mut Applied, kind: &Kind) -> Round {
        let (mut next, mut write) = match self.way {
            Way::ClientSide => stored.client_side(&self.manifest),
            Way::ServerSide(manager) => stored.server_side(manager, &self.manifest),
        };
        let object = write.new.as_mut().expect("an apply has an object");
        kind.fill_in(object);
        let sent = object.clone();
        let mut admitted = match kind.catalog.as_ref().map(|catalog| admit_lawfully(catalog, &write).verdict) {
            None => sent.clone(),
            Some(Verdict::Allowed(object)) => object.expect("an apply has an object"),
            Some(Verdict::Denied(causes)) => return Round::Refused(causes),
        };
        if kind.is_patched || admitted != sent {
            admitted = coerced(&kind.schema, &admitted);
        }
        if coerced(&kind.schema, &admitted["spec"]) != admitted["spec"] {
            return Round::Misfit;
        }
        next.store(admitted);
        *stored = next;
        Round::Stored(stored.object().clone())
    }

    /// Applies the manifest several times.
    fn repeat(&self, mut stored: Applied, kind: &Kind) -> Vec<Round> {
        (0..APPLIES).map(|_| self.play(&mut stored, kind)).collect()
    }
}

impl Kind {
    fn fill_in(&self, object: &mut Value) {
        self.default.into_iter().for_each(|default| fill_in(&self.schema, object, default));
    }
}

/// Returns true if each apply is refused for the same reason, or the first is stored and no later one changes the object.
fn is_lawful(rounds: &[Round]) -> bool {
    rounds.windows(2).all(|pair| pair[0] == pair[1])
}

/// Returns true for the exception: an apply clears a member with what others put into it, and the next one has the empty value of the
/// manifest again, which counts as not set. It is stored, unless a union inside the empty value requires a choice.
fn has_empty_members_again(rounds: &[Round], schema: &Value) -> bool {
    let [Round::Stored(first), later @ ..] = rounds else { return false };
    is_lawful(later)
        && match later.first() {
            Some(Round::Stored(second)) => without_unset(schema, first) == without_unset(schema, second),
            Some(Round::Refused(causes)) => causes.iter().all(|cause| {
                let unset = unset_if_empty(&schema["properties"]["spec"]);
                cause.reason == "FieldValueRequired"
                    && cause.field.split('.').nth(1).is_some_and(|it| unset.contains(&it))
            }),
            Some(Round::Misfit) | None => false,
        }
}

/// Returns the members of the unions of an object whose empty values count as not set.
fn unset_if_empty(schema: &Value) -> Vec<&str> {
    let unions = schema["x-kubernetes-unions"].as_array().into_iter().flatten();
    let unions =
        unions.chain(schema["properties"].as_object().into_iter().flatten().map(|(_, it)| &it["x-kubernetes-unions"]));
    unions.filter_map(|union| union.get("emptyIsUnset")?.as_array()).flatten().filter_map(Value::as_str).collect()
}

/// Returns a value without the members that count as not set, because they are empty.
fn without_unset(schema: &Value, value: &Value) -> Value {
    let unset = unset_if_empty(schema);
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, value)| !(unset.contains(&&***name) && [json!(""), json!([]), json!({})].contains(value)))
            .map(|(name, value)| {
                let property = schema["properties"].get(name).unwrap_or(&schema["additionalProperties"]);
                (name.clone(), without_unset(property, value))
            })
            .collect(),
        Value::Array(items) => items.iter().map(|item| without_unset(&schema["items"], item)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Fills in the default of each discriminator, as the API server does before admission.
fn fill_in(schema: &Value, value: &mut Value, default: &str) {
    match value {
        Value::Object(fields) => {
            for name in ["lt", "mt"].into_iter().filter(|name| schema["properties"][name].is_object()) {
                fields.entry(name).or_insert(json!(default));
            }
            for (name, value) in fields {
                let property = schema["properties"].get(name).unwrap_or(&schema["additionalProperties"]);
                fill_in(property, value, default);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill_in(&schema["items"], item, default)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn applies(fields: &Fields) -> impl Strategy<Value = Apply> + use<> {
    let way = prop_oneof![Just(Way::ClientSide), Just(Way::ServerSide("one")), Just(Way::ServerSide("two"))];
    // A manifest that sets nothing but empty lists is not in `managedFields`.
    let manifest = |spec: Value| thing(&json!({"note": "x", "spec": spec}));
    (way, fields.value(false)).prop_map(move |(way, spec)| Apply { way, manifest: manifest(spec) })
}

/// Returns a schema, an object that was stored before its unions were declared, perhaps with a fault, and applies to it.
fn sequences() -> impl Strategy<Value = (Value, Value, Vec<Apply>)> {
    fields(1, 1..4).prop_flat_map(|fields| {
        let schema = json!({"type": "object", "properties": {"spec": fields.schema()}});
        let first = fields.value(false).prop_map(|spec| thing(&json!({"spec": spec})));
        (Just(schema), first, vec(applies(&fields), 1..4))
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(*SEED),
        ..ProptestConfig::with_cases(600)
    })]

    #[test]
    fn a_manifest_that_is_applied_again_changes_nothing(
        (schema, mut object, applies) in sequences(),
        default in option::of(prop::sample::select(vec!["V1", "None"])),
    ) {
        let kind = Kind { catalog: Some(catalog_of_lifted(schema.clone())), schema, default, is_patched: false };
        kind.fill_in(&mut object);
        let mut stored = Applied::new(kind.schema.clone(), object);
        let (apply, before) = applies.split_last().unwrap();
        for earlier in before {
            earlier.play(&mut stored, &kind);
        }
        let rounds = apply.repeat(stored.clone(), &kind);
        let holds = is_lawful(&rounds) || has_empty_members_again(&rounds, &kind.schema);
        // An API server without unions breaks the law, too: of a list with items of the manifest before, an apply of an empty one
        // leaves nothing or a null, and the next one the empty list. If any webhook patches the object, the null is gone. An empty object
        // of the manifest in which nobody owns anything is removed at the next apply.
        let mut first = stored.clone();
        apply.play(&mut first, &kind);
        let alone = Kind { catalog: None, ..kind };
        // If the union has cleared what others owned, it happens from the second apply on, to which unions add nothing.
        let later = apply.repeat(first, &alone);
        let is_alone = !is_lawful(&later) && later.starts_with(rounds.get(1..).unwrap_or_default());
        let holds = holds || is_alone || !is_lawful(&apply.repeat(stored.clone(), &alone)) || {
            let patched = Kind { default: Some("V1"), is_patched: true, ..alone };
            !is_lawful(&apply.repeat(stored.clone(), &patched))
        };
        prop_assert!(holds, "KUBE_UNIONS_LAW_SEED={}\n{:#?}\n{:#?}\n{:#?}", *SEED, stored, apply, rounds);
    }
}

/// A field manager that sets nothing but empty lists has no entry in `managedFields`.
#[test]
fn a_manifest_of_empty_lists_alone_switches_nothing() {
    let (object, set) = (
        json!({"type": "object", "properties": {"x": {"type": "string"}, "l": {"type": "array", "items": {"type": "string"},
            "x-kubernetes-list-type": "set"}}}),
        json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
    );
    let spec = json!({"type": "object", "properties": {"other": {"type": "string"}, "a": object, "b": set, "c": set},
        "x-kubernetes-unions": [{"fields-to-discriminateBy": {"a": "A", "b": "B", "c": "C"}}]});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let kind = Kind { catalog: Some(catalog_of_lifted(schema.clone())), schema, default: None, is_patched: false };
    let apply = |way, spec: Value| Apply { way, manifest: thing(&json!({"spec": spec})) };
    let somebody = |spec| apply(Way::ServerSide("two"), spec);
    let own = |spec| apply(Way::ServerSide("one"), spec);
    let (a, other) = (json!({"a": {"x": "v"}}), json!({"other": "v"}));
    for (before, manifest, expected) in [
        (vec![somebody(a.clone())], json!({"b": [], "c": []}), a.clone()),
        (vec![somebody(json!({"other": "v", "b": []}))], json!({"b": [], "c": []}), json!({"other": "v", "b": []})),
        (vec![somebody(json!({"b": ["v"]}))], json!({"a": {"l": []}, "c": []}), json!({"b": ["v"]})),
        (vec![somebody(other.clone()), own(a)], json!({"b": [], "c": []}), other),
        (vec![somebody(json!({"other": "v"}))], json!({"b": []}), json!({"other": "v", "b": []})),
    ] {
        let mut stored = Applied::new(kind.schema.clone(), thing(&json!({"spec": {}})));
        for earlier in &before {
            assert!(matches!(earlier.play(&mut stored, &kind), Round::Stored(_)), "{before:?}");
        }
        let rounds = own(manifest).repeat(stored, &kind);
        assert_eq!(rounds, vec![Round::Stored(thing(&json!({"spec": expected}))); APPLIES], "{before:?}");
    }
}

/// Without an old object, a violation names all members but the first, whether the discriminator has a default or not.
#[test]
fn members_that_are_created_beside_a_default_are_blamed_like_those_without() {
    let text = json!({"type": "string"});
    let object = json!({"type": "object", "properties": {"x": text}});
    for (default, members, blamed) in [
        (None, json!({"a": {"x": "v"}, "n": {"x": "v"}}), vec!["spec.u.n"]),
        (Some("None"), json!({"a": {"x": "v"}, "n": {"x": "v"}}), vec!["spec.u.n"]),
        (Some("V1"), json!({"a": {"x": "v"}, "n": {"x": "v"}}), vec!["spec.u.n"]),
        (Some("V2"), json!({"a": {"x": "v"}, "n": {"x": "v"}}), vec!["spec.u.n"]),
        (Some("None"), json!({"a": {"x": "v"}, "n": {"x": "v"}, "o": {"x": "v"}}), vec!["spec.u.n", "spec.u.o"]),
    ] {
        let union = json!({"type": "object", "properties": {"lt": text, "a": object, "n": object, "o": object},
            "x-kubernetes-unions": [{"discriminator": "lt", "fields-to-discriminateBy": {"a": "V1", "n": "V2", "o": "V3"}}]});
        let spec = json!({"type": "object", "properties": {"u": union}});
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        let kind = Kind { catalog: Some(catalog_of_lifted(schema.clone())), schema, default, is_patched: false };
        let stored = Applied::new(kind.schema.clone(), thing(&json!({"spec": {}})));
        let manifest = thing(&json!({"spec": {"u": members}}));
        for round in (Apply { way: Way::ServerSide("one"), manifest }).repeat(stored, &kind) {
            let Round::Refused(causes) = round else { panic!("{default:?} {members}: {round:?}") };
            assert_eq!(causes.iter().map(|cause| &*cause.field).collect::<Vec<_>>(), blamed, "{default:?} {members}");
        }
    }
}

/// An update leaves no entry in `managedFields` where the API server keeps none for updates, or merges those of several field managers.
#[test]
fn an_update_that_may_have_an_owner_switches_to_a_list() {
    let set = json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"});
    let union = json!({"type": "object", "properties": {"a": {"type": "string"}, "s": set},
        "x-kubernetes-unions": [{"fields-to-discriminateBy": {"a": "A", "s": "S"}}]});
    let catalog = catalog_of_lifted(json!({"type": "object", "properties": {"spec": union}}));
    let entry = |manager: &str| {
        json!({"manager": manager, "operation": "Update", "apiVersion": "cases.example.com/v1",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:a": {}}}})
    };
    let of_status = |mut entry: Value| {
        entry["subresource"] = json!("status");
        entry
    };
    for (entries, manager, switches) in [
        (json!(null), Some("own"), true),
        (json!([]), Some("own"), true),
        (json!([entry("two"), entry("ancient-changes")]), Some("own"), true),
        (json!([entry("two"), of_status(entry("ancient-changes"))]), Some("own"), true),
        (json!([entry("two"), of_status(entry("own"))]), Some("own"), false),
        (json!([entry("two"), entry("own")]), Some("own"), true),
        (json!([entry("two")]), None, true),
        (json!([entry("two")]), Some(""), true),
        (json!([entry("two")]), Some("kubectl-patch"), true),
        (json!([entry("two")]), Some("own"), false),
    ] {
        let object = |spec: Value| {
            let mut object = thing(&json!({"spec": spec}));
            object["metadata"]["managedFields"] = entries.clone();
            object
        };
        let write = Write {
            field_manager: manager.map(str::to_owned),
            ..Write::new(Some(object(json!({"a": "v"}))), object(json!({"a": "v", "s": ["v"]})))
        };
        let Verdict::Allowed(Some(stored)) = admit_lawfully(&catalog, &write).verdict else { panic!("{entries}") };
        let expected = if switches { json!({"s": ["v"]}) } else { json!({"a": "v"}) };
        assert_eq!(stored["spec"], expected, "{entries} {manager:?}");
    }
}
