//! `annotate` as a post-renderer, run by Helm 3 and by the plugin of Helm 4, on a real API server.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::assets;
use crate::cluster::Cluster;
use crate::kind::documents;
use crate::kubectl::{self, Output};
use crate::process::Workspace;
use crate::webhook::kube_unions;

const REPOSITORY: &str = env!("CARGO_MANIFEST_DIR");

const UNIONS: &str = "kube-unions.dev/unions";

/// A chart with a CRD among its templates, a CRD in the folder `crds`, and an object of another kind.
struct Chart {
    cluster: &'static Cluster,
    workspace: Workspace,
    /// The API group of the CRDs.
    group: String,
    /// The name of the tool of `assets.sh`, and of the release.
    helm: &'static str,
}

impl Chart {
    fn new(helm: &'static str) -> Option<Self> {
        let cluster = Cluster::shared()?;
        let (workspace, group) = (Workspace::new("post-renderer"), cluster.new_group());
        let sample = |name: &str| {
            let path = Path::new(REPOSITORY).join("manifests/samples").join(name);
            fs::read_to_string(path).unwrap().replace("samples.kube-unions.dev", &group)
        };
        for folder in ["chart/templates", "chart/crds"] {
            fs::create_dir_all(workspace.path().join(folder)).unwrap();
        }
        workspace.write("chart/Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n");
        workspace.write("chart/templates/gateways.yaml", &sample("gateway/crd.yaml"));
        workspace.write("chart/crds/backups.yaml", &sample("backup/crd.yaml"));
        let config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n";
        workspace.write("chart/templates/config.yaml", config);
        Some(Self { cluster, workspace, group, helm })
    }

    /// Runs helm with kube-unions in its `PATH`.
    fn run(&self, command: &str, post_renderer: &[&str]) -> Output {
        let arguments = [&[command, self.helm, "chart", "--namespace=default"], post_renderer].concat();
        let mut helm = Command::new(assets::tool(self.helm).unwrap_or_else(|message| panic!("{message}")));
        helm.env_clear().env("HOME", self.workspace.path());
        helm.env("PATH", assets::folder_of_the_program(&self.workspace));
        helm.env("KUBECONFIG", self.cluster.control_plane.admin_kubeconfig());
        helm.env("HELM_PLUGINS", Path::new(REPOSITORY).join("manifests/helm"));
        helm.current_dir(self.workspace.path()).args(&arguments);
        kubectl::run(helm, &format!("{} {}", self.helm, arguments.join(" ")), "")
    }

    /// Returns the annotation of a CRD on the cluster.
    fn stored_unions(&self, plural: &str) -> Value {
        let name = format!("{plural}.{}", self.group);
        let stored = self.cluster.control_plane.kubectl(self.helm).run(&["get", "crd", &name, "-o", "json"]);
        stored.accepted().json()["metadata"]["annotations"][UNIONS].clone()
    }

    /// Asserts that the post-renderer annotates the CRD among the templates, and nothing else.
    #[track_caller]
    fn assert_annotated(&self, post_renderer: &[&str]) {
        let plain = documents(&self.run("template", &[]).accepted().stdout);
        let mut rendered = documents(&self.run("template", post_renderer).accepted().stdout);
        assert_eq!((plain.len(), rendered.len()), (2, 2));
        let gateways = rendered.iter_mut().find(|object| object["kind"] == "CustomResourceDefinition").unwrap();
        let annotations = gateways["metadata"].as_object_mut().unwrap().remove("annotations").unwrap();
        assert!(is_declared(&annotations[UNIONS]), "{annotations}");
        let mut others = plain;
        others.iter_mut().for_each(crate::kind::forget_unions);
        assert_eq!(rendered, others);
    }

    /// Asserts that the release installs the CRD among the templates with its annotation.
    #[track_caller]
    fn assert_installed(&self, post_renderer: &[&str]) {
        self.run("install", post_renderer).accepted();
        let stored = self.stored_unions("gateways");
        assert!(is_declared(&stored), "{stored}");
    }
}

/// Returns true for an annotation with the unions of the sample.
fn is_declared(unions: &Value) -> bool {
    unions.as_str().is_some_and(|text| text.contains("/properties/spec/properties/exposure"))
}

#[test]
fn helm_3_runs_annotate_as_a_post_renderer_and_installs_the_folder_crds_as_it_is() {
    let Some(chart) = Chart::new("helm") else { return };
    let post_renderer = ["--post-renderer", "kube-unions", "--post-renderer-args", "annotate"];
    chart.assert_annotated(&post_renderer);
    chart.assert_installed(&post_renderer);
    assert_eq!(chart.stored_unions("backups"), Value::Null);
}

#[test]
fn helm_4_runs_the_plugin_as_a_post_renderer_and_refuses_the_folder_crds_as_it_is() {
    let Some(chart) = Chart::new("helm4") else { return };
    let post_renderer = ["--post-renderer", "kube-unions"];
    chart.assert_annotated(&post_renderer);
    chart.run("install", &post_renderer).refused("x-kubernetes-unions: field not declared in schema");

    let backups = chart.workspace.path().join("chart/crds/backups.yaml");
    let annotated = kube_unions(&["annotate", backups.to_str().unwrap()], "").accepted().stdout;
    fs::write(&backups, annotated).unwrap();
    chart.assert_installed(&post_renderer);
    assert!(chart.stored_unions("backups").is_string());
}
