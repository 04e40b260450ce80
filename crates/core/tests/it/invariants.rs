//! The invariants of unions on generated schemas and objects.

use crate::unions::{catalog_of_lifted, fields};
use fixtures::laws::admit_lawfully;
use fixtures::reviews::{Answer, Verdict, Write, admit, thing};
use kube_unions_core::admission::Ratcheting;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Returns a new object that shares much with the old one, like most updates.
fn mixed(old: &Value, fresh: &Value, choices: &mut impl Iterator<Item = u8>) -> Value {
    match (choices.next().unwrap_or(7) % 8, old, fresh) {
        (0, _, _) => old.clone(),
        (1, _, _) => fresh.clone(),
        (_, Value::Object(old), Value::Object(fresh)) => {
            let names: BTreeSet<_> = old.keys().chain(fresh.keys()).collect();
            let mut object = Map::new();
            for name in names {
                match (old.get(name), fresh.get(name)) {
                    (Some(old), Some(fresh)) => drop(object.insert(name.clone(), mixed(old, fresh, choices))),
                    // Most clients keep fields that they do not change.
                    (Some(one), None) | (None, Some(one)) if !choices.next().unwrap_or(1).is_multiple_of(4) => {
                        object.insert(name.clone(), one.clone());
                    }
                    _ => {}
                }
            }
            Value::Object(object)
        }
        (way, Value::Array(old), Value::Array(fresh)) => {
            let mut items: Vec<_> = old.iter().zip(fresh).map(|(old, fresh)| mixed(old, fresh, choices)).collect();
            items.extend(old.iter().skip(fresh.len()).chain(fresh.iter().skip(old.len())).cloned());
            if way == 2 {
                items.reverse();
            }
            Value::Array(items)
        }
        _ => fresh.clone(),
    }
}

fn schema_and_objects() -> impl Strategy<Value = (Value, Value, Value)> {
    fields(2, 1..4).prop_flat_map(|fields| {
        let schema = json!({"type": "object", "properties": {"spec": fields.schema()}});
        let choices = vec(any::<u8>(), 256);
        (Just(schema), fields.value(true), fields.value(true), choices).prop_map(|(schema, old, fresh, choices)| {
            let new = mixed(&old, &fresh, &mut choices.into_iter());
            (schema, json!({"spec": old}), json!({"spec": new}))
        })
    })
}

fn without_regressions() -> ProptestConfig {
    // A failure becomes a row of `tests/cases` with the expected result.
    ProptestConfig { failure_persistence: None, cases: 800, ..ProptestConfig::default() }
}

/// Checks that only members of unions are removed, and only discriminators of the 2019 form are set.
fn touches_unions_only(answer: &Answer) {
    for operation in &answer.operations {
        let name = operation["path"].as_str().unwrap().rsplit('/').next().unwrap();
        match operation["op"].as_str().unwrap() {
            "remove" => assert!(name.starts_with(['l', 'm']) && name.ends_with(char::is_numeric), "{operation}"),
            "add" | "replace" => assert_eq!(name, "lt", "{operation}"),
            other => panic!("`{other}` is not called for"),
        }
    }
}

proptest! {
    #![proptest_config(without_regressions())]

    #[test]
    fn any_write_of_any_schema_is_answered_by_the_laws((schema, old, new) in schema_and_objects(), ratchet in any::<bool>()) {
        let catalog = catalog_of_lifted(schema);
        let ratcheting = if ratchet { Ratcheting::Enabled } else { Ratcheting::Disabled };
        for write in [Write::new(Some(thing(&old)), thing(&new)), Write::new(None, thing(&new))] {
            let answer = admit_lawfully(&catalog, &Write { ratcheting, ..write.clone() });
            touches_unions_only(&answer);
            if write.old.is_none() {
                prop_assert!(answer.operations.iter().all(|operation| operation["op"] != "remove"), "nothing is cleared on a create");
            }
        }
        // Without ratcheting, violations that ratcheting lets through are denied. Other results are equal.
        let lenient = admit(&catalog, &Write::new(Some(thing(&old)), thing(&new)));
        let strict = admit(&catalog, &Write { ratcheting: Ratcheting::Disabled, ..Write::new(Some(thing(&old)), thing(&new)) });
        let let_through = lenient.warnings.len() != lenient.changes().count();
        match (&lenient.verdict, &strict.verdict) {
            (Verdict::Allowed(_), Verdict::Allowed(_)) => prop_assert_eq!(&lenient, &strict),
            (Verdict::Allowed(_), Verdict::Denied(_)) => prop_assert!(let_through, "{:?}", lenient),
            (Verdict::Denied(some), Verdict::Denied(all)) => prop_assert!(some.iter().all(|cause| all.contains(cause))),
            (Verdict::Denied(_), Verdict::Allowed(_)) => prop_assert!(false, "ratcheting never denies: {:?}", lenient),
        }
    }
}
