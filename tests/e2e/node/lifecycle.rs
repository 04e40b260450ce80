//! A release from its installation to its end, with real pods.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{CONFIGURATIONS, Release, SETTLED, names, no_write_is_lost};
use crate::chart::RELEASE;
use fixtures::wait::eventually;

#[test]
fn a_release_is_installed_tried_upgraded_rolled_back_and_uninstalled() {
    let Some(release) = Release::installed(&json!({})) else { return };
    let first = release.two_pods();
    for pod in &first {
        let container = &pod["status"]["containerStatuses"][0];
        assert_eq!((&pod["status"]["phase"], &container["restartCount"]), (&json!("Running"), &json!(0)), "{pod:#}");
    }
    let kind = release.enforced();

    // The pod of `helm test` calls the webhook through the API server, and is no replica.
    release.run(&["test", RELEASE, "--logs"], &Value::Null).accepted();
    let log = release.kubectl.run(&["-n", RELEASE, "logs", "kube-unions-verify"]).accepted().stdout;
    assert_eq!(log.lines().filter(|line| line.starts_with("ok ")).count(), 5, "{log}");
    release.leads_to(&first);
    let budget = format!("/apis/policy/v1/namespaces/{RELEASE}/poddisruptionbudgets");
    let counts_both = || {
        let status = &release.list(&budget)[0]["status"];
        ["expectedPods", "currentHealthy", "disruptionsAllowed"].map(|field| status[field].as_u64())
            == [2, 2, 1].map(Some)
    };
    assert!(eventually(SETTLED, counts_both), "{:#?}", release.list(&budget));

    let writers = release.writers(&kind);
    release.upgrade(&json!({"podAnnotations": {"example.com/revision": "second"}}));
    let second = release.two_pods();
    assert!(names(&first).is_disjoint(&names(&second)), "the upgrade replaces every pod");
    release.run(&["rollback", RELEASE, "1", "--wait"], &Value::Null).accepted();
    let third = release.two_pods();
    assert!(names(&second).is_disjoint(&names(&third)), "and so does the rollback");
    release.leads_to(&third);
    no_write_is_lost("rolling update and rollback", writers);

    // Events of the budget tell of pods that it cannot count.
    let events = release.list(&format!("/api/v1/namespaces/{RELEASE}/events"));
    let reasons: BTreeSet<_> = events
        .iter()
        .filter(|event| event["involvedObject"]["kind"] == "PodDisruptionBudget")
        .filter_map(|event| event["reason"].as_str())
        .collect();
    assert!(!reasons.contains("UnmanagedPods"), "{reasons:?}");

    release.run(&["uninstall", RELEASE, "--wait"], &Value::Null).accepted();
    for path in CONFIGURATIONS {
        assert!(!release.is_there(path), "{path}");
    }
    assert!(eventually(SETTLED, || release.all_pods().is_empty()), "{:#?}", release.all_pods());
    let two = json!({"destination": {"s3": {"bucket": "b"}, "gcs": {"bucket": "b"}}});
    let answer = kind.post_dry(&kind.object("unchecked", &two)).unwrap();
    assert_eq!(answer.status, 201, "nothing checks or blocks a write any more: {answer:?}");
}
