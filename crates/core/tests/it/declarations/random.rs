//! Generated specs of a `UnionDeclaration` against one schema. Each union is in force or has a fault.

use super::union_declaration;
use fixtures::reviews::{GROUP, definition, version};
use kube_unions_core::catalog::{Builder, Catalog};
use kube_unions_core::declaration::{
    Declaration, DeclaredMember, DeclaredUnion, Definition, Normalization, Place, Severity, Target,
    UnionDeclarationSpec, ValidationAction,
};
use kube_unions_core::schema::SelectedField;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A schema with one node of each type, so that declarations hit and miss.
fn fixed_schema() -> Value {
    let fields = json!({
        "a": {"type": "object", "properties": {"x": {"type": "string"}}},
        "b": {"type": "string", "default": "x"},
        "c": {"type": "array", "items": {"type": "string"}},
        "type": {"type": "string", "enum": ["A", "B", ""]},
        "kind": {"type": "string"},
        "*": {"type": "string"},
    });
    let object = json!({"type": "object", "properties": fields, "required": ["c"]});
    json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "a": object, "list": {"type": "array", "items": object}, "map": {"type": "object", "additionalProperties": object},
            "type": {"type": "string"}, "b": {"type": "string"}, "open": {"x-kubernetes-preserve-unknown-fields": true},
        }},
        "a": {"type": "string"}, "type": {"type": "string"}, "status": object,
    }})
}

fn names() -> impl Strategy<Value = String> {
    prop_oneof![9 => select(vec!["a", "b", "c", "type", "kind", "A", "B", "", "*"]).prop_map(str::to_owned), 1 => ".{0,6}"]
}

fn paths() -> impl Strategy<Value = String> {
    let step = select(vec![
        "spec", "status", ".a", ".list", ".map", ".type", "[*]", ".*", "a", "", ".", "[0]", "[\"a\"]", "[\"", "]",
    ]);
    prop_oneof![
        4 => select(vec!["", "spec", "spec.a", "spec.list[*]", "spec.map.*", "status", "spec.list", "spec.map", "spec.a.type",
            "spec.open", "spec.open[*]", "spec.open.list[*]", "spec.open.a.b"])
            .prop_map(str::to_owned),
        4 => vec(step, 0..5).prop_map(|steps| steps.concat()),
        1 => ".{0,12}",
    ]
}

fn declared_unions() -> impl Strategy<Value = DeclaredUnion> {
    let field = any::<bool>().prop_map(|optional| SelectedField { optional });
    let fields = prop_oneof![3 => Just(None), 1 => btree_map(names(), field, 0..4).prop_map(Some)];
    let member = (option::of(names()), any::<bool>(), fields).prop_map(|(name, optional, fields)| DeclaredMember {
        name,
        optional,
        fields,
    });
    let members = option::of(btree_map(names(), member, 0..4));
    let fields = option::of(btree_map(names(), names(), 0..4));
    let options = (any::<bool>(), prop_oneof![3 => vec(names(), 0..1), 1 => vec(names(), 0..4)]);
    let list_keys = prop_oneof![3 => Just(BTreeMap::new()), 1 => btree_map(paths(), vec(names(), 0..2), 0..2)];
    let untyped = (any::<bool>(), list_keys);
    (paths(), option::of(names()), members, fields, options, untyped).prop_map(
        |(path, discriminator, field_members, fields_to_discriminate_by, options, untyped)| DeclaredUnion {
            path,
            discriminator,
            field_members,
            fields_to_discriminate_by,
            members: None,
            required: options.0,
            empty_is_unset: options.1,
            schemaless: untyped.0,
            list_keys: untyped.1,
        },
    )
}

fn specs() -> impl Strategy<Value = UnionDeclarationSpec> {
    let target = (prop_oneof![4 => Just("Thing".to_owned()), 1 => names()], vec(select(vec!["v1", "v2", ""]), 0..2))
        .prop_map(|(kind, versions)| Target {
            group: GROUP.to_owned(),
            kind,
            versions: versions.into_iter().map(str::to_owned).collect(),
        });
    let actions = vec(select(vec![ValidationAction::Deny, ValidationAction::Warn, ValidationAction::Audit]), 0..3);
    let normalization = select(vec![Normalization::Enabled, Normalization::Disabled]);
    let pod_templates = prop_oneof![3 => Just(Vec::new()), 1 => vec(paths(), 0..2)];
    (target, normalization, actions, vec(declared_unions(), 0..6), pod_templates).prop_map(
        |(target, normalization, validation_actions, unions, pod_templates)| UnionDeclarationSpec {
            target,
            normalization,
            validation_actions,
            unions,
            pod_templates,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn whatever_is_declared_is_in_force_or_at_fault(first in specs(), second in specs()) {
        let crd = definition(&Map::new(), &[version("v1", &fixed_schema(), true)]).to_string();
        let mut builder = Builder::new();
        // Add the second declaration, then remove the first.
        for specs in [&[("first", &first)][..], &[("first", &first), ("second", &second)], &[("second", &second)]] {
            let mut target = Definition::from_json(&crd).unwrap();
            builder.report("first", Vec::new());
            for (name, spec) in specs {
                let text = union_declaration(name, &serde_json::to_value(spec).unwrap()).to_string();
                let (declaration, faults) = Declaration::from_json(&text).unwrap();
                let (same, _) = Declaration::from_spec(name, spec);
                prop_assert_eq!(&declaration, &same, "the wire keeps everything");
                prop_assert_eq!(target.declare(&declaration), spec.target.kind == "Thing");
                builder.report(name, faults);
            }
            builder.apply(target);
            let catalog = builder.build();
            for fault in catalog.faults() {
                let named = specs.iter().any(|(name, _)| fault.declaration.as_deref() == Some(*name));
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

fn is_about_v1(spec: &UnionDeclarationSpec) -> bool {
    let versions = &spec.target.versions;
    spec.target.kind == "Thing" && (versions.is_empty() || versions.iter().any(|version| version == "v1"))
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
