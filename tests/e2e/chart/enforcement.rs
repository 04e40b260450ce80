//! A release that works: the pods' processes register themselves with the rights of the chart, and unions are enforced through the
//! API server, from the installation to its end.

use std::time::{Duration, Instant};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};

use super::lifecycle::{NO_NODE, Release, configurations};
use super::pods::{ON_LOOPBACK, Pods, while_doing};
use super::{CHART, RELEASE};
use crate::cluster::{AnyCluster, say};
use crate::enforcement_by_policies::{kinds, policies};
use crate::kind::Kind;
use crate::kubectl::Output;
use crate::ratcheting::{BLUE_GREEN, ROLLING_UPDATE, invalid, let_through};
use crate::registration::decoded;
use crate::tls;
use crate::version::{Feature, lacks};
use fixtures::wait::{SETTLED, eventually};

const SECRET: &str = "/api/v1/namespaces/kube-unions/secrets/kube-unions-tls";

const SWITCH: &str = r#"{"spec":{"strategy":{"type":"Recreate"}}}"#;

impl Release {
    pub(super) fn install_on_loopback(&self, values: &Value) -> Output {
        let install = ["install", RELEASE, CHART, "--create-namespace", NO_NODE];
        self.helm(&[&install, &ON_LOOPBACK[..]].concat(), values).accepted()
    }

    /// `helm upgrade --set`.
    fn set(&self, value: &str) {
        let upgrade = ["upgrade", RELEASE, CHART, "--reuse-values", NO_NODE, "--set", value];
        self.helm(&[&upgrade, &ON_LOOPBACK[..]].concat(), &Value::Null).accepted();
    }

    /// Returns the entries of the existing configurations.
    fn entries(&self) -> Vec<Value> {
        let client = self.control_plane.client();
        let get = |path: &str| client.get(path).unwrap();
        let of = |answer: crate::http::Answer| match answer.status {
            404 => Vec::new(),
            _ => answer.body["webhooks"].as_array().cloned().unwrap_or_default(),
        };
        configurations().iter().flat_map(|(_, path)| of(get(path))).collect()
    }

    /// Waits until these are the entries, and returns how long that took.
    #[track_caller]
    fn wait_for_entries(&self, wanted: &[&str], pods: &Pods<'_>) -> Duration {
        let start = Instant::now();
        let names = || {
            let mut names: Vec<String> =
                self.entries().iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect();
            names.sort();
            names
        };
        assert!(eventually(SETTLED, || names() == wanted), "{:?}\n{}", names(), pods.logs().join("\n\n"));
        start.elapsed()
    }

    fn secret_text(&self, key: &str) -> String {
        decoded(&self.control_plane.client().get(SECRET).unwrap().body["data"][key])
    }
}

fn certificates(pem: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).map(Result::unwrap).collect()
}

/// Returns the API server's answer to an object with an invalid union, in a dry run.
fn post_invalid(kind: &Kind<'_>) -> u16 {
    kind.post_dry(&kind.object("probe", &invalid())).map_or(0, |answer| answer.status)
}

/// Writes and stores a valid object. No such write may ever be lost.
fn write(kind: &Kind<'_>) -> Result<(), String> {
    let change = json!({"metadata": {"annotations": {"written": format!("{:?}", Instant::now())}}}).to_string();
    let path = kind.path("busy");
    let answer = kind.client().send("PATCH", &path, "application/merge-patch+json", change.as_bytes())?;
    if answer.is_success() { Ok(()) } else { Err(format!("{answer:?}")) }
}

