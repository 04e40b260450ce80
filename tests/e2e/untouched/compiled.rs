//! Many kinds with unions: the size of the configurations, and the time and CPU until an API server enforces another condition, when one CRD
//! changes. `make bench-conditions` prints them. Nothing is asserted about them.

use std::collections::BTreeSet;
use std::env;
use std::time::Instant;

use serde_json::{Value, json};

use super::{MERGE, entries_of_kinds, resources_of_kinds, send_all_writes};
use crate::registration::{self, KINDS as CONFIGURATIONS, with_rights};
use crate::support::background::in_parallel;
use crate::support::cluster::{Cluster, say};
use crate::support::kind::apply;
use crate::support::process::seconds_of_cpu;
use fixtures::crds::{annotated, version};
use fixtures::wait::{SETTLED, eventually, eventually_none_left};

const GROUP: &str = "compiled.untouched.example";
const DELAY: &str = "--registration-delay=0s";

/// Changes of a CRD, of which the median is printed.
const ROUNDS: usize = 7;

#[test]
#[ignore = "a benchmark: run `make bench-conditions`"]
fn a_crd_changes_among_many_kinds_with_unions() {
    let count = env::var("KUBE_UNIONS_KINDS").map_or(500, |text| text.parse().expect("a number"));
    let Some(mut cluster) = Cluster::registering(&with_rights(), &[DELAY]) else { return };
    let numbers: Vec<usize> = (0..count).collect();
    let started = Instant::now();
    in_parallel(&numbers, |number| apply(cluster.client(), &definition(*number, false)));
    let applied = started.elapsed().as_secs_f64();
    for with_conditions in [true, false] {
        if !with_conditions {
            send_all_writes(&mut cluster, &[DELAY]);
        }
        let stored = || CONFIGURATIONS.map(|plural| cluster.client().get(&registration::path(plural)).unwrap().body);
        let all_are_registered = eventually_none_left(SETTLED, || {
            let stored = stored();
            let is_skipping = stored.iter().flat_map(entries_of_kinds).any(|entry| entry["matchConditions"].is_array());
            let resources: BTreeSet<_> = stored.iter().flat_map(resources_of_kinds).collect();
            let registered = resources.iter().filter(|(group, _)| *group == GROUP).count();
            count - registered.min(count) + usize::from(is_skipping != with_conditions)
        });
        assert!(all_are_registered, "{}", cluster.webhook.log());
        say(&format!("{count} kinds, conditions: {with_conditions}; applied in {applied:.1} s"));
        for stored in stored() {
            let conditions = entries_of_kinds(&stored).filter(|entry| entry["matchConditions"].is_array()).count();
            let (bytes, entries) = (stored.to_string().len(), entries_of_kinds(&stored).count());
            say(&format!("{}: {bytes} bytes, {entries} entries for kinds, {conditions} conditions", stored["kind"]));
        }
        // One that has an entry of its own, whose condition changes with it.
        let text = stored()[0].to_string();
        let digits = text.split_once("source").map(|(_, rest)| rest.chars().take_while(char::is_ascii_digit).collect());
        let number = digits.and_then(|digits: String| digits.parse().ok()).unwrap_or(0);
        let mut measured: Vec<[f64; 3]> = (0..ROUNDS)
            .map(|_| {
                let measured = change(&cluster, number, true);
                change(&cluster, number, false);
                let is_back = || stored().iter().all(|stored| !stored.to_string().contains("more"));
                assert!(eventually(SETTLED, is_back), "{}", cluster.webhook.log());
                measured
            })
            .collect();
        measured.sort_by(|one, other| one[0].total_cmp(&other[0]));
        let [seconds, of_server, of_webhook] = measured[ROUNDS / 2];
        say(&format!(
            "a CRD gets another union: in force after {seconds:.2} s ({:.2} to {:.2}); CPU of the API server {of_server:.2} s, of the \
             webhook {of_webhook:.2} s",
            measured[0][0],
            measured[ROUNDS - 1][0]
        ));
    }
}

/// Adds a union to a kind, or removes it, and waits until an update of it is judged so. Returns the seconds, and those of
/// CPU of the API server and of the webhook.
fn change(cluster: &Cluster, number: usize, with_more: bool) -> [f64; 3] {
    let collection = format!("/apis/{GROUP}/v1/namespaces/default/kind{number}s");
    let object = json!({"apiVersion": format!("{GROUP}/v1"), "kind": format!("Kind{number}"), "metadata": {"name": "x"},
        "spec": {"more": {"a": "x"}}});
    cluster.client().post(&collection, &object).unwrap();
    let cpu = || [cluster.control_plane.api_server_pid(), cluster.webhook.pid()].map(seconds_of_cpu);
    let (before, started) = (cpu(), Instant::now());
    apply(cluster.client(), &definition(number, with_more));
    // Neither member was there before, so the request contradicts itself.
    let both = json!({"spec": {"more": {"a": null, "b": "x", "c": "x"}}}).to_string();
    let path = format!("{collection}/x?dryRun=All");
    let is_judged = || {
        let status = cluster.client().send("PATCH", &path, MERGE, both.as_bytes()).unwrap().status;
        status == if with_more { 422 } else { 200 }
    };
    assert!(eventually(SETTLED, is_judged), "{}", cluster.webhook.log());
    let (seconds, after) = (started.elapsed().as_secs_f64(), cpu());
    [seconds, after[0] - before[0], after[1] - before[1]]
}

/// Returns the CRD of a kind with a union in a field of its own, so that its condition is like no other. `with_more`: with another union.
fn definition(number: usize, with_more: bool) -> Value {
    let text = json!({"type": "string"});
    let members = json!({"type": "object", "properties": {"a": text, "b": text, "c": text}});
    let fields =
        json!({"type": "object", "properties": {format!("source{number}"): members, "more": members, "note": text}});
    let schema = json!({"type": "object", "properties": {"spec": fields}});
    let union = json!([{"fields-to-discriminateBy": {"a": "A", "b": "B", "c": "C"}}]);
    let mut unions = json!({format!("/properties/spec/properties/source{number}"): union});
    if with_more {
        unions["/properties/spec/properties/more"] = union;
    }
    annotated(GROUP, &format!("Kind{number}"), &[version("v1", &schema)], &json!({"v1": unions}).to_string())
}
