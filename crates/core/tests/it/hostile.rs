//! CRDs and documents that are written to do harm. Each has few and short faults, and no effect on others.

use fixtures::crds;
use kube_unions_core::catalog::{Builder, Catalog, CompiledDefinition, definition_faults};
use kube_unions_core::declaration::{Definition, Fault, FaultKind, OpenApi, Severity};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// Longest line of a fault, in bytes.
const LINE: usize = 4096;

/// Most faults of one CRD.
const MOST: usize = 129;

fn crd(kind: &str, annotation: Option<&str>, schema: &Value) -> Value {
    let versions = [crds::version("v1", schema)];
    match annotation {
        Some(text) => crds::annotated("hostile.example", kind, &versions, text),
        None => crds::crd("hostile.example", kind, &versions),
    }
}

/// Returns the text of a CRD of the kind `Bad`.
fn bad(annotation: Option<&str>, schema: &Value) -> String {
    crd("Bad", annotation, schema).to_string()
}

/// Returns the text of a CRD of the kind `Bad` with this annotation.
fn bad_with(annotation: &Value, schema: &Value) -> String {
    bad(Some(&annotation.to_string()), schema)
}

fn union(one: &str, other: &str) -> Value {
    json!([{"fields-to-discriminateBy": {one: "A", other: "B"}}])
}

/// Returns a schema with a valid union.
fn with_union() -> Value {
    let field = json!({"type": "string"});
    json!({"type": "object", "x-kubernetes-unions": union("a", "b"), "properties": {"a": field, "b": field}})
}

fn object(properties: Map<String, Value>) -> Value {
    json!({"type": "object", "properties": Value::Object(properties)})
}

/// Returns `count` objects, each with the fields `a` and `b`.
fn many(count: usize) -> Value {
    let field = json!({"type": "string"});
    let inner = json!({"type": "object", "properties": {"a": field, "b": field}});
    object((0..count).map(|number| (format!("p{number:05}"), inner.clone())).collect())
}

fn annotated(count: usize, union: &Value) -> String {
    let pointers: Map<_, _> = (0..count).map(|number| (format!("/properties/p{number:05}"), union.clone())).collect();
    json!({"v1": pointers}).to_string()
}

/// Returns the catalog of a CRD and a valid one, which must not be affected.
fn beside_a_good_one(text: &str) -> Catalog {
    let good = crd("Good", None, &with_union());
    let mut builder = Builder::new();
    builder.apply(Definition::from_json(&good.to_string()).unwrap());
    match Definition::from_json(text) {
        Ok(definition) => builder.apply(definition),
        Err(error) => {
            let name = "bads.hostile.example";
            let fault = Fault::new(FaultKind::UnreadableCrd, name, error.to_string());
            builder.insert(CompiledDefinition::unreadable(name, vec![fault]));
        }
    }
    let catalog = builder.build();
    assert_eq!(catalog.lookup("hostile.example", "v1", "Good").unwrap().plan().unions().len(), 1);
    catalog
}

#[track_caller]
fn bounded(what: &str, faults: &[Fault]) {
    assert!(faults.len() <= MOST, "{what}: {} faults", faults.len());
    for fault in faults {
        let line = fault.to_string();
        assert!(line.len() <= LINE && fault.pointer.len() <= LINE, "{what}: {} bytes", line.len());
    }
}

