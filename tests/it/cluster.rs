//! The watch of definitions, on an API server that fails in ways a real one cannot be made to.
//!
//! Every request arrives at the test, which answers it: nothing happens by itself, and in no other order.

mod declared;
mod endless;

use fixtures::api_server::{Call, DECLARATIONS, DEFINITIONS, SERVICES, Stream, in_process, status};
use fixtures::crds::{established, names};
use fixtures::object_server::definition;
use fixtures::wait::{SOON, until};
use kube::Client;
use kube_unions_core::catalog::Catalog;
use kube_unions_webhook::follow::{BuiltinUnions, Cluster, Link};
use kube_unions_webhook::telemetry::Metrics;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// A watch under test.
struct Followed {
    calls: mpsc::UnboundedReceiver<Call>,
    catalogs: watch::Receiver<Option<Arc<Catalog>>>,
    link: Link,
    metrics: Metrics,
    task: JoinHandle<()>,
    cluster: Cluster,
}

impl Followed {
    /// On a cluster without declarations. The test answers what is asked about definitions.
    fn start() -> Self {
        let (definitions, incoming) = mpsc::unbounded_channel();
        Self::on(incoming, move |call| match call.path.as_str() {
            DECLARATIONS | SERVICES => call.not_found(),
            DEFINITIONS => definitions.send(call).unwrap_or_default(),
            path => panic!("{path}"),
        })
    }

    /// On a cluster that answers every request by itself.
    fn served_by(answer: impl Fn(Call) + Send + Sync + 'static) -> Self {
        let (_, nothing) = mpsc::unbounded_channel();
        Self::on(nothing, answer)
    }

    fn on(calls: mpsc::UnboundedReceiver<Call>, answer: impl Fn(Call) + Send + Sync + 'static) -> Self {
        let metrics = Metrics::new();
        let link = Link::new(metrics.watch_connected.clone(), metrics.watch_proven.clone());
        let client = Client::new(in_process(answer), "default");
        let (publish, catalogs) = watch::channel(None);
        let cluster = Cluster::new(client, BuiltinUnions::Ignored, metrics.own_groups_known.clone());
        let (followed, watched) = (cluster.clone(), link.clone());
        let task = tokio::spawn(async move { followed.follow(watched, publish).await });
        Self { calls, catalogs, link, metrics, task, cluster }
    }

    /// With these definitions listed, and watching.
    async fn listed(items: &[String]) -> (Self, Stream) {
        let mut followed = Self::start();
        followed.call().await.page(items, "");
        let stream = followed.call().await.stream();
        followed.published().await;
        (followed, stream)
    }

    async fn call(&mut self) -> Call {
        tokio::time::timeout(SOON, self.calls.recv()).await.expect("a request comes").unwrap()
    }

    /// The next catalog.
    async fn published(&mut self) -> Arc<Catalog> {
        tokio::time::timeout(SOON, self.catalogs.changed()).await.expect("a catalog comes").unwrap();
        self.catalogs.borrow_and_update().clone().unwrap()
    }

    async fn until_up(&self, up: bool) {
        until("the link changes", async || self.link.is_up() == up).await;
        assert_eq!(self.metrics.watch_connected.get(), i64::from(up));
    }
}

/// One that nothing can be made of.
fn garbage(name: &str, version: u32, spec: &str) -> String {
    let status = established(&names("Deep"));
    format!(r#"{{"metadata":{{"name":"{name}","resourceVersion":"{version}"}},"spec":{spec},"status":{status}}}"#)
}

fn kinds(catalog: &Arc<Catalog>) -> Vec<&str> {
    catalog.entries().iter().map(|entry| &*entry.gvk().kind).collect()
}

fn faulty(catalog: &Arc<Catalog>) -> Vec<&str> {
    catalog.faults().iter().map(|fault| fault.definition.as_str()).collect()
}

#[tokio::test]
async fn nothing_is_published_before_the_first_list_is_complete() {
    let mut followed = Followed::start();
    let first = followed.call().await;
    assert_eq!(first.parameter("limit"), Some("10"));
    first.page(&[definition("Apple", 1)], "next-page");
    let second = followed.call().await;
    assert_eq!(second.parameter("continue"), Some("next-page"));
    // The first page has been read, or the second would not be asked for.
    assert!(followed.catalogs.borrow().is_none());
    second.page(&[definition("Pear", 2)], "");
    assert_eq!(kinds(&followed.published().await), ["Apple", "Pear"]);
}

#[tokio::test]
async fn a_definition_that_is_garbage_costs_no_other() {
    let deep = "{\"properties\":{\"x\":".repeat(4_500) + "{}" + &"}}".repeat(4_500);
    let deep = format!(
        r#"{{"group":"watch.example","names":{{"kind":"Deep","plural":"deeps"}},"scope":"Namespaced",
            "versions":[{{"name":"v1","served":true,"storage":true,"schema":{{"openAPIV3Schema":{deep}}}}}]}}"#
    );
    let items = [
        garbage("deeps.watch.example", 1, &deep),
        definition("Apple", 2),
        garbage("number.watch.example", 3, "7"),
        r#"{"metadata":{"name":"nothing.watch.example"}}"#.to_owned(),
        r#"{"metadata":{"name":"odd.watch.example","annotations":"no map"},"spec":{}}"#.to_owned(),
        r#"{"metadata":[]}"#.to_owned(),
        r#""no object at all""#.to_owned(),
        definition("Pear", 4),
    ];
    let mut followed = Followed::start();
    followed.call().await.page(&items, "");
    let stream = followed.call().await.stream();
    let catalog = followed.published().await;
    assert_eq!(kinds(&catalog), ["Apple", "Pear"]);
    let names = ["deeps", "nothing", "number", "odd"].map(|it| format!("{it}.watch.example"));
    assert_eq!(faulty(&catalog), names);

    // The same, while watching.
    stream.event("MODIFIED", &garbage("number.watch.example", 5, &deep));
    stream.event("ADDED", &definition("Cherry", 6));
    let mut catalog = followed.published().await;
    if kinds(&catalog).len() < 3 {
        catalog = followed.published().await;
    }
    assert_eq!(kinds(&catalog), ["Apple", "Cherry", "Pear"]);
    assert_eq!(faulty(&catalog), names);
}

