//! The types of the expressions, as an API server infers them when a policy is stored.

use super::catalog;
use fixtures::cel::check_policy;
use fixtures::crds::{annotated, version};
use fixtures::kinds::{GeneratedKind, KINDS};
use kube_unions_policies::{CompiledKinds, KubernetesVersion, PolicyOptions, PolicyRatcheting};
use serde_json::{Value, json};

/// The options with which a policy has other expressions.
fn options() -> impl Iterator<Item = PolicyOptions> {
    let servers = [36, 34, 33].into_iter().map(|minor| KubernetesVersion::new(1, minor));
    let ratcheting = [PolicyRatcheting::Enabled, PolicyRatcheting::Warn, PolicyRatcheting::Disabled];
    servers.zip(ratcheting).map(|(server, ratcheting)| PolicyOptions { server, ratcheting, ..PolicyOptions::default() })
}

/// A map, a list with an empty value that counts as not set, a map of lists, and a list in one of two fields.
#[test]
fn names_that_need_an_index_leave_no_type_open() {
    let string = || json!({"type": "string"});
    let object =
        || json!({"type": "object", "properties": {"kind": string(), "a": string(), "b": string(), "name": string()}});
    let list = || json!({"type": "array", "items": object(), "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]});
    let map = |inner: Value| json!({"type": "object", "additionalProperties": inner});
    let union = |empty: &[&str]| json!([{"discriminator": "kind", "fields-to-discriminateBy": {"a": "A", "b": "B"}, "emptyIsUnset": empty}]);
    for (properties, pointers, empty) in [
        (json!({"my-map": map(object())}), &["my-map/additionalProperties"][..], &[][..]),
        (json!({"my-list": list()}), &["my-list/items"], &["a", "b"]),
        (json!({"in": map(list())}), &["in/additionalProperties/items"], &["a"]),
        (json!({"a/b": list(), "9x": list()}), &["a~1b/items", "9x/items"], &[]),
        (
            json!({"é": {"type": "object", "properties": {"a.b": map(map(object()))}}}),
            &["é/properties/a.b/additionalProperties/additionalProperties"],
            &["a"],
        ),
    ] {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}});
        let unions = pointers.iter().map(|pointer| (format!("/properties/spec/properties/{pointer}"), union(empty)));
        let annotation = json!({"v1": unions.collect::<serde_json::Map<_, _>>()}).to_string();
        let definition = annotated("types.example", "Thing", &[version("v1", &schema)], &annotation);
        let compiled = CompiledKinds::of(&catalog([definition]), &PolicyOptions::default());
        assert_eq!((compiled.objects.len(), compiled.refusals.len()), (4, 0), "{properties}");
        for object in &compiled.objects {
            check_policy(&object.to_json()).unwrap_or_else(|error| panic!("{error}"));
        }
    }
}

/// A union at a fixed place and one in a list, of which two members can have a value that nobody owns.
#[test]
fn a_member_that_nobody_owns_leaves_no_type_open() {
    let set = || json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"});
    let holder = || json!({"type": "object", "properties": {"a-b": set(), "in": {"type": "object", "properties": {"l": set()}}}});
    let union = || json!([{"fields-to-discriminateBy": {"h": "H", "l": "L", "s": "S"}}]);
    let object = || {
        json!({"type": "object", "properties": {"h": holder(), "l": set(), "s": {"type": "string"}, "k": {"type": "string"}},
            "required": ["k"]})
    };
    let list = json!({"type": "array", "items": object(), "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]});
    for (properties, pointer) in [(json!({"u": object()}), "u"), (json!({"list": list}), "list/items")] {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}});
        let annotation = json!({"v1": {format!("/properties/spec/properties/{pointer}"): union()}}).to_string();
        let definition = annotated("types.example", "Thing", &[version("v1", &schema)], &annotation);
        let compiled = CompiledKinds::of(&catalog([definition]), &PolicyOptions::default());
        assert_eq!((compiled.objects.len(), compiled.refusals.len()), (4, 0), "{properties}");
        let told: String = compiled.objects.iter().map(|object| object.to_json().to_string()).collect();
        for part in [r#"[\"h\", \"l\"].filter(m, m in "#, r#"\"updated f:\" + m in "#] {
            assert_eq!(told.matches(part).count(), 1, "{part}: {told}");
        }
        for object in &compiled.objects {
            check_policy(&object.to_json()).unwrap_or_else(|error| panic!("{error}"));
        }
    }
}

/// `KUBE_UNIONS_KINDS_SEED` selects other names.
#[test]
fn an_api_server_accepts_the_types_of_every_policy_of_generated_kinds() {
    let seed = std::env::var("KUBE_UNIONS_KINDS_SEED").ok().map_or(1, |seed| seed.parse().unwrap());
    let (mut policies, mut refused) = (0, Vec::new());
    for (number, kind) in GeneratedKind::all("types.example", seed).enumerate() {
        let catalog = kind.catalog();
        // Older API servers and other treatments of old faults take turns.
        for options in options().enumerate().filter(|(turn, _)| *turn == 0 || *turn == number % 4).map(|(_, it)| it) {
            let compiled = CompiledKinds::of(&catalog, &options);
            let is_whole = options.server == KubernetesVersion::new(1, 36);
            assert!(!is_whole || compiled.refusals.is_empty(), "{}: {:?}", kind.description, compiled.refusals);
            assert!(!is_whole || !compiled.objects.is_empty(), "{}", kind.description);
            for object in &compiled.objects {
                policies += usize::from(!object.kind().ends_with("Binding"));
                let checked = check_policy(&object.to_json());
                refused.extend(checked.err().map(|error| format!("{}\n{error}", kind.description)));
            }
        }
    }
    println!("seed {seed}: {KINDS} kinds, {policies} policies, {} refused", refused.len());
    let told: Vec<&str> = refused.iter().take(5).map(String::as_str).collect();
    assert!(refused.is_empty(), "seed {seed}: {} policies would be refused:\n{}", refused.len(), told.join("\n\n"));
}
