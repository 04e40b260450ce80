//! Tools that `assets.sh` builds beside the control plane's binaries, and the `PATH` on which they find kube-unions.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::control_plane::run_assets_script;
use crate::process::Workspace;
use crate::webhook;

/// Returns the tool in the folder of `KUBEBUILDER_ASSETS`, or the one that `assets.sh` makes.
pub(crate) fn tool(name: &str) -> Result<PathBuf, String> {
    let given = env::var_os("KUBEBUILDER_ASSETS").map(|folder| Path::new(&folder).join(name));
    if let Some(given) = given.filter(|path| path.is_file()) {
        return Ok(given);
    }
    let made = run_assets_script(&[name], &[]).map(|folder| folder.join(name)).ok().filter(|path| path.is_file());
    made.ok_or_else(|| format!("no {name}: see what assets.sh says; KUBE_UNIONS_E2E=skip leaves these tests out"))
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
