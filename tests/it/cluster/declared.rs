//! Declarations and the schemas of their targets, and the groups that the API server serves from its own code, on an API server that
//! fails and changes as it is told.

use super::{Followed, faulty, kinds, until_kinds};
use fixtures::api_server::{DEFINITIONS, SERVICES};
use fixtures::object_server::{ObjectServer, ServedObjects};
use fixtures::wait::SOON;
use kube_unions_core::catalog::Catalog;
use kube_unions_core::declaration::Severity;
use kube_unions_core::union::Union;
use serde_json::{Value, json};
use std::sync::Arc;

fn follow(server: &ObjectServer) -> Followed {
    Followed::served_by(server.answers())
}

/// The document of `apps.example/v1` with the kind `Deployment`.
fn document(values: &[&str]) -> Value {
    json!({"openapi": "3.0.0", "paths": {}, "components": {"schemas": {
        "Deployment": {
            "type": "object",
            "x-kubernetes-group-version-kind": [{"group": "apps.example", "version": "v1", "kind": "Deployment"}],
            "properties": {"spec": {"allOf": [{"$ref": "#/components/schemas/Strategy"}]}},
        },
        "Strategy": {"type": "object", "properties": {
            "type": {"type": "string", "enum": values}, "rolling": {"type": "object"}, "canary": {"type": "object"},
        }},
    }}})
}

fn strategy(members: &Value) -> Value {
    json!({"target": {"group": "apps.example", "kind": "Deployment"},
        "unions": [{"path": "spec", "discriminator": "type", "fieldMembers": members}]})
}

fn rolling() -> Value {
    strategy(&json!({"Rolling": {"name": "rolling"}, "Recreate": {}}))
}

fn of_apple() -> Value {
    json!({"target": {"group": "watch.example", "kind": "Apple"},
        "unions": [{"path": "", "fieldsToDiscriminateBy": {"spec": "Spec", "data": "Data"}}]})
}

fn declared(catalog: &Catalog) -> Vec<String> {
    let unions = catalog.entries().iter().flat_map(|entry| {
        entry
            .plan()
            .unions()
            .iter()
            .filter_map(|union: &Union| Some(format!("{}: {}", entry.gvk().kind, union.declaration()?)))
    });
    unions.collect()
}

async fn until(followed: &mut Followed, what: &str, holds: impl Fn(&Catalog) -> bool) -> Arc<Catalog> {
    let settled = async {
        loop {
            if let Some(catalog) = followed.catalogs.borrow_and_update().clone().filter(|catalog| holds(catalog)) {
                return catalog;
            }
            followed.catalogs.changed().await.unwrap();
        }
    };
    tokio::time::timeout(SOON, settled).await.unwrap_or_else(|_| panic!("{what}"))
}

#[tokio::test]
async fn the_first_catalog_has_what_is_declared_of_crds_and_of_built_in_types() {
    let server = ObjectServer::with(|it| {
        it.define("Apple");
        it.declare("apple", &of_apple());
        it.declare("deployment", &rolling());
        it.documents.insert("apis/apps.example/v1".into(), ("1".into(), document(&["Rolling", "Recreate"])));
        it.documents.insert("apis/other.example/v1".into(), ("1".into(), document(&[])));
    });
    let mut followed = follow(&server);
    let catalog = followed.published().await;
    assert_eq!(declared(&catalog), ["Deployment: deployment", "Apple: apple"]);
    assert!(catalog.faults().iter().all(|fault| fault.severity() != Severity::Error), "{:?}", catalog.faults());
    server.until_said("deployment", "True", "Compiled").await;
    server.until_said("apple", "True", "Compiled").await;
    // Only what is declared is read, and a CRD that the list brought is not read again.
    assert_eq!(server.asked("GET /openapi/v3/apis/apps.example/v1?hash=1"), 1);
    assert_eq!(server.asked("GET /openapi/v3/apis/other.example"), 0);
    assert_eq!(server.asked("GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/"), 0);
}

