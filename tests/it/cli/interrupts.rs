//! Signals while the exec plugin of a kubeconfig runs: the command ends, and so does the plugin with everything that it has started.
//! Signals while a file is a pipe that nobody writes.

use super::{Folder, binary};
use fixtures::wait::{SOON, eventually};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::fs::{self, OpenOptions};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

/// Writes its process and one that it starts to files, the second when both run, and waits.
const WAITS: &str = "sleep 600 & echo $! > below; echo $$ > plugin; wait";

/// The same, and does not end by itself for a signal.
const STUBBORN: &str = "trap '' TERM; sleep 600 & echo $! > below; echo $$ > plugin; while :; do wait; done";

/// The same, after all has been said.
const SAID: &str = "echo '{status: {token: t}}'; exec >&-; sleep 600 & echo $! > below; echo $$ > plugin; wait";

/// The same, and what it has started does not end by itself for a signal.
const STUBBORN_BELOW: &str =
    "(trap '' TERM INT HUP; while :; do sleep 600; done) & echo $! > below; echo $$ > plugin; wait";

/// Ends, and leaves behind a process that holds its output.
const LEAVES: &str = "sleep 600 & echo $! > below; echo $! > plugin; exit 0";

/// How a command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Code(i32),
    /// The signal ends the command, as without a handler.
    Signal,
}

/// A command that waits for the plugin.
struct Waiting {
    folder: Folder,
    child: Child,
}

