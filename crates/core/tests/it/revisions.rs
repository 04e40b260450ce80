//! Differences between two revisions of the unions of a kind.

use fixtures::reviews::{GROUP, declaration, declared_catalog, definition, version};
use kube_unions_core::catalog::Catalog;
use kube_unions_core::declaration::{Definition, Fault, FaultKind, Severity};
use kube_unions_core::names::GroupVersionKind;
use kube_unions_core::revision::RevisedKind;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// A revision of a kind: its fields below `spec`, and a `UnionDeclaration`.
struct Kind {
    gvk: GroupVersionKind,
    definition: Definition,
    catalog: Catalog,
}

impl Kind {
    fn new(fields: &[&str], spec: &Value) -> Self {
        let mut properties: Map<String, Value> =
            fields.iter().map(|name| ((*name).to_owned(), json!({"type": "object"}))).collect();
        for name in ["type", "mode"] {
            properties.insert(name.to_owned(), json!({"type": "string"}));
        }
        let object = json!({"type": "object", "properties": properties});
        let spec_schema = json!({"type": "object", "properties": {"in": object, "out": object}});
        let schema = json!({"type": "object", "properties": {"spec": spec_schema}});
        let crd = definition(&Map::new(), &[version("v1", &schema, false)]);
        let declared: &[Value] = if spec.is_null() { &[] } else { &[declaration("things", GROUP, "Thing", spec)] };
        Self {
            gvk: GroupVersionKind { group: GROUP.into(), version: "v1".into(), kind: "Thing".into() },
            catalog: declared_catalog(&crd, declared),
            definition: Definition::from_json(&crd.to_string()).unwrap(),
        }
    }

    fn version(&self) -> RevisedKind<'_> {
        let entry = self.catalog.lookup(GROUP, "v1", "Thing");
        RevisedKind {
            gvk: &self.gvk,
            definition: "things.g.example",
            plan: entry.map(|entry| &**entry.plan()),
            version: self.definition.versions().first(),
        }
    }
}

fn union(rest: &Value) -> Value {
    let mut union = json!({"path": "spec.in"});
    union.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    json!({"target": {}, "unions": [union]})
}

fn with(mut spec: Value, key: &str, value: Value) -> Value {
    spec[key] = value;
    spec
}

/// The differences between two declarations over the same fields.
fn changes(old: &Value, new: &Value) -> Vec<Fault> {
    const FIELDS: [&str; 3] = ["a", "b", "c"];
    Kind::new(&FIELDS, new).version().changes_since(&Kind::new(&FIELDS, old).version())
}