#[test]
fn what_the_chart_installs_registers_itself_enforces_and_leaves_nothing_behind() {
    let Some(release) = Release::new() else { return };
    release.install_on_loopback(&Value::Null);
    assert!(!release.is_there(SECRET), "the chart brings no certificate");
    assert_eq!(release.entries(), [] as [Value; 0]);

    // Two replicas at once, and nothing that has unions.
    let start = Instant::now();
    let pods = Pods::start(&release);
    assert_eq!(pods.ports().len(), 2);
    release.wait_for_entries(&["declarations.kube-unions.dev", "definitions.kube-unions.dev"], &pods);
    say(&format!("installed: registered {:?} after the replicas were started", start.elapsed()));
    let made = pods.logs().iter().filter(|log| log.contains("made a new CA")).count();
    assert_eq!(made, 1, "of two one was first");

    // A kind with unions.
    let cluster = AnyCluster::of_control_plane(&release.control_plane);
    let rollouts = Kind::new(&cluster, "rollout");
    rollouts.apply_definition();
    let start = Instant::now();
    let of_customs = [
        "declarations.kube-unions.dev",
        "definitions.kube-unions.dev",
        "mutate.kube-unions.dev",
        "validate.kube-unions.dev",
    ];
    release.wait_for_entries(&of_customs, &pods);
    let registered = start.elapsed();
    assert!(eventually(SETTLED, || post_invalid(&rollouts) == 422), "{}", pods.logs().join("\n\n"));
    // The API server takes two seconds for the first write of a kind that is new, webhook or not.
    let enforced = start.elapsed();
    say(&format!("a kind with unions: registered {registered:?} after it was served, enforced {enforced:?} after it"));
    rollouts.enforce();
    rollouts
        .apply("shop", &json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}))
        .accepted();
    rollouts
        .merge("shop", &json!({"spec": {"strategy": {"type": "Recreate"}}}))
        .accepted()
        .warned(&["spec.strategy.rollingUpdate: cleared because `type` changed to \"Recreate\""]);

    // Both replicas serve under one CA, which both configurations hold.
    let authorities = certificates(&release.secret_text("ca.crt"));
    assert_eq!(authorities.len(), 1);
    let leaf = certificates(&release.secret_text("tls.crt")).remove(0);
    for port in pods.ports() {
        let served = tls::served(port, "kube-unions.kube-unions.svc", &release.secret_text("ca.crt"));
        assert_eq!(served.as_ref(), Ok(&leaf));
    }
    for entry in release.entries() {
        assert_eq!(certificates(&decoded(&entry["clientConfig"]["caBundle"])), authorities, "{}", entry["name"]);
        assert_eq!(entry["clientConfig"]["service"]["port"], pods.service_port());
    }

    // `helm test`, with its own account.
    let pod = format!("/api/v1/namespaces/{RELEASE}/pods/kube-unions-verify");
    let (verified, test) = release.helm_with_a_node(&pod, &["test", RELEASE]);
    assert_eq!(verified.stdout.lines().filter(|line| line.starts_with("ok ")).count(), 4, "{verified:#?}");
    test.accepted();

    // Somebody deletes the registration.
    let start = Instant::now();
    release.kubectl.run(&["delete", "mutatingwebhookconfiguration,validatingwebhookconfiguration", RELEASE]).accepted();
    release.wait_for_entries(&of_customs, &pods);
    let back = start.elapsed();
    assert!(eventually(SETTLED, || post_invalid(&rollouts) == 422));
    say(&format!("both configurations deleted: put back after {back:?}, enforced after {:?}", start.elapsed()));

    presets(&release, &pods);
    uninstall(&release, pods, &rollouts);
}

