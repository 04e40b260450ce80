//! The declarations of the rows with random changes. Each union is in force or has a fault.

use super::{Case, Suite};
use fixtures::dice::Dice;
use fixtures::reviews::{GROUP, declaration};
use kube_unions_core::catalog::{Builder, Catalog};
use kube_unions_core::declaration::{Declaration, Definition, Place, Severity, UnionDeclarationSpec};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::LazyLock;

/// The rows about declarations of a kind with one version.
static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| {
    let cases = Suite::all().flat_map(|(_, cases)| cases);
    cases.filter(|case| case.schema.is_some() && !case.declarations().is_empty()).collect()
});

const WORDS: [&str; 22] = [
    "a", "b", "c", "type", "kind", "A", "B", "", "*", "é", "v1", "v2", "spec", "spec.a", "list[*]", "map.*", ".",
    "[0]", "[\"a\"]", "[\"", "status", "Thing",
];

/// Changes a part of a value: another word, without it, or twice.
fn change(dice: &mut Dice, value: &mut Value) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let name = fields.keys().nth(dice.below(fields.len())).unwrap().clone();
            match dice.below(8) {
                0 => drop(fields.remove(&name)),
                1 => drop(fields.insert((*dice.pick(&WORDS)).to_owned(), fields[&name].clone())),
                _ => change(dice, &mut fields[&name]),
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let at = dice.below(items.len());
            match dice.below(8) {
                0 => drop(items.remove(at)),
                1 => items.push(items[at].clone()),
                _ => change(dice, &mut items[at]),
            }
        }
        Value::Bool(flag) => *flag = !*flag,
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            *value = json!(*dice.pick(&WORDS));
        }
    }
}

/// Returns a declaration of the row, changed so that it can still be read.
fn spec(dice: &mut Dice, case: &Case) -> UnionDeclarationSpec {
    let declarations: Vec<Value> = case.declarations().into_values().collect();
    let mut spec = dice.pick(&declarations)["spec"].clone();
    for _ in 0..dice.below(9) {
        let mut changed = spec.clone();
        change(dice, &mut changed);
        if serde_json::from_value::<UnionDeclarationSpec>(changed.clone()).is_ok() {
            spec = changed;
        }
    }
    serde_json::from_value(spec).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1_000, ..ProptestConfig::default() })]
    #[test]
    fn whatever_is_declared_is_in_force_or_at_fault(seed: u64) {
        let mut dice = Dice(seed);
        let case = dice.pick(&CASES);
        let crd = case.document().to_string();
        let [first, second] = [(); 2].map(|()| spec(&mut dice, case));
        let mut builder = Builder::new();
        // Add the second declaration, then remove the first.
        for specs in [&[("first", &first)][..], &[("first", &first), ("second", &second)], &[("second", &second)]] {
            let mut target = Definition::from_json(&crd).unwrap();
            builder.report("first", Vec::new());
            for (name, spec) in specs {
                let mut document = declaration(name, GROUP, "Thing", &json!({}));
                document["spec"] = serde_json::to_value(spec).unwrap();
                let (declaration, faults) = Declaration::from_json(&document.to_string()).unwrap();
                let (same, _) = Declaration::from_spec(name, spec);
                prop_assert_eq!(&declaration, &same, "the wire keeps everything");
                prop_assert_eq!(target.declare(&declaration), is_about_thing(spec));
                builder.report(name, faults);
            }
            builder.apply(target);
            let catalog = builder.build();
            for fault in catalog.faults() {
                let named = fault.declaration.as_ref().is_none_or(|it| specs.iter().any(|(name, _)| it == name));
                prop_assert!(named, "{} is no one's fault who is there", fault);
                prop_assert!(!fault.to_string().contains('\n'), "{:?}", fault);
            }
            if specs == [("first", &first)] && is_about_v1(&first) {
                for (position, union) in first.unions.iter().enumerate() {
                    // A declaration that repeats another one has no effect.
                    let again = (0..position).any(|before| {
                        is_at_fault(&catalog, before)
                            && Place::from_path(&first.unions[before].path) == Place::from_path(&union.path)
                    });
                    let told = is_at_fault(&catalog, position) || again;
                    prop_assert!(told || is_in_force(&catalog, &union.path), "{:?} is lost", union);
                }
            }
        }
    }
}

fn is_about_thing(spec: &UnionDeclarationSpec) -> bool {
    (&*spec.target.group, &*spec.target.kind) == (GROUP, "Thing")
}

fn is_about_v1(spec: &UnionDeclarationSpec) -> bool {
    let versions = &spec.target.versions;
    is_about_thing(spec) && (versions.is_empty() || versions.iter().any(|version| version == "v1"))
}

fn is_at_fault(catalog: &Catalog, position: usize) -> bool {
    let pointer = format!("/spec/unions/{position}");
    catalog.faults().iter().any(|fault| {
        fault.pointer.split('/').take(4).eq(pointer.split('/'))
            && (fault.severity() == Severity::Error || fault.left_out)
    })
}

fn is_in_force(catalog: &Catalog, path: &str) -> bool {
    let place = Place::from_path(path).unwrap().to_string();
    catalog.entries().iter().any(|entry| entry.plan().unions().iter().any(|union| union.path() == place))
}
