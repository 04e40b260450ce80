//! The law of applies: a manifest that is applied again changes nothing. Either every apply is refused for the same reasons, or the
//! first is stored and no later one changes the object.

use crate::unions::{Fields, catalog_of_lifted, fields};
use fixtures::applies::Applied;
use fixtures::laws::admit_lawfully;
use fixtures::reviews::{Answer, Verdict, thing};
use kube_unions_core::catalog::Catalog;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value, json};

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

impl Apply {
    /// Applies the manifest, and stores the object if it is let through.
    fn play(&self, stored: &mut Applied, catalog: &Catalog, fill_in: impl Fn(&mut Value)) -> Answer {
        let (mut next, mut write) = match self.way {
            Way::ClientSide => stored.client_side(&self.manifest),
            Way::ServerSide(manager) => stored.server_side(manager, &self.manifest),
        };
        fill_in(write.new.as_mut().expect("an apply has an object"));
        let answer = admit_lawfully(catalog, &write);
        if let Verdict::Allowed(Some(object)) = &answer.verdict {
            next.store(object.clone());
            *stored = next;
        }
        answer
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
    (way, fields.value(false)).prop_map(|(way, spec)| Apply { way, manifest: thing(&json!({"spec": spec})) })
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
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn a_manifest_that_is_applied_again_changes_nothing(
        (schema, mut object, applies) in sequences(),
        default in option::of(prop::sample::select(vec!["V1", "None"])),
    ) {
        let fill_in = |object: &mut Value| default.into_iter().for_each(|default| fill_in(&schema, object, default));
        let catalog = catalog_of_lifted(schema.clone());
        fill_in(&mut object);
        let mut stored = Applied::new(object);
        let (apply, before) = applies.split_last().unwrap();
        for earlier in before {
            earlier.play(&mut stored, &catalog, fill_in);
        }
        let first = apply.play(&mut stored, &catalog, fill_in);
        let after = stored.object().clone();
        for number in 2..=4 {
            let again = apply.play(&mut stored, &catalog, fill_in);
            match &first.verdict {
                Verdict::Denied(_) => prop_assert_eq!(&again.verdict, &first.verdict, "apply {}", number),
                Verdict::Allowed(_) => {
                    prop_assert!(matches!(again.verdict, Verdict::Allowed(_)), "apply {}: {:?}", number, again);
                    prop_assert_eq!(stored.object(), &after, "apply {}", number);
                }
            }
        }
    }
}
