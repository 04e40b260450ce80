//! `kube-unions compile --to cel` on a cluster: the stored CRDs come out with rules and can be applied as they are.

use serde_json::{Value, json};

use super::super::{IN_FORCE, Native};
use crate::support::kind::documents;
use crate::support::webhook::kube_unions;
use fixtures::crds::{annotated, crd, version};
use fixtures::wait::eventually;

const GROUP: &str = "stored.rules.example";

/// Returns a schema with a rule of its author.
fn schema(unions: bool) -> Value {
    let mut spec = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "x-kubernetes-validations": [{"rule": "!has(self.a) || self.a != 'x'", "message": "of the author"}]});
    if unions {
        spec["x-kubernetes-unions"] = json!([{"fields-to-discriminateBy": {"a": "A", "b": "B"}}]);
    }
    json!({"type": "object", "properties": {"spec": spec}})
}

/// Returns the rules of the first version of a CRD.
fn rules(crd: &Value) -> Vec<&str> {
    let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let rules = spec["x-kubernetes-validations"].as_array().expect("a list of rules");
    rules.iter().map(|rule| rule["rule"].as_str().expect("a rule")).collect()
}

#[test]
fn the_stored_crds_of_a_cluster_come_out_with_rules_and_can_be_applied_again() {
    let Some(native) = Native::start() else { return };
    let kubectl = native.control_plane().kubectl("rules");
    let kubeconfig = format!("--kubeconfig={}", native.control_plane().admin_kubeconfig().display());
    let compile = |more: &[&str]| kube_unions(&[&["compile", "--to=cel", &kubeconfig], more].concat(), "");

    let declared =
        json!({"v1": {"/properties/spec": [{"fields-to-discriminateBy": {"a": "A", "b": "B"}}]}}).to_string();
    let annotated = annotated(GROUP, "Annotated", &[version("v1", &schema(false))], &declared);
    kubectl.apply(&annotated.to_string()).accepted();
    // The extension is only in the last applied configuration.
    let applied = crd(GROUP, "Applied", &[version("v1", &schema(true))]);
    kubectl.run_with(&["apply", "--validate=false", "-f", "-"], &applied.to_string()).accepted();
    kubectl.apply(&crd(GROUP, "Plain", &[version("v1", &schema(false))]).to_string()).accepted();

    let stale = compile(&["--check"]);
    assert_eq!((stale.code, stale.stdout.as_str()), (Some(1), ""), "{stale:?}");
    assert_eq!(stale.stderr.matches(": would change\n").count(), 2, "{stale:?}");

    let printed = compile(&[]).accepted();
    let crds = documents(&printed.stdout);
    assert_eq!(crds.len(), 2, "a CRD without unions is left out: {}", printed.stdout);
    for crd in &crds {
        assert_eq!(rules(crd), ["!has(self.a) || self.a != 'x'", "!(has(self.b) && has(self.a)) // kube-unions"]);
        assert!(crd.get("status").is_none() && crd["metadata"].get("uid").is_none(), "{crd}");
        let annotations = crd["metadata"]["annotations"].as_object().expect("annotations");
        let names: Vec<_> = annotations.keys().map(String::as_str).collect();
        assert_eq!(names, ["kube-unions.dev/unions"]);
    }
    kubectl.apply(&printed.stdout).accepted();
    compile(&["--check"]).accepted();
    assert_eq!(documents(&compile(&[]).accepted().stdout), crds, "compiling twice changes nothing");

    let mut object = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Applied", "metadata": {"name": "o"}});
    object["spec"] = json!({"a": "", "b": ""});
    let path = format!("/apis/{GROUP}/v1/namespaces/default/applieds?dryRun=All");
    let denied = eventually(IN_FORCE, || native.send("POST", &path, &object).status == 422);
    assert!(denied, "the rules were not in force");
    let refused = kubectl.apply(&object.to_string());
    refused.refused("spec.b: Forbidden: at most one of `a`, `b` may be set");

    // Without its union, a CRD loses our rule and keeps the author's.
    kubectl.run(&["annotate", "crd", &format!("applieds.{GROUP}"), "kube-unions.dev/unions-"]).accepted();
    let removed = documents(&compile(&[]).accepted().stdout);
    let applied = removed.iter().find(|crd| crd["spec"]["names"]["kind"] == "Applied").expect("it changes");
    assert_eq!(rules(applied), ["!has(self.a) || self.a != 'x'"]);
}
