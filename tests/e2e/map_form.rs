//! A discriminator is changed in each way that kubectl has. [`rows`](crate::rows) plays the rules.

use serde_json::json;

use crate::kind::Kind;

const TYPE_CHANGED_TO_RECREATE: &str = "spec.strategy.rollingUpdate: cleared because `type` changed to \"Recreate\"";

#[test]
fn changing_the_discriminator_by_merge_patch_clears_the_other_members() {
    let Some(rollouts) = Kind::shared("rollout") else { return };
    rollouts
        .apply(
            "merge",
            &json!({"replicas": 2, "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}),
        )
        .accepted()
        .warned(&[]);
    rollouts
        .merge("merge", &json!({"spec": {"strategy": {"type": "Recreate"}}}))
        .accepted()
        .warned(&[TYPE_CHANGED_TO_RECREATE]);
    assert_eq!(rollouts.spec("merge"), json!({"replicas": 2, "strategy": {"type": "Recreate"}}));
}

#[test]
fn changing_the_discriminator_by_json_patch_clears_the_other_members() {
    let Some(rollouts) = Kind::shared("rollout") else { return };
    rollouts
        .apply("json", &json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}))
        .accepted();
    let patch = r#"[{"op": "replace", "path": "/spec/strategy/type", "value": "Recreate"}]"#;
    rollouts
        .kubectl()
        .run(&["patch", &rollouts.resource(), "json", "--type=json", "-p", patch])
        .accepted()
        .warned(&[TYPE_CHANGED_TO_RECREATE]);
    assert_eq!(rollouts.spec("json")["strategy"], json!({"type": "Recreate"}));
}

#[test]
fn changing_the_discriminator_by_kubectl_apply_clears_a_member_that_somebody_else_set() {
    let Some(rollouts) = Kind::shared("rollout") else { return };
    rollouts.apply("apply", &json!({"strategy": {"type": "RollingUpdate"}})).accepted();
    rollouts.merge("apply", &json!({"spec": {"strategy": {"rollingUpdate": {"maxSurge": 3}}}})).accepted().warned(&[]);
    rollouts.apply("apply", &json!({"strategy": {"type": "Recreate"}})).accepted().warned(&[TYPE_CHANGED_TO_RECREATE]);
    assert_eq!(rollouts.spec("apply")["strategy"], json!({"type": "Recreate"}));

    rollouts
        .apply("apply", &json!({"strategy": {"type": "BlueGreen", "blueGreen": {"previewService": "preview"}}}))
        .accepted()
        .warned(&[]);
    assert_eq!(
        rollouts.spec("apply")["strategy"],
        json!({"type": "BlueGreen", "blueGreen": {"previewService": "preview"}})
    );
}

#[test]
fn changing_the_discriminator_by_server_side_apply_clears_a_member_of_another_manager() {
    let Some(rollouts) = Kind::shared("rollout") else { return };
    rollouts
        .apply_server_side(
            "first",
            "ssa",
            &json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}),
        )
        .accepted()
        .warned(&[]);
    rollouts
        .apply_server_side("second", "ssa", &json!({"strategy": {"type": "Canary", "canary": {"weight": 5}}}))
        .accepted()
        .warned(&["spec.strategy.rollingUpdate: cleared because `type` changed to \"Canary\""]);
    assert_eq!(rollouts.spec("ssa")["strategy"], json!({"type": "Canary", "canary": {"weight": 5}}));
}

#[test]
fn changing_the_discriminator_by_kubectl_replace_clears_the_other_members() {
    let Some(rollouts) = Kind::shared("rollout") else { return };
    rollouts
        .apply("replace", &json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}))
        .accepted();
    rollouts
        .read_modify_write("replace", |object| object["spec"]["strategy"]["type"] = json!("Recreate"))
        .accepted()
        .warned(&[TYPE_CHANGED_TO_RECREATE]);
    assert_eq!(rollouts.spec("replace")["strategy"], json!({"type": "Recreate"}));
}

#[test]
fn a_dry_run_shows_the_clearing_and_stores_nothing() {
    let Some(rollouts) = Kind::shared("rollout") else { return };
    let before = json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}});
    rollouts.apply("dry", &before).accepted();
    let patch = r#"{"spec": {"strategy": {"type": "Recreate"}}}"#;
    let output = rollouts
        .kubectl()
        .run(&["patch", &rollouts.resource(), "dry", "--type=merge", "--dry-run=server", "-o", "json", "-p", patch])
        .accepted()
        .warned(&[TYPE_CHANGED_TO_RECREATE]);
    assert_eq!(output.json()["spec"]["strategy"], json!({"type": "Recreate"}));
    assert_eq!(rollouts.spec("dry")["strategy"], before["strategy"]);
}

#[test]
fn a_value_outside_the_enum_is_rejected_by_the_api_server_itself() {
    let Some(rollouts) = Kind::shared("rollout") else { return };
    rollouts
        .apply("bogus", &json!({"strategy": {"type": "Bogus"}}))
        .refused("spec.strategy.type: Unsupported value: \"Bogus\": supported values: ");
}
