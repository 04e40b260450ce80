//! Pods that are killed, and bodies that would have had them killed.
//!
//! SIGKILL, and with it the end for lack of memory, leaves no time to drain. Two sorts of writes are then lost, and no others: those
//! whose review was underway in the replica, and those whose review was sent to its address before the kubelet, the endpoints of the
//! Service and the rules of kube-proxy had followed.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::certificates::{NAME, address};
use super::machine::NodeProcess;
use super::{AROUND, Release, SETTLED, no_write_is_lost};
use crate::loss::{is_of_a_replica_that_is_gone, wait_for};
use crate::memory::{attacks, definition};
use crate::support::cluster::say;
use crate::support::kind::annotate;
use crate::support::tls::Connection;
use crate::support::writers::Writers;
use fixtures::wait::eventually;

/// As long as a busy machine may take for the largest body, with others beside it.
const PATIENCE: Duration = Duration::from_mins(3);
/// The most senders of the largest bodies to one pod.
const AT_ONCE: usize = 4;

#[test]
fn a_pod_that_is_killed_loses_what_was_sent_to_it_until_the_cluster_noticed_and_nothing_else() {
    let Some(release) = Release::installed(&json!({})) else { return };
    let kind = release.enforced();
    // In turns, because the API server may have all its connections to one of them.
    for pod in release.two_pods() {
        let writers = release.writers(&kind);
        let killed = Instant::now();
        assert!(NodeProcess::of_pod(&pod).expect("the container runs").signal(Signal::KILL));
        let again = release.started_again(&pod, 1);
        assert_eq!(again["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"], 137, "{again:#}");
        release.leads_to(&release.two_pods());
        wait_for(&writers, AROUND);
        lost_by_the_kill_alone("SIGKILL", writers, killed);
    }
    no_write_is_lost("after SIGKILL, with the containers started again", release.writers(&kind));
}

#[test]
fn no_body_has_a_pod_killed_with_the_limit_of_the_chart_and_no_write_is_lost() {
    let Some(release) = Release::installed(&json!({})) else { return };
    enforce_costly_unions(&release);
    let kind = release.enforced();
    let pods = release.two_pods();
    let writers = release.writers(&kind);
    for pod in &pods {
        let answers = attack(&release, pod);
        say(&format!("the largest bodies, {AT_ONCE} at once: {answers:?}"));
        assert!(answers.keys().all(|status| [200, 413, 429].contains(status)), "{answers:?}");
        let most = NodeProcess::of_pod(pod).map(|it| it.control("memory", "memory.max_usage_in_bytes", "memory.peak"));
        say(&format!("the most memory of the pod, with the buffers of its sockets: {most:?} bytes"));
    }
    for pod in release.two_pods() {
        assert_eq!(pod["status"]["containerStatuses"][0]["restartCount"], 0, "{pod:#}");
    }
    no_write_is_lost("the largest bodies to both pods", writers);
}

/// Installs the kind of the bodies, and waits until its unions are enforced.
fn enforce_costly_unions(release: &Release) {
    release.kubectl.apply(&annotate(&definition().to_string())).accepted();
    let path = "/apis/memory.example.com/v1/namespaces/default/things?dryRun=All";
    let two = json!({
        "apiVersion": "memory.example.com/v1", "kind": "Thing", "metadata": {"name": "two"},
        "spec": {"items": [{"type": "M0", "m1": 1, "m2": 1}]},
    });
    let answer = || release.cluster.client().post(path, &two);
    assert!(eventually(SETTLED, || answer().is_ok_and(|it| it.status == 422)), "{:?}", answer());
}

/// Sends every body that takes as much memory as it can to a pod, and counts the answers. 0 is a connection that broke off.
fn attack(release: &Release, pod: &Value) -> BTreeMap<u16, usize> {
    let (address, bundle, bodies) = (address(pod), release.bundle(), attacks());
    let ask = |body: &str| {
        let mut connection = Connection::try_open_at(address, NAME, &bundle, PATIENCE).ok()?;
        connection.try_post("/validate", body).ok()?;
        Some(connection.answer().ok()?.status)
    };
    let mut counts = BTreeMap::new();
    for some in bodies.chunks(AT_ONCE) {
        thread::scope(|scope| {
            let sent: Vec<_> = some.iter().map(|(_, body)| scope.spawn(|| ask(body))).collect();
            for one in sent {
                *counts.entry(one.join().expect("a request can be sent").unwrap_or_default()).or_default() += 1;
            }
        });
    }
    counts
}

/// Stops writers, and fails if a write was lost before the kill, or for another reason than a broken or refused connection.
fn lost_by_the_kill_alone(what: &str, writers: Writers, killed: Instant) {
    let count = writers.finish();
    say(&format!("{what}: {count}"));
    assert_eq!(count.sent, count.answered + count.failed, "every write ends");
    for loss in &count.losses {
        assert!(loss.ended >= killed, "a loss before the kill: {loss:?}");
        assert!(is_of_a_replica_that_is_gone(&loss.story), "a loss of another kind: {loss:?}");
    }
}
