//! Without the rights, with them, and without the right to watch.

use std::thread;
use std::time::{Duration, Instant};

use super::{ALL_WRITES, KINDS, RIGHTS, SERVICE, SETTLED, both, configurations, post_bad, rule, say, wait_for};
use crate::support::cluster::Cluster;
use crate::support::kind::Kind;
use fixtures::wait::eventually;

#[test]
fn without_rights_it_says_so_once_and_serves_on_and_with_them_it_registers() {
    let Some(mut cluster) = Cluster::registering(SERVICE, &["--exclude-namespace=left-alone", ALL_WRITES]) else {
        return;
    };
    let kubectl = cluster.control_plane.kubectl("registration");
    let replica = cluster.webhook.replica(&[]).unwrap();
    let rollouts = Kind::new(&cluster, "rollout");
    rollouts.apply_definition();
    let complaint = "cannot get resource \\\"mutatingwebhookconfigurations\\\"";
    assert!(eventually(SETTLED, || cluster.webhook.log().contains(complaint)), "{}", cluster.webhook.log());
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(3) {
        assert_eq!(cluster.webhook.ops().get("/readyz").unwrap().status, 200);
        thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(cluster.webhook.log().matches(complaint).count(), 1, "{}", cluster.webhook.log());
    assert_eq!(configurations(&cluster), [None, None]);
    assert_eq!(cluster.webhook.metric("kube_unions_registered"), 0);

    // A right to create that is bound to the name is enough. Both replicas notice it at about the same time.
    kubectl.apply(RIGHTS).accepted();
    let rules = [rule(rollouts.group(), "v1", &["rollouts"], "Namespaced")];
    let wanted = both(&cluster, &rules, &[]);
    let took = wait_for(&cluster, &wanted);
    say(&format!("registered {took:?} after the rights were given"));
    assert!(eventually(SETTLED, || post_bad(&rollouts, "default") == 422));
    // The other replica may have written first.
    let recovered = || cluster.webhook.log().contains("are reconciled again");
    assert!(eventually(SETTLED, recovered), "{}", cluster.webhook.log());

    for one in [&cluster.webhook, &replica] {
        assert!(eventually(SETTLED, || one.metric("kube_unions_registered") == 1), "{}", one.log());
        assert_eq!(one.metric("kube_unions_registration_writes_total{outcome=\"failed\"}"), 0);
    }
    drop(replica);

    // Without the right to watch it resyncs more often, and logs that once.
    kubectl.apply(&RIGHTS.replace("get, list, watch, create, patch, update", "get, create, patch, update")).accepted();
    for plural in KINDS {
        let may = ["auth", "can-i", "watch", &format!("{plural}/kube-unions"), "--as=kube-unions"];
        assert!(eventually(SETTLED, || kubectl.run(&may).stdout.starts_with("no")), "the right is gone");
    }
    let said = |cluster: &Cluster| cluster.webhook.log().matches("may not be watched").count();
    let before = said(&cluster);
    cluster.webhook.stop();
    cluster.webhook.resume().unwrap();
    assert!(eventually(SETTLED, || said(&cluster) > before), "{}", cluster.webhook.log());
    kubectl.run(&["delete", &KINDS.join(","), "kube-unions"]).accepted();
    let took = wait_for(&cluster, &wanted);
    say(&format!("put right after {took:?} without the right to watch"));
    assert!((1..=2).contains(&(said(&cluster) - before)), "once a configuration at the most");
}
