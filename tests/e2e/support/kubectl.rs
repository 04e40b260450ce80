//! The real kubectl, with a configuration and a cache of its own.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use serde_json::Value;

/// For commands in Go, of which the garbage collector takes a fifth of the time. The heap stays bounded.
pub(crate) const NO_COLLECTOR: [(&str, &str); 2] = [("GOGC", "off"), ("GOMEMLIMIT", "512MiB")];

/// A kubectl and its settings.
pub(crate) struct Kubectl {
    binary: PathBuf,
    kubeconfig: PathBuf,
    cache: PathBuf,
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Output {
    command: String,
    /// The exit code. `None`: a signal ended the process.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Kubectl {
    pub(crate) fn new(binary: PathBuf, kubeconfig: PathBuf, cache: PathBuf) -> Self {
        Self { binary, kubeconfig, cache }
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.run_with(args, "")
    }

    /// Runs with `input` on stdin.
    pub(crate) fn run_with(&self, args: &[&str], input: &str) -> Output {
        let mut command = Command::new(&self.binary);
        command
            .arg(format!("--kubeconfig={}", self.kubeconfig.display()))
            .arg(format!("--cache-dir={}", self.cache.display()))
            .args(args)
            .env("HOME", &self.cache)
            .env("KUBERC", "off")
            .env_remove("KUBECONFIG");
        run(command, &format!("kubectl {}", args.join(" ")), input)
    }

    /// `kubectl apply` under its default, strict validation.
    pub(crate) fn apply(&self, manifest: &str) -> Output {
        self.run_with(&["apply", "-f", "-"], manifest)
    }
}

impl Output {
    pub(crate) fn succeeded(&self) -> bool {
        self.code == Some(0)
    }

    /// Fails the test unless the command succeeded.
    #[track_caller]
    pub(crate) fn accepted(self) -> Self {
        assert!(self.succeeded(), "`{}` was to succeed\n{self:#?}", self.command);
        self
    }

    /// Fails the test unless the command failed with exactly this text on stderr, apart from warnings.
    #[track_caller]
    pub(crate) fn rejected(self, words: &str) -> Self {
        assert!(!self.succeeded(), "`{}` was to fail\n{self:#?}", self.command);
        let said: Vec<&str> = self.stderr.lines().filter(|line| !line.starts_with("Warning: ")).collect();
        assert_eq!(said.join("\n"), words.trim_end(), "`{}` failed in other words", self.command);
        self
    }

    /// Fails the test unless the command failed and stderr contains this text.
    #[track_caller]
    pub(crate) fn refused(self, words: &str) -> Self {
        assert!(!self.succeeded(), "`{}` was to fail\n{self:#?}", self.command);
        assert!(self.stderr.contains(words), "`{}` was to say `{words}`\n{}", self.command, self.stderr);
        self
    }

    /// Fails the test unless exactly these warnings were printed, in this order.
    #[track_caller]
    pub(crate) fn warned(self, warnings: &[&str]) -> Self {
        let said: Vec<&str> = self.stderr.lines().filter_map(|line| line.strip_prefix("Warning: ")).collect();
        assert_eq!(said, warnings, "warnings of `{}`", self.command);
        self
    }

    /// Fails the test if the API server itself warned. A webhook that registers itself also warns of the declarations in a CRD.
    #[track_caller]
    pub(crate) fn not_warned_by_the_server(self) -> Self {
        let of_the_webhook = "Warning: metadata.annotations[kube-unions.dev/unions]: ";
        let mut said = self.stderr.lines().filter(|line| line.starts_with("Warning: "));
        assert_eq!(said.find(|line| !line.starts_with(of_the_webhook)), None, "a warning of `{}`", self.command);
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("`{}` printed no JSON: {error}\n{self:#?}", self.command))
    }
}

/// Runs a command to its end with `input` on its stdin.
pub(crate) fn run(mut command: Command, name: &str, input: &str) -> Output {
    let mut child = command
        .envs(NO_COLLECTOR)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("`{name}` cannot be started: {error}"));
    let mut stdin = child.stdin.take().expect("stdin is piped");
    // In a thread: a child that prints before it has read its input fills the pipe that nobody reads yet.
    let output = thread::scope(|scope| {
        scope.spawn(move || {
            // A command may close its input unread.
            let _ = stdin.write_all(input.as_bytes());
        });
        child.wait_with_output().unwrap_or_else(|error| panic!("`{name}` cannot be waited for: {error}"))
    });
    Output {
        command: name.to_owned(),
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
