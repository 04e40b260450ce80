//! What a manager owns of a configuration, by the types of the schema.

use serde_json::{Value, json};
use strategic_merge_patch::{Conflicts, Managers, Schema, ServerSideApply};

/// Returns `fieldsV1` of the only manager.
fn owned(kind: &ServerSideApply, mut config: Value) -> Value {
    config["apiVersion"] = json!("v1");
    let applied = kind.apply(&json!({}), &Managers::default(), "a", &config, Conflicts::Refuse).unwrap();
    applied.managers.to_managed_fields()[0]["fieldsV1"].clone()
}

#[test]
fn types_of_an_openapi_document_are_owned_as_the_api_server_owns_them() {
    let schema = json!({"type": "object", "properties": {
        "limits": {"type": "object", "additionalProperties": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.api.resource.Quantity"}},
        "raw": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.runtime.RawExtension"},
        "port": {"type": "string", "format": "int-or-string"},
        "selector": {"allOf": [{"$ref": "#/definitions/Reference"}], "default": {}},
        "claim": {"allOf": [{"$ref": "#/definitions/Reference"}], "x-kubernetes-map-type": "granular"},
        "kept": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "inner": {"type": "object", "properties": {"a": {"type": "string"}}}, "reference": {"$ref": "#/definitions/Plain"}}},
        "ports": {"type": "array", "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "port",
            "items": {"type": "object", "properties": {"port": {"type": "integer"}}}},
        "apiVersion": {"type": "string"}},
        "definitions": {"io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "string"},
            "io.k8s.apimachinery.pkg.runtime.RawExtension": {"type": "object"},
            "Plain": {"type": "object", "properties": {"a": {"type": "string"}}},
            "Reference": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"name": {"type": "string"}}}}});
    let kind = ServerSideApply::from_json_schema("Thing", &schema.to_string()).unwrap();
    for (config, wanted) in [
        (json!({"limits": {"cpu": 1, "memory": "1Gi"}}), json!({"f:limits": {"f:cpu": {}, "f:memory": {}}})),
        (json!({"raw": {"a": {"b": 1}}}), json!({"f:raw": {}})),
        (json!({"port": 80}), json!({"f:port": {}})),
        (
            json!({"selector": {"name": "a"}, "claim": {"name": "a"}}),
            json!({"f:claim": {"f:name": {}}, "f:selector": {}}),
        ),
        (json!({"kept": {"more": {"a": [1]}}}), json!({"f:kept": {"f:more": {".": {}, "f:a": {}}}})),
        (json!({"kept": {"inner": {"more": 1}}}), json!({"f:kept": {"f:inner": {"f:more": {}}}})),
        (json!({"ports": [{"port": 1}]}), json!({"f:ports": {"k:{\"port\":1}": {".": {}, "f:port": {}}}})),
    ] {
        assert_eq!(owned(&kind, config.clone()), wanted, "{config}");
    }
    // A type of its own does not inherit that unknown fields are kept.
    let config = json!({"apiVersion": "v1", "kept": {"reference": {"more": 1}}});
    let error = kind.apply(&json!({}), &Managers::default(), "a", &config, Conflicts::Refuse).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the patch does not fit the schema: kept.reference.more: field not declared in schema"
    );
}

#[test]
fn a_custom_resource_and_an_embedded_resource_have_the_metadata_of_every_object() {
    let schema: Schema = serde_json::from_value(json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "template": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}}}}}))
    .unwrap();
    let kind = ServerSideApply::for_resource("Thing", &schema).unwrap();
    let metadata = json!({"name": "a", "labels": {"a": "b"}, "finalizers": ["x", "y"], "ownerReferences": [{"uid": "u", "name": "n"}]});
    let of_metadata = json!({"f:finalizers": {"v:\"x\"": {}, "v:\"y\"": {}}, "f:labels": {"f:a": {}}, "f:ownerReferences": {"k:{\"uid\":\"u\"}": {}}});
    let mut of_template = of_metadata.clone();
    of_template["f:name"] = json!({});
    let config = json!({"kind": "Thing", "metadata": metadata, "spec": {"template": {"kind": "K", "metadata": metadata, "data": {"a": [1]}}}});
    let template = json!({"f:data": {".": {}, "f:a": {}}, "f:kind": {}, "f:metadata": of_template});
    assert_eq!(owned(&kind, config), json!({"f:metadata": of_metadata, "f:spec": {"f:template": template}}));
}

#[test]
fn an_update_begins_to_track_an_object_only_when_it_is_created() {
    let kind = ServerSideApply::from_json_schema("Thing", "{}").unwrap();
    let object = |value: u8| json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"uid": "u"}, "a": value});
    let created = kind.update(&json!({}), &Managers::default(), "writer", &object(1)).unwrap();
    assert_eq!(created.to_managed_fields()[0]["fieldsV1"], json!({"f:a": {}}));
    assert!(kind.update(&object(1), &Managers::default(), "writer", &object(2)).unwrap().is_empty());
    let applied = kind.apply(&object(1), &Managers::default(), "a", &object(1), Conflicts::Refuse).unwrap();
    let entries = applied.managers.to_managed_fields();
    assert_eq!((&entries[0]["manager"], &entries[1]["manager"]), (&json!("a"), &json!("before-first-apply")));
}

