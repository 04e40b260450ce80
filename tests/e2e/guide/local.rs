//! Pages that need an API server with a webhook beside it, or without one, and no node.

use super::page::{Page, REPOSITORY};
use super::shell::Shell;
use crate::native::Native;
use crate::registration::with_rights;
use crate::support::cluster::Cluster;
use crate::support::process::example;

/// Follows pages on a cluster whose webhook registers itself. Returns false if that is skipped.
pub(super) fn on_a_cluster(pages: &mut [Page; 9]) -> bool {
    let Some(cluster) = Cluster::registering(&with_rights(), &["--registration-delay=1s"]) else { return false };
    // Authoring audits the whole cluster, so it comes first. The presets change what built-in types do, so they come last.
    let [authoring, patching, kustomize_and_helm, playground, preview, testing, generators, samples, presets] = pages;
    let control_plane = &cluster.control_plane;
    let mut shell = Shell::new(control_plane);
    let run =
        "cargo run --quiet --manifest-path \"$KUBE_UNIONS/Cargo.toml\" --package kube-unions-author --example rollout";
    shell.replace(run, program());
    authoring.follow(&shell);
    patching.follow(&Shell::new(control_plane));

    let shell = Shell::new(control_plane);
    kustomize_and_helm.follow_up_to("helm plugin install manifests/helm/kube-unions", &shell);
    shell.prepare("helm uninstall backups");
    shell.use_tool("helm", "helm4");
    kustomize_and_helm.follow_up_to("kube-unions annotate", &shell);
    shell.prepare("mkdir backups/crds && cp manifests/samples/gateway/crd.yaml backups/crds/gateways.yaml");
    kustomize_and_helm.follow(&shell);
    for page in [playground, preview, testing] {
        page.follow(&Shell::new(control_plane));
    }

    let shell = Shell::new(control_plane);
    shell.prepare(&format!("cp -r '{REPOSITORY}'/tests/generators/*/ ."));
    generators.follow(&shell);

    let mut shell = Shell::new(control_plane);
    shell.replace("cargo run --package kube-unions-author --example rollout", program());
    samples.follow(&shell);
    presets.follow(&Shell::new(control_plane));
    true
}

/// Follows pages on an API server without a webhook. Returns false if that is skipped.
pub(super) fn without_a_webhook(pages: &mut [Page; 2]) -> bool {
    let Some(server) = Native::start() else { return false };
    for page in pages {
        page.follow(&Shell::new(server.control_plane()));
    }
    true
}

/// Returns the program of the example, which the build of the tests has made. cargo would compile its dependencies again for it alone.
fn program() -> String {
    example("kube-unions-author", "rollout", "manifests/samples/rust/rollout.rs").display().to_string()
}
