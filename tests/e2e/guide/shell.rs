//! The shell in which the steps of a page are followed, and the comparison of what they print with what the page shows.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::page::{REPOSITORY, Step};
use crate::support::assets;
use crate::support::control_plane::ControlPlane;
use crate::support::kubectl::NO_COLLECTOR;
use crate::support::process::Workspace;
use crate::support::webhook;
use fixtures::wait::eventually;

/// The pages call this a second or two. The machine may have other things to do.
pub(super) const IN_FORCE: Duration = Duration::from_mins(1);

/// Stands for any text of a line, or as a line of its own for any lines.
const ANYTHING: &str = "…";

/// Commands that patch an object. Each has `--dry-run=server`.
const PATCHES: [&str; 2] = ["kubectl patch ", "kube-unions patch live "];

/// Runs each step in a shell of its own, in the folder where the previous one ended. The first one starts in a folder with `manifests`
/// and `charts`.
pub(crate) struct Shell {
    pub(super) workspace: Workspace,
    path: String,
    kubeconfig: String,
    /// Names that the reader replaces.
    names: Vec<(&'static str, String)>,
    /// True if the API server itself refuses an object, and not a webhook that may not be in force yet.
    is_refused_at_once: bool,
}

impl Shell {
    pub(crate) fn new(control_plane: &ControlPlane) -> Self {
        let workspace = Workspace::new("guide");
        let bin = workspace.path().join("bin");
        fs::create_dir(&bin).unwrap();
        let link = |target: &Path, name: &str| std::os::unix::fs::symlink(target, bin.join(name)).unwrap();
        link(&webhook::binary().unwrap().canonicalize().unwrap(), "kube-unions");
        link(control_plane.kubectl_binary(), "kubectl");
        for tool in ["helm", "kustomize"] {
            link(&assets::tool(tool).unwrap_or_else(|message| panic!("{message}")), tool);
        }
        for folder in ["charts", "manifests"] {
            std::os::unix::fs::symlink(Path::new(REPOSITORY).join(folder), workspace.path().join(folder)).unwrap();
        }
        workspace.write("folder", &workspace.path().display().to_string());
        Self {
            workspace,
            path: format!("{}:{}", bin.display(), env::var("PATH").unwrap()),
            kubeconfig: control_plane.admin_kubeconfig().display().to_string(),
            names: Vec::new(),
            is_refused_at_once: false,
        }
    }

    /// Creates a namespace, and returns a shell that works in it, on an API server without a webhook.
    pub(crate) fn in_namespace(control_plane: &ControlPlane, name: &str) -> Self {
        let mut shell = Self::new(control_plane);
        let kubeconfig = shell.workspace.path().join("kubeconfig").display().to_string();
        shell.prepare(&format!(
            "kubectl create namespace {name}
             kubectl config view --raw --flatten > '{kubeconfig}'
             kubectl --kubeconfig '{kubeconfig}' config set-context --current --namespace={name}"
        ));
        shell.kubeconfig = kubeconfig;
        shell.is_refused_at_once = true;
        shell
    }

    /// Replaces a name in the commands and outputs that follow, as the reader does.
    pub(super) fn replace(&mut self, name: &'static str, by: impl Into<String>) {
        self.names.retain(|(other, _)| *other != name);
        self.names.push((name, by.into()));
    }

    /// Begins another page, on which the names stand for themselves.
    pub(super) fn turn_over(&mut self) {
        self.names.clear();
    }

    /// Puts another tool under this name.
    pub(super) fn use_tool(&self, name: &str, tool: &str) {
        let link = self.workspace.path().join("bin").join(name);
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(assets::tool(tool).unwrap_or_else(|message| panic!("{message}")), link).unwrap();
    }

    pub(super) fn follow(&self, step: &Step) {
        let replaced = |text: &str| self.names.iter().fold(text.to_owned(), |text, (name, by)| text.replace(name, by));
        let (place, commands) = (&step.place, &replaced(&step.commands));
        let Some(expected) = step.prints.as_deref().map(replaced) else {
            let (code, output) = self.run(commands);
            assert_eq!(code, Some(0), "{place}\n{output}");
            return;
        };
        // A patch depends on what is in force, and can be tried when the commands before it have run.
        let (before, rest) = commands.split_at(start_of_patch(commands));
        let mut output = if before.is_empty() { String::new() } else { self.run(before).1 };
        if let Some(trial) = trial(rest, &expected, self.is_refused_at_once) {
            let mut tried = String::new();
            let done = eventually(IN_FORCE, || {
                tried = output.clone() + &self.run(&trial).1.replace(" (server dry run)", "");
                begins_as_shown(&expected, &tried)
            });
            assert!(done, "{place} shows\n{expected}\nand a dry run never printed that, but\n{tried}");
        }
        output += &self.run(rest).1;
        assert!(is_shown(&expected, &output), "{place} shows\n{expected}\nand the commands print\n{output}");
    }

    /// Runs commands that the page does not have, which have to succeed.
    #[track_caller]
    pub(crate) fn prepare(&self, commands: &str) -> String {
        let (code, output) = self.run(commands);
        assert_eq!(code, Some(0), "{commands}\n{output}");
        output
    }

