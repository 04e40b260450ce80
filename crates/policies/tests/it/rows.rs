//! The rows of every kind of place, and how each finds the row that was there before: `rows.txt` has them as they are compiled.

use super::catalog;
use fixtures::cel::check_policy;
use fixtures::crds::{crd, version};
use fixtures::files::assert_generated;
use fixtures::reviews::{declaration, declared_catalog, lift_unions};
use kube_unions_core::catalog::Catalog;
use kube_unions_core::declaration::{Declaration, OpenApi};
use kube_unions_core::names::GroupKind;
use kube_unions_core::workspace::Workspace;
use kube_unions_policies::{CompiledKinds, PolicyOptions};
use serde_json::{Value, json};

/// Returns an object with a union of two members, of which one is chosen by `kind` if it is `discriminated`.
fn union(members: [&str; 2], discriminated: bool) -> Value {
    let [one, other] = members;
    let mut union = json!({"fields-to-discriminateBy": {one: one.to_uppercase(), other: other.to_uppercase()}});
    if discriminated {
        union["discriminator"] = "kind".into();
    }
    object(&json!({"kind": {"type": "string"}, one: {"type": "object"}, other: {"type": "object"}}), Some(&union))
}

fn object(properties: &Value, union: Option<&Value>) -> Value {
    let mut object = json!({"type": "object", "properties": properties});
    if let Some(union) = union {
        object["x-kubernetes-unions"] = json!([union]);
    }
    object
}

/// Returns a list of items that these keys identify. `port` is a number.
fn list(mut item: Value, keys: &[&str]) -> Value {
    for key in keys {
        item["properties"][key] = json!({"type": if *key == "port" { "integer" } else { "string" }});
    }
    let mut list = json!({"type": "array", "items": item});
    if !keys.is_empty() {
        list["items"]["required"] = json!(keys);
        list["x-kubernetes-list-type"] = "map".into();
        list["x-kubernetes-list-map-keys"] = json!(keys);
    }
    list
}

fn map(value: &Value) -> Value {
    json!({"type": "object", "additionalProperties": value})
}

fn thing(spec: &Value) -> Value {
    object(&json!({"spec": spec}), None)
}

/// Returns the catalog of a custom resource with these fields in its `spec`.
fn custom(properties: &Value) -> Catalog {
    catalog([crd("rows.example", "Thing", &[version("v1", &thing(&object(properties, None)))])])
}

/// Returns the catalog of a kind whose schema does not tell what is in its `spec`.
fn untyped() -> Catalog {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let of = |path: &str| json!({"path": path, "schemaless": true, "fieldsToDiscriminateBy": {"a": "A", "b": "B"}});
    let mut list = of("spec.list[*]");
    list["listKeys"] = json!({"spec.list": ["name", "port"]});
    let mut single = of("spec.single");
    single["discriminator"] = "kind".into();
    let spec = json!({"unions": [list, of("spec.map.*.*"), single]});
    let declared = declaration("untyped", "rows.example", "Thing", &spec);
    declared_catalog(&crd("rows.example", "Thing", &[version("v1", &thing(&open))]), &[declared])
}

/// Returns the catalog of a built-in kind with these fields in its `spec`. An API server does not check that the keys of its lists differ.
fn built_in(properties: &Value) -> Catalog {
    let mut schema = thing(&object(properties, None));
    let unions = lift_unions(&mut schema);
    let kind = json!({"group": "apps", "version": "v1", "kind": "Thing"});
    schema["x-kubernetes-group-version-kind"] = json!([kind]);
    let put = json!({"put": {"x-kubernetes-group-version-kind": kind}});
    let paths = json!({"/apis/apps/v1/namespaces/{namespace}/things/{name}": put});
    let document = json!({"openapi": "3.0.0", "components": {"schemas": {"v1.Thing": schema}}, "paths": paths});
    let declared = declaration("built-in", "apps", "Thing", &json!({"unions": unions}));
    let mut workspace = Workspace::of_files();
    workspace.set_declaration("built-in", Ok(Declaration::from_json(&declared.to_string()).unwrap()));
    let document = OpenApi::parse(&document.to_string()).unwrap();
    workspace.set_documents(&GroupKind::new("apps", "Thing"), vec![document.into()]);
    workspace.compile();
    workspace.catalog()
}

const NORMALIZE: &str = "MutatingAdmissionPolicy";
const VALIDATE: &str = "ValidatingAdmissionPolicy";

