//! `kube-unions compile` on a real cluster without a webhook: the API server accepts what it prints, and `--check` notices what
//! changes.

pub(crate) mod presets;
mod sources;

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::cluster::{AnyCluster, Cluster, DECLARATIONS, is_left_out};
use crate::support::control_plane::ControlPlane;
use crate::support::kind::{Kind, SAMPLES, documents};
use crate::support::kubectl::Output;
use crate::support::version::{Feature, lacks};
use crate::support::webhook::kube_unions;
use fixtures::reviews::declaration;
use fixtures::wait::eventually;

/// The deadline of work that the API server does in the background, far above the usual time.
const SETTLED: Duration = Duration::from_secs(20);

fn compile(control_plane: &ControlPlane, more: &[&str]) -> Output {
    let kubeconfig = format!("--kubeconfig={}", control_plane.admin_kubeconfig().display());
    kube_unions(&[&["compile", &kubeconfig], more].concat(), "")
}

/// A declaration about a built-in type.
fn update_strategy(kind: &str) -> Value {
    let spec = json!({"target": {"versions": ["v1"]}, "unions": [{"path": "spec.updateStrategy", "discriminator": "type",
        "fieldMembers": {"RollingUpdate": {"name": "rollingUpdate", "optional": true}, "OnDelete": {}}}]});
    declaration(&format!("{}-strategy", kind.to_lowercase()), "apps", kind, &spec)
}

/// Returns `kind/name` of every object of a stream, as kubectl writes it.
fn names(stream: &str) -> Vec<String> {
    let name = |object: Value| {
        let text = |value: &Value| value.as_str().expect("an object has a kind and a name").to_owned();
        format!(
            "{}.admissionregistration.k8s.io/{}",
            text(&object["kind"]).to_lowercase(),
            text(&object["metadata"]["name"])
        )
    };
    documents(stream).into_iter().map(name).collect()
}

#[test]
fn the_policies_of_a_cluster_are_accepted_and_check_notices_every_change() {
    if lacks(Feature::MutatingPolicies) {
        return;
    }
    let Some(control_plane) = Cluster::control_plane_alone() else { return };
    let kubectl = control_plane.kubectl("compile");
    compile(&control_plane, &["--to=policies"]).refused("no kind has unions");

    let cluster = AnyCluster::of_control_plane(&control_plane);
    let kinds = SAMPLES.map(|sample| Kind::new(&cluster, sample));
    kinds.iter().for_each(Kind::apply_definition);
    kubectl.apply(&update_strategy("DaemonSet").to_string()).accepted();

    let printed = compile(&control_plane, &["--to=policies"]).accepted();
    assert!(printed.stderr.lines().all(|line| line.contains(": warning: ")), "{printed:?}");
    assert_eq!(compile(&control_plane, &["--to=policies"]).accepted().stdout, printed.stdout);
    let policies = names(&printed.stdout);
    let missing = compile(&control_plane, &["--to=policies", "--check"]);
    assert_eq!((missing.code, missing.stdout.matches(": missing\n").count()), (Some(1), policies.len()));

    let applied = kubectl.apply(&printed.stdout).accepted();
    let created: Vec<String> =
        applied.stdout.lines().filter_map(|line| Some(line.strip_suffix(" created")?.to_owned())).collect();
    assert_eq!(created, policies);
    kubectl.apply(&printed.stdout).accepted().warned(&[]);

    let bindings = policies.iter().filter(|name| name.contains("policybinding.")).count();
    let fine = format!("{} policies of {} kinds are up to date\n", policies.len() - bindings, SAMPLES.len() + 1);
    let check = |more: &[&str]| compile(&control_plane, &[&["--to=policies", "--check"], more].concat());
    // The API server has added its defaults, and kubectl an annotation.
    assert_eq!(check(&[]).accepted().stdout, fine);
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("policies.yaml");
    std::fs::write(&saved, &printed.stdout).unwrap();
    assert_eq!(check(&[saved.to_str().unwrap()]).accepted().stdout, fine);

    // A CRD changes: its policies differ. A kind loses its unions: its policies are stale.
    let rollout = kinds[4].definition_name();
    kinds[4].apply_definition_with(|crd| {
        let text = crd.to_string().replace("Recreate", "Replace");
        *crd = serde_json::from_str(&text).unwrap();
    });
    kubectl.run(&["delete", "uniondeclaration", "daemonset-strategy"]).accepted();
    let changed = check(&[]);
    assert_eq!(changed.code, Some(1), "{changed:?}");
    for line in changed.stdout.lines() {
        let of_rollout = line.contains(&rollout) && line.contains(": differs at spec.");
        let of_daemon_set = line.contains("daemonsets.apps") && line.ends_with(": stale, no union needs it");
        assert!(of_rollout || of_daemon_set, "{line}");
    }
    assert!(changed.stdout.contains(&rollout) && changed.stdout.contains("daemonsets.apps"), "{changed:?}");

    // Once applied and cleaned up, all is well again.
    kubectl.apply(&compile(&control_plane, &["--to=policies"]).accepted().stdout).accepted();
    for stale in policies.iter().filter(|name| name.contains("daemonsets.apps")) {
        kubectl.run(&["delete", stale]).accepted();
    }
    check(&[]).accepted();

    // A policy that somebody edited by hand.
    let name = format!("unions-{rollout}-normalize");
    let fail = json!({"spec": {"failurePolicy": "Fail"}}).to_string();
    kubectl.run(&["patch", "mutatingadmissionpolicy", &name, "--type=merge", "-p", &fail]).accepted();
    let edited = check(&[]);
    assert_eq!(edited.stdout, format!("MutatingAdmissionPolicy/{name}: differs at spec.failurePolicy\n"));
}

