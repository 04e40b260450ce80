//! The cost of inspections of declarations to the API server, which no forged review can cause.

use super::{Inner, Server, document, of_apple, rolling};
use crate::webhook::wire::{Request, Running, token};
use fixtures::api_server::DEFINITIONS;
use fixtures::reviews;
use hyper::Method;
use kube_unions::webhook::Inspector;
use serde_json::{Value, json};
use std::sync::Arc;

/// A cluster with a CRD and a document, followed; its webhook; and how many requests both have made so far.
async fn served(server: &Server) -> (super::Followed, Arc<Running>) {
    let mut followed = server.follow();
    followed.published().await;
    let cluster = followed.cluster.clone();
    let inspector: Inspector = Arc::new(move |object| {
        let cluster = cluster.clone();
        Box::pin(async move { Ok(cluster.inspect(&object).await?) })
    });
    (followed, Arc::new(Running::inspecting(inspector).await))
}

fn server() -> Server {
    Server::new().with(|it| {
        it.define("Apple");
        it.documents.insert("apis/apps.example/v1".into(), ("1".into(), document(&["Rolling", "Recreate"])));
    })
}

fn declaration(spec: &Value) -> Value {
    json!({"apiVersion": "kube-unions.dev/v1alpha1", "kind": "UnionDeclaration", "metadata": {"name": "x"}, "spec": spec})
}

fn review(spec: &Value) -> String {
    reviews::review("1", "CREATE", Some(&declaration(spec)), None).to_string()
}

/// The requests that have been made for what a declaration is about.
fn gets(server: &Server) -> Vec<String> {
    let of_a_target = |line: &&String| {
        line.starts_with("GET /openapi") || line.starts_with(&format!("{} {DEFINITIONS}/", Method::GET))
    };
    server.0.lock().unwrap().log.iter().filter(of_a_target).cloned().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_reviews_of_declarations_cost_the_api_server_nothing() {
    let server = server();
    let (_followed, webhook) = served(&server).await;
    let before = gets(&server);
    let mut specs = vec![rolling(), of_apple()];
    for (group, kind) in [("apps.example", "Nothing"), ("nowhere.example", "Deployment"), ("watch.example", "../Apple")]
    {
        let mut spec = rolling();
        (spec["target"]["group"], spec["target"]["kind"]) = (group.into(), kind.into());
        specs.push(spec);
    }
    let mut nowhere = of_apple();
    nowhere["unions"][0]["path"] = "no..such.place".into();
    specs.push(nowhere);
    for spec in &specs {
        let answer = webhook.send(&Request::post("/validate", review(spec))).await;
        assert_eq!(answer.json()["response"], json!({"uid": "1", "allowed": true}), "{spec}");
        let wrong =
            webhook.send(&Request::post("/validate/inspect/00000000000000000000000000000000", review(spec))).await;
        assert_eq!(wrong.code, 404);
    }
    assert_eq!(gets(&server), before, "nobody was asked");
    // The API server itself is answered.
    let answer = webhook.send(&Request::post(&token().path(), review(specs.last().unwrap()))).await;
    assert_eq!(answer.json()["response"]["allowed"], false, "{answer:?}");
    assert_eq!(gets(&server).len(), before.len() + 1);
}

#[tokio::test]
async fn inspections_at_once_share_what_they_read() {
    let server = server();
    let mut followed = server.follow();
    followed.published().await;
    let before = gets(&server).len();
    let objects = [rolling(), of_apple()].map(|spec| declaration(&spec).to_string());
    let inspections = objects.iter().cycle().take(40).map(|object| followed.cluster.inspect(object));
    for faults in futures::future::join_all(inspections).await {
        assert_eq!(faults.unwrap(), []);
    }
    let made = gets(&server).split_off(before);
    // How many share a read depends on when each asks. The unit test of the reads has them ask at once.
    for request in ["GET /openapi/v3", &format!("GET {DEFINITIONS}/apples.watch.example")] {
        let reads = made.iter().filter(|line| *line == request).count();
        assert!((1..20).contains(&reads), "each of 20 made its own {request}: {made:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_just_been_applied_is_what_an_inspection_sees() {
    let server = server();
    let (_followed, webhook) = served(&server).await;
    let allowed = async |spec: &Value| {
        let answer = webhook.send(&Request::post(&token().path(), review(spec))).await;
        answer.json()["response"]["allowed"].as_bool().unwrap()
    };
    let mut spec = rolling();
    spec["unions"][0]["fieldMembers"]["Canary"] = json!({"name": "canary"});
    assert!(!allowed(&spec).await);
    server.set(|it: &mut Inner| {
        let document = document(&["Rolling", "Recreate", "Canary"]);
        it.documents.insert("apis/apps.example/v1".into(), ("2".into(), document));
    });
    assert!(allowed(&spec).await, "nothing old is kept");
}
