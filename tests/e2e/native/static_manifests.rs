//! `kube-unions compile --static`: the API server reads the policies from directories when it starts (KEP-5793).

use std::fs;

use serde_json::{Value, json};

use super::agreement::Subject;
use super::{IN_FORCE, Native, policy_message};
use crate::support::cluster::is_left_out;
use crate::support::process::Workspace;
use crate::support::version::{Feature, lacks, version};
use crate::support::webhook::kube_unions;
use fixtures::crds;
use fixtures::wait::eventually;

const GROUP: &str = "static.native.example";

#[test]
fn static_manifests_are_in_force_from_the_start_and_no_client_can_change_them() {
    if is_left_out() || lacks(Feature::MutatingPolicies) {
        return;
    }
    let workspace = Workspace::new("static-manifests");
    let text = json!({"type": "string"});
    let fields = json!({"type": "object", "properties": {"kind": text, "a": text, "b": text}, "x-kubernetes-unions": [
        {"discriminator": "kind", "fields-to-discriminateBy": {"a": "A", "b": "B"}}]});
    let schema = json!({"type": "object", "properties": {"spec": fields}});
    let authored = crds::crd(GROUP, "Static", &[crds::version("v1", &schema)]);
    let server = format!("--kubernetes-version={}", version());
    let plugins = [("map", "MutatingAdmissionPolicy"), ("vap", "ValidatingAdmissionPolicy")].map(|(form, plugin)| {
        let run = kube_unions(&["compile", "--to", form, "--static", "--from=-", &server], &authored.to_string());
        let directory = workspace.path().join(form);
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("unions.yaml"), run.accepted().stdout).unwrap();
        json!({"name": plugin, "configuration": {"apiVersion": "apiserver.config.k8s.io/v1",
            "kind": format!("{plugin}Configuration"), "staticManifestsDir": directory}})
    });
    let configuration = workspace.path().join("admission.json");
    let content =
        json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins});
    fs::write(&configuration, content.to_string()).unwrap();
    let flags = [
        "--feature-gates=ManifestBasedAdmissionControlConfig=true".to_owned(),
        format!("--admission-control-config-file={}", configuration.display()),
    ];
    let Some(native) = Native::start_with(&flags) else { return };

    let subject = Subject::of_definition(authored.clone());
    native.apply(&subject.definition);
    native.wait_until_served(&subject.api.path(""));
    let write = |spec: &Value| subject.ask(&native, None, &json!({"spec": spec}));
    let deduced = || write(&json!({"a": "x"})).body["spec"] == json!({"kind": "A", "a": "x"});
    assert!(eventually(IN_FORCE, deduced), "{}", write(&json!({"a": "x"})).body);
    let denied = write(&json!({"a": "x", "b": "x"}));
    assert_eq!(denied.status, 422, "{}", denied.body);
    assert!(policy_message(&denied).is_some_and(|it| it.starts_with("spec.b: Forbidden: ")), "{}", denied.body);

    for resource in ["mutatingadmissionpolicies", "validatingadmissionpolicies"] {
        let listed = native.get(&format!("/apis/admissionregistration.k8s.io/v1/{resource}")).body;
        assert_eq!(listed["items"], json!([]), "a client sees none of them");
    }
    let run = kube_unions(&["compile", "--to=vap", "--static", "--from=-", &server], &authored.to_string()).accepted();
    let policy = crate::support::kind::documents(&run.stdout).remove(0);
    let refused = native.try_apply(&policy);
    assert!(!refused.is_success() && refused.body.to_string().contains(".static.k8s.io"), "{}", refused.body);
}
