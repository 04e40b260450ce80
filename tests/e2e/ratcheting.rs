//! Objects that were stored invalid before their unions were declared. [`rows`](crate::rows) plays `tests/cases/ratcheting`.

use serde_json::{Value, json};

use crate::support::cluster::AnyCluster;
use crate::support::kind::Kind;

const ROLLING_UPDATE: &str = "spec.strategy.rollingUpdate: Forbidden: may only be specified when `type` is \"RollingUpdate\"; \
    remove it, or change `type` to switch the member";

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

/// Two members set, one of them not selected.
fn invalid() -> Value {
    json!({"strategy": {"type": "Canary", "canary": {"weight": 1}, "rollingUpdate": {"maxSurge": 1}}})
}

/// The warning about a violation that the stored object had already.
fn let_through(cause: &str) -> String {
    format!("{cause}; let through because the union did not change")
}