    /// Runs commands that the page does not have, which change nothing, until they print this.
    #[track_caller]
    pub(crate) fn wait_until(&self, commands: &str, expected: &str) {
        let mut last = String::new();
        let done = eventually(IN_FORCE, || {
            last = self.run(commands).1;
            is_shown(expected, &last)
        });
        assert!(done, "{commands} never printed\n{expected}\nbut\n{last}");
    }

    /// Returns the exit code and everything that was printed, in order.
    pub(crate) fn run(&self, commands: &str) -> (Option<i32>, String) {
        let folder = self.workspace.path().join("folder");
        let script =
            format!("exec 2>&1\ncd \"$(cat '{0}')\"\ntrap 'pwd > '\\''{0}'\\' EXIT\n{commands}", folder.display());
        let mut shell = Command::new("bash");
        for (variable, folder) in [
            ("KUBECACHEDIR", "cache"),
            ("HELM_CACHE_HOME", "helm/cache"),
            ("HELM_CONFIG_HOME", "helm/config"),
            ("HELM_DATA_HOME", "helm/data"),
        ] {
            shell.env(variable, self.workspace.path().join(folder));
        }
        let output = shell
            .args(["-c", &script])
            .env("PATH", &self.path)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("KUBERC", "off")
            .env("KUBE_UNIONS", REPOSITORY)
            .env("NO_COLOR", "1")
            .envs(NO_COLLECTOR)
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    }
}

/// Returns where the first command begins that patches an object, or 0.
fn start_of_patch(commands: &str) -> usize {
    PATCHES.iter().filter_map(|patch| commands.find(&format!("\n{patch}"))).min().map_or(0, |newline| newline + 1)
}

/// Returns commands that store nothing and begin to print the same as these, once a union is in force. `None`: what they print does not
/// depend on that.
fn trial(commands: &str, expected: &str, is_refused_at_once: bool) -> Option<String> {
    let dry = |commands: &str, verb: &str| commands.replacen(verb, &format!("{verb}--dry-run=server "), 1);
    if commands.starts_with("kubectl get ") {
        return Some(first_command(commands));
    }
    if let Some(patch) = PATCHES.iter().find(|patch| commands.starts_with(**patch)) {
        return Some(dry(&first_command(commands), patch));
    }
    let is_judged = !is_refused_at_once && expected.contains(" is invalid: ") && commands.contains("kubectl ");
    is_judged.then(|| {
        let trial = dry(commands, "kubectl create ");
        assert_ne!(trial, commands, "only what is created or patched can be tried");
        trial
    })
}

/// Returns the first command with the lines that continue it.
fn first_command(commands: &str) -> String {
    let mut is_continued = true;
    let lines = commands.lines().take_while(|line| std::mem::replace(&mut is_continued, line.ends_with('\\')));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns true if an output is what the page shows in the beginning.
fn begins_as_shown(page: &str, output: &str) -> bool {
    let page: Vec<&str> = page.trim_end().lines().collect();
    (0..=page.len()).any(|lines| is_shown(&page[..lines].join("\n"), output))
}

/// Returns true if an output is what the page shows.
fn is_shown(page: &str, output: &str) -> bool {
    let lines = |text: &str| text.trim_end().lines().map(str::to_owned).collect::<Vec<_>>();
    are_shown(&lines(page), &lines(output))
}

fn are_shown(page: &[String], output: &[String]) -> bool {
    match page.split_first() {
        None => output.is_empty(),
        Some((line, rest)) if line == ANYTHING => (0..=output.len()).any(|skipped| are_shown(rest, &output[skipped..])),
        Some((line, rest)) => {
            output.split_first().is_some_and(|(found, others)| line_is_shown(line, found) && are_shown(rest, others))
        }
    }
}

fn line_is_shown(page: &str, output: &str) -> bool {
    let Some((first, rest)) = page.split_once(ANYTHING) else { return page == output };
    let Some(mut output) = output.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split(ANYTHING).collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some((_, after)) = output.split_once(part) else { return false };
        output = after;
    }
    output.ends_with(last)
}

#[test]
fn an_ellipsis_stands_for_text_of_a_line_or_for_lines() {
    for (page, output) in [
        ("a\nb\n", "a\nb"),
        ("a … c\n", "a b c\n"),
        ("… c … e …", "b c d e f"),
        ("…\nb\n", "a\na\nb\n"),
        ("…\nb\n", "b\n"),
        ("a\n…\nb\n…\n", "a\nb\n\nc\n"),
    ] {
        assert!(is_shown(page, output), "{page:?} {output:?}");
    }
    for (page, output) in [
        ("a\n", "a\nb\n"),
        ("a\nb\n", "a\n"),
        ("a … c\n", "a b d\n"),
        ("a …\n", "a b\nc\n"),
        ("…\nb\n", "b\nc\n"),
        ("a…a", "a"),
        ("", "a\n"),
    ] {
        assert!(!is_shown(page, output), "{page:?} {output:?}");
    }
}
