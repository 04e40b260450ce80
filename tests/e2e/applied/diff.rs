//! `kubectl diff` after an apply that switched a union.

use serde_json::{Value, json};

use super::rows::{Enforcement, group};
use super::server::Server;

/// The object that another client created, and the manifest that switches its union.
fn switches(enforcement: Enforcement) -> [(Value, Value); 2] {
    let thing = |plain: &Value| {
        json!({"apiVersion": format!("{}/v1", group(enforcement)), "kind": "Thing",
            "metadata": {"name": "diff", "namespace": "default"}, "spec": {"plain": plain}})
    };
    // The API server fills in `rollingUpdate`.
    let deployment = |strategy: &Value| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "diff", "namespace": "default"},
            "spec": {"strategy": strategy, "selector": {"matchLabels": {"app": "x"}},
                "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "main", "image": "example.com/app:1"}]}}}})
    };
    [
        (thing(&json!({"a": "x"})), thing(&json!({"b": "x"}))),
        (deployment(&json!({"type": "RollingUpdate"})), deployment(&json!({"type": "Recreate"}))),
    ]
}

/// Switches unions by each way of apply. Fails unless `kubectl diff` finds a difference before, and none afterwards.
fn diffs_become_empty(server: &Server, enforcement: Enforcement) {
    let kubectl = server.kubectl("diff");
    for way in [&[][..], &["--server-side", "--force-conflicts"]] {
        for (stored, manifest) in switches(enforcement) {
            let (stored, manifest) = (stored.to_string(), manifest.to_string());
            kubectl.run_with(&["create", "-f", "-"], &stored).accepted();
            let with_way = |command| [&[command, "-f", "-"], way].concat();
            let before = kubectl.run_with(&with_way("diff"), &manifest);
            assert!(before.code == Some(1) && !before.stdout.is_empty(), "{before:?}");
            kubectl.run_with(&with_way("apply"), &manifest).accepted();
            let after = kubectl.run_with(&with_way("diff"), &manifest);
            assert!(after.code == Some(0) && after.stdout.is_empty(), "{after:?}");
            kubectl.run_with(&["delete", "-f", "-"], &manifest).accepted();
        }
    }
}

#[test]
fn a_diff_becomes_empty() {
    Server::for_each(diffs_become_empty);
}