#[tokio::test]
async fn declarations_take_effect_when_their_crd_is_installed() {
    let server = ObjectServer::with(|it| it.define("Apple"));
    let mut followed = follow(&server);
    assert_eq!(kinds(&followed.published().await), ["Apple"]);
    server.set(|it| it.declare("apple", &of_apple()));
    until(&mut followed, "declared", |catalog| declared(catalog) == ["Apple: apple"]).await;
    assert_eq!(server.asked("GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/apples.watch.example"), 0);
}

#[tokio::test]
async fn a_change_of_a_declaration_changes_its_old_target_and_its_new_one() {
    let server = ObjectServer::with(|it| {
        it.define("Apple");
        it.define("Pear");
        it.declare("fruit", &of_apple());
    });
    let mut followed = follow(&server);
    until(&mut followed, "declared", |catalog| declared(catalog) == ["Apple: fruit"]).await;
    let mut spec = of_apple();
    spec["target"]["kind"] = "Pear".into();
    server.until_said("fruit", "True", "Compiled").await;
    server.set(|it| it.declare("fruit", &spec));
    until(&mut followed, "moved", |catalog| declared(catalog) == ["Pear: fruit"]).await;
    server.until("observed", |it| it.condition("fruit").is_some_and(|it| it["observedGeneration"] == 2)).await;
    server.set(|it| it.withdraw("fruit"));
    until(&mut followed, "withdrawn", |catalog| declared(catalog).is_empty()).await;
    assert_eq!(kinds(&followed.catalogs.borrow().clone().unwrap()), ["Apple", "Pear"]);
}

#[tokio::test]
async fn documents_that_cannot_be_read_leave_in_force_what_is_and_are_asked_for_again() {
    let server = ObjectServer::with(|it| {
        it.declare("deployment", &rolling());
        it.documents.insert("apis/apps.example/v1".into(), ("1".into(), document(&["Rolling", "Recreate"])));
        it.broken = vec!["/openapi"];
    });
    let mut followed = follow(&server);
    // It was tried, and what could be had is in force.
    assert!(declared(&*followed.published().await).is_empty());
    server.set(|it| it.broken.clear());
    until(&mut followed, "recovered", |catalog| declared(catalog) == ["Deployment: deployment"]).await;
    server.until_said("deployment", "True", "Compiled").await;

    // The same once it has been in force: nothing is lost while it fails, nor said of what is not known.
    server.set(|it| {
        it.broken = vec!["/openapi"];
        it.declare("deployment", &strategy(&json!({"Rolling": {"name": "canary"}, "Recreate": {}})));
    });
    let asked = server.asked("GET /openapi/v3");
    server.until("asked again", |it| it.log.iter().filter(|it| *it == "GET /openapi/v3").count() > asked + 1).await;
    let catalog = followed.catalogs.borrow().clone().unwrap();
    assert_eq!(declared(&catalog), ["Deployment: deployment"]);
    server.set(|it| {
        assert_eq!(it.condition("deployment").unwrap()["observedGeneration"], 1);
        it.broken.clear();
    });
    server.until("observed", |it| it.condition("deployment").unwrap()["observedGeneration"] == 2).await;
}

