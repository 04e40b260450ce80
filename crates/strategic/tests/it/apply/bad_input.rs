//! Invalid documents, schemas and managed fields give one error with the place, whatever their depth and size.

use serde_json::{Value, json};
use strategic_merge_patch::{ApplyError, Conflicts, Managers, Schema, ServerSideApply};

fn kind() -> ServerSideApply {
    let schema: Schema = serde_json::from_value(json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "replicas": {"type": "integer"}, "text": {"type": "string"}, "on": {"type": "boolean"}, "when": {"type": "string", "format": "date-time"},
        "any": {"x-kubernetes-int-or-string": true}, "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "hosts": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"],
            "items": {"type": "object", "properties": {"port": {"type": "integer"}, "protocol": {"type": "string"},
                "name": {"type": "string"}}}}}}}}))
    .unwrap();
    ServerSideApply::for_resource("Thing", &schema).unwrap()
}

#[test]
fn refuses_a_configuration_that_does_not_fit_with_the_path() {
    let rows = r#"
{"spec": {"replicas": "3"}} => the patch does not fit the schema: spec.replicas: the value is a string, but the schema declares a number
{"spec": {"text": 3}} => spec.text: the value is a number, but the schema declares a string
{"spec": {"on": "yes"}} => spec.on: the value is a string, but the schema declares a boolean
{"spec": {"when": [1]}} => spec.when: the value is a list, but the schema declares a scalar
{"spec": {"hosts": "a"}} => spec.hosts: the value is a string, but the schema declares a list
{"spec": {"hosts": [3]}} => spec.hosts[0]: the value is a number, but the schema declares a string
{"spec": {"hosts": ["a", null]}} => spec.hosts[1]: the list has null as an item; it must be a scalar
{"spec": {"hosts": [{}]}} => spec.hosts[0]: the list has an object as an item; it must be a scalar
{"spec": {"hosts": ["a", "b", "a"]}} => spec.hosts[2]: duplicate entries: an earlier item of the list has the same value
{"spec": {"ports": [{"port": 1}, {"port": 1.0}]}} => spec.ports[1]: duplicate entries: an earlier item of the list has the same keys
{"spec": {"ports": [{"name": "a"}]}} => spec.ports[0]: the item omits all key fields of its list: set `port` or `protocol`
{"spec": {"ports": [null]}} => spec.ports[0]: the list has null as an item; it must be an object
{"spec": {"ports": [{"port": []}]}} => spec.ports[0]: the key `port` is a list; it must be a scalar
{"spec": {"ports": {}}} => spec.ports: the value is an object, but the schema declares a list
{"spec": {"replica": 3}} => spec.replica: field not declared in schema
{"spec": [], "extra": 1} => spec: the value is a list, but the schema declares an object
{"metadata": {"labels": {"a": 1}}} => metadata.labels.a: the value is a number, but the schema declares a string
{"metadata": {"managedFields": []}} => metadata.managedFields must be nil: remove it from the applied configuration
{"spec": {}} => the patch has no `apiVersion`: set it, for example to `apps/v1`
[] => the patch is a list; it must be an object
{ => cannot read the patch as JSON
"#;
    let kind = kind();
    for (config, wanted) in rows.lines().filter_map(|row| row.split_once(" => ")) {
        let error = kind.apply("{}", &Managers::default(), "a", config, Conflicts::Refuse).expect_err(config);
        assert!(error.to_string().contains(wanted), "{config}: {error}");
    }
    // The object in the cluster may have duplicates, but must fit, too.
    let live = r#"{"spec": {"hosts": ["a", "a"], "any": "x"}}"#;
    kind.apply(
        live,
        &Managers::default(),
        "a",
        r#"{"apiVersion": "v1", "spec": {"any": 1, "free": {"a": [{}]}}}"#,
        Conflicts::Overwrite,
    )
    .unwrap();
    // An item of the configuration replaces them.
    let live = r#"{"spec": {"ports": [{"port": 1, "name": "a"}, {"port": 2, "name": "b"}, {"port": 1}]}}"#;
    let config = r#"{"apiVersion": "v1", "spec": {"ports": [{"port": 1}]}}"#;
    let applied = kind.apply(live, &Managers::default(), "a", config, Conflicts::Overwrite).unwrap();
    let ports = r#"{"spec":{"ports":[{"port":1},{"port":2,"name":"b"}]},"apiVersion":"v1"}"#;
    assert_eq!(applied.object, ports);
    let error = kind.update(r#"{"spec": 1}"#, &Managers::default(), "a", live).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the current object does not fit the schema: spec: the value is a number, but the schema declares an object"
    );
}

#[test]
fn refuses_broken_managed_fields_with_the_entry() {
    let fields = |fields: &str| {
        format!(
            r#"[{{"manager": "a", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {fields}}}]"#
        )
    };
    let rows = r#"
7 => metadata.managedFields: it must be a list
[7] => metadata.managedFields[0].operation: it must be `Apply` or `Update`
[{}] => metadata.managedFields[0].operation: it must be `Apply` or `Update`
[{"operation": "Patch"}] => metadata.managedFields[0].operation: it must be `Apply` or `Update`
[{"operation": "Apply"}] => metadata.managedFields[0].apiVersion: it must be the version of the fields
[{"operation": "Apply", "apiVersion": "v1"}] => metadata.managedFields[0].fieldsType: it must be `FieldsV1`, the only known format
[{"operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV2"}] => metadata.managedFields[0].fieldsType: it must be `FieldsV1`
[{"operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "manager": 7}] => metadata.managedFields[0].manager: it must be a string
"#;
    let of_fields = r#"
[] => metadata.managedFields[0].fieldsV1: it must be an object
{"f:a": 1} => metadata.managedFields[0].fieldsV1["f:a"]: it must be an object
{"f:a": {"b": {}}} => metadata.managedFields[0].fieldsV1["f:a"]["b"]: it must begin with `f:`, `k:`, `v:` or `i:`
{"spec": {}} => fieldsV1["spec"]: it must begin with
{"k:{": {}} => fieldsV1["k:{"]: a JSON object of scalars must follow `k:`
{"k:{\"a\": []}": {}} => a JSON object of scalars must follow `k:`
{"v:x": {}} => fieldsV1["v:x"]: a JSON scalar must follow `v:`
{"i:x": {}} => fieldsV1["i:x"]: an integer must follow `i:`
"#;
    let rows = rows.lines().filter_map(|row| row.split_once(" => ")).map(|(list, wanted)| (list.to_owned(), wanted));
    let of_fields =
        of_fields.lines().filter_map(|row| row.split_once(" => ")).map(|(list, wanted)| (fields(list), wanted));
    for (list, wanted) in rows.chain(of_fields) {
        let error = Managers::from_managed_fields(&serde_json::from_str(&list).unwrap()).expect_err(&list);
        assert!(error.to_string().contains(wanted), "{list}: {error}");
    }
    // A step of a later version is ignored, as the API server does.
    let later =
        Managers::from_managed_fields(&serde_json::from_str(&fields(r#"{"f:a": {"x:new": {}}}"#)).unwrap()).unwrap();
    assert_eq!(later.to_managed_fields()[0]["fieldsV1"], json!({"f:a": {}}));
    assert!(Managers::from_managed_fields(&Value::Null).unwrap().is_empty());
}

#[test]
fn refuses_an_invalid_schema_with_the_place() {
    let rows = r#"
{"properties": {"a": {"type": "array", "x-kubernetes-list-type": "bag"}}} => a: unexpected x-kubernetes-list-type `bag`: write `atomic`, `set`, or `map`
{"properties": {"a": {"type": "array", "x-kubernetes-list-type": "map"}}} => a: unexpected x-kubernetes-list-type `map`
{"properties": {"a": {"type": "object", "x-kubernetes-map-type": "set"}}} => a: unexpected x-kubernetes-map-type `set`: write `atomic` or `granular`
{"items": {"$ref": "elsewhere.json"}} => the reference `elsewhere.json` does not resolve
"#;
    for (schema, wanted) in rows.lines().filter_map(|row| row.split_once(" => ")) {
        let error = ServerSideApply::from_json_schema("Thing", schema).unwrap_err();
        assert!(error.to_string().contains(wanted), "{schema}: {error}");
    }
    let atomic = ServerSideApply::from_json_schema("Thing", r#"{"x-kubernetes-map-type": "atomic"}"#).unwrap();
    let first =
        atomic.apply("{}", &Managers::default(), "a", r#"{"apiVersion": "v1", "a": 1}"#, Conflicts::Refuse).unwrap();
    assert!(first.managers.is_empty());
}

#[test]
fn documents_may_be_nested_512_levels_deep_on_the_stack_of_a_thread() {
    const DEPTH: usize = 509;
    let work = || {
        let types = r##"{"$ref": "#/definitions/T", "definitions": {"T": {"type": "object", "properties": {
            "m": {"$ref": "#/definitions/T"}, "v": {"type": "integer"}, "k": {"type": "string"}, "apiVersion": {"type": "string"},
            "l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                  "items": {"$ref": "#/definitions/T"}}}}}}"##;
        let maps = |leaf: &str| format!("{}{leaf}{}", r#"{"m":"#.repeat(DEPTH), "}".repeat(DEPTH));
        let lists = |leaf: &str| format!("{}{leaf}{}", r#"{"k":"a","l":["#.repeat(DEPTH / 2), "]}".repeat(DEPTH / 2));
        for types in [types, "{}"] {
            let kind = ServerSideApply::from_json_schema("T", types).unwrap();
            for nest in [&maps as &dyn Fn(&str) -> String, &lists] {
                let object = |leaf: &str| nest(leaf).replacen('{', r#"{"apiVersion":"v1","#, 1);
                let (one, two) = (object(r#"{"k":"a","v":1}"#), object(r#"{"k":"a"}"#));
                let first = kind.apply("{}", &Managers::default(), "a", &*one, Conflicts::Refuse).unwrap();
                let list = first.managers.to_managed_fields();
                assert_eq!(Managers::from_managed_fields(&list).unwrap(), first.managers);
                let second = kind.apply(&*first.object, &first.managers, "a", &*two, Conflicts::Refuse).unwrap();
                assert_eq!(second.object, two);
                let managers = kind.update(&*second.object, &second.managers, "b", &*one).unwrap();
                let error =
                    kind.apply(&*one, &managers, "a", &*one.replace(":1", ":2"), Conflicts::Refuse).unwrap_err();
                assert!(matches!(&error, ApplyError::Conflicts(found) if found.len() == 1), "{error}");
            }
        }
        let nested = |levels: usize| format!("{}1{}", r#"{"f:m":"#.repeat(levels), "}".repeat(levels));
        let fields: Value = serde_json::from_str(&nested(100)).unwrap();
        let fields = (0..420).fold(fields, |inner, _| Value::Object([("f:m".to_owned(), inner)].into_iter().collect()));
        let mut list = json!([{"manager": "a", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1"}]);
        list[0].as_object_mut().unwrap().insert("fieldsV1".to_owned(), fields);
        let error = Managers::from_managed_fields(&list).unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with("metadata.managedFields[0].fieldsV1[\"f:m\"]"), "{error}");
        assert!(error.ends_with(": nested deeper than 512 levels"), "{error}");
        let kind = ServerSideApply::from_json_schema("T", "{}").unwrap();
        let deep = format!("{}1{}", r#"{"m":"#.repeat(513), "}".repeat(513));
        let error = kind.apply("{}", &Managers::default(), "a", &*deep, Conflicts::Refuse).unwrap_err();
        let source = std::error::Error::source(&error).unwrap();
        assert!(source.to_string().ends_with("nested deeper than 512 levels at line 1 column 2561"), "{source}");
    };
    std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(work).unwrap().join().unwrap();
}

#[test]
fn applies_twenty_thousand_items() {
    let config = |value: usize| {
        let ports: Vec<Value> =
            (0..20_000).map(|port| json!({"port": port, "protocol": "TCP", "name": format!("{value}")})).collect();
        json!({"apiVersion": "example.com/v1", "kind": "Thing", "spec": {"ports": ports}})
    };
    let kind = kind();
    let first = kind.apply(&json!({}), &Managers::default(), "a", &config(1), Conflicts::Refuse).unwrap();
    let error = kind.apply(&first.object, &first.managers, "b", &config(2), Conflicts::Refuse).unwrap_err();
    assert!(matches!(&error, ApplyError::Conflicts(found) if found.len() == 20_000));
    let mut half = config(1);
    half["spec"]["ports"].as_array_mut().unwrap().truncate(10_000);
    let second = kind.apply(&first.object, &first.managers, "a", &half, Conflicts::Refuse).unwrap();
    assert_eq!(second.object, half);
}
