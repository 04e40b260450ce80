//! The defaults of a schema: the offline commands complete an object as the API server does, and judge what it judges.

use serde_json::{Map, Value, json};

use super::{IN_FORCE, Native};
use crate::support::process::Workspace;
use crate::support::webhook::kube_unions;
use fixtures::crds::{annotated, custom_resource, version};
use fixtures::reviews::catalog;
use fixtures::wait::eventually;
use kube_unions_core::declaration::Definition;
use kube_unions_policies::PolicyOptions;

const GROUP: &str = "defaults.example";
const COLLECTION: &str = "/apis/defaults.example/v1/namespaces/default/things";

/// Returns the CRD. A union's discriminator has a default, and so have fields at every kind of place.
fn definition() -> Value {
    let moded = json!({"type": "object", "properties": {"mode": {"type": "string", "default": "A"}, "size": {"type": "integer"}}});
    let spec = json!({"type": "object", "properties": {
        "type": {"type": "string", "enum": ["Plain", "Canary", "Blue"], "default": "Plain"},
        "canary": {"type": "object", "properties": {
            "weight": {"type": "integer", "default": 10},
            "steps": {"type": "array", "items": {"type": "object", "properties": {
                "name": {"type": "string"}, "pause": {"type": "boolean", "default": false}}}}}},
        "blue": {"type": "object", "properties": {"name": {"type": "string"}}},
        "list": {"type": "array", "items": moded},
        "filled": {"type": "array", "items": {"type": "string", "default": "F"}},
        "map": {"type": "object", "additionalProperties": moded},
        "words": {"type": "object", "additionalProperties": {"type": "string"}},
        "filledMap": {"type": "object", "additionalProperties": {"type": "string", "default": "V"}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"known": {"type": "string", "default": "K"}}},
        "maybe": {"type": "string", "nullable": true, "default": "M"},
        "nothing": {"type": "string", "nullable": true},
        "text": {"type": "string"},
        "amount": {"x-kubernetes-int-or-string": true, "default": 5},
        "made": {"type": "object", "default": {}, "properties": {
            "deep": {"type": "object", "default": {}, "properties": {"size": {"type": "integer", "default": 3}}}}},
        "open": {"type": "object", "properties": {"inner": {"type": "object", "properties": {
            "list": {"type": "array", "default": ["x"], "items": {"type": "string"}}}}}},
        "embedded": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"spec": {"type": "object", "default": {}, "properties": {"level": {"type": "integer", "default": 1}}}}},
    }});
    let unions = json!({"v1": {"/properties/spec/properties/type": {"fieldMembers": {
        "Plain": null, "Canary": {"name": "canary"}, "Blue": {"name": "blue", "optional": true}}}}});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    annotated(GROUP, "Thing", &[version("v1", &schema)], &unions.to_string())
}

/// Returns the values of `spec`.
fn specs() -> Vec<Value> {
    let embedded = |more: Value| {
        let mut object = json!({"apiVersion": "v1", "kind": "Other", "metadata": {"name": "other"}});
        object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"embedded": object})
    };
    vec![
        json!({}),
        json!({"type": "Blue"}),
        json!({"type": null}),
        json!({"canary": {}}),
        json!({"canary": {"weight": null}}),
        json!({"canary": null}),
        json!({"type": null, "canary": {"weight": 1}}),
        json!({"type": "Canary", "canary": {"steps": [{}, {"name": "two"}, {"pause": true}, {"pause": null, "name": null}]}}),
        json!({"type": "Canary"}),
        json!({"type": "Canary", "canary": null}),
        json!({"type": "Blue", "blue": {"name": null}}),
        json!({"blue": {}}),
        json!({"list": []}),
        json!({"list": [{}, {"mode": "B"}, {"mode": null, "size": null}]}),
        json!({"list": null}),
        json!({"filled": [null, "x"]}),
        json!({"map": {}}),
        json!({"map": {"a": {}, "b": {"mode": "B", "size": 2}, "c": {"mode": null}}}),
        json!({"map": {"a": null}}),
        json!({"words": {"a": null, "b": "x"}}),
        json!({"filledMap": {"a": null, "b": "x"}}),
        json!({"free": {}}),
        json!({"free": {"known": null, "unknown": null, "more": {"deep": null, "list": [null]}}}),
        json!({"maybe": null, "nothing": null, "text": null}),
        json!({"maybe": "", "amount": null}),
        json!({"amount": "50%"}),
        json!({"made": {}}),
        json!({"made": {"deep": {"size": 4}}}),
        json!({"made": {"deep": null}}),
        json!({"made": null}),
        json!({"open": {}}),
        json!({"open": {"inner": {}}}),
        json!({"open": {"inner": {"list": []}}}),
        json!({"open": {"inner": null}}),
        embedded(json!({})),
        embedded(json!({"spec": {}})),
        embedded(json!({"spec": {"level": 2}, "data": {"a": null}})),
        embedded(json!({"spec": null})),
    ]
}

fn thing(spec: &Value) -> Value {
    custom_resource(GROUP, "Thing", "thing", &json!({"spec": spec}))
}

#[test]
fn objects_are_completed_as_the_api_server_completes_them() {
    let Some(native) = Native::start() else { return };
    let definition = definition();
    native.apply(&definition);
    native.wait_until_served(COLLECTION);
    let schema = Definition::from_json(&definition.to_string()).unwrap().take_versions().remove(0).schema;
    let specs = specs();
    let mut differences = Vec::new();
    for spec in &specs {
        let mut object = thing(spec);
        let answer = native.send("POST", &format!("{COLLECTION}?dryRun=All"), &object);
        assert!(answer.is_success(), "{spec}: {}", answer.body);
        schema.complete(&mut object).unwrap();
        let stored = answer.body.get("spec").cloned().unwrap_or(Value::Object(Map::new()));
        if stored != object["spec"] {
            differences.push(format!("{spec}\n  stored    {stored}\n  completed {}", object["spec"]));
        }
    }
    assert!(specs.len() >= 20 && differences.is_empty(), "{}", differences.join("\n"));

    // The verdict of `audit --from` is that of the API server, which judges objects with their defaults.
    native.install(&catalog(&[&definition]), &PolicyOptions::default());
    let create = |spec: &Value| native.send("POST", &format!("{COLLECTION}?dryRun=All"), &thing(spec));
    let denied = json!({"type": "Canary"});
    assert!(eventually(IN_FORCE, || create(&denied).status == 422), "{}", create(&denied).body);
    let workspace = Workspace::new("defaults");
    let crd = workspace.write("crd.json", &definition.to_string());
    let crd = crd.to_str().unwrap();
    let mut seen = [0, 0];
    for spec in &specs {
        let is_denied = !create(spec).is_success();
        for command in [["audit", "--from", crd, "--from", "-"], ["normalize", "--from", crd, "-f", "-"]] {
            let output = kube_unions(&command, &thing(spec).to_string());
            assert_eq!(output.code, Some(i32::from(is_denied)), "{command:?} {spec}: {output:?}");
        }
        seen[usize::from(is_denied)] += 1;
    }
    assert!(seen[0] > 10 && seen[1] > 3, "{seen:?}");
}
