//! Everyday commands on Deployments and other built-in types, without and with the presets.

use std::time::Duration;

use serde_json::{Value, json};

use crate::builtin::{BuiltIn, Objects, PRESETS, collection, path};
use crate::support::cluster::some_or_all;
use crate::support::kind::documents;
use crate::support::kubectl::Output;
use crate::support::version::Feature;
use fixtures::wait::{SETTLED, eventually, for_some};

const PROMISED: Duration = Duration::from_secs(1);

/// A patch with another source of a volume.
const OTHER_VOLUME: &str =
    r#"{"spec": {"template": {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}}}}"#;

/// A kind with a strategy, and the API server's message about fields that another strategy left behind.
pub(crate) struct Workload {
    kind: &'static str,
    resource: &'static str,
    strategy: &'static str,
    other: &'static str,
    today: Option<&'static str>,
}

pub(crate) const WORKLOADS: [Workload; 3] = [
    Workload {
        kind: "Deployment",
        resource: "deployment",
        strategy: "strategy",
        other: "Recreate",
        today: Some("spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"),
    },
    Workload {
        kind: "StatefulSet",
        resource: "statefulset",
        strategy: "updateStrategy",
        other: "OnDelete",
        today: Some("only allowed for updateStrategy 'RollingUpdate'"),
    },
    // The API server accepts the fields that another strategy left behind, so no preset could be right.
    Workload { kind: "DaemonSet", resource: "daemonset", strategy: "updateStrategy", other: "OnDelete", today: None },
];

/// The way in which presets are in force.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PresetsIn {
    Webhook,
    Policies,
}

/// Runs the five commands on a cluster without presets, and expects what the API server says of each.
pub(crate) fn five_commands_fail(objects: &Objects, workloads: &[Workload], round: &str) {
    for workload in workloads {
        for attempt in workload.switch(objects, round) {
            match workload.today {
                Some(today) => drop(attempt.output.refused(today)),
                None => assert!(attempt.output.accepted().warned(&[]).succeeded()),
            }
        }
        let output = workload.switch_volume(objects, round).output;
        if workload.kind == "StatefulSet" && !Feature::StatefulSetTemplateValidation.is_served() {
            output.accepted();
        } else {
            output
                .refused("spec.template.spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type");
        }
    }
}

