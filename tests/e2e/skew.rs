//! Clients and servers that do not know the same members: the version-skew stories of the proposal of 2022
//! ("Discriminator Field") that are no rows of [`matrix`](crate::matrix).
//!
//! A server that does not know a member has the older CRD. The member that one side does not know is `blueGreen` of a rollout, or
//! `bearer` of a monitor's endpoint.

use serde_json::{Value, json};

use crate::cluster::AnyCluster;
use crate::kind::Kind;

#[test]
fn case_22_27_a_map_client_clears_a_member_it_does_not_know_by_emptying_the_discriminator() {
    let Some(monitors) = Kind::shared("monitor") else { return };
    let endpoint = |auth: Value| json!({"endpoints": [{"port": 80, "path": "/", "auth": auth}]});
    monitors.apply("case-22-27", &endpoint(json!({"type": "Bearer", "bearer": {"secretName": "s"}}))).accepted();
    monitors
        .read_modify_write("case-22-27", |object| object["spec"]["endpoints"][0]["auth"]["type"] = json!(""))
        .accepted()
        .warned(&["spec.endpoints[0].auth.bearer: cleared because `type` changed to \"\""]);
    assert_eq!(monitors.spec("case-22-27"), endpoint(json!({"type": ""})));
}

#[test]
fn case_34_39_a_member_the_server_does_not_know_is_refused_by_its_discriminator_value() {
    let Some(cluster) = AnyCluster::shared() else { return };
    let rollouts = Kind::new(cluster, "rollout");
    rollouts.apply_definition_with(|crd| {
        rollout_without_blue_green(crd);
        // Without an enum the API server has no objection of its own.
        strategy(crd)["type"].as_object_mut().unwrap().remove("enum");
    });
    rollouts.enforce();
    let words = |name: &str| {
        rollouts.invalid(
            name,
            &["spec.strategy.type: Unsupported value: \"BlueGreen\": supported values: \"Canary\", \"Recreate\", \"RollingUpdate\""],
        )
    };

    let before = json!({"strategy": {"type": "Canary", "canary": {"weight": 1}}});
    rollouts.apply("case-34-39", &before).accepted();
    rollouts.read_modify_write("case-34-39", |object| object["spec"] = blue_green()).rejected(&words("case-34-39"));
    assert_eq!(rollouts.spec("case-34-39")["strategy"], before["strategy"]);

    let created = rollouts.object("created", &blue_green()).to_string();
    rollouts.kubectl().run_with(&["create", "--validate=ignore", "-f", "-"], &created).rejected(&words("created"));
}

/// The older CRD of a rollout.
fn rollout_without_blue_green(crd: &mut Value) {
    let strategy = strategy(crd);
    strategy.as_object_mut().unwrap().remove("blueGreen").expect("the sample has the member");
    let discriminator = &mut strategy["type"];
    discriminator["enum"].as_array_mut().unwrap().retain(|value| value != "BlueGreen");
    discriminator["x-kubernetes-unions"]["fieldMembers"].as_object_mut().unwrap().remove("BlueGreen");
}

/// The schema of `spec`.
pub(crate) fn spec(crd: &mut Value) -> &mut Value {
    &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
}

/// The properties of a rollout's strategy.
fn strategy(crd: &mut Value) -> &mut Value {
    &mut spec(crd)["properties"]["strategy"]["properties"]
}

fn blue_green() -> Value {
    json!({"strategy": {"type": "BlueGreen", "blueGreen": {"previewService": "preview"}}})
}