#[test]
fn each_difference_has_its_rule_and_its_cost() {
    use FaultKind as F;
    let list = |fields: Value| union(&json!({"fieldsToDiscriminateBy": fields}));
    let typed = |fields: Value| union(&json!({"discriminator": "type", "fieldsToDiscriminateBy": fields}));
    let map = |members: Value| union(&json!({"discriminator": "type", "fieldMembers": members}));
    let options = |rest: Value| {
        let mut all = json!({"fieldsToDiscriminateBy": {"a": "A", "b": "B"}});
        all.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        union(&all)
    };
    let ab = list(json!({"a": "A", "b": "B"}));
    let typed_ab = typed(json!({"a": "A", "b": "B"}));
    let map_ab = map(json!({"A": {"name": "a"}, "B": {"name": "b"}}));
    let optional_ab = map(json!({"A": {"name": "a", "optional": true}, "B": {"name": "b"}}));
    let abc = list(json!({"a": "A", "b": "B", "c": "C"}));
    let table = [
        (&Value::Null, &ab, &[F::UnionOverFields][..]),
        (&ab, &Value::Null, &[F::UnionRemoved]),
        (&ab, &ab, &[]),
        (
            &ab,
            &with(ab.clone(), "unions", json!([{"path": "spec.out", "fieldsToDiscriminateBy": {"a": "A", "b": "B"}}])),
            &[F::UnionMoved],
        ),
        (&ab, &abc, &[F::MemberOverField]),
        (&abc, &ab, &[F::MemberRemoved]),
        // Without a discriminator, values are only names.
        (&ab, &list(json!({"a": "X", "b": "Y"})), &[]),
        (&list(json!({"a": "A", "b": "A", "c": "C"})), &abc, &[F::GroupSplit]),
        (&abc, &list(json!({"a": "A", "b": "A", "c": "C"})), &[F::GroupJoined]),
        (&ab, &typed_ab, &[F::DiscriminatorAdded]),
        (&typed_ab, &ab, &[F::DiscriminatorRemoved]),
        (
            &typed_ab,
            &with(
                typed_ab.clone(),
                "unions",
                json!([{"path": "spec.in", "discriminator": "mode",
            "fieldsToDiscriminateBy": {"a": "A", "b": "B"}}]),
            ),
            &[F::DiscriminatorRenamed],
        ),
        (&typed_ab, &typed(json!({"a": "A", "b": "X"})), &[F::ValueRemoved, F::ValueAdded]),
        (&typed_ab, &map_ab, &[F::MemberBecameRequired, F::MemberBecameRequired, F::FormChanged]),
        (&map_ab, &map(json!({"A": {"name": "a"}, "B": {"name": "b"}, "N": {}})), &[F::ValueAdded]),
        (&map(json!({"A": {"name": "a"}, "B": {"name": "b"}, "N": {}})), &map_ab, &[F::ValueRemoved]),
        // One difference, not two: the value with its member.
        (&map(json!({"A": {"name": "a"}, "B": {"name": "b"}, "C": {"name": "c"}})), &map_ab, &[F::ValueRemoved]),
        (&optional_ab, &map_ab, &[F::MemberBecameRequired]),
        (&map_ab, &optional_ab, &[F::MemberBecameOptional]),
        (
            &map(json!({"A": {"fields": {"a": {}, "c": {}}}, "B": {"fields": {"b": {}, "c": {}}}})),
            &map(json!({"A": {"fields": {"a": {}}}, "B": {"fields": {"b": {}, "c": {}}}})),
            &[F::MemberDeselected],
        ),
        (&ab, &options(json!({"required": true})), &[F::UnionBecameRequired]),
        (&options(json!({"required": true})), &ab, &[F::UnionBecameOptional]),
        (&ab, &options(json!({"emptyIsUnset": ["a"]})), &[F::EmptyBecameUnset]),
        (&options(json!({"emptyIsUnset": ["a"]})), &ab, &[F::EmptyBecameSet]),
        (&ab, &with(ab.clone(), "normalization", json!("Disabled")), &[F::NormalizationDisabled]),
        (&with(ab.clone(), "normalization", json!("Disabled")), &ab, &[F::NormalizationEnabled]),
        (&with(ab.clone(), "validationActions", json!(["Warn"])), &ab, &[F::ActionBecameDeny]),
        (&ab, &with(ab.clone(), "validationActions", json!(["Audit"])), &[F::ActionRelaxed]),
    ];
    let mut seen = BTreeSet::from([F::OnlyInOld, F::OnlyInNew, F::UnionAdded, F::MemberAdded]);
    for (old, new, expected) in table {
        let changes = changes(old, new);
        let found: Vec<FaultKind> = changes.iter().map(|change| change.kind).collect();
        assert_eq!(found, expected, "{old} -> {new}: {changes:?}");
        for change in &changes {
            let cost = match change.severity() {
                Severity::Error => "breaks: ",
                Severity::Warning => "safe only with ratcheting: ",
                Severity::Note => "safe: ",
            };
            assert!(change.message.starts_with(cost), "{change:?}");
        }
        seen.extend(found);
    }
    let all: BTreeSet<FaultKind> = FaultKind::ALL.iter().copied().filter(|kind| kind.is_revision()).collect();
    assert_eq!(seen, all, "a rule that no row has");
}

#[test]
fn a_new_field_cannot_be_in_an_old_object() {
    let ab = union(&json!({"fieldsToDiscriminateBy": {"a": "A", "b": "B"}}));
    let of = |fields: &[&str], spec: &Value, old: &Kind| -> Vec<FaultKind> {
        Kind::new(fields, spec).version().changes_since(&old.version()).iter().map(|change| change.kind).collect()
    };
    assert_eq!(of(&["a", "b"], &ab, &Kind::new(&["a"], &Value::Null)), [FaultKind::UnionAdded]);
    assert_eq!(of(&["a", "b"], &ab, &Kind::new(&["a", "b"], &Value::Null)), [FaultKind::UnionOverFields]);
    let abc = union(&json!({"fieldsToDiscriminateBy": {"a": "A", "b": "B", "c": "C"}}));
    assert_eq!(of(&["a", "b", "c"], &abc, &Kind::new(&["a", "b"], &ab)), [FaultKind::MemberAdded]);
}

#[test]
fn a_version_that_one_revision_lacks_is_noted_if_it_has_unions() {
    let ab = union(&json!({"fieldsToDiscriminateBy": {"a": "A", "b": "B"}}));
    let (with, without) = (Kind::new(&["a", "b"], &ab), Kind::new(&["a", "b"], &Value::Null));
    let note = with.version().alone(FaultKind::OnlyInOld).unwrap();
    assert!(note.message.contains("the new files do not describe this version"), "{note}");
    assert_eq!(without.version().alone(FaultKind::OnlyInNew), None);
}