/// `kubectl patch` switches the strategy of a built-in type, through the entry with failurePolicy Ignore.
fn presets(release: &Release, pods: &Pods<'_>) {
    let kubectl = &release.kubectl;
    kubectl.run(&["create", "deployment", "d", "--image=example.com/app:1"]).accepted();
    let patch = ["patch", "deployment", "d", "--type=merge", "-p", SWITCH];
    kubectl
        .run(&patch)
        .refused("spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'");
    release.set("presets.strategies=true");
    let all = [
        "declarations.kube-unions.dev",
        "definitions.kube-unions.dev",
        "mutate.builtin.kube-unions.dev",
        "mutate.kube-unions.dev",
        "validate.builtin.kube-unions.dev",
        "validate.kube-unions.dev",
    ];
    let took = release.wait_for_entries(&all, pods);
    for entry in release.entries() {
        let fails = ["mutate.kube-unions.dev", "validate.kube-unions.dev"].map(Value::from).contains(&entry["name"]);
        assert_eq!(entry["failurePolicy"], if fails { "Fail" } else { "Ignore" }, "{}", entry["name"]);
    }
    let start = Instant::now();
    assert!(eventually(SETTLED, || kubectl.run(&patch).succeeded()), "{}", pods.logs().join("\n\n"));
    say(&format!("presets: registered {took:?} after the upgrade, in force {:?} later", start.elapsed()));
    let strategy = kubectl.run(&["get", "deployment", "d", "-o", "jsonpath={.spec.strategy}"]).accepted().stdout;
    assert_eq!(strategy, r#"{"type":"Recreate"}"#);
}

/// While both replicas run, as they do in a cluster until the release is gone.
fn uninstall(release: &Release, pods: Pods<'_>, rollouts: &Kind<'_>) {
    const TROUBLE: &str = "cannot reconcile the webhook configurations";
    rollouts.apply("busy", &json!({"strategy": {"type": "Recreate"}})).accepted();
    let before: Vec<usize> = pods.logs().iter().map(|log| log.matches(TROUBLE).count()).collect();
    let work = || {
        let job = format!("/apis/batch/v1/namespaces/{RELEASE}/jobs/kube-unions-unregister");
        let (unregistered, uninstalled) = release.helm_with_a_node(&job, &["uninstall", RELEASE]);
        unregistered.accepted();
        uninstalled.accepted();
        assert_eq!(release.entries(), [] as [Value; 0]);
        // Each of them tries, and is forbidden.
        let tried = || pods.logs().iter().zip(&before).all(|(log, before)| log.matches(TROUBLE).count() > *before);
        assert!(eventually(SETTLED, tried), "{}", pods.logs().join("\n\n"));
        pods.stop();
    };
    let ((), times, wrong) = while_doing(|| write(rollouts), work);
    assert_eq!(wrong, [] as [String; 0], "a write was blocked");
    say(&format!("uninstalled: {times} writes meanwhile, none failed"));
    for (_, path) in configurations() {
        assert!(!release.is_there(&path), "{path} came back");
    }
    rollouts.apply("anything", &invalid()).accepted().warned(&[]);
}

#[test]
fn switched_off_objects_may_go_invalid_and_switched_on_again_they_are_repaired_and_never_made_worse() {
    let Some(release) = Release::new() else { return };
    // Long enough for the Service to notice; ten seconds by default.
    release.install_on_loopback(&json!({"shutdownDelay": "5s"}));
    let mut pods = Pods::start(&release);
    let cluster = AnyCluster::of_control_plane(&release.control_plane);
    let rollouts = Kind::new(&cluster, "rollout");
    rollouts.apply_definition();
    rollouts.enforce();
    rollouts.apply("busy", &json!({"strategy": {"type": "Recreate"}})).accepted();
    let valid = json!({"strategy": {"type": "Canary", "canary": {"weight": 1}}});

    let transitions = || {
        rollouts.apply("old", &valid).accepted();
        assert_eq!(post_invalid(&rollouts), 422);

        release.set("enforcement=off");
        pods.roll_out();
        let took = release.wait_for_entries(&["declarations.kube-unions.dev", "definitions.kube-unions.dev"], &pods);
        say(&format!("off: no object is sent any more {took:?} after the last replica of before was gone"));
        assert!(eventually(SETTLED, || post_invalid(&rollouts) == 201));
        rollouts.merge("old", &json!({"spec": invalid()})).accepted().warned(&[]);
        rollouts.apply("new", &invalid()).accepted().warned(&[]);

        release.set("enforcement=on");
        pods.roll_out();
        let start = Instant::now();
        rollouts.enforce();
        say(&format!("on: enforced for a second {:?} after the last replica of before was gone", start.elapsed()));
        for name in ["old", "new"] {
            assert_eq!(rollouts.spec(name)["strategy"], invalid()["strategy"], "nobody touched it");
            rollouts.label(name, "team=a").accepted().warned(&[&let_through(ROLLING_UPDATE)]);
            rollouts
                .merge(name, &json!({"spec": {"strategy": {"blueGreen": {"previewService": "p"}}}}))
                .rejected(&rollouts.invalid(name, &[BLUE_GREEN, ROLLING_UPDATE]));
            assert_eq!(rollouts.spec(name)["strategy"], invalid()["strategy"]);
            rollouts.merge(name, &json!({"spec": {"strategy": {"rollingUpdate": null}}})).accepted().warned(&[]);
            assert_eq!(rollouts.spec(name)["strategy"], valid["strategy"]);
            rollouts.merge(name, &json!({"spec": invalid()})).rejected(&rollouts.invalid(name, &[ROLLING_UPDATE]));
        }
        let created = ROLLING_UPDATE.split_once("; remove it").expect("there is a hint for updates").0;
        rollouts.apply("third", &invalid()).rejected(&rollouts.invalid("third", &[created]));
    };
    let ((), times, wrong) = while_doing(|| write(&rollouts), transitions);
    assert_eq!(wrong, [] as [String; 0], "a write was blocked");
    say(&format!("two rollouts: {times} writes meanwhile, none failed"));
}

#[test]
fn without_its_rights_it_waits_and_says_which_it_needs_and_with_them_it_registers() {
    let Some(release) = Release::new() else { return };
    release.install_on_loopback(&json!({"replicas": 1}));
    release.kubectl.run(&["delete", "clusterrolebinding", "kube-unions", "kube-unions-registration"]).accepted();
    release.kubectl.run(&["-n", RELEASE, "delete", "rolebinding", "kube-unions"]).accepted();
    let mut pods = Pods::unready(&release);
    for missing in [
        "cannot list resource \\\"customresourcedefinitions\\\"",
        "cannot list resource \\\"uniondeclarations\\\"",
        "cannot get resource \\\"secrets\\\"",
    ] {
        let said = || pods.logs().iter().all(|log| log.contains(missing));
        assert!(eventually(SETTLED, said), "{missing}\n{}", pods.logs().join("\n\n"));
    }

    // An upgrade to the same chart puts right what somebody has deleted.
    let start = Instant::now();
    release.set("replicas=1");
    pods.found();
    release.wait_for_entries(&["declarations.kube-unions.dev", "definitions.kube-unions.dev"], &pods);
    say(&format!("registered {:?} after the rights were given", start.elapsed()));
    for reason in ["customresourcedefinitions", "secrets"] {
        let log = &pods.logs()[0];
        let said = log.lines().filter(|line| line.contains("forbidden") && line.contains(reason)).count();
        assert_eq!(said, 1, "each reason is said once\n{log}");
    }
    pods.stop();
}

#[test]
fn policies_are_kept_with_the_rights_of_the_chart_and_the_hook_deletes_them() {
    if lacks(Feature::MutatingPolicies) {
        return;
    }
    let Some(release) = Release::new() else { return };
    release.install_on_loopback(&json!({"enforcement": "policies", "extraArgs": ["--handover-delay=2s"]}));
    let pods = Pods::start(&release);
    let cluster = AnyCluster::of_control_plane(&release.control_plane);
    let rollouts = Kind::new(&cluster, "rollout");
    rollouts.apply_definition();
    let client = release.control_plane.client();
    let expected = format!("{}/Rollout", rollouts.group());
    let are_kept = || kinds(client).into_iter().eq([expected.clone()]);
    assert!(eventually(SETTLED, are_kept), "\n{}", pods.logs().join("\n\n"));
    rollouts.enforce();
    let owner = &policies(client)[0].1["metadata"]["ownerReferences"];
    assert_eq!((owner[0]["kind"].as_str(), owner[0]["name"].as_str()), (Some("ClusterRole"), Some(RELEASE)));
    release.wait_for_entries(&["declarations.kube-unions.dev", "definitions.kube-unions.dev"], &pods);

    let job = format!("/apis/batch/v1/namespaces/{RELEASE}/jobs/kube-unions-unregister");
    let (unregistered, uninstalled) = release.helm_with_a_node(&job, &["uninstall", RELEASE]);
    let unregistered = unregistered.accepted();
    assert!(unregistered.stderr.contains("deleted ValidatingAdmissionPolicyBinding"), "{unregistered:?}");
    uninstalled.accepted();
    assert!(policies(client).is_empty(), "nothing comes back, although the pods still run");
    pods.stop();
}