/// Runs the five commands on a cluster with presets, and expects what each leaves. Only the webhook warns.
pub(crate) fn five_commands_work(objects: &Objects, workloads: &[Workload], round: &str, presets: PresetsIn) {
    let cleared = |output: Output, warning: &str| {
        let warnings = [warning].into_iter().filter(|_| presets == PresetsIn::Webhook).collect::<Vec<_>>();
        output.accepted().warned(&warnings)
    };
    for workload in workloads {
        let (strategy, other) = (workload.strategy, workload.other);
        for attempt in workload.switch(objects, round) {
            let stored = &objects.stored(&attempt.object)["spec"][strategy];
            if workload.today.is_some() {
                let warning = format!("spec.{strategy}.rollingUpdate: cleared because `type` changed to \"{other}\"");
                cleared(attempt.output, &warning);
                assert_eq!(*stored, json!({"type": other}));
            } else {
                attempt.output.accepted().warned(&[]);
                assert_eq!(*stored, json!({"type": other, "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}));
            }
        }
        let attempt = workload.switch_volume(objects, round);
        cleared(attempt.output, "spec.template.spec.volumes[0].emptyDir: cleared because `hostPath` was set");
        assert_eq!(
            objects.stored(&attempt.object)["spec"]["template"]["spec"]["volumes"],
            json!([
                {"name": "v", "hostPath": {"path": "/x", "type": ""}},
                {"name": "w", "configMap": {"name": "w", "defaultMode": 420}},
            ])
        );
    }
}

#[test]
fn five_commands_fail_without_the_presets_and_work_with_them() {
    let (Some(bare), Some(cluster)) = (Objects::without_presets(), BuiltIn::with_presets()) else { return };
    five_commands_fail(&bare, some_or_all(&WORKLOADS[..1], &WORKLOADS), "without");
    five_commands_work(cluster, &WORKLOADS, "with", PresetsIn::Webhook);
}

#[test]
fn five_commands_work_with_the_presets_as_policies() {
    let Some(cluster) = BuiltIn::with_policies() else { return };
    five_commands_work(cluster, some_or_all(&WORKLOADS[..1], &WORKLOADS), "policies", PresetsIn::Policies);
}

/// A command that was run, and the object it was about.
struct Attempt {
    object: Value,
    output: Output,
}

impl Workload {
    fn object(&self, name: &str) -> Value {
        let mut object = json!({
            "apiVersion": "apps/v1", "kind": self.kind, "metadata": {"name": name},
            "spec": {
                "selector": {"matchLabels": {"app": "x"}},
                "template": {
                    "metadata": {"labels": {"app": "x"}},
                    "spec": {
                        "containers": [{"name": "main", "image": "example.com/app:1"}],
                        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {"name": "w"}}],
                    },
                },
            },
        });
        if self.kind == "StatefulSet" {
            object["spec"]["serviceName"] = json!("x");
        }
        object
    }

    /// Creates an object for which the server chooses the strategy.
    fn fresh(&self, objects: &Objects, name: &str) -> Value {
        let object = self.object(name);
        let created = objects.create(&object);
        assert!(created.is_success(), "{created:?}");
        assert_eq!(created.body["spec"][self.strategy]["type"], "RollingUpdate");
        object
    }

    /// Waits until the strategy of a fresh object, and its volume, can be changed.
    pub(crate) fn wait_until_switched(&self, objects: &Objects, name: &str) {
        let path = format!("{}?dryRun=All", path(&self.fresh(objects, name)));
        let works =
            |patch: &Value| objects.send("PATCH", &path, "application/strategic-merge-patch+json", patch).is_success();
        let volume = serde_json::from_str(OTHER_VOLUME).expect("a patch is JSON");
        let reached = eventually(SETTLED, || works(&self.other_strategy()) && works(&volume));
        assert!(reached, "the presets of {} are not in force", self.kind);
    }

    fn other_strategy(&self) -> Value {
        json!({"spec": {self.strategy: {"type": self.other}}})
    }

    /// Changes the strategy in four ways, each for a fresh object.
    fn switch(&self, objects: &Objects, round: &str) -> Vec<Attempt> {
        let kubectl = &objects.kubectl;
        let merge = self.other_strategy().to_string();
        let run = |way: &str, command: &dyn Fn(&str, &Value) -> Output| {
            let object = self.fresh(objects, &format!("{way}-{round}"));
            let output = command(object["metadata"]["name"].as_str().unwrap(), &object);
            Attempt { object, output }
        };
        vec![
            run("merge", &|name, _| kubectl.run(&["patch", self.resource, name, "--type=merge", "-p", &merge])),
            run("strategic", &|name, _| kubectl.run(&["patch", self.resource, name, "-p", &merge])),
            run("server-side", &|_, object| {
                let mut manifest = object.clone();
                manifest["spec"][self.strategy] = json!({"type": self.other});
                let args = ["apply", "--server-side", "--field-manager=x", "--force-conflicts", "-f", "-"];
                kubectl.run_with(&args, &manifest.to_string())
            }),
            run("replace", &|name, _| {
                // Where controllers run, they may write in between.
                let replaced = || {
                    let mut read = kubectl.run(&["get", self.resource, name, "-o", "json"]).accepted().json();
                    read["spec"][self.strategy]["type"] = json!(self.other);
                    let output = kubectl.run_with(&["replace", "-f", "-"], &read.to_string());
                    (!output.stderr.contains("the object has been modified")).then_some(output)
                };
                for_some(SETTLED, replaced).expect("no other write all the time")
            }),
        ]
    }

    /// The fifth command: another source for a volume.
    fn switch_volume(&self, objects: &Objects, round: &str) -> Attempt {
        let object = self.fresh(objects, &format!("volume-{round}"));
        let name = object["metadata"]["name"].as_str().unwrap();
        let output = objects.kubectl.run(&["patch", self.resource, name, "-p", OTHER_VOLUME]);
        Attempt { object, output }
    }
}

#[test]
fn a_deleted_preset_and_a_webhook_that_is_down_leave_a_built_in_type_as_it_is() {
    let Some(mut cluster) = BuiltIn::own() else { return };
    cluster.switch_presets_on();
    let object = WORKLOADS[0].fresh(&cluster, "d");
    let recreate = json!({"spec": {"strategy": {"type": "Recreate"}}});
    let path = format!("{}/d?dryRun=All", collection(&object));
    let works =
        |cluster: &BuiltIn| cluster.send("PATCH", &path, "application/merge-patch+json", &recreate).is_success();
    assert!(works(&cluster));
    cluster.kubectl.run(&["delete", "uniondeclaration", "deployment-strategy"]).accepted();
    assert!(eventually(PROMISED, || !works(&cluster)), "its effect ends");
    cluster.kubectl.run(&["apply", "-f", &format!("{PRESETS}/strategies.yaml")]).accepted();
    assert!(eventually(PROMISED, || works(&cluster)), "its effect is back");

    cluster.cluster.webhook.stop();
    WORKLOADS[0].fresh(&cluster, "new");
    let answer = cluster.patch(&object, "application/merge-patch+json", &json!({"spec": {"replicas": 3}}));
    assert!(answer.is_success(), "{answer:?}");
    // The answer is the same as without the preset.
    assert_eq!(cluster.patch(&object, "application/merge-patch+json", &recreate).status, 422);
    cluster.cluster.webhook.resume().unwrap();
    assert!(works(&cluster));
}

#[test]
fn the_shipped_registration_ignores_failures_for_built_in_types() {
    let shipped = include_str!("../../manifests/webhook/registration.yaml");
    for configuration in documents(shipped) {
        let webhooks = configuration["webhooks"].as_array().unwrap();
        let built_in = webhooks.iter().filter(|webhook| {
            let groups =
                webhook["rules"].as_array().unwrap().iter().flat_map(|rule| rule["apiGroups"].as_array().unwrap());
            groups
                .filter_map(Value::as_str)
                .any(|group| matches!(group, "" | "apps" | "batch") || group.ends_with(".k8s.io"))
        });
        let policies: Vec<_> = built_in.map(|webhook| &webhook["failurePolicy"]).collect();
        assert!(!policies.is_empty(), "{} has an entry for built-in types", configuration["kind"]);
        assert!(policies.iter().all(|policy| *policy == "Ignore"), "{}: {policies:?}", configuration["kind"]);
    }
}
