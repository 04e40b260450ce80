//! The presets as policies, installed by the chart without the webhook.

use serde_json::{Value, json};

use super::lifecycle::Release;
use super::{CHART, RELEASE};
use crate::version::{Feature, lacks};
use fixtures::wait::{SETTLED, eventually};

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": "x"}},
            "template": {
                "metadata": {"labels": {"app": "x"}},
                "spec": {"containers": [{"name": "main", "image": "example.com/app:1"}]},
            },
        },
    })
}

#[test]
fn the_chart_installs_the_presets_without_a_webhook_and_removes_them_again() {
    if lacks(Feature::MutatingPolicies) {
        return;
    }
    let Some(release) = Release::new() else { return };
    let kubectl = &release.kubectl;
    kubectl.apply(&deployment().to_string()).accepted();
    let recreate = json!({"spec": {"strategy": {"type": "Recreate"}}}).to_string();
    let switch = || kubectl.run(&["patch", "deployment", "d", "--dry-run=server", "-p", &recreate]).succeeded();
    assert!(!switch());

    let values = json!({"webhook": {"enabled": false}, "policies": {"presets": true}});
    let installed = release.install(&values);
    assert!(installed.stdout.contains("kubectl get mutatingadmissionpolicies"), "{installed:?}");
    assert!(eventually(SETTLED, switch), "the policies are in force");
    let all = "pods,services,deployments,serviceaccounts,secrets,roles,rolebindings,jobs";
    let selector = "app.kubernetes.io/name=kube-unions";
    let found = kubectl.run(&["get", all, "-A", "-l", selector, "-o", "name"]).accepted().stdout;
    assert_eq!(found, "", "nothing of the webhook is installed");

    release.helm(&["uninstall", RELEASE], &Value::Null).accepted();
    assert!(eventually(SETTLED, || !switch()), "the policies are gone");
    let kinds = "mutatingadmissionpolicies,mutatingadmissionpolicybindings";
    assert_eq!(kubectl.run(&["get", kinds, "-o", "name"]).accepted().stdout, "");
}

#[test]
fn an_older_cluster_gets_no_policies_but_a_reason() {
    let Some(helm) = super::helm::Helm::offline() else { return };
    let values = json!({"policies": {"presets": true}});
    helm.run(&["template", RELEASE, CHART, "--kube-version=1.35.9"], &values)
        .refused("policies.presets needs Kubernetes 1.36 or newer");
    // As providers name their versions.
    helm.run(&["template", RELEASE, CHART, "--kube-version=v1.36.0-gke.100"], &values).accepted();
}
