//! Objects that were stored invalid before their unions were declared.

use serde_json::{Value, json};

use crate::cluster::{AnyCluster, Cluster};
use crate::kind::Kind;
use crate::webhook::Webhook;

pub(crate) const ROLLING_UPDATE: &str = "spec.strategy.rollingUpdate: Forbidden: may only be specified when `type` is \"RollingUpdate\"; \
    remove it, or change `type` to switch the member";
pub(crate) const BLUE_GREEN: &str = "spec.strategy.blueGreen: Forbidden: may only be specified when `type` is \"BlueGreen\"; \
    remove it, or change `type` to switch the member";

#[test]
fn an_object_stored_invalid_can_be_changed_elsewhere_with_a_warning() {
    let Some(cluster) = AnyCluster::shared() else { return };
    let rollouts = stored_invalid(cluster, &["old"]);
    rollouts.enforce();
    let warning = let_through(ROLLING_UPDATE);

    rollouts.label("old", "team=a").accepted().warned(&[&warning]);
    rollouts.merge("old", &json!({"spec": {"replicas": 7}})).accepted().warned(&[&warning]);
    rollouts
        .merge("old", &json!({"spec": {"strategy": {"rollingUpdate": {"maxSurge": 9}}}}))
        .accepted()
        .warned(&[&warning]);
    assert_eq!(rollouts.stored("old")["metadata"]["labels"], json!({"team": "a"}));
    assert_eq!(rollouts.spec("old")["strategy"]["rollingUpdate"], json!({"maxSurge": 9}));
}

#[test]
fn an_object_stored_invalid_cannot_be_made_worse() {
    let Some(cluster) = AnyCluster::shared() else { return };
    let rollouts = stored_invalid(cluster, &["worse"]);
    rollouts.enforce();

    rollouts
        .merge("worse", &json!({"spec": {"strategy": {"blueGreen": {"previewService": "p"}}}}))
        .rejected(&rollouts.invalid("worse", &[BLUE_GREEN, ROLLING_UPDATE]));
    assert_eq!(rollouts.spec("worse")["strategy"], invalid()["strategy"]);
}

#[test]
fn an_object_stored_invalid_can_be_repaired() {
    let Some(cluster) = AnyCluster::shared() else { return };
    let rollouts = stored_invalid(cluster, &["removed", "switched"]);
    rollouts.enforce();

    rollouts.merge("removed", &json!({"spec": {"strategy": {"rollingUpdate": null}}})).accepted().warned(&[]);
    assert_eq!(rollouts.spec("removed")["strategy"], json!({"type": "Canary", "canary": {"weight": 1}}));
    rollouts.merge("switched", &json!({"spec": {"strategy": {"type": "Recreate"}}})).accepted().warned(&[
        "spec.strategy.canary: cleared because `type` changed to \"Recreate\"",
        "spec.strategy.rollingUpdate: cleared because `type` changed to \"Recreate\"",
    ]);
    assert_eq!(rollouts.spec("switched")["strategy"], json!({"type": "Recreate"}));
}

#[test]
fn an_object_stored_invalid_can_lose_its_finalizer_and_be_deleted() {
    let Some(cluster) = AnyCluster::shared() else { return };
    let rollouts = Kind::new(cluster, "rollout");
    rollouts.apply_definition_without_unions();
    let mut object = rollouts.object("doomed", &invalid());
    object["metadata"]["finalizers"] = json!(["samples.example/hold"]);
    rollouts.kubectl().apply(&object.to_string()).accepted();
    rollouts.apply_definition();
    rollouts.enforce();

    rollouts.kubectl().run(&["delete", &rollouts.resource(), "doomed", "--wait=false"]).accepted();
    rollouts
        .merge("doomed", &json!({"metadata": {"finalizers": null}}))
        .accepted()
        .warned(&[&let_through(ROLLING_UPDATE)]);
    rollouts.kubectl().run(&["get", &rollouts.resource(), "doomed"]).refused("NotFound");
}

#[test]
fn without_ratcheting_an_object_stored_invalid_can_only_be_repaired_or_deleted() {
    let Some(cluster) = Cluster::shared() else { return };
    let rollouts = stored_invalid(cluster, &["strict", "deleted"]);
    let strict = Webhook::of_cluster(&cluster.control_plane.webhook_kubeconfig(), &["--ratcheting=disabled"]).unwrap();
    rollouts.register(&strict);

    rollouts.label("strict", "team=a").rejected(&rollouts.invalid("strict", &[ROLLING_UPDATE]));
    rollouts.merge("strict", &json!({"spec": {"strategy": {"rollingUpdate": null}}})).accepted().warned(&[]);
    rollouts.label("strict", "team=a").accepted().warned(&[]);
    rollouts.kubectl().run(&["delete", &rollouts.resource(), "deleted"]).accepted();
}

#[test]
fn two_members_stored_without_a_discriminator_stay_until_one_is_chosen() {
    let Some(cluster) = AnyCluster::shared() else { return };
    let sources = Kind::new(cluster, "source");
    sources.apply_definition_without_unions();
    sources.apply("two", &json!({"git": {"url": "https://example.com/a.git"}, "bucket": {"name": "b"}})).accepted();
    sources.apply_definition();
    sources.enforce();

    let cause = "spec.git: Forbidden: at most one of `bucket`, `git` may be set";
    sources.label("two", "team=a").accepted().warned(&[&let_through(cause)]);
    sources
        .merge("two", &json!({"spec": {"oci": {"ref": "r"}}}))
        .accepted()
        .warned(&["spec.bucket: cleared because `oci` was set", "spec.git: cleared because `oci` was set"]);
    assert_eq!(sources.spec("two"), json!({"oci": {"ref": "r"}}));
}

/// Two members set, one of them not selected.
pub(crate) fn invalid() -> Value {
    json!({"strategy": {"type": "Canary", "canary": {"weight": 1}, "rollingUpdate": {"maxSurge": 1}}})
}

/// Returns a kind with stored objects of these names, invalid under unions that are declared afterwards and not enforced yet.
fn stored_invalid<'c>(cluster: &'c AnyCluster, names: &[&str]) -> Kind<'c> {
    let rollouts = Kind::new(cluster, "rollout");
    rollouts.apply_definition_without_unions();
    for name in names {
        rollouts.apply(name, &invalid()).accepted().warned(&[]);
    }
    rollouts.apply_definition();
    rollouts
}

/// The warning about a violation that the stored object had already.
pub(crate) fn let_through(cause: &str) -> String {
    format!("{cause}; let through because the union did not change")
}
