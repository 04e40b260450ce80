//! Clients and servers that do not know the same members: the version-skew stories of the proposal of 2022
//! ("Discriminator Field"), each once with a discriminator and once without.
//!
//! A client that holds an object as a struct reads it, loses what it does not know and writes the rest back. One that
//! holds it as a JSON map keeps what it does not know. A server that does not know a member has the older CRD. The
//! member that one side does not know is `blueGreen` of a rollout, `bearer` of a monitor's endpoint, `oci` of a source.

use serde_json::{Value, json};

use crate::cluster::AnyCluster;
use crate::kind::Kind;

#[test]
fn case_12_16_a_struct_client_that_echoes_a_union_it_does_not_know_is_stopped_by_the_discriminator() {
    let Some(rollouts) = Kind::shared("rollout") else { return };
    rollouts.apply("case-12-16", &blue_green()).accepted();
    rollouts
        .read_modify_write("case-12-16", |object| {
            forget_blue_green(object);
            object["spec"]["replicas"] = json!(3);
        })
        .rejected(&rollouts.invalid(
            "case-12-16",
            &["spec.strategy.blueGreen: Required value: must be specified when `type` is \"BlueGreen\""],
        ));
    assert_eq!(rollouts.spec("case-12-16")["strategy"], blue_green()["strategy"]);
}

#[test]
fn case_12_16_without_a_discriminator_the_echo_loses_the_member_and_nobody_can_tell() {
    let Some(sources) = Kind::shared("source") else { return };
    sources.apply("case-12-16", &json!({"oci": {"ref": "r"}})).accepted();
    sources
        .read_modify_write("case-12-16", |object| {
            forget_oci(object);
            object["spec"]["interval"] = json!("5m");
        })
        .accepted()
        .warned(&[]);
    assert_eq!(sources.spec("case-12-16"), json!({"interval": "5m"}));
}

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
fn case_22_27_without_a_discriminator_a_map_client_cannot_clear_what_it_does_not_know() {
    let Some(sources) = Kind::shared("source") else { return };
    let before = json!({"oci": {"ref": "r"}});
    sources.apply("case-22-27", &before).accepted();
    sources.merge("case-22-27", &json!({"spec": {"git": null, "bucket": null}})).accepted().warned(&[]);
    assert_eq!(sources.spec("case-22-27"), before);
}

#[test]
fn case_23_28_a_client_that_sets_a_member_it_knows_replaces_one_it_does_not_know_by_the_discriminator() {
    let Some(rollouts) = Kind::shared("rollout") else { return };
    let canary = json!({"strategy": {"type": "Canary", "canary": {"weight": 1}}});
    for name in ["case-23-28-map", "case-23-28-struct"] {
        rollouts.apply(name, &blue_green()).accepted();
    }
    rollouts
        .merge("case-23-28-map", &json!({"spec": canary}))
        .accepted()
        .warned(&["spec.strategy.blueGreen: cleared because `type` changed to \"Canary\""]);
    assert_eq!(rollouts.spec("case-23-28-map")["strategy"], canary["strategy"]);

    rollouts
        .read_modify_write("case-23-28-struct", |object| {
            forget_blue_green(object);
            object["spec"] = canary.clone();
        })
        .accepted()
        .warned(&[]);
    assert_eq!(rollouts.spec("case-23-28-struct")["strategy"], canary["strategy"]);
}

#[test]
fn case_23_28_without_a_discriminator_the_member_that_is_added_replaces_one_the_client_does_not_know() {
    let Some(sources) = Kind::shared("source") else { return };
    sources.apply("case-23-28", &json!({"oci": {"ref": "r"}})).accepted();
    sources
        .merge("case-23-28", &json!({"spec": {"bucket": {"name": "b"}}}))
        .accepted()
        .warned(&["spec.oci: cleared because `bucket` was set"]);
    assert_eq!(sources.spec("case-23-28"), json!({"bucket": {"name": "b"}}));
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

#[test]
fn case_34_39_an_enum_in_the_older_schema_refuses_the_value_as_well() {
    let Some(cluster) = AnyCluster::shared() else { return };
    let rollouts = Kind::new(cluster, "rollout");
    rollouts.apply_definition_with(rollout_without_blue_green);
    rollouts.enforce();
    let before = json!({"strategy": {"type": "Canary", "canary": {"weight": 1}}});
    rollouts.apply("case-34-39", &before).accepted();
    rollouts
        .read_modify_write("case-34-39", |object| object["spec"] = blue_green())
        .refused("spec.strategy.type: Unsupported value: \"BlueGreen\"");
    assert_eq!(rollouts.spec("case-34-39")["strategy"], before["strategy"]);
}

#[test]
fn case_34_39_without_a_discriminator_the_member_is_dropped_and_the_union_left_empty() {
    let Some(cluster) = AnyCluster::shared() else { return };
    let sources = Kind::new(cluster, "source");
    sources.apply_definition_with(source_without_oci);
    sources.enforce();
    sources.apply("case-34-39", &json!({"git": {"url": "https://example.com/a.git"}})).accepted();
    sources
        .read_modify_write("case-34-39", |object| object["spec"] = json!({"oci": {"ref": "r"}}))
        .accepted()
        .warned(&[]);
    assert_eq!(sources.spec("case-34-39"), json!({}));
}

/// The older CRD of a rollout.
pub(crate) fn rollout_without_blue_green(crd: &mut Value) {
    let strategy = strategy(crd);
    strategy.as_object_mut().unwrap().remove("blueGreen").expect("the sample has the member");
    let discriminator = &mut strategy["type"];
    discriminator["enum"].as_array_mut().unwrap().retain(|value| value != "BlueGreen");
    discriminator["x-kubernetes-unions"]["fieldMembers"].as_object_mut().unwrap().remove("BlueGreen");
}

/// The older CRD of a source.
pub(crate) fn source_without_oci(crd: &mut Value) {
    let spec = spec(crd);
    spec["properties"].as_object_mut().unwrap().remove("oci").expect("the sample has the member");
    spec["x-kubernetes-unions"][0]["fields-to-discriminateBy"].as_object_mut().unwrap().remove("oci");
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

fn forget_blue_green(object: &mut Value) {
    object["spec"]["strategy"].as_object_mut().unwrap().remove("blueGreen").expect("the member is set");
}

fn forget_oci(object: &mut Value) {
    object["spec"].as_object_mut().unwrap().remove("oci").expect("the member is set");
}