#[tokio::test]
async fn a_definition_that_turns_to_garbage_is_out_of_force_until_it_is_mended() {
    let (mut followed, stream) = Followed::listed(&[definition("Apple", 1)]).await;
    stream.event("MODIFIED", &garbage("apples.watch.example", 2, "[]"));
    let catalog = followed.published().await;
    assert!(kinds(&catalog).is_empty());
    assert_eq!(faulty(&catalog), ["apples.watch.example"]);
    stream.event("MODIFIED", &definition("Apple", 3));
    let catalog = followed.published().await;
    assert_eq!(kinds(&catalog), ["Apple"]);
    assert!(faulty(&catalog).is_empty());
}

#[tokio::test]
async fn a_definition_counts_once_it_is_established_by_the_names_that_were_accepted() {
    let (mut followed, stream) = Followed::listed(&[definition("Apple", 1)]).await;
    let with_status = |version: u32, status: Value| {
        let mut definition: Value = serde_json::from_str(&definition("Pear", version)).unwrap();
        definition["status"] = status;
        definition.to_string()
    };
    let mut status = established(&names("Pear"));
    status["conditions"][1]["status"] = "False".into();
    stream.event("ADDED", &with_status(101, status.clone()));
    // An event of another CRD: once it is seen, the first one was seen, too.
    stream.event("ADDED", &definition("Cherry", 102));
    until_kinds(&mut followed, &["Apple", "Cherry"]).await;
    assert!(faulty(&followed.catalogs.borrow().clone().unwrap()).is_empty(), "it is only not established yet");

    status = established(&names("Pear"));
    status["acceptedNames"] = json!({"kind": "Plum", "plural": "plums"});
    stream.event("MODIFIED", &with_status(103, status.clone()));
    let catalog = until_kinds(&mut followed, &["Apple", "Cherry", "Plum"]).await;
    assert_eq!(catalog.lookup("watch.example", "v1", "Plum").unwrap().resource().unwrap().plural, "plums".into());

    status["conditions"][0] =
        json!({"type": "NamesAccepted", "status": "False", "reason": "KindConflict", "message": "it is taken"});
    stream.event("MODIFIED", &with_status(104, status));
    let catalog = until_kinds(&mut followed, &["Apple", "Cherry"]).await;
    let [fault] = catalog.faults() else { panic!("{:?}", catalog.faults()) };
    assert!(fault.definition == "pears.watch.example" && fault.message.contains("KindConflict"), "{fault}");
}

#[tokio::test]
async fn a_second_claim_to_a_kind_names_both_and_changes_nothing() {
    let (mut followed, stream) = Followed::listed(&[definition("Pear", 1)]).await;
    let mut second: Value = serde_json::from_str(&definition("Pear", 101)).unwrap();
    second["metadata"]["name"] = "apples.watch.example".into();
    second["spec"]["names"]["plural"] = "apples".into();
    second["status"] = json!({"acceptedNames": {"kind": "", "plural": "apples"}, "conditions": [
        {"type": "NamesAccepted", "status": "False", "reason": "KindConflict", "message": "\"Pear\" is already in use"},
        {"type": "Established", "status": "False", "reason": "NotAccepted", "message": "not all names are accepted"}]});
    stream.event("ADDED", &second.to_string());
    let catalog = followed.published().await;
    assert_eq!(catalog.lookup("watch.example", "v1", "Pear").unwrap().resource().unwrap().plural, "pears".into());
    let [fault] = catalog.faults() else { panic!("{:?}", catalog.faults()) };
    let line = fault.to_string();
    assert!(
        ["apples.watch.example", "`pears.watch.example`", "Pear.watch.example"].iter().all(|it| line.contains(it)),
        "{line}"
    );
}

/// The first catalog that has these kinds.
async fn until_kinds(followed: &mut Followed, wanted: &[&str]) -> Arc<Catalog> {
    loop {
        let catalog = followed.published().await;
        if kinds(&catalog) == wanted {
            return catalog;
        }
    }
}

