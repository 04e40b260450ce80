//! Pods and servers of a node that end although nobody changes the release.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::machine::{NodeProcess, Paused};
use super::{AROUND, NAMESPACE, Release, SETTLED, names, no_write_is_lost};
use crate::chart::RELEASE;
use crate::loss::wait_for;
use fixtures::wait::{eventually, for_some};

const NODES: [&str; 2] = ["node-1", "node-2"];

#[test]
fn a_drain_evicts_one_pod_at_a_time_and_loses_no_write() {
    let Some(release) = Release::installed(&json!({})) else { return };
    let kind = release.enforced();
    let writers = release.writers(&kind);
    // After the first drain, both pods are on the other node.
    for (node, other, pods) in [("node-1", "node-2", 1), ("node-2", "node-1", 2)] {
        release.kubectl.run(&["uncordon", other]).accepted();
        let drained = release.kubectl.run(&["drain", node, "--ignore-daemonsets", "--timeout=180s"]).accepted();
        let refused =
            drained.stderr.matches("Cannot evict pod as it would violate the pod's disruption budget").count();
        assert_eq!(refused > 0, pods > 1, "a pod waits for the one before it: {drained:#?}");
        let evicted = drained.stdout.lines().filter(|line| line.ends_with(" evicted")).count();
        assert_eq!(evicted, pods, "{drained:#?}");
        let left = release.two_pods();
        assert!(left.iter().all(|pod| pod["spec"]["nodeName"] == other), "{left:#?}");
        release.leads_to(&left);
    }
    no_write_is_lost("drain of both nodes", writers);
}

#[test]
fn kubelets_that_start_again_disturb_neither_pods_nor_writes() {
    let Some(release) = Release::installed(&json!({})) else { return };
    let kind = release.enforced();
    let pods = release.two_pods();
    let writers = release.writers(&kind);
    for node in NODES {
        let kubelet = || NodeProcess::of_program("kubelet", node);
        let lease = format!("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node}");
        let renewed = || release.cluster.client().get(&lease).unwrap().body["spec"]["renewTime"].clone();
        let before = kubelet().expect("a kubelet runs");
        before.signal(Signal::TERM);
        let next = || kubelet().filter(|next| *next != before);
        for_some(SETTLED, next).unwrap_or_else(|| panic!("no other kubelet of {node}"));
        // Only the new one renews the lease from here on.
        let last = renewed();
        assert!(eventually(SETTLED, || renewed() != last), "the kubelet of {node} does nothing");
        wait_for(&writers, AROUND);
    }
    let same = release.two_pods();
    assert_eq!(names(&same), names(&pods));
    for pod in same {
        assert_eq!(pod["status"]["containerStatuses"][0]["restartCount"], 0, "{pod:#}");
    }
    no_write_is_lost("restart of both kubelets", writers);
}

#[test]
fn pods_that_end_before_kube_proxy_knows_lose_no_write() {
    // Much longer than kube-proxy stands still here.
    let Some(release) = Release::installed(&json!({"shutdownDelay": "30s"})) else { return };
    let kind = release.enforced();
    let writers = release.writers(&kind);
    for pod in release.two_pods() {
        let paused = Paused::new(NodeProcess::of_program("kube-proxy", "").expect("kube-proxy runs"));
        let name = pod["metadata"]["name"].as_str().unwrap();
        release.kubectl.run(&["--namespace", RELEASE, "delete", "pod", name, "--wait=false"]).accepted();
        // The API server has connections to the pod, and opens others as long as the rules of kube-proxy lead to it.
        assert!(eventually(SETTLED, || is_ending(&release, &pod)), "the pod does not end");
        wait_for(&writers, AROUND);
        assert!(is_ending(&release, &pod), "no valid run: the pod had ended before kube-proxy went on");
        drop(paused);
        let gone = || !release.is_there(&format!("{NAMESPACE}/pods/{name}"));
        assert!(eventually(SETTLED, gone), "{:#?}", release.pod(&pod));
        release.leads_to(&release.two_pods());
    }
    no_write_is_lost("kube-proxy learns late of the end of a pod", writers);
}

/// Returns true if a pod is ending, and the endpoints of the Service say so.
fn is_ending(release: &Release, pod: &Value) -> bool {
    let path = format!(
        "/apis/discovery.k8s.io/v1/namespaces/{RELEASE}/endpointslices?labelSelector=kubernetes.io/service-name%3D{RELEASE}"
    );
    let slices = release.list(&path);
    let mut endpoints = slices.iter().filter_map(|slice| slice["endpoints"].as_array()).flatten();
    endpoints.any(|endpoint| {
        endpoint["targetRef"]["name"] == pod["metadata"]["name"] && endpoint["conditions"]["terminating"] == true
    })
}
