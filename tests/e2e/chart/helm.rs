//! The real helm, with a home of its own.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

use serde_json::Value;

use super::{CHART, RELEASE};
use crate::support::assets;
use crate::support::cluster::is_left_out;
use crate::support::kind::documents;
use crate::support::kubectl::{self, Output};
use crate::support::process::Workspace;

/// A helm and its settings.
pub(crate) struct Helm {
    binary: &'static Path,
    home: Workspace,
    kubeconfig: PathBuf,
}

impl Helm {
    /// Without a cluster. None when the user left these tests out.
    pub(super) fn offline() -> Option<Self> {
        (!is_left_out()).then(|| Self::new(None))
    }

    /// For the cluster of a kubeconfig.
    pub(crate) fn of_cluster(kubeconfig: PathBuf) -> Self {
        Self::new(Some(kubeconfig))
    }

    fn new(kubeconfig: Option<PathBuf>) -> Self {
        static BINARY: OnceLock<Result<PathBuf, String>> = OnceLock::new();
        let binary =
            BINARY.get_or_init(|| assets::tool("helm")).as_deref().unwrap_or_else(|message| panic!("{message}"));
        let home = Workspace::new("helm");
        let kubeconfig = kubeconfig.unwrap_or_else(|| home.path().join("there-is-no-cluster"));
        Self { binary, home, kubeconfig }
    }

    pub(crate) fn run(&self, args: &[&str], values: &Value) -> Output {
        let mut command = Command::new(self.binary);
        command.env_clear().env("PATH", env::var_os("PATH").unwrap_or_default()).env("HOME", self.home.path());
        command.env("KUBECONFIG", &self.kubeconfig).args(args);
        if !values.is_null() {
            command.arg("--values=-");
        }
        kubectl::run(command, &format!("helm {} with {values}", args.join(" ")), &values.to_string())
    }

    /// `helm template`, as text.
    pub(super) fn template(&self, values: &Value, more: &[&str]) -> Output {
        let args = [&["template", RELEASE, CHART, "--namespace", RELEASE], more].concat();
        self.run(&args, values)
    }

    /// Every object that the chart makes of values, hooks included. The tests of this process render each values once.
    pub(crate) fn render(&self, values: &Value) -> Vec<Value> {
        static RENDERED: Mutex<BTreeMap<String, Vec<Value>>> = Mutex::new(BTreeMap::new());
        let rendered = || RENDERED.lock().unwrap_or_else(PoisonError::into_inner);
        let known = rendered().get(&values.to_string()).cloned();
        known.unwrap_or_else(|| {
            let objects = documents(&self.template(values, &[]).accepted().stdout);
            rendered().insert(values.to_string(), objects.clone());
            objects
        })
    }

    /// `helm lint`, warnings counted as errors.
    pub(super) fn lint(&self, values: &Value) -> Output {
        self.run(&["lint", "--strict", CHART], values)
    }
}
