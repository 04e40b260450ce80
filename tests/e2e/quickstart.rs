//! `make quickstart`: the commands that it prints do what it says, and nothing is left of it.

use std::fs;
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use crate::support::cluster::is_left_out;
use crate::support::process::{Process, Workspace};
use crate::support::webhook;
use fixtures::wait::eventually;

const SCRIPT: &str = "tests/quickstart.sh";
/// Far above the usual fifteen seconds, because the machine may have other things to do.
const STARTUP: Duration = Duration::from_mins(3);
const SHUTDOWN: Duration = Duration::from_mins(1);

/// A quickstart that runs.
struct Quickstart {
    script: Process,
    /// The only folder that it may write to.
    folder: Workspace,
    _log: Workspace,
}

impl Quickstart {
    /// Starts it, and waits until it is as far as that.
    fn start(is_far_enough: impl Fn(&Self) -> bool) -> Self {
        let (folder, log) = (Workspace::new("quickstart"), Workspace::new("quickstart-log"));
        let script = fixtures::files::root().join(SCRIPT);
        let binary = webhook::binary().unwrap_or_else(|message| panic!("{message}")).canonicalize().unwrap();
        let envs = [("TMPDIR", folder.path().to_str().unwrap()), ("KUBE_UNIONS_BIN", binary.to_str().unwrap())];
        let script = Process::start(&script, &[], &envs, &log.path().join("log"));
        let mut quickstart = Self { script, folder, _log: log };
        let is_there = eventually(STARTUP, || {
            quickstart.script.assert_running();
            is_far_enough(&quickstart)
        });
        assert!(is_there, "{}", quickstart.script.log_tail());
        quickstart
    }

    /// Returns `export KUBECONFIG=…`, and the commands to try.
    fn printed(&self) -> (String, Vec<String>) {
        let printed = self.script.log();
        let mut indented = printed.lines().filter_map(|line| line.strip_prefix("  ")).map(str::to_owned);
        let environment = indented.next().filter(|line| line.starts_with("export KUBECONFIG=")).expect(&printed);
        (environment, indented.collect())
    }

    /// Returns the port of the API server, as soon as there is a kubeconfig.
    fn port(&self) -> Option<u16> {
        let folder = fs::read_dir(self.folder.path()).unwrap().next()?.unwrap().path();
        let kubeconfig = fs::read_to_string(folder.join("admin.kubeconfig")).ok()?;
        kubeconfig.split_once("https://127.0.0.1:")?.1.split('"').next()?.parse().ok()
    }

    fn is_gone(&self, port: u16) -> bool {
        fs::read_dir(self.folder.path()).unwrap().next().is_none() && !is_listening(port)
    }
}

fn is_listening(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}

/// Runs a command in a shell as a user does. Returns everything that it printed.
fn run(environment: &str, command: &str) -> String {
    let script = format!("exec 2>&1\n{environment}\n{command}");
    let output = Command::new("bash").args(["-c", &script]).env("KUBERC", "off").output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_commands_of_the_quickstart_do_what_it_says_and_nothing_is_left() {
    if is_left_out() {
        return;
    }
    let mut quickstart = Quickstart::start(|it| it.script.log().contains("kube-unions audit "));
    let (environment, commands) = quickstart.printed();
    let printed: Vec<_> = commands.iter().map(|command| run(&environment, command)).collect();
    let cleared = "Warning: spec.strategy.rollingUpdate: cleared because `type` changed to \"Recreate\"";
    let rejected = "The Rollout \"shop\" is invalid: spec.strategy.canary: Forbidden: may only be specified when `type` is \
                    \"Canary\"; remove it, or change `type` to switch the member";
    let explained = "\
Rollout samples.kube-unions.dev/v1
└── spec.strategy (2022 form, discriminator `type`, from annotation)
    ├── BlueGreen     → blueGreen
    ├── Canary        → canary
    ├── Recreate      → no member
    └── RollingUpdate → rollingUpdate (optional)
";
    assert_eq!(
        printed,
        [
            format!("{cleared}\nrollout.samples.kube-unions.dev/shop patched\n"),
            format!("{rejected}\n"),
            format!("{cleared}\ndeployment.apps/web patched\n"),
            explained.to_owned(),
            "audited 4 objects of 16 kinds: none invalid, none that normalisation would change\n".to_owned(),
        ]
    );
    let port = quickstart.port().expect("there is a kubeconfig");
    quickstart.script.terminate();
    let status = quickstart.script.wait_for_exit(SHUTDOWN);
    assert!(status.success(), "{status}\n{}", quickstart.script.log_tail());
    assert!(quickstart.is_gone(port));
}

#[test]
fn nothing_is_left_of_a_killed_quickstart() {
    if is_left_out() {
        return;
    }
    let mut quickstart = Quickstart::start(|it| it.port().is_some_and(is_listening));
    let port = quickstart.port().expect("there is a kubeconfig");
    quickstart.script.kill();
    assert!(eventually(SHUTDOWN, || quickstart.is_gone(port)));
}
