//! `docs/reference/schemas/suite.json`: the JSON Schema of suite files, for editors.

use super::assert_page;
use jsonschema::Validator;
use kube_unions::cli::suite_schema;
use serde_json::{Value, json};

const SAMPLE: &str = include_str!("../../../manifests/samples/rollout/suite.yaml");

#[test]
fn the_schema_of_suites_is_up_to_date() {
    assert_page("schemas/suite.json", &(serde_json::to_string_pretty(&suite_schema()).unwrap() + "\n"));
}

#[test]
fn the_schema_of_suites_names_itself_and_describes_every_field() {
    let schema = suite_schema();
    assert_eq!(schema["$id"], "https://kube-unions.dev/schemas/suite.json");
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    let objects = schema["$defs"].as_object().unwrap().values().chain([&schema]);
    let mut fields = 0;
    for object in objects {
        for (name, field) in object["properties"].as_object().into_iter().flatten() {
            assert!(field["description"].is_string(), "`{name}` has no description");
            fields += 1;
        }
    }
    assert_eq!(fields, 25);
}

#[test]
fn the_schema_of_suites_takes_the_sample_and_refuses_what_the_program_refuses() {
    let validator = Validator::new(&suite_schema()).unwrap();
    let sample: Value = fixtures::files::parse("suite.yaml", SAMPLE);
    let errors =
        |suite: &Value| validator.iter_errors(suite).map(|it| it.instance_path().to_string()).collect::<Vec<_>>();
    assert_eq!(errors(&sample), Vec::<String>::new());
    for (pointer, value, place) in [
        ("/kind", json!("Suites"), "/kind"),
        ("/apiVersion", json!("test.kube-unions.dev/v1"), "/apiVersion"),
        ("/from", json!([]), "/from"),
        ("/tests", json!([]), "/tests"),
        ("/tests/0", json!({"nam": "x", "new": "x.yaml", "want": {"accepted": {}}}), "/tests/0"),
        ("/tests/0/name", json!(""), "/tests/0/name"),
        ("/tests/0/new", json!(1), "/tests/0/new"),
        ("/tests/0/want", json!({}), "/tests/0/want"),
        ("/tests/0/want", json!({"accepted": null}), "/tests/0/want"),
        ("/tests/0/want", json!({"accepted": {}, "rejected": {"causes": [{"field": "a"}]}}), "/tests/0/want"),
        ("/tests/0/want", json!({"rejected": {"causes": []}}), "/tests/0/want/rejected"),
        ("/tests/0/want", json!({"accept": {}}), "/tests/0/want"),
    ] {
        let mut suite = sample.clone();
        *suite.pointer_mut(pointer).unwrap() = value;
        let found = errors(&suite);
        assert!(found.iter().any(|it| it.starts_with(place)), "{pointer}: {found:?}");
    }
}
