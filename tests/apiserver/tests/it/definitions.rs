//! CRDs and their objects.

use crate::sender::{Watch, create, delete, get, pass, patch, replace, send, server};
use hyper::Method;
use serde_json::{Value, json};
use simulated_apiserver::{ApiServer, Settings};
use std::time::Duration;

pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

pub(crate) fn definition() -> Value {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "size": {"type": "integer", "default": 1},
            "parts": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
        }},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }});
    let version = |name: &str, storage: bool| {
        json!({
            "name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}},
        })
    };
    json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wg"]},
            "versions": [version("v1", true), version("v2", false)],
        },
    })
}

fn slow() -> ApiServer {
    let seconds = Duration::from_secs;
    let settings =
        Settings { accept_names: seconds(1), establish: seconds(1), clean_up: seconds(1), ..Settings::default() };
    server().with_settings(settings)
}

const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

#[tokio::test(start_paused = true)]
async fn a_definition_is_established_serves_its_kind_and_ends_with_its_objects() {
    let server = slow();
    let instance = server.instance();
    let created = create(&instance, DEFINITIONS, &definition()).await;
    assert_eq!(created["spec"]["names"]["listKind"], "WidgetList");
    assert_eq!(created["status"]["storedVersions"], json!(["v1"]));
    assert_eq!(get(&instance, WIDGETS).await.0, 404);
    pass(2).await;
    let (_, established) = get(&instance, &format!("{DEFINITIONS}/widgets.example.com")).await;
    let conditions = established["status"]["conditions"].as_array().unwrap();
    let said: Vec<_> =
        conditions.iter().map(|it| (it["type"].as_str().unwrap(), it["status"].as_str().unwrap())).collect();
    assert_eq!(said, [("NamesAccepted", "True"), ("Established", "True")]);
    let (_, service) = get(&instance, "/apis/apiregistration.k8s.io/v1/apiservices/v1.example.com").await;
    assert_eq!(service["metadata"]["labels"]["kube-aggregator.kubernetes.io/automanaged"], "true");

    let widget = json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"},
        "spec": {"unknown": 1, "parts": [{"name": "x", "y": 2}]}, "status": {"x": 1},
    });
    let created = create(&instance, WIDGETS, &widget).await;
    assert_eq!(created["spec"], json!({"parts": [{"name": "x"}], "size": 1}));
    assert_eq!((&created["status"], &created["metadata"]["generation"]), (&Value::Null, &json!(1)));
    let path = format!("{WIDGETS}/a");
    let (_, changed) =
        patch(&instance, &format!("{path}/status"), "merge-patch", &json!({"status": {"x": 2}, "spec": {"size": 7}}))
            .await;
    assert_eq!((&changed["status"]["x"], &changed["spec"]["size"]), (&json!(2), &json!(1)));
    assert_eq!(changed["metadata"]["generation"], 1);
    let (_, mut other) = get(&instance, &path.replace("/v1/", "/v2/")).await;
    assert_eq!(other["apiVersion"], "example.com/v2");
    other["spec"]["size"] = json!(9);
    let (code, _) = replace(&instance, &path.replace("/v1/", "/v2/"), &other).await;
    let (_, read) = get(&instance, &path).await;
    assert_eq!((code, &read["apiVersion"], &read["spec"]["size"]), (200, &json!("example.com/v1"), &json!(9)));
    assert_eq!((&read["metadata"]["generation"], &read["status"]["x"]), (&json!(2), &json!(2)));

    let (code, ending) = delete(&instance, &format!("{DEFINITIONS}/widgets.example.com")).await;
    assert_eq!(
        (code, &ending["metadata"]["finalizers"]),
        (200, &json!(["customresourcecleanup.apiextensions.k8s.io"]))
    );
    let (code, _) = send(&instance, Method::POST, WIDGETS, Some(&widget)).await;
    assert_eq!(code, 403);
    pass(3).await;
    assert_eq!(get(&instance, &format!("{DEFINITIONS}/widgets.example.com")).await.0, 404);
    assert_eq!(get(&instance, WIDGETS).await.0, 404);
    assert_eq!(get(&instance, "/apis/apiregistration.k8s.io/v1/apiservices/v1.example.com").await.0, 404);
    assert!(server.objects("example.com", "widgets").is_empty());
}

#[tokio::test(start_paused = true)]
async fn names_that_another_definition_has_are_not_accepted() {
    let server = slow();
    let instance = server.instance();
    create(&instance, DEFINITIONS, &definition()).await;
    pass(3).await;
    let mut other = definition();
    other["metadata"]["name"] = json!("gadgets.example.com");
    other["spec"]["names"] = json!({"plural": "gadgets", "kind": "Widget"});
    create(&instance, DEFINITIONS, &other).await;
    pass(3).await;
    let (_, refused) = get(&instance, &format!("{DEFINITIONS}/gadgets.example.com")).await;
    let condition = &refused["status"]["conditions"][0];
    assert_eq!((&condition["status"], &condition["reason"]), (&json!("False"), &json!("ListKindConflict")));
    assert_eq!(get(&instance, "/apis/example.com/v1/gadgets").await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn discovery_lists_what_is_served() {
    let instance = server().instance();
    create(&instance, DEFINITIONS, &definition()).await;
    let (_, groups) = get(&instance, "/apis").await;
    let last = groups["groups"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["name"], &last["preferredVersion"]["version"]), (&json!("example.com"), &json!("v2")));
    let (_, resources) = get(&instance, "/apis/example.com/v1").await;
    let names: Vec<_> =
        resources["resources"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["widgets", "widgets/status"]);
    assert_eq!(get(&instance, "/apis/nothing.example/v1").await.0, 404);
    let client = instance.client();
    let found = client.list_api_groups_aggregated().await.unwrap();
    assert_eq!(found.items.last().unwrap().metadata.as_ref().unwrap().name.as_deref(), Some("example.com"));
    assert_eq!(client.apiserver_version().await.unwrap().minor, "36");
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_when_the_definition_of_its_objects_changes() {
    let instance = server().instance();
    create(&instance, DEFINITIONS, &definition()).await;
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}});
    let created = create(&instance, WIDGETS, &widget).await;
    let mut watch = Watch::open(&instance, &format!("{WIDGETS}?watch=1")).await;
    assert!(watch.line().await.unwrap().starts_with("ADDED a "));
    let change = json!({"spec": {"names": {"shortNames": ["w"]}}});
    patch(&instance, &format!("{DEFINITIONS}/widgets.example.com"), "merge-patch", &change).await;
    assert_eq!(watch.line().await, None);
    let version = created["metadata"]["resourceVersion"].as_str().unwrap();
    let mut watch = Watch::open(&instance, &format!("{WIDGETS}?watch=1&resourceVersion={version}")).await;
    assert_eq!(watch.next().await.unwrap()["object"]["code"], 410);
}
