//! The names and texts of policies follow from the set of the versions of a kind and their unions.

use super::catalog;
use fixtures::crds::{crd, version};
use fixtures::dice::Dice;
use kube_unions_policies::{CompiledKinds, PolicyObject, PolicyOptions};
use serde_json::{Map, Value, json};

/// Returns a version whose `spec` has a union of these members, or none.
fn with_members(name: &str, members: &str) -> Value {
    let fields: Map<String, Value> = members.chars().map(|it| (it.to_string(), json!({"type": "object"}))).collect();
    let values: Map<String, Value> =
        members.chars().map(|it| (it.to_string(), it.to_uppercase().to_string().into())).collect();
    let mut spec = json!({"type": "object", "properties": fields});
    if !values.is_empty() {
        spec["x-kubernetes-unions"] = json!([{"fields-to-discriminateBy": values}]);
    }
    version(name, &json!({"type": "object", "properties": {"spec": spec}}))
}

/// Returns the policies of a CRD with these versions, of which one is stored.
fn compiled(versions: &[Value], stored: usize) -> (Vec<String>, Vec<Value>, Vec<String>) {
    let mut versions = versions.to_vec();
    for (number, version) in versions.iter_mut().enumerate() {
        version["storage"] = (number == stored).into();
    }
    let compiled = CompiledKinds::of(&catalog([crd("names.example", "Thing", &versions)]), &PolicyOptions::default());
    let names = compiled.objects.iter().filter(|object| !object.kind().ends_with("Binding"));
    let names = names.map(|object| object.name().to_owned()).collect();
    let refusals = compiled.refusals.iter().map(ToString::to_string).collect();
    (names, compiled.objects.iter().map(PolicyObject::to_json).collect(), refusals)
}

/// Two versions, versions that share unions, versions without unions, and more versions than are told apart.
#[test]
fn policies_depend_neither_on_the_order_of_versions_nor_on_the_stored_one() {
    let many: Vec<(String, &str)> = (1..=70).map(|number| (format!("v{number}"), ["ab", "ac"][number % 2])).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, members)| (&**name, *members)).collect();
    let mut random = Dice(1);
    for (versions, wanted) in [
        (&[("v1", "ab"), ("v2", "ac")][..], &["-deny", "-normalize", "-only-v1-deny", "-only-v1-normalize"][..]),
        (
            &[("v1alpha1", "ab"), ("v1beta1", "ac"), ("v1", "ab")],
            &["-deny", "-normalize", "-only-v1beta1-deny", "-only-v1beta1-normalize"],
        ),
        (&[("v1", "ab"), ("v2", ""), ("v3", "ab")], &["-deny", "-normalize"]),
        (&[("blue", "ab"), ("green", "ac")], &["-deny", "-normalize", "-only-green-deny", "-only-green-normalize"]),
        (&many[..], &["-deny", "-normalize", "-only-v69-deny", "-only-v69-normalize"]),
    ] {
        let mut versions: Vec<Value> = versions.iter().map(|(name, members)| with_members(name, members)).collect();
        let first = compiled(&versions, 0);
        let mut names: Vec<&str> =
            first.0.iter().filter_map(|name| name.strip_prefix("unions-things.names.example")).collect();
        names.sort_unstable();
        assert_eq!(names, wanted);
        for _ in 0..8 {
            random.shuffle(&mut versions);
            let stored = random.below(versions.len());
            assert_eq!(compiled(&versions, stored), first, "{stored} of {versions:?}");
        }
    }
}