#[tokio::test]
async fn a_second_start_writes_no_status() {
    const EACH: usize = 20;
    let server = ObjectServer::with(|it| {
        it.define("Apple");
        it.documents.insert("apis/apps.example/v1".into(), ("1".into(), document(&["Rolling", "Recreate"])));
        let mut elsewhere = of_apple();
        elsewhere["target"]["kind"] = "Pear".into();
        let invalid = strategy(&json!({"Rolling": {"name": "type"}, "Recreate": {}}));
        let unreadable = json!({"target": 7});
        for number in 0..EACH {
            for (name, spec) in [
                ("apple", &of_apple()),
                ("deployment", &rolling()),
                ("elsewhere", &elsewhere),
                ("invalid", &invalid),
                ("unreadable", &unreadable),
            ] {
                it.declare(&format!("{name}-{number}"), spec);
            }
        }
    });
    let mut first = follow(&server);
    first.published().await;
    let judged =
        |it: &ServedObjects| it.declarations.iter().flatten().filter(|(name, _)| it.condition(name).is_some()).count();
    server.until("every one is judged", |it| judged(it) == 5 * EACH).await;
    assert_eq!(server.asked("PATCH"), 5 * EACH);
    let message = server.until_said("unreadable-0", "False", "Invalid").await;
    assert!(message.contains("spec.target"), "{message}");
    first.task.abort();
    assert!(first.task.await.unwrap_err().is_cancelled());
    server.set(|it| it.streams.clear());

    let mut second = follow(&server);
    second.published().await;
    // Statuses are written in the order of names, so that the last one shows that the others would have been.
    server.set(|it| it.declare("zebra", &of_apple()));
    server.until_said("zebra", "True", "Compiled").await;
    assert_eq!(server.asked("PATCH"), 5 * EACH + 1);
}

#[tokio::test]
async fn a_new_document_is_read_when_the_watch_has_been_broken() {
    let server = ObjectServer::with(|it| {
        it.declare("deployment", &rolling());
        it.documents.insert("apis/apps.example/v1".into(), ("1".into(), document(&["Rolling", "Recreate"])));
    });
    let mut followed = follow(&server);
    until(&mut followed, "in force", |catalog| declared(catalog) == ["Deployment: deployment"]).await;
    server.until_said("deployment", "True", "Compiled").await;
    // A new version of the server: one more value, which the declaration does not have.
    server.set(|it| {
        let entry = ("2".into(), document(&["Rolling", "Recreate", "Canary"]));
        it.documents.insert("apis/apps.example/v1".into(), entry);
        it.break_off();
    });
    let message = server.until_said("deployment", "False", "Invalid").await;
    assert!(message.contains("Canary"), "{message}");
    assert_eq!(server.asked("GET /openapi/v3/apis/apps.example/v1?hash=2"), 1);
    // Looked at again, and it is the same: nothing is read.
    let looked = server.asked("GET /openapi/v3");
    server.set(ServedObjects::break_off);
    server
        .until("looked again", |it| it.log.iter().filter(|it| it.starts_with("GET /openapi/v3")).count() > looked)
        .await;
    assert_eq!(server.asked("GET /openapi/v3/apis/apps.example/v1?hash=2"), 1);
}

#[tokio::test]
async fn thousands_of_declarations_cost_one_fetch_a_target() {
    let server = ObjectServer::with(|it| {
        it.define("Apple");
        it.documents.insert("apis/apps.example/v1".into(), ("1".into(), document(&["Rolling", "Recreate"])));
        for number in 0..1_000 {
            it.declare(&format!("apple-{number:05}"), &of_apple());
            it.declare(&format!("deployment-{number:05}"), &rolling());
        }
    });
    let mut followed = follow(&server);
    let catalog = followed.published().await;
    assert_eq!(declared(&catalog).len(), 2);
    assert_eq!(server.asked("GET /openapi/v3/"), 1);
    // One that is good among them counts at once, however many conditions are still to be written.
    server.set(|it| it.define("Pear"));
    until(&mut followed, "pear", |catalog| catalog.lookup("watch.example", "v1", "Pear").is_some()).await;
}

