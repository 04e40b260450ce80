//! The chart on a cluster that admits pods of the system's priority classes only where a quota counts them, as GKE does, and whose
//! Services may have two IP families.

use serde_json::json;

use super::helm::Helm;
use super::{RELEASE, find};
use crate::guide::{ClusterWithNode, Shell, UNINSTALL};
use crate::support::control_plane::ControlPlane;
use crate::support::process::Workspace;

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

#[test]
fn a_quota_admits_a_rollout_and_the_hooks_and_the_service_has_the_families_of_the_cluster() {
    let workspace = Workspace::new("clusters");
    let limited = workspace.write("admission.json", LIMITED);
    let flags = [
        format!("--admission-control-config-file={}", limited.display()),
        "--service-cluster-ip-range=10.0.0.0/24,fd00:10::/112".to_owned(),
    ];
    let Some(cluster) = ClusterWithNode::start(&flags) else { return };
    let shell = Shell::new(cluster.control_plane());
    // Helm runs a Job before it creates a quota.
    shell.prepare("helm install kube-unions charts/kube-unions -n kube-unions --create-namespace");
    let refusal = "{.status.conditions[?(@.type==\"ReplicaFailure\")].message}";
    let refusal = format!("kubectl -n kube-unions get deployment kube-unions -o jsonpath='{refusal}'");
    shell.wait_until(&refusal, "…insufficient quota to match these scopes…");
    families(cluster.control_plane());
    // The first one changes the pods, too, so that their controller does not wait until it tries again.
    for revision in ["first", "second"] {
        let upgrade = "helm upgrade kube-unions charts/kube-unions -n kube-unions --reuse-values --wait";
        shell.prepare(&format!("{upgrade} --set resourceQuota.enabled=true,podAnnotations.revision={revision}"));
    }
    shell.prepare(UNINSTALL);
}

fn families(control_plane: &ControlPlane) {
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
        let spec = control_plane.client().post(&path, &service).unwrap().body["spec"].clone();
        let addresses = spec["clusterIPs"].as_array().unwrap().iter().map(|address| address.as_str().unwrap());
        let of_addresses: Vec<_> = addresses.map(|it| if it.contains(':') { "IPv6" } else { "IPv4" }).collect();
        assert_eq!((&spec["ipFamilyPolicy"], &spec["ipFamilies"]), (&json!(served.0), &json!(served.1)));
        assert_eq!(of_addresses, served.1);
    }
}