#[test]
fn the_applier_of_a_manifest_has_most_of_its_fields() {
    let number = json!({"type": "integer"});
    let fields = json!({"a": number, "b": number, "c": number, "d": number, "e": number});
    let (text, inside) = (json!({"type": "string"}), |fields: Value| json!({"type": "object", "properties": fields}));
    let metadata = inside(json!({"name": text}));
    let schema = inside(json!({"apiVersion": text, "kind": text, "metadata": metadata, "spec": inside(fields)}));
    let kind = ServerSideApply::from_json_schema("Thing", &schema.to_string()).unwrap();
    let object = |fields: Value| {
        let mut object = json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "x"}});
        object["spec"] = fields;
        object
    };
    let (mut live, mut managers) = (json!({}), Managers::default());
    for (manager, fields) in
        [("one", json!({"a": 1, "b": 1})), ("two", json!({"c": 1})), ("three", json!({"b": 1, "d": 1}))]
    {
        let applied = kind.apply(&live, &managers, manager, &object(fields), Conflicts::Overwrite).unwrap();
        (live, managers) = (applied.object, applied.managers);
    }
    for (fields, applier) in [
        (json!({"a": 1, "b": 2}), "one"),
        (json!({"b": 1, "d": 1, "e": 1}), "three"),
        (json!({"c": 2}), "two"),
        // Each has as many other fields, or none of the manifest.
        (json!({"b": 1}), "otherwise"),
        (json!({"e": 1}), "otherwise"),
        (json!({}), "otherwise"),
    ] {
        let manifest = object(fields);
        assert_eq!(kind.applier(&managers, &manifest, "otherwise").unwrap(), applier, "{manifest}");
    }
    // The expected manager counts if several own the same fields.
    let all = object(json!({"a": 1, "b": 1, "c": 1, "d": 1}));
    assert_eq!(kind.applier(&managers, &all, "one").unwrap(), "one");
    assert_eq!(kind.applier(&managers, &all, "three").unwrap(), "three");
    let updated = kind.update(&json!({}), &Managers::default(), "writer", &all).unwrap();
    assert_eq!(kind.applier(&updated, &all, "otherwise").unwrap(), "otherwise");
}

#[test]
fn an_applier_takes_over_the_fields_of_other_managers() {
    let kind = ServerSideApply::from_json_schema("Thing", "{}").unwrap();
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let object = |fields: Value| {
        let mut object = json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "x"}});
        object.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        object
    };
    let annotated = object(json!({"metadata": {"name": "x", "annotations": {annotation: "{}"}}, "a": 1}));
    let first = kind.update(&json!({}), &Managers::default(), "client-side", &annotated).unwrap();
    let mut more = annotated.clone();
    more["b"] = json!(1);
    let second = kind.update(&annotated, &first, "editor", &more).unwrap();
    let applied = kind.apply(&more, &second, "applier", &object(json!({"c": 1})), Conflicts::Overwrite).unwrap();
    let names = |managers: &Managers| -> Vec<String> {
        let entries = managers.to_managed_fields();
        entries.as_array().unwrap().iter().map(|it| format!("{} {}", it["manager"], it["operation"])).collect()
    };
    let mut managers = applied.managers.clone();
    assert!(!managers.take_over("applier", |it| it.applies));
    assert_eq!(managers, applied.managers);
    assert!(managers.take_over("applier", |it| !it.applies && it.has_last_applied));
    assert_eq!(names(&managers), [r#""applier" "Apply""#, r#""editor" "Update""#]);
    let stored = applied.object;
    let owned_by = |managers: &Managers, field: &str| {
        let mut without = stored.clone();
        without.as_object_mut().unwrap().remove(field);
        let owners = kind.owners(managers, &stored, &without).unwrap();
        owners.iter().map(|it| it.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(
        (owned_by(&managers, "a"), owned_by(&managers, "b")),
        (vec!["applier".to_owned()], vec!["editor".to_owned()])
    );
    assert_eq!(owned_by(&applied.managers, "a"), ["client-side"]);
    // The next apply removes the fields that it has taken over, and leaves those of others.
    let next = kind.apply(&stored, &managers, "applier", &object(json!({"c": 1})), Conflicts::Overwrite).unwrap();
    assert_eq!((next.object.get("a"), &next.object["b"], &next.object["c"]), (None, &json!(1), &json!(1)));
    // An applier that has not applied yet begins with them.
    let mut first = first;
    assert!(first.take_over("new", |_| true));
    assert_eq!(names(&first), [r#""new" "Apply""#]);
}
