//! The chart on a cluster that admits pods of the system's priority classes only where a quota counts them, as GKE does, and whose
//! Services may have two IP families.

use serde_json::{Value, json};

use super::helm::Helm;
use super::release::Release;
use super::{RELEASE, find};
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
fn a_quota_admits_a_rollout_and_the_hooks_and_the_service_has_the_families_of_the_cluster() {
    if is_left_out() {
        return;
    }
    let workspace = Workspace::new("clusters");
    let limited = workspace.write("admission.json", LIMITED);
    let flags = [
        format!("--admission-control-config-file={}", limited.display()),
        "--service-cluster-ip-range=10.0.0.0/24,fd00:10::/112".to_owned(),
    ];
    let Some(release) = Release::with(&flags) else { return };
    release.install(&Value::Null);
    families(&release);
    let webhook = release.template("manifest", "kube-unions");
    let refused = release.create_pod(&webhook, "refused").unwrap_err();
    assert!(refused.contains("insufficient quota to match these scopes"), "{refused}");
    // Helm runs this Job before it creates a quota.
    assert_eq!(release.create_pod(&release.template("hooks", "kube-unions-crds"), "crds"), Ok(()));

    let Some(controllers) = release.control_plane.start_controllers("resourcequota-controller") else {
        say("no kube-controller-manager beside the API server: that the quota admits the pods IS NOT TESTED");
        return;
    };
    release.set("resourceQuota.enabled=true");
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

fn families(release: &Release) {
    let Some(helm) = Helm::offline() else { return };
    for (policy, wanted, served) in [
        ("", &[][..], ("SingleStack", &["IPv4"][..])),
        ("", &["IPv6"], ("SingleStack", &["IPv6"])),
        ("RequireDualStack", &["IPv6", "IPv4"], ("RequireDualStack", &["IPv6", "IPv4"])),
        ("PreferDualStack", &[], ("PreferDualStack", &["IPv4", "IPv6"])),
    ] {
        let objects = helm.render(&json!({"service": {"ipFamilyPolicy": policy, "ipFamilies": wanted}}));
        let mut service = find(&objects, "Service/kube-unions").unwrap().clone();
        service["metadata"]["name"] = "families".into();
        let path = format!("/api/v1/namespaces/{RELEASE}/services?dryRun=All");
        let spec = release.control_plane.client().post(&path, &service).unwrap().body["spec"].clone();
        let addresses = spec["clusterIPs"].as_array().unwrap().iter().map(|address| address.as_str().unwrap());
        let of_addresses: Vec<_> = addresses.map(|it| if it.contains(':') { "IPv6" } else { "IPv4" }).collect();
        assert_eq!((&spec["ipFamilyPolicy"], &spec["ipFamilies"]), (&json!(served.0), &json!(served.1)));
        assert_eq!(of_addresses, served.1);
    }
}
