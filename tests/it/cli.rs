//! The command line as its users meet it: the built binary, its exit codes, standard output and standard error.

mod audit;
mod bounded;
mod cases;
mod chart;
mod check_cel;
mod commands;
mod compile;
mod completion;
mod full;
mod generate;
mod generators;
mod hooks;
mod hostile;
mod in_place;
mod interrupts;
mod man;
mod old_names;
mod patch;
mod preview;
mod propose;
mod sarif;
mod secrets;
mod sessions;
pub(crate) mod terminal;
mod test;
mod unjudged;
mod verify;

use clap::CommandFactory;
use kube_unions::Cli;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A CRD in both forms, with everything that an edit of the text has to leave alone.
const CRD: &str = include_str!("cli/widgets.yaml");

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Run {
    code: i32,
    stdout: String,
    stderr: String,
}

/// A folder with files, gone at the end of the test, and the folder that commands run in.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        for (name, text) in files {
            folder.write(name, text);
        }
        folder
    }

    /// With the CRD above as `crd.yaml`.
    fn with_crd(files: &[(&str, &str)]) -> Self {
        let folder = Self::new(files);
        folder.write("crd.yaml", CRD);
        folder
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap()
    }

    /// Writes the file `kubeconfig` for a cluster, and the namespace `b`.
    pub(crate) fn kubeconfig(&self, cluster: &Value) {
        let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": cluster}], "users": [{"name": "c", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c", "namespace": "b"}}]});
        self.write("kubeconfig", config.to_string());
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        self.pipe(arguments, "")
    }

    fn pipe(&self, arguments: &[&str], stdin: impl AsRef<[u8]>) -> Run {
        run(Command::new(binary()).current_dir(self.path()).args(arguments), stdin.as_ref())
    }
}

impl Run {
    #[track_caller]
    pub(crate) fn code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// Each of these stands somewhere on standard error.
    #[track_caller]
    fn says(self, texts: &[&str]) -> Self {
        for text in texts {
            assert!(self.stderr.contains(text), "no `{text}` in {self:#?}");
        }
        assert!(!self.stderr.contains("panicked"), "{self:#?}");
        self
    }

    /// Nothing but this stands on standard output.
    #[track_caller]
    fn prints(self, text: &str) -> Self {
        assert_eq!(self.stdout, text, "{}", self.stderr);
        self
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

/// Returns the program and each command below it, with the words that call it.
fn visible_commands() -> Vec<(Vec<String>, clap::Command)> {
    let mut found = vec![(vec!["kube-unions".to_owned()], Cli::command())];
    let mut next = 0;
    while let Some((path, command)) = found.get(next) {
        let below = command.get_subcommands().filter(|it| !it.is_hide_set());
        let below = below.map(|it| ([&path[..], &[it.get_name().to_owned()]].concat(), it.clone())).collect::<Vec<_>>();
        found.extend(below);
        next += 1;
    }
    found
}

fn binary() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_kube-unions"))
}

fn run(command: &mut Command, stdin: &[u8]) -> Run {
    command.env_remove("RUST_LOG").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        // A command that fails before it reads closes the pipe.
        scope.spawn(move || drop(input.write_all(stdin)));
        child.wait_with_output().unwrap()
    });
    Run {
        code: output.status.code().expect("ends by itself"),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The value of a YAML text.
fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}
