//! The binaries of the control plane and the tools that `assets.sh` builds, and the `PATH` on which they find kube-unions.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use crate::support::process::Workspace;
use crate::support::webhook;

/// Returns the folder with kube-apiserver, etcd and kubectl, which is found or made once in a test run.
pub(crate) fn control_plane() -> Result<&'static Path, String> {
    static FOLDER: LazyLock<Result<PathBuf, String>> = LazyLock::new(|| {
        let selected = env::var_os("K8S_VERSION").is_some_and(|version| !version.is_empty());
        let folder = match env::var_os("KUBEBUILDER_ASSETS") {
            Some(folder) if !selected => PathBuf::from(folder),
            _ => script(&[], &[])?,
        };
        match ["kube-apiserver", "etcd", "kubectl"].iter().find(|name| !folder.join(name).is_file()) {
            Some(name) => Err(format!("`{}` has no `{name}`", folder.display())),
            None => Ok(folder),
        }
    });
    let folder = FOLDER.as_deref();
    folder.map_err(|error| format!("no control plane: {error}; KUBE_UNIONS_E2E=skip leaves these tests out"))
}

/// Returns the tool in the folder of `KUBEBUILDER_ASSETS`, or the one that `assets.sh` makes.
pub(crate) fn tool(name: &str) -> Result<PathBuf, String> {
    let given = env::var_os("KUBEBUILDER_ASSETS").map(|folder| Path::new(&folder).join(name));
    let made = || script(&[name], &[]).map(|folder| folder.join(name)).ok();
    given
        .filter(|path| path.is_file())
        .or_else(made)
        .filter(|path| path.is_file())
        .ok_or_else(|| format!("no {name}: see what assets.sh says; KUBE_UNIONS_E2E=skip leaves these tests out"))
}

/// Runs `assets.sh`. Returns the folder that it prints.
pub(crate) fn script(args: &[&str], envs: &[(&str, &str)]) -> Result<PathBuf, String> {
    let script = fixtures::files::root().join("tests/controlplane/assets.sh");
    let mut command = Command::new(&script);
    command.args(args).envs(envs.iter().copied()).stderr(Stdio::inherit());
    let output = command.output().map_err(|error| format!("`{}` cannot be run: {error}", script.display()))?;
    if output.status.success() {
        Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
    } else {
        Err("see what assets.sh says, or set KUBEBUILDER_ASSETS".to_owned())
    }
}

/// Returns a folder of the workspace with only `kube-unions` in it.
pub(crate) fn folder_of_the_program(workspace: &Workspace) -> PathBuf {
    let folder = workspace.path().join("bin");
    if !folder.exists() {
        let binary = webhook::binary().unwrap_or_else(|message| panic!("{message}")).canonicalize().unwrap();
        fs::create_dir(&folder).unwrap();
        std::os::unix::fs::symlink(binary, folder.join("kube-unions")).unwrap();
    }
    folder
}