/// The spec of an invalid Rollout.
fn two_members() -> Value {
    json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {}, "canary": {"weight": 1}}})
}

#[test]
fn compiled_policies_are_of_the_version_and_the_unions_of_a_cluster_or_of_files_and_enforce_them() {
    if lacks(Feature::MutatingPolicies) {
        return;
    }
    let Some(control_plane) = Cluster::control_plane_alone() else { return };
    let cluster = AnyCluster::of_control_plane(&control_plane);
    let kind = Kind::new(&cluster, "rollout");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("crd.yaml");
    std::fs::write(&file, kind.authored()).unwrap();
    let of_files = ["--to=vap", "--from", file.to_str().unwrap()];
    let printed = kube_unions(&[&["compile"], &of_files[..]].concat(), "").accepted().stdout;
    kind.kubectl().apply(&printed).accepted();
    let check = compile(&control_plane, &[&of_files[..], &["--check"]].concat()).accepted();
    assert_eq!(check.stdout, "1 policy of 1 kind is up to date\n");
    kind.kubectl().run_with(&["delete", "-f", "-"], &printed).accepted();

    kind.apply_definition();
    let version = control_plane.client().get("/version").unwrap().body;
    let number = format!("{}.{}", version["major"].as_str().unwrap(), version["minor"].as_str().unwrap());
    let same = compile(&control_plane, &["--to=policies", "--kubernetes-version", &number]).accepted();
    assert_eq!(same.stdout, compile(&control_plane, &["--to=policies"]).accepted().stdout);
    let old = compile(&control_plane, &["--to=policies", "--kubernetes-version=1.34"]);
    assert_eq!(old.code, Some(1));
    assert!(old.stderr.contains("Kubernetes 1.34 has no usable MutatingAdmissionPolicy"), "{old:?}");
    assert!(!old.stdout.contains("MutatingAdmissionPolicy"), "{old:?}");
    kind.kubectl().apply(&old.stdout).accepted();

    let printed = compile(&control_plane, &["--to=policies", "--exclude-namespace=left-alone"]).accepted().stdout;
    kind.kubectl().apply(&printed).accepted();
    let rolling = json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}});
    let two = two_members();
    let denied = || kind.post_dry(&kind.object("probe", &two)).is_ok_and(|answer| answer.status == 422);
    assert!(eventually(SETTLED, denied), "an invalid object is denied");
    kind.apply("two", &two).refused("spec.strategy.canary: Forbidden: may only be specified when `type` is \"Canary\"");

    kind.apply("a", &rolling).accepted();
    let switched = || {
        kind.merge("a", &json!({"spec": {"strategy": {"type": "Recreate"}}})).succeeded()
            && kind.spec("a")["strategy"] == json!({"type": "Recreate"})
    };
    assert!(eventually(SETTLED, switched), "the member is cleared: {}", kind.spec("a"));
    kind.kubectl().run(&["create", "namespace", "left-alone"]).accepted();
    let mut object = kind.object("two", &two);
    object["metadata"]["namespace"] = "left-alone".into();
    let left_alone = || kind.kubectl().apply(&object.to_string()).succeeded();
    assert!(eventually(SETTLED, left_alone), "the policies for 1.34, which left no namespace alone, are replaced");
}

