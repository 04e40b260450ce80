//! `kube-unions verify` and `kube-unions unregister`, which the chart's hooks run, on clusters in every state.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::registration::{KINDS, path, whole, with_rights};
use crate::support::background::Background;
use crate::support::cluster::{Cluster, is_left_out};
use crate::support::control_plane::ControlPlane;
use crate::support::http::Client;
use crate::support::kubectl::Output;
use crate::support::process::{Process, Workspace};
use crate::support::webhook::{binary, kube_unions};
use fixtures::wait::{SETTLED, eventually, for_some};

const GROUP: &str = "verify.kube-unions.dev";
const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/probes.verify.kube-unions.dev";
/// The pause of a webhook that registers itself repeatedly, which leaves processor time to other tests.
const PACE: Duration = Duration::from_millis(40);

const DEFINED: &str = "ok      a CRD with a union is served\n";
const REJECTED: &str = "ok      an object with two members is rejected\n";
const NORMALIZED: &str = "ok      switching the union clears the old member\n";
const SKIPPED: &str = "ok      an update that touches no union is not sent\n";
const CLEANED: &str = "ok      the CRD is deleted again\n";

#[test]
fn verify_tells_whether_unions_are_enforced_and_leaves_nothing_behind() {
    let Some(mut cluster) = Cluster::own() else { return };
    let kubectl = cluster.control_plane.kubectl("verify");
    let kubeconfig = format!("--kubeconfig={}", cluster.control_plane.admin_kubeconfig().display());
    let verify = |timeout: &str| kube_unions(&["verify", &kubeconfig, &format!("--timeout={timeout}")], "");

    let nobody_asked = verify("5s");
    ends(
        &nobody_asked,
        1,
        &format!("{DEFINED}failed  an object with two members is rejected: it was accepted; check that"),
    );
    assert!(nobody_asked.stdout.ends_with(CLEANED), "{nobody_asked:#?}");
    assert_eq!(nobody_asked.stderr, "", "what was found is on standard output alone");
    gone(&cluster.control_plane);

    // The registration follows the definition, as it does where the webhook registers itself.
    let registration = cluster.webhook.registration(GROUP);
    thread::scope(|scope| {
        let verifying = scope.spawn(|| verify("30s"));
        appeared(&cluster.control_plane);
        kubectl.apply(&registration.to_string()).accepted();
        let enforced = verifying.join().unwrap();
        let by_hand = "note    not shown: an update that touches no union is not sent: the mutatingwebhookconfiguration kube-unions \
             has no entry for verify.kube-unions.dev\n";
        ends(&enforced, 0, &format!("{DEFINED}{REJECTED}{NORMALIZED}{by_hand}{CLEANED}"));
    });
    gone(&cluster.control_plane);

    kubectl.run(&["delete", "mutatingwebhookconfiguration", GROUP]).accepted();
    let half = verify("5s");
    ends(
        &half,
        1,
        &format!(
            "{DEFINED}{REJECTED}failed  switching the union clears the old member: it was rejected \
        instead of normalised: "
        ),
    );
    gone(&cluster.control_plane);
    kubectl.apply(&registration.to_string()).accepted();

    cluster.webhook.stop();
    let down = verify("5s");
    ends(&down, 1, "failed  an object with two members is rejected: the API server cannot call the webhook: ");
    gone(&cluster.control_plane);
    counted_by_the_api_server(&cluster);

    // Accounts without rights, and no API server.
    let nobody = account(&cluster.control_plane, "nobody");
    let forbidden = kube_unions(&["verify", &nobody, "--timeout=1s"], "");
    ends(&forbidden, 2, "failed  a CRD with a union is served: ");
    ends(&forbidden, 2, "grant patch, create and delete on the customresourcedefinition");
    assert!(!forbidden.stdout.contains("deleted"), "nothing was made: {forbidden:#?}");

    let nobody = format!("--kubeconfig={}", cluster.control_plane.kubeconfig_of_nobody().display());
    let away = kube_unions(&["verify", &nobody, "--timeout=1s"], "");
    ends(&away, 2, "failed  a CRD with a union is served: the API server does not answer: ");
}

