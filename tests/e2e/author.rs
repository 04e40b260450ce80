//! A kind whose author writes Rust: the sample as it is compiled, its CRD on a real API server, and objects of it.

#[allow(dead_code, unreachable_pub, reason = "the sample is a program")]
#[path = "../../manifests/samples/rust/rollout.rs"]
mod sample;
mod typed_client;

use std::process::Command;
use std::sync::OnceLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceValidation;
use serde_json::{Value, json};

use crate::support::cluster::AnyCluster;
use crate::support::kind::{Kind, parse};
use crate::support::kubectl::run;
use crate::support::process::example;
use crate::support::webhook::kube_unions;
use fixtures::wait::steadily;

/// Returns the sample's kind, enforced on the cluster that the tests share.
fn rollouts() -> Option<&'static Kind<'static>> {
    static SHARED: OnceLock<Kind<'_>> = OnceLock::new();
    let cluster = AnyCluster::shared()?;
    Some(SHARED.get_or_init(|| {
        let kind = Kind::of_definition(cluster, &parse(&printed()));
        // On a cluster that was there before this run, so may be the kind.
        kind.delete_definition();
        kind.kubectl().apply(&printed()).accepted().warned(&[]);
        kind.wait_until_served();
        kind.send_to_webhook();
        // Only its union makes this object invalid.
        let probe = kind.object("probe", &json!({"strategy": {"type": "Recreate", "canary": {"weight": 5}}}));
        let is_enforced = || {
            let answer = kind.post_dry(&probe);
            answer.is_ok_and(|answer| answer.status == 422 && answer.body.to_string().contains("may only be specified"))
        };
        assert!(steadily(cluster.steady(), is_enforced), "the unions of {} are never enforced", kind.resource());
        kind
    }))
}

/// Returns the sample's output.
fn printed() -> String {
    let example = example("kube-unions-author", "rollout", "manifests/samples/rust/rollout.rs");
    let output = run(Command::new(&example), "rollout", "").accepted();
    assert_eq!(output.stderr, "");
    output.stdout
}

#[test]
fn the_api_server_keeps_the_annotation_of_the_sample_and_all_of_its_schema() {
    let Some(rollouts) = rollouts() else { return };
    kube_unions(&["lint", "--strict", "-"], &printed()).accepted();
    let sent = parse(&printed());
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}", rollouts.definition_name());
    let stored = rollouts.client().get(&path).expect("the API server answers").body;
    let name = "kube-unions.dev/unions";
    assert_eq!(stored["metadata"]["annotations"][name], sent["metadata"]["annotations"][name]);
    // As values of the type: a number may be written in another way.
    let schema = |crd: &Value| -> CustomResourceValidation {
        serde_json::from_value(crd["spec"]["versions"][0]["schema"].clone()).expect("a version has a schema")
    };
    assert_eq!(schema(&stored), schema(&sent));
    assert_eq!(
        parse(sent["metadata"]["annotations"][name].as_str().expect("the annotation is a text")),
        json!({"v1": {
            "/properties/spec/properties/source": [{"fields-to-discriminateBy": {"git": "Git", "bucket": "Bucket"}}],
            "/properties/spec/properties/strategy/properties/type": {"fieldMembers": {
                "Canary": {"fields": {"canary": {}, "stableService": {"optional": true}}},
                "BlueGreen": {"name": "blueGreen", "optional": true}, "Recreate": null}},
        }})
    );
}

/// `EnumUnion` gives an enum that is no union this schema. kube's own `CustomResourceExt::crd` cannot report the fault.
#[test]
fn the_api_server_refuses_the_schema_of_an_enum_that_is_no_union() {
    let Some(rollouts) = rollouts() else { return };
    let mut crd = parse(&printed());
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/strategy";
    *crd.pointer_mut(schema).expect("the sample has a strategy") = json!({});
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All";
    let answer = rollouts.client().post(path, &crd).expect("the API server answers");
    assert_eq!(answer.status, 422);
    let cause =
        "properties[spec].properties[strategy].type: Required value: must not be empty for specified object fields";
    assert!(answer.body["message"].as_str().is_some_and(|message| message.contains(cause)), "{answer:?}");
}