/// The lines of standard error that name something that is left out.
fn refusals(output: &Output) -> Vec<&str> {
    output.stderr.lines().filter(|line| line.contains(", Kind=")).collect()
}

#[test]
fn an_older_api_server_gets_the_policies_that_it_can_run_and_the_rest_is_named() {
    if is_left_out() {
        return;
    }
    let Some(control_plane) = ControlPlane::start_older() else { return };
    let kubectl = control_plane.kubectl("older");
    kubectl.run(&["apply", "-f", DECLARATIONS]).accepted();
    let cluster = AnyCluster::of_control_plane(&control_plane);
    let kinds = SAMPLES.map(|sample| Kind::new(&cluster, sample));
    kinds.iter().for_each(Kind::apply_definition);

    let partial = compile(&control_plane, &["--to=policies"]);
    assert_eq!(partial.code, Some(1), "{partial:?}");
    let without_mutation = |line: &&str| line.contains("Kubernetes 1.33 has no usable MutatingAdmissionPolicy");
    assert_eq!(refusals(&partial).into_iter().filter(without_mutation).count(), SAMPLES.len(), "{partial:?}");
    assert!(!partial.stdout.contains("MutatingAdmissionPolicy"), "{partial:?}");
    let validating = compile(&control_plane, &["--to=vap"]);
    assert_eq!(validating.stdout, partial.stdout);
    for line in refusals(&validating) {
        assert!(line.contains("policies of Kubernetes 1.33 cannot look into lists and maps"), "{line}");
    }
    // Nothing can be cleared, and each kind says so.
    let mutating = compile(&control_plane, &["--to=map"]);
    assert_eq!((mutating.code, &*mutating.stdout), (Some(1), ""), "{mutating:?}");

    kubectl.apply(&partial.stdout).accepted().warned(&[]);
    let check = ["--to=policies", "--check", "--allow-partial"];
    assert!(compile(&control_plane, &check).accepted().stdout.ends_with(" are up to date\n"));
    let (rollout, two) = (&kinds[4], two_members());
    let denied = || rollout.post_dry(&rollout.object("probe", &two)).is_ok_and(|answer| answer.status == 422);
    assert!(eventually(SETTLED, denied), "an invalid object is denied");
    rollout.apply("two", &two).refused("spec.strategy.canary: Forbidden: may only be specified when `type` is");
}

#[test]
fn who_may_not_read_declarations_or_policies_is_told() {
    let Some(control_plane) = Cluster::control_plane_alone() else { return };
    let cluster = AnyCluster::of_control_plane(&control_plane);
    let kind = Kind::new(&cluster, "rollout");
    kind.apply_definition();
    let kubectl = kind.kubectl();
    kubectl.run(&["create", "serviceaccount", "reader"]).accepted();
    let rights = ["customresourcedefinitions.apiextensions.k8s.io", "apiservices.apiregistration.k8s.io"].join(",");
    kubectl.run(&["create", "clusterrole", "reader", "--verb=list", "--resource", &rights]).accepted();
    kubectl
        .run(&["create", "clusterrolebinding", "reader", "--clusterrole=reader", "--serviceaccount=default:reader"])
        .accepted();
    let kubeconfig = format!("--kubeconfig={}", control_plane.account_kubeconfig("default", "reader").display());
    let run = |more: &[&str]| kube_unions(&[&["compile", "--to=vap", &kubeconfig], more].concat(), "");
    let partial = run(&[]);
    assert_eq!(partial.code, Some(1), "{partial:?}");
    assert!(partial.stderr.starts_with("error: UnionDeclarations: "), "{partial:?}");
    assert!(partial.stdout.contains("rollouts"), "{partial:?}");
    assert_eq!(run(&["--allow-partial"]).accepted().stdout, partial.stdout);
    let check = run(&["--allow-partial", "--check"]);
    assert_eq!(check.code, Some(2), "{check:?}");
    check.refused("cannot list validatingadmissionpolicies: Error from server (Forbidden)");
}