impl Waiting {
    fn start(script: &str, mode: &str, arguments: &[&str]) -> Self {
        let folder = Folder::with_crd(&[("patch.yaml", "{}")]);
        let exec = json!({"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": mode, "command": "sh",
            "args": ["-c", script]});
        let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
            "users": [{"name": "c", "user": {"exec": exec}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}]});
        folder.write("kubeconfig", config.to_string());
        let mut command = Command::new(binary());
        command.current_dir(folder.path()).args(arguments).args(["--kubeconfig", "kubeconfig"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        for variable in ["RUST_LOG", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"] {
            command.env_remove(variable);
        }
        let child = command.env("TMPDIR", folder.path()).spawn().unwrap();
        Self { folder, child }
    }

    /// Returns the process whose number is in a file.
    fn process(&self, file: &str) -> Option<Pid> {
        let text = fs::read_to_string(self.folder.path().join(file)).ok()?;
        Pid::from_raw(text.strip_suffix('\n')?.parse().ok()?)
    }

    /// Sends a signal when the plugin waits. Returns how the command ended, after all other processes have.
    #[track_caller]
    fn interrupt(mut self, signal: Signal) -> ExitStatus {
        assert!(eventually(SOON, || self.process("plugin").is_some()), "the plugin runs");
        let others = ["plugin", "below"].map(|file| self.process(file).unwrap());
        assert!(others.iter().all(|process| is_running(*process)), "{others:?}");
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        let mut status = None;
        let has_ended = eventually(SOON, || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        if !has_ended {
            self.child.kill().unwrap();
            self.child.wait().unwrap();
        }
        let are_gone = eventually(SOON, || !others.iter().any(|process| is_running(*process)));
        for process in others.into_iter().filter(|process| is_running(*process)) {
            kill_process(process, Signal::KILL).ok();
        }
        assert!(has_ended, "the command goes on");
        assert!(are_gone, "a process is left behind");
        status.unwrap()
    }
}

/// Returns true for a process that has not ended.
fn is_running(process: Pid) -> bool {
    let path = PathBuf::from(format!("/proc/{}/stat", process.as_raw_nonzero()));
    let state = fs::read_to_string(path).ok().and_then(|text| text.rsplit_once(") ")?.1.chars().next());
    state.is_some_and(|state| state != 'Z')
}

#[track_caller]
fn assert_ends(waiting: Waiting, signal: Signal, end: End, what: &str) {
    let status = waiting.interrupt(signal);
    let found = status.code().map_or(End::Signal, End::Code);
    assert_eq!(found, end, "{what}: {status:?}");
    assert!(end != End::Signal || status.signal() == Some(signal.as_raw()), "{what}: {status:?}");
}

/// Rows: a command, and how an interrupt ends it.
const COMMANDS: [(&[&str], End); 10] = [
    (&["audit", "-A"], End::Code(2)),
    (&["audit", "widgets", "-o", "json"], End::Code(2)),
    (&["explain"], End::Signal),
    (&["compile", "--to", "policies"], End::Signal),
    (&["propose"], End::Signal),
    (&["verify"], End::Code(2)),
    (&["install-crd"], End::Signal),
    (&["unregister"], End::Signal),
    (&["patch", "live", "widgets", "a", "-p", "{}"], End::Signal),
    (&["serve", "--bind", "127.0.0.1:0", "--ops-bind", "127.0.0.1:0", "--tls-self-signed"], End::Code(0)),
];

#[test]
fn a_signal_ends_every_command_while_the_plugin_of_its_kubeconfig_runs() {
    for (arguments, end) in COMMANDS {
        for signal in [Signal::INT, Signal::TERM] {
            assert_ends(Waiting::start(WAITS, "IfAvailable", arguments), signal, end, &format!("{arguments:?}"));
        }
    }
}

#[test]
fn a_plugin_ends_whatever_it_does() {
    for script in [WAITS, STUBBORN, SAID, STUBBORN_BELOW, LEAVES] {
        for mode in ["Never", "IfAvailable", "Always"] {
            for (arguments, end) in [COMMANDS[0], COMMANDS[2], COMMANDS[9]] {
                let what = format!("{mode} {script} {arguments:?}");
                assert_ends(Waiting::start(script, mode, arguments), Signal::TERM, end, &what);
            }
        }
    }
}

/// Rows: commands that are told to read a named pipe, and how a signal ends them.
const READERS: [(&[&str], End); 6] = [
    (&["audit", "-A", "--kubeconfig", "pipe"], End::Code(2)),
    (&["explain", "--kubeconfig", "pipe"], End::Signal),
    (&["verify", "--kubeconfig", "pipe"], End::Code(2)),
    (&["patch", "live", "widgets", "a", "-p", "{}", "--kubeconfig", "pipe"], End::Signal),
    (
        &["serve", "--bind", "127.0.0.1:0", "--ops-bind", "127.0.0.1:0", "--tls-self-signed", "--kubeconfig", "pipe"],
        End::Code(0),
    ),
    (
        &["serve", "--bind", "127.0.0.1:0", "--ops-bind", "127.0.0.1:0", "--tls-self-signed", "--from", "pipe"],
        End::Code(0),
    ),
];

#[test]
fn a_signal_ends_every_command_that_reads_a_pipe_which_nobody_writes() {
    for (arguments, end) in READERS {
        // A shell starts background jobs with SIGINT ignored, and a command without a handler keeps that.
        let signals = if end == End::Signal { &[Signal::TERM][..] } else { &[Signal::INT, Signal::TERM] };
        for &signal in signals {
            let folder = Folder::with_crd(&[("patch.yaml", "{}")]);
            let pipe = folder.path().join("pipe");
            assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
            let mut command = Command::new(binary());
            command.current_dir(folder.path()).args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
            let mut child = command.stderr(Stdio::null()).spawn().unwrap();
            // This returns when the command has opened the pipe, too.
            let writer = OpenOptions::new().write(true).open(&pipe).unwrap();
            kill_process(Pid::from_child(&child), signal).unwrap();
            let has_ended = eventually(SOON, || child.try_wait().unwrap().is_some());
            if !has_ended {
                child.kill().unwrap();
            }
            let status = child.wait().unwrap();
            drop(writer);
            assert!(has_ended, "{arguments:?} goes on after {signal:?}");
            let found = status.code().map_or(End::Signal, End::Code);
            assert_eq!(found, end, "{arguments:?} {signal:?}: {status:?}");
        }
    }
}
