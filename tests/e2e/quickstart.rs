//! `make quickstart`: the commands that it prints do what it says, and nothing is left of it.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::cluster::is_left_out;
use crate::process::{Process, Workspace, wait_until_ready};
use crate::webhook;
use fixtures::wait::eventually;

const SCRIPT: &str = "tests/quickstart.sh";
/// Far above the usual fifteen seconds, because the machine may have other things to do.
const STARTUP: Duration = Duration::from_mins(3);
const SHUTDOWN: Duration = Duration::from_mins(1);

/// A quickstart that has printed its commands.
struct Quickstart {
    script: Process,
    /// The only folder that it may write to.
    folder: Workspace,
    _log: Workspace,
    /// `export KUBECONFIG=…`
    environment: String,
    /// The commands to try.
    commands: Vec<String>,
}

impl Quickstart {
    fn start() -> Self {
        let folder = Workspace::new("quickstart");
        let log_folder = Workspace::new("quickstart-log");
        let log = log_folder.path().join("log");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(SCRIPT);
        let binary = webhook::binary().unwrap_or_else(|message| panic!("{message}")).canonicalize().unwrap();
        let envs = [("TMPDIR", folder.path().to_str().unwrap()), ("KUBE_UNIONS_BIN", binary.to_str().unwrap())];
        let mut script = Process::start(&script, &[], &envs, &log);
        let read = || fs::read_to_string(&log).unwrap_or_default();
        wait_until_ready(SCRIPT, STARTUP, &mut [&mut script], || read().contains("kube-unions audit "))
            .unwrap_or_else(|message| panic!("{message}"));
        let printed = read();
        let mut indented = printed.lines().filter_map(|line| line.strip_prefix("  ")).map(str::to_owned);
        let environment = indented.next().filter(|line| line.starts_with("export KUBECONFIG=")).expect(&printed);
        Self { script, folder, _log: log_folder, environment, commands: indented.collect() }
    }

    /// Runs a command in a shell as a user does. Returns everything that it printed.
    fn run(&self, command: &str) -> String {
        let script = format!("exec 2>&1\n{}\n{command}", self.environment);
        let output = Command::new("bash").args(["-c", &script]).env("KUBERC", "off").output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns the port of the API server.
    fn port(&self) -> u16 {
        let server = self.run("kubectl config view --minify -o jsonpath='{.clusters[0].cluster.server}'");
        server.rsplit(':').next().unwrap().parse().unwrap_or_else(|_| panic!("{server}"))
    }

    fn is_gone(&self, port: u16) -> bool {
        fs::read_dir(self.folder.path()).unwrap().next().is_none() && TcpStream::connect(("127.0.0.1", port)).is_err()
    }
}

#[test]
fn the_commands_of_the_quickstart_do_what_it_says_and_nothing_is_left() {
    if is_left_out() {
        return;
    }
    let mut quickstart = Quickstart::start();
    let printed: Vec<_> = quickstart.commands.iter().map(|command| quickstart.run(command)).collect();
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
            "audited 2 objects of 13 kinds: none invalid, none that normalisation would change\n".to_owned(),
        ]
    );
    let port = quickstart.port();
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
    let mut quickstart = Quickstart::start();
    let port = quickstart.port();
    quickstart.script.kill();
    assert!(eventually(SHUTDOWN, || quickstart.is_gone(port)));
}
