//! Everyday commands on built-in types, with the presets of the chart.

use serde_json::{Value, json};

use super::{Release, SETTLED};
use crate::chart::{CHART, RELEASE};
use crate::compile::presets::{WORKLOADS, five_commands, fresh};
use fixtures::wait::eventually;

#[test]
fn five_commands_fail_without_the_presets_and_work_with_them_in_the_webhook() {
    let Some(release) = Release::installed(&json!({})) else { return };
    five_commands_work(&release, "webhook", || {
        release.upgrade(&json!({"presets": {"strategies": true, "volumes": true}}));
    });
}

#[test]
fn five_commands_fail_without_the_presets_and_work_with_them_as_policies() {
    let Some(release) = Release::installed(&json!({})) else { return };
    five_commands_work(&release, "policies", || {
        // No pods are left.
        let values = json!({"webhook": {"enabled": false}, "policies": {"presets": true}});
        release.run(&["uninstall", RELEASE, "--wait"], &Value::Null).accepted();
        release.run(&["install", RELEASE, CHART, "--wait"], &values).accepted();
        assert!(eventually(SETTLED, || release.all_pods().is_empty()), "{:#?}", release.all_pods());
    });
}

/// Runs the commands, switches the presets on, and runs them again.
fn five_commands_work(release: &Release, round: &str, switch_on: impl FnOnce()) {
    let kubectl = &release.kubectl;
    for workload in WORKLOADS {
        let attempts = five_commands(kubectl, workload, &format!("before-{round}"));
        let failed = attempts.iter().filter(|attempt| !attempt.worked(kubectl)).count();
        assert_eq!(failed, 5, "{}", workload.0);
    }
    switch_on();
    for (kind, field, other) in WORKLOADS {
        let object = fresh(kubectl, kind, &format!("probe-{round}"));
        let name = object["metadata"]["name"].as_str().unwrap();
        let works = |patch: &Value| {
            kubectl
                .run(&["patch", &kind.to_lowercase(), name, "--dry-run=server", "-p", &patch.to_string()])
                .succeeded()
        };
        let strategy = json!({"spec": {field: {"type": other}}});
        let volumes = json!({"spec": {"template": {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}}}});
        assert!(eventually(SETTLED, || works(&strategy) && works(&volumes)), "the presets of {kind} are in force");
    }
    for workload in WORKLOADS {
        for attempt in five_commands(kubectl, workload, &format!("after-{round}")) {
            assert!(attempt.worked(kubectl), "{attempt:#?}");
        }
    }
    kubectl.run(&["delete", "deployments,statefulsets", "--all", "--wait=false"]).accepted();
}