/// Returns kinds, and which of their policies is told.
pub(crate) fn kinds() -> Vec<(&'static str, &'static str, Catalog)> {
    let (choice, alone) = (|| union(["a", "b"], true), || union(["a", "b"], false));
    let with = |mut object: Value, pointer: &str, field: &str, value: Value| {
        object.pointer_mut(pointer).unwrap()[field] = value;
        object
    };
    let atomic = |object: Value| with(object, "", "x-kubernetes-map-type", "atomic".into());
    let nullable = || with(alone(), "", "nullable", true.into());
    let set = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
    let item = || object(&json!({"one": alone(), "two": union(["c", "d"], false)}), None);
    let nested = |inner: Value| list(object(&json!({"inner": inner}), None), &["name"]);
    let whole = || list(object(&json!({"whole": atomic(object(&json!({"u": choice()}), None))}), None), &["name"]);
    vec![
        ("a list in a list", NORMALIZE, custom(&json!({"list": nested(list(choice(), &["port", "name"]))}))),
        ("a list of a map in a map", VALIDATE, custom(&json!({"map": map(&map(&list(choice(), &["name"])))}))),
        ("a map in a map", NORMALIZE, custom(&json!({"map": map(&map(&alone()))}))),
        ("a list without keys in a list", NORMALIZE, custom(&json!({"list": nested(list(choice(), &[]))}))),
        ("a list without keys in a list", VALIDATE, custom(&json!({"list": nested(list(choice(), &[]))}))),
        ("two fields, which may be null", NORMALIZE, custom(&json!({"p": nullable(), "q/r": nullable()}))),
        (
            "two maps",
            NORMALIZE,
            custom(&json!({"x": {"type": "object", "properties": {"p": map(&choice()), "q": map(&choice())}}})),
        ),
        ("a field and a list", NORMALIZE, custom(&json!({"x": alone(), "list": list(alone(), &["name"])}))),
        ("two fields with different unions", NORMALIZE, custom(&item()["properties"])),
        ("items that are owned as a whole", NORMALIZE, custom(&json!({"list": whole()}))),
        ("values that are owned as a whole", VALIDATE, custom(&json!({"map": atomic(map(&alone()))}))),
        (
            "a member that nobody owns",
            NORMALIZE,
            custom(&json!({"list": list(with(alone(), "/properties", "a", set), &["name"])})),
        ),
        ("places without a schema", NORMALIZE, untyped()),
        ("a list of a built-in kind", NORMALIZE, built_in(&json!({"list": list(alone(), &["name"])}))),
        ("a list of a built-in kind", VALIDATE, built_in(&json!({"list": list(choice(), &["name"])}))),
        (
            "different unions in the items of two lists of a built-in kind",
            NORMALIZE,
            built_in(&json!({"p": list(item(), &["name"]), "q": list(item(), &["name"])})),
        ),
    ]
}

/// Returns the condition of a policy and its variables about objects, as text.
fn told(policy: &Value) -> String {
    let text = |it: &Value, field: &str| it[field].as_str().unwrap().to_owned();
    let of_objects = |it: &&Value| {
        let (name, expression) = (text(it, "name").to_lowercase(), text(it, "expression"));
        let is_named =
            ["all", "before", "object", "old", "suspects", "unchanged"].iter().any(|word| name.contains(word));
        is_named || expression.contains("\"set\": dyn(") || expression.contains("\"object\": dyn(")
    };
    let conditions = policy["spec"]["matchConditions"].as_array().into_iter().flatten();
    let variables = policy["spec"]["variables"].as_array().unwrap().iter().filter(of_objects);
    let part = |it: &Value| format!("{}:\n  {}\n", text(it, "name"), text(it, "expression").replace('\n', "\n  "));
    conditions.chain(variables).map(part).collect()
}

#[test]
fn each_kind_of_place_has_its_rows() {
    let mut all = String::new();
    for (title, kind, catalog) in kinds() {
        let compiled = CompiledKinds::of(&catalog, &PolicyOptions::default());
        assert!(compiled.refusals.is_empty(), "{title}: {:?}", compiled.refusals);
        let mut policies = compiled.objects.iter().filter(|object| object.kind() == kind);
        let policy = policies.next().unwrap_or_else(|| panic!("{title}: no {kind}"));
        check_policy(&policy.to_json()).unwrap_or_else(|error| panic!("{title}: {error}"));
        all.extend([format!("# {title}: {kind}\n\n{}\n", told(&policy.to_json()))]);
    }
    let command = "KUBE_UNIONS_UPDATE=1 cargo test --locked -p kube-unions-policies --test it rows::";
    assert_generated("crates/policies/tests/it/rows.txt", &all, command);
}

/// One map and several around the list, and two fields that have the same.
#[test]
fn unions_in_the_items_of_a_list_share_rows_below_any_number_of_maps() {
    let item = object(&json!({"one": union(["a", "b"], false), "two": union(["c", "d"], false)}), None);
    for depth in 0..4 {
        let maps = (0..depth).fold(list(item.clone(), &["name"]), |inner, _| map(&inner));
        for properties in [json!({"p": maps}), json!({"p": maps, "q": maps})] {
            let compiled = CompiledKinds::of(&built_in(&properties), &PolicyOptions::default());
            assert_eq!((compiled.objects.len(), compiled.refusals.len()), (4, 0), "{properties}");
            for object in &compiled.objects {
                check_policy(&object.to_json()).unwrap_or_else(|error| panic!("{depth}: {error}"));
            }
        }
    }
}
