//! The registration goes with what is deleted of the release, while its pods run and could write it again.

use serde_json::{Value, json};

use super::{CONFIGURATIONS, NAMESPACE, Release, SETTLED};
use crate::chart::RELEASE;
use crate::kind::Kind;
use fixtures::wait::eventually;

const ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/kube-unions";

#[test]
fn nothing_blocks_writes_after_the_cluster_role_is_deleted() {
    let Some(release) = Release::installed(&json!({})) else { return };
    let kind = release.enforced();
    delete(&release, ROLE);
    unregistered(&release, &kind);
    // The pods run on without their rights, and register nothing.
    let pods = release.two_pods();
    assert!(!pods.is_empty());
    release.run(&["uninstall", RELEASE, "--no-hooks", "--wait"], &Value::Null).accepted();
    unregistered(&release, &kind);
}

#[test]
fn nothing_blocks_writes_after_the_release_is_uninstalled_without_its_hooks() {
    let Some(release) = Release::installed(&json!({})) else { return };
    let kind = release.enforced();
    release.run(&["uninstall", RELEASE, "--no-hooks", "--wait"], &Value::Null).accepted();
    assert!(eventually(SETTLED, || release.all_pods().is_empty()), "{:#?}", release.all_pods());
    unregistered(&release, &kind);
}

#[test]
fn nothing_blocks_writes_after_the_namespace_and_the_cluster_role_are_deleted() {
    let Some(release) = Release::installed(&json!({})) else { return };
    let kind = release.enforced();
    delete(&release, NAMESPACE);
    delete(&release, ROLE);
    unregistered(&release, &kind);
    assert!(eventually(SETTLED, || !release.is_there(NAMESPACE)), "nothing holds up the end of the namespace");
    unregistered(&release, &kind);
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
