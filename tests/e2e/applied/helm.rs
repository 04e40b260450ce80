//! Helm 3 and Helm 4, with a chart of one object.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::rows::Way;
use super::server::Server;
use crate::assets;
use crate::kubectl;
use crate::process::Workspace;

/// Both versions, with a home of their own.
pub(super) struct Helm {
    home: Workspace,
    kubeconfig: PathBuf,
}

impl Helm {
    pub(super) fn new(server: &Server) -> Self {
        let home = Workspace::new("helm");
        std::fs::create_dir_all(home.path().join("chart/templates")).expect("a folder");
        home.write("chart/Chart.yaml", "apiVersion: v2\nname: applied\nversion: 1.0.0\n");
        home.write("chart/templates/object.yaml", "{{ toYaml .Values.object }}\n");
        Self { home, kubeconfig: server.kubeconfig() }
    }

    /// Runs `helm upgrade --install` of a release with this object. Returns the error of helm.
    pub(super) fn upgrade(&self, way: Way, release: &str, object: &Value) -> Option<String> {
        let tool = if way == Way::Helm3 { "helm" } else { "helm4" };
        let arguments = ["upgrade", "--install", release, "chart", "--namespace=default", "--values=-"];
        let mut helm = Command::new(assets::tool(tool).unwrap_or_else(|message| panic!("{message}")));
        helm.env_clear().env("HOME", self.home.path()).env("KUBECONFIG", &self.kubeconfig);
        helm.current_dir(self.home.path()).args(arguments);
        let values = json!({"object": object}).to_string();
        let output = kubectl::run(helm, &format!("{tool} {}", arguments.join(" ")), &values);
        (!output.succeeded()).then_some(output.stderr)
    }
}