/// Rows: flags of a webhook that registers itself, and what is said of untouched updates.
#[test]
fn verify_tells_whether_untouched_updates_are_sent() {
    for (flags, says) in [
        (&["--registration-delay=0s"][..], SKIPPED),
        (
            &["--registration-delay=0s", "--skip-untouched=false"],
            "note    not shown: an update that touches no union is not sent: the entry for verify.kube-unions.dev in the \
             mutatingwebhookconfiguration kube-unions has no condition; ",
        ),
    ] {
        let Some(cluster) = Cluster::registering(&with_rights(), flags) else { return };
        let kubeconfig = format!("--kubeconfig={}", cluster.control_plane.admin_kubeconfig().display());
        let shown = kube_unions(&["verify", &kubeconfig, "--timeout=30s"], "");
        ends(&shown, 0, &format!("{DEFINED}{REJECTED}{NORMALIZED}{says}"));
        assert!(shown.stdout.ends_with(CLEANED), "{shown:#?}");
    }
}

#[test]
fn unregister_wins_against_a_webhook_that_runs() {
    if is_left_out() {
        return;
    }
    let mut control_plane = ControlPlane::with_rights().unwrap();
    let kubectl = control_plane.kubectl("unregister");
    let kubeconfig = format!("--kubeconfig={}", control_plane.admin_kubeconfig().display());
    let unregister = |timeout: &str| kube_unions(&["unregister", &kubeconfig, &format!("--timeout={timeout}")], "");
    kubectl.run(&["apply", "-k", concat!(env!("CARGO_MANIFEST_DIR"), "/../../manifests/webhook")]).accepted();

    let webhook = control_plane.account_client("kube-unions", "kube-unions");
    while_registering(&webhook, |refused| {
        assert!(eventually(SETTLED, || registered(&control_plane) == 2), "the account may register itself");
        let done = unregister("30s");
        ends(&done, 0, "");
        for deleted in [
            "ClusterRoleBinding `kube-unions-registration`",
            "MutatingWebhookConfiguration `kube-unions`",
            "ValidatingWebhookConfiguration `kube-unions`",
        ] {
            assert_eq!(done.stderr.matches(&format!("deleted {deleted}\n")).count(), 1, "{done:#?}");
        }
        let before = refused.load(Ordering::Relaxed);
        assert!(eventually(SETTLED, || refused.load(Ordering::Relaxed) > before + 10), "the webhook still tries");
        assert_eq!(registered(&control_plane), 0, "nothing came back");
    });
    let again = unregister("30s");
    ends(&again, 0, "");
    assert_eq!(again.stderr, "nothing was registered\n", "what is not there is done already");

    // An account whose rights were not removed.
    while_registering(control_plane.client(), |_| {
        assert!(eventually(SETTLED, || registered(&control_plane) == 2));
        let lost = unregister("2s");
        assert_eq!(lost.code, Some(2), "{lost:#?}");
        assert!(
            lost.stderr.contains("WebhookConfiguration `kube-unions` is recreated after each deletion"),
            "{lost:#?}"
        );
    });

    let nobody = account(&control_plane, "nobody");
    let forbidden = kube_unions(&["unregister", &nobody, "--timeout=1s"], "");
    assert_eq!(forbidden.code, Some(2), "{forbidden:#?}");
    let words = "cannot delete ClusterRoleBinding `kube-unions-registration`: ";
    assert!(forbidden.stderr.contains(words), "{forbidden:#?}");
    assert!(forbidden.stderr.contains("grant `delete` on `clusterrolebindings` with this name"), "{forbidden:#?}");

    control_plane.stop_api_server();
    let away = unregister("1s");
    assert_eq!(away.code, Some(2), "{away:#?}");
    assert!(away.stderr.contains("within 1s: the API server does not answer"), "{away:#?}");
    let workspace = Workspace::new("unregister");
    let args = ["unregister".to_owned(), kubeconfig.clone(), "--timeout=300s".to_owned()];
    let mut waiting = Process::start(&binary().unwrap(), &args, &[], &workspace.path().join("log"));
    control_plane.start_api_server();
    assert!(waiting.wait_for_exit(SETTLED).success(), "it waits for the API server:\n{}", waiting.log());
    assert_eq!(registered(&control_plane), 0);
}

