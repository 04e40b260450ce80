//! The registration goes with what is deleted of the release, while its pods run and could write it again.

use serde_json::{Value, json};

use super::{CONFIGURATIONS, NAMESPACE, Release, SETTLED};
use crate::chart::RELEASE;
use crate::support::kind::Kind;
use fixtures::wait::eventually;

const ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/kube-unions";

/// A way to remove a webhook without a thought of its registration. True: its pods run on.
type Way = (&'static str, bool, fn(&Release));
const WAYS: [Way; 3] = [
    ("the ClusterRole is deleted", true, |release| delete(release, ROLE)),
    ("the release is uninstalled without its hooks", false, |release| {
        release.run(&["uninstall", RELEASE, "--no-hooks", "--wait"], &Value::Null).accepted();
    }),
    ("the namespace and the ClusterRole are deleted", false, |release| {
        delete(release, NAMESPACE);
        delete(release, ROLE);
    }),
];

#[test]
fn nothing_blocks_writes_after_what_owns_the_registration_is_gone() {
    for (way, pods_run_on, remove) in WAYS {
        let Some(release) = Release::installed(&json!({})) else { return };
        let kind = release.enforced();
        remove(&release);
        unregistered(&release, &kind);
        if pods_run_on {
            // Without their rights, and register nothing.
            release.two_pods();
            release.run(&["uninstall", RELEASE, "--no-hooks", "--wait"], &Value::Null).accepted();
        }
        assert!(eventually(SETTLED, || release.all_pods().is_empty()), "{way}: {:#?}", release.all_pods());
        let has_ended = || way.contains("uninstalled") || pods_run_on || !release.is_there(NAMESPACE);
        assert!(eventually(SETTLED, has_ended), "{way}: nothing holds up the end of the namespace");
        unregistered(&release, &kind);
    }
}

/// Waits until both configurations are gone, and any object is accepted.
#[track_caller]
fn unregistered(release: &Release, kind: &Kind<'_>) {
    let gone = || CONFIGURATIONS.iter().all(|path| !release.is_there(path));
    assert!(eventually(SETTLED, gone), "the registration stays");
    let two = kind.object("unchecked", &json!({"destination": {"s3": {"bucket": "b"}, "gcs": {"bucket": "b"}}}));
    let accepted = || kind.post_dry(&two).is_ok_and(|answer| answer.status == 201);
    assert!(eventually(SETTLED, accepted), "{:?}", kind.post_dry(&two));
}

fn delete(release: &Release, path: &str) {
    let answer = release.cluster.client().delete(path).unwrap();
    assert!(answer.is_success(), "{answer:?}");
}
