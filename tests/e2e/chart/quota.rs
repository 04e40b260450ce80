//! The chart on a cluster that admits pods of the system's priority classes only where a quota counts them, as GKE does.

use serde_json::{Value, json};

use super::RELEASE;
use super::lifecycle::Release;
use crate::cluster::{is_left_out, say};
use crate::kind::documents;
use crate::process::Workspace;
use fixtures::wait::{SETTLED, eventually};

/// The configuration of the plugin `ResourceQuota`.
const LIMITED: &str = r#"{
  "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration",
  "plugins": [{"name": "ResourceQuota", "configuration": {
    "apiVersion": "apiserver.config.k8s.io/v1", "kind": "ResourceQuotaConfiguration",
    "limitedResources": [{"resource": "pods", "matchScopes": [
      {"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical", "system-cluster-critical"]}
    ]}]
  }}]
}"#;

impl Release {
    /// Creates a pod of a template of the release. Returns the reason of a refusal.
    fn create_pod(&self, template: &Value, name: &str) -> Result<(), String> {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": template["metadata"]["labels"]},
            "spec": template["spec"],
        });
        let answer = self.control_plane.client().post(&format!("/api/v1/namespaces/{RELEASE}/pods"), &pod).unwrap();
        if answer.is_success() { Ok(()) } else { Err(answer.body["message"].to_string()) }
    }

    /// Returns the template of the pods of a Deployment or Job of the release.
    fn template(&self, what: &str, name: &str) -> Value {
        let objects = documents(&self.helm(&["get", what, RELEASE], &Value::Null).accepted().stdout);
        let named = |object: &&Value| object["metadata"]["name"] == name && !object["spec"]["template"].is_null();
        objects.iter().find(named).unwrap_or_else(|| panic!("no template of {name}"))["spec"]["template"].clone()
    }
}

#[test]
fn the_quota_admits_a_rollout_and_the_job_before_uninstalling_and_the_crd_needs_none() {
    if is_left_out() {
        return;
    }
    let workspace = Workspace::new("quota");
    let limited = workspace.write("admission.json", LIMITED);
    let flags = [format!("--admission-control-config-file={}", limited.display())];
    let Some(release) = Release::with(&flags) else { return };
    release.install(&Value::Null);
    let webhook = release.template("manifest", "kube-unions");
    let refused = release.create_pod(&webhook, "refused").unwrap_err();
    assert!(refused.contains("insufficient quota to match these scopes"), "{refused}");
    // Helm runs this Job before it creates a quota.
    assert_eq!(release.create_pod(&release.template("hooks", "kube-unions-crds"), "crds"), Ok(()));
    release.helm(&["uninstall", RELEASE, "--no-hooks"], &Value::Null).accepted();

    let Some(controllers) = release.control_plane.start_controllers("resourcequota-controller") else {
        say("no kube-controller-manager beside the API server: that the quota admits the pods IS NOT TESTED");
        return;
    };
    release.install(&json!({"resourceQuota": {"enabled": true}, "replicas": 2}));
    // The controller has to count before the API server admits anything.
    let first = || release.create_pod(&webhook, "pod-0") == Ok(());
    assert!(eventually(SETTLED, first), "{:?}\n{}", release.create_pod(&webhook, "pod-0"), controllers.log_tail());
    // Two old pods that drain, two new ones and one more.
    for number in 1..5 {
        assert_eq!(release.create_pod(&webhook, &format!("pod-{number}")), Ok(()));
    }
    assert_eq!(release.create_pod(&release.template("hooks", "kube-unions-unregister"), "unregister"), Ok(()));
    let exceeded = release.create_pod(&webhook, "pod-5").unwrap_err();
    assert!(exceeded.contains("exceeded quota: kube-unions"), "{exceeded}");
}