/// Fails unless a command ended with this exit code and this standard output.
#[track_caller]
fn ends(output: &Output, code: i32, says: &str) {
    assert_eq!(output.code, Some(code), "{output:#?}");
    assert!(output.stdout.contains(says), "no `{says}` in {output:#?}");
}

fn appeared(control_plane: &ControlPlane) {
    for_some(SETTLED, || control_plane.client().get(DEFINITION).is_ok_and(|it| it.is_success()).then_some(()))
        .expect("the definition appears");
}

#[track_caller]
fn gone(control_plane: &ControlPlane) {
    assert_eq!(control_plane.client().get(DEFINITION).unwrap().status, 404, "the definition was left behind");
}

/// The kubeconfig argument of an account without rights.
fn account(control_plane: &ControlPlane, name: &str) -> String {
    control_plane.kubectl("accounts").run(&["-n", "default", "create", "serviceaccount", name]).accepted();
    format!("--kubeconfig={}", control_plane.account_kubeconfig("default", name).display())
}

/// Returns how many of the two configurations exist.
fn registered(control_plane: &ControlPlane) -> usize {
    KINDS.iter().filter(|plural| control_plane.client().get(&path(plural)).unwrap().is_success()).count()
}

/// Runs `work` while both configurations are applied repeatedly with the rights of `client`, as a running webhook does. Counts
/// the refusals.
fn while_registering(client: &Client, work: impl FnOnce(&AtomicUsize)) {
    let refused = Arc::<AtomicUsize>::default();
    let registering = Background::start([{
        let (client, refused) = (client.clone(), Arc::clone(&refused));
        move || {
            for plural in KINDS {
                let path = format!("{}?fieldManager=kube-unions&force=true", path(plural));
                let object = whole(plural, &[]).to_string();
                match client.send("PATCH", &path, "application/apply-patch+yaml", object.as_bytes()) {
                    Ok(answer) if answer.is_success() => {}
                    _ => drop(refused.fetch_add(1, Ordering::Relaxed)),
                }
            }
            thread::sleep(PACE);
        }
    }]);
    work(&refused);
    registering.finish();
}

/// An API server has the metrics that the alerts and the dashboard read.
fn counted_by_the_api_server(cluster: &Cluster) {
    let kubectl = cluster.control_plane.kubectl("counted");
    let rule = json!({
        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"],
    });
    let open = cluster.webhook.registration_of("open.kube-unions.dev", &[rule], "Ignore");
    kubectl.apply(&open.to_string()).accepted();
    let metrics = || cluster.control_plane.client().get("/metrics").unwrap().text().to_owned();
    let passes = |number: &AtomicUsize| {
        let name = format!("open-{}", number.fetch_add(1, Ordering::Relaxed));
        kubectl.run(&["-n", "default", "create", "configmap", &name]).accepted();
        metrics().contains("apiserver_admission_webhook_fail_open_count{name=\"mutate.open.kube-unions.dev\"")
    };
    let number = AtomicUsize::new(0);
    assert!(eventually(SETTLED, || passes(&number)), "a call that may fail is counted");
    kubectl
        .run(&["delete", "mutatingwebhookconfiguration,validatingwebhookconfiguration", "open.kube-unions.dev"])
        .accepted();
    let text = metrics();
    for name in [
        "apiserver_admission_webhook_rejection_count{error_type=\"calling_webhook_error\",name=\"mutate.verify.kube-unions.dev\"",
        "apiserver_admission_webhook_admission_duration_seconds_bucket{name=\"mutate.verify.kube-unions.dev\"",
    ] {
        assert!(text.contains(name), "the API server has no {name}");
    }
}
