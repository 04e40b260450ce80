//! The guide for authors, followed as it stands: every command of it is run, in order, in one shell, on a cluster whose webhook
//! registers itself; and what the page says that a command prints, it prints.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::cluster::Cluster;
use crate::process::Workspace;
use crate::registration::with_rights;
use crate::wait::for_some;
use crate::webhook;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/guide/authoring.md");

/// What the page calls a second or two, on a machine with other things to do.
const IN_FORCE: Duration = Duration::from_mins(1);

/// Commands, and what they print if the page says so.
struct Step {
    line: usize,
    commands: String,
    prints: Option<String>,
}

#[test]
fn the_guide_for_authors_can_be_followed() {
    let Some(cluster) = Cluster::registering(&with_rights(), &["--registration-delay=1s"]) else { return };
    let workspace = Workspace::new("guide");
    let shell = Shell::new(&cluster, &workspace);
    let steps = steps(&fs::read_to_string(PAGE).unwrap());
    assert!(steps.len() > 8, "the page has commands, not {} blocks of them", steps.len());
    for step in &steps {
        let place = format!("{PAGE}:{}", step.line);
        if step.prints.as_deref().is_some_and(|text| text.contains(" is invalid: ")) {
            shell.wait_until_in_force(step, &place);
        }
        let (code, output) = shell.run(&step.commands);
        match &step.prints {
            Some(expected) => assert_eq!(output.trim_end(), expected.trim_end(), "{place}"),
            None => assert_eq!(code, Some(0), "{place}\n{output}"),
        }
    }
}

/// One shell after the other, each where the one before it was left.
struct Shell<'w> {
    workspace: &'w Workspace,
    path: String,
    kubeconfig: String,
}

impl<'w> Shell<'w> {
    fn new(cluster: &Cluster, workspace: &'w Workspace) -> Self {
        let bin = workspace.path().join("bin");
        fs::create_dir(&bin).unwrap();
        let link = |target: &Path, name: &str| std::os::unix::fs::symlink(target, bin.join(name)).unwrap();
        link(&webhook::binary().unwrap().canonicalize().unwrap(), "kube-unions");
        link(cluster.control_plane.access().kubectl_binary(), "kubectl");
        workspace.write("folder", &workspace.path().display().to_string());
        Self {
            workspace,
            path: format!("{}:{}", bin.display(), env::var("PATH").unwrap()),
            kubeconfig: cluster.control_plane.admin_kubeconfig().display().to_string(),
        }
    }

    /// The exit code, and everything that was printed, in order.
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
            .env("KUBE_UNIONS", env!("CARGO_MANIFEST_DIR"))
            .env("NO_COLOR", "1")
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    }

    /// What is to be rejected is sent without being stored, until it is.
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
    let mut steps: Vec<Step> = Vec::new();
    let mut lines = page.lines().zip(1..);
    while let Some((fence, line)) = lines.next() {
        let Some(language) = fence.strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().map(|(text, _)| text).take_while(|text| *text != "```").collect();
        let block = block.join("\n") + "\n";
        match language {
            "sh" => steps.push(Step { line, commands: block, prints: None }),
            "text" => {
                let step = steps.last_mut().expect("what is printed stands behind what prints it");
                assert!(step.prints.replace(block).is_none(), "{PAGE}:{line}: two outputs of one block");
            }
            // Something to read.
            _ => {}
        }
    }
    steps
}
