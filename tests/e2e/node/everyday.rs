//! Everyday commands on built-in types, with the presets of the chart.

use serde_json::{Value, json};

use super::{Release, SETTLED};
use crate::builtin::Objects;
use crate::builtin_types::{PresetsIn, WORKLOADS, five_commands_fail, five_commands_work};
use crate::chart::{CHART, RELEASE};
use fixtures::wait::eventually;

#[test]
fn five_commands_fail_without_the_presets_and_work_with_them_in_the_webhook() {
    let Some(release) = Release::installed(&json!({})) else { return };
    five_commands(&release, PresetsIn::Webhook, "webhook", || {
        release.upgrade(&json!({"presets": {"strategies": "enforce", "volumes": "enforce"}}));
    });
}

#[test]
fn five_commands_fail_without_the_presets_and_work_with_them_as_policies() {
    let Some(release) = Release::installed(&json!({})) else { return };
    five_commands(&release, PresetsIn::Policies, "policies", || {
        // No pods are left.
        let values = json!({"webhook": {"enabled": false}, "policies": {"presets": true}});
        release.run(&["uninstall", RELEASE, "--wait"], &Value::Null).accepted();
        release.run(&["install", RELEASE, CHART, "--wait"], &values).accepted();
        assert!(eventually(SETTLED, || release.all_pods().is_empty()), "{:#?}", release.all_pods());
    });
}

/// Runs the commands, switches the presets on, and runs them again, for Deployments and `StatefulSet`s.
fn five_commands(release: &Release, presets: PresetsIn, round: &str, switch_on: impl FnOnce()) {
    let (objects, workloads) = (Objects::of(release.cluster), &WORKLOADS[..2]);
    five_commands_fail(&objects, workloads, &format!("before-{round}"));
    switch_on();
    for workload in workloads {
        workload.wait_until_switched(&objects, &format!("probe-{round}"));
    }
    five_commands_work(&objects, workloads, &format!("after-{round}"), presets);
    objects.kubectl.run(&["delete", "deployments,statefulsets", "--all", "--wait=false"]).accepted();
}
