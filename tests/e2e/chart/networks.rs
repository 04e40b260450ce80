//! Releases on clusters with unusual networks: pods in the network of their nodes, and Services with two IP families.

use serde_json::{Value, json};

use super::RELEASE;
use super::lifecycle::Release;
use super::pods::{Pods, while_doing};
use crate::cluster::AnyCluster;
use crate::http::Client;
use crate::kind::Kind;
use crate::ratcheting::invalid;
use fixtures::wait::{SETTLED, eventually};

#[test]
fn pods_in_the_network_of_their_nodes_normalise_writes_and_are_replaced_in_place() {
    let Some(release) = Release::new() else { return };
    let installed = release.install_on_loopback(&json!({
        "hostNetwork": true, "webhook": {"port": 10260}, "ops": {"port": 10261}, "shutdownDelay": "5s",
        "extraEnv": [{"name": "RUST_LOG", "value": "info,kube_unions::webhook::reviews=off"}],
    }));
    assert!(installed.stdout.contains("The control plane must reach port 10260 of the nodes."), "{installed:?}");
    let mut pods = Pods::start(&release);
    let backends = pods.backends();
    assert_eq!(backends.len(), 2);
    assert_ne!(backends[0].host, backends[1].host, "each node has one pod");
    for backend in &backends {
        assert_eq!((backend.port, backend.ops_port), (10260, 10261), "the ports of the values");
        let ops = Client::plain(format!("http://{}:{}", backend.host, backend.ops_port));
        assert_eq!(ops.get("/readyz").unwrap().status, 200);
    }
    // A ready pod has logged this, but for the variable.
    assert!(pods.logs().iter().all(|log| !log.contains("catalog in force")), "the variables of the values count");

    let cluster = AnyCluster::of_control_plane(&release.control_plane);
    let rollouts = Kind::new(&cluster, "rollout");
    rollouts.apply_definition();
    let enforced = || rollouts.post_dry(&rollouts.object("probe", &invalid())).is_ok_and(|it| it.status == 422);
    assert!(eventually(SETTLED, enforced), "{}", pods.logs().join("\n\n"));
    rollouts.enforce();
    let normalised = || {
        let rolling = json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}});
        rollouts.apply("shop", &rolling).accepted();
        let switch = json!({"spec": {"strategy": {"type": "Recreate"}}});
        let switched = rollouts.merge("shop", &switch);
        switched.accepted().warned(&["spec.strategy.rollingUpdate: cleared because `type` changed to \"Recreate\""]);
    };
    normalised();

    // A rollout stops the pod of a node before it starts the next one there, and the other pod answers meanwhile.
    let write = || {
        let answer = rollouts.post_dry(&rollouts.object("busy", &json!({"strategy": {"type": "Recreate"}})))?;
        if answer.is_success() { Ok(()) } else { Err(format!("{answer:?}")) }
    };
    let ((), writes, lost) = while_doing(write, || pods.roll_out_in_place());
    assert!(writes > 0 && lost.is_empty(), "{lost:?} of {writes}");
    assert_eq!(pods.backends(), backends, "the same nodes and ports");
    normalised();
    pods.stop();
}

#[test]
fn the_service_has_the_families_of_a_dual_stack_cluster() {
    let ranges = "--service-cluster-ip-range=10.0.0.0/24,fd00:10::/112".to_owned();
    let Some(release) = Release::with(&[ranges]) else { return };
    let service = |values: Value| {
        let namespaced = ["-n", RELEASE, "get", "service", RELEASE, "-o", "json"];
        release.install(&values);
        let spec = release.kubectl.run(&namespaced).accepted().json()["spec"].clone();
        release.helm(&["uninstall", RELEASE, "--no-hooks"], &Value::Null).accepted();
        let addresses = spec["clusterIPs"].as_array().unwrap().iter().map(|address| address.as_str().unwrap());
        let is_v6: Vec<bool> = addresses.map(|address| address.contains(':')).collect();
        (spec["ipFamilyPolicy"].clone(), spec["ipFamilies"].clone(), is_v6)
    };
    let families =
        |policy: &str, families: &[&str]| json!({"service": {"ipFamilyPolicy": policy, "ipFamilies": families}});
    assert_eq!(service(Value::Null), (json!("SingleStack"), json!(["IPv4"]), vec![false]));
    let dual = (json!("RequireDualStack"), json!(["IPv6", "IPv4"]), vec![true, false]);
    assert_eq!(service(families("RequireDualStack", &["IPv6", "IPv4"])), dual);
    let preferred = (json!("PreferDualStack"), json!(["IPv4", "IPv6"]), vec![false, true]);
    assert_eq!(service(families("PreferDualStack", &[])), preferred);
    assert_eq!(service(families("", &["IPv6"])), (json!("SingleStack"), json!(["IPv6"]), vec![true]));
}
