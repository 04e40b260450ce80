//! Pods that go away although nobody changes the release.

use serde_json::{Value, json};

use super::{Release, SETTLED, is_ready, names, no_write_is_lost};
use crate::chart::RELEASE;
use fixtures::wait::for_some;

#[test]
fn pods_are_evicted_one_at_a_time_and_no_write_is_lost() {
    let Some(release) = Release::installed(&json!({})) else { return };
    let kind = release.enforced();
    let first = release.two_pods();
    let writers = release.writers(&kind);
    for pod in &first {
        // As `kubectl drain` does: again, as long as the PodDisruptionBudget refuses.
        for_some(SETTLED, || evict(&release, pod).then_some(())).unwrap_or_else(|| panic!("never evicted: {pod:#}"));
        let others: Vec<_> = release.all_pods().into_iter().filter(is_ready).collect();
        assert!(!others.is_empty(), "another pod is ready when {} is evicted", pod["metadata"]["name"]);
    }
    let second = release.two_pods();
    assert!(names(&first).is_disjoint(&names(&second)), "both pods are replaced");
    release.leads_to(&second);
    no_write_is_lost(writers);
}

/// Asks the API server to evict a pod. Returns false if the `PodDisruptionBudget` refuses.
fn evict(release: &Release, pod: &Value) -> bool {
    let name = pod["metadata"]["name"].as_str().unwrap();
    let path = format!("/api/v1/namespaces/{RELEASE}/pods/{name}/eviction");
    let eviction =
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": RELEASE}});
    let answer = release.cluster.client().post(&path, &eviction).unwrap();
    match answer.status {
        201 => true,
        429 => false,
        status => panic!("{status}: {answer:?}"),
    }
}
