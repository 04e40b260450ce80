//! Pages of the guide, followed as they stand: every `sh` block is run, in order, on a cluster whose webhook registers itself, or on an
//! API server without a webhook. What a page shows in the next `text` block has to be exactly what the commands print.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::assets;
use crate::cluster::Cluster;
use crate::control_plane::ControlPlane;
use crate::native::Native;
use crate::process::Workspace;
use crate::registration::with_rights;
use crate::webhook;
use fixtures::wait::for_some;

const REPOSITORY: &str = env!("CARGO_MANIFEST_DIR");

/// The pages call this a second or two. The machine may have other things to do.
const IN_FORCE: Duration = Duration::from_mins(1);

/// A block of commands, and the output that the page promises.
struct Step {
    line: usize,
    commands: String,
    prints: Option<String>,
}

#[test]
fn the_guide_can_be_followed() {
    let Some(cluster) = Cluster::registering(&with_rights(), &["--registration-delay=1s"]) else { return };
    // Authoring audits the whole cluster, so it comes first.
    let pages = [
        ("authoring", 9),
        ("getting-started", 7),
        ("patching", 5),
        ("kustomize-and-helm", 5),
        ("playground", 1),
        ("testing", 5),
    ];
    for (page, fewest_steps) in pages {
        follow(page, fewest_steps, &cluster.control_plane);
    }
}

#[test]
fn the_guide_without_a_webhook_can_be_followed() {
    let Some(server) = Native::start() else { return };
    follow("without-a-webhook", 10, server.control_plane());
}

fn follow(page: &str, fewest_steps: usize, control_plane: &ControlPlane) {
    let page = format!("docs/guide/{page}.md");
    let steps = steps(&page);
    assert!(steps.len() >= fewest_steps, "{page} has only {} blocks of commands", steps.len());
    let workspace = Workspace::new("guide");
    let shell = Shell::new(control_plane, &workspace);
    for step in &steps {
        shell.follow(step, &format!("{page}:{}", step.line));
    }
}

/// Runs each block in a shell of its own, in the folder where the previous one ended. The first one starts where `manifests` is.
struct Shell<'w> {
    workspace: &'w Workspace,
    path: String,
    kubeconfig: String,
}

impl<'w> Shell<'w> {
    fn new(control_plane: &ControlPlane, workspace: &'w Workspace) -> Self {
        let bin = workspace.path().join("bin");
        fs::create_dir(&bin).unwrap();
        let link = |target: &Path, name: &str| std::os::unix::fs::symlink(target, bin.join(name)).unwrap();
        link(&webhook::binary().unwrap().canonicalize().unwrap(), "kube-unions");
        link(control_plane.access().kubectl_binary(), "kubectl");
        link(&assets::tool("kustomize").unwrap_or_else(|message| panic!("{message}")), "kustomize");
        std::os::unix::fs::symlink(Path::new(REPOSITORY).join("manifests"), workspace.path().join("manifests"))
            .unwrap();
        workspace.write("folder", &workspace.path().display().to_string());
        Self {
            workspace,
            path: format!("{}:{}", bin.display(), env::var("PATH").unwrap()),
            kubeconfig: control_plane.admin_kubeconfig().display().to_string(),
        }
    }

    fn follow(&self, step: &Step, place: &str) {
        let is_rejected = step.prints.as_deref().is_some_and(|text| text.contains(" is invalid: "));
        if is_rejected && step.commands.contains("kubectl ") {
            self.wait_until_in_force(step, place);
        }
        if step.commands.starts_with("kubectl patch ") {
            self.wait_until_accepted(step, place);
        }
        let (code, output) = self.run(&step.commands);
        match &step.prints {
            Some(expected) => assert_eq!(output.trim_end(), expected.trim_end(), "{place}"),
            None => assert_eq!(code, Some(0), "{place}\n{output}"),
        }
    }

    /// Returns the exit code and everything that was printed, in order.
    fn run(&self, commands: &str) -> (Option<i32>, String) {
        let folder = self.workspace.path().join("folder");
        let script =
            format!("exec 2>&1\ncd \"$(cat '{0}')\"\ntrap 'pwd > '\\''{0}'\\' EXIT\n{commands}", folder.display());
        let output = Command::new("bash")
            .args(["-c", &script])
            .env("PATH", &self.path)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("KUBECACHEDIR", self.workspace.path().join("cache"))
            .env("KUBERC", "off")
            .env("KUBE_UNIONS", REPOSITORY)
            .env("NO_COLOR", "1")
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    }

    /// Sends a patch, without storing its result, until it is accepted.
    fn wait_until_accepted(&self, step: &Step, place: &str) {
        let patch = step.commands.lines().find(|line| line.starts_with("kubectl patch "));
        let Some(patch) = patch else { return };
        let trial = patch.replace("kubectl patch ", "kubectl patch --dry-run=server ");
        let mut last = String::new();
        let done = for_some(IN_FORCE, || {
            let (code, output) = self.run(&trial);
            last = output;
            (code == Some(0)).then_some(())
        });
        assert!(done.is_some(), "{place}\n{last}");
    }

    /// Sends an object that is to be rejected, without storing it, until it is rejected.
    fn wait_until_in_force(&self, step: &Step, place: &str) {
        let trial = step.commands.replace("kubectl create ", "kubectl create --dry-run=server ");
        assert_ne!(trial, step.commands, "{place}: only what is created can be tried");
        let expected = step.prints.as_deref().unwrap_or_default().trim_end();
        let mut last = String::new();
        let done = for_some(IN_FORCE, || {
            last = self.run(&trial).1;
            (last.trim_end() == expected).then_some(())
        });
        assert!(done.is_some(), "{place}\n{last}");
    }
}

/// The blocks of commands of a page.
fn steps(page: &str) -> Vec<Step> {
    let text = fs::read_to_string(Path::new(REPOSITORY).join(page)).unwrap();
    let mut steps: Vec<Step> = Vec::new();
    let mut lines = text.lines().zip(1..);
    while let Some((fence, line)) = lines.next() {
        let Some(language) = fence.strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().map(|(text, _)| text).take_while(|text| *text != "```").collect();
        let block = block.join("\n") + "\n";
        match language {
            "sh" => steps.push(Step { line, commands: block, prints: None }),
            "text" => {
                let step = steps.last_mut().expect("an output follows the commands that print it");
                assert!(step.prints.replace(block).is_none(), "{page}:{line}: two outputs of one block");
            }
            // Something to read.
            _ => {}
        }
    }
    steps
}
