//! The 2022 form, where the discriminator decides: a deployment-like strategy.

use serde_json::json;

use crate::cluster::AnyCluster;
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
fn changing_the_discriminator_and_setting_its_member_by_merge_patch_keeps_that_member_alone() {
    let Some(rollouts) = Kind::shared("rollout") else { return };
    rollouts
        .apply("keep", &json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}))
        .accepted();
    rollouts
        .merge("keep", &json!({"spec": {"strategy": {"type": "Canary", "canary": {"weight": 10}}}}))
        .accepted()
        .warned(&["spec.strategy.rollingUpdate: cleared because `type` changed to \"Canary\""]);
    assert_eq!(rollouts.spec("keep")["strategy"], json!({"type": "Canary", "canary": {"weight": 10}}));
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
fn a_member_changed_without_its_discriminator_is_rejected() {
    let Some(rollouts) = Kind::shared("rollout") else { return };
    let before = json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}});
    rollouts.apply("member", &before).accepted();
    rollouts.merge("member", &json!({"spec": {"strategy": {"canary": {"weight": 5}}}})).rejected(&rollouts.invalid(
        "member",
        &["spec.strategy.canary: Forbidden: may only be specified when `type` is \"Canary\"; remove it, or change `type` to switch the member"],
    ));
    assert_eq!(rollouts.spec("member")["strategy"], before["strategy"]);
}

#[test]
fn a_required_member_that_is_missing_is_rejected_on_create_and_on_update() {
    let Some(rollouts) = Kind::shared("rollout") else { return };
    let cause = "spec.strategy.canary: Required value: must be specified when `type` is \"Canary\"";
    let words = rollouts.invalid("required", &[cause]);
    rollouts.apply("required", &json!({"strategy": {"type": "Canary"}})).rejected(&words);
    rollouts.apply("required", &json!({"strategy": {"type": "Canary", "canary": {"weight": 5}}})).accepted();
    rollouts.merge("required", &json!({"spec": {"strategy": {"canary": null}}})).rejected(&words);
    rollouts.apply("required", &json!({"strategy": {"type": "Recreate"}})).accepted();
    rollouts.merge("required", &json!({"spec": {"strategy": {"type": "Canary"}}})).rejected(&words);
}

#[test]
fn an_optional_member_and_an_absent_union_are_accepted() {
    let Some(rollouts) = Kind::shared("rollout") else { return };
    rollouts.apply("optional", &json!({"strategy": {"type": "RollingUpdate"}})).accepted().warned(&[]);
    rollouts.apply("absent", &json!({"strategy": {}})).accepted().warned(&[]);
    rollouts.apply("none", &json!({"replicas": 1})).accepted().warned(&[]);
}

#[test]
fn a_value_outside_the_enum_is_rejected_by_the_api_server_itself() {
    let Some(rollouts) = Kind::shared("rollout") else { return };
    rollouts
        .apply("bogus", &json!({"strategy": {"type": "Bogus"}}))
        .refused("spec.strategy.type: Unsupported value: \"Bogus\": supported values: ");
}

#[test]
fn a_value_that_is_not_declared_is_rejected_where_the_schema_has_no_enum() {
    let Some(cluster) = AnyCluster::shared() else { return };
    let rollouts = Kind::new(cluster, "rollout");
    rollouts.apply_definition_with(|crd| {
        let kind = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
            .pointer_mut("/properties/spec/properties/strategy/properties/type")
            .unwrap();
        kind.as_object_mut().unwrap().remove("enum").expect("the sample has an enum");
    });
    rollouts.enforce();
    rollouts.apply("bogus", &json!({"strategy": {"type": "Bogus"}})).rejected(&rollouts.invalid(
        "bogus",
        &["spec.strategy.type: Unsupported value: \"Bogus\": supported values: \"BlueGreen\", \"Canary\", \"Recreate\", \"RollingUpdate\""],
    ));
}

#[test]
fn an_empty_member_with_a_member_set_is_rejected() {
    let Some(rollouts) = Kind::shared("rollout") else { return };
    rollouts.apply("empty", &json!({"strategy": {"type": "Recreate", "rollingUpdate": {}}})).rejected(
        &rollouts.invalid(
            "empty",
            &["spec.strategy.rollingUpdate: Forbidden: may only be specified when `type` is \"RollingUpdate\""],
        ),
    );
}

#[test]
fn creating_with_two_members_is_rejected_and_never_cleared() {
    let Some(rollouts) = Kind::shared("rollout") else { return };
    let spec = json!({"strategy": {"type": "Canary", "canary": {"weight": 1}, "blueGreen": {"previewService": "p"}}});
    rollouts.apply("two", &spec).rejected(
        &rollouts.invalid(
            "two",
            &["spec.strategy.blueGreen: Forbidden: may only be specified when `type` is \"BlueGreen\""],
        ),
    );
}

#[test]
fn a_member_without_a_discriminator_is_rejected() {
    let Some(rollouts) = Kind::shared("rollout") else { return };
    rollouts.apply("undecided", &json!({"strategy": {"canary": {"weight": 1}}})).rejected(
        &rollouts.invalid("undecided", &["spec.strategy.type: Required value: must be specified when `canary` is set"]),
    );
}

#[test]
fn all_violations_are_reported_at_once_in_the_order_of_their_paths() {
    let Some(rollouts) = Kind::shared("rollout") else { return };
    let spec = json!({"strategy": {"type": "Canary", "rollingUpdate": {}, "blueGreen": {"previewService": "p"}}});
    rollouts.apply("all", &spec).rejected(&rollouts.invalid(
        "all",
        &[
            "spec.strategy.blueGreen: Forbidden: may only be specified when `type` is \"BlueGreen\"",
            "spec.strategy.canary: Required value: must be specified when `type` is \"Canary\"",
            "spec.strategy.rollingUpdate: Forbidden: may only be specified when `type` is \"RollingUpdate\"",
        ],
    ));
}
