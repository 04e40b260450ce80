//! Helm 3 and Helm 4, with a chart whose values are its objects.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::assets;
use crate::support::kubectl;
use crate::support::process::Workspace;

/// Both versions, with a home of their own.
pub(crate) struct Helm {
    home: Workspace,
    kubeconfig: PathBuf,
}

impl Helm {
    pub(crate) fn new(kubeconfig: &Path) -> Self {
        let home = Workspace::new("helm");
        std::fs::create_dir_all(home.path().join("chart/templates")).expect("a folder");
        home.write("chart/Chart.yaml", "apiVersion: v2\nname: applied\nversion: 1.0.0\n");
        home.write("chart/templates/objects.yaml", "{{ range .Values.objects }}\n---\n{{ toYaml . }}\n{{ end }}\n");
        Self { home, kubeconfig: kubeconfig.to_owned() }
    }

    /// Runs `helm upgrade --install` of a release with these objects. Returns the error of helm.
    pub(crate) fn upgrade(&self, tool: &str, release: &str, objects: &[Value]) -> Option<String> {
        self.upgrade_with(tool, release, objects, &[])
    }

    /// Does the same with more flags.
    pub(crate) fn upgrade_with(&self, tool: &str, release: &str, objects: &[Value], flags: &[&str]) -> Option<String> {
        let arguments = ["upgrade", "--install", release, "chart", "--namespace=default", "--values=-"];
        let arguments = [&arguments[..], flags].concat();
        let mut helm = Command::new(assets::tool(tool).unwrap_or_else(|message| panic!("{message}")));
        helm.env_clear().env("HOME", self.home.path()).env("KUBECONFIG", &self.kubeconfig);
        helm.current_dir(self.home.path()).args(&arguments);
        let values = json!({"objects": objects}).to_string();
        let output = kubectl::run(helm, &format!("{tool} {}", arguments.join(" ")), &values);
        (!output.succeeded()).then_some(output.stderr)
    }
}
