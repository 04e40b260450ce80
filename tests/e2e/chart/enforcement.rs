//! A release whose enforcement is switched off and on, and to policies, while its pods are rolled out.

use std::time::Instant;

use serde_json::json;

use super::RELEASE;
use super::pods::{OF_DECLARATIONS, Pods, while_doing};
use super::release::Release;
use crate::cluster::AnyCluster;
use crate::enforcement_by_policies::{kinds, policies};
use crate::kind::Kind;
use crate::ratcheting::{BLUE_GREEN, ROLLING_UPDATE, invalid, let_through};
use crate::version::{Feature, lacks};
use fixtures::wait::{SETTLED, eventually};

/// Returns the API server's answer to an object with an invalid union, in a dry run.
pub(super) fn post_invalid(kind: &Kind<'_>) -> u16 {
    kind.post_dry(&kind.object("probe", &invalid())).map_or(0, |answer| answer.status)
}

/// Writes and stores a valid object. No such write may ever be lost.
pub(super) fn write(kind: &Kind<'_>) -> Result<(), String> {
    let change = json!({"metadata": {"annotations": {"written": format!("{:?}", Instant::now())}}}).to_string();
    let path = kind.path("busy");
    let answer = kind.client().send("PATCH", &path, "application/merge-patch+json", change.as_bytes())?;
    if answer.is_success() { Ok(()) } else { Err(format!("{answer:?}")) }
}

#[test]
fn switched_off_objects_may_go_invalid_and_switched_on_again_they_are_repaired_and_policies_go_with_the_release() {
    let Some(release) = Release::new() else { return };
    // Long enough for the Service to notice; ten seconds by default.
    release.install(&json!({"shutdownDelay": "5s", "extraArgs": ["--handover-delay=2s"]}));
    let mut pods = Pods::start(&release);
    let cluster = AnyCluster::of_control_plane(&release.control_plane);
    let rollouts = Kind::new(&cluster, "rollout");
    rollouts.apply_definition();
    rollouts.enforce();
    rollouts.apply("busy", &json!({"strategy": {"type": "Recreate"}})).accepted();
    let valid = json!({"strategy": {"type": "Canary", "canary": {"weight": 1}}});

    let transitions = || {
        rollouts.apply("old", &valid).accepted();
        assert_eq!(post_invalid(&rollouts), 422);

        release.set("enforcement=off");
        pods.roll_out();
        pods.wait_for_entries(&OF_DECLARATIONS);
        assert!(eventually(SETTLED, || post_invalid(&rollouts) == 201));
        rollouts.merge("old", &json!({"spec": invalid()})).accepted().warned(&[]);
        rollouts.apply("new", &invalid()).accepted().warned(&[]);

        release.set("enforcement=on");
        pods.roll_out();
        rollouts.enforce();
        for name in ["old", "new"] {
            assert_eq!(rollouts.spec(name)["strategy"], invalid()["strategy"], "nobody touched it");
            rollouts.label(name, "team=a").accepted().warned(&[&let_through(ROLLING_UPDATE)]);
            rollouts
                .merge(name, &json!({"spec": {"strategy": {"blueGreen": {"previewService": "p"}}}}))
                .rejected(&rollouts.invalid(name, &[BLUE_GREEN, ROLLING_UPDATE]));
            assert_eq!(rollouts.spec(name)["strategy"], invalid()["strategy"]);
            rollouts.merge(name, &json!({"spec": {"strategy": {"rollingUpdate": null}}})).accepted().warned(&[]);
            assert_eq!(rollouts.spec(name)["strategy"], valid["strategy"]);
            rollouts.merge(name, &json!({"spec": invalid()})).rejected(&rollouts.invalid(name, &[ROLLING_UPDATE]));
        }
        let created = ROLLING_UPDATE.split_once("; remove it").expect("there is a hint for updates").0;
        rollouts.apply("third", &invalid()).rejected(&rollouts.invalid("third", &[created]));
    };
    let ((), wrong) = while_doing(|| write(&rollouts), transitions);
    assert_eq!(wrong, [] as [String; 0], "a write was blocked");
    if !lacks(Feature::MutatingPolicies) {
        policies_until_the_end(&release, pods, &rollouts);
    }
}

/// Switches to policies, which the pods keep with the rights of the chart, and which the hook of the release deletes.
fn policies_until_the_end(release: &Release, mut pods: Pods<'_>, kind: &Kind<'_>) {
    release.set("enforcement=policies");
    pods.roll_out();
    let client = release.control_plane.client();
    let expected = format!("{}/Rollout", kind.group());
    let are_kept = || kinds(client).into_iter().eq([expected.clone()]);
    assert!(eventually(SETTLED, are_kept), "\n{}", pods.logs().join("\n\n"));
    let owner = &policies(client)[0].1["metadata"]["ownerReferences"];
    assert_eq!((owner[0]["kind"].as_str(), owner[0]["name"].as_str()), (Some("ClusterRole"), Some(RELEASE)));
    pods.wait_for_entries(&OF_DECLARATIONS);
    kind.enforce();

    let unregistered = release.uninstall();
    assert!(unregistered.stderr.contains("deleted ValidatingAdmissionPolicyBinding"), "{unregistered:?}");
    assert!(policies(client).is_empty(), "nothing comes back, although the pods still run");
    pods.stop();
}
