//! Objects: reads, writes, conflicts, deletions, pages.

use crate::sender::{config_map, create, delete, get, pass, patch, replace, send, server};
use hyper::Method;
use serde_json::{Value, json};
use simulated_apiserver::ApiServer;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test(start_paused = true)]
async fn an_object_is_created_read_replaced_and_deleted() {
    let instance = server().instance();
    let created = create(&instance, MAPS, &config_map("a", "1")).await;
    assert_eq!(created["kind"], "ConfigMap");
    assert_eq!(created["metadata"]["creationTimestamp"], "2027-01-15T08:00:00Z");
    let path = format!("{MAPS}/a");
    assert_eq!(get(&instance, &path).await, (200, created.clone()));
    let (code, status) = send(&instance, Method::POST, MAPS, Some(&config_map("a", "1"))).await;
    assert_eq!((code, &status["reason"]), (409, &json!("AlreadyExists")));
    assert_eq!(status["message"], "configmaps \"a\" already exists");
    // The same again is no write.
    let (code, same) = replace(&instance, &path, &created).await;
    assert_eq!((code, &same), (200, &created));
    let mut changed = created.clone();
    changed["data"]["key"] = json!("2");
    let (code, replaced) = replace(&instance, &path, &changed).await;
    assert_eq!((code, &replaced["data"]["key"]), (200, &json!("2")));
    let (code, status) = replace(&instance, &path, &changed).await;
    assert_eq!((code, &status["reason"]), (409, &json!("Conflict")));
    assert_eq!(
        status["message"],
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the \
         latest version and try again"
    );
    let (code, status) = delete(&instance, &path).await;
    assert_eq!(
        (code, &status["status"], &status["details"]["uid"]),
        (200, &json!("Success"), &created["metadata"]["uid"])
    );
    assert_eq!(get(&instance, &path).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_stores_nothing() {
    let server = server();
    let instance = server.instance();
    let before = server.revision();
    let (code, _) = send(&instance, Method::POST, &format!("{MAPS}?dryRun=All"), Some(&config_map("a", "1"))).await;
    assert_eq!((code, server.revision()), (201, before));
    let (code, status) =
        send(&instance, Method::POST, &format!("{MAPS}?dryRun=Some"), Some(&config_map("a", "1"))).await;
    assert_eq!((code, &status["reason"]), (422, &json!("Invalid")));
}

#[tokio::test(start_paused = true)]
async fn patches_change_an_object() {
    let instance = server().instance();
    create(&instance, MAPS, &config_map("a", "1")).await;
    let path = format!("{MAPS}/a");
    let (_, patched) = patch(&instance, &path, "merge-patch", &json!({"data": {"b": "2", "key": null}})).await;
    assert_eq!(patched["data"], json!({"b": "2"}));
    let (_, patched) =
        patch(&instance, &path, "json-patch", &json!([{"op": "add", "path": "/data/c", "value": "3"}])).await;
    assert_eq!(patched["data"], json!({"b": "2", "c": "3"}));
    let failing = json!([{"op": "test", "path": "/data/c", "value": "4"}]);
    let (code, status) = patch(&instance, &path, "json-patch", &failing).await;
    assert_eq!((code, &status["reason"]), (422, &json!("Invalid")));
}

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_list_continues_at_its_version_until_the_history_is_forgotten() {
    let server = server();
    let instance = server.instance();
    for name in ["a", "b", "c", "d"] {
        create(&instance, MAPS, &config_map(name, "1")).await;
    }
    let (_, first) = get(&instance, &format!("{MAPS}?limit=2")).await;
    assert_eq!((names(&first), &first["metadata"]["remainingItemCount"]), (vec!["a", "b"], &json!(2)));
    delete(&instance, &format!("{MAPS}/c")).await;
    let token = first["metadata"]["continue"].as_str().unwrap();
    let (_, second) = get(&instance, &format!("{MAPS}?limit=2&continue={token}")).await;
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    server.compact();
    let (code, expired) = get(&instance, &format!("{MAPS}?limit=2&continue={token}")).await;
    assert_eq!((code, &expired["reason"]), (410, &json!("Expired")));
    let token = expired["metadata"]["continue"].as_str().unwrap();
    let (_, rest) = get(&instance, &format!("{MAPS}?limit=2&continue={token}")).await;
    assert_eq!(names(&rest), ["d"]);
}

#[tokio::test(start_paused = true)]
async fn selectors_choose_objects() {
    let instance = server().instance();
    for (name, labels) in [("a", json!({"x": "1"})), ("b", json!({"x": "2"}))] {
        create(&instance, MAPS, &json!({"metadata": {"name": name, "labels": labels}})).await;
    }
    for (query, wanted) in [
        ("labelSelector=x%3D1", vec!["a"]),
        ("labelSelector=x+notin+(1)", vec!["b"]),
        ("fieldSelector=metadata.name%3Db", vec!["b"]),
    ] {
        let (_, list) = get(&instance, &format!("{MAPS}?{query}")).await;
        assert_eq!(names(&list), wanted, "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_waits_for_its_finalizers() {
    let instance = server().instance();
    let path = format!("{MAPS}/a");
    create(&instance, MAPS, &json!({"metadata": {"name": "a", "finalizers": ["example.com/wait"]}})).await;
    let (code, ending) = delete(&instance, &path).await;
    assert_eq!((code, &ending["metadata"]["deletionGracePeriodSeconds"]), (200, &json!(0)));
    assert_eq!(get(&instance, &path).await.0, 200);
    let (code, _) = patch(&instance, &path, "merge-patch", &json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(code, 200);
    assert_eq!(get(&instance, &path).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_ends_with_its_contents() {
    let instance = server().instance();
    create(&instance, "/api/v1/namespaces", &json!({"metadata": {"name": "n"}})).await;
    create(&instance, "/api/v1/namespaces/n/configmaps", &config_map("a", "1")).await;
    let (code, ending) = delete(&instance, "/api/v1/namespaces/n").await;
    assert_eq!((code, &ending["status"]["phase"]), (200, &json!("Terminating")));
    let (code, status) =
        send(&instance, Method::POST, "/api/v1/namespaces/n/configmaps", Some(&config_map("b", "1"))).await;
    assert_eq!((code, &status["details"]["causes"][0]["reason"]), (403, &json!("NamespaceTerminating")));
    pass(1).await;
    assert_eq!(get(&instance, "/api/v1/namespaces/n").await.0, 404);
    assert_eq!(get(&instance, "/api/v1/namespaces/n/configmaps/a").await.0, 404);
    let (code, status) =
        send(&instance, Method::POST, "/api/v1/namespaces/n/configmaps", Some(&config_map("b", "1"))).await;
    assert_eq!((code, &status["message"]), (404, &json!("namespaces \"n\" not found")));
}

#[tokio::test(start_paused = true)]
async fn objects_without_owners_are_collected() {
    let instance = server().instance();
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let role = create(&instance, roles, &json!({"metadata": {"name": "owner"}, "rules": []})).await;
    let owner = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "owner", "uid": role["metadata"]["uid"],
    });
    create(&instance, MAPS, &json!({"metadata": {"name": "a", "ownerReferences": [owner]}})).await;
    pass(1).await;
    assert_eq!(get(&instance, &format!("{MAPS}/a")).await.0, 200);
    delete(&instance, &format!("{roles}/owner")).await;
    pass(1).await;
    assert_eq!(get(&instance, &format!("{MAPS}/a")).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn the_status_of_a_deployment_is_written_apart() {
    let instance = server().instance();
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let pod = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec = json!({"selector": {"matchLabels": {"a": "b"}}, "template": pod});
    let created = create(&instance, deployments, &json!({"metadata": {"name": "d"}, "spec": spec})).await;
    assert_eq!((&created["metadata"]["generation"], &created["spec"]["replicas"]), (&json!(1), &json!(1)));
    let path = format!("{deployments}/d");
    let change = json!({"spec": {"replicas": 5}, "status": {"replicas": 7}});
    let (_, changed) = patch(&instance, &format!("{path}/status"), "merge-patch", &change).await;
    assert_eq!((&changed["spec"]["replicas"], &changed["status"]["replicas"]), (&json!(1), &json!(7)));
    let (_, changed) = patch(&instance, &path, "merge-patch", &change).await;
    assert_eq!((&changed["spec"]["replicas"], &changed["metadata"]["generation"]), (&json!(5), &json!(2)));
    let (_, scale) = get(&instance, &format!("{path}/scale")).await;
    assert_eq!((&scale["spec"]["replicas"], &scale["status"]["replicas"]), (&json!(5), &json!(7)));
    let (code, _) = replace(&instance, &format!("{path}/scale"), &json!({"spec": {"replicas": 2}})).await;
    assert_eq!((code, &get(&instance, &path).await.1["spec"]["replicas"]), (200, &json!(2)));
}

#[tokio::test(start_paused = true)]
async fn the_storage_can_be_restored() {
    let server: ApiServer = server();
    let instance = server.instance();
    create(&instance, MAPS, &config_map("a", "1")).await;
    let snapshot = server.snapshot();
    let revision = server.revision();
    create(&instance, MAPS, &config_map("b", "1")).await;
    server.restore(&snapshot, simulated_apiserver::OpenWatches::End);
    let (_, list) = get(&instance, MAPS).await;
    assert_eq!(names(&list), ["a"]);
    assert!(server.revision() <= revision + 1, "the lease of the API server may have been renewed");
}

#[tokio::test(start_paused = true)]
async fn the_same_requests_have_the_same_answers() {
    let play = || async {
        let instance = server().instance();
        let mut answers = Vec::new();
        for count in 0..50_u32 {
            let object = json!({"metadata": {"generateName": "g-"}, "data": {"k": count.to_string()}});
            answers.push(send(&instance, Method::POST, MAPS, Some(&object)).await.1.to_string());
            answers.push(get(&instance, &format!("{MAPS}?limit=7")).await.1.to_string());
            pass(1).await;
        }
        answers
    };
    assert_eq!(play().await, play().await);
}
