//! The registration does not outlive the webhook: both configurations belong to the `ClusterRole` that the chart installs, and
//! the garbage collector of a real kube-controller-manager removes them with it.

use serde_json::{Value, json};

use super::RELEASE;
use super::lifecycle::{Release, configurations};
use super::pods::Pods;
use crate::cluster::{AnyCluster, say};
use crate::kind::Kind;
use crate::process::Process;
use crate::ratcheting::invalid;
use fixtures::wait::{SETTLED, eventually};

const ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/kube-unions";
const NAMESPACE: &str = "/api/v1/namespaces/kube-unions";

/// A way to remove a webhook without a thought of its registration.
type Way = (&'static str, fn(&Release));

#[test]
fn configurations_go_with_the_cluster_role_the_release_or_the_namespace_and_then_writes_are_accepted() {
    let Some(release) = Release::new() else { return };
    let controllers = release.control_plane.start_controllers("garbage-collector-controller,namespace-controller");
    let cluster = AnyCluster::of_control_plane(&release.control_plane);
    let rollouts = Kind::new(&cluster, "rollout");
    rollouts.apply_definition();

    let ways: [Way; 3] = [
        ("the ClusterRole is deleted", |release| delete(release, ROLE)),
        ("the release is uninstalled without its hooks", uninstall),
        ("the namespace and the ClusterRole are deleted", |release| {
            delete(release, NAMESPACE);
            delete(release, ROLE);
        }),
    ];
    for (way, take_away) in ways {
        enforced_and_then_down(&release, &rollouts);
        let Some(controllers) = &controllers else {
            say(
                "no kube-controller-manager beside the API server: that the garbage collector takes the registration away IS NOT TESTED; \
                 `tests/controlplane/assets.sh controller-manager` builds it",
            );
            return;
        };
        take_away(&release);
        let gone = || configurations().iter().all(|(_, path)| !release.is_there(path));
        assert!(eventually(SETTLED, gone), "{way}: the registration goes, too\n{}", controllers.log_tail());
        let accepted = || write(&rollouts) == Ok(());
        assert!(eventually(SETTLED, accepted), "{way}: {:?}", write(&rollouts));
        if way.contains("namespace") {
            let emptied = || !release.is_there(NAMESPACE);
            assert!(eventually(SETTLED, emptied), "{way}: nothing holds up the end of it\n{}", controllers.log_tail());
        } else if release.is_there(NAMESPACE) {
            // Removes the rest of the release, for the next case.
            release.helm(&["uninstall", RELEASE, "--no-hooks", "--ignore-not-found"], &Value::Null).accepted();
        }
    }
    drop::<Option<Process>>(controllers);
}

/// Installs the chart, has its pods register themselves, and ends them as a power failure does: writes are refused.
fn enforced_and_then_down(release: &Release, kind: &Kind<'_>) {
    release.install_on_loopback(&Value::Null);
    let pods = Pods::start(release);
    let in_force = || kind.post_dry(&kind.object("probe", &invalid())).is_ok_and(|it| it.status == 422);
    assert!(eventually(SETTLED, in_force), "unions are enforced\n{}", pods.logs().join("\n\n"));
    let client = release.control_plane.client();
    let role = client.get(ROLE).unwrap().body["metadata"]["uid"].clone();
    for (_, path) in configurations() {
        let owners = client.get(&path).unwrap().body["metadata"]["ownerReferences"].clone();
        let is_role =
            |owner: &Value| owner["kind"] == "ClusterRole" && owner["name"] == RELEASE && owner["uid"] == role;
        assert!(owners.as_array().is_some_and(|owners| owners.iter().any(is_role)), "{path}: {owners}");
    }
    drop(pods);
    assert!(write(kind).is_err_and(|error| error.contains("failed calling webhook")), "nobody answers for the webhook");
}

/// A write that breaks no union, and is not stored.
fn write(kind: &Kind<'_>) -> Result<(), String> {
    let answer = kind.post_dry(&kind.object("probe", &json!({"strategy": {"type": "Recreate"}})))?;
    if answer.is_success() { Ok(()) } else { Err(answer.body["message"].to_string()) }
}

fn delete(release: &Release, path: &str) {
    let answer = release.control_plane.client().delete(path).unwrap();
    assert!(answer.is_success(), "{answer:?}");
}

fn uninstall(release: &Release) {
    release.helm(&["uninstall", RELEASE, "--no-hooks"], &Value::Null).accepted();
}