#[tokio::test]
async fn thousands_of_unions_that_go_bad_at_once_keep_no_other_change_waiting() {
    const MANY: usize = 2_000;
    let with_unions = |version: u32, member: &str| {
        let field = json!({"type": "string"});
        let union = json!([{"fields-to-discriminateBy": {"a": "A", member: "B"}}]);
        let inner = json!({"type": "object", "properties": {"a": field, "b": field}, "x-kubernetes-unions": union});
        let properties: serde_json::Map<_, _> = (0..MANY).map(|number| (format!("p{number}"), inner.clone())).collect();
        let mut definition: Value = serde_json::from_str(&definition("Large", version)).unwrap();
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] = properties.into();
        definition.to_string()
    };
    let (mut followed, stream) = Followed::listed(&[with_unions(1, "b")]).await;
    assert_eq!(kinds(&followed.catalogs.borrow().clone().unwrap()), ["Large"]);
    stream.event("MODIFIED", &with_unions(101, "typo"));
    stream.event("ADDED", &definition("Pear", 102));
    until_kinds(&mut followed, &["Pear"]).await;
}

#[tokio::test]
async fn what_changes_nothing_is_not_published() {
    let (mut followed, stream) = Followed::listed(&[definition("Apple", 1)]).await;
    let mut same: Value = serde_json::from_str(&definition("Apple", 101)).unwrap();
    same["status"]["storedVersions"] = json!(["v1"]);
    stream.event("MODIFIED", &same.to_string());
    same["metadata"]["resourceVersion"] = "102".into();
    same["metadata"]["annotations"] = json!({"of": "interest"});
    stream.event("MODIFIED", &same.to_string());
    drop(stream);
    // The watch goes on from behind both, so that both have been seen. No union follows from what the second has more.
    let call = followed.call().await;
    assert_eq!(call.parameter("resourceVersion"), Some("102"));
    same["metadata"]["resourceVersion"] = "103".into();
    let conditions = same["status"]["conditions"].as_array_mut().unwrap();
    conditions.push(json!({"type": "Terminating", "status": "True"}));
    let stream = call.stream();
    stream.event("MODIFIED", &same.to_string());
    drop(stream);
    assert_eq!(followed.call().await.parameter("resourceVersion"), Some("103"));
    assert!(!followed.catalogs.has_changed().unwrap());
}

#[tokio::test]
async fn a_watch_that_ends_goes_on_from_where_it_stood() {
    let (mut followed, stream) = Followed::listed(&[definition("Apple", 1)]).await;
    followed.until_up(true).await;
    stream.event("ADDED", &definition("Pear", 101));
    assert_eq!(kinds(&followed.published().await), ["Apple", "Pear"]);
    stream.break_off();
    followed.until_up(false).await;

    let call = followed.call().await;
    assert_eq!(call.parameter("resourceVersion"), Some("101"));
    call.refuse_connection();
    let stream = followed.call().await.stream();
    // Before anything has happened that it could tell by.
    followed.until_up(true).await;
    stream.event("ADDED", &definition("Cherry", 102));
    assert_eq!(kinds(&followed.published().await), ["Apple", "Cherry", "Pear"]);
}

#[tokio::test]
async fn a_later_list_leaves_the_catalog_in_force_until_it_is_complete() {
    let (mut followed, stream) = Followed::listed(&[definition("Apple", 1), definition("Pear", 2)]).await;
    followed.catalogs.mark_unchanged();
    let gone = status(410, "Expired", "too old resource version");
    stream.event("ERROR", &gone.to_string());
    // It breaks off in the middle, too, and begins again.
    followed.call().await.page(&[definition("Cherry", 150)], "second");
    let second = followed.call().await;
    second.answer(410, &gone);
    followed.call().await.page(&[definition("Cherry", 150)], "second");
    let second = followed.call().await;
    assert!(!followed.catalogs.has_changed().unwrap());
    second.page(&[definition("Pear", 2)], "");
    assert_eq!(kinds(&followed.published().await), ["Cherry", "Pear"]);
    let _stream = followed.call().await.stream();
    followed.until_up(true).await;
}

#[tokio::test]
async fn an_api_server_that_is_down_at_first_is_asked_again() {
    let mut followed = Followed::start();
    for _ in 0..3 {
        followed.call().await.refuse_connection();
    }
    followed.call().await.fail(503, "ServiceUnavailable", "not yet");
    assert!(!followed.link.is_up());
    assert!(followed.catalogs.borrow().is_none());
    followed.call().await.page(&[definition("Apple", 1)], "");
    let _stream = followed.call().await.stream();
    assert_eq!(kinds(&followed.published().await), ["Apple"]);
    followed.until_up(true).await;
}

#[tokio::test]
async fn it_ends_when_nobody_wants_catalogs() {
    let (followed, _stream) = Followed::listed(&[]).await;
    drop(followed.catalogs);
    tokio::time::timeout(SOON, followed.task).await.expect("it ends").unwrap();
}
