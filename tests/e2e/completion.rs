//! The real kubectl completes the arguments of `kubectl unions` with the program under the name `kubectl_complete-unions`.

use std::os::unix::fs::symlink;
use std::process::Command;

use crate::cluster::is_left_out;
use crate::control_plane::assets;
use crate::kubectl;
use crate::process::Workspace;
use crate::webhook::binary;

#[test]
fn kubectl_completes_the_plugin() {
    if is_left_out() {
        return;
    }
    let workspace = Workspace::new("completion");
    let program = binary().unwrap_or_else(|message| panic!("{message}")).canonicalize().unwrap();
    for name in ["kubectl-unions", "kubectl_complete-unions"] {
        symlink(&program, workspace.path().join(name)).unwrap();
    }
    let tools = assets().unwrap_or_else(|message| panic!("{message}"));
    let complete = |words: &[&str]| {
        let mut command = Command::new(tools.join("kubectl"));
        command.env_clear().env("HOME", workspace.path()).env("PATH", workspace.path());
        command.arg("__complete").args(words);
        kubectl::run(command, &format!("kubectl __complete {}", words.join(" ")), "").accepted().stdout
    };
    for (words, wanted) in [
        (&["unio"][..], "unions\tThe command unions is a plugin installed by the user\n:4\n"),
        (&["unions", "lint", "--st"], "--strict\tExit with 1 for warnings, too\n:4\n"),
        (&["unions", "explain", "-o", "js"], "json\tJSON for programs\n:4\n"),
        (&["unions", "explain", "--output=js"], "json\tJSON for programs\n:4\n"),
        (&["unions", "patch", "ap"], "apply\tApply a patch to an object in a file, and print the result\n:4\n"),
        (&["unions", "lint", "crd"], ":0\n"),
        (&["unions", "certs", "--dir", ""], ":16\n"),
    ] {
        assert_eq!(complete(words), wanted, "{words:?}");
    }
}
