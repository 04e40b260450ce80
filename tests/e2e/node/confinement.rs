//! The pods as the nodes run them: placed, probed, and confined.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::machine::{NodeProcess, Paused};
use super::{Release, SETTLED, is_ready};
use fixtures::wait::eventually;

#[test]
fn pods_are_spread_over_the_nodes_and_may_do_nothing_that_they_need_not() {
    let Some(release) = Release::installed(&json!({})) else { return };
    let namespace = release.cluster.client().get(super::NAMESPACE).unwrap().body;
    assert_eq!(namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"], "restricted");
    let pods = release.two_pods();
    let of_each = |place: &str| pods.iter().map(|pod| pod.pointer(place).cloned().unwrap()).collect::<Vec<_>>();
    let nodes: BTreeSet<_> = of_each("/spec/nodeName").iter().map(|node| node.as_str().unwrap().to_owned()).collect();
    assert_eq!(nodes, BTreeSet::from(["node-1".to_owned(), "node-2".to_owned()]));
    assert_eq!(of_each("/spec/priorityClassName"), ["system-cluster-critical"; 2]);
    assert_eq!(of_each("/spec/priority"), [2_000_000_000; 2]);
    for pod in &pods {
        let process = NodeProcess::of_pod(pod).expect("the container runs");
        let status = process.read("status");
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!((field("Uid:"), field("Gid:")), ("65532 65532 65532 65532".to_owned(), field("Uid:")), "{status}");
        assert_eq!(field("CapEff:"), "0000000000000000", "{status}");
        assert_eq!(field("CapBnd:"), "0000000000000000", "{status}");
        // A filter of system calls is in force, and no program that it could start gets more rights.
        assert_eq!((field("Seccomp:").as_str(), field("NoNewPrivs:").as_str()), ("2", "1"), "{status}");

        let mounts = process.read("mounts");
        let root: Vec<_> =
            mounts.lines().filter_map(|line| line.split(' ').nth(1).zip(line.split(' ').nth(3))).collect();
        let options = root.iter().find(|(place, _)| *place == "/").expect("there is a root").1;
        assert!(options.split(',').any(|option| option == "ro"), "{mounts}");

        let limit = process.control("memory", "memory.limit_in_bytes", "memory.max");
        assert_eq!(limit, (512 * 1024 * 1024).to_string());
        // 50 thousandths of a processor; without a request it would be 1024 shares, or the weight 100.
        let share: u64 = process.control("cpu", "cpu.shares", "cpu.weight").parse().unwrap();
        assert!((1..100).contains(&share), "{share}");
    }
}

#[test]
fn a_pod_that_hangs_gets_no_requests_and_is_started_again() {
    let Some(release) = Release::installed(&json!({})) else { return };
    let pods = release.two_pods();
    let [hanging, other] = &pods[..] else { panic!("there are two pods") };
    let paused = Paused::new(NodeProcess::of_pod(hanging).expect("the container runs"));
    // The kubelet finds that it is not ready, and later that it is not alive.
    let unready = || release.pod(hanging).is_some_and(|pod| !is_ready(&pod));
    assert!(eventually(SETTLED, unready), "{:#?}", release.pod(hanging));
    release.leads_to(std::slice::from_ref(other));
    let again = release.started_again(hanging, 1);
    drop(paused);
    let ended = &again["status"]["containerStatuses"][0]["lastState"]["terminated"];
    // The process could not react to SIGTERM.
    assert_eq!(ended["exitCode"], 137, "{ended}");
    assert_eq!(release.pod(other).map(|pod| restarts(&pod)), Some(json!(0)));
    release.leads_to(&release.two_pods());
}

fn restarts(pod: &Value) -> Value {
    pod["status"]["containerStatuses"][0]["restartCount"].clone()
}
