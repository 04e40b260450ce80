//! Names of strangers that an API server accepts and a terminal would obey.

use serde_json::json;

use crate::support::cluster::Cluster;
use crate::support::webhook::kube_unions;
use fixtures::crds;
use fixtures::terminal::is_raw;
use fixtures::wait::{SETTLED, eventually};

const PLACE: &str = "at\u{1b}[2J";
const MEMBERS: [&str; 2] = ["a\u{1b}]0;owned\u{7}", "b\u{202e}\u{9b}2J\r"];
const VALUES: [&str; 2] = ["A\u{1b}[8m", "B\u{2066}\u{9b}2J"];
const DISCRIMINATOR: &str = "type\u{1b}[8m";

#[test]
fn nothing_of_a_strangers_kind_or_object_reaches_the_terminal_raw() {
    let Some(cluster) = Cluster::shared() else { return };
    let group = cluster.new_group();
    let text = json!({"type": "string"});
    let [a, b] = MEMBERS;
    let place = json!({
        "type": "object",
        "x-kubernetes-validations": [{"rule": "true", "message": "\u{1b}[2J"}],
        "properties": {a: text, b: text, DISCRIMINATOR: {"type": "string", "enum": VALUES, "description": "\u{1b}[2J"}},
    });
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {PLACE: place}}}});
    let pointer = format!("/properties/spec/properties/{PLACE}/properties/{DISCRIMINATOR}");
    let union = json!({"fieldMembers": {VALUES[0]: {"name": a}, VALUES[1]: {"name": b, "optional": true}}});
    // A place that the schema does not have is a fault.
    let declared = json!({"v1": {pointer: union, format!("/properties/nowhere{PLACE}"): union}}).to_string();
    let crd = crds::annotated(&group, "Widget", &[crds::version("v1", &schema)], &declared);
    let kubectl = cluster.kubectl("hostile");
    kubectl.apply(&crd.to_string()).accepted();
    let path = format!("/apis/{group}/v1/namespaces/default/widgets");
    let object = json!({"apiVersion": format!("{group}/v1"), "kind": "Widget", "metadata": {"name": "w", "annotations": {"a": PLACE}},
        "spec": {PLACE: {a: "x", b: "y", DISCRIMINATOR: VALUES[1]}}});
    let created = || cluster.client().post(&path, &object).is_ok_and(|answer| answer.is_success());
    assert!(eventually(SETTLED, created), "the object can never be created");

    let kubeconfig = format!("--kubeconfig={}", cluster.control_plane.admin_kubeconfig().display());
    let resource = format!("widgets.{group}");
    let below = format!("{resource}.spec.{PLACE}");
    let nowhere = format!("{resource}.spec.no\u{1b}[2Jwhere");
    let switch = json!({"spec": {PLACE: {DISCRIMINATOR: "C\u{1b}[2J"}}}).to_string();
    let directive = json!({"spec": {PLACE: {"$patch": "x\u{1b}[2J"}}}).to_string();
    let rows: [(&[&str], i32); 10] = [
        (&["audit", &kubeconfig, &resource], 1),
        (&["audit", &kubeconfig, &resource, "-o", "json"], 1),
        (&["audit", &kubeconfig, &resource, "-o", "sarif"], 1),
        (&["audit", &kubeconfig, "no\u{1b}[2Jsuch"], 2),
        (&["explain", &kubeconfig, &resource], 0),
        (&["explain", &kubeconfig, &resource, "-o", "json"], 0),
        (&["explain", &kubeconfig, &below], 0),
        (&["explain", &kubeconfig, &nowhere], 2),
        (&["patch", "live", &kubeconfig, &resource, "w", "-p", &switch], 1),
        (&["patch", "live", &kubeconfig, &resource, "w", "-p", &directive], 2),
    ];
    let mut wrong = Vec::new();
    for (arguments, code) in rows {
        let run = kube_unions(arguments, "");
        let said = format!("{}{}", run.stdout, run.stderr);
        let escapes = ["\\u001b", "\\u202e", "\u{fffd}"].iter().any(|it| said.contains(it));
        if run.code != Some(code) || said.contains(is_raw) || !escapes {
            wrong.push(run);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    kubectl.run(&["delete", "crd", &resource]).accepted();
}