#[tokio::test]
async fn what_is_asked_about_a_declaration_is_answered_from_the_cluster() {
    let server = ObjectServer::with(|it| {
        it.define("Apple");
        it.documents.insert("apis/apps.example/v1".into(), ("1".into(), document(&["Rolling", "Recreate"])));
    });
    let mut followed = follow(&server);
    followed.published().await;
    let object = |spec: &Value| {
        json!({"apiVersion": "kube-unions.dev/v1alpha1", "kind": "UnionDeclaration", "metadata": {"name": "x"}, "spec": spec})
            .to_string()
    };
    let inspect = async |spec: Value| followed.cluster.inspect(&object(&spec)).await;
    let errors = async |spec: Value| {
        let faults = inspect(spec).await.unwrap();
        faults.into_iter().filter(|fault| fault.severity() == Severity::Error).map(|it| it.pointer).collect::<Vec<_>>()
    };
    assert!(errors(rolling()).await.is_empty());
    assert!(errors(of_apple()).await.is_empty());
    assert_eq!(errors(strategy(&json!({"Rolling": {"name": "type"}, "Recreate": {}}))).await, ["/spec/unions/0"]);
    let mut spec = of_apple();
    spec["target"]["kind"] = "Plum".into();
    let faults = inspect(spec).await.unwrap();
    assert_eq!((faults.len(), faults[0].severity(), faults[0].pointer.as_str()), (1, Severity::Note, "/spec/target"));
    // Nothing old is kept.
    let canary = strategy(&json!({"Rolling": {"name": "rolling"}, "Recreate": {}, "Canary": {"name": "canary"}}));
    assert_eq!(errors(canary.clone()).await, ["/spec/unions/0"]);
    let values = document(&["Rolling", "Recreate", "Canary"]);
    server.set(|it| drop(it.documents.insert("apis/apps.example/v1".into(), ("2".into(), values))));
    assert!(errors(canary.clone()).await.is_empty());

    // How many share a read depends on when each asks. The unit test of the reads has them ask at once.
    let apple = format!("GET {DEFINITIONS}/apples.watch.example");
    let asked = || ["GET /openapi/v3", &apple].map(|read| server.requests(|it| it == read));
    let before = asked();
    let objects = [object(&canary), object(&of_apple())];
    let inspections = objects.iter().cycle().take(40).map(|object| followed.cluster.inspect(object));
    for faults in futures::future::join_all(inspections).await {
        assert_eq!(faults.unwrap(), []);
    }
    for (before, after) in before.into_iter().zip(asked()) {
        assert!((1..20).contains(&(after - before)), "each of 20 made its own request");
    }
    server.set(|it| it.broken = vec!["/openapi"]);
    assert!(inspect(rolling()).await.is_err());
}

/// Returns what the API server tells of a group and version that it serves.
fn service(group: &str, version: &str, label: &str) -> Value {
    json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": format!("{version}.{group}"), "resourceVersion": "100",
            "labels": {"kube-aggregator.kubernetes.io/automanaged": label}},
        "spec": {"group": group, "version": version, "groupPriorityMinimum": 1000, "versionPriority": 100},
    })
}

#[tokio::test]
async fn a_crd_of_the_projects_groups_counts_only_while_the_server_says_that_the_group_is_not_its_own() {
    const GROUP: &str = "gateway.networking.k8s.io";
    let server = ObjectServer::with(|it| {
        it.define_in(GROUP, "Gateway");
        it.define("Apple");
    });
    let mut followed = follow(&server);
    // They may not be read: nothing is taken for a CRD's that might be the server's own, and the rest is in force.
    let catalog = until_kinds(&mut followed, &["Apple"]).await;
    assert_eq!(faulty(&catalog), ["gateways.gateway.networking.k8s.io"]);
    assert!(catalog.faults()[0].message.contains("apiservices"), "{}", catalog.faults()[0]);

    // The right is granted.
    server.set(|it| it.services = Some(vec![service("apps", "v1", "onstart"), service(GROUP, "v1", "true")]));
    let catalog = until_kinds(&mut followed, &["Gateway", "Apple"]).await;
    assert!(faulty(&catalog).is_empty());

    // A new version of the server brings the group itself.
    server.until("the services are watched", |it| it.streams.iter().any(|(of, _)| *of == SERVICES)).await;
    server.set(|it| it.tell(SERVICES, "ADDED", &service(GROUP, "v2", "onstart").to_string()));
    let catalog = until_kinds(&mut followed, &["Apple"]).await;
    assert!(catalog.faults()[0].message.contains("serves this group from its own code"), "{}", catalog.faults()[0]);
}