#[test]
fn a_crd_that_is_meant_to_do_harm_has_few_short_faults_and_touches_nothing_else() {
    let long = "x".repeat(300 << 10);
    let text = |value: &str| json!({"type": "string", "description": value});
    let large = object((0..30_000).map(|number| (format!("p{number}"), text(&"d".repeat(320)))).collect());
    let values: Vec<String> = (0..10_000).map(|number| format!("v{number}")).collect();
    let long_name = object(Map::from_iter([
        (
            long.clone(),
            json!({"type": "string", "enum": values, "x-kubernetes-unions": {"fieldMembers": {"A": {"name": "a"}}}}),
        ),
        ("a".to_owned(), json!({"type": "string"})),
    ]));
    let required: Vec<String> = (0..10_000).map(|number| format!("f{number}")).collect();
    let mut fields: Map<String, Value> =
        required.iter().map(|name| (name.clone(), json!({"type": "string"}))).collect();
    fields.insert("type".to_owned(), json!({"type": "string", "enum": values}));
    let wide = json!({"type": "object", "properties": fields, "required": required});
    let shared = json!([{"discriminator": "type", "fields-to-discriminateBy": {"f1": "A", "f2": "B"}}]);
    let thousands = Value::Array(shared.as_array().unwrap().iter().cycle().take(4_000).cloned().collect());
    let deep = |depth: usize| {
        let mut schema = String::new();
        let _ = write!(schema, "{}{{}}{}", r#"{"properties":{"x":"#.repeat(depth), "}}".repeat(depth));
        bad(None, &json!("SCHEMA")).replace("\"SCHEMA\"", &schema)
    };
    let chain = |to: &str| {
        object(Map::from_iter([("a".to_owned(), json!({"$ref": to, "x-kubernetes-unions": union("a", "b")}))]))
    };
    let members: Map<String, Value> =
        (0..10_000).map(|number| (format!("f{number}"), json!(format!("V{number}")))).collect();
    let place = |value: Value| json!({"v1": {"/properties/p00000": value}});
    let [faulty, good] = [union("a", "typo"), union("a", "b")].map(|union| annotated(10_000, &union));
    let rows: Vec<(&str, String, bool)> = vec![
        ("ten megabytes", bad(None, &large), false),
        ("ten thousand faulty unions", bad(Some(&faulty), &many(10_000)), true),
        ("ten thousand good unions", bad(Some(&good), &many(10_000)), true),
        ("ten thousand pointers to nowhere", bad(Some(&good), &many(1)), true),
        ("garbage", bad(Some(&"{".repeat(256 << 10)), &many(1)), true),
        ("a deep list", bad(Some(&"[".repeat(256 << 10)), &many(1)), true),
        ("a long version", bad_with(&json!({long.as_str(): {}}), &many(1)), true),
        ("a long pointer", bad_with(&json!({"v1": {long.as_str(): 7}}), &many(1)), true),
        ("a long key", bad_with(&place(json!({long.as_str(): 7})), &many(1)), true),
        ("a long name with many values", bad(None, &long_name), true),
        ("thousands of unions of a wide object", bad_with(&json!({"v1": {"": thousands}}), &wide), true),
        ("ten thousand members", bad_with(&json!({"v1": {"": [{"fields-to-discriminateBy": members}]}}), &wide), true),
        ("a schema that is too deep", deep(5_000), true),
        ("a reference to itself", bad(None, &chain("#/properties/a")), true),
        ("a reference to nothing", bad(None, &chain("#/components/schemas/No")), true),
        ("a version that is none", bad(None, &json!(7)), true),
    ];
    for (what, text, has_faults) in rows {
        let catalog = beside_a_good_one(&text);
        bounded(what, catalog.faults());
        assert_eq!(!catalog.faults().is_empty(), has_faults, "{what}: {:?}", catalog.faults().first());
        let asked_alone = definition_faults(&text);
        bounded(what, &asked_alone);
        assert_eq!(!asked_alone.is_empty(), has_faults, "{what}");
    }
}

#[test]
fn so_many_unions_are_in_force_and_the_rest_is_reported() {
    let catalog = beside_a_good_one(&bad(Some(&annotated(1_500, &union("a", "b"))), &many(1_500)));
    let plan = catalog.lookup("hostile.example", "v1", "Bad").unwrap().plan();
    assert_eq!(plan.unions().len(), 1_024);
    // The first faults by place, whatever their order in the text.
    assert_eq!(plan.unions().last().unwrap().path(), "p01023");
    // Those that are not told are counted, and stay errors.
    let faults = catalog.faults();
    assert_eq!(faults.len(), 65, "{faults:#?}");
    assert!(faults.iter().any(|fault| fault.message.contains("more than 1,024 unions") && fault.path == "p01024"));
    assert!(
        faults.iter().any(|fault| fault.message.contains("and 412 more") && fault.severity() == Severity::Error),
        "{faults:#?}"
    );
}

#[test]
fn an_object_has_at_most_255_unions_and_the_rest_is_reported() {
    for declared in [254, 255, 256, 300] {
        let names = |letter: char| (0..declared).map(move |number| format!("{letter}{number:03}"));
        let fields = names('a').chain(names('b')).map(|name| (name, json!({"type": "string"})));
        let schema = json!({"type": "object", "properties": fields.collect::<Value>()});
        let unions: Vec<Value> = names('a')
            .zip(names('b'))
            .map(|(one, other)| json!({"fields-to-discriminateBy": {one: "A", other: "B"}}))
            .collect();
        let catalog = beside_a_good_one(&bad(Some(&json!({"v1": {"": unions}}).to_string()), &schema));
        let faults: Vec<&str> = catalog.faults().iter().map(|fault| &*fault.message).collect();
        let plan = catalog.lookup("hostile.example", "v1", "Bad").unwrap().plan();
        assert_eq!(plan.unions().len(), declared.min(255), "{declared}: {faults:?}");
        assert_eq!(faults.is_empty(), declared <= 255, "{declared}: {faults:?}");
        assert!(faults.iter().take(1).all(|fault| fault.contains("more than 255 unions")), "{faults:?}");
    }
}

#[test]
fn the_unions_of_so_many_versions_are_in_force_that_kubernetes_prefers_whichever_is_stored() {
    let names = || (0..100).map(|number| format!("v{number:03}"));
    // The first version, which has unions or none, and the last one.
    for (stored, without_unions) in [("v000", None), ("v000", Some("v000")), ("v099", None), ("v099", Some("v099"))] {
        let versions: Vec<Value> = names()
            .map(|name| {
                let mut version = crds::version(&name, &many(1));
                version["storage"] = (name == stored).into();
                version
            })
            .collect();
        let with_unions = names().filter(|name| Some(&**name) != without_unions);
        let unions: Map<_, _> =
            with_unions.map(|name| (name, json!({"/properties/p00000": union("a", "b")}))).collect();
        let text = crds::annotated("hostile.example", "Bad", &versions, &Value::from(unions).to_string()).to_string();
        let catalog = beside_a_good_one(&text);
        let entries: Vec<_> = catalog.entries().iter().filter(|entry| entry.gvk().version.len() == 4).collect();
        assert!(entries[0].versions_without_unions().is_empty(), "those with unions stay rather than others");
        let mut told_apart: Vec<&str> = entries.iter().map(|entry| &*entry.gvk().version).collect();
        told_apart.sort_unstable();
        assert_eq!(told_apart.len(), 64);
        let most_preferred = if without_unions == Some("v099") { ("v035", "v098") } else { ("v036", "v099") };
        assert_eq!((told_apart[0], told_apart[63]), most_preferred, "{stored} {without_unions:?}");
        for faults in [catalog.faults().to_vec(), definition_faults(&text)] {
            assert_eq!(faults.len(), 1, "{faults:#?}");
            assert_eq!((faults[0].kind, &*faults[0].pointer), (FaultKind::TooManyVersions, "/spec/versions"));
        }
    }
}

#[test]
fn two_crds_of_one_kind_are_both_out_of_force_and_named_whatever_their_order() {
    let first = crd("Thing", None, &with_union());
    let mut second = first.clone();
    second["metadata"]["name"] = "others.hostile.example".into();
    second["spec"]["names"]["plural"] = "others".into();
    for order in [[&first, &second], [&second, &first]] {
        let mut builder = Builder::new();
        for crd in order {
            builder.apply(Definition::from_json(&crd.to_string()).unwrap());
        }
        let catalog = builder.build();
        assert!(catalog.entries().is_empty());
        let lines: Vec<String> = catalog.faults().iter().map(ToString::to_string).collect();
        assert_eq!(lines.len(), 2);
        assert!(
            lines
                .iter()
                .all(|line| line.contains("`others.hostile.example`") && line.contains("`things.hostile.example`")),
            "{lines:?}"
        );
        builder.remove("others.hostile.example");
        assert_eq!(builder.build().entries().len(), 1);
    }
}

#[test]
fn documents_whose_references_multiply_or_never_end_are_refused() {
    let document = |components: Map<String, Value>| {
        let mut components = components;
        components.insert(
            "Thing".to_owned(),
            json!({"type": "object", "properties": {"spec": {"$ref": "#/components/schemas/c0"}},
            "x-kubernetes-group-version-kind": [{"group": "hostile.example", "version": "v1", "kind": "Thing"}]}),
        );
        OpenApi::parse(&json!({"openapi": "3.0.0", "components": {"schemas": components}, "paths": {}}).to_string())
            .unwrap()
    };
    let component = |number: usize| json!({"$ref": format!("#/components/schemas/c{number}")});
    let end = ("c60".to_owned(), json!({"type": "string"}));
    let doubling = (0..60).map(|number| {
        (
            format!("c{number}"),
            json!({"type": "object", "properties": {"x": component(number + 1), "y": component(number + 1)}}),
        )
    });
    let chain = (0..20_000).map(|number| (format!("c{number}"), component(number + 1)));
    for (what, components) in [("doubling", doubling.chain([end]).collect()), ("a chain", chain.collect())] {
        let document = document(components);
        let error = Definition::from_openapi([&document], "hostile.example", "Thing", false).unwrap_err().to_string();
        assert!(error.contains("too large or too deep"), "{what}: {error}");
    }
    // A cycle is a type that contains itself. It is followed once.
    let cycle = document(Map::from_iter([("c0".to_owned(), component(1)), ("c1".to_owned(), component(0))]));
    assert!(Definition::from_openapi([&cycle], "hostile.example", "Thing", false).is_ok());
}
