//! Watches: events, bookmarks, versions that have expired, caches that lag behind, restores.

use crate::sender::{SimulatedTime, Watch, config_map, create, delete, get, patch, server};
use serde_json::{Value, json};
use simulated_apiserver::{OpenWatches, Settings};
use std::time::Duration;
use tokio::time::timeout;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_watch_has_the_events_since_its_version() {
    let server = server();
    let instance = server.instance();
    let first = version(&create(&instance, MAPS, &config_map("a", "1")).await);
    let mut watch = Watch::open(&instance, &format!("{MAPS}?watch=true&resourceVersion={first}")).await;
    create(&instance, MAPS, &config_map("b", "1")).await;
    patch(&instance, &format!("{MAPS}/a"), "merge-patch", &json!({"data": {"key": "2"}})).await;
    delete(&instance, &format!("{MAPS}/b")).await;
    let mut found = Vec::new();
    for _ in 0..3 {
        found.push(watch.line().await.unwrap());
    }
    let [b, a, gone] = [1, 2, 3].map(|behind| first + behind);
    assert_eq!(found, [format!("ADDED b {b}"), format!("MODIFIED a {a}"), format!("DELETED b {gone}")]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_a_version_begins_with_what_is_there_and_ends_in_time() {
    let instance = server().instance();
    create(&instance, MAPS, &config_map("a", "1")).await;
    let time = SimulatedTime::start();
    let path = format!("{MAPS}?watch=1&timeoutSeconds=30&allowWatchBookmarks=true&fieldSelector=metadata.name%3Da");
    let mut watch = Watch::open(&instance, &path).await;
    assert!(watch.line().await.unwrap().starts_with("ADDED a "));
    // The lease of the API server moves the version.
    assert!(watch.line().await.unwrap().starts_with("BOOKMARK "));
    assert_eq!(time.seconds(), 28);
    assert_eq!(watch.line().await, None);
    assert_eq!(time.seconds(), 30);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_no_longer_selected_is_deleted_for_the_watch() {
    let instance = server().instance();
    let mut watch = Watch::open(&instance, &format!("{MAPS}?watch=1&labelSelector=x")).await;
    create(&instance, MAPS, &config_map("a", "1")).await;
    for labels in [json!({"x": "1"}), json!({"x": "2"}), json!({"x": null})] {
        patch(&instance, &format!("{MAPS}/a"), "merge-patch", &json!({"metadata": {"labels": labels}})).await;
    }
    for wanted in ["ADDED a", "MODIFIED a", "DELETED a"] {
        assert!(watch.line().await.unwrap().starts_with(wanted), "{wanted}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_version_that_is_forgotten_ends_with_an_error() {
    let server = server();
    let instance = server.instance();
    let first = version(&create(&instance, MAPS, &config_map("a", "1")).await);
    create(&instance, MAPS, &config_map("b", "1")).await;
    for forget in [true, false] {
        // A process that starts knows nothing of the past either.
        let instance = if forget { instance.clone() } else { server.instance() };
        if forget {
            server.compact();
        }
        let mut watch = Watch::open(&instance, &format!("{MAPS}?watch=1&resourceVersion={first}")).await;
        let event = watch.next().await.unwrap();
        assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
        assert_eq!(event["object"]["message"], format!("too old resource version: {first} ({})", server.revision()));
        assert_eq!(watch.line().await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cache_lags_behind_and_reads_of_the_present_do_not() {
    let server = server();
    let (instance, behind) = (server.instance(), server.instance());
    behind.set_lag(Duration::from_secs(2));
    let time = SimulatedTime::start();
    let mut watch = Watch::open(&behind, &format!("{MAPS}?watch=1")).await;
    let created = create(&instance, MAPS, &config_map("a", "1")).await;
    assert_eq!(get(&behind, &format!("{MAPS}/a")).await.0, 200);
    assert_eq!(get(&behind, &format!("{MAPS}/a?resourceVersion=0")).await.0, 404);
    assert_eq!(get(&instance, &format!("{MAPS}/a?resourceVersion=0")).await.0, 200);
    assert!(watch.line().await.unwrap().starts_with("ADDED a"));
    assert_eq!(time.seconds(), 2);
    assert_eq!(get(&behind, &format!("{MAPS}/a?resourceVersion=0")).await.0, 200);
    // A read waits for its version, but not longer than three seconds.
    create(&instance, MAPS, &config_map("b", "1")).await;
    let path = format!("{MAPS}/b?resourceVersion={}", version(&created) + 1);
    assert_eq!(get(&behind, &path).await.0, 200);
    assert_eq!(time.seconds(), 4);
    let (code, status) = get(&behind, &format!("{MAPS}?resourceVersion=99999")).await;
    assert_eq!((code, &status["details"]["causes"][0]["reason"]), (504, &json!("ResourceVersionTooLarge")));
    assert_eq!(time.seconds(), 7);
}

#[tokio::test(start_paused = true)]
async fn open_watches_end_or_hang_when_the_storage_is_restored() {
    for watches in [OpenWatches::End, OpenWatches::Hang] {
        let server = server().with_settings(Settings { heartbeat: None, ..Settings::default() });
        let instance = server.instance();
        let snapshot = server.snapshot();
        create(&instance, MAPS, &config_map("a", "1")).await;
        let at = server.revision();
        let path = format!("{MAPS}?watch=1&timeoutSeconds=60&resourceVersion={at}");
        let mut watch = Watch::open(&instance, &path).await;
        let time = SimulatedTime::start();
        server.restore(&snapshot, watches);
        create(&instance, MAPS, &config_map("b", "1")).await;
        assert_eq!(watch.line().await, None);
        let wanted = if watches == OpenWatches::End { 0 } else { 60 };
        assert_eq!(time.seconds(), wanted);
        // A watch from a version that does not exist yet is silent, and has no bookmark.
        let path = format!("{MAPS}?watch=1&timeoutSeconds=60&allowWatchBookmarks=1&resourceVersion={}", at + 5);
        let mut watch = Watch::open(&instance, &path).await;
        create(&instance, MAPS, &config_map("c", "1")).await;
        assert_eq!(watch.line().await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_nobody_reads_loses_nothing() {
    let instance = server().instance();
    let mut watch = Watch::open(&instance, &format!("{MAPS}?watch=1")).await;
    for count in 0..10 {
        create(&instance, MAPS, &config_map(&format!("m{count}"), "1")).await;
    }
    for count in 0..10 {
        assert!(watch.line().await.unwrap().starts_with(&format!("ADDED m{count} ")));
    }
    assert!(timeout(Duration::from_mins(1), watch.line()).await.is_err());
}
